"""An operator's template for generated clusters: what all of them are like where nobody says otherwise."""

import json
from functools import lru_cache
from typing import Final

from envoy_api import EnvoyMessage, parse

_OWN: Final = ("name", "alt_stat_name", "type", "cluster_type", "eds_cluster_config", "load_assignment")
"""What makes a cluster this one and no other."""
_BALANCING: Final = ("lb_policy", "load_balancing_policy", "common_lb_config")
_BY_PROTOCOL: Final = "typed_extension_protocol_options"


def from_template(made: EnvoyMessage, plain: EnvoyMessage, template: str) -> EnvoyMessage:
    """The cluster `made` of a service, but with the fields of the template (JSON of a Cluster), each as a whole.

    `plain` is the same cluster without any policy. A field in which `made` differs from it is what an operator asked
    for, and stays; so does what says which cluster it is and what its endpoints speak.

    Raises ValueError for a template that is no Cluster.
    """
    merged = type(made)()
    merged.CopyFrom(made)
    wanted = type(made)()
    wanted.CopyFrom(_parsed(template))
    for field, _ in wanted.ListFields():
        if field.name in _OWN or getattr(made, field.name) != getattr(plain, field.name):
            wanted.ClearField(field.name)
        elif field.name != _BY_PROTOCOL:
            merged.ClearField(field.name)
    merged.MergeFrom(wanted)
    for name, options in made.typed_extension_protocol_options.items():
        merged.typed_extension_protocol_options[name].CopyFrom(options)
    return merged


@lru_cache(maxsize=4)
def balances(template: str) -> bool:
    """Whether the template says how to balance. Raises ValueError for a template that is no Cluster."""
    return any(field.name in _BALANCING for field, _ in _parsed(template).ListFields())


@lru_cache(maxsize=4)
def _parsed(template: str) -> EnvoyMessage:
    return parse("envoy.config.cluster.v3.Cluster", json.loads(template))
