"""Commands that ask a running server."""

import asyncio

from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from swashplate.admin import AdminServer
from swashplate.cli import main
from tests.swashplate.site import Running


async def invoked(here: Running, *arguments: str) -> Result:
    """The command, at an admin server in front of the control plane; in a thread, for it has a loop of its own."""

    server = TestServer(AdminServer(here.plane, here.metrics).application())
    await server.start_server()
    try:
        command = [*arguments, "--server", f"127.0.0.1:{server.port}"]
        return await asyncio.to_thread(CliRunner().invoke, main, command)
    finally:
        await server.close()
