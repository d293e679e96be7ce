"""`python -m swashplate.demo`: what `make run` runs."""

import asyncio
import os
from pathlib import Path

import click

from swashplate import envoy_binary
from swashplate.address import Address
from swashplate.demo import DemoError
from swashplate.demo.example import Example
from swashplate.demo.ports import Taken, Wanted, free_above, taken
from swashplate.demo.stage import Places, perform

HOST = "127.0.0.1"
PORT = click.IntRange(1, 65535)


@click.command(context_settings={"auto_envvar_prefix": "SWASHPLATE_DEMO", "show_default": True})
@click.option("--xds-port", type=PORT, default=18000, help="Where Envoy gets its configuration.")
@click.option("--admin-port", type=PORT, default=18001, help="The control plane's admin HTTP server.")
@click.option("--egress-port", type=PORT, default=10000, help="Where Envoy takes the example's traffic.")
@click.option("--envoy-admin-port", type=PORT, default=9901, help="Envoy's own admin interface.")
@click.option(
    "--example",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("envoy-configs"),
    help="Folder with services.yaml, whose endpoints are started as upstreams, and routes/.",
)
@click.option("--envoy", type=click.Path(path_type=Path, dir_okay=False), help="The Envoy binary to run.")
@click.option(
    "--redis", default="", show_default=False, help="URL of a Redis that counts for rate limits. Default: in memory."
)
def main(
    xds_port: int,
    admin_port: int,
    egress_port: int,
    envoy_admin_port: int,
    directory: Path,
    envoy: Path | None,
    redis: str,
) -> None:
    """Run the example: the control plane, its upstreams, and a real Envoy. Ctrl-C ends all of them.

    Each option can also be set by an environment variable, such as SWASHPLATE_DEMO_EGRESS_PORT.
    """
    try:
        if (binary := envoy_binary.find(envoy)) is None:
            raise DemoError("There is no Envoy here. `make install` installs one; or name one with --envoy.")
        example = Example.read(directory)
        places = Places(*(Address(HOST, port) for port in (xds_port, admin_port, egress_port, envoy_admin_port)))
        if found := taken(_wanted(places, example)):
            raise DemoError(_way_out(found))
        asyncio.run(perform(example, places, binary, redis))
    except DemoError as error:
        raise click.ClickException(str(error)) from None


def _wanted(places: Places, example: Example) -> list[Wanted]:
    return [
        Wanted(places.xds, "the control plane's xDS server", "--xds-port"),
        Wanted(places.admin, "the control plane's admin server", "--admin-port"),
        Wanted(places.egress, "Envoy's egress listener", "--egress-port"),
        Wanted(places.envoy_admin, "Envoy's admin interface", "--envoy-admin-port"),
        *(
            Wanted(upstream.address, f"an upstream of {upstream.service}; change it in {example.services}")
            for upstream in example.upstreams
        ),
    ]


def _way_out(found: list[Taken]) -> str:
    """What is taken, and the command that goes around it."""
    lines = ["These ports are taken:", *(f"  {one.wanted.address} ({one.wanted.use}): {one.why}" for one in found)]
    if flags := " ".join(f"{one.wanted.flag} {free_above(one.wanted.address)}" for one in found if one.wanted.flag):
        # `make` says so in the environment of what it runs.
        command = f'make run ARGS="{flags}"' if "MAKELEVEL" in os.environ else f"python -m swashplate.demo {flags}"
        lines.append(f"Use others: {command}")
    return "\n".join(lines)


if __name__ == "__main__":
    main(prog_name="python -m swashplate.demo")
