"""What can be wrong with a limit file beyond its form (the F codes of operator_files)."""

from operator_files.problem import Code

DUPLICATE = Code("L001", "The same key and value twice at one level: one of the two would never be met.")
DOMAIN_TAKEN = Code(
    "L002",
    "Another file already describes this domain. Where domains are merged their descriptors are put together.",
)
DESCRIPTOR_TAKEN = Code("L003", "Another file of this domain already describes this key and value.")
UNIT = Code("L004", "The unit is one of second, minute, hour, day, week, month and year, in any case of letters.")
UNLIMITED = Code("L005", "What is unlimited has no unit.")
REPLACES_ITSELF = Code("L006", "A limit that replaces its own name would never be counted.")
SHARE_THRESHOLD = Code("L007", "`share_threshold` is for patterns: there is no `*` in the key or the value.")
SEVERAL = Code(
    "L008",
    "`rate_limits` has several limits of one descriptor, each with another window or algorithm, and stands in the "
    "place of `rate_limit`.",
)
WINDOW = Code("L009", "The algorithm, the window and what else is said of them do not go together.")
TIME_ZONE = Code("L010", "The time zone is not in the time zone database: `Europe/Berlin`, `UTC`.")
INCOMPATIBLE = Code(
    "L011",
    "Where counters are shared with envoyproxy/ratelimit there is one fixed window a descriptor, as long as its "
    "unit, and every hit is charged.",
)
MISPLACED = Code("L012", "A known key where it means nothing. envoyproxy/ratelimit ignores it there without a word.")
NO_VALUE = Code("L013", "A key without a value is as if it were not there.")
DENIES_ALL = Code("L014", "Without `requests_per_unit` a limit is 0, and denies every request.")
REPLACES_UNKNOWN = Code("L015", "No limit of this domain has the name that is to be replaced.")
NAME_TWICE = Code("L016", "Two limits of one file have the same name: what replaces it replaces both.")
NO_EFFECT = Code("L017", "The key changes nothing where it stands.")
UNREACHABLE = Code("L018", "Something before it takes every request that it matches.")
KEY_PATTERN = Code(
    "L019",
    "A `*` in a key matches any part of a key here. envoyproxy/ratelimit matches it to key and value as one text.",
)
OTHERWISE_THERE = Code(
    "L020",
    "envoyproxy/ratelimit puts key and value together with `_`, so it takes these two for one another. Here they are "
    "told apart.",
)
YAML_1_1 = Code("L021", "envoyproxy/ratelimit reads YAML 1.1, in which this has another meaning than in YAML 1.2.")

APART = Code(
    "L022",
    "`charge_denied: false` needs the counters of a call decided together: one store, and on a Redis Cluster the "
    "hash tag `domain`.",
)
OVERRULED = Code(
    "L023",
    "The limits of route files are a domain of their own, in force instead of a limit file's domain of that name.",
)
ROUTE_FILE = Code("L024", "A route file among limit files. Its limits are served from where route files are.")
LIMITLESS = Code("L025", "The file has no descriptors, so it limits no request of its domain.")
NONE_LEFT = Code(
    "L026",
    "No good limit file is left where there was one. The limits of those that went last stay in force until there is "
    "one again, or the removal is confirmed.",
)

CODES: tuple[Code, ...] = (
    DUPLICATE, DOMAIN_TAKEN, DESCRIPTOR_TAKEN, UNIT, UNLIMITED, REPLACES_ITSELF, SHARE_THRESHOLD, SEVERAL, WINDOW,
    TIME_ZONE, INCOMPATIBLE, MISPLACED, NO_VALUE, DENIES_ALL, REPLACES_UNKNOWN, NAME_TWICE, NO_EFFECT, UNREACHABLE,
    KEY_PATTERN, OTHERWISE_THERE, YAML_1_1, APART, OVERRULED, ROUTE_FILE, LIMITLESS,
    NONE_LEFT,
)  # fmt: skip
