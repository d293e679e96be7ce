"""What can be wrong with a route file beyond its form (the F codes of operator_files)."""

from operator_files.problem import Code

SUM = Code("R001", "The shares of a split, or of sources, must sum to exactly 100%.")
DESTINATION = Code(
    "R002", "A destination is a subset of the file, or a service as `name`, `name.namespace`, with `:port`."
)
UNKNOWN_DESTINATION = Code(
    "R003",
    "A plain name in `to` or `mirror` that is neither a subset of the file nor a known service. The file is taken as "
    "soon as such a service appears.",
)
ONE_ACTION = Code("R004", "A rule does exactly one of `to`, `redirect` and `respond`.")
MISPLACED = Code("R005", "The key does not go with the rule's action or with the service's protocol.")
CATCH_ALL_MISSING = Code("R006", "The last rule must take everything that is left, so it has no `match`.")
CATCH_ALL_NOT_LAST = Code("R007", "A rule without `match` takes everything, so rules after it never get a request.")
UNREACHABLE = Code("R008", "Earlier rules take every request that this rule matches.")
DUPLICATE_RULE = Code("R009", "Rule names are unique in a file: metrics and operations refer to them.")
PATH = Code(
    "R010",
    "A path begins with `/` and has no `//`, `/./`, `/../`, `%2f`, `%5c`, `?`, `#`, spaces or control characters: "
    "Envoy normalises such requests, so the rule would never match.",
)
REGEX = Code(
    "R011", "A regex must be valid RE2 (github.com/google/re2/wiki/Syntax): no look-around, no back-references."
)
SUBSTITUTION = Code("R012", r"A substitution refers to groups of its regex as `\1`; a literal backslash is `\\`.")
ONE_OF = Code("R013", "Exactly one, or at most one, of these keys may be written.")
PER_TRY = Code("R014", "`per_try` is longer than the whole request's `timeout`, so no try could ever end by it.")
UNSAFE_RETRY = Code(
    "R015",
    "The rule matches methods that are not idempotent (POST, PATCH), and retries where the request may have been "
    "carried out already.",
)
STICKY = Code("R016", "`sticky` has no effect with one destination, unless the load balancing policy hashes.")
HEADER = Code("R017", "A header name or value that HTTP or Envoy does not allow.")
HOST = Code("R018", "A host is a domain name, optionally with a port, or `*.` and a domain name.")
DUPLICATE_HOST = Code(
    "R019", "The same host twice. Envoy refuses a whole route table in which two services claim one."
)
HOST_TAKEN = Code("R020", "Another file already claims this host.")
SERVICE_TAKEN = Code("R021", "Another file already describes this service.")
NAMESPACE = Code("R022", "This directory is bound to one namespace.")
LISTEN = Code("R023", "`listen` is an IP address and a port: `127.0.0.1:5432`, `[::1]:5432`.")
PATCH = Code("R024", "A patch must be an object of the Envoy message that it is merged into.")
TLS = Code("R025", "A TLS setting without the other that it needs.")
SUBSET_EMPTY = Code("R026", "No discovered endpoint has the subset's labels.")
SERVICE_UNKNOWN = Code("R027", "No such service, or port of it, has been discovered.")
REDUNDANT = Code("R028", "The key changes nothing where it stands.")
CORS = Code("R029", "Credentials for any origin would let every site act as the user.")
EMPTY_DESTINATION = Code(
    "R030",
    "A destination with a share above 0% has no endpoint, though its service has some: most likely a misspelt label, "
    "port or service. An edit that brings one is not taken until such an endpoint appears, and then by itself. "
    "Where there is no earlier version to keep, it is a warning.",
)
SERVICE_LEFT = Code(
    "R031",
    "The file described a service that is known, and now describes one that is not. The edit is not taken until the "
    "new one appears or the old one is gone, or until another file describes the old one.",
)
REFUSED = Code("R032", "Envoy itself refuses what becomes of the file: most often of a patch in it.")
LIMIT = Code("R033", "What a rate limit says of its requests, its window or its algorithm does not go together.")
DUPLICATE_LIMIT = Code("R034", "Names of limits are unique in a file: counters and metrics are called by them.")
LIMIT_FILE = Code("R035", "A limit file of a rate limit service among route files.")

CODES: tuple[Code, ...] = (
    SUM, DESTINATION, UNKNOWN_DESTINATION, ONE_ACTION, MISPLACED, CATCH_ALL_MISSING, CATCH_ALL_NOT_LAST, UNREACHABLE,
    DUPLICATE_RULE, PATH, REGEX, SUBSTITUTION, ONE_OF, PER_TRY, UNSAFE_RETRY, STICKY, HEADER, HOST, DUPLICATE_HOST,
    HOST_TAKEN, SERVICE_TAKEN, NAMESPACE, LISTEN, PATCH, TLS, SUBSET_EMPTY, SERVICE_UNKNOWN, REDUNDANT, CORS,
    EMPTY_DESTINATION, SERVICE_LEFT, REFUSED, LIMIT, DUPLICATE_LIMIT, LIMIT_FILE,
)  # fmt: skip
