"""Assignments for gRPC clients, where they have to differ from Envoys'."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from envoy_api import encode, message, message_class
from mesh.service import Endpoint, Health
from xds.translate.endpoints import assignment

_ORDER: Final = ((Health.HEALTHY,), (Health.DEGRADED,), (Health.DRAINING, Health.UNHEALTHY))
"""Who is used only when nobody of those before is left."""

_ASSIGNMENT: Final = "envoy.config.endpoint.v3.ClusterLoadAssignment"


def call_assignment(cluster: str, endpoints: Sequence[Endpoint]) -> bytes | None:
    """The encoded ClusterLoadAssignment; None where it is the one that Envoys have.

    gRPC leaves out every endpoint that is not healthy (gRFC A27), even when all are like that. So what is the last
    resort comes as healthy, but of a lower priority. Priorities must have no gaps.
    """
    if all(endpoint.health is Health.HEALTHY for endpoint in endpoints):
        return None
    found = message(_ASSIGNMENT, cluster_name=cluster)
    tiers = [[each for each in endpoints if each.health in healths] for healths in _ORDER]
    for priority, tier in enumerate(filter(None, tiers)):
        healthy = (replace(endpoint, health=Health.HEALTHY) for endpoint in tier)
        for group in message_class(_ASSIGNMENT).FromString(assignment(cluster, healthy)).endpoints:
            group.priority = priority
            found.endpoints.append(group)
    return encode(found)
