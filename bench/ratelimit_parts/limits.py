"""Limit files, and requests that meet their limits."""

from pathlib import Path
from typing import Final

PLENTY: Final = 4_000_000_000
"""As many a minute as an answer can say: no row but the one of denied calls comes near it."""

DESCRIPTORS: Final = (
    "api_key=*",
    "generic_key=checkout",
    "remote_address=10.1.2.3",
    "source_cluster=storefront,destination_cluster=checkout",
    "path=/pay,method=POST",
)
"""Of one request, the first so many. A * is the call's key."""

DENIED: Final = "banned=*"
TENANT: Final = "tenant=tenant-7,api_key=*"
"""Meets a limit that stands among those of which there are many."""

_FILE: Final = f"""\
domain: mesh
descriptors:
  - {{key: api_key, rate_limit: {{unit: minute, requests_per_unit: {PLENTY}}}}}
  - {{key: banned, rate_limit: {{unit: hour, requests_per_unit: 1}}}}
  - {{key: generic_key, value: checkout, rate_limit: {{unit: minute, requests_per_unit: {PLENTY}}}}}
  - {{key: remote_address, rate_limit: {{unit: minute, requests_per_unit: {PLENTY}}}}}
  - key: source_cluster
    value: storefront
    descriptors:
      - {{key: destination_cluster, value: checkout, rate_limit: {{unit: minute, requests_per_unit: {PLENTY}}}}}
      - {{key: destination_cluster, rate_limit: {{unit: minute, requests_per_unit: {PLENTY}}}}}
  - key: path
    value: /pay
    descriptors:
      - {{key: method, value: POST, rate_limit: {{unit: minute, requests_per_unit: {PLENTY}}}}}
"""

_TENANT: Final = f"""\
  - key: tenant
    value: tenant-{{number}}
    descriptors:
      - {{{{key: api_key, rate_limit: {{{{unit: minute, requests_per_unit: {PLENTY}}}}}}}}}
"""


def write_limits(directory: Path, tenants: int) -> None:
    """A file with a few limits of many kinds, and one for each tenant."""
    (directory / "mesh.yaml").write_text(_FILE + "".join(_TENANT.format(number=number) for number in range(tenants)))
