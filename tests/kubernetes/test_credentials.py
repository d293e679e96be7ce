"""Where the cluster is and who asks: kubeconfigs, service accounts, plugins, rotation."""

import base64
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from discovery.kubernetes.credentials import CredentialSource
from discovery.kubernetes.errors import CredentialsError
from discovery.kubernetes.exec_plugin import ask_plugin
from discovery.kubernetes.kubeconfig import read_account, read_kubeconfig
from tests.e2e.harness.wait import until

VERSION = "client.authentication.k8s.io/v1"


class Clock:
    """Unix seconds."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def config(path: Path, user: Mapping[str, Any], **cluster: Any) -> Path:
    names = ("test", "other")
    text = {
        "current-context": "test",
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in names],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1/k8s/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(text))
    return path


def plugin(tmp_path: Path, script: str) -> dict[str, Any]:
    """A kubeconfig's user whose plugin is this shell script."""
    program = tmp_path / "plugin"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": VERSION, "command": "./plugin", "interactiveMode": "Never"}}


def answer(token: str, expires: str = "") -> str:
    status = {"token": token, **({"expirationTimestamp": expires} if expires else {})}
    return f"echo '{json.dumps({'apiVersion': VERSION, 'kind': 'ExecCredential', 'status': status})}'"


def lives(status: Path) -> bool:
    """Whether the process of this /proc/PID/status runs."""
    return status.exists() and "zombie" not in status.read_text()


async def test_a_kubeconfig_gives_the_server_and_the_token(tmp_path: Path) -> None:
    source = CredentialSource(config(tmp_path / "config", {"token": "secret"}))
    found = await source.current()
    assert (found.server, found.authorization, found.tls) == ("http://127.0.0.1:1/k8s", "Bearer secret", None)
    assert "context test" in source.place
    assert "secret" not in repr(found)


async def test_a_token_file_is_read_anew_each_minute(tmp_path: Path) -> None:
    token, clock = tmp_path / "token", Clock()
    token.write_text("one\n")
    source = CredentialSource(config(tmp_path / "config", {"tokenFile": "token"}), now=clock)
    assert (await source.current()).authorization == "Bearer one"
    token.write_text("two\n")
    clock.now += 59
    assert (await source.current()).authorization == "Bearer one"
    clock.now += 1
    assert (await source.current()).authorization == "Bearer two"


async def test_a_clock_that_is_set_back_puts_no_reading_off(tmp_path: Path) -> None:
    token, clock = tmp_path / "token", Clock()
    token.write_text("one\n")
    path = config(tmp_path / "config", {"tokenFile": "token"})
    source = CredentialSource(path, now=clock)
    await source.current()
    token.write_text("two\n")
    clock.now -= 3600
    assert (await source.current()).authorization == "Bearer two"
    path.write_text("{")
    clock.now += 60
    await source.current()
    assert source.problem
    config(path, {"token": "three"})
    clock.now -= 3600
    assert (await source.current()).authorization == "Bearer three"


async def test_what_cannot_be_read_anew_goes_on_as_it_was(tmp_path: Path) -> None:
    path, clock = config(tmp_path / "config", {"token": "one"}), Clock()
    source = CredentialSource(path, now=clock)
    await source.current()
    path.write_text("{")
    clock.now += 60
    assert (await source.current()).authorization == "Bearer one"
    assert "not YAML" in source.problem
    config(path, {"token": "two"})
    clock.now += 5
    assert (await source.current()).authorization == "Bearer two"
    assert source.problem == ""


async def test_refused_credentials_are_read_anew_once(tmp_path: Path) -> None:
    path = config(tmp_path / "config", {"token": "one"})
    source = CredentialSource(path)
    used = await source.current()
    assert await source.refused(used) is None
    config(path, {"token": "two"})
    renewed = await source.refused(used)
    assert renewed is not None
    assert renewed.authorization == "Bearer two"
    assert await source.refused(used) == renewed, "whoever used the old ones gets those that another had read"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("{", "not YAML"),
        ("[]", "kubeconfig"),
        ("{contexts: [], clusters: [], users: []}", "no current-context; there are: none"),
    ],
)
async def test_a_kubeconfig_that_is_none_says_why(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(CredentialsError, match=said) as error:
        await CredentialSource(path).current()
    assert str(path) in str(error.value)


async def test_an_unknown_context_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="no context 'prod'; there are: other, test"):
        await CredentialSource(config(tmp_path / "config", {}), "prod").current()


async def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="nowhere: no such file"):
        await CredentialSource(tmp_path / "nowhere").current()
    with pytest.raises(CredentialsError, match="gone: No such file"):
        await CredentialSource(config(tmp_path / "config", {"tokenFile": "gone"})).current()
    tls = config(tmp_path / "config", {}, server="https://x", **{"certificate-authority": "ca.crt"})
    with pytest.raises(CredentialsError, match=r"File does not exist: .*/ca\.crt"):
        await CredentialSource(tls).current()


async def test_certificates_that_are_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    tls = config(tmp_path / "config", {}, server="https://x", **{"certificate-authority": "ca.crt"})
    with pytest.raises(CredentialsError, match="certificates cannot be used"):
        await CredentialSource(tls).current()


