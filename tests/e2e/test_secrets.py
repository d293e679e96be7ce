"""Certificates from resource files, handed to real Envoys, rotated, and missed."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import raw
from tests.e2e.harness.load import Connection
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.raw import fetch
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

TLS = Path(__file__).parent / "tls"
"""server.pem is of secure.internal, rotated.pem of rotated.internal."""


@pytest.fixture
def alone(tmp_path: Path) -> Site:
    """A control plane that knows nothing but resource files."""
    return Site(tmp_path, sources=("resources",))


def secret(certificate: str) -> dict[str, Any]:
    """The secret `certificate`: one of the pairs in TLS, sent by the control plane."""
    pair = {"certificate_chain": f"{certificate}.pem", "private_key": f"{certificate}.key"}
    return {
        "@type": f"{raw.TYPE}envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": "certificate",
        "tls_certificate": {field: {"inline_string": (TLS / file).read_text()} for field, file in pair.items()},
    }


def by_sds(name: str) -> dict[str, Any]:
    return {"tls_certificate_sds_secret_configs": [{"name": name, "sds_config": raw.ADS}]}


def anything() -> ssl.SSLContext:
    """A client that looks at no certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def presented(port: int) -> str:
    """The certificate of a new connection: the file that it is of."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=anything())
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return next(p.name for p in TLS.glob("*.pem") if ssl.PEM_cert_to_DER_cert(p.read_text()) == shown)


async def test_a_listeners_certificate_is_rotated(alone: Site, envoy_binary: Path, variant: str) -> None:
    """New connections get the new one, and those that there are live on."""
    port = free_port()
    listener = raw.listener(
        "web", port, raw.inline(raw.answer("web")), tls={"common_tls_context": by_sds("certificate")}
    )
    alone.raw("web", listener)
    alone.raw("certificate", secret("server"))
    async with alone.running(), alone.envoy(envoy_binary, variant) as envoy:
        await envoy.live(within=10)
        assert await presented(port) == "server.pem"
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=anything())
        old = Connection(reader, writer)
        assert (await old.get("web"))[0] == 200

        alone.raw("certificate", secret("rotated"))

        async def rotated() -> bool:
            return await presented(port) == "rotated.pem"

        await until(rotated, "the new certificate")
        assert (await old.get("web"))[0] == 200
        assert not old.closing

        (alone.resources / "certificate.yaml").unlink()
        await alone.in_sync()
        assert (await old.get("web"))[0] == 200
        assert await presented(port) == "rotated.pem", "a certificate that is in use is not taken away"
        old.close()


async def test_a_certificate_shown_to_a_service_is_rotated(alone: Site, envoy_binary: Path, variant: str) -> None:
    """The service takes nobody's but one client's, and then nobody's but another's."""
    port = free_port()
    upstream_tls = f"{raw.TYPE}envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    async with AsyncExitStack() as running:
        contexts = {name: _only(name) for name in ("server", "rotated")}
        ups = {name: await running.enter_async_context(Upstream(name, tls=tls)) for name, tls in contexts.items()}
        typed = {"@type": upstream_tls, "common_tls_context": by_sds("certificate")}
        clusters = [raw.cluster(name, transport_socket={"name": "tls", "typed_config": typed}) for name in ups]
        assignments = [raw.assignment(name, up.port) for name, up in ups.items()]
        routes = [raw.to(name, f"/{name}") for name in ups]
        alone.raw("web", *clusters, *assignments, raw.listener("web", port), raw.table("web", *routes))
        alone.raw("certificate", secret("server"))
        await running.enter_async_context(alone.running())
        envoy = await running.enter_async_context(alone.envoy(envoy_binary, variant))
        await envoy.live(within=10)
        assert (await fetch(port, path="/server"))[0] == 200
        assert (await fetch(port, path="/rotated"))[0] == 503

        alone.raw("certificate", secret("rotated"))

        async def taken() -> bool:
            return (await fetch(port, path="/rotated"))[0] == 200

        await until(taken, "the service to take the new certificate")


def _only(certificate: str) -> ssl.SSLContext:
    """A server that takes clients with this certificate alone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    context.load_verify_locations(TLS / ("rotated.pem" if certificate == "rotated" else "ca.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    return context


async def test_a_secret_that_is_not_there_holds_only_what_needs_it(
    tmp_path: Path, envoy_binary: Path, variant: str
) -> None:
    """An incremental Envoy is told that there is none. In the state of the world nothing can say so, and Envoy
    withholds the ACK of all clusters for 15 s: what needs none of the new ones does not wait for it."""
    site = Site(tmp_path, sources=("resources",), flags=("--rollout-patience", "200ms"))
    port = free_port()
    typed = {
        "@type": f"{raw.TYPE}envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": by_sds("certificate"),
    }
    needy = raw.cluster("needy", transport_socket={"name": "tls", "typed_config": typed})
    async with AsyncExitStack() as running:
        plain = await running.enter_async_context(Upstream("plain"))
        secure = await running.enter_async_context(Upstream("needy", tls=_only("rotated")))

        def write(edit: int, *more: dict[str, Any], routes: tuple[dict[str, Any], ...] = ()) -> None:
            own = f"plain-{edit}" if variant == "delta" else "plain"
            rest = raw.host("web/rest", "*", routes=[raw.answer(f"rest {edit}", "/edit"), raw.to(own)])
            hosts = [{key: value for key, value in rest.items() if key != "@type"}]
            if routes:
                hosts.append({"name": "web/needy", "domains": ["needy"], "routes": list(routes)})
            table = raw.table("web", virtual_hosts=hosts)
            parts = (raw.cluster(own), raw.assignment(own, plain.port), raw.listener("web", port), table)
            site.raw("web", *parts, *more)

        async def in_force(edit: int) -> None:
            async def as_said() -> bool:
                rest = await fetch(port, path="/edit") == (200, f"rest {edit}")
                return rest and (await fetch(port, "anything"))[0] == 200

            await until(as_said, f"edit {edit}", within=10)

        write(1)
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live(within=10)
        await in_force(1)
        more = (needy, raw.assignment("needy", secure.port))
        for edit in (2, 3):
            write(edit, *more, routes=(raw.to("needy"),))
            await in_force(edit)

        site.raw("certificate", secret("rotated"))

        async def served() -> bool:
            return (await fetch(port, "needy"))[0] == 200 and secure.requests > 0

        await until(served, "the cluster with its secret")
