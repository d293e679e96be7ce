"""docs/reference/lighthouse-keys.md, written from the models: `python -m discovery.lighthouse.reference`."""

from pathlib import Path
from typing import Final

from discovery.lighthouse.codes import CODES
from discovery.lighthouse.model import BalancerV1Spec, BalancerV2Spec, DiscoveryValue
from operator_files.codes import CODES as FORM_CODES
from operator_files.codes import UNKNOWN_KEY
from operator_files.reference import codes_section, keys_sections
from operator_files.schema import json_schema

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "reference" / "lighthouse-keys.md"

_HEAD: Final = """\
# Lighthouse keys

<!-- Written by `python -m discovery.lighthouse.reference` from discovery/lighthouse/model.py. -->

With `--lighthouse`, the keys that Nelson writes into Consul's KV store are followed. The last part of a key is the
stack that it is about, or any other name that nodes have as their cluster. How it all works together is in the
[guide](../guide/lighthouse.md).

Values are JSON. They are written by another program, so a key that is not known here is passed over with a warning. A
value with an error is not taken: what the key said last goes on, and no other key is affected.

"""


def page() -> str:
    """The reference in Markdown."""
    parts = [
        keys_sections(json_schema(DiscoveryValue, ""), "`lighthouse/discovery/v1/STACK`"),
        keys_sections(json_schema(BalancerV1Spec, ""), "An entry in the list of `nelson/loadbalancers/v1/STACK`"),
        keys_sections(json_schema(BalancerV2Spec, ""), "An entry in the list of `nelson/loadbalancers/v2/STACK`"),
        "## Problems\n\nEach with the key, line and column, as `consul:lighthouse/discovery/v1/STACK:1:42`.\n\n"
        + codes_section((*(code for code in FORM_CODES if code != UNKNOWN_KEY), *CODES)),  # here it is N001
    ]
    return _HEAD + "\n".join(parts)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
