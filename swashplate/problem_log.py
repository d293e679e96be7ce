"""Problems of operators' files, and what was left out of the configuration, told in the log when they come and go."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from structlog.typing import FilteringBoundLogger

from operator_files.codes import HELD
from operator_files.problem import Problem
from operator_files.standing import Kind, Standing
from swashplate.status import WarningReport

Standings = Callable[[Collection[str]], Mapping[str, Standing]]
Outcome = Callable[[str], str]


def naming(source: str, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems with the source's name in the command of a fix."""
    return tuple(
        replace(problem, fix=problem.fix.replace("SOURCE", source)) if problem.code == HELD.id else problem
        for problem in problems
    )


class ProblemLog:
    """Told all problems of one source whenever they change; logs what is new, and files that are well again."""

    def __init__(
        self, log: FilteringBoundLogger, source: str, standings: Standings, outcome: Outcome = lambda _: ""
    ) -> None:
        """`standings` tells what is in force of files in error, `outcome` what clients get of one that never was
        good: a sentence, or nothing."""
        self._log = log.bind(source=source)
        self._source = source
        self._standings = standings
        self._outcome = outcome
        self._last: tuple[Problem, ...] = ()
        self._known: frozenset[Problem] = frozenset()

    def __call__(self, problems: tuple[Problem, ...]) -> None:
        if problems is self._last:
            return
        self._last = problems
        problems = naming(self._source, problems)
        new = [problem for problem in problems if problem not in self._known]
        standings = self._standings({problem.file for problem in new if problem.is_error})
        for problem in new:
            if problem.is_error:
                self._error(problem, standings.get(problem.file, Standing(Kind.NOTHING)))
            else:
                self._log.warning("file has a warning: %s", problem.said(), **_keys(problem))
        now = frozenset(problems)
        for file in sorted(_files_in_error(self._known) - _files_in_error(now)):
            self._log.info("file has no errors any more: %s", file, file=file)
        self._known = now

    def _error(self, problem: Problem, standing: Standing) -> None:
        said, keys = problem.said(), _keys(problem)
        match standing.kind:
            case Kind.LAST_GOOD:
                self._log.error("file has an error: %s; its last good version stays in force", said, **keys)
            case Kind.REST:
                self._log.error("file has an error: %s; the rest of it is in force", said, **keys)
            case Kind.NOTHING:
                outcome = self._outcome(problem.file) or "nothing of it is in force"
                self._log.error("file has an error: %s; no good version of it is known: %s", said, outcome, **keys)


class WarningLog:
    """Told all that could not be granted whenever it may have changed; logs what is new."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._last: tuple[WarningReport, ...] = ()
        self._known: frozenset[WarningReport] = frozenset()

    def __call__(self, warnings: tuple[WarningReport, ...]) -> None:
        if warnings is self._last:
            return
        self._last = warnings
        for warning in warnings:
            if warning not in self._known:
                said = f"{warning.service}: {warning.reason}"
                self._log.warning("not all could be granted: %s", said, service=warning.service, code=warning.code)
        self._known = frozenset(warnings)


def _keys(problem: Problem) -> dict[str, str | int]:
    place = {"file": problem.file, "line": problem.line or None, "column": problem.column or None}
    return {key: value for key, value in {"code": problem.code, **place}.items() if value is not None}


def _files_in_error(problems: frozenset[Problem]) -> set[str]:
    return {problem.file for problem in problems if problem.is_error}
