"""What can be wrong with a file of services beyond its form (the F codes of operator_files)."""

from discovery.address import ADDRESS, UNUSABLE_ADDRESS
from operator_files.problem import Code

DUPLICATE_ENDPOINT = Code("S003", "The same address and port twice behind one port of a service.")
DUPLICATE_SERVICE = Code("S004", "A service twice in one file: one of the two would silently win.")
DUPLICATE_PORT = Code("S005", "Two ports of a service with the same number or the same name.")
PORT = Code("S006", "A port is said twice, or does not fit the ports that the service has.")
CONFLICT = Code(
    "S007",
    "Another file describes the same port of the same service in another way. Files may share a service, and their "
    "endpoints are put together, where the ports agree by number, name and protocol.",
)
DIFFERING_ENDPOINT = Code(
    "S008",
    "Two files list the same endpoint with another weight, health, locality or labels; the first path's is used.",
)
DUPLICATE_LABEL = Code("S009", "A metadata key twice in one instance.")

CODES: tuple[Code, ...] = (
    ADDRESS, UNUSABLE_ADDRESS, DUPLICATE_ENDPOINT, DUPLICATE_SERVICE, DUPLICATE_PORT, PORT, CONFLICT,
    DIFFERING_ENDPOINT, DUPLICATE_LABEL,
)  # fmt: skip
