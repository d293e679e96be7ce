"""`swashplate explain`: why requests go where they go, and why instances get none."""

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import click
from pydantic import ValidationError
from rich.console import RenderableType

from swashplate import admin_client
from swashplate.explain import text
from swashplate.explain.reports import EndpointReport, RouteReport, ServiceReport
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UNUSABLE, complain, format_option, server_option, servers_or_default
from swashplate.settings import Settings

R = TypeVar("R", EndpointReport, RouteReport, ServiceReport)


@click.group(name="explain", short_help="Say why requests go where they go, and why instances get none.")
def command() -> None:
    """Ask a running server why a request goes where it goes, or what became of the instances of a service."""


@command.command(name="endpoint", short_help="What became of an instance: used, or left out and why.")
@with_settings("admin")
@server_option
@format_option("text", "json")
@click.argument("instance")
def endpoint(settings: Settings, servers: tuple[str, ...], output: str, instance: str) -> None:
    """Say what became of INSTANCE: an address, an address with its port, or a name, such as a pod's.

    Every match is shown, with its service and source: used, or left out, with the reason and what to do. Where there
    is none, what is watched and what to check.

    \b
    swashplate explain endpoint 10.0.3.17
    swashplate explain endpoint checkout-7d9f5c-x2x9k

    Exit code 1 when nobody has it, or it is used for nothing.
    """
    reports = _asked(settings, servers, "/explain/endpoint", [("of", instance)], EndpointReport)
    _print(reports, output, text.of_endpoint)
    if not any(one.used for report in reports for one in report.seen):
        raise click.exceptions.Exit(PROBLEMS)


@command.command(name="service", short_help="All instances of a service, or all that are left out of any.")
@with_settings("admin")
@server_option
@format_option("text", "json")
@click.argument("name", required=False)
def service(settings: Settings, servers: tuple[str, ...], output: str, name: str | None) -> None:
    """List the instances of the service NAME (`checkout`, or `checkout.shop`): those that are left out first, each
    with the reason, then those that are used, with the weight that their source says (and the one that proxies get,
    where it is another), and what part of the requests each source gets. Without NAME, what is left out of any.

    \b
    swashplate explain service checkout.shop
    swashplate explain service

    Exit code 1 when nobody has the service, or none of its instances is used.
    """
    reports = _asked(settings, servers, "/explain/service", [("of", name or "")], ServiceReport)
    _print(reports, output, text.of_service)
    if name and not any(report.used for report in reports):
        raise click.exceptions.Exit(PROBLEMS)


@command.command(name="route", short_help="What becomes of a request: which rule takes it, and where it goes.")
@with_settings("admin")
@server_option
@format_option("text", "json")
@click.option("-X", "--method", default="GET", show_default=True, help="The request's method.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME:VALUE", help="A header. May be repeated.")
@click.option("--node", metavar="ID", help="The node that the request goes through.  [default: one that is nobody's]")
@click.option("--cluster", help="Name of that node's own service, or of a caller of Lighthouse's.")
@click.argument("target", metavar="HOST[:PORT][/PATH][?QUERY]")
def route(
    settings: Settings,
    servers: tuple[str, ...],
    output: str,
    method: str,
    headers: tuple[str, ...],
    node: str | None,
    cluster: str | None,
    target: str,
) -> None:
    """Say what becomes of a request: its service, every rule that is tried and why it does not take it, the rule that
    does, and the endpoints behind each destination.

    \b
    swashplate explain route checkout/orders
    swashplate explain route -X POST -H x-tester:1 'checkout:8080/orders?beta=1' --node web-1

    Exit code 1 when the request would get an error, always or by its share of a split: no service, no rule, no
    endpoint.
    """
    query = [("target", target), ("method", method), *(("header", header) for header in headers)]
    query += [(name, value) for name, value in (("node", node), ("cluster", cluster)) if value]
    reports = _asked(settings, servers, "/explain/route", query, RouteReport)
    _print(reports, output, text.of_route)
    if any(report.failed for report in reports):
        raise click.exceptions.Exit(PROBLEMS)


def _asked(
    settings: Settings, servers: tuple[str, ...], path: str, query: list[tuple[str, str]], kind: type[R]
) -> list[R]:
    """What each server says. Ends the command where one cannot be asked."""
    asked = servers_or_default(servers, settings)
    found, failed = [], False
    for server, answer in zip(asked, admin_client.ask(asked, path, query), strict=True):
        try:
            if isinstance(answer, admin_client.Unreachable):
                raise ValueError(str(answer))
            found.append(kind.model_validate_json(answer))
        except ValidationError:
            failed = True
            complain(f"{server}: this is not the answer of a swashplate server")
        except ValueError as failure:
            failed = True
            complain(str(failure))
    if failed:
        raise click.exceptions.Exit(UNUSABLE)
    return found


def _print(reports: Iterable[R], output: str, render: Callable[[R], Iterable[RenderableType]]) -> None:
    for report in reports:
        if output == "json":
            click.echo(report.model_dump_json(indent=2))
        else:
            text.show(render(report), sys.stdout)
