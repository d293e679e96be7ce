"""What Envoy would refuse a resource for, though it is a message of its type, as far as it harms others.

Envoy names no culprit for a bad virtual host or assignment, and refuses whatever came with it. What only harms the
resource itself is left to Envoy.
"""

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple

import re2

from envoy_api import EnvoyMessage
from operator_files.problem import Code
from xds.raw import codes
from xds.resources import types
from xds.resources.references import parts_of

Path = tuple[str | int, ...]

_WITHOUT_REGEX: Final = frozenset({types.ENDPOINT, types.RUNTIME})


class Flaw(NamedTuple):
    """One thing wrong with a resource, at a path of it."""

    code: Code
    path: Path
    message: str
    fix: str = ""


def flaws(type_url: str, message: EnvoyMessage) -> Iterator[Flaw]:
    """Everything that is wrong with a well-formed resource."""
    if (check := _CHECKS.get(type_url)) is not None:
        yield from check(message)
    if type_url in _WITHOUT_REGEX:
        return
    for part in parts_of(message):
        if part.DESCRIPTOR.full_name == "envoy.type.matcher.v3.RegexMatcher" and (why := _regex_fault(part.regex)):
            yield Flaw(codes.REGEX, (), f"the regex `{part.regex}` is not valid: {why}")


def _regex_fault(regex: str) -> str:
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(regex, options)
    except re2.error as error:
        said = error.args[0]
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return ""


def _virtual_host(host: EnvoyMessage) -> Iterator[Flaw]:
    table, slash, own = host.name.rpartition("/")
    if not (table and slash and own):
        yield Flaw(
            codes.TABLE,
            ("name",),
            f"`{host.name}` does not say which table the virtual host belongs to",
            f"write the table's name before it, such as `egress/{host.name}`",
        )
    yield from _domains(host, ())


def _domains(host: EnvoyMessage, path: Path) -> Iterator[Flaw]:
    if not host.domains:
        yield Flaw(codes.DOMAIN, (*path, "domains"), "a virtual host needs a domain", 'write `domains: ["..."]`')
    seen: set[str] = set()
    for index, domain in enumerate(map(str.lower, host.domains)):
        if domain in seen:
            yield Flaw(codes.DOMAIN, (*path, "domains", index), f"`{domain}` comes twice (case does not matter)")
        seen.add(domain)


def _table(table: EnvoyMessage) -> Iterator[Flaw]:
    names: set[str] = set()
    owners: dict[str, str] = {}
    for index, host in enumerate(table.virtual_hosts):
        here = ("virtual_hosts", index)
        if not host.name:
            yield Flaw(codes.NAME, here, "a virtual host needs a name", "write `name: ...`")
        elif host.name in names:
            yield Flaw(codes.DUPLICATE, (*here, "name"), f"the table already has a virtual host `{host.name}`")
        names.add(host.name)
        yield from _domains(host, here)
        for at, domain in enumerate(map(str.lower, host.domains)):
            if (owner := owners.setdefault(domain, host.name)) != host.name:
                yield Flaw(codes.DOMAIN, (*here, "domains", at), f"virtual host `{owner}` already has `{domain}`")


def _assignment(assignment: EnvoyMessage) -> Iterator[Flaw]:
    for group, locality in enumerate(assignment.endpoints):
        for index, member in enumerate(locality.lb_endpoints):
            address = member.endpoint.address.socket_address
            if address.address and not address.resolver_name and not _is_ip(address.address):
                at = ("endpoints", group, "lb_endpoints", index, "endpoint", "address", "socket_address", "address")
                yield Flaw(
                    codes.ADDRESS,
                    at,
                    f"`{address.address}` is a name, and an assignment that comes by EDS holds IP addresses",
                    "write it into the `load_assignment` of a cluster of type STRICT_DNS",
                )


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_CHECKS: dict[str, Callable[[EnvoyMessage], Iterator[Flaw]]] = {
    types.VIRTUAL_HOST: _virtual_host,
    types.ROUTE: _table,
    types.ENDPOINT: _assignment,
}
