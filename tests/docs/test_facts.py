"""Names that the documentation uses are the program's: links, metrics, log messages, codes, settings."""

import re
from pathlib import PurePosixPath

import pytest

from discovery.files import codes as service_codes
from discovery.lighthouse import codes as lighthouse_codes
from operator_files import codes as file_codes
from operator_files.problem import Code
from ratelimit.limits import codes as limit_codes
from routes import codes as route_codes
from swashplate.metrics import Metrics
from swashplate.rate_limit_metrics import FAMILIES, OF_WORKERS
from swashplate.settings import Settings
from swashplate.status import StatusReport
from tests.docs.pages import ROOT, Page, pages, written_by_hand
from xds.raw import codes as resource_codes
from xds.translate.finding import Code as Warned

OPERATIONS = Page("docs/operations.md")


def section(title: str) -> str:
    """The text of one section of the operations page."""
    return OPERATIONS.text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_lead_somewhere(page: Page) -> None:
    for target in page.links:
        path, _, anchor = target.partition("#")
        file = (ROOT / page.path).parent / path if path else ROOT / page.path
        assert file.exists(), f"{page} links to {target}"
        if anchor:
            other = Page(str(file.resolve().relative_to(ROOT)))
            assert anchor in other.anchors, f"{page} links to {target}"


def test_every_page_is_listed() -> None:
    listed = {str(PurePosixPath("docs", target)) for target in Page("docs/README.md").links}
    assert {page.path for page in pages() if page.path.startswith("docs/")} - {"docs/README.md"} == listed


def registered_metrics() -> set[str]:
    metrics = Metrics()
    metrics.follow(lambda: StatusReport(servers=(), sources=(), problems=(), warnings=(), proxies=()))
    of_limits = {family.name for family in (*FAMILIES, *OF_WORKERS)}
    return set(re.findall(r"^# TYPE (swashplate_\w+)", metrics.text().decode(), re.MULTILINE)) | of_limits


@pytest.mark.parametrize("page", written_by_hand(), ids=str)
def test_metrics_exist(page: Page) -> None:
    mentioned = {name for text in page.code for name in re.findall(r"\bswashplate_\w+", text)}
    assert mentioned <= registered_metrics()


def test_every_metric_is_in_the_reference() -> None:
    listed = re.findall(r"^\| `(\w+)`", Page("docs/reference/metrics.md").text, re.MULTILINE)
    assert set(listed) == registered_metrics()


def test_log_messages_are_those_of_the_program() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "swashplate").rglob("*.py"))
    levels = {"info": "info", "warning": "warning", "error": "(?:error|exception)"}
    written = {level: set(re.findall(rf'log\.{method}\(\s*"([^"]+)"', sources)) for level, method in levels.items()}
    told: dict[str, set[str]] = {level: set() for level in levels}
    for level, messages in re.findall(r"^\| (\w+) \| (`[^|]+`) \|", section("Logs"), re.MULTILINE):
        told[level].update(text.replace("…", "%s") for text in re.findall(r"`([^`]+)`", messages))
    assert told == written


def test_warnings_are_those_of_translation() -> None:
    assert set(re.findall(r"^\| `([\w-]+)` \|", section("Warnings"), re.MULTILINE)) == {str(code) for code in Warned}


@pytest.mark.parametrize("page", pages(), ids=str)
def test_problem_codes_exist(page: Page) -> None:
    modules = (file_codes, service_codes, route_codes, resource_codes, lighthouse_codes, limit_codes)
    known = {value.id for module in modules for value in vars(module).values() if isinstance(value, Code)}
    assert set(re.findall(r"\b[FLNRSX]0\d\d\b", page.text)) <= known


def test_settings_in_backticks_have_the_values_that_are_told() -> None:
    found = re.findall(r"`(\w+)` \((\d+) (ms|s)\)", OPERATIONS.text)
    assert found
    for name, number, unit in found:
        milliseconds = Settings.model_fields[name].default.total_seconds() * 1000
        assert milliseconds == int(number) * {"ms": 1, "s": 1000}[unit], name
