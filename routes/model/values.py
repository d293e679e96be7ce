"""Single values of a route file: each type checks its text, and gives a fix where it is wrong."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

import re2
from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from envoy_api.substitution import COMMANDS, unknown_command
from mesh.duration import OFF, Timeout
from operator_files.validate import nearest
from operator_files.values import name_of, parse_duration, port_number, refused, text_value
from routes import codes

V = TypeVar("V")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_PORT_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DESTINATION = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)(?::(?P<port>[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?))?"
)
_DOMAIN = re.compile(
    r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*(?::[0-9]+)?"
)
_PLAIN_DOMAIN = re.compile(_DOMAIN.pattern.removeprefix(r"(?:\*\.)?").removesuffix(r"(?::[0-9]+)?"))
_BAD_IN_PATH: Final = (
    (re.compile(r"//"), "`//`", "write one `/`"),
    (re.compile(r"/\.\.?(?:/|$)"), "`/./` or `/../`", "write the path that it leads to"),
    (re.compile(r"%2[fF]"), "`%2f`, an encoded slash", "write `/`"),
    (re.compile(r"%5[cC]|\\"), "a backslash", "write `/`"),
    (re.compile(r"[?#]"), "`?` or `#`", "match the query with `query`"),
    (re.compile(r"[\x00-\x20\x7f-\U0010ffff]"), "a space, a control or a non-ASCII character", "write it as `%20`"),
)  # fmt: skip
_LONGEST_HEADER: Final = 16_384  # Envoy's limit on a configured header's name and value

_quiet = re2.Options()
_quiet.log_errors = False


def parse_timeout(value: object) -> Timeout:
    """A positive duration, or OFF for `infinity`."""
    if value == "infinity":
        return OFF
    return parse_duration(
        value, instead_of_zero="write `infinity` for no limit, or leave the key out for the default"
    )


def parse_path(value: object) -> str:
    """A path as Envoy sees it after normalisation (path_normalization, merge_slashes)."""
    path = text_value(value)
    if not path.startswith("/"):
        raise refused(f"the path `{path}` does not begin with `/`", f"write `/{path}`", codes.PATH)
    for pattern, what, fix in _BAD_IN_PATH:
        if pattern.search(path):
            raise refused(f"the path has {what}, which no request has by the time it is matched", fix, codes.PATH)
    return path


def parse_prefix(value: object) -> str:
    """A path prefix of whole segments; a trailing slash says nothing more and is dropped."""
    return parse_path(value).rstrip("/") or "/"


def parse_new_path(value: object) -> str:
    """What a rewrite or redirect puts in place of a path: it may have a query."""
    path = text_value(value)
    if not path.startswith("/") or re.search(r"[\x00-\x20\x7f]", path):
        raise refused(f"`{path}` is no path", "begin it with `/`, without spaces or control characters", codes.PATH)
    return path


def parse_regex(value: object) -> str:
    """A regex that RE2 takes, and so Envoy."""
    pattern = text_value(value)
    if not pattern:
        raise refused("the regex is empty", "write `.*` to take everything", codes.REGEX)
    try:
        re2.compile(pattern, _quiet)
    except re2.error as error:
        raise refused(f"RE2 does not take this regex: {_re2_reason(error)}", _re2_fix(pattern), codes.REGEX) from None
    return pattern


def parse_header_name(value: object) -> str:
    """A header's name, in lower case as HTTP/2 has it."""
    name = text_value(value).lower()
    pseudo = name in (":authority", ":method", ":path", ":scheme")
    if not (pseudo or _TOKEN.fullmatch(name)) or len(name) > _LONGEST_HEADER:
        raise refused(f"`{value}` is no header name", "use letters, digits and `-`", codes.HEADER)
    return name


def parse_edited_header(value: object) -> str:
    """The name of a header that may be changed: Envoy refuses to touch `host` and the pseudo-headers this way."""
    name = parse_header_name(value)
    if name == "host" or name.startswith(":"):
        raise refused(f"Envoy does not let `{name}` be changed here", "use `rewrite`", codes.HEADER)
    return name


