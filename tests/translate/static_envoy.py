"""What a node would be sent, as one static configuration that an Envoy can check and run alone."""

import json
import subprocess
from pathlib import Path
from typing import Any

from envoy_api import class_for_url, to_dict
from xds.resources import types
from xds.resources.snapshot import Snapshot

ROOT = Path(__file__).parents[2]
"""Files that a configuration names are relative to it."""


def messages(snapshot: Snapshot, type_url: str) -> dict[str, dict[str, Any]]:
    """The resources of a type by name, decoded from the bytes that an Envoy would get."""
    cls = class_for_url(type_url)
    return {resource.name: to_dict(cls.FromString(resource.body)) for resource in snapshot.all(type_url)}


def static_config(snapshot: Snapshot, admin: tuple[str, int] = ("127.0.0.1", 0)) -> dict[str, Any]:
    """A bootstrap with every assignment inside its cluster and the route table inside its listener.

    So Envoy checks what it otherwise would when it comes, and that routes name no unknown cluster.
    """
    assignments = messages(snapshot, types.ENDPOINT)
    tables = messages(snapshot, types.ROUTE)
    clusters = [_with_endpoints(cluster, assignments) for cluster in messages(snapshot, types.CLUSTER).values()]
    listeners = [_with_routes(listener, tables) for listener in messages(snapshot, types.LISTENER).values()]
    layers = messages(snapshot, types.RUNTIME)
    host, port = admin
    return {
        "admin": {"address": {"socket_address": {"address": host, "port_value": port}}},
        "node": {"id": "static", "cluster": "tests"},
        "layered_runtime": {
            "layers": [{"name": name, "static_layer": layer.get("layer", {})} for name, layer in layers.items()]
        },
        "static_resources": {"clusters": clusters, "listeners": listeners},
    }


def _with_endpoints(cluster: dict[str, Any], assignments: dict[str, dict[str, Any]]) -> dict[str, Any]:
    eds = cluster.pop("eds_cluster_config", None)
    if eds is None:
        return cluster
    return {**cluster, "type": "STATIC", "load_assignment": assignments[eds.get("service_name", cluster["name"])]}


def _with_routes(listener: dict[str, Any], tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    for chain in listener["filter_chains"]:
        for network_filter in chain["filters"]:
            config = network_filter["typed_config"]
            if (rds := config.pop("rds", None)) is not None:
                config["route_config"] = {**tables[rds["route_config_name"]], "validate_clusters": True}
    return listener


def refusal(binary: Path, config: dict[str, Any], directory: Path) -> str:
    """Why Envoy would not take the configuration; empty when it would."""
    file = directory / "envoy.json"
    file.write_text(json.dumps(config))
    command = [str(binary), "--mode", "validate", "-c", str(file), "-l", "warning"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    return "" if done.returncode == 0 else done.stderr + done.stdout
