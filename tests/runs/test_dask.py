"""A run on a real Dask cluster: a scheduler and two worker processes on loopback, one of which is killed."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

import gibo
from gibo.cli import main

SETTINGS = gibo.Settings(M=6)
BUDGET = 35


def hill(x, seed):
    time.sleep(0.02)
    return -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


class Cluster:
    """A scheduler and two workers on loopback; certificates (ca, cert, key) for TLS."""

    def __init__(self, folder, certificates=None):
        self.tls = []
        if certificates is not None:
            self.tls = ["--protocol", "tls"]
            for name, file in zip(("ca-file", "cert", "key"), certificates, strict=True):
                self.tls += [f"--tls-{name}", file]
        self.file = folder / "scheduler.json"
        self.processes = [self.start("dask_scheduler", "--port", "0")]
        self.workers = [self.start("dask_worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]

    def start(self, module, *options):
        words = ["-m", f"distributed.cli.{module}", "--scheduler-file", str(self.file), "--host", "127.0.0.1"]
        path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        environment["DASK_TEMPORARY_DIRECTORY"] = str(self.file.parent)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # --no-dashboard would leave an HTTP server on all interfaces.
        words += ["--dashboard-address", "127.0.0.1:0"]
        return subprocess.Popen([sys.executable, *words, *options, *self.tls], env=environment, **quiet)

    def address(self):
        deadline = time.monotonic() + 60
        while True:
            with suppress(FileNotFoundError, json.JSONDecodeError):  # it is being written
                return json.loads(self.file.read_text())["address"]
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)

    def end(self):
        for process in [*self.workers, *self.processes]:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        yield made
    finally:
        made.end()


# The package's own clean-up of its threads and sockets warns at times; that is not ours to judge.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


def test_a_cluster_gives_the_result_of_one_process_also_when_a_worker_is_killed(cluster, tmp_path):
    expected = gibo.maximize(hill, np.zeros(4), budget=BUDGET, scale=0.3, settings=SETTINGS)
    with Client(cluster.address(), timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
        calm = gibo.maximize(
            hill, np.zeros(4), budget=BUDGET, scale=0.3, settings=SETTINGS, executor=client.get_executor()
        )
        assert calm.history.x.tolist() == expected.history.x.tolist()
        assert calm.history.value.tolist() == expected.history.value.tolist()

        killer = threading.Timer(0.03, cluster.workers[0].kill)  # in the middle of the next iteration

        def kill(result):
            if not killer.ident:
                killer.start()
            return False

        disturbed = gibo.maximize(
            hill,
            np.zeros(4),
            budget=BUDGET,
            scale=0.3,
            settings=SETTINGS,
            executor=client.get_executor(),
            journal=tmp_path / "run",
            callback=kill,
        )
        killer.join()
        assert cluster.workers[0].wait(timeout=10) == -signal.SIGKILL
        assert not disturbed.failures
        assert disturbed.history.x.tolist() == expected.history.x.tolist()
        assert disturbed.history.value.tolist() == expected.history.value.tolist()
    # What is left of the cluster is enough for the command line.
    words = ["train", "CartPole-v1", "--budget", "12", "--out"]
    assert main([*words, str(tmp_path / "dask"), "--dask", cluster.address()]) == 0
    assert main([*words, str(tmp_path / "here")]) == 0
    there, here = (gibo.Journal.read(tmp_path / name / "trial-00") for name in ("dask", "here"))
    with there, here:
        assert _by_id(there) == _by_id(here)


def succeeds_the_second_time(x, folder):
    """Each point fails once, on whichever worker."""
    marker = Path(folder) / x.tobytes().hex()
    if not marker.exists():
        marker.touch()
        raise RuntimeError("a loose cable")
    return -float(x @ x)


def test_a_failed_evaluation_is_made_again_and_not_remembered_by_the_cluster(cluster, tmp_path):
    objective = functools.partial(succeeds_the_second_time, folder=str(tmp_path))
    with Client(cluster.address(), timeout=60) as client:
        result = gibo.run(gibo.RandomSearch([1.0]), objective, budget=4, retries=1, executor=client.get_executor())
    assert (result.evaluations, result.failures) == (4, ())


def _by_id(journal):
    return sorted((e.id, e.x.tolist(), e.value) for e, _ in journal.evaluations())


# -- with certificates ------------------------------------------------------------------------------------------------


def certificates(folder, name):
    """A certificate that is its own authority, and its key: as options of `gibo train`."""
    cert, key = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    subprocess.run([*words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, cert, key


def as_options(files):
    return [word for pair in zip(("--dask-ca", "--dask-cert", "--dask-key"), files, strict=True) for word in pair]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command makes the certificates")
def test_a_cluster_with_certificates_takes_its_own_clients_only(tmp_path, monkeypatch, capsys):
    files = certificates(tmp_path, "cluster")
    guarded = Cluster(tmp_path, files)
    try:
        words = ["train", "CartPole-v1", "--budget", "4", "--out"]
        address = guarded.address()
        assert address.startswith("tls://")
        assert main([*words, str(tmp_path / "dask"), "--dask", address, *as_options(files)]) == 0
        assert main([*words, str(tmp_path / "here")]) == 0
        there, here = (gibo.Journal.read(tmp_path / name / "trial-00") for name in ("dask", "here"))
        with there, here:
            assert _by_id(there) == _by_id(here)
        monkeypatch.setattr("gibo.cli.cluster.DASK_TIMEOUT", 2)
        stranger = as_options(certificates(tmp_path, "stranger"))
        for to, options in ((address.replace("tls", "tcp"), []), (address, stranger)):
            capsys.readouterr()
            assert main([*words, str(tmp_path / "no"), "--dask", to, *options]) == 2
            assert f"the connection to {to} was closed" in capsys.readouterr().err
        assert not (tmp_path / "no").exists()
    finally:
        guarded.end()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--dask", "tls://127.0.0.1:1"], "needs --dask-ca, --dask-cert and --dask-key"),
        (["--dask", "tls://127.0.0.1:1", "--dask-ca", "x", "--dask-key", "x"], "all three, --dask-cert is missing"),
        (["--dask", "tls://127.0.0.1:1", *as_options(["broken.pem"] * 3)], "as PEM files that can be read"),
    ],
)
def test_what_is_wrong_with_the_certificates_is_said_in_one_line(options, error, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("broken.pem").write_text("no certificate")
    assert main(["train", "CartPole-v1", *options, "--out", "run"]) == 2
    said = capsys.readouterr().err.strip()
    assert error in said
    assert "\n" not in said
    assert not Path("run").exists()
