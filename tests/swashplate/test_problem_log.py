"""Problems in the log: each once, and no more lines than somebody reads."""

from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.testing import capture_logs

from operator_files.problem import Problem, Severity
from operator_files.standing import Kind, Standing
from swashplate.problem_log import ProblemLog, WarningLog
from swashplate.status import WarningReport


def problems(file: str, number: int, severity: Severity = Severity.ERROR) -> list[Problem]:
    return [Problem("F011", f"wrong {line}", file, line + 1, 1, severity=severity) for line in range(number)]


def log() -> ProblemLog:
    return ProblemLog(structlog.get_logger(), "route-files", lambda _: {"a.yaml": Standing(Kind.LAST_GOOD)})


def of(logs: list[MutableMapping[str, Any]], file: str) -> list[MutableMapping[str, Any]]:
    return [line for line in logs if line.get("file") == file]


def test_of_a_file_with_ten_thousand_errors_the_first_are_told_and_how_many_more_there_are() -> None:
    with capture_logs() as logs:
        log()((*problems("a.yaml", 10_000, Severity.WARNING), *problems("a.yaml", 10_000), *problems("b.yaml", 1)))
    told = of(logs, "a.yaml")
    assert [line["line"] for line in told] == [*range(1, 21)] * 2
    assert [line["log_level"] for line in told] == ["error"] * 20 + ["warning"] * 20
    assert len(of(logs, "b.yaml")) == 1, "another file's are told whatever that one has"
    rest = [line for line in logs if "file" not in line]
    assert [line["event"].partition(";")[0] for line in rest] == [
        "and 9980 more errors in files",
        "and 9980 more warnings of files",
    ]
    assert rest[0]["where"] == {"a.yaml": 9980}


def test_what_was_told_is_not_told_again_and_what_is_new_is() -> None:
    many, tell = problems("a.yaml", 50), log()
    with capture_logs() as logs:
        tell(tuple(many))
        told = len(logs)
        tell((*many, *problems("c.yaml", 2)))
    assert told == 21
    assert [line["file"] for line in logs[told:]] == ["c.yaml", "c.yaml"]


def test_a_file_in_error_that_is_deleted_is_not_called_well() -> None:
    left = {"a.yaml": Standing(Kind.REST), "b.yaml": Standing(Kind.NOTHING)}
    tell = ProblemLog(structlog.get_logger(), "route-files", lambda _: left)
    with capture_logs() as logs:
        tell((*problems("a.yaml", 1), *problems("b.yaml", 1), *problems("kept elsewhere", 1)))
        del logs[:]
        tell(())
    assert {line["file"]: line["event"].partition(":")[0] for line in logs} == {
        "a.yaml": "file has no errors any more",
        "b.yaml": "file with errors is gone",
        "kept elsewhere": "file has no errors any more",
    }


def test_of_very_many_files_in_error_some_are_told() -> None:
    with capture_logs() as logs:
        log()(tuple(Problem("F011", "wrong", f"{number}.yaml", 1, 1) for number in range(10_000)))
    assert len(logs) == 501
    assert logs[-1]["event"].startswith("and 9500 more errors in files")
    assert len(logs[-1]["where"]) == 20


def test_what_could_not_be_granted_is_bounded_by_service() -> None:
    with capture_logs() as logs:
        WarningLog(structlog.get_logger())(
            (
                *(WarningReport(service="shop", code="x", reason=f"port {port}") for port in range(100)),
                WarningReport(service="cart", code="x", reason="port 1"),
            )
        )
    assert [line.get("service") for line in logs] == [*["shop"] * 20, "cart", None]
