"""`swashplate bootstrap`: what an Envoy, or a gRPC client, needs to find this server."""

import json
from typing import Any

import click

from mesh.service import Locality
from swashplate.address import Address
from swashplate.bootstrap import Client, envoy_bootstrap, grpc_bootstrap
from swashplate.options import with_settings
from swashplate.output import format_option, print_data
from swashplate.settings import Settings


class _AddressType(click.ParamType[Address]):
    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return value if isinstance(value, Address) else Address.parse(value)
        except ValueError as failure:
            self.fail(str(failure), param, ctx)


def _filled(_: click.Context, __: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("this must not be empty")
    return value


@click.command(name="bootstrap", short_help="Print the bootstrap of an Envoy or a gRPC client.")
@with_settings("listen", "rest", "rest_refresh")
@click.option("--node", "node_id", required=True, callback=_filled, help="The node's id, unique in the fleet.")
@click.option(
    "--cluster",
    help="Name of the node's own service: web, or web.shop for one of another namespace.  [default: the node's id]",
)
@click.option("--region", default="", help="Where the node runs.")
@click.option("--zone", default="", help="Where the node runs, in the region.")
@click.option("--sub-zone", default="", help="Where the node runs, in the zone.")
@click.option(
    "--metadata",
    multiple=True,
    metavar="KEY=VALUE",
    help=(
        "Node metadata; VALUE is JSON, or else text. May be repeated. The server heeds `namespace` (whose short "
        "names the node uses) and `service` (its own service, if that is not its cluster)."
    ),
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    type=_AddressType(),
    help="Address of a server. May be repeated for several replicas.  [default: the listen setting]",
)
@click.option(
    "--envoy-admin",
    type=_AddressType(),
    default="127.0.0.1:9901",
    show_default=True,
    help="Where the Envoy's own admin interface listens.",
)
@click.option("--sotw", is_flag=True, help="State-of-the-world ADS, instead of incremental.")
@click.option("--poll", is_flag=True, help="Polling over REST (see the setting rest), instead of ADS.")
@click.option("--grpc", is_flag=True, help="The JSON of GRPC_XDS_BOOTSTRAP instead, for a proxyless gRPC client.")
@format_option("yaml", "json")
def command(
    settings: Settings,
    node_id: str,
    cluster: str | None,
    region: str,
    zone: str,
    sub_zone: str,
    metadata: tuple[str, ...],
    servers: tuple[Address, ...],
    envoy_admin: Address,
    sotw: bool,
    poll: bool,
    grpc: bool,
    output: str,
) -> None:
    """Print the bootstrap of an Envoy: who it is, and where it gets its configuration from.

    \b
    swashplate bootstrap --node web-1 --cluster web > bootstrap.yaml
    envoy -c bootstrap.yaml --disable-hot-restart -l warning
    """
    addresses = servers or (settings.listen.reachable,)
    if poll and settings.rest is None:
        raise click.UsageError("--poll needs the address of the servers' REST polling: --rest")
    rest_port = settings.rest.port if settings.rest else 0
    client = Client(
        node_id=node_id,
        cluster=cluster or node_id,
        servers=addresses,
        polls=tuple(server._replace(port=rest_port) for server in addresses) if poll else (),
        refresh=settings.rest_refresh.total_seconds(),
        locality=Locality(region, zone, sub_zone),
        metadata=dict(_metadata(item) for item in metadata),
        admin=envoy_admin,
        incremental=not sotw,
    )
    if grpc:
        # gRPC reads JSON only.
        print_data(grpc_bootstrap(client), "json")
    else:
        print_data(envoy_bootstrap(client), output)


def _metadata(item: str) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    if not (key and equals):
        raise click.BadParameter(f"{item!r} is not KEY=VALUE", param_hint="--metadata")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
