"""`swashplate ratelimit check`: every problem of limit files, before anything serves them."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from operator_files.problem import Problem
from swashplate.limit_files import LimitFiles, read_limits
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UnusableError, coloured, counted, format_option
from swashplate.ratelimit_settings import RATELIMIT_PREFIX
from swashplate.settings import Settings


@click.command(name="check", short_help="Check limit files.")
@with_settings(
    *("ratelimit_merge_domains", "ratelimit_keys", "ratelimit_hash_tag", "redis", "redis_per_second"),
    omitted=RATELIMIT_PREFIX,
    file_flag="--settings",
)
@format_option("text", "json")
@click.option("--strict", is_flag=True, help="Fail for warnings, too.")
@click.argument("directories", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIRECTORY...")
def command(settings: Settings, output: str, strict: bool, directories: tuple[Path, ...]) -> None:
    """Show every problem of the limit files in each DIRECTORY (or file), each by itself: two may have one domain.

    \b
    swashplate ratelimit check limits
    swashplate ratelimit check --keys compatible staging/limits production/limits

    The store is not asked; with --redis, what cannot be had there is a problem, too.

    Exit code 0 when all is good (warnings are, but for --strict), 1 when there is an error or no file, 2 when
    something cannot be read.
    """
    try:
        read = [read_limits(directory, settings) for directory in directories]
    except OSError as failure:
        raise UnusableError(f"{failure.filename}: {failure.strerror}") from failure
    problems = [problem for each in read for problem in each.problems]
    empty = [directory for directory, each in zip(directories, read, strict=True) if not each.files]
    if output == "json":
        found = {"files": sum(each.files for each in read), "problems": [problem.to_dict() for problem in problems]}
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(problems, read)
    for directory in empty:
        click.echo(f"{directory}: there is no limit file here", err=True)
    if empty or any(problem.is_error or strict for problem in problems):
        raise click.exceptions.Exit(PROBLEMS)


def _show(problems: Sequence[Problem], read: Sequence[LimitFiles]) -> None:
    for problem in problems:
        click.echo(coloured(problem))
    counts = Counter(problem.is_error for problem in problems)
    domains = sum(len(each.tree.domains) for each in read)
    limits = sum(1 for each in read for _ in each.tree.limits())
    said = [
        counted(sum(each.files for each in read), "file"),
        counted(domains, "domain"),
        counted(limits, "limit"),
        counted(counts[True], "error"),
        counted(counts[False], "warning"),
    ]
    click.echo(", ".join(said), err=True)