def parse_header_value(value: object) -> str:
    """A header's value, in which `%COMMAND%` is Envoy's substitution and `%%` a percent sign."""
    text = text_value(value)
    if re.search(r"[\x00\r\n]", text) or len(text.encode()) > _LONGEST_HEADER:
        raise refused("a header's value is one line of at most 16,384 bytes", "shorten it", codes.HEADER)
    if (bad := unknown_command(text)) is not None:
        raise refused(*_command_fault(bad), codes.HEADER)
    return text


def parse_token(value: object) -> str:
    """A method, cookie or header name that is kept as it is written."""
    text = text_value(value)
    if not _TOKEN.fullmatch(text):
        raise refused(
            f"`{text}` has characters that HTTP does not allow here", "use letters, digits and `-`", codes.HEADER
        )
    return text


def parse_method(value: object) -> str:
    """An HTTP method. They are compared with case, and the known ones are in capitals (RFC 9110, section 9.1)."""
    method = parse_token(value)
    if method != method.upper():
        raise refused(f"methods are in capitals, and `{method}` would match none", f"write `{method.upper()}`")
    return method


def parse_host(value: object) -> str:
    """A domain in lower case, which Envoy compares without case; `*.` in front takes every name below it."""
    host = text_value(value).lower()
    if host == "*":
        raise refused("`*` would take every host that has no service", "write `*.` and a domain", codes.HOST)
    if not _DOMAIN.fullmatch(host) or len(host) > 255:
        raise refused(f"`{value}` is no host", "write a domain such as `checkout.internal`", codes.HOST)
    return host


def parse_new_host(value: object) -> str:
    """What a rewrite or redirect puts in place of the host."""
    host = text_value(value)
    if not _PLAIN_DOMAIN.fullmatch(host.lower()) or len(host) > 255:
        raise refused(f"`{host}` is no host", "write a domain such as `checkout.internal`", codes.HOST)
    return host


def parse_port(value: object) -> int | str:
    """A service's port by number or by name."""
    if isinstance(value, str):
        if value.isdigit() or not _PORT_NAME.fullmatch(value):
            fix = f"write `{value}`, without quotes" if value.isdigit() else "write its name or its number"
            raise refused(f"`{value}` is no port", fix)
        return value
    return port_number(value)


def parse_destination(value: object) -> str:
    """The form of a destination; `convert.destination` says what it means in its file."""
    text = text_value(value)
    match = _DESTINATION.fullmatch(text)
    if match is None or ".." in text:
        raise refused(
            f"`{text}` is no destination", "write a subset, `service`, `service.namespace` or `service:port`",
            codes.DESTINATION,
        )  # fmt: skip
    labels = match["name"].split(".")
    if "svc" in labels[2:]:
        raise refused(
            f"`{text}` is a DNS name", f"write `{labels[0]}.{labels[1]}`, without `.svc`", codes.DESTINATION
        )
    if match["port"] and match["port"].isdigit():
        port_number(int(match["port"]))
    return text


def parse_listen(value: object) -> tuple[str, int]:
    """An IP address in canonical form, and a port."""
    text = text_value(value)
    address, colon, port = text.rpartition(":")
    bracketed = address.startswith("[") and address.endswith("]")
    try:
        ip = ipaddress.ip_address(address[1:-1] if bracketed else address)
    except ValueError:
        ip = None
    if ip is None or not colon or not port.isdigit() or bracketed is not (ip.version == 6):
        raise refused(f"`{text}` is no address to listen on", "write it like `127.0.0.1:5432`", codes.LISTEN)
    return str(ip), port_number(int(port))


def check_substitution(pattern: str, substitution: str) -> None:
    """Raise what `refused` makes unless RE2 would take the substitution for this pattern."""
    groups = re2.compile(pattern, _quiet).groups
    for found in re.finditer(r"\\(.?)", substitution, re.DOTALL):
        if not (found[1].isdigit() or found[1] == "\\"):
            fix = r"write `\1` for a group, or `\\` for a backslash"
            raise refused(f"`{found[0]}` means nothing in a substitution", fix, codes.SUBSTITUTION)
        if found[1].isdigit() and int(found[1]) > groups:
            what = "has no group" if groups == 0 else f"has only {groups} group{'s' if groups > 1 else ''}"
            raise refused(
                f"the regex {what}, so there is no `{found[0]}`", "put `(...)` around it", codes.SUBSTITUTION
            )


