"""Metrics of the rate limit service. What envoyproxy/ratelimit has is called as its Prometheus mapping calls it, so
that dashboards and alerts go on; what it does not have begins with swashplate_ratelimit_."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from ratelimit.counters.stats import LATENCY_BOUNDS_S
from ratelimit.counters.store import CounterStore
from ratelimit.host.counts import HostCounts
from ratelimit.host.service import METHOD
from ratelimit.stats import RESPONSE_BOUNDS_S, TURN_BOUNDS, LimitCounts, RateLimitStats
from swashplate import VERSION
from swashplate.exposition import NO_LABELS, Block, Family, Labels, Number, Sample, histogram, written
from swashplate.rate_limiter import RateLimiter

_THEIRS: Final = "ratelimit_service_"
_OURS: Final = "swashplate_ratelimit_"
_IPV4: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_OF_LIMIT: Final = ("domain", "key1", "key2")

LIMIT_FAMILIES: Final = tuple(
    (Family(f"{_THEIRS}rate_limit_{name}", "counter", text, _OF_LIMIT), attrgetter(name))
    for name, text in (
        ("total_hits", "Hits on a limit; key1 is the first level of its path, key2 the others."),
        ("over_limit", "Of them, those beyond the limit, let through or not."),
        ("near_limit", "Of them, those between near_limit_ratio and the limit."),
        ("within_limit", "Of them, those within the limit."),
        ("over_limit_with_local_cache", "Of those beyond the limit, those known to be so without asking the store."),
        ("shadow_mode", "Of those beyond the limit, those let through by a shadow mode of the limit."),
        ("total_negative_hits", "Hits given back."),
        ("store_errors", "Checks of a limit that could not be decided."),
    )
)
NOT_FOUND: Final = Family(
    f"{_THEIRS}rate_limit_domain_not_found", "counter", "Descriptors of a domain that no file has.", ("domain",)
)
SHADOW: Final = Family(f"{_THEIRS}global_shadow_mode", "counter", "Calls let through by the global shadow mode.")
REQUESTS: Final = Family(f"{_THEIRS}total_requests", "counter", "Calls that came over gRPC.", ("grpc_method",))
RESPONSES: Final = Family(
    f"{_THEIRS}response_time_seconds",
    "histogram",
    "Time from when a call was first looked at to its answer; calls answered together have one.",
    ("grpc_method",),
)
ERRORS: Final = Family(
    f"{_THEIRS}should_rate_limit_error",
    "counter",
    "Calls that failed: redis_error for the store of counters, service_error for anything else.",
    ("err_type",),
)
LOADED: Final = Family(f"{_THEIRS}config_load_success", "counter", "Times that limits of files came into force.")
LOAD_ERRORS: Final = Family(
    f"{_THEIRS}config_load_error", "counter", "Edits of limit files with errors, and failures to read them."
)
CALLS: Final = Family(f"{_OURS}calls_total", "counter", "gRPC calls by how they ended.", ("outcome",))
IN_FLIGHT: Final = Family(f"{_OURS}calls_in_flight", "gauge", "gRPC calls under way.")
WAITING: Final = Family(f"{_OURS}calls_waiting", "gauge", "Of them, those that the core has not looked at yet.")
CONNECTIONS: Final = Family(f"{_OURS}connections", "gauge", "gRPC connections (native host only).")
HANDSHAKES: Final = Family(
    f"{_OURS}handshakes_failed_total",
    "counter",
    "Connections that ended within TLS's handshake, or without a word of HTTP/2, as probes that only connect do "
    "(native host only).",
)
MALFORMED: Final = Family(
    f"{_OURS}malformed_requests_total",
    "counter",
    "Requests reset before they were calls, most often for an :authority that is no host (native host only).",
)
ANSWERS: Final = Family(f"{_OURS}answers_total", "counter", "Answers by their overall code.", ("code",))
FAILURES: Final = Family(f"{_OURS}failures_total", "counter", "Calls without an answer, by gRPC status.", ("status",))
UNDECIDED: Final = Family(
    f"{_OURS}undecided_total",
    "counter",
    "Checks that the store did not decide and that on_store_failure, or a shadow mode, answered.",
    ("answer",),
)
TURNS: Final = Family(f"{_OURS}turn_calls", "histogram", "Calls that were decided together.")
PLANS: Final = Family(
    f"{_OURS}plans_total", "counter", "Requests by whether the same bytes were known already.", ("plan",)
)
STORE_CHECKS: Final = Family(f"{_OURS}store_checks_total", "counter", "Checks made with the store of counters.")
STORE_SECONDS: Final = Family(f"{_OURS}store_round_trip_seconds", "histogram", "Round trips to the store.")
STORE_FAILURES: Final = Family(
    f"{_OURS}store_failures_total", "counter", "Checks that the store did not decide, by the reason.", ("kind",)
)
STORE_REMEMBERED: Final = Family(
    f"{_OURS}store_remembered_total", "counter", "Checks that were known to be over their limit, unasked."
)
STORE_RECONNECTS: Final = Family(f"{_OURS}store_reconnects_total", "counter", "Connections to the store made anew.")
STORE_EVICTED: Final = Family(
    f"{_OURS}store_evicted_total", "counter", "Live counters that a full memory forgot; each began anew."
)
STORE_IN_FLIGHT: Final = Family(f"{_OURS}store_in_flight", "gauge", "Scripts that the store has not answered yet.")
STORE_WAITING: Final = Family(f"{_OURS}store_waiting", "gauge", "Calls that wait for their turn at the store.")
STORE_UP: Final = Family(
    f"{_OURS}store_up", "gauge", "Whether the store of counters can be asked (1).", ("store",), "min"
)
READY: Final = Family(f"{_OURS}ready", "gauge", "Whether calls should be sent here (1).", (), "min")
STALE: Final = Family(
    f"{_OURS}domain_stale",
    "gauge",
    "Whether an older version of a domain is in force than its files say (1), because they have errors.",
    ("domain",),
    "max",
)
LIMITS: Final = Family(f"{_OURS}limits", "gauge", "Limits in force.", ("domain",), "max")
PROBLEMS: Final = Family(f"{_OURS}file_problems", "gauge", "Problems of limits' files.", ("severity",), "max")
SYNCED: Final = Family(
    f"{_OURS}last_sync_timestamp_seconds", "gauge", "When limit files were last read, in unix time.", (), "min"
)
BUILD: Final = Family(
    f"{_OURS}build_info", "gauge", "The version of this server, and its host.", ("version", "host"), "max"
)

FAMILIES: Final = (
    *(family for family, _ in LIMIT_FAMILIES),
    *(NOT_FOUND, SHADOW, REQUESTS, RESPONSES, ERRORS, LOADED, LOAD_ERRORS, CALLS, IN_FLIGHT, WAITING, CONNECTIONS),
    *(HANDSHAKES, MALFORMED, ANSWERS, FAILURES, UNDECIDED, TURNS, PLANS, STORE_CHECKS, STORE_SECONDS, STORE_FAILURES),
    *(STORE_REMEMBERED, STORE_RECONNECTS, STORE_EVICTED, STORE_IN_FLIGHT, STORE_WAITING, STORE_UP, READY, STALE),
    *(LIMITS, PROBLEMS, SYNCED, BUILD),
)
WORKERS: Final = Family(f"{_OURS}workers", "gauge", "Processes that take calls, where there are several.")
RESTARTS: Final = Family(f"{_OURS}worker_restarts_total", "counter", "Of them, those that ended unasked.")
OF_WORKERS: Final = (WORKERS, RESTARTS)


@dataclass(frozen=True, slots=True)
class RateLimitMetrics:
    """Read whenever somebody scrapes. `unready` gives the reasons why no calls should be sent here."""

    limiter: RateLimiter
    host: str
    host_counts: Callable[[], HostCounts]
    unready: Callable[[], tuple[str, ...]]

    def text(self) -> AsyncIterator[bytes]:
        """All of it in Prometheus' text format, in pieces."""
        return written(self.blocks())

    def blocks(self) -> Iterator[Block]:
        stats = self.limiter.stats
        yield from _of_limits(stats)
        yield from _of_calls(stats, self.host_counts())
        yield from _of_store(self.limiter.store)
        yield from self._of_files()
        yield BUILD, [Sample((("version", VERSION), ("host", self.host)), 1)]

    def _of_files(self) -> Iterator[Block]:
        limiter, source = self.limiter, self.limiter.source
        yield LOADED, [Sample(NO_LABELS, limiter.loaded)]
        yield LOAD_ERRORS, [Sample(NO_LABELS, limiter.load_errors)]
        yield READY, [Sample(NO_LABELS, int(not self.unready()))]
        yield LIMITS, _by("domain", limiter.limits.items())
        problems = limiter.problems
        errors = sum(problem.is_error for problem in problems)
        yield PROBLEMS, _by("severity", [("error", errors), ("warning", len(problems) - errors)])
        if source is None:
            return
        stale = source.book.stale_domains
        yield STALE, (Sample((("domain", name),), int(name in stale)) for name in source.tree.domains)
        if source.freshness.synced_at is not None:
            yield SYNCED, [Sample(NO_LABELS, source.freshness.synced_at)]


