"""Checks of `cluster`: the policy of a service's clusters."""

from collections.abc import Iterator

from operator_files.problem import Problem
from routes import codes
from routes.checks.context import Checked
from routes.checks.rule import at_most_one
from routes.model.policy import ClusterSpec, HealthCheckSpec, TlsSpec


def cluster_problems(checked: Checked, cluster: ClusterSpec) -> Iterator[Problem]:
    """Settings that contradict each other, or miss one."""
    if cluster.health_check is not None:
        yield from _health_check(checked, cluster.health_check)
    if isinstance(cluster.tls, TlsSpec):
        yield from _tls(checked, cluster.tls)
    if cluster.locality is not None and cluster.locality.zone_aware and cluster.locality.failover:
        yield checked.error(
            codes.ONE_OF, "`failover` cannot stand beside `zone_aware`", ("cluster", "locality", "failover"),
            "keep one of the two", key=True,
        )  # fmt: skip


def _health_check(checked: Checked, check: HealthCheckSpec) -> Iterator[Problem]:
    at = ("cluster", "health_check")
    if check.grpc:
        yield from at_most_one(checked, at, check, ("grpc", "path"))
    if check.host is not None and check.path is None:
        yield checked.error(
            codes.MISPLACED, "`host` belongs to an HTTP check", (*at, "host"), "write `path` too", key=True
        )


def _tls(checked: Checked, tls: TlsSpec) -> Iterator[Problem]:
    at = ("cluster", "tls")
    for have, lack in (("cert", "key"), ("key", "cert")):
        if getattr(tls, have) is not None and getattr(tls, lack) is None:
            yield checked.error(codes.TLS, f"`{have}` needs `{lack}`", (*at, have), f"write `{lack}` too", key=True)
    if not tls.verify:
        for key in ("ca", "sans"):
            if getattr(tls, key) is not None:
                yield checked.error(
                    codes.TLS,
                    f"`verify: false` never looks at `{key}`",
                    (*at, key),
                    "delete one of the two",
                    key=True,
                )
