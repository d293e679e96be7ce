"""What an operator decides for all of translation."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Address = tuple[str, int]
"""An IP address and a port."""

FleetLocality = Literal["none", "zone_aware", "failover"]
"""Which zone's endpoints are used where a route file does not say."""


@dataclass(frozen=True, slots=True)
class RateLimiting:
    """Where Envoys ask whether a request is within its limits: at `address`, else at the cluster of their bootstraps
    that is called `cluster`. Exactly one of the two is set.

    After `timeout`, and after any other failure, a request passes, or with `failure_mode_deny` it gets 500.
    `headers`: answers tell the limit that is nearest to its end (x-ratelimit-limit, -remaining, -reset).
    """

    address: Address | None = None
    cluster: str = ""
    timeout: timedelta = timedelta(milliseconds=20)
    failure_mode_deny: bool = False
    headers: bool = True


@dataclass(frozen=True, slots=True)
class TranslationSettings:
    """`namespace` is that of services, routes and nodes that name none.

    `egress` is where every Envoy takes its applications' outgoing HTTP requests. `ingress`, when set, is where a node
    that names its own service takes that service's requests, for 127.0.0.1 at the service's port. `system_roots` is
    the file, on the Envoys' machines, of the authorities they trust where a policy names none: Envoy itself has no
    notion of the system's roots, and verifies nothing without a file. `vhds`: Envoys that speak incremental ADS get
    their virtual hosts one by one. `failures_to` is the cluster, in every Envoy's bootstrap, that takes access logs
    of requests that failed. `cluster_template` is JSON of a Cluster that all generated ones are like, but for what
    their route files say. `locality` is of clusters whose route file says nothing of zones, unless the template says
    how to balance. Without `rate_limiting`, limits of rules are not in force.
    """

    namespace: str = "default"
    cluster_domain: str = "cluster.local"
    egress: Address = ("127.0.0.1", 10000)
    ingress: Address | None = None
    system_roots: str = "/etc/ssl/certs/ca-certificates.crt"
    vhds: bool = False
    failures_to: str | None = None
    cluster_template: str = ""
    locality: FleetLocality = "none"
    rate_limiting: RateLimiting | None = None
