"""Writes what is made from the models: schema/resources.v1.json and docs/reference/resource-files.md.

`python -m xds.raw.reference`, after every change to the format; a test says when that was forgotten.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from operator_files.codes import CODES as FORM_CODES
from operator_files.reference import codes_section, keys_sections
from operator_files.schema import json_schema, schema_text
from xds.raw.codes import CODES
from xds.raw.model import ResourceFile
from xds.raw.rotor import StaticFile

_ROOT: Final = Path(__file__).parent.parent.parent
SCHEMA: Final = _ROOT / "schema" / "resources.v1.json"
PAGE: Final = _ROOT / "docs" / "reference" / "resource-files.md"
TITLE: Final = "A file of Envoy's own resources, as Swashplate reads it"

_HEAD: Final = """\
# Resource files

<!-- Written by `python -m xds.raw.reference` from xds/raw/model.py. -->

`--resources PATH` names a directory of `*.yaml`, `*.yml` and `*.json` files (in any depth; names that begin with a
dot are left out), or one such file. They hold Envoy's own messages in the form of its file subscriptions, and are
served as they are written, beside what is made of services and routes. Without `--services` and `--routes`, they
are all that is served. The directory is watched.

```yaml
# yaml-language-server: $schema=../schema/resources.v1.json
nodes:
  clusters: [edge]
resources:
- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: legacy
  type: STRICT_DNS
  connect_timeout: 1s
  load_assignment:
    cluster_name: legacy
    endpoints:
    - lb_endpoints:
      - endpoint: {address: {socket_address: {address: legacy.internal, port_value: 80}}}
- '@type': type.googleapis.com/envoy.config.route.v3.VirtualHost
  name: egress/legacy
  domains: [legacy, legacy.internal]
  routes:
  - {match: {prefix: /}, route: {cluster: legacy}}
```

## How it is read

**Types.** Any message of Envoy's v3 API that has a name: clusters, assignments (ClusterLoadAssignment), listeners,
route tables (RouteConfiguration), virtual hosts, scoped routes, secrets, filter configs (TypedExtensionConfig),
runtime layers (Runtime). Fields are checked against the API; their names are those of the proto files or
lowerCamelCase. A resource in an `envoy.service.discovery.v3.Resource` may have a `ttl`.

**Last good wins, for each resource.** A resource with an error keeps its last good version, and is left out where
there was none; all others of the file are taken. One that is deleted is gone at once, unless something in the file
cannot even be told by type and name: that may be the one, so nothing goes until it is mended. A file that is no
YAML, or whose `nodes` has an error, stays as it was. After a restart (with `--state`), a file that is missing or
empty is held until `swashplate confirm`. The state directory then holds the secrets of these files too.

**Names.** Of two resources with one type and name, that of the more special file wins for a node: `ids` before
`metadata` before `clusters` before everybody, then the path that comes first. In files for exactly the same nodes
the loser is an error. A raw resource takes the place of a generated one of its type and name, which is a warning.

**Virtual hosts** are named `table/name`, and join that table: `egress/...` is that of the egress listener. A domain
belongs to one virtual host of a table. A generated virtual host loses it to a raw one (a warning), and of two raw
ones the later loses it (an error). It loses that domain only; one that has none left is not served.

**Listeners.** A generated listener is left out where a raw one listens at its address; `0.0.0.0` is every address.

**Rollout.** New clusters are ready before the listeners, tables and virtual hosts that name them are sent, and stay
for a while after the last of these is gone, whoever wrote them. What only an Envoy finds wrong stays behind at that
Envoy alone, with its words in `swashplate status`.

**What is in use is not taken away.** A filter config or a secret that is deleted stays with the Envoys that use it
until their listener or cluster does not name it any more; without it they would fail every request.

**Secrets** are blacked out wherever people look: `swashplate render`, `/config`, status, logs and problems. Paths
are not secrets.

"""

_ROTOR: Final = """\
## Rotor's static resources

`--rotor-static FILE` reads the static resources file of Rotor: the same resources, by kind instead of by `@type`,
for all nodes. They are of Envoy's v3 API; of v2, the one that Rotor spoke, `hosts` and `tls_context`, and filters
and access logs without a type, are read too. The rules above hold; resource files win over it.

```yaml
cluster_template:
  connect_timeout: 0.5s
  circuit_breakers: {thresholds: [{max_connections: 2000}]}
clusters:
- name: legacy
  type: STATIC
  connect_timeout: 1s
listeners: []
load_assignments: []
```

What `cluster_template` says holds for every generated cluster, but for what the route file of its service says, for
its name, its endpoints and its protocol; each of its fields counts as a whole. With `--rotor-static-conflicts
overwrite`, nothing generated is served of a kind that the file has.

"""


def page() -> str:
    """The reference page."""
    schema = json_schema(ResourceFile, TITLE)
    return (
        _HEAD
        + keys_sections(schema, "The file")
        + "\n"
        + _ROTOR
        + keys_sections(json_schema(StaticFile, ""), "Rotor's file")
        + "\n## Problems\n\nEach with file, line and column, and a fix. `swashplate check` shows all problems of all "
        + "files.\n\n"
        + codes_section((*FORM_CODES, *CODES))
    )


def files() -> Iterator[tuple[Path, str]]:
    """What is written where."""
    yield SCHEMA, schema_text(ResourceFile, TITLE)
    yield PAGE, page()


def main() -> None:
    for path, text in files():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
