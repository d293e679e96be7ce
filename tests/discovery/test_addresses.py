"""Addresses: canonical IP addresses and DNS names; nothing that Envoy would refuse a whole response for."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from discovery.address import Address, parse_address, parse_host, parse_ip


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", Address("10.0.0.1")),
        ("10.0.0.1:8080", Address("10.0.0.1", 8080)),
        ("::1", Address("::1")),
        ("2001:DB8:0:0::1", Address("2001:db8::1")),
        ("[2001:db8::1]", Address("2001:db8::1")),
        ("[2001:db8::1]:80", Address("2001:db8::1", 80)),
        ("db", Address("db")),
        ("DB.Internal:5432", Address("db.internal", 5432)),
        ("db.internal.", Address("db.internal.")),
        ("_srv.my_db-1.internal", Address("_srv.my_db-1.internal")),
        ("1.example", Address("1.example")),
        (" 10.0.0.1 ", Address("10.0.0.1")),
        ("::ffff:10.0.0.1", Address("10.0.0.1")),
        ("[::ffff:a00:1]:80", Address("10.0.0.1", 80)),
    ],
)
def test_what_is_an_address(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", ":80", "10.0.0.256", "10.0.0", "10.0.0.01", "1", "0x7f000001", "host.1", "10.0.0.1:", "10.0.0.1:x",
        "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:²", "[10.0.0.1]:80", "[::1", "[::1]80", "[::1]:",
        "::1::80", "a b", "a..b", ".a", "-a", "a-", "ü.example", "http://a", "a/b", "x" * 64, "a." * 127 + "a",
        "0.0.0.0", "::", "224.0.0.1", "ff02::1", "fe80::1%eth0", "::ffff:0.0.0.0", "::ffff:10.0.0.1%1",
        80, None, ["10.0.0.1"], True,
    ],
)  # fmt: skip
def test_what_is_none(text: object) -> None:
    with pytest.raises(PydanticCustomError):
        parse_address(text)


def test_a_host_has_no_port_and_an_ip_is_no_name() -> None:
    assert parse_host("Db.internal") == "db.internal"
    assert parse_ip("::0001") == "::1"
    for text in ("10.0.0.1:80", "[::1]"):
        with pytest.raises(PydanticCustomError):
            parse_host(text)
    with pytest.raises(PydanticCustomError):
        parse_ip("db.internal")


@given(st.ip_addresses(), st.integers(1, 65535))
def test_every_usable_ip_address_is_taken_in_its_canonical_form(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> None:
    text = f"[{ip.exploded}]:{port}" if ip.version == 6 else f"{ip}:{port}"
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_multicast or ip.is_unspecified:
        with pytest.raises(PydanticCustomError):
            parse_address(text)
    else:
        assert parse_address(text) == Address(str(ip), port)


@given(st.text(max_size=300))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        host, port = parse_address(text)
    except PydanticCustomError:
        return
    assert parse_address(host) == Address(host), "canonical: reads back as itself"
    assert port is None or 1 <= port <= 65535
