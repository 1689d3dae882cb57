"""The plugin behind a plugin server, called over a unix socket as Argo CD's repo-server calls it.

With ``ARGOCD_BIN`` set to an ``argocd`` binary, every test also runs against Argo CD's own plugin server.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import typing as t

import grpc
import pytest

from tests.cmp_plugin.plugin_server import client, sandbox
from tests.cmp_plugin.rendered import FEATURES

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

PLUGIN = sandbox.TOP / "cmp-plugin" / "plugin.yaml"
COMMAND = ["htrflow-campaigns", "generate"]
SETTINGS = {"HTRFLOW_CAMPAIGNS_NAMESPACES": "htr-batch,archive-htr"}
SERVERS = ["python", *(["argocd"] if os.environ.get("ARGOCD_BIN") else [])]
SECONDS = 30


class Running(t.NamedTuple):
    """A plugin server: the folder of its socket, the socket, the folder that it unpacks repos into, and its process."""

    sockets: pathlib.Path
    socket: pathlib.Path
    work: pathlib.Path
    process: subprocess.Popen[bytes]


@contextlib.contextmanager
def started(kind: str) -> t.Iterator[Running]:
    """Starts a plugin server with the shipped plugin.yaml, and waits until its socket answers."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="server-", dir=sandbox.world()))
    for path in (folder, folder / "config", folder / "plugins", folder / "work"):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(path, sandbox.UID, sandbox.UID)
    shutil.copyfile(PLUGIN, folder / "config" / "plugin.yaml")
    (folder / "config" / "plugin.yaml").chmod(0o644)
    places = {"ARGOCD_PLUGINSOCKFILEPATH": f"{folder}/plugins", "ARGOCD_CMP_WORKDIR": f"{folder}/work"}
    environment = {**sandbox.environment(SETTINGS), **places}
    if kind == "argocd":
        # The walls stand around the whole server, as they do around the container.
        command = sandbox.confined([str(pathlib.Path(os.environ["ARGOCD_BIN"]).resolve())], writable=folder)
        environment["ARGOCD_BINARY_NAME"] = "argocd-cmp-server"
    else:
        # Around the command only: the server needs packages that only the tests' own user may be able to read.
        command = [sys.executable, "-P", "-m", "tests.cmp_plugin.plugin_server.server"]
        environment["PYTHONPATH"] = str(sandbox.TOP)
    with (folder / "log").open("wb") as log:
        options = ["--config-dir-path", str(folder / "config")]
        process = subprocess.Popen([*command, *options], cwd="/", env=environment, stderr=log, stdout=log)
    running = Running(folder / "plugins", folder / "plugins" / "htrflow-campaigns.sock", folder / "work", process)
    try:
        deadline = time.monotonic() + SECONDS
        while not answers(running.socket):
            assert process.poll() is None, (folder / "log").read_text("utf-8")
            assert time.monotonic() < deadline, (folder / "log").read_text("utf-8")
            time.sleep(0.05)
        yield running
    finally:
        # Argo CD's server waits for its clients before it ends.
        process.kill()
        process.wait(SECONDS)
        shutil.rmtree(folder)


