"""Problems of operators' files, told in the log when they come and when they go."""

from structlog.typing import FilteringBoundLogger

from operator_files.problem import Problem


class ProblemLog:
    """Told all problems of one source whenever they change; logs what is new, and files that are well again."""

    def __init__(self, log: FilteringBoundLogger, source: str) -> None:
        self._log = log.bind(source=source)
        self._known: frozenset[Problem] = frozenset()

    def __call__(self, problems: tuple[Problem, ...]) -> None:
        now = frozenset(problems)
        for problem in problems:
            if problem not in self._known:
                self._tell(problem)
        for file in sorted(_files_in_error(self._known) - _files_in_error(now)):
            self._log.info("file has no errors any more", file=file)
        self._known = now

    def _tell(self, problem: Problem) -> None:
        place = {"file": problem.file, "line": problem.line or None, "column": problem.column or None}
        more = {"code": problem.code, "problem": problem.message, "fix": problem.fix or None}
        said = {key: value for key, value in {**place, **more}.items() if value is not None}
        if problem.is_error:
            self._log.error("file has an error; what was last good of it stays in force", **said)
        else:
            self._log.warning("file has a warning", **said)


def _files_in_error(problems: frozenset[Problem]) -> set[str]:
    return {problem.file for problem in problems if problem.is_error}
