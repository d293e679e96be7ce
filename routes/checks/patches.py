"""Checks of `patches`: the target exists, and the object has the shape of the Envoy message it is merged into."""

import json
from collections.abc import Iterator

from envoy_api import InvalidMessageError, parse
from operator_files.problem import Problem
from operator_files.validate import did_you_mean
from routes import codes
from routes.checks.context import Checked
from routes.convert import DEFAULT_RULE, rule_name
from routes.model.file import PatchSpec

TARGETS = {
    "cluster": "envoy.config.cluster.v3.Cluster",
    "virtual_host": "envoy.config.route.v3.VirtualHost",
    "route": "envoy.config.route.v3.Route",
    "listener": "envoy.config.listener.v3.Listener",
}
"""The message that each kind of patch is merged into."""

_OWN = {
    "cluster": ("name",),
    "virtual_host": ("name", "domains"),
    "route": ("name",),
    "listener": ("name", "address"),
}
"""What other resources refer to, or other files may claim."""


def patch_problems(checked: Checked) -> Iterator[Problem]:
    """Everything that is wrong with the file's patches."""
    for index, patch in enumerate(checked.file.patches or ()):
        at = ("patches", index)
        targets = [target for target in TARGETS if getattr(patch, target) is not None]
        if len(targets) != 1:
            yield checked.error(
                codes.ONE_OF, "a patch has exactly one target", at,
                "write one of `cluster`, `virtual_host`, `route` and `listener`",
            )  # fmt: skip
            continue
        yield from _target(checked, at, patch)
        yield from _merge(checked, (*at, "merge"), targets[0], patch)


def _target(checked: Checked, at: tuple[str | int, ...], patch: PatchSpec) -> Iterator[Problem]:
    if not checked.whole:
        return
    name = checked.service.name
    if patch.cluster is not None and patch.cluster != name and patch.cluster not in checked.naming.subsets:
        known = {name, *checked.naming.subsets}
        yield checked.error(
            codes.PATCH, f"`{patch.cluster}` is neither a subset nor the service", (*at, "cluster"),
            did_you_mean(patch.cluster, known),
        )  # fmt: skip
    rules = {rule_name(index, rule) for index, rule in checked.rules} or {DEFAULT_RULE}
    if patch.route is not None and patch.route not in rules:
        yield checked.error(
            codes.PATCH, f"there is no rule `{patch.route}`", (*at, "route"), did_you_mean(patch.route, rules)
        )
    if patch.listener and checked.file.listen is None:
        yield checked.error(
            codes.PATCH, "the service has no listener of its own", (*at, "listener"), "write `listen`", key=True
        )


def _merge(checked: Checked, at: tuple[str | int, ...], target: str, patch: PatchSpec) -> Iterator[Problem]:
    for key in _OWN[target]:
        if key in patch.merge:
            yield checked.error(
                codes.PATCH,
                f"`{key}` cannot be patched: other resources refer to it",
                (*at, key),
                "delete the key",
                key=True,
            )
    try:
        json.dumps(patch.merge, allow_nan=False)
        parse(TARGETS[target], patch.merge)
    except InvalidMessageError as error:
        for fault in error.faults:
            yield checked.error(codes.PATCH, fault.reason, (*at, *fault.path), key=True)
    except ValueError:
        yield checked.error(codes.PATCH, "infinity and not-a-number have no place in Envoy's JSON", at, key=True)
