"""Filter configurations by name: what a client uses is not taken from it, and what there is not is answered."""

from typing import Any

from line import Line, world

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot
from xds.streams.stream import DELTA

ECDS = types.EXTENSION_CONFIG


def config(name: str, content: int = 0) -> Resource:
    return Resource(ECDS, name, f"{name} {content}".encode())


class Filters(Line):
    def __init__(self, *configs: Resource) -> None:
        super().__init__(DELTA, world())
        self.show(*configs)

    def show(self, *configs: Resource) -> None:
        self.view = Snapshot({ECDS: (ResourceSet.of(configs),)})
        self.stream.published(self.now)

    def hear_all(self, response: Any) -> tuple[list[str], list[str]]:
        self.ack(response)
        assert self.hear() is None
        return self.names(response), list(response.removed_resources)


def test_a_configuration_that_is_gone_stays_with_who_has_it() -> None:
    line = Filters(config("a"), config("b"))
    line.ask(ECDS, ["a"])
    assert line.hear_all(line.hear()) == (["a"], [])
    line.show(config("b"))
    assert line.hear() is None
    line.show(config("a", 2), config("b"))
    assert line.hear_all(line.hear()) == (["a"], [])


def test_a_configuration_that_was_brought_along_stays() -> None:
    line = Filters(config("b"))
    line.ask(ECDS, ["a", "b"], initial_resource_versions={"a": "old", "b": config("b").version})
    assert line.hear() is None


def test_a_configuration_that_there_is_not_is_answered_as_removed() -> None:
    line = Filters()
    line.ask(ECDS, ["a"])
    assert line.hear_all(line.hear()) == ([], ["a"])
    line.show(config("a"))
    assert line.hear_all(line.hear()) == (["a"], [])
    line.say(ECDS, resource_names_unsubscribe=["a"])
    line.show()
    line.ask(ECDS, ["a"])
    assert line.hear_all(line.hear()) == ([], ["a"])
