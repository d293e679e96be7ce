"""RateLimitResponse in bytes, joined by hand: a tenth of the time that a message takes to be filled in and encoded.

Fields in the order of their numbers and no field that has its default, so the bytes are those that protobuf would
make; `tests/ratelimit/core/test_wire.py` holds them to it. Field numbers are those of
envoy/service/ratelimit/v3/rls.proto.
"""

from functools import lru_cache
from typing import Final

UINT32: Final = 2**32 - 1
OK, OVER_LIMIT, UNKNOWN = 1, 2, 0
"""RateLimitResponse.Code."""


def varint(number: int) -> bytes:
    """Of a number that is not negative."""
    if number < 0x80:
        return _ONE_BYTE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    if number < 0x10000000:
        return _TWO_BYTES[number & 0x3FFF] + varint(number >> 14)
    groups = []
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))
_TWO_BYTES: Final = tuple(bytes((number & 0x7F | 0x80, number >> 7 | 0x80)) for number in range(0x4000))
"""Of numbers that have more bytes."""


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field: a message, a string or bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def number_field(number: int, value: int) -> bytes:
    """An integer or an enum; nothing for 0, which is the default."""
    return varint(number << 3) + varint(value) if value else b""


def current_limit(requests: int, unit: int, name: str) -> bytes:
    """DescriptorStatus.current_limit, a RateLimit."""
    inner = number_field(1, min(requests, UINT32)) + number_field(2, unit)
    return field(2, inner + field(3, name.encode()) if name else inner)


def _remaining(left: int) -> bytes:
    return number_field(3, left)


def _until_reset(seconds: int) -> bytes:
    return field(4, number_field(1, seconds))


_REMAINING: Final = tuple(_remaining(left) for left in range(10_001))
_UNTIL_RESET: Final = tuple(_until_reset(seconds) for seconds in range(3_601))
_SHORT_STATUS: Final = tuple(b"\x12" + size for size in _ONE_BYTE)
_CODE: Final = tuple(number_field(1, code) for code in (UNKNOWN, OK, OVER_LIMIT))


def status(code: int, limit: bytes, remaining: int, reset_s: int) -> bytes:
    """RateLimitResponse.statuses, a DescriptorStatus of a limit whose counter is known."""
    left = _REMAINING[remaining] if remaining <= 10_000 else b"\x18" + varint(min(remaining, UINT32))
    reset = _UNTIL_RESET[reset_s] if reset_s <= 3_600 else _until_reset(reset_s)
    inner = _CODE[code] + limit + left + reset
    size = len(inner)
    return (_SHORT_STATUS[size] if size < 0x80 else b"\x12" + varint(size)) + inner


def bare_status(code: int, limit: bytes = b"", remaining: int = 0) -> bytes:
    """A DescriptorStatus where no counter was asked, or none could be."""
    return field(2, _CODE[code] + limit + _remaining(remaining))


OVERALL: Final = _CODE
"""RateLimitResponse.overall_code."""


def header(name: str, value: str) -> bytes:
    """RateLimitResponse.response_headers_to_add, a HeaderValue."""
    inner = _header_name(name)
    if value:
        data = value.encode()
        inner += b"\x12" + varint(len(data)) + data
    return b"\x1a" + varint(len(inner)) + inner


@lru_cache(maxsize=16)
def _header_name(name: str) -> bytes:
    return field(1, name.encode())


def dynamic_metadata(struct: bytes) -> bytes:
    """RateLimitResponse.dynamic_metadata. Said twice, their fields are merged."""
    return field(6, struct)
