"""Writes what is made from the models: schema/route.v1.json and docs/reference/route-files.md.

`python -m routes.reference`, after every change to the format; a test says when that was forgotten.
"""

from pathlib import Path

from operator_files.codes import CODES as FORM_CODES
from operator_files.reference import codes_section, keys_sections
from operator_files.schema import json_schema, schema_text
from routes.codes import CODES
from routes.model import RouteFile

_ROOT = Path(__file__).parent.parent
SCHEMA = _ROOT / "schema" / "route.v1.json"
PAGE = _ROOT / "docs" / "reference" / "route-files.md"
TITLE = "A Swashplate route file, version 1"

_HEAD = """\
# Route files

<!-- Written by `python -m routes.reference` from routes/model. -->

One file describes how requests to one service are routed; a directory of them (`--routes DIR`, `*.yaml`, `*.yml`,
`*.json`, in any depth) is the whole route configuration. A discovered service without a file gets everything sent to
all its endpoints. With the first line below, editors complete and check as you type.

```yaml
# yaml-language-server: $schema=../schema/route.v1.json
version: 1
service: checkout
subsets:
  stable: {version: v41}
  canary: {version: v42}
defaults:
  timeout: 3s
  retry: {attempts: 2, on: [connect-failure, 5xx], per_try: 800ms}
rules:
- name: testers
  match:
  - headers: {x-tester: "1"}
  to: canary
- name: main
  to: {stable: 90%, canary: 10%}
  sticky: {header: x-user-id}
cluster:
  circuit_breaker: {connections: 200, pending: 100}
  outlier: {consecutive_5xx: 5, eject_for: 30s}
```

## How it is read

**YAML.** The core schema of YAML 1.2: `no`, `on` and `12:30` are text. JSON is YAML. A key that is unknown, written
twice, or has no value is an error; so are merge keys (`<<`) and a second document. Text that looks like a number
must be quoted where text is wanted (`{version: "1.10"}`).

**Durations** are `800ms`, `3s`, `1.5s`, `1h30m`. A key that is not there means the default, `infinity` means no
limit (where the key's table says so), and `0s` is refused, because Envoy takes zero for "no limit".

**Percentages** have the sign, and steps of 0.01. The shares of a split sum to exactly 100%. `0%` keeps a
destination warm (its endpoints are known and its connections may be made), but it never receives a request.

**Rules** are tried in order, and the first match wins. The last one has no `match` and takes the rest. In a
`match`, the entries of the list are alternatives, and the keys of one entry must all hold. A rule that earlier ones
leave nothing for is an error, as far as that can be told: prefixes, exact values, methods and the same regex are
compared, two different regexes are not.

**Destinations**: a name is a subset of the file; else a service in the file's own namespace, or `name.namespace`
(what follows the last dot is the namespace), either with `:port`, by number or name. The file's own service without
a port is all its endpoints on the file's `port`. An edit in which a plain name is neither a subset nor a known
service is not taken until such a service appears, since it is most likely a misspelt subset.

**Sources.** `sources: {kubernetes: 90%, consul: 10%}` splits the requests between the sources that have endpoints of
the service, port by port and whatever their numbers, as far as whole weights and the load balancing policy allow
(`random` heeds no weights). A source without a healthy endpoint does not count: its share goes to the others. The
endpoints of a source with 0% are left out while another source has any. What two sources both have is the first
one's, in the order `service-files`, `kubernetes`, `consul`.

**Defaults** go into every rule that lacks the key, as a whole: a rule's own `retry: {attempts: 1}` has none of the
keys of the default `retry`. `retry: {attempts: 0}` turns them off.

**Last good wins.** A file with any error keeps its last good version in force; warnings do not hold an edit up.
Other files are never affected. Where there never was a good version, the service answers 503, with the first
problem's code as the body. A service and a host belong to one file: an edit that takes what another file has is the
error of the edited file, and is taken by itself as soon as the other lets go. Where both are new, the file whose
path comes first has it; a host that is lost so costs the other file that host only.

**Deletions** are obeyed at once. After a restart (with `--state`), a file that is missing or empty is held instead:
its last good version serves on until `swashplate confirm`, or until another file describes its service.

**Patches** are merged last into one generated Envoy resource, as in JSON Merge Patch (RFC 7386): mappings merge key
by key, null deletes, everything else (lists too) is replaced. They are checked against Envoy's own message types.
Names, domains and addresses cannot be patched.

"""


def page() -> str:
    """The reference page."""
    schema = json_schema(RouteFile, TITLE)
    problems = codes_section((*FORM_CODES, *CODES))
    return (
        _HEAD
        + keys_sections(schema, "The file")
        + "\n## Problems\n\nEach with file, line and column, the line itself with a caret, and a fix. "
        + "`swashplate check` shows all problems of all files.\n\n"
        + problems
    )


def main() -> None:
    for path, text in ((SCHEMA, schema_text(RouteFile, TITLE)), (PAGE, page())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
