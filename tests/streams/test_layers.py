"""A runtime layer that does not exist is answered at once: an Envoy that is to have it waits for it at its start."""

from line import VARIANTS, Line, world

import envoy_api
from xds.resources import types
from xds.streams.stream import SOTW, Variant

RTDS = types.RUNTIME


@VARIANTS
def test_a_layer_that_does_not_exist(variant: Variant) -> None:
    line = Line(variant, world("a"))
    line.ask(RTDS, ["swashplate"])
    answer = line.hear()
    assert answer is not None
    if variant is SOTW:
        (layer,) = (envoy_api.unpack(resource) for resource in answer.resources)
        assert (layer.name, len(layer.layer.fields)) == ("swashplate", 0)
    else:
        assert list(answer.removed_resources) == ["swashplate"]
    line.ack(answer, ["swashplate"])
    assert line.hear() is None
