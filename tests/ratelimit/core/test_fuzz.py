"""Whatever bytes arrive, each call of a turn ends once, and no other call is hurt."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimit.core.call import Status
from ratelimit.core.options import HeaderNames, Options
from ratelimit.core.turn import Core
from tests.ratelimit.core.calls import Response, core_of, decided, request
from tests.ratelimit.core.test_against_plain import LIMITS

GOOD = request("a=good", {"entries": [{"key": "a", "value": "good"}], "hitsAddend": "0"})
FULL = Options(headers=HeaderNames(), structured_headers=True, dynamic_metadata=True, would_deny_metadata=True)


def _cut(message: bytes, at: int, more: bytes) -> bytes:
    return message[:at] + more + message[at + len(more) :]


mangled = st.builds(_cut, st.just(GOOD), st.integers(0, len(GOOD)), st.binary(max_size=6))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
valid = st.builds(
    lambda domain, entries, hits, unit, requests, negative, of_request: request(
        *[
            {
                "entries": [{"key": key, "value": value} for key, value in one],
                "hitsAddend": str(hits),
                "isNegativeHits": negative,
                **({"limit": {"unit": unit, "requestsPerUnit": requests}} if unit is not None else {}),
            }
            for one in entries
        ],
        domain=domain,
        hitsAddend=of_request,
    ),
    st.sampled_from(["mesh", "", "other"]),
    st.lists(st.lists(st.tuples(texts | st.sampled_from("abcpsqruzm"), texts), max_size=4), max_size=6),
    st.integers(0, 2**64 - 1),
    st.none() | st.integers(0, 9) | st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60) | mangled | valid, max_size=6), st.sampled_from([Options(), FULL]))
def test_every_call_ends_once_with_an_answer_or_a_reason(messages: list[bytes], options: Options) -> None:
    core: Core = core_of(LIMITS, options)
    *ended, last = decided(core, *messages, GOOD)
    for one in ended:
        if isinstance(one, tuple):
            assert one[0] is Status.INVALID_ARGUMENT
        else:
            answer = Response.FromString(one)
            assert answer.overall_code in (1, 2)
            assert len(answer.statuses) >= 1
    assert isinstance(last, bytes)