def without_case_twins(value: object) -> object:
    """A mapping by header names, in which two that differ only in case would silently become one."""
    if isinstance(value, Mapping):
        seen: dict[str, str] = {}
        for key in value:
            twin = seen.setdefault(str(key).lower(), str(key))
            if twin != key:
                raise refused(f"`{twin}` and `{key}` are the same header", "keep one of the two", codes.HEADER)
    return value


def _command_fault(bad: str) -> tuple[str, str]:
    """What is wrong with a piece of a header's value that Envoy would refuse, and a fix."""
    name = re.match(r"%([A-Z0-9_]+)[(:%]", bad)
    if name is None:
        return "a single `%` begins a command to Envoy, and this is none", "write `%%` for a percent sign"
    if name[1] in COMMANDS:
        return f"`{bad}` is not how Envoy's command {name[1]} is written", "see Envoy's substitution format strings"
    near = nearest(name[1], COMMANDS)
    return (
        f"Envoy has no command `{name[1]}`",
        f"did you mean `%{near}%`?" if near else "write `%%` for a percent sign",
    )


def _re2_reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _re2_fix(pattern: str) -> str:
    if re.search(r"\(\?<?[=!]", pattern):
        return "RE2 has no look-around: match what is wanted, in a rule above the one for the rest"
    if re.search(r"\\[1-9]", pattern):
        return "RE2 has no back-references"
    return "see github.com/google/re2/wiki/Syntax"


def _string(title: str, pattern: str = "", **more: Any) -> WithJsonSchema:
    return WithJsonSchema({"title": title, "type": "string"} | ({"pattern": pattern} if pattern else {}) | more)


TimeoutValue = Annotated[
    Timeout,
    PlainValidator(parse_timeout),
    _string(
        "duration or `infinity`",
        r"^(([0-9]+(\.[0-9]{1,3})?(ms|s|m|h))+|infinity)$",
        examples=["3s", "800ms", "infinity"],
    ),
]
"""A duration, or `infinity` for no limit."""
PathText = Annotated[str, PlainValidator(parse_path), _string("path", "^/")]
PrefixText = Annotated[str, PlainValidator(parse_prefix), _string("path", "^/")]
NewPath = Annotated[str, PlainValidator(parse_new_path), _string("path", "^/")]
Regex = Annotated[str, PlainValidator(parse_regex), _string("regex", format="regex", minLength=1)]
HeaderName = Annotated[str, PlainValidator(parse_header_name), _string("header")]
EditedHeader = Annotated[str, PlainValidator(parse_edited_header), _string("header")]
HeaderValue = Annotated[str, PlainValidator(parse_header_value), _string("text")]
Token = Annotated[str, PlainValidator(parse_token), _string("name")]
Method = Annotated[
    str, PlainValidator(parse_method), _string("method", "^[A-Z0-9!#$%&'*+.^_`|~-]+$", examples=["GET", "POST"])
]
Host = Annotated[
    str, PlainValidator(parse_host), _string("host", examples=["checkout.internal", "*.shop.example.com"])
]
NewHost = Annotated[str, PlainValidator(parse_new_host), _string("host")]
Port = Annotated[
    int | str,
    PlainValidator(parse_port),
    WithJsonSchema(
        {"title": "port", "anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string"}]}
    ),
]
"""A service's port by number or name."""
DestinationText = Annotated[
    str,
    PlainValidator(parse_destination),
    _string("destination", examples=["canary", "checkout-v2", "checkout-v2.shop:8080"]),
]
Listen = Annotated[
    tuple[str, int], PlainValidator(parse_listen), _string("`address:port`", examples=["127.0.0.1:5432"])
]
ServiceText = Annotated[
    str, PlainValidator(name_of("service name", 253, dotted=True)), _string("name", maxLength=253)
]
NamespaceText = Annotated[str, PlainValidator(name_of("namespace")), _string("name", maxLength=63)]
SourceText = Literal["service-files", "kubernetes", "consul"]
SubsetText = Annotated[str, PlainValidator(name_of("subset name")), _string("name", maxLength=63)]
RuleText = Annotated[str, PlainValidator(name_of("rule name")), _string("name", maxLength=63)]
ByHeader = Annotated[dict[HeaderName, V], BeforeValidator(without_case_twins)]
ByEditedHeader = Annotated[dict[EditedHeader, V], BeforeValidator(without_case_twins)]
Words = Annotated[str, PlainValidator(text_value), _string("text", minLength=1)]
