"""Problems of operators' files, and what was left out of the configuration, told in the log when they come and go."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from structlog.typing import FilteringBoundLogger

from operator_files.codes import HELD
from operator_files.problem import Problem, Severity
from operator_files.standing import Kind, Standing
from swashplate.status import WarningReport

Standings = Callable[[Collection[str]], Mapping[str, Standing]]
Outcome = Callable[[str], str]
T = TypeVar("T")

_MOST_OF_ONE: Final = 20
_MOST: Final = 500
"""Lines that are logged at once: of one file and severity (or service), and of all. A file may have an error in each
of its 10,000 lines, and status has all of them."""


def naming(source: str, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems with the source's name in the command of a fix."""
    return tuple(
        replace(problem, fix=problem.fix.replace("SOURCE", source)) if problem.code == HELD.id else problem
        for problem in problems
    )


def most_told(new: Iterable[T], of: Callable[[T], Hashable]) -> tuple[list[T], Mapping[Hashable, int]]:
    """Those that are logged, and how many are not, by what they are `of`."""
    seen, told, untold = Counter[Hashable](), list[T](), Counter[Hashable]()
    for one in new:
        seen[whose := of(one)] += 1
        if seen[whose] <= _MOST_OF_ONE and len(told) < _MOST:
            told.append(one)
        else:
            untold[whose] += 1
    return told, untold


def tell_untold(log: FilteringBoundLogger, untold: Mapping[Hashable, int], what: str) -> None:
    """`what` they are, in the plural."""
    if untold:
        total, most = sum(untold.values()), sorted(untold, key=lambda whose: -untold[whose])[:_MOST_OF_ONE]
        where = {str(whose): untold[whose] for whose in most}
        log.warning(f"and {total} more {what}; `swashplate status` has all of them", where=where)


class ProblemLog:
    """Told all problems of one source whenever they change; logs what is new, and files that are well again
    or gone."""

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
        nothing = Standing(Kind.NOTHING)
        tell(self._log, new, lambda problem: standings.get(problem.file, nothing), self._outcome)
        now = frozenset(problems)
        well = sorted(_files_in_error(self._known) - _files_in_error(now))
        left = self._standings(well)
        for file in well:
            # Of a file without errors there is something in force.
            if left.get(file) == nothing:
                self._log.info("file with errors is gone: %s", file, file=file)
            else:
                self._log.info("file has no errors any more: %s", file, file=file)
        self._known = now


def tell(
    log: FilteringBoundLogger,
    new: Sequence[Problem],
    standing_of: Callable[[Problem], Standing],
    outcome: Outcome = lambda _: "",
) -> None:
    """Logs problems; errors with what is in force all the same."""
    # Errors first: no warnings of a file keep them from being told.
    for severity, what in ((Severity.ERROR, "errors in files"), (Severity.WARNING, "warnings of files")):
        told, untold = most_told((one for one in new if one.severity is severity), lambda problem: problem.file)
        for problem in told:
            if problem.is_error:
                _error(log, problem, standing_of(problem), outcome)
            else:
                log.warning("file has a warning: %s", problem.said(), **_keys(problem))
        tell_untold(log, untold, what)


def _error(log: FilteringBoundLogger, problem: Problem, standing: Standing, outcome: Outcome) -> None:
    said, keys = problem.said(), _keys(problem)
    match standing.kind:
        case Kind.LAST_GOOD:
            log.error("file has an error: %s; its last good version stays in force", said, **keys)
        case Kind.REST:
            log.error("file has an error: %s; the rest of it is in force", said, **keys)
        case Kind.NOTHING:
            gets = outcome(problem.file) or "nothing of it is in force"
            log.error("file has an error: %s; no good version of it is known: %s", said, gets, **keys)


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
        new = (warning for warning in warnings if warning not in self._known)
        told, untold = most_told(new, lambda warning: warning.service)
        for warning in told:
            said = f"{warning.service}: {warning.reason}"
            self._log.warning("not all could be granted: %s", said, service=warning.service, code=warning.code)
        tell_untold(self._log, untold, "that could not be granted")
        self._known = frozenset(warnings)


def _keys(problem: Problem) -> dict[str, str | int]:
    place = {"file": problem.file, "line": problem.line or None, "column": problem.column or None}
    return {key: value for key, value in {"code": problem.code, **place}.items() if value is not None}


def _files_in_error(problems: frozenset[Problem]) -> set[str]:
    return {problem.file for problem in problems if problem.is_error}
