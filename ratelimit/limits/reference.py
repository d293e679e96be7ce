"""Writes what is made from the model: schema/limits.v1.json and docs/reference/limit-files.md.

`python -m ratelimit.limits.reference`, after every change to the format; a test says when that was forgotten.
"""

from pathlib import Path

from operator_files.codes import CODES as FORM_CODES
from operator_files.reference import codes_section, keys_sections
from operator_files.schema import json_schema, schema_text
from ratelimit.limits.codes import CODES
from ratelimit.limits.model import LimitFile

_ROOT = Path(__file__).parent.parent.parent
SCHEMA = _ROOT / "schema" / "limits.v1.json"
PAGE = _ROOT / "docs" / "reference" / "limit-files.md"
TITLE = "A Swashplate limit file, version 1: envoyproxy/ratelimit's, and more"

_HEAD = """\
# Limit files

<!-- Written by `python -m ratelimit.limits.reference` from ratelimit/limits. -->

The configuration files of envoyproxy/ratelimit, unchanged: one file describes one domain, a directory of them
(`*.yaml`, `*.yml`, `*.json`, in any depth; names that begin with a dot are left out) all domains. What they mean
is in [the guide](../guide/limits.md). With the first line below, editors complete and check as you type.

```yaml
# yaml-language-server: $schema=../schema/limits.v1.json
domain: shop
descriptors:
- key: remote_address
  rate_limit: {unit: minute, requests_per_unit: 600}
- key: tenant
  rate_limits:
  - {unit: second, requests_per_unit: 20}
  - {unit: hour, requests_per_unit: 10000}
  descriptors:
  - key: path
    value: /search*
    share_threshold: true
    rate_limit:
      unit: minute
      unit_multiplier: 5
      requests_per_unit: 500
      algorithm: token_bucket
      burst: 50
```

## How it is read

**YAML.** As other operator files, by the core schema of YAML 1.2; JSON is YAML. But a file that
envoyproxy/ratelimit reads means the same here: merge keys (`<<`) are obeyed, `yes` and `on` are true where true or
false is wanted, numbers and `true` are text where text is wanted, `0100` is octal, and a key without a value is as
if it were not there. What most likely was meant otherwise is a warning. A key that comes twice, and a second
document, are errors here; there the last key and the first document win.

**Unknown keys** are errors. A known key in a place where it means nothing is a warning, as envoyproxy/ratelimit
ignores it there.

**Last good wins.** A file with any error keeps its last good version in force; warnings do not hold an edit up.
Other domains are never affected. A file that is empty or cannot be read is in error.

**One domain, one file.** An edit that takes the domain of another file is the error of the edited file, and is
taken by itself as soon as the other lets go; where both are new, the file whose path comes first has it. Where
domains are merged, this holds of the key and value of each descriptor of the first level instead, and a domain's
descriptors stand in the order of the files' paths.

**Deletions** are obeyed at once: a domain without a file has no limits. After a restart with a state directory, a
file that is missing or empty is held instead: its last good version serves on until an operator confirms the
removal, or until other files describe what it did.

**A RateLimitConfig** (the form that envoyproxy/ratelimit takes over xDS) is read too, as JSON or YAML with the
names of its fields as in the proto file (`requests_per_unit`).

"""


def page() -> str:
    """The reference page."""
    return (
        _HEAD
        + keys_sections(json_schema(LimitFile, TITLE), "The file")
        + "\n## Problems\n\nEach with file, line and column, the line itself with a caret, and a fix. "
        + "All problems of all files show at once.\n\n"
        + codes_section((*FORM_CODES, *CODES))
    )


def main() -> None:
    for path, text in ((SCHEMA, schema_text(LimitFile, TITLE)), (PAGE, page())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
