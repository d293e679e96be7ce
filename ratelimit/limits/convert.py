"""From the model of a limit file to plain values."""

from collections.abc import Sequence
from types import MappingProxyType

from operator_files.yaml import Document
from ratelimit.counters.check import Algorithm, Calendar
from ratelimit.limits.descriptor import Descriptor
from ratelimit.limits.limit import Limit, OnStoreFailure
from ratelimit.limits.limit_checks import unit_of
from ratelimit.limits.model import DescriptorSpec, LimitFile, OneOfSeveralSpec, RateLimitSpec
from ratelimit.limits.window import tag
from ratelimit.unit import Unit

_Path = tuple[str | int, ...]


def descriptors_of(file: LimitFile, document: Document) -> tuple[Descriptor, ...]:
    """The first level of a file without errors."""
    return _Converter(document).level(file.descriptors, (), "")


class _Converter:
    def __init__(self, document: Document) -> None:
        self._document = document

    def level(self, specs: Sequence[DescriptorSpec], loc: _Path, path: str) -> tuple[Descriptor, ...]:
        return tuple(self._descriptor(spec, (*loc, "descriptors", index), path) for index, spec in enumerate(specs))

    def _descriptor(self, spec: DescriptorSpec, loc: _Path, above: str) -> Descriptor:
        word = f"{spec.key}_{spec.value}" if spec.value else spec.key
        path = f"{above}.{word}" if above else word
        return Descriptor(
            key=spec.key,
            value=spec.value,
            limits=self._limits(spec, loc, path),
            descriptors=self.level(spec.descriptors, loc, path),
            share_threshold=spec.share_threshold,
            value_to_metric=spec.value_to_metric,
            detailed_metric=spec.detailed_metric,
            place=self._place(loc),
        )

    def _limits(self, spec: DescriptorSpec, loc: _Path, path: str) -> tuple[Limit, ...]:
        if spec.rate_limits is not None:
            several = len(spec.rate_limits) > 1
            return tuple(
                self._limit(spec, limit, (*loc, "rate_limits", index), path, several=several)
                for index, limit in enumerate(spec.rate_limits)
            )
        if spec.rate_limit is not None:
            return (self._limit(spec, spec.rate_limit, (*loc, "rate_limit"), path, several=False),)
        return ()

    def _limit(self, spec: DescriptorSpec, limit: RateLimitSpec, loc: _Path, path: str, *, several: bool) -> Limit:
        unit = unit_of(limit.unit) or Unit.SECOND  # none is written where it is unlimited
        multiplier = limit.unit_multiplier or 1
        algorithm = Algorithm(limit.algorithm or Algorithm.FIXED_WINDOW)
        calendar = Calendar(unit, limit.time_zone or "UTC", multiplier) if limit.calendar else None
        name = tag(unit, multiplier, algorithm, calendar) if several else ""
        own_shadow = limit.shadow_mode if isinstance(limit, OneOfSeveralSpec) else None
        return Limit(
            path=f"{path}[{name}]" if name else path,
            requests=limit.requests_per_unit or 0,
            unit=unit,
            multiplier=multiplier,
            algorithm=algorithm,
            burst=limit.burst,
            calendar=None if limit.unlimited else calendar,
            name=limit.name,
            replaces=frozenset(replaced.name for replaced in limit.replaces),
            unlimited=limit.unlimited,
            shadow=spec.shadow_mode if own_shadow is None else own_shadow,
            quota=spec.quota_mode,
            charge_denied=limit.charge_denied is not False,
            on_store_failure=OnStoreFailure(limit.on_store_failure) if limit.on_store_failure else None,
            metadata=MappingProxyType(dict(spec.metadata)),
            place=self._place(loc),
            tag=name,
        )

    def _place(self, loc: _Path) -> str:
        line = self._document.at(loc, key=True).line if self._document.text else 0
        return f"{self._document.file}:{line}" if line else self._document.file
