"""Virtual hosts follow the tables that an Envoy fetched: it asks once, and then waits for those of every table."""

from typing import Any

from line import Line, world

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot
from xds.streams.stream import DELTA

RDS, VHDS = types.ROUTE, types.VIRTUAL_HOST


class Tables(Line):
    """Tables without virtual hosts of their own, and hosts `table/name`."""

    def __init__(self, tables: str, *hosts: str) -> None:
        super().__init__(DELTA, world())
        self.show(tables, *hosts)

    def show(self, tables: str, *hosts: str, edit: str = "") -> None:
        routes = [Resource(RDS, table, f"{table}{edit}".encode()) for table in tables.split()]
        apart = [Resource(VHDS, host, host.encode(), claims=frozenset({host})) for host in hosts]
        self.view = Snapshot({RDS: (ResourceSet.of(routes),), VHDS: (ResourceSet.of(apart),)})
        self.stream.published(self.now)

    def take(self, type_url: str) -> tuple[list[str], list[str]]:
        """The next response, which must be of this type: names in it and names removed."""
        response: Any = self.hear()
        assert response.type_url == type_url
        self.ack(response)
        return sorted(self.names(response)), list(response.removed_resources)


def test_those_of_a_table_that_comes_later_come_again_right_behind_it() -> None:
    line = Tables("one two", "one/a", "two/a", "two/b")
    line.ask(RDS, ["one"])
    assert line.take(RDS) == (["one"], [])
    line.ask(VHDS)
    assert line.take(VHDS) == (["one/a", "two/a", "two/b"], [])
    line.ask(RDS, ["two"])
    assert line.take(RDS) == (["two"], [])
    assert line.take(VHDS) == (["two/a", "two/b"], [])
    assert line.hear() is None


def test_of_a_table_without_any_one_that_it_never_had_is_gone() -> None:
    """An answer that says nothing does not end the waiting."""
    line = Tables("one two")
    line.ask(RDS, ["one"])
    line.take(RDS)
    line.ask(VHDS)
    assert line.take(VHDS) == ([], ["one/"])
    line.ask(RDS, ["two"])
    line.take(RDS)
    assert line.take(VHDS) == ([], ["two/"])
    line.show("one two", "two/a")
    assert line.take(VHDS) == (["two/a"], [])
    assert line.hear() is None


def test_an_edit_of_a_table_sends_none_of_its_hosts_again() -> None:
    line = Tables("one", "one/a")
    line.ask(RDS, ["one"])
    line.take(RDS)
    line.ask(VHDS)
    line.take(VHDS)
    line.show("one", "one/a", edit="edit")
    assert line.take(RDS) == (["one"], [])
    assert line.hear() is None


def test_a_client_that_comes_back_is_sent_no_host_that_it_has() -> None:
    line = Tables("one", "one/a")
    versions = {host.name: host.version for host in line.view.all(VHDS)}
    line.ask(RDS, ["one"], initial_resource_versions={table.name: table.version for table in line.view.all(RDS)})
    line.ask(VHDS, initial_resource_versions=versions)
    response = line.hear()
    assert (line.names(response), list(response.removed_resources)) == ([], [])
    line.ack(response)
    assert line.hear() is None
