"""Where limits are counted, as the settings say."""

from dataclasses import replace

from ratelimit.counters.keys import CompatibleKeys, HashTag, Keys
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.over_limit import OverLimitMemory
from ratelimit.counters.per_second import PerSecondStore
from ratelimit.counters.redis.settings import RedisSettings, redis_settings
from ratelimit.counters.redis.store import RedisStore
from ratelimit.counters.store import CounterStore
from swashplate.settings import Settings


def counter_keys(settings: Settings) -> Keys | CompatibleKeys:
    """What counters are called."""
    if settings.ratelimit_keys == "compatible":
        return CompatibleKeys(settings.ratelimit_key_prefix)
    tag = HashTag(settings.ratelimit_hash_tag)
    return Keys(settings.ratelimit_key_prefix, tag) if settings.ratelimit_key_prefix else Keys(hash_tag=tag)


def counter_store(settings: Settings) -> CounterStore:
    """Redis where one is named, else this process's memory. Raises SettingsError."""
    if not settings.redis:
        # It knows itself what is over.
        return MemoryStore(settings.ratelimit_memory_counters)
    store: CounterStore = _redis(settings, settings.redis)
    if settings.redis_per_second:
        store = PerSecondStore(store, _redis(settings, settings.redis_per_second))
    return OverLimitMemory(store) if settings.ratelimit_over_limit_memory else store


def counted_in(settings: Settings) -> str:
    """For people, without secrets. Raises SettingsError."""
    if not settings.redis:
        return "memory of this process"
    place = redis_settings(settings.redis).place
    if not settings.redis_per_second:
        return place
    return f"{place}; limits per second: {redis_settings(settings.redis_per_second).place}"


def _redis(settings: Settings, url: str) -> RedisStore:
    said = redis_settings(url, _given(settings))
    # A password in the URL is the one that is meant.
    chosen = replace(said, password_file=None) if said.password else said
    return RedisStore(chosen, shares_keys=settings.ratelimit_keys == "compatible")


def _given(settings: Settings) -> RedisSettings:
    """What URLs do not say."""
    return RedisSettings(
        username=settings.redis_username,
        password=settings.redis_password,
        password_file=settings.redis_password_file,
        sentinel_username=settings.redis_sentinel_username,
        sentinel_password=settings.redis_sentinel_password,
        sentinel_password_file=settings.redis_sentinel_password_file,
        ca_file=settings.redis_ca,
        certificate_file=settings.redis_cert,
        key_file=settings.redis_key,
        insecure=settings.redis_insecure,
        answer_s=settings.redis_timeout.total_seconds(),
        connect_s=settings.redis_connect_timeout.total_seconds(),
    )
