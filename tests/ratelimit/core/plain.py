"""The service in the plainest words, from what envoyproxy/ratelimit documents: one call after the other, nothing
remembered, nothing prepared. Fixed windows only, at one moment. Shares no code with the service."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST = 2**53 - 1
NUMBERS = {"second": 1, "minute": 2, "hour": 3, "day": 4, "month": 5, "year": 6, "week": 7}


@dataclass
class Limited:
    """A limit as a request meets it. `number` tells several of one descriptor apart."""

    counter: tuple[Any, ...]
    requests: int
    unit: int
    name: str = ""
    shadow: bool = False
    quota: bool = False
    charge_denied: bool = True


@dataclass
class Plain:
    """`config` is a limit file's data."""

    config: Mapping[str, Any]
    shadow_mode: bool = False
    quota_mode: bool = False
    counts: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def answer(self, request: Mapping[str, Any]) -> tuple[str, list[tuple[Any, ...]]]:
        """The overall code, and of each descriptor (code, requests, unit, name, remaining)."""
        met = [self.limits_of(request["domain"], one) for one in request["descriptors"]]
        dropped = {name for _, replaced, _ in met for name in replaced}
        kept = [[limit for limit in limits if not limit.name or limit.name not in dropped] for limits, _, _ in met]
        checks = [
            (limit, hits_of(request, descriptor))
            for limits, descriptor in zip(kept, request["descriptors"], strict=True)
            for limit in limits
        ]
        results = iter(self.decide(checks))
        statuses = []
        failed, quotas, used_up = 0, 0, 0
        for limits, (_, _, unlimited) in zip(kept, met, strict=True):
            if not limits:
                statuses.append(("OK", None, None, "", 2**32 - 1 if unlimited else 0))
                continue
            status, quota = strictest([(limit, *next(results)) for limit in limits])
            quota = quota or self.quota_mode
            quotas += quota
            used_up += quota and status[0] == "OVER_LIMIT"
            failed += not quota and status[0] == "OVER_LIMIT"
            statuses.append(status)
        denied = failed > 0 or (quotas > 0 and used_up == quotas)
        return ("OVER_LIMIT" if denied and not self.shadow_mode else "OK"), statuses

    def decide(self, checks: Sequence[tuple[Limited, int]]) -> list[tuple[bool, int]]:
        """(over, remaining) of each check."""
        before = self.counts.copy()
        results = [self.count(limit, hits) for limit, hits in checks]
        denied = any(
            over and not (limit.shadow or limit.quota or self.shadow_mode or self.quota_mode)
            for (limit, _), (over, _) in zip(checks, results, strict=True)
        )
        if not denied or all(limit.charge_denied for limit, _ in checks):
            return results
        self.counts = before
        again = [self.count(limit, min(hits, 0) if not limit.charge_denied else hits) for limit, hits in checks]
        return [(over, left) for (over, _), (_, left) in zip(results, again, strict=True)]

    def count(self, limit: Limited, hits: int) -> tuple[bool, int]:
        now = self.counts[limit.counter]
        over = hits >= 0 and now + hits > limit.requests
        if not over or limit.charge_denied:
            self.counts[limit.counter] = min(MOST, max(0, now + hits))
        return over, max(0, limit.requests - self.counts[limit.counter])

    def limits_of(self, domain: str, descriptor: Mapping[str, Any]) -> tuple[list[Limited], list[str], bool]:
        """The limits that count, the names that are replaced, and whether it is unlimited."""
        if domain != self.config["domain"]:
            return [], [], False
        entries = [(entry["key"], entry.get("value", "")) for entry in descriptor.get("entries", [])]
        if (own := descriptor.get("limit")) is not None:
            unit = NUMBERS[own["unit"].lower()]
            return [Limited((*entries, unit), own["requestsPerUnit"], unit)], [], False
        level, found, names = self.config["descriptors"], None, []
        for entry in entries:
            found = child(level, entry)
            if found is None:
                return [], [], False
            pattern = found.get("value", "") if found.get("share_threshold") else ""
            names.append((entry[0], pattern or entry[1]))
            level = found.get("descriptors", [])
        if found is None:
            return [], [], False
        rules = found.get("rate_limits") or [found[name] for name in ("rate_limit",) if name in found]
        replaced = [one["name"] for rule in rules for one in rule.get("replaces", [])]
        limits = [
            Limited(
                (*names, NUMBERS[rule["unit"]]),
                rule["requests_per_unit"],
                NUMBERS[rule["unit"]],
                rule.get("name", ""),
                rule.get("shadow_mode", found.get("shadow_mode", False)),
                found.get("quota_mode", False),
                rule.get("charge_denied", True),
            )
            for rule in rules
            if not rule.get("unlimited")
        ]
        return limits, replaced, any(rule.get("unlimited") for rule in rules)


def child(level: Sequence[Mapping[str, Any]], entry: tuple[str, str]) -> Mapping[str, Any] | None:
    """Exactly, or by the first pattern, or by the key alone."""
    key, value = entry
    of_key = [one for one in level if one["key"] == key]
    for one in of_key:
        if value and one.get("value") == value and "*" not in value:
            return one
    for one in of_key:
        if "*" in one.get("value", ""):
            parts = [re.escape(part) for part in one["value"].split("*")]
            if re.fullmatch(".*".join(parts), value, re.DOTALL):
                return one
    return next((one for one in of_key if not one.get("value")), None)


def hits_of(request: Mapping[str, Any], descriptor: Mapping[str, Any]) -> int:
    hits = min(int(descriptor.get("hitsAddend", request.get("hitsAddend") or 1)), MOST)
    return -hits if descriptor.get("isNegativeHits") else hits


def strictest(results: Sequence[tuple[Limited, bool, int]]) -> tuple[tuple[Any, ...], bool]:
    """The status of a descriptor, and whether it is a quota. Longer windows are over for longer."""
    lengths = {1: 1, 2: 60, 3: 3600, 4: 86400, 7: 7 * 86400, 5: 30 * 86400, 6: 365 * 86400}
    denying = [one for one in results if one[1] and not one[0].shadow]
    if denying:
        limit, over, left = max(denying, key=lambda one: lengths[one[0].unit])
    else:
        serious = [one for one in results if not one[0].shadow] or results
        limit, over, left = min(serious, key=lambda one: 0 if one[1] else one[2])
    code = "OVER_LIMIT" if over and not limit.shadow else "OK"
    left = 0 if over else min(left, 2**32 - 1)
    return (code, limit.requests, limit.unit, limit.name, left), limit.quota
