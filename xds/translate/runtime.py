"""The runtime layer that every bootstrap asks for."""

from envoy_api import encode, message
from xds.resources import types
from xds.resources.resource import Resource

RUNTIME_LAYER = "swashplate"


def runtime_layer() -> Resource:
    """An empty layer. It is always there: an Envoy does not start before its runtime layers have been answered."""
    layer = message("envoy.service.runtime.v3.Runtime", name=RUNTIME_LAYER, layer={})
    return Resource(types.RUNTIME, RUNTIME_LAYER, encode(layer))
