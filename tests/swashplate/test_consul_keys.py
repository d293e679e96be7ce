"""Keys of a real Consul agent in a whole control plane: route files, callers, load balancers, over a restart."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swashplate.status import SourceReport
from tests.registries.consul_agent import ConsulAgent
from tests.registries.fixtures import unique
from tests.swashplate.site import Running, Site, until


def site(directory: Path, agent: ConsulAgent, **settings: Any) -> Site:
    """All that it serves comes from Consul, unless told otherwise."""
    return Site(directory, settings={"services": None, "routes": None, "consul": agent.url, **settings})


def source(here: Running, name: str) -> SourceReport:
    return next(report for report in here.plane.status().sources if report.name == name)


def hosts(config: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """What every domain's requests are split into, by cluster."""
    tables = (host for table in config["routes"] for host in table.get("virtual_hosts", ()))
    return {domain: _shares(host["routes"][0].get("route", {})) for host in tables for domain in host["domains"]}


def _shares(route: Mapping[str, Any]) -> dict[str, int]:
    if "cluster" in route:
        return {route["cluster"]: 10_000}
    return {part["name"]: part["weight"] for part in route.get("weighted_clusters", {}).get("clusters", ())}


def route_file(service: str, canary: str, share: int) -> str:
    to = f"{{{service}: {100 - share}%, {canary}: {share}%}}"
    return f"version: 1\nservice: {service}\nrules: [{{name: main, to: {to}}}]\n"


def blob(old: str, new: str, weight: int) -> str:
    weights = {old: 100 - weight, new: weight}
    targets = [
        {"stack": stack, "port": 9000, "protocol": "http", "weight": share} for stack, share in weights.items()
    ]
    routes = [{"service": "howdy", "port": "default", "targets": targets}]
    return json.dumps({"defaultNamespace": "dev", "domain": "", "namespaces": [{"name": "dev", "routes": routes}]})


async def test_route_files_in_consul_are_in_force_edit_by_edit(tmp_path: Path, consul: ConsulAgent) -> None:
    web, canary, prefix = unique("web"), unique("canary"), unique("routes")
    await consul.register(web, "10.0.0.1", 8080)
    await consul.register(canary, "10.0.0.2", 8080)
    await consul.put(f"{prefix}/{web}", route_file(web, canary, 10))
    async with site(tmp_path, consul, consul_routes=prefix).running() as here:
        await until(lambda: hosts(here.config())[web] == {web: 9000, canary: 1000})
        await consul.put(f"{prefix}/{web}", route_file(web, canary, 50))
        await until(lambda: hosts(here.config())[web] == {web: 5000, canary: 5000})
        await consul.put(f"{prefix}/{web}", "version: 1\nservice: [\n")
        await until(lambda: here.plane.status().problems)
        (problem,) = here.plane.status().problems
        assert problem.file == f"consul:{prefix}/{web}"
        assert hosts(here.config())[web] == {web: 5000, canary: 5000}
        await consul.delete(f"{prefix}/{web}")
        await until(lambda: hosts(here.config())[web] == {web: 10_000})
        assert source(here, "consul-routes").state == "fresh"


async def test_a_file_goes_before_a_key_about_the_same_service(tmp_path: Path, consul: ConsulAgent) -> None:
    web, canary, prefix = unique("web"), unique("canary"), unique("routes")
    await consul.register(web, "10.0.0.1", 8080)
    await consul.register(canary, "10.0.0.2", 8080)
    await consul.put(f"{prefix}/{web}", route_file(web, canary, 10))
    (tmp_path / "routes").mkdir()
    (tmp_path / "routes" / "web.yaml").write_text(route_file(web, canary, 25))
    made = site(tmp_path, consul, consul_routes=prefix, routes=tmp_path / "routes")
    async with made.running() as here:
        await until(lambda: hosts(here.config())[web] == {web: 7500, canary: 2500})
        assert "routes-hidden" in [warning.code for warning in here.plane.status().warnings]
        (tmp_path / "routes" / "web.yaml").unlink()
        await until(lambda: hosts(here.config())[web] == {web: 9000, canary: 1000})


async def test_a_caller_has_exactly_its_targets_and_others_have_none_of_it(
    tmp_path: Path, consul: ConsulAgent
) -> None:
    unit, prefix, caller = unique("howdy"), unique("lighthouse"), unique("caller")
    old, new = f"{unit}--1-0-0--a", f"{unit}--1-1-0--b"
    for stack in (old, new):
        await consul.register(stack, "10.0.0.1", 9000)
    await consul.put(f"{prefix}/d/{caller}", blob(old, new, 16))
    entry = {"frontend_port": 8444, "port_label": "default", "service_name": unit, "major_version": 1}
    await consul.put(f"{prefix}/v2/{caller}", json.dumps([entry]))
    made = site(
        tmp_path,
        consul,
        lighthouse=True,
        lighthouse_discovery=f"{prefix}/d",
        lighthouse_load_balancers_v1=f"{prefix}/v1",
        lighthouse_load_balancers_v2=f"{prefix}/v2",
        state=tmp_path / "state",
    )

    def of_caller(here: Running) -> dict[str, dict[str, int]]:
        return hosts(here.config("n", caller))

    async with made.running() as here:
        await until(lambda: "howdy" in of_caller(here))
        assert of_caller(here)["howdy"] == {old: 8400, new: 1600}
        clusters = {cluster["name"] for cluster in here.config("n", caller)["clusters"]}
        assert {name for name in clusters if unit in name} == {old, new}
        listeners = {listener["name"] for listener in here.config("n", caller)["listeners"]}
        assert "frontend/8444" in listeners
        assert "howdy" not in hosts(here.config())
        await consul.put(f"{prefix}/d/{caller}", blob(old, new, 98))
        await until(lambda: of_caller(here)["howdy"] == {old: 200, new: 9800})
        assert source(here, "lighthouse").services == 1
    consul.server.kill()
    try:
        async with made.running() as again:
            assert of_caller(again)["howdy"] == {old: 200, new: 9800}
            await until(lambda: source(again, "lighthouse").error)
            assert of_caller(again)["howdy"] == {old: 200, new: 9800}
    finally:
        await consul.restart()