def _of_limits(stats: RateLimitStats) -> Iterator[Block]:
    # The list, not the counts, is as of now: a scrape may take a while.
    series: dict[Labels, LimitCounts] = {}
    for counts in stats.series():
        labels = _labels(counts)
        series[labels] = counts if (same := series.get(labels)) is None else same + counts
    for family, value in LIMIT_FAMILIES:
        yield family, (Sample(labels, value(counts)) for labels, counts in series.items())
    not_found: dict[str, int] = {}
    for name, descriptors in stats.domain_not_found.items():
        domain = _plain(name)
        not_found[domain] = not_found.get(domain, 0) + descriptors
    yield NOT_FOUND, _by("domain", not_found.items())


def _labels(counts: LimitCounts) -> Labels:
    """As envoyproxy/ratelimit's mapping, but that what is deeper than two levels stays told apart."""
    path = _plain(counts.path)
    first, dot, rest = path.partition(".")
    if dot and not rest:
        first = path
    labels = (("domain", _plain(counts.domain)), ("key1", first))
    return (*labels, ("key2", rest)) if rest else labels


def _plain(name: str) -> str:
    """As envoyproxy/ratelimit writes it: `_` for `:` and `|`, and for the dots of an IPv4 address, which are no
    levels. Names that become one are counted together."""
    name = name.replace(":", "_").replace("|", "_")
    return _IPV4.sub(lambda found: found[0].replace(".", "_"), name) if name.count(".") > 2 else name


