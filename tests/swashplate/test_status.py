"""`swashplate status`: several servers merged, what counts as in force, what people are shown, the exit codes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO

import pytest
from click.testing import CliRunner, Result

from swashplate.cli import main
from swashplate.status import LingerReport, RolloutReport, ServerReport, StatusReport, WaitReport, merged
from swashplate.status_text import show
from swashplate.text_table import age
from tests.swashplate.reports import NOW, a_nack, a_problem, a_proxy, a_report, a_source, a_type, a_warning

NACKED = a_report(proxies=(a_proxy("web-1", a_type("RDS", "nacked", a_nack())),))


@pytest.mark.parametrize(
    ("report", "in_force"),
    [
        (a_report(), True),
        (a_report(problems=(a_problem("warning"),), warnings=(a_warning(),)), True),
        (a_report(proxies=(a_proxy("n", a_type(state="draining"), a_type(state="not sent")),)), True),
        (a_report(proxies=(a_proxy("n", a_type(state="stale")),)), False),
        (a_report(pending=True), False),
        (a_report(ready=False), False),
        (a_report(problems=(a_problem(),)), False),
        (a_report(sources=(a_source(error="permission denied"),)), False),
        (a_report(sources=(a_source(held=("default/a",)),)), False),
        (NACKED, False),
    ],
)
def test_in_force(report: StatusReport, in_force: bool) -> None:
    assert report.in_force is in_force


def test_merged_has_the_proxies_of_all_servers_by_node() -> None:
    one = a_report(
        "s1",
        proxies=(a_proxy("b", server="s1"), a_proxy("d", server="s1")),
        warnings=(a_warning("same"), a_warning("w1")),
    )
    two = a_report(
        "s2", proxies=(a_proxy("c", server="s2"), a_proxy("a", server="s2")), warnings=(a_warning("same"),)
    )
    both = merged([one, two])
    assert [f"{proxy.node} {proxy.server}" for proxy in both.proxies] == ["a s2", "b s1", "c s2", "d s1"]
    assert [server.identifier for server in both.servers] == ["s1", "s2"]
    assert both.warnings == (a_warning("same"), a_warning("w1"))
    assert both.sources == one.sources + two.sources


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (7980, "2h13m"), (400000, "4d")]
)
def test_age(seconds: int, text: str) -> None:
    assert age(NOW, NOW + timedelta(seconds=seconds)) == text


def shown(report: StatusReport, node: str | None = None) -> str:
    out = StringIO()
    show(report, NOW, out, node=node)
    return out.getvalue()


def test_text_off_a_terminal_is_whole_and_plain() -> None:
    """Columns are never cut, however narrow the terminal is thought to be: the text is searched and piped."""
    text = shown(
        a_report(
            problems=(a_problem(),),
            warnings=(a_warning("[x] has no endpoints"),),
            proxies=(
                a_proxy("a-node-with-a-long-name-" + "x" * 80, a_type("RDS", "nacked", a_nack("long " * 40))),
                a_proxy("other", a_type("CDS", "not sent")),
            ),
        )
    )
    assert "\x1b" not in text
    assert "a-node-with-a-long-name-" + "x" * 80 in text
    assert "refused RDS 0s ago: " + "long " * 39 in text
    assert "routes/checkout.yaml:9:7: error R012: sum is 95" in text
    assert "warning udp-port: web.default: [x] has no endpoints" in text
    header = next(line for line in text.splitlines() if line.startswith("PROXY"))
    assert header.split() == ["PROXY", "CLUSTER", "CLIENT", "ADS", "CDS", "RDS", "SERVER"]


def test_text_of_a_rate_limit_service_has_nothing_of_proxies() -> None:
    (server,) = a_report().servers
    alone = (server.model_copy(update={"has_proxies": False}),)
    limits = (a_source(name="limit-files", kind="limits", place="limits", services=2),)
    text = shown(a_report(servers=alone, sources=limits, proxies=()))
    first, _, _, second, *_ = text.splitlines()
    assert first.split() == ["SERVER", "VERSION", "GRPC", "UP", "STATE"]
    assert second.split() == ["SOURCE", "AT", "STATE", "DOMAINS", "READ"]
    assert "proxy" not in text
    assert "No proxy is connected." in shown(a_report(servers=(server, *alone), proxies=()))


def test_text_of_one_node_has_its_versions() -> None:
    text = shown(a_report(proxies=(a_proxy("web-1"), a_proxy("other"))), node="web-1")
    assert "web-1 (web), envoy 1.40.0, delta" in text
    assert "v2" in text
    assert "other" not in text


@contextmanager
def serving(answer: Callable[[], tuple[int, bytes]]) -> Iterator[str]:
    """An admin server that answers everything alike."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not on the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def status(*arguments: str, of: tuple[StatusReport, ...] = ()) -> Result:
    with ExitStack() as stack:
        for report in of:
            body = report.model_dump_json().encode()
            url = stack.enter_context(serving(lambda body=body: (200, body)))  # type: ignore[misc]
            arguments = (*arguments, "--server", url)
        return CliRunner().invoke(main, ["status", *arguments])