def answers(path: pathlib.Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> t.Iterator[Running]:
    with started(request.param) as running:
        yield running


@pytest.fixture
def repo_server(server: Running) -> t.Iterator[client.Client]:
    with client.Client(server.socket) as connected:
        yield connected


def printed(repo: pathlib.Path) -> bytes:
    copy = sandbox.checkout(repo)
    return sandbox.run(COMMAND, copy, client.variables(), SETTINGS).stdout


def failure(repo_server: client.Client, repo: pathlib.Path, path: str = ".") -> str:
    """What an Application's error condition quotes."""
    with pytest.raises(grpc.RpcError) as raised:
        repo_server.generate(repo, path, client.variables(path=path))
    error = t.cast(grpc.Call, raised.value)
    assert error.code() is grpc.StatusCode.UNKNOWN
    return str(error.details())


def probe(sockets: pathlib.Path, name: str) -> subprocess.CompletedProcess[bytes]:
    command = ["htrflow-campaigns", "probe", "--sockets", str(sockets), "--name", name]
    return sandbox.run(command, pathlib.Path("/"), {})


def test_the_plugin_asks_for_no_repo_that_does_not_name_it(repo_server: client.Client) -> None:
    assert repo_server.discovers() is False


def test_the_plugin_announces_no_parameters(repo_server: client.Client, repo: Repo) -> None:
    assert repo_server.parameters(repo.path, ".", client.variables()) == 0


def test_the_manifests_are_the_objects_that_the_command_prints(repo_server: client.Client, repo: Repo) -> None:
    manifests = repo_server.generate(repo.path, ".", client.variables())
    assert [(found["kind"], found["metadata"]["name"]) for found in manifests] == [
        ("ConfigMap", "htr-pipeline-demo-v1"),
        ("Job", "htr-warmup-demo-v1"),
        ("ConfigMap", "campaign-letters"),
        ("Job", "letters"),
    ]
    assert len(manifests) == printed(repo.path).count(b"\n")


def test_the_texts_of_a_repo_that_uses_every_key_arrive_unchanged(repo_server: client.Client) -> None:
    manifests = repo_server.generate(FEATURES, ".", client.variables())
    assert manifests == client.objects(printed(FEATURES))


def test_the_app_may_be_a_folder_of_the_repo(repo_server: client.Client, repo: Repo, tmp_path: pathlib.Path) -> None:
    shutil.copytree(repo.path, tmp_path / "larger" / "htr" / "campaigns")
    found = repo_server.generate(tmp_path / "larger", "htr/campaigns", client.variables(path="htr/campaigns"))
    assert found == repo_server.generate(repo.path, ".", client.variables())


@pytest.mark.parametrize("parameters", client.PARAMETERS)
def test_an_application_with_or_without_parameters_gets_the_same(
    repo_server: client.Client, repo: Repo, parameters: str | None
) -> None:
    spoofed = {"ARGOCD_ENV_HTRFLOW_CAMPAIGNS_NAMESPACES": "kube-system", "PARAM_NAMESPACE": "kube-system"}
    variables = client.variables(parameters=parameters, extra=spoofed, revision="1" * 40)
    assert repo_server.generate(repo.path, ".", variables) == repo_server.generate(repo.path, ".", client.variables())


def test_a_bad_repo_is_an_error_with_the_command_and_the_place(repo_server: client.Client, repo: Repo) -> None:
    repo.write("campaigns/zz.yaml", "pipeline: demo-v2\nvolumes:\n  - R0001203\n")
    text = failure(repo_server, repo.path)
    start = "error generating manifests: `htrflow-campaigns generate` failed exit status 1: 1 problem in"
    assert text.startswith(f"{start} the campaigns repo: (1) campaigns/zz.yaml:1:11: ")


def test_the_longest_error_arrives_whole(repo_server: client.Client, repo: Repo) -> None:
    for number in range(300):
        repo.write(f"campaigns/a-{number:03}.yaml", "pipelin: demo-v1\n")
    text = failure(repo_server, repo.path)
    assert 5000 < len(text.encode()) < 6500
    assert re.search(r"; and \d+ more\.\Z", text)


def test_an_empty_repo_is_an_error(repo_server: client.Client, empty_repo: Repo) -> None:
    empty_repo.write("converter.yaml", "")
    assert "HTR601" in failure(repo_server, empty_repo.path)


def test_a_folder_that_is_not_in_the_repo_is_an_error(repo_server: client.Client, repo: Repo) -> None:
    assert failure(repo_server, repo.path, "nowhere")


def test_a_namespace_that_the_container_does_not_allow_is_an_error(repo_server: client.Client, repo: Repo) -> None:
    repo.write("converter.yaml", "source_template: https://iiif.example.org/{ref}\nnamespace: kube-system\n")
    assert "HTR602" in failure(repo_server, repo.path)


def test_a_damaged_archive_is_an_error(repo_server: client.Client, repo: Repo) -> None:
    with pytest.raises(grpc.RpcError, match="checksum"):
        repo_server.generate(repo.path, ".", client.variables(), checksum="0" * 64)


def test_a_link_within_the_repo_is_followed(repo_server: client.Client, repo: Repo) -> None:
    before = repo_server.generate(repo.path, ".", client.variables())
    (repo.path / "campaigns/letters.yaml").rename(repo.path / "letters.txt")
    (repo.path / "campaigns/letters.yaml").symlink_to("../letters.txt")
    assert repo_server.generate(repo.path, ".", client.variables()) == before


def test_several_applications_at_once_get_their_own_objects(
    server: Running, tmp_path: pathlib.Path, repo: Repo
) -> None:
    repos = []
    for number in range(6):
        copy = tmp_path / f"repo-{number}"
        shutil.copytree(repo.path, copy)
        (copy / "campaigns/letters.yaml").rename(copy / f"campaigns/letters-{number}.yaml")
        repos.append(copy)

    def ask(copy: pathlib.Path) -> str:
        with client.Client(server.socket) as connected:
            return t.cast(str, connected.generate(copy, ".", client.variables())[-1]["metadata"]["name"])

    with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
        assert list(pool.map(ask, repos)) == [f"letters-{number}" for number in range(6)]


def test_nothing_stays_behind_after_a_render(server: Running, repo_server: client.Client, repo: Repo) -> None:
    repo_server.generate(repo.path, ".", client.variables())
    repo.write("converter.yaml", "window: {\n")
    failure(repo_server, repo.path)
    deadline = time.monotonic() + SECONDS
    while left := list((server.work / "_cmp_server").iterdir()):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


# The readiness probe


def test_the_probe_succeeds_on_a_server_that_answers(server: Running) -> None:
    result = probe(server.sockets, "htrflow-campaigns")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_the_probe_fails_on_another_plugins_name(server: Running) -> None:
    result = probe(server.sockets, "another-plugin")
    assert result.returncode == 1
    assert b"another-plugin.sock" in result.stderr


@pytest.mark.parametrize("kind", SERVERS)
def test_the_probe_fails_before_the_server_is_there_and_after_it_has_died(kind: str) -> None:
    with started(kind) as running:
        assert probe(running.sockets, "htrflow-campaigns").returncode == 0
        running.process.kill()
        running.process.wait(SECONDS)
        # Killed, it leaves its socket behind.
        assert running.socket.is_socket()
        dead = probe(running.sockets, "htrflow-campaigns")
        assert (dead.returncode, dead.stdout) == (1, b"")
        assert b"is not running" in dead.stderr
        running.socket.unlink()
        absent = probe(running.sockets, "htrflow-campaigns")
        assert (absent.returncode, absent.stdout) == (1, b"")
        assert b"has not started" in absent.stderr
