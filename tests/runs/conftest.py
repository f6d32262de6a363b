"""What the tests of runs need on the disk."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

import gibo.runs.records
from gibo.cli import main

VERSIONS = gibo.runs.records.versions()


@pytest.fixture
def known_versions(monkeypatch):
    """To look them up takes longer than all else that a start does; the tests of the journal do."""
    monkeypatch.setattr(gibo.runs.records, "versions", lambda: VERSIONS)


@pytest.fixture
def in_memory():
    """A folder in memory where possible: what a kill leaves is the same there, and many small records are faster."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as path:
        yield Path(path)


@pytest.fixture
def disk(tmp_path):
    """A file system of its own: how to make it, of some size in kB, and how to mount it anew with other options."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(*options):
        done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")

    def make(size):
        mount("-t", "tmpfs", "-o", f"size={size}k", "tmpfs")
        return folder

    yield make, lambda options: mount("-o", f"remount,{options}")
    subprocess.run(["umount", str(folder)], capture_output=True, check=False)


@pytest.fixture(scope="module", autouse=True)
def any_objective():
    """These tests count, delay and interrupt objectives by others around them, which go for the same one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gibo.runs.api.fingerprint", lambda objective: None)
        yield


@pytest.fixture
def bench(tmp_path, request):
    """A run by hand, described by the module's FILE."""
    (tmp_path / "bench.toml").write_text(request.module.FILE)
    assert main(["init", str(tmp_path / "run"), "--parameters", str(tmp_path / "bench.toml")]) == 0
    return tmp_path / "run"