def test_exit_code_says_whether_all_is_in_force() -> None:
    assert status(of=(a_report(),)).exit_code == 0
    nacked = status(of=(a_report("s1"), NACKED))
    assert nacked.exit_code == 1
    assert "duplicate domain" in nacked.stdout


def test_a_wait_ends_when_all_has_been_in_force_for_a_moment() -> None:
    stale = a_report(proxies=(a_proxy("n", a_type(state="stale")),))
    answers = iter([stale, a_report(), stale])

    def answer() -> tuple[int, bytes]:
        return 200, next(answers, a_report()).model_dump_json().encode()

    with serving(answer) as url:
        result = CliRunner().invoke(main, ["status", "--wait", "--server", url])
    assert result.exit_code == 0, result.output
    assert next(answers, None) is None, "a healthy answer before a stale one is no end"


def test_a_wait_is_over_in_the_time_that_was_given() -> None:
    assert status("--wait", "0.2", of=(a_report(proxies=(a_proxy("n", a_type(state="stale")),)),)).exit_code == 1
    assert status("other", "--wait=0", of=(a_report(),)).exit_code == 1
    assert status("--wait", "soon", of=(a_report(),)).exit_code == 2


SINCE = NOW - timedelta(minutes=5)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"in_force": "last good", "in_force_since": SINCE},
            f"the version of {SINCE.astimezone():%H:%M:%S} serves on",
        ),
        ({"in_force": "last good"}, "the version from before the restart serves on"),
        ({"in_force": "rest", "in_force_since": NOW}, "the rest of it is in force"),
        (
            {"in_force": "nothing", "outcome": "checkout answers 503 R012"},
            "no good version of it is known: checkout answers 503 R012",
        ),
    ],
)
def test_text_says_what_of_a_file_in_error_is_in_force(parts: dict[str, object], said: str) -> None:
    problem = a_problem(file="/etc/routes/a.yaml", **parts)
    text = shown(a_report(problems=(problem, problem), sources=(a_source(place="/etc/routes"),)))
    row = next(line for line in text.splitlines() if "/etc/routes " in line)
    assert row.endswith(f"1 file in error; {said}")
    assert text.count(f"  meanwhile: {said}") == 1


def test_text_of_several_files_in_error() -> None:
    problems = tuple(a_problem(file=f"/etc/routes/{name}.yaml", in_force="last good") for name in "ab")
    sources = (a_source(place="/etc/routes"), a_source(place="/etc/other"))
    text = shown(a_report(problems=problems, sources=sources))
    assert "2 files in error; their last good versions serve on" in text
    assert text.count("in error") == 1


