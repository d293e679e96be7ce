"""What one edit sends, with the resources that translation really makes of a thousand services."""

from typing import Any

import pytest

import envoy_api
from mesh.mesh import Mesh
from tests.translate.meshes import endpoint, name, routes, rule, service, to_service
from xds.resources import types
from xds.streams.shared import Shared
from xds.streams.stream import DELTA, SOTW, Server, Stream, Variant
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

SERVICES = [f"service-{number}" for number in range(1000)]
ASKED = (types.CLUSTER, types.LISTENER, types.ROUTE, types.VIRTUAL_HOST)
ENVOY = {
    "id": "envoy-1",
    "user_agent_name": "envoy",
    "user_agent_build_version": {"version": {"major_number": 1, "minor_number": 40}},
}


class Edited:
    """A composer of a thousand services, and one Envoy that has them."""

    def __init__(self, variant: Variant, *, vhds: bool = True) -> None:
        self.composer = Composer(TranslationSettings(vhds=vhds))
        self.mesh = Mesh().with_changes(
            {name(text): service(text, endpoint("10.0.0.1")) for text in SERVICES},
            {name(text): routes(text, rule(to_service(text))) for text in SERVICES},
        )
        self.composer.update(self.mesh)
        kind = "Discovery" if variant is SOTW else "DeltaDiscovery"
        self._request = f"envoy.service.discovery.v3.{kind}Request"
        self._response = envoy_api.message_class(f"envoy.service.discovery.v3.{kind}Response")
        self.stream = Stream(Server(self.composer.view, Shared("test")), variant, None, "peer", 0.0)
        self._names = {types.ROUTE: ["egress"]} if variant is SOTW else {}
        for url in ASKED:
            if variant is SOTW and url == types.VIRTUAL_HOST:
                continue
            names = {} if variant is SOTW or url != types.ROUTE else {"resource_names_subscribe": ["egress"]}
            self._say(url, node=ENVOY, **names)
            self.taken()

    def _say(self, url: str, **fields: Any) -> None:
        if url in self._names:
            fields["resource_names"] = self._names[url]
        self.stream.receive(envoy_api.parse(self._request, {"type_url": url, **fields}).SerializeToString(), 0.0)

    def taken(self) -> list[Any]:
        """The responses that are due, all acknowledged."""
        found = []
        while (data := self.stream.next_frame(0.0)) is not None:
            found.append(self._response.FromString(data))
            self._say(found[-1].type_url, response_nonce=found[-1].nonce)
        return found

    def edit(self) -> list[Any]:
        """One service's rule gets another name."""
        edited = routes(SERVICES[7], rule(to_service(SERVICES[7]), called="edited"))
        self.mesh = self.mesh.with_changes({}, {name(SERVICES[7]): edited})
        self.composer.update(self.mesh)
        self.stream.published(0.0)
        return self.taken()


def test_one_virtual_host_of_a_thousand_is_less_than_a_kilobyte() -> None:
    (response,) = Edited(DELTA).edit()
    assert response.type_url == types.VIRTUAL_HOST
    (entry,) = response.resources
    assert SERVICES[7] in entry.name
    assert response.ByteSize() < 1024


@pytest.mark.parametrize(("variant", "vhds"), [(SOTW, True), (DELTA, False)])
def test_as_a_table_it_is_all_of_them(variant: Variant, vhds: bool) -> None:
    (response,) = Edited(variant, vhds=vhds).edit()
    assert response.type_url == types.ROUTE
    assert response.ByteSize() > 100 * 1024
