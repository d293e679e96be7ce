"""Scopes in the state of the world: what Envoy does with them beyond what the specification says."""

from line import Line, world

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot
from xds.streams.stream import SOTW

RDS, SRDS = types.ROUTE, types.SCOPED_ROUTE


class Scopes(Line):
    """Scopes, and one table `table`."""

    def __init__(self, *scopes: str) -> None:
        super().__init__(SOTW, world())
        self.show(*scopes)

    def show(self, *scopes: str) -> None:
        made = [Resource(SRDS, scope, scope.encode()) for scope in scopes]
        tables = [Resource(RDS, "table", b"table")]
        self.view = Snapshot({SRDS: (ResourceSet.of(made),), RDS: (ResourceSet.of(tables),)})
        self.stream.published(self.now)

    def take(self, names: str = "") -> tuple[str, int]:
        response = self.hear()
        self.ack(response, names.split())
        return response.type_url, len(response.resources)


def test_an_answer_has_every_scope_since_envoy_deletes_those_it_lacks() -> None:
    line = Scopes("a", "b")
    line.ask(SRDS)
    assert line.take() == (SRDS, 2)
    line.show("a", "b", "c")
    assert line.take() == (SRDS, 3)
    line.show("c")
    assert line.take() == (SRDS, 1)
    line.show()
    assert line.take() == (SRDS, 0)
    assert line.hear() is None


def test_a_table_that_another_scope_takes_is_asked_for_again_and_answered_once() -> None:
    line = Scopes("a")
    line.ask(SRDS)
    assert line.take() == (SRDS, 1)
    line.ask(RDS, ["table"])
    response = line.hear()
    line.ack(response, ["table"])
    line.ack(response, ["table"])
    assert line.hear() is None
    line.show("b")
    assert line.take() == (SRDS, 1)
    line.ack(response, ["table"])
    assert line.take("table") == (RDS, 1)
    line.ack(response, ["table"])
    assert line.hear() is None
