"""Callers: nodes whose routing is written for them alone, as Nelson's Lighthouse does for each stack."""

from dataclasses import dataclass

from mesh.service import Protocol
from mesh.split import Split


@dataclass(frozen=True, slots=True)
class CallerHost:
    """One dependency of a caller: the name it calls, and where its requests really go.

    `namespace` is Nelson's, with `/` between levels ("dev", "dev/a"). `port_name` is "default" for the port that the
    bare name means. `split` is over services of their own (ServiceRef) only.
    """

    service: str
    namespace: str
    port_name: str
    port: int
    protocol: Protocol
    split: Split


@dataclass(frozen=True, slots=True)
class Frontend:
    """A load balancer's listener: all that arrives at 0.0.0.0:`port` goes to `split` (over ServiceRef only)."""

    name: str
    port: int
    protocol: Protocol
    split: Split


@dataclass(frozen=True, slots=True)
class Caller:
    """What nodes whose `node.cluster` is `cluster` see, and nothing else.

    `namespace` is the one whose services bare names mean (Nelson's defaultNamespace), `domain` the suffix under which
    the services are known in DNS ("" has none). `source` says where it was read, for explanations only.
    """

    cluster: str
    namespace: str
    domain: str
    hosts: tuple[CallerHost, ...] = ()
    frontends: tuple[Frontend, ...] = ()
    source: str = ""
