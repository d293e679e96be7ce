"""`swashplate render`: what a node gets."""

import json

import click

from swashplate import admin_client
from swashplate.offline import read
from swashplate.options import with_settings
from swashplate.output import UnusableError, format_option, print_data
from swashplate.rendering import NEWEST_ENVOY, envoy_version, rendered
from swashplate.settings import Settings, has_source
from xds.resources.node import Node


@click.command(name="render", short_help="Print the exact Envoy configuration of a node.")
@with_settings(
    *("services", "routes", "resources", "rotor_static", "rotor_static_conflicts"),
    *("namespace", "cluster_domain", "egress", "ingress", "system_roots", "locality"),
)
@click.option("--node", "node_id", required=True, help="The node's id.")
@click.option("--cluster", help="Name of the node's own service.  [default: what it said itself, else its id]")
@click.option("--envoy-version", metavar="VERSION", help="The node's Envoy, such as 1.36.  [default: the newest]")
@click.option("--server", metavar="URL", help="Ask this running server, at its admin address, instead of files.")
@format_option("yaml", "json")
def command(
    settings: Settings, node_id: str, cluster: str | None, envoy_version: str | None, server: str | None, output: str
) -> None:
    """Print the exact Envoy configuration of a node: clusters, endpoints, listeners, routes.

    It is made from the files, like the server makes it; with --server, it is what that server has for the node now.
    """
    if server is not None:
        query = {"node": node_id, "cluster": cluster, "envoy_version": envoy_version}
        (answer,) = admin_client.ask([server], "/config", {key: value for key, value in query.items() if value})
        if isinstance(answer, admin_client.Unreachable):
            raise UnusableError(str(answer))
        print_data(json.loads(answer), output)
    elif not has_source(settings):
        raise click.UsageError("there is nothing to render: give --services, --routes, --resources or --server")
    else:
        print_data(_from_files(settings, node_id, cluster, envoy_version), output)


def _from_files(settings: Settings, node_id: str, cluster: str | None, version: str | None) -> dict[str, object]:
    try:
        node = Node(node_id, cluster or node_id, version=envoy_version(version) if version else NEWEST_ENVOY)
    except ValueError as failure:
        raise click.BadParameter(str(failure), param_hint="--envoy-version") from failure
    try:
        offline = read(settings)
    except OSError as failure:
        raise UnusableError(f"{failure.filename}: {failure.strerror}") from failure
    for problem in offline.problems:
        if problem.is_error:
            click.echo(problem.render(), err=True)
    return dict(rendered(offline.views.view(node)))
