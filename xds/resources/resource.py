"""One resource as bytes: encoded once per content, shared by every stream that sends it."""

from collections.abc import Iterable
from hashlib import blake2b

NOTHING: frozenset[str] = frozenset()


def content_hash(data: bytes) -> int:
    """64 bits of a cryptographic hash: an operator's labels can't be made to collide by accident."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def checksum_text(*checksums: int) -> str:
    """The commutative sum of content hashes as a version string."""
    return f"{sum(checksums) & ((1 << 64) - 1):016x}"


class Resource:
    """An encoded resource. Immutable; equal when type, name and version are.

    `body` is the message's deterministic encoding (the value of the Any), `version` its content hash, so equal
    content has the same version on every replica. `references` names the clusters that must be warm before an
    Envoy may be given it (for routes, virtual hosts and listeners). `ttl`: seconds for which a client may use it
    without hearing of it again; another ttl is another version, so that clients are told.
    """

    __slots__ = ("_body", "_hash", "claims", "name", "references", "ttl", "type_url", "version")

    def __init__(
        self,
        type_url: str,
        name: str,
        body: bytes,
        references: frozenset[str] = NOTHING,
        version: str = "",
        claims: frozenset[str] = NOTHING,
        ttl: float | None = None,
    ) -> None:
        self.type_url = type_url
        self.name = name
        self._body = body
        self.references = references
        self.claims = claims
        self.ttl = ttl
        version = version or blake2b(body, digest_size=8).hexdigest()
        self.version = version if ttl is None else f"{content_hash(f'{version} {ttl!r}'.encode()):016x}"
        self._hash = hash((type_url, name, self.version))

    @property
    def body(self) -> bytes:
        return self._body

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Resource)
            and self.version == other.version
            and self.name == other.name
            and self.type_url == other.type_url
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{self.type_url.rpartition('.')[2]} {self.name} {self.version}>"

    @property
    def checksum(self) -> int:
        """64 bits of (name, version): what sets of resources add up, so that order does not matter."""
        return content_hash(f"{self.name}\0{self.version}".encode())


class RouteTable(Resource):
    """A RouteConfiguration made of virtual hosts that are resources of their own.

    One virtual host's edit then encodes that host alone: the table is `head` (a RouteConfiguration without
    virtual hosts) followed by the hosts' own bytes as its field 2, joined when somebody asks for it. `hosts` are
    in table order. Without a `version` it is the sum of its parts' checksums, so that a replica that
    got there by other edits has the same.
    """

    __slots__ = ("_by_name", "_joined", "head", "hosts")

    def __init__(
        self,
        type_url: str,
        name: str,
        head: bytes,
        hosts: Iterable[Resource],
        version: str = "",
        ttl: float | None = None,
    ) -> None:
        self.hosts = tuple(hosts)
        self.head = head
        self._joined: bytes | None = None
        self._by_name: dict[str, Resource] | None = None
        references = NOTHING.union(*(host.references for host in self.hosts))
        if not version:
            version = checksum_text(content_hash(head), *(host.checksum for host in self.hosts))
        super().__init__(type_url, name, b"", references, version, ttl=ttl)

    @property
    def body(self) -> bytes:
        if self._joined is None:
            pieces = [self.head]
            for host in self.hosts:
                pieces += (b"\x12", varint(len(host.body)), host.body)
            self._joined = b"".join(pieces)
        return self._joined

    def host(self, name: str) -> Resource | None:
        """The virtual host of that name."""
        if self._by_name is None:
            self._by_name = {host.name: host for host in self.hosts}
        return self._by_name.get(name)


def varint(value: int) -> bytes:
    """A non-negative integer in protobuf's base-128 encoding."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
