"""What can be wrong with a file of Envoy resources beyond its form (the F codes of operator_files)."""

from operator_files.problem import Code

FIELD = Code("X001", "Envoy's API has no such field, or the value is none that the field can hold.")
TYPE = Code("X002", "`@type` is missing, or is not a type of Envoy's v3 API that can be a resource.")
NAME = Code("X003", "A resource has no name, so nobody could refer to it.")
DUPLICATE = Code(
    "X004",
    "Two resources of one type and name for the same nodes. The first in a file has the name, and of two files the "
    "one whose path comes first.",
)
DOMAIN = Code(
    "X005",
    "Two virtual hosts of one table claim a domain. Envoy would refuse the whole table, so the later one goes "
    "without.",
)
TABLE = Code("X006", "The name of a virtual host begins with its route table's: `egress/legacy`.")
ADDRESS = Code(
    "X007",
    "A host name in an assignment. Envoy resolves names of DNS clusters only, and would refuse every assignment that "
    "came with this one.",
)
REGEX = Code("X008", "A regex must be valid RE2 (github.com/google/re2/wiki/Syntax).")
UNKNOWN_CLUSTER = Code(
    "X009", "No cluster of that name is served. It may be in the bootstrap of the Envoys; else requests are refused."
)
NO_ASSIGNMENT = Code("X010", "A cluster takes its endpoints by EDS, and nobody gives it any.")
TAKES = Code(
    "X011", "The resource takes a name, an address or a domain that a discovered service would have had otherwise."
)
NO_TABLE = Code("X012", "A route table, or a secret, that is fetched from this server and that it does not have.")
TEMPLATE = Code("X013", "A cluster template that says what only a single cluster can say, or is not of type EDS.")

CODES: tuple[Code, ...] = (
    FIELD, TYPE, NAME, DUPLICATE, DOMAIN, TABLE, ADDRESS, REGEX, UNKNOWN_CLUSTER, NO_ASSIGNMENT, TAKES, NO_TABLE,
    TEMPLATE,
)  # fmt: skip
