"""What became of an instance: used, or left out and why. Where nobody has it: what is watched, and what to check."""

from collections.abc import Iterator, Mapping, Sequence

from discovery.explain import Witness
from discovery.source import Source
from swashplate.explain.instances import parts_of_sources, seen_report
from swashplate.explain.reports import EndpointReport, SeenReport
from swashplate.status import CONSUL, KUBERNETES, SERVICE_FILES


def seen_of(asked: str, witness: Witness, namespace: str) -> tuple[SeenReport, ...]:
    """All that it means; `namespace` is the default one."""
    found = []
    for one in witness.explain(asked):
        share = None
        if one.used and witness.shares_of(one.service):
            others = (other for other in witness.seen(one.service) if other.service_port == one.service_port)
            share = parts_of_sources(others).get(one.source)
        found.append(seen_report(one, namespace, share))
    return tuple(found)


def explain_endpoint(
    asked: str,
    seen: Sequence[SeenReport],
    similar: Sequence[str],
    sources: Mapping[str, Source],
    selections: Mapping[str, tuple[str, ...]],
    pod_label: str = "",
) -> EndpointReport:
    """`asked` is an address, with a port or not, or an instance's name; `seen` are those that it means, `similar`
    names that have it in them, where it means none. `selections` say, for each source, what of it is left out by
    settings. `pod_label`: pods with it are read, not Services."""
    if seen:
        return EndpointReport(asked=asked, seen=tuple(seen))
    watched = []
    for name, source in sources.items():
        watched.append(f"{name}: {'; '.join((source.place, *selections.get(name, ())))}")
    advice = [*_similar(asked, similar), *_checks(sources, selections, pod_label)]
    return EndpointReport(asked=asked, watched=tuple(watched), advice=tuple(advice))


def _similar(asked: str, near: Sequence[str]) -> Iterator[str]:
    if near:
        yield f"several instances have {asked} in their name: {', '.join(near)}"


def _checks(
    sources: Mapping[str, Source], selections: Mapping[str, tuple[str, ...]], pod_label: str
) -> Iterator[str]:
    """What to look at, source by source."""
    if not sources:
        yield "this server discovers nothing: it was given neither --services nor --kubernetes nor --consul"
    for name, source in sources.items():
        freshness = source.freshness
        if freshness.synced_at is None and freshness.stored:
            yield (
                f"{name} has not been heard since the start, and what an earlier life knew of it is served: "
                f"{freshness.error or 'its first answer is on the way'}"
            )
        elif freshness.synced_at is None:
            yield f"{name} has not been heard yet: {freshness.error or 'its first answer is on the way'}"
        elif freshness.error:
            yield f"{name} is not heard at the moment, so what is new there is not known: {freshness.error}"
        yield from (f"{name}: {note}" for note in source.notes)
        chosen = f" (only {', '.join(selections[name])})" if selections.get(name) else ""
        if name == KUBERNETES and pod_label:
            yield _POD_CHECK.format(label=pod_label)
        elif (check := _CHECKS.get(name)) is not None:
            yield check.format(chosen=chosen)


_POD_CHECK = (
    "kubernetes: has the pod the label {label}, in a namespace that is watched? "
    "`kubectl get pods -A -l {label} -o wide` has the address of every pod with it"
)
_CHECKS = {
    SERVICE_FILES: "service-files: is it in a file there, and is that file without errors in `swashplate status`?",
    KUBERNETES: (
        "kubernetes: is it behind a Service that is watched{chosen}? `kubectl get endpointslices -A` has the address "
        "of every pod that is; a pod without one has no Service that selects it"
    ),
    CONSUL: (
        "consul: is it registered as an instance of a service that is watched{chosen}? "
        "`consul catalog services -tags` lists the services that this token may see"
    ),
}
