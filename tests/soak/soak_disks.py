"""Disks that fill up in the middle of a run, and disks that cannot be written to."""

import os
import random
import subprocess
from contextlib import contextmanager, suppress

from run_helpers import content, told_in
from test_full_disk import climb, points_and_values, wordy

from gibo import JournalError, Status
from soak import SEED, Row, share_of


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


def rows(share, folder):
    if os.geteuid() != 0:
        return  # only root can mount a file system
    yield full(share_of(40, share), folder)
    yield read_only(share_of(20, share), folder)
