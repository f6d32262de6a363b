"""A Python without the parts that only POSIX has, as on Windows: what does without them, and what is refused."""

import subprocess
import sys

WINDOWS = """
import os, sys, types

calls = []

def locking(descriptor, mode, count):
    calls.append((mode, count))
    if mode == 1 and os.environ.get("HELD"):
        raise PermissionError(13, "held")

# Other libraries have their own ways on Windows; they are loaded before these parts are taken away.
import concurrent.futures.thread, http.server, logging, multiprocessing.connection, numpy, random, scipy.linalg
import scipy.optimize, scipy.special, scipy.stats, sqlite3, subprocess, tempfile, threadpoolctl

sys.modules["fcntl"] = None
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=1)
for name in ("register_at_fork", "setpgid", "getpgrp", "killpg", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
"""

# They import other libraries, which have their own ways on Windows.
OTHERS = ("gibo.integrations.", "gibo.figures.", "gibo.policies.", "gibo.training.")

RUN = """
import importlib, pkgutil
import gibo
for module in pkgutil.walk_packages(gibo.__path__, "gibo."):
    if module.name != "gibo.__main__" and not module.name.startswith(OTHERS):
        importlib.import_module(module.name)
f = lambda x: -float(x @ x)
plain = gibo.maximize(f, [1.0, 1.0], budget=6, scale=0.3)
kept = gibo.maximize(f, [1.0, 1.0], budget=4, scale=0.3, journal="run")
assert set(calls) == {(1, 1)}
assert (gibo.resume("run", f, budget=6).history.x == plain.history.x).all()
assert gibo.cli.main(["best", "run"]) == 0
try:
    gibo.maximize(f, [1.0], budget=2, workers=2)
except gibo.InputError as error:
    print(error)
os.environ["HELD"] = "1"
try:
    gibo.resume("run", f, budget=8)
except gibo.JournalError as error:
    print(error)
"""


def test_without_posix_runs_and_journals_work_and_workers_are_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", f"{WINDOWS}OTHERS = {OTHERS}\n{RUN}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "executor=concurrent.futures.ProcessPoolExecutor()" in done.stdout
    assert "in use by" in done.stdout
