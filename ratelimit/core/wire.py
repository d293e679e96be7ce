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
    if number < 0x4000:
        return _LAST[number]
    groups = []
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))
_MORE: Final = tuple(bytes((number & 0x7F | 0x80, number >> 7 | 0x80)) for number in range(0x4000))
"""14 bits of a number that has more."""
_LAST: Final = _ONE_BYTE + tuple(bytes((number & 0x7F | 0x80, number >> 7)) for number in range(0x80, 0x4000))
"""The last 14 bits of a number, or all of them."""


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


def remaining(left: int) -> bytes:
    """DescriptorStatus.limit_remaining. Of a large number, in as few steps as can be: each call has another."""
    if left < 0x4000:
        return _REMAINING[left]
    if left < 0x10000000:
        return _LARGE_REMAINING[left & 0x3FFF] + _LAST[left >> 14]
    left = min(left, UINT32)
    return _LARGE_REMAINING[left & 0x3FFF] + _MORE[left >> 14 & 0x3FFF] + _ONE_BYTE[left >> 28]


def _until_reset(seconds: int) -> bytes:
    return field(4, number_field(1, seconds))


_REMAINING: Final = tuple(number_field(3, left) for left in range(0x4000))
_LARGE_REMAINING: Final = tuple(b"\x18" + bits for bits in _MORE)
_UNTIL_RESET: Final = tuple(_until_reset(seconds) for seconds in range(3_601))
_STATUS: Final = tuple(b"\x12" + size for size in _ONE_BYTE)
_CODE: Final = tuple(number_field(1, code) for code in (UNKNOWN, OK, OVER_LIMIT))


def status(head: bytes, left: int, reset_s: int) -> bytes:
    """RateLimitResponse.statuses, a DescriptorStatus of a limit whose counter is known. `head`: as of `coded`."""
    inner = head + remaining(left) + (_UNTIL_RESET[reset_s] if reset_s <= 3_600 else _until_reset(reset_s))
    size = len(inner)
    return (_STATUS[size] if size < 0x80 else b"\x12" + varint(size)) + inner


def coded(code: int, limit: bytes) -> bytes:
    """How a DescriptorStatus begins: its code, and its `current_limit`."""
    return _CODE[code] + limit


def bare_status(code: int, limit: bytes = b"", left: int = 0) -> bytes:
    """A DescriptorStatus where no counter was asked, or none could be."""
    return field(2, coded(code, limit) + number_field(3, left))


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