async def test_the_same_certificates_keep_the_connections(tmp_path: Path) -> None:
    path, clock = config(tmp_path / "config", {"token": "one"}, server="https://x"), Clock()
    source = CredentialSource(path, now=clock)
    first = await source.current()
    assert first.tls is not None
    config(path, {"token": "two"}, server="https://x")
    clock.now += 60
    second = await source.current()
    assert second.authorization == "Bearer two"
    assert second.tls is first.tls
    config(path, {"token": "two"}, server="https://x", **{"insecure-skip-tls-verify": True})
    clock.now += 60
    assert (await source.current()).tls is not first.tls


async def test_no_cluster_at_all_says_what_was_looked_for(tmp_path: Path) -> None:
    source = CredentialSource(environment={"KUBECONFIG": f"{tmp_path}/none"}, account=lambda: None)
    with pytest.raises(CredentialsError, match=f"no cluster: .*there is no {tmp_path}/none"):
        await source.current()


def account(tmp_path: Path) -> Path:
    """A pod's service account, as the kubelet mounts it."""
    (tmp_path / "token").write_text("mounted\n")
    (tmp_path / "ca.crt").write_text("authority")
    return tmp_path


def test_a_pod_has_its_service_account(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = read_account(account(tmp_path), pod)
    assert found is not None
    assert (found.server, found.authorization) == ("https://[fd00::1]:443", "Bearer mounted")
    assert read_account(tmp_path, {}) is None
    (tmp_path / "token").unlink()
    with pytest.raises(CredentialsError, match="token file does not exist"):
        read_account(tmp_path, pod)


async def test_a_plugin_is_asked_once_until_its_answer_ends(tmp_path: Path) -> None:
    clock = Clock()
    user = plugin(tmp_path, "echo x >> $(dirname $0)/count\n" + answer("from-plugin", "1970-01-12T13:50:00Z"))
    source = CredentialSource(config(tmp_path / "config", user), now=clock)
    assert (await source.current()).authorization == "Bearer from-plugin"
    clock.now += 65
    await source.current()
    assert (tmp_path / "count").read_text() == "x\n"
    clock.now += 120  # it ends 200 s after the start
    await source.current()
    assert (tmp_path / "count").read_text() == "x\n" * 2


async def test_a_refused_plugin_answer_is_asked_for_anew(tmp_path: Path) -> None:
    source = CredentialSource(config(tmp_path / "config", plugin(tmp_path, answer("one"))))
    used = await source.current()
    plugin(tmp_path, answer("two"))
    renewed = await source.refused(used)
    assert renewed is not None
    assert renewed.authorization == "Bearer two"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo please log in >&2; exit 3", "exit status 3: please log in"),
        ("exit 1", "exit status 1: it says nothing"),
        ("echo nonsense", "no ExecCredential"),
        ("echo '[]'", "no ExecCredential"),
        ("echo '{}'", "it answers in None"),
        (answer(""), "neither `token` nor"),
    ],
)
async def test_a_plugin_that_fails_is_heard(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(CredentialsError, match=said):
        await CredentialSource(config(tmp_path / "config", plugin(tmp_path, script))).current()


async def test_a_plugin_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    user = plugin(tmp_path, "sleep 1000 & echo $! > $(dirname $0)/child; wait")
    with pytest.raises(CredentialsError, match="no answer in 1 s"):
        ask_plugin(user["exec"], {}, str(tmp_path), within_s=1.0)
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "status")

    async def ended() -> bool:
        return not lives(child)

    await until(ended, "the child's end")


def test_a_plugin_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"exec plugin gke-auth: No such file.*in PATH"):
        ask_plugin({"apiVersion": VERSION, "command": "gke-auth"}, {}, str(tmp_path))


def test_a_plugin_is_told_of_the_cluster_where_it_wants_it(tmp_path: Path) -> None:
    user = plugin(tmp_path, 'echo "$KUBERNETES_EXEC_INFO" > $(dirname $0)/info\n' + answer("x"))
    spec = {**user["exec"], "provideClusterInfo": True, "env": [{"name": "REGION", "value": "eu"}]}
    ask_plugin(spec, {"server": "https://x", "certificate-authority-data": "Q0E="}, str(tmp_path))
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"]["cluster"] == {"server": "https://x", "certificate-authority-data": "Q0E="}
    assert info["spec"]["interactive"] is False


async def test_a_token_that_says_its_end_is_renewed_before_it(tmp_path: Path) -> None:
    def jwt(ends: float) -> str:
        claims = base64.urlsafe_b64encode(json.dumps({"exp": ends}).encode()).rstrip(b"=").decode()
        return f"head.{claims}.signature"

    token, clock = tmp_path / "token", Clock()
    token.write_text(jwt(clock.now + 50))
    source = CredentialSource(config(tmp_path / "config", {"tokenFile": "token"}), now=clock)
    await source.current()
    token.write_text("renewed")
    clock.now += 44
    assert (await source.current()).authorization != "Bearer renewed"
    clock.now += 1
    assert (await source.current()).authorization == "Bearer renewed"


async def test_an_oidc_token_is_used(tmp_path: Path) -> None:
    claims = base64.urlsafe_b64encode(b'{"sub":"me"}').rstrip(b"=").decode()
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": f"head.{claims}.signature"}}}
    found = await CredentialSource(config(tmp_path / "config", user)).current()
    assert found.authorization == f"Bearer head.{claims}.signature"


def test_no_key_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    data = {name: base64.b64encode(b"pem").decode() for name in ("client-certificate-data", "client-key-data")}
    path = config(tmp_path / "config", data, server="https://x")
    found = read_kubeconfig(str(path), "", ask_plugin)
    assert (found.certificate, found.key) == (b"pem", b"pem")
    assert os.listdir(tmp_path) == ["config"]
