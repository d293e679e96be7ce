"""`swashplate rbac`: the least rights in Kubernetes for the settings given."""

import click

from discovery.kubernetes.rbac import rules
from swashplate.options import with_settings
from swashplate.ratelimit_settings import OF_HOST
from swashplate.registry_settings import kubernetes_settings
from swashplate.settings import KUBERNETES_RIGHTS, Settings

_OF_SERVE = tuple(name for name in Settings.model_fields if name not in OF_HOST)


@click.command(name="rbac", short_help="Print the least rights in Kubernetes that discovery needs.")
@with_settings(*_OF_SERVE, unlisted=frozenset(_OF_SERVE) - frozenset(KUBERNETES_RIGHTS))
@click.option(
    "--service-account",
    default="swashplate/swashplate",
    show_default=True,
    metavar="NAMESPACE/NAME",
    help="Who gets the rights.",
)
def command(settings: Settings, service_account: str) -> None:
    """Print roles and bindings with the least rights that discovery from Kubernetes needs with these settings, for
    kubectl: a Role in each of the namespaces that are named, else a ClusterRole. The other flags of `serve` are
    taken too, and change nothing.

    \b
    swashplate rbac --kubernetes-namespaces shop,web | kubectl apply -f -
    """
    namespace, slash, account = service_account.partition("/")
    if not (slash and namespace and account):
        raise click.BadParameter("write NAMESPACE/NAME", param_hint="--service-account")
    click.echo(rules(kubernetes_settings(settings), account=account, namespace=namespace), nl=False)
