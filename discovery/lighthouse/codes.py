"""What can be wrong with a key of the Lighthouse beyond its form (the F codes of operator_files)."""

from operator_files.problem import Code

UNKNOWN_KEY = Code("N001", "A key that is not known here. It is passed over: somebody else writes these values.")
WEIGHTS = Code("N002", "No target of a route has a weight, so that its requests would go nowhere.")
SUM = Code(
    "N003",
    "The weights of a route's targets do not sum to 100. Each gets its share of the sum. (200 is two major versions "
    "of one service, which Nelson puts into one route.)",
)
TWICE = Code("N004", "The same thing twice: its targets or entries are put together.")
SEVERAL_PORTS = Code(
    "N005", "The targets of a route disagree about its port or protocol. What the first one says is what is dialled."
)
AMBIGUOUS = Code(
    "N006",
    "A stack is known in several namespaces, and in none that is nearer than the others. The first one is used.",
)
NO_STACK = Code(
    "N007",
    "A load balancer's entry names a service and a major version of which no stack is known. Its listener is left "
    "out until there is one.",
)
CLASH = Code(
    "N008",
    "One port of a load balancer in front of two things. Of its keys of both versions, that of version 2 is used; "
    "within one key it is an error.",
)

CODES: tuple[Code, ...] = (UNKNOWN_KEY, WEIGHTS, SUM, TWICE, SEVERAL_PORTS, AMBIGUOUS, NO_STACK, CLASH)
