"""Names on the wire: clusters, domains, and who gets a domain."""

import pytest

from mesh.service import Protocol, ServiceName
from tests.translate.meshes import name
from xds.translate.claims import Claims, claims_of
from xds.translate.finding import Code
from xds.translate.naming import base_name, host_domains, is_sayable, port_name, stat_name, subset_name
from xds.translate.ports import CalledPort


def called(number: int, *, main: bool = True) -> CalledPort:
    return CalledPort("unused", "", number, Protocol.HTTP1, main=main, routed=True)


def wish(service: str, *extra: str, source: str = "", port: int = 80) -> tuple[str, tuple[object, ...]]:
    return service, claims_of(service, name(service), called(port), extra, source, "cluster.local")


def claims(*wishes: tuple[str, tuple[object, ...]]) -> Claims:
    made = Claims()
    for host, wanted in wishes:
        made.replace(host, wanted)  # type: ignore[arg-type]
    return made


def holder(found: Claims, domain: str, viewer: str, hosts: tuple[str, ...]) -> str:
    [host] = [host for host in hosts if domain in found.domains(host, viewer)]
    return host


def test_cluster_names() -> None:
    assert base_name(name("checkout"), "default") == "checkout"
    assert base_name(name("checkout.shop"), "default") == "checkout.shop"
    assert base_name(name("checkout.shop"), "shop") == "checkout"
    assert subset_name(port_name("checkout", 9090), "canary") == "checkout:9090/canary"


def test_dots_are_no_borders_in_statistics() -> None:
    assert stat_name("checkout/canary") == "checkout/canary"
    assert stat_name("checkout.shop/canary") == "checkout_shop/canary"


@pytest.mark.parametrize("bad", ["", "a:b", "a/b"])
def test_names_that_cannot_be_said(bad: str) -> None:
    assert not is_sayable(ServiceName("default", bad))
    assert not is_sayable(ServiceName(bad, "a"))
    assert is_sayable(ServiceName("default", "a.b"))


@pytest.mark.parametrize(
    ("host", "domains"),
    [
        ("store.example", ("store.example", "store.example:80")),
        ("Store.Example:8443", ("store.example:8443",)),
        ("*.store.example", ("*.store.example", "*.store.example:80")),
        ("store.*", ("store.*",)),
        ("*", ("*",)),
        ("2001:db8::1", ("[2001:db8::1]", "[2001:db8::1]:80")),
        ("[2001:db8::1]", ("[2001:db8::1]", "[2001:db8::1]:80")),
        ("[2001:db8::1]:81", ("[2001:db8::1]:81",)),
    ],
)
def test_extra_hosts(host: str, domains: tuple[str, ...]) -> None:
    assert host_domains(host, 80) == domains


def test_only_the_main_port_is_meant_by_a_bare_name() -> None:
    _, main = wish("web.shop")
    further = claims_of("web:81", name("web.shop"), called(81, main=False), (), "", "mesh.internal")
    assert {"web", "web:80", "web.shop", "web.shop.svc.cluster.local"} <= {claim.domain for claim in main}  # type: ignore[attr-defined]
    assert [claim.domain for claim in further] == [
        "web:81",
        "web.shop:81",
        "web.shop.svc:81",
        "web.shop.svc.mesh.internal:81",
    ]


def test_a_domain_is_claimed_once_even_when_written_twice() -> None:
    _, wanted = wish("web", "web", "Store.example", "store.example")
    domains = [claim.domain for claim in wanted]  # type: ignore[attr-defined]
    assert len(domains) == len(set(domains))


def test_an_own_name_wins_over_an_extra_host() -> None:
    for order in (1, -1):
        found = claims(*[wish("a", "b", source="1.yaml"), wish("b", source="2.yaml")][::order])
        assert holder(found, "b", "default", ("a", "b")) == "b"


def test_then_the_viewers_namespace_then_the_path() -> None:
    found = claims(
        wish("a", "store", source="1.yaml"),
        wish("b", "store", source="2.yaml"),
        wish("c.shop", "store", source="3.yaml"),
    )
    hosts = ("a", "b", "c.shop")
    assert holder(found, "store", "default", hosts) == "a"
    assert holder(found, "store", "shop", hosts) == "c.shop"
    assert holder(found, "store", "elsewhere", hosts) == "a"
    assert found.replace("a", ()) == {"a", "b", "c.shop"}
    assert holder(found, "store", "default", hosts) == "b"


def test_who_loses_what_to_whom_is_said() -> None:
    found = claims(wish("a", "b", source="1.yaml"), wish("b"))
    with_port, finding = sorted(found.findings())
    assert (finding.service, finding.code) == (name("a"), Code.DOMAIN_CONFLICT)
    assert finding.reason == "a.default (1.yaml) and b.default both claim b; the latter has it"
    assert "b:80" in with_port.reason
    found.replace("a", ())
    assert list(found.findings()) == []


def test_a_short_name_is_no_rival_in_other_namespaces() -> None:
    found = claims(wish("web"), wish("web.shop"))
    assert "web" in found.domains("web", "default")
    assert "web" not in found.domains("web", "shop")
    assert "web" in found.domains("web.shop", "shop")
    assert "web" not in found.domains("web.shop", "default")
    assert list(found.findings()) == []