def _of_calls(stats: RateLimitStats, host: HostCounts) -> Iterator[Block]:
    by_status = {str(status.name): count for status, count in stats.failed.items()}
    failed = sum(stats.failed.values())
    by_store = by_status["UNAVAILABLE"]
    yield SHADOW, [Sample(NO_LABELS, stats.global_shadow_mode)]
    yield REQUESTS, _by("grpc_method", [(METHOD, host.calls)])
    yield (
        RESPONSES,
        histogram(stats.responses, RESPONSE_BOUNDS_S, stats.response_sum_s, (("grpc_method", METHOD),)),
    )
    yield ERRORS, _by("err_type", [("redis_error", by_store), ("service_error", failed - by_store)])
    outcomes = ("answered", "failed", "shed", "expired", "cancelled", "refused")
    yield CALLS, _by("outcome", [(name, getattr(host, name)) for name in outcomes])
    yield IN_FLIGHT, [Sample(NO_LABELS, host.in_flight)]
    yield WAITING, [Sample(NO_LABELS, host.waiting)]
    if host.connections is not None:
        yield CONNECTIONS, [Sample(NO_LABELS, host.connections)]
    if host.handshakes_failed is not None:
        yield HANDSHAKES, [Sample(NO_LABELS, host.handshakes_failed)]
    yield MALFORMED, [Sample(NO_LABELS, host.malformed)]
    over = stats.over_limit_calls
    yield ANSWERS, _by("code", [("OK", stats.answered - over), ("OVER_LIMIT", over)])
    yield FAILURES, _by("status", list(by_status.items()))
    yield UNDECIDED, _by("answer", [("allow", stats.allowed_undecided), ("deny", stats.denied_undecided)])
    yield TURNS, histogram(stats.turns, TURN_BOUNDS, stats.turn_calls)
    yield PLANS, _by("plan", [("remembered", stats.plans_remembered), ("made", stats.plans_made)])


def _of_store(store: CounterStore) -> Iterator[Block]:
    stats, status = store.stats, store.status
    yield STORE_CHECKS, [Sample(NO_LABELS, stats.checks)]
    yield STORE_SECONDS, histogram(stats.latency, LATENCY_BOUNDS_S, stats.latency_sum_s)
    yield STORE_FAILURES, _by("kind", [(str(kind), count) for kind, count in stats.failures.items()])
    yield STORE_REMEMBERED, [Sample(NO_LABELS, stats.remembered)]
    yield STORE_RECONNECTS, [Sample(NO_LABELS, stats.reconnects)]
    yield STORE_EVICTED, [Sample(NO_LABELS, stats.evicted)]
    yield STORE_IN_FLIGHT, [Sample(NO_LABELS, status.in_flight)]
    yield STORE_WAITING, [Sample(NO_LABELS, status.waiting)]
    yield STORE_UP, _by("store", [(status.kind, int(not status.error))])


def _by(label: str, values: Iterable[tuple[str, Number]]) -> list[Sample]:
    return [Sample(((label, text),), value) for text, value in values]
