"""Checks of one rule by itself."""

from collections.abc import Iterator, Mapping

from mesh.duration import Off
from operator_files.problem import Problem
from operator_files.values import show_duration, show_percent
from routes import codes
from routes.checks.context import Checked
from routes.model import RuleSpec
from routes.model.action import CorsSpec, FaultSpec, RedirectSpec, RetrySpec, RewriteSpec, StickySpec
from routes.model.match import MatchSpec, PatternSpec
from routes.model.values import TimeoutValue

Where = tuple[str | int, ...]

_FORWARD_ONLY = ("timeout", "idle_timeout", "retry", "rewrite", "sticky", "mirror", "websocket", "rate_limits")
_HTTP_ONLY = (
    "match", "redirect", "respond", "timeout", "idle_timeout", "retry", "rewrite", "headers", "sticky", "mirror",
    "fault", "cors", "websocket", "rate_limits",
)  # fmt: skip
_HASHING = ("ring_hash", "maglev")
_UNSAFE_METHODS = frozenset({"POST", "PATCH"})
_UNSAFE_RETRIES = frozenset({"5xx", "gateway-error", "reset", "deadline-exceeded", "internal", "cancelled"})
_LONGEST_BODY = 4096


def rule_problems(checked: Checked, index: int, rule: RuleSpec) -> Iterator[Problem]:
    """Everything that is wrong with the rule, whatever the others say."""
    at: Where = ("rules", index)
    yield from _action(checked, at, rule)
    for number, entry in enumerate(rule.match or ()):
        yield from _match(checked, (*at, "match", number), entry)
    yield from _destinations(checked, at, rule)
    yield from _retries(checked, at, rule)
    if rule.rewrite is not None:
        yield from _new_path(checked, (*at, "rewrite"), rule, rule.rewrite)
    if rule.redirect is not None:
        yield from _redirect(checked, (*at, "redirect"), rule, rule.redirect)
    if rule.sticky is not None:
        yield from _sticky(checked, (*at, "sticky"), rule, rule.sticky)
    if rule.fault is not None:
        yield from _fault(checked, (*at, "fault"), rule.fault)
    if rule.cors is not None:
        yield from cors_problems(checked, (*at, "cors"), rule.cors)
    if rule.respond is not None and len(rule.respond.body.encode()) > _LONGEST_BODY:
        yield checked.error(
            codes.MISPLACED,
            "the body is longer than the 4,096 bytes Envoy sends",
            (*at, "respond", "body"),
            "shorten it",
        )


def tcp_rule_problems(checked: Checked, index: int, rule: RuleSpec, protocol: str) -> Iterator[Problem]:
    """What a rule of a tcp or tls service cannot have: there are no requests to look into."""
    for key in _HTTP_ONLY:
        if key in rule.model_fields_set:
            yield checked.error(
                codes.MISPLACED, f"`{key}` needs HTTP, and the service's protocol is {protocol}",
                ("rules", index, key), "delete the key", key=True,
            )  # fmt: skip


def per_try_problems(
    checked: Checked, at: Where, timeout: TimeoutValue | None, retry: RetrySpec | None, *, has_own_retry: bool = True
) -> Iterator[Problem]:
    """`per_try` against `timeout`; at the timeout, where the retry stands elsewhere."""
    per_try = retry.per_try if retry else None
    if timeout is None or per_try is None or isinstance(timeout, Off):
        return
    if isinstance(per_try, Off) or per_try <= timeout:
        return
    loc = (*at, "retry", "per_try") if has_own_retry else (*at, "timeout")
    yield checked.error(
        codes.PER_TRY, f"`per_try` is {show_duration(per_try)}, longer than `timeout`, {show_duration(timeout)}",
        loc, "shorten `per_try`, or allow a longer `timeout`",
    )  # fmt: skip


