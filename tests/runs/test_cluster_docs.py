"""The recipes of docs/cluster.md, as they stand there: who can reach the cluster, and what a run on it gives.

Only ports, addresses and the budget are replaced: ports by free ones, other machines by this one's loopback.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, Security

import gibo
from gibo.cli import main

DOCUMENT = Path(__file__).parents[2] / "docs" / "cluster.md"
LOOPBACK = {"127.0.0.1", "::1"}
BUDGET = 12

OBJECTIVE = """
import numpy as np

def objective(x, seed):
    return -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())
"""

# The package's own clean-up of its threads and sockets warns at times; that is not ours to judge.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


class Recipe:
    """One section of the document, its scheduler and its worker running."""

    def __init__(self, title, folder):
        self.folder = folder
        section = re.search(rf"^### {title}\n(.*?)(?=^##|\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)[1]
        for there, here in {**_free_ports("8786", "8787"), "10.0.0.5": "127.0.0.1", "10.0.0.6": "127.0.0.1"}.items():
            assert there.startswith("10.") or there in section
            section = section.replace(there, here)
        self.commands = [
            shlex.split(line)
            for block in re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
            for line in block.splitlines()
        ]
        (self.python,) = re.findall(r"^```python no-run\n(.*?)^```", section, re.M | re.S)
        (self.address,) = set(re.findall(r"\b(?:tcp|tls)://[\d.]+:\d+", section))
        (folder / "my_robot.py").write_text(OBJECTIVE)
        self.processes = []

    def command(self, *begin):
        (found,) = [words for words in self.commands if tuple(words[: len(begin)]) == begin]
        return found

    def start(self):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")]),
            "OPENBLAS_NUM_THREADS": "1",
            "DASK_CONFIG": str(self.folder),  # not that of whoever runs the tests
            "DASK_TEMPORARY_DIRECTORY": str(self.folder),
        }
        for role in ("scheduler", "worker"):
            words = [sys.executable, "-m", "dask", *self.command("dask", role)[1:]]
            with (self.folder / f"{role}.log").open("wb") as log:
                self.processes.append(psutil.Popen(words, cwd=self.folder, env=environment, stdout=log, stderr=log))
        return self

    def family(self):
        """Scheduler, worker, and what the worker has started."""
        return [one for process in self.processes for one in (process, *process.children(recursive=True))]

    def end(self):
        family = self.family()
        for process in family:  # a nanny before its worker, which it would start again
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for process in self.processes:
            process.wait(timeout=20)
        deadline = time.monotonic() + 20
        while alive := [process for process in family if _is_alive(process)]:
            assert time.monotonic() < deadline, f"still running: {alive}"
            time.sleep(0.01)

    def security(self):
        names = {"ca_file": "ca.pem", "client_cert": "cluster.pem", "client_key": "cluster.key"}
        return Security(require_encryption=True, **{f"tls_{name}": str(self.folder / names[name]) for name in names})

    def maximize(self, monkeypatch):
        """What the document's Python gives, which stands in the client's folder."""
        monkeypatch.chdir(self.folder)
        monkeypatch.syspath_prepend(self.folder)
        monkeypatch.delitem(sys.modules, "my_robot", raising=False)
        names = {"x0": np.zeros(3)}
        assert "budget=300" in self.python
        exec(self.python.replace("budget=300", f"budget={BUDGET}"), names)
        names["client"].close()
        return names["result"], gibo.maximize(names["objective"], names["x0"], budget=BUDGET, scale=0.1)


def _is_alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _free_ports(*names):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in names]
    ports = {name: str(one.getsockname()[1]) for name, one in zip(names, held, strict=True)}
    for one in held:
        one.close()
    return ports


@pytest.fixture(scope="module")
def beyond(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the certificates")
    recipe = Recipe("Beyond one machine", tmp_path_factory.mktemp("beyond"))
    _make_certificates(recipe, recipe.folder)
    try:
        yield recipe.start()
    finally:
        recipe.end()


def _make_certificates(recipe, folder):
    made = [words for words in recipe.commands if words[0] == "openssl"]
    assert len(made) == 3
    for words in made:
        subprocess.run(words, cwd=folder, check=True, capture_output=True)


def _listening(process):
    """Where a process can be reached: its listening TCP sockets and all UDP ones."""
    sockets = process.net_connections(kind="inet")
    return [s.laddr for s in sockets if s.status == psutil.CONN_LISTEN or s.type == socket.SOCK_DGRAM]


def _assert_on_loopback(recipe):
    found = {process.pid: _listening(process) for process in recipe.family()}
    addresses = [address for of_one in found.values() for address in of_one]
    assert {address.ip for address in addresses} <= LOOPBACK, found
    # Nothing was missed: two servers each of the scheduler and the worker, and one of the nanny.
    assert len(addresses) == 5, found
    ports = {int(recipe.address.rpartition(":")[2])}
    ports |= {int(word.rpartition(":")[2]) for word in recipe.command("dask", "scheduler") if ":" in word}
    assert len(ports) == 2
    assert ports <= {address.port for address in addresses}


def test_beyond_one_machine_all_connections_have_certificates_and_the_result_is_that_of_one_process(
    beyond, monkeypatch, tmp_path
):
    with Client(beyond.address, security=beyond.security(), timeout=60) as client:
        client.wait_for_workers(1, timeout=60)
        _assert_on_loopback(beyond)
        ((worker, about),) = client.scheduler_info()["workers"].items()
        assert [address.partition("://")[0] for address in (worker, about["nanny"])] == ["tls", "tls"]
    there, here = beyond.maximize(monkeypatch)
    assert there.history.x.tolist() == here.history.x.tolist()
    assert there.history.value.tolist() == here.history.value.tolist()
    # The command line takes the same files.
    words = [*beyond.command("gibo", "train")[1:], "--budget", "6", "--out"]
    assert main([*words, str(tmp_path / "dask")]) == 0
    assert main(["train", "CartPole-v1", "--budget", "6", "--out", str(tmp_path / "here")]) == 0
    values = []
    for name in ("dask", "here"):
        with gibo.Journal.read(tmp_path / name / "trial-00") as journal:
            told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
            values.append([(e.query.x.tolist(), e.outcome.value) for e in told])
    assert len(values[0]) == 6
    assert values[0] == values[1]
    # So does Dask's configuration.
    files = {"ca-file": "ca.pem", "client.cert": "cluster.pem", "client.key": "cluster.key"}
    with dask.config.set({f"distributed.comm.tls.{name}": file for name, file in files.items()}):
        words = ["train", "CartPole-v1", "--budget", "2", "--dask", beyond.address, "--out"]
        assert main([*words, str(tmp_path / "configured")]) == 0


@pytest.mark.parametrize("who", ["plain", "stranger", "stranger who has our ca.pem"])
def test_who_has_no_certificate_of_the_cluster_is_refused(beyond, who, tmp_path, monkeypatch, capsys):
    with Client(beyond.address, security=beyond.security(), timeout=60):
        pass  # it is there for others
    _make_certificates(beyond, tmp_path)  # the same commands, another authority
    address, files = beyond.address, [str(tmp_path / name) for name in ("ca.pem", "cluster.pem", "cluster.key")]
    if who == "plain":
        address, files = address.replace("tls://", "tcp://"), []
    elif who != "stranger":
        files[0] = str(beyond.folder / "ca.pem")
    options = [word for pair in zip(("--dask-ca", "--dask-cert", "--dask-key"), files, strict=False) for word in pair]
    monkeypatch.setattr("gibo.cli.cluster.DASK_TIMEOUT", 2)
    assert main(["train", "CartPole-v1", "--dask", address, *options, "--out", str(tmp_path / "run")]) == 2
    assert f"the connection to {address} was closed" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--dask", "tls://127.0.0.1:1"], "needs --dask-ca, --dask-cert and --dask-key"),
        (["--dask", "tls://127.0.0.1:1", "--dask-ca", "x", "--dask-key", "x"], "all three, --dask-cert is missing"),
        (["--dask", "tcp://127.0.0.1:1", "THREE"], "expected tls://HOST:PORT together with certificates, got tcp://"),
        (["THREE"], "expected tls://HOST:PORT together with certificates, got nothing"),
        (["--dask", "tls://127.0.0.1:1", "THREE"], "--dask-ca: there is no file absent.pem"),
        (["--dask", "tls://127.0.0.1:1", "BROKEN"], "as PEM files that can be read"),
    ],
)
def test_what_is_wrong_with_the_certificates_is_said_in_one_line(options, error, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("broken.pem").write_text("no certificate")
    for word, name in (("THREE", "absent.pem"), ("BROKEN", "broken.pem")):
        if word in options:
            options = [*options[:-1], "--dask-ca", name, "--dask-cert", name, "--dask-key", name]
    assert main(["train", "CartPole-v1", *options, "--out", "run"]) == 2
    said = capsys.readouterr().err.strip()
    assert error in said
    assert "\n" not in said
    assert not Path("run").exists()
