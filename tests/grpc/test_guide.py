"""The guide's example runs as it stands there: but for ports that are free."""

import asyncio
import os
import sys
from pathlib import Path

from swashplate.address import Address
from tests.docs.pages import Page
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.process import Process
from tests.e2e.harness.site import HOST, Site
from tests.e2e.harness.wait import until

PAGE = Page("docs/guide/grpc.md")


def example(name: str) -> str:
    [text] = [block.text for block in PAGE.blocks if block.text.startswith(f"# {name}\n")]
    return text


def bootstrap(site: Site, page_line: str) -> list[str]:
    """A command of the page, for this control plane."""
    command, _, _ = page_line.partition(" > ")
    return [part.replace("127.0.0.1:18000", str(site.xds)) for part in command.split()[1:]]


async def output(*command: str, env: dict[str, str] | None = None, cwd: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, **(env or {})}, cwd=cwd
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return said.decode()


async def test_client_and_server(tmp_path: Path) -> None:
    site, port = Site(tmp_path), free_port()
    for name in ("services/greeter.yaml", "server.py", "client.py"):
        (tmp_path / name).write_text(example(name).replace("50051", str(port)))
    lines = [line for _, line in PAGE.shell_lines if "swashplate bootstrap" in line]
    async with site.running():
        for line in lines:
            swashplate = str(Path(sys.executable).with_name("swashplate"))
            file = tmp_path / line.rpartition(" > ")[2]
            file.write_text(await output(swashplate, *bootstrap(site, line), cwd=tmp_path))
        server = Process(
            [sys.executable, tmp_path / "server.py"],
            tmp_path / "server.log",
            env={"GRPC_XDS_BOOTSTRAP": str(tmp_path / "server.json")},
        )
        await server.start()
        try:

            async def serves() -> bool:
                server.check_running()
                _, writer = await asyncio.open_connection(*Address(HOST, port))
                writer.close()
                return True

            await until(serves, "the server to listen")
            env = {"GRPC_XDS_BOOTSTRAP": str(tmp_path / "client.json")}
            assert await output(sys.executable, "client.py", env=env, cwd=tmp_path) == "hello, world\n"
        finally:
            await server.stop()
