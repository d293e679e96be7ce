"""What the token may read. An answer that lacks something proves nothing until this is known.

To the anonymous token Consul answers 200 and an empty list, without a sign, for whatever it may not read; and to any
token an agent with streaming does the same when the token's rights shrink while a query waits (seen with 1.14). What
the token may do, /v1/internal/acl/authorize says, to the anonymous token too; the UI asks it for the same reason.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from discovery.consul.client import Answer, UnreachableError
from discovery.consul.objects import MisreadError, allowed_in
from discovery.consul.question import Asks

_PATH: Final = "/v1/internal/acl/authorize"
_ACLS_OFF: Final = 401
_NO_SUCH_PATH: Final = 404


class Rights(NamedTuple):
    """What may not be read. `known`: Consul said so, or has no ACLs at all."""

    known: bool
    services: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    why: str = ""

    @property
    def denied(self) -> bool:
        return bool(self.services or self.nodes)


ANY: Final = ""
"""The name of a service or a node, where it is not known, for a right to all of them."""
EVERYTHING: Final = Rights(known=True)


class Permissions:
    """In one datacenter. Whether ACLs are on at all is asked once, until `forget`."""

    def __init__(self, client: Asks, params: Mapping[str, str]) -> None:
        self._client, self._params = client, params
        self._off = False

    def forget(self) -> None:
        """The agent was away, and may be another one now."""
        self._off = False

    async def to_read(self, services: Collection[str], nodes: Collection[str] = ()) -> Rights:
        """Whether the token may read these services, and these nodes, without which none of their instances shows."""
        if self._off:
            return EVERYTHING
        wanted = [{"Resource": "service", "Access": "read", "Segment": name} for name in sorted(services)]
        wanted += [{"Resource": "node", "Access": "read", "Segment": name} for name in sorted(nodes)]
        try:
            answer = await self._client.post(_PATH, msgspec.json.encode(wanted), self._params)
            return self._rights(answer)
        except (UnreachableError, MisreadError) as error:
            return Rights(known=False, why=str(error))

    def _rights(self, answer: Answer) -> Rights:
        if answer.status == _ACLS_OFF or (answer.status == _NO_SUCH_PATH and not answer.filtered):
            self._off = answer.status == _ACLS_OFF
            return EVERYTHING
        if reason := answer.refusal():
            return Rights(known=False, why=reason)
        refused = [one for one in allowed_in(answer.body) if not one.allow]
        services = frozenset(one.segment for one in refused if one.resource == "service")
        nodes = frozenset(one.segment for one in refused if one.resource == "node")
        return Rights(True, services, nodes, _why(services, nodes))


def _why(services: frozenset[str], nodes: frozenset[str]) -> str:
    lacking = [(kind, min(names)) for kind, names in (("service", services), ("node", nodes)) if names]
    what = " and ".join(f"the {kind} `{name}`" if name else f"all {kind}s" for kind, name in lacking)
    rights = " and ".join(f'`{kind}_prefix "" read`' for kind, _ in lacking)
    return f"the token may not read {what}; give it {rights}" if lacking else ""