def cors_problems(checked: Checked, at: Where, cors: CorsSpec) -> Iterator[Problem]:
    for number, origin in enumerate(cors.origins):
        loc = (*at, "origins", number)
        if isinstance(origin, PatternSpec):
            yield from _pattern(checked, loc, origin, ("exact", "prefix", "suffix", "regex"))
        elif origin == "*" and cors.credentials:
            yield checked.error(
                codes.CORS, "`*` together with `credentials` lets every site act as the user", loc, "name the origins"
            )


def _action(checked: Checked, at: Where, rule: RuleSpec) -> Iterator[Problem]:
    actions = [key for key in ("to", "redirect", "respond") if getattr(rule, key) is not None]
    if not actions:
        yield checked.error(
            codes.ONE_ACTION, "the rule does nothing", at, "write one of `to`, `redirect` and `respond`"
        )
    for extra in actions[1:]:
        yield checked.error(
            codes.ONE_ACTION, f"the rule has `{actions[0]}` already, so `{extra}` cannot be done too", (*at, extra),
            "make it a rule of its own", key=True,
        )  # fmt: skip
    if actions and actions[0] != "to":
        for key in _FORWARD_ONLY:
            if key in rule.model_fields_set:
                yield checked.error(
                    codes.MISPLACED, f"`{key}` does not go with `{actions[0]}`: nothing is sent on", (*at, key),
                    "delete the key", key=True,
                )  # fmt: skip


def _match(checked: Checked, at: Where, entry: MatchSpec) -> Iterator[Problem]:
    if not entry.model_fields_set:
        yield checked.error(codes.ONE_OF, "this entry would take every request", at, "delete `match`, or write a key")
    yield from at_most_one(checked, at, entry, ("path", "prefix", "regex"))
    plain = ("exact", "prefix", "suffix", "regex", "present", "absent")
    for kind, allowed in (("headers", (*plain, "range")), ("query", plain), ("cookies", plain)):
        patterns: Mapping[str, str | PatternSpec] = getattr(entry, kind) or {}
        for name, pattern in patterns.items():
            if isinstance(pattern, PatternSpec):
                yield from _pattern(checked, (*at, kind, _as_written(checked, (*at, kind), name)), pattern, allowed)


def _as_written(checked: Checked, at: Where, lower: str) -> str:
    """Header names become lower-case; the file may have another."""
    data = checked.document.data
    for step in at:
        data = data[step]  # type: ignore[index]
    assert isinstance(data, dict)
    return next((key for key in data if key.lower() == lower), lower)


def _pattern(checked: Checked, at: Where, pattern: PatternSpec, allowed: tuple[str, ...]) -> Iterator[Problem]:
    written = [key for key in PatternSpec.model_fields if key in pattern.model_fields_set]
    if len(written) != 1:
        what = "nothing" if not written else " and ".join(f"`{key}`" for key in written)
        yield checked.error(
            codes.ONE_OF, f"exactly one kind of match goes here, not {what}", at,
            "write one of " + ", ".join(f"`{key}`" for key in allowed),
        )  # fmt: skip
        return
    if written[0] not in allowed:
        yield checked.error(
            codes.ONE_OF, f"`{written[0]}` cannot be used here", (*at, written[0]),
            "write one of " + ", ".join(f"`{key}`" for key in allowed), key=True,
        )  # fmt: skip
    if pattern.range is not None:
        start, end = pattern.range
        if not -(2**63) <= start < end < 2**63:
            yield checked.error(
                codes.ONE_OF, f"no number is from {start} up to, but without, {end}", (*at, "range"),
                "write the smaller number first",
            )  # fmt: skip


def _destinations(checked: Checked, at: Where, rule: RuleSpec) -> Iterator[Problem]:
    if not isinstance(rule.to, dict):
        return
    seen: dict[object, str] = {}
    for text in rule.to:
        first = seen.setdefault(checked.naming.destination(text), text)
        if first != text:
            yield checked.error(
                codes.DESTINATION, f"`{text}` is the same destination as `{first}`", (*at, "to", text),
                "give one of them both shares", key=True,
            )  # fmt: skip


