"""Settings of the rate limit service that do not go together."""

from collections.abc import Iterator
from ipaddress import ip_address

from ratelimit.counters.redis.settings import SettingsError, Topology, redis_settings
from swashplate.address import Address
from swashplate.settings import Settings, environment_variable, flag


def limit_contradictions(settings: Settings, omitted: str = "") -> Iterator[str]:
    """A sentence for each. Flags leave out `omitted`: nothing for a server of discovery that counts beside."""

    def named(name: str) -> str:
        return flag(name, omitted)

    yield from _of_store(settings, omitted)
    for secret in ("redis_password", "redis_sentinel_password"):
        if getattr(settings, secret) and getattr(settings, f"{secret}_file"):
            yield f"{environment_variable(secret)} and {named(f'{secret}_file')} are both given: leave one out"
    for one, other in (
        ("redis_cert", "redis_key"),
        ("redis_key", "redis_cert"),
        ("ratelimit_tls_cert", "ratelimit_tls_key"),
        ("ratelimit_tls_key", "ratelimit_tls_cert"),
        ("ratelimit_tls_client_ca", "ratelimit_tls_cert"),
    ):
        if getattr(settings, one) and not getattr(settings, other):
            yield f"{named(one)} says nothing without {named(other)}: give that too, or leave it out"
    if settings.ratelimit_workers > 1 and not settings.redis:
        yield f"{named('ratelimit_workers')}: processes cannot share counters in memory; give --redis, or run one"
    if settings.ratelimit_workers > 1 and settings.ratelimit_listen.startswith("unix:"):
        yield f"{named('ratelimit_workers')}: processes cannot share a unix socket; listen on a port, or run one"
    headers = [f"ratelimit_{kind}_header" for kind in ("limit", "remaining", "reset")]
    if len({getattr(settings, name).lower() for name in headers}) < len(headers):
        yield f"{', '.join(map(named, headers))}: two have one name; give each its own"
    pages = "ratelimit_http" if omitted else "admin"
    if settings.ratelimit_counters and not _is_loopback(address := getattr(settings, pages)):
        yield (
            f"{named('ratelimit_counters')} lets everybody reset counters who reaches {address}: "
            f"give {named(pages)} a loopback address"
        )


def _of_store(settings: Settings, omitted: str) -> Iterator[str]:
    for name in ("redis", "redis_per_second"):
        if url := getattr(settings, name):
            try:
                redis_settings(url)
            except SettingsError as failure:
                yield f"{flag(name)}: {failure}"
    prefix = settings.ratelimit_key_prefix
    if settings.ratelimit_keys == "own" and ("{" in prefix or "}" in prefix):
        yield (
            f"{flag('ratelimit_key_prefix', omitted)}: {prefix!r} has braces, which would choose the slot of a Redis "
            f"Cluster for all counters: leave them out; {flag('ratelimit_hash_tag', omitted)} says what chooses it"
        )
    if not settings.redis:
        given = [name for name in settings.model_fields_set if name.startswith("redis_") and getattr(settings, name)]
        for name in sorted(given):
            yield f"{flag(name)} says nothing without --redis: give that too, or leave it out"
        if settings.ratelimit_keys == "compatible":
            yield f"{flag('ratelimit_keys', omitted)} compatible shares counters in a Redis: give --redis, too"


def splits_calls(settings: Settings) -> str:
    """Why the checks of one call may be decided apart from each other; empty where they never are."""
    if settings.redis_per_second:
        return "limits per second have a store of their own"
    if settings.redis and settings.ratelimit_hash_tag == "counter":
        try:
            if redis_settings(settings.redis).topology is Topology.CLUSTER:
                return "a Redis Cluster spreads counters; --hash-tag domain keeps those of a domain together"
        except SettingsError:
            return ""
    return ""


def _is_loopback(address: Address) -> bool:
    try:
        return ip_address(address.host).is_loopback
    except ValueError:
        return address.host == "localhost"
