"""Addresses: what an operator may write, and what is refused before anything listens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swashplate.address import Address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:18000", Address("127.0.0.1", 18000)),
        ("[::1]:0", Address("::1", 0)),
        ("xds.example:65535", Address("xds.example", 65535)),
        (":18000", Address("0.0.0.0", 18000)),
        (" localhost:1 ", Address("localhost", 1)),
    ],
)
def test_is_read(text: str, expected: Address) -> None:
    assert Address.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "18000", "host", "host:", "host:http", "host:65536", "host:-1", "::1:80", "h:²"]
)
def test_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        Address.parse(text)


@given(
    st.one_of(st.ip_addresses().map(str), st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)),
    st.integers(0, 65535),
)
def test_text_and_back(host: str, port: int) -> None:
    assert Address.parse(str(Address(host, port))) == Address(host, port)


def test_every_address_is_reached_on_loopback() -> None:
    assert str(Address("0.0.0.0", 1).reachable) == "127.0.0.1:1"
    assert str(Address("::", 1).reachable) == "[::1]:1"
    assert str(Address("10.0.0.1", 1).reachable) == "10.0.0.1:1"