def _retries(checked: Checked, at: Where, rule: RuleSpec) -> Iterator[Problem]:
    defaults = checked.file.defaults
    retry = rule.retry or (defaults.retry if defaults else None)
    timeout = rule.timeout or (defaults.timeout if defaults else None)
    if rule.retry is not None or rule.timeout is not None:
        yield from per_try_problems(checked, at, timeout, retry, has_own_retry=rule.retry is not None)
    if retry is None or retry.attempts == 0 or rule.to is None:
        return
    unsafe = sorted({method for entry in rule.match or () for method in entry.methods or ()} & _UNSAFE_METHODS)
    words = [str(word) for word in retry.on if word in _UNSAFE_RETRIES or (isinstance(word, int) and word >= 500)]
    if unsafe and words:
        yield checked.warning(
            codes.UNSAFE_RETRY,
            f"a {' or '.join(unsafe)} that was carried out may be sent again, since retries are on `{words[0]}`",
            (*at, "retry") if rule.retry else at,
            "retry only on `connect-failure`, `refused-stream` and `reset-before-request`, or set `attempts: 0`",
            key=rule.retry is not None,
        )


def _new_path(checked: Checked, at: Where, rule: RuleSpec, spec: RewriteSpec | RedirectSpec) -> Iterator[Problem]:
    if not spec.model_fields_set:
        yield checked.error(codes.ONE_OF, "this changes nothing", at, "write a key, or delete this", key=True)
    yield from at_most_one(checked, at, spec, ("prefix", "path", "regex"))
    if isinstance(spec, RewriteSpec):
        yield from at_most_one(checked, at, spec, ("host", "host_from_header"))
    if spec.prefix is None:
        return
    if not rule.match or any(entry.prefix is None for entry in rule.match):
        yield checked.error(
            codes.MISPLACED, "`prefix` replaces what the match's `prefix` took, and an entry of `match` has none",
            (*at, "prefix"), "match by `prefix`, or use `path` or `regex`", key=True,
        )  # fmt: skip


def _redirect(checked: Checked, at: Where, rule: RuleSpec, spec: RedirectSpec) -> Iterator[Problem]:
    yield from _new_path(checked, at, rule, spec)
    if spec.model_fields_set and not spec.model_fields_set - {"code"}:
        yield checked.error(
            codes.ONE_OF, "the redirect leads back to the same place", at, "write where it leads", key=True
        )


def _sticky(checked: Checked, at: Where, rule: RuleSpec, spec: StickySpec) -> Iterator[Problem]:
    keys = ("header", "cookie", "query", "address")
    written = [key for key in keys if getattr(spec, key) is not None]
    if len(written) != 1:
        yield checked.error(
            codes.ONE_OF, "exactly one part of a request decides", at,
            "write one of `header`, `cookie`, `query` and `address`", key=True,
        )  # fmt: skip
    hashes = checked.file.cluster is not None and checked.file.cluster.lb in _HASHING
    if rule.to is not None and not hashes and (isinstance(rule.to, str) or len(rule.to) == 1):
        yield checked.warning(
            codes.STICKY, "with one destination there is no side to stay on", at,
            "delete it, or set `cluster: {lb: ring_hash}` to stay on one endpoint", key=True,
        )  # fmt: skip


def _fault(checked: Checked, at: Where, spec: FaultSpec) -> Iterator[Problem]:
    if spec.delay is None and spec.abort is None:
        yield checked.error(codes.ONE_OF, "the fault does nothing", at, "write `delay`, `abort` or both", key=True)
    elif spec.percent == 0:
        yield checked.warning(
            codes.REDUNDANT,
            f"a fault for {show_percent(spec.percent)} of the requests does nothing",
            (*at, "percent"),
        )


def at_most_one(checked: Checked, at: Where, spec: object, keys: tuple[str, ...]) -> Iterator[Problem]:
    """A problem at each of these keys beyond the first that is written."""
    written = [key for key in keys if getattr(spec, key) is not None]
    for extra in written[1:]:
        yield checked.error(
            codes.ONE_OF,
            f"`{extra}` cannot stand beside `{written[0]}`",
            (*at, extra),
            "keep one of the two",
            key=True,
        )
