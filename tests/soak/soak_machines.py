"""Workers that die in the middle of an evaluation, on this machine and of a Dask cluster; disks full or read-only."""

import os
import random
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress

import numpy as np
from pool_helpers import SETTINGS, X0, everything, hill, quiet
from run_helpers import content, told_in
from test_full_disk import climb, points_and_values, wordy

import gibo
from gibo import JournalError, Status
from soak import SEED, Row, share_of

# -- workers ----------------------------------------------------------------------------------------------------------


def rows(share, folder):
    """Each worker that dies is replaced, its evaluation tried again, and the result is the one without deaths."""
    wanted, deaths, different, seed = share_of(100, share), 0, 0, 0
    while deaths < wanted:
        marks = folder / f"marks-{seed}"
        marks.mkdir()

        def objective(x, seed, marks=marks, room=wanted - deaths):
            mark = marks / str(seed)
            if seed % 2 and not mark.exists() and len(list(marks.iterdir())) < room:
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return hill(x, seed)

        options = {"budget": 30, "settings": SETTINGS, "seed": seed}
        with quiet():
            calm = gibo.maximize(hill, X0, **options)
            result = gibo.maximize(objective, X0, workers=2, retries=1, journal=folder / f"run-{seed}", **options)
        deaths += len(list(marks.iterdir()))
        different += everything(result) != everything(calm)
        seed += 1
    yield Row("dead workers", deaths, deaths - different, 0, different)


def dask_rows(share, folder):
    """One worker of two is killed in the middle of an iteration and another one takes its place."""
    from distributed import Client
    from test_dask import BUDGET, Cluster
    from test_dask import SETTINGS as DASK_SETTINGS
    from test_dask import hill as slow_hill

    wanted, different = share_of(30, share), 0
    options = {"budget": BUDGET, "scale": 0.3, "settings": DASK_SETTINGS}
    calm = gibo.maximize(slow_hill, np.zeros(4), **options)
    cluster = Cluster(folder)
    try:
        with Client(cluster.address(), timeout=120) as client:
            for death in range(wanted):
                client.wait_for_workers(2, timeout=120)
                killer = threading.Timer(0.03, cluster.workers[0].kill)
                run = {"executor": client.get_executor(), "journal": folder / f"run-{death}"}

                def callback(result, killer=killer):
                    if not killer.ident:
                        killer.start()

                result = gibo.maximize(slow_hill, np.zeros(4), callback=callback, **run, **options)
                killer.join()
                cluster.workers.pop(0).wait()
                cluster.workers.append(cluster.start("dask_worker", "--nthreads", "1", "--no-nanny"))
                different += everything(result) != everything(calm)
    finally:
        cluster.end()
    yield Row("dead Dask workers", wanted, wanted - different, 0, different)


# -- disks ------------------------------------------------------------------------------------------------------------


@contextmanager
def disk(folder, size):
    """A file system of its own, and how to mount it anew."""

    def mount(*options):
        subprocess.run(["mount", *options, str(folder)], check=True, capture_output=True)

    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={size}k", "tmpfs")
    try:
        yield lambda options: mount("-o", f"remount,{options}")
    finally:
        subprocess.run(["umount", str(folder)], check=False, capture_output=True)


def full(tries, folder):
    rng, survived, lost, different, calm = random.Random(SEED), 0, 0, 0, points_and_values(climb(budget=60))
    for i in range(tries):
        run, calls, words = folder / f"full-{i}" / "run", [], rng.choice([200, 3000, 9000, 30000])
        with disk(folder / f"full-{i}", rng.randrange(1080, 1120 if words == 200 else 1500)) as remount:
            stopped = "said"
            with suppress(JournalError):  # there is no room for a journal
                first = climb(run, wordy(calls, words), budget=60)
                stopped = "said" if first.status is Status.ERROR else "not"
                recorded = [e.value for e in told_in(run)]
                lost += sum(value not in recorded and f"{value!r}" not in first.reason for value in calls)
            remount("size=40m")
            again = climb(run, wordy(calls, words), budget=60)
            different += points_and_values(again) != calm
            survived += stopped == "said" and again.status is Status.BUDGET_SPENT
    return Row("disks that fill up", tries, survived, lost, different)


def read_only(tries, folder):
    survived = different = 0
    for i in range(tries):
        run, calls = folder / f"still-{i}" / "run", []
        with disk(folder / f"still-{i}", 20_000) as remount:
            climb(run, budget=4 + i % 20)
            before = content(run)
            remount("ro")
            different += content(run) != before
            try:
                climb(run, wordy(calls), budget=60, force=True)
            except JournalError:
                survived += not calls
    return Row("disks that cannot be written to", tries, survived, 0, different)


def disk_rows(share, folder):
    if os.geteuid() != 0:
        return  # only root can mount a file system
    yield full(share_of(40, share), folder)
    yield read_only(share_of(20, share), folder)
