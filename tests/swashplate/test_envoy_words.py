"""Envoy's refusals: the reason without the refused message, and what it is about."""

import pytest

from swashplate.envoy_words import named, plain

NESTED = (
    'goo.gle/debugonly    \nnode {\n  id: "check"\n}\nstatic_resources {\n}\n: Proto constraint validation failed '
    "(BootstrapValidationError.StaticResources: embedded message failed validation | caused by "
    "StaticResourcesValidationError.Clusters[1]: embedded message failed validation | caused by "
    "ClusterValidationError.ConnectTimeout: value must be greater than 0s)"
)
HOST = (
    'goo.gle/debugproto  \nstat_prefix: "egress"\n: Proto constraint validation failed '
    "(HttpConnectionManagerValidationError.RouteConfig: embedded message failed validation | caused by "
    "RouteConfigurationValidationError.VirtualHosts[1]: embedded message failed validation | caused by "
    "RetryBackOffValidationError.BaseInterval: value must be greater than 0s)"
)
BOOTSTRAP = {
    "static_resources": {
        "clusters": [{"name": "a"}, {"name": "checkout/canary"}],
        "listeners": [
            {"filters": [{"route_config": {"virtual_hosts": [{"name": "egress/a"}, {"name": "egress/checkout"}]}}]}
        ],
    }
}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (NESTED, "Cluster.ConnectTimeout: value must be greater than 0s"),
        (HOST, "RetryBackOff.BaseInterval: value must be greater than 0s"),
        (
            "Invalid duration: Expected positive duration: goo.gle/debugproto  \nseconds: -1\nnanos: 2",
            "Invalid duration: Expected positive duration",
        ),
        (
            "Error adding/updating cluster(s) x/y: Proto constraint validation failed (ClusterValidationError."
            'DnsRefreshRate: value must be greater than 1ms): name: "x/y"',
            "Error adding/updating cluster(s) x/y: Cluster.DnsRefreshRate: value must be greater than 1ms: "
            'name: "x/y"',
        ),
        (
            "Invalid duration: goo.gle/debugstr seconds: -1: Proto constraint validation failed "
            "(ClusterValidationError.Name: value length must be at least 1)",
            "Invalid duration: Cluster.Name: value length must be at least 1",
        ),
        ("missing ): (", "missing ): ("),
        ("only one domain (x) may be in a table", "only one domain (x) may be in a table"),
        ("goo.gle/debugonly\nonly: a dump\n", "goo.gle/debugonly only: a dump"),
    ],
)
def test_the_reason_remains(words: str, reason: str) -> None:
    assert plain(words) == reason


def test_whatever_it_says_is_not_endless() -> None:
    assert len(plain("x" * 100_000)) < 2100


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (NESTED, "checkout/canary"),
        (HOST, "egress/checkout"),
        (NESTED.replace("[1]", "[7]"), None),
        ("missing ): (", None),
    ],
)
def test_what_it_is_about(words: str, name: str | None) -> None:
    assert named(words, BOOTSTRAP) == name