def test_text_of_one_node_says_what_it_waits_for() -> None:
    ago, ahead = NOW - timedelta(seconds=3), NOW + timedelta(seconds=7)
    clusters = tuple(f"c{i}" for i in range(12))
    rollout = RolloutReport(
        waiting=(
            WaitReport(type="RDS", since=ago, clusters=clusters),
            WaitReport(type="LDS", since=ago, clusters=()),
        ),
        lingering=(LingerReport(cluster="old", until=ahead), LingerReport(cluster="older", until=None)),
    )
    part = a_type("CDS", "stale").model_copy(
        update={"unanswered_since": ago, "suspects": 4, "quarantined": ("bad", "worse")}
    )
    proxy = a_proxy("web-1", part).model_copy(update={"rollout": rollout})
    said = shown(a_report(proxies=(proxy,)), "web-1").splitlines()
    assert [line for line in said if ":" in line or "cluster" in line or "CDS sent" in line][1:] == [
        "RDS has been waiting for 3s, until these clusters are ready: "
        "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, and 2 more",
        "LDS has been waiting for 3s, until the proxy asks for its clusters",
        "CDS sent 3s ago is not acknowledged yet",
        "CDS: looking for what it refused, among 4 resources",
        "CDS: kept back, because it refused them: bad, worse",
        "cluster old is gone and stays for 7s more",
        "cluster older is gone and stays as long as its routes may refer to it",
    ]


def test_what_drains_is_counted_apart() -> None:
    draining = a_type(state="draining").model_copy(update={"draining": 3})
    text = shown(a_report(proxies=(a_proxy("web-1", draining),)), node="web-1")
    assert "CDS   draining  2 (+3)" in text


def test_text_has_no_spaces_at_the_end_of_lines() -> None:
    assert not [line for line in shown(a_report()).splitlines() if line != line.rstrip()]


def test_json_is_the_merged_report() -> None:
    result = status("-o", "json", of=(a_report("s1"), a_report("s2")))
    assert StatusReport.model_validate_json(result.stdout) == merged([a_report("s1"), a_report("s2")])


def test_a_node_that_is_not_connected() -> None:
    result = status("nobody", of=(a_report(),))
    assert result.exit_code == 1
    assert "no node 'nobody' is connected" in result.stderr


def test_a_server_that_cannot_be_asked_does_not_hide_the_others() -> None:
    result = status("--server", "127.0.0.1:1", of=(a_report(),))
    assert result.exit_code == 2
    assert "web-1" in result.stdout
    assert "Error: 127.0.0.1:1: cannot connect: Connection refused" in result.stderr


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b"<html>"), "this is not the status of a swashplate server"),
        ((404, b"not found"), "HTTP 404; is this the admin address of a swashplate server?"),
        ((400, b'{"error": "say which"}'), "say which"),
    ],
)
def test_a_server_of_another_kind(answer: tuple[int, bytes], said: str) -> None:
    with serving(lambda: answer) as url:
        result = CliRunner().invoke(main, ["status", "--server", url])
    assert result.exit_code == 2
    assert said in result.stderr


def test_sentences_stand_below_the_table_and_once() -> None:
    error = f"the beginning of {'a long story ' * 20}and its end"
    failing = a_source(name="kubernetes", error=error, state="stale", stale_since=NOW - timedelta(seconds=90))
    two = [
        a_report(server, ready=False, sources=(failing.model_copy(update={"server": server, "notes": ("a note",)}),))
        for server in ("s1", "s2")
    ]
    text = shown(merged([one.model_copy(update={"servers": told(one, f"kubernetes: {error}")}) for one in two]))
    assert text.count("the beginning") == 1
    assert f"\nkubernetes: {error}\nkubernetes: note: a note\n" in text
    assert text.count("no answer from kubernetes") == 2
    rows = [line for line in text.splitlines() if line.startswith("kubernetes ")]
    assert [row.endswith("stale for 1m") for row in rows] == [True, True]


def told(report: StatusReport, reason: str) -> tuple[ServerReport, ...]:
    """Its server, not ready for this reason."""
    return tuple(server.model_copy(update={"reasons": (reason,)}) for server in report.servers)
