"""Runs that are killed over and over, with a log of evaluations outside of gibo that is on the disk when they return.

In a run of one process an evaluation begins after the value before it was recorded, so of the values of one start all
but the last must be in the journal. Of each worker two values may be on their way. By hand, a value is in the journal
when `tell` returns. Each run must end bit for bit as one that was never disturbed.
"""

import functools
import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from run_helpers import FORK, forked, state_of, told_in

import gibo
import gibo.policies.task
import gibo.runs.records
from gibo.cli import main as command_line
from gibo.errors import QueryError
from gibo.runs import manual
from gibo_studies.rivals import MPD, LocalEntropySearch, MinUCB, TrustRegionBO
from soak import SEED, Row, share_of

X0 = [0.0, 0.1]
BUDGET = 40
OPTIMIZERS = {
    "GIBO": lambda seed: gibo.GIBO(X0, scale=0.3, seed=seed),
    "ARS": lambda seed: gibo.ARS(X0, scale=0.3, seed=seed, directions=3),
    "CMA-ES": lambda seed: gibo.CMAES(X0, scale=0.3, seed=seed),
    "VanillaBO": lambda seed: gibo.VanillaBO(X0, scale=0.3, seed=seed, bounds=(-1.0, 1.0)),
    "RandomSearch": lambda seed: gibo.RandomSearch(X0, scale=0.3, seed=seed, batch=4),
    "MPD": lambda seed: MPD(X0, scale=0.3, seed=seed),
    "MinUCB": lambda seed: MinUCB(X0, scale=0.3, seed=seed),
    "LocalEntropySearch": lambda seed: LocalEntropySearch(X0, scale=0.3, seed=seed, ways=4),
    "TrustRegionBO": lambda seed: TrustRegionBO(X0, scale=0.3, seed=seed, batch=2),
}
KILLS = {**dict.fromkeys(OPTIMIZERS, 80), "workers": 160, "by hand": 120, "gibo train": 80}


def hill(x, seed):
    return -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


def note(path, *what):
    """A line that is on the disk when this returns."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")
        file.flush()
        os.fsync(file.fileno())


def noted(path):
    with suppress(FileNotFoundError):
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return []


class Attack:
    """One run: started, killed and started again until it has come to its end."""

    def __init__(self, name, seed, folder, kills):
        self.name, self.seed, self.folder, self.kills = name, seed, folder, kills
        self.rng = random.Random(seed)
        self.log, self.killed, self.survived, self.lost, self.findings = folder.with_suffix(".log"), 0, 0, 0, []
        self.on_the_way = 4 if name == "workers" else 1

    def start(self, connection):
        """In a process of its own."""

        def objective(x, seed):
            connection.send("begun")
            value = hill(x, seed)
            note(self.log, self.killed, value)
            return value

        if self.name == "gibo train":
            play = gibo.policies.task.Task.__call__

            @functools.wraps(play)  # it has a parameter named seed, for which a run looks
            def logged(task, *arguments, **options):
                connection.send("begun")
                outcome = play(task, *arguments, **options)
                note(self.log, self.killed, outcome.value)
                return outcome

            gibo.policies.task.Task.__call__ = logged
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(command_line(train_words(self.seed, self.folder)))
        kind, options = ("GIBO", {"workers": 2}) if self.name == "workers" else (self.name, {})
        gibo.run(OPTIMIZERS[kind](self.seed), objective, budget=BUDGET, journal=self.journal, **options)

    @property
    def journal(self):
        return self.folder / "trial-00" if self.name == "gibo train" else self.folder

    def until_done(self):
        while True:
            ours, theirs = FORK.Pipe()
            process = forked(self.start, theirs)
            theirs.close()
            last = self.killed == self.kills
            begun = 10**9 if last else self.rng.choice([0, 0, 1, 2, 3, 5])
            with suppress(EOFError):  # it has come to its end
                for _ in range(begun):
                    ours.recv()
                time.sleep(self.rng.choice([0.0, self.rng.uniform(0.0, 0.003), self.rng.uniform(0.0, 0.05)]))
            process.kill() if not last else None
            process.join()
            ours.close()
            if process.exitcode == 0:
                self.check(whole=True)
                self.survived = self.killed
                return
            if process.exitcode != -signal.SIGKILL:
                self.findings.append(f"{self.name}, seed {self.seed}: a start ended with {process.exitcode}")
                return
            self.check()
            self.survived = self.killed  # those before: this start came to be
            self.killed += 1

    def check(self, whole=False):
        """That the values of the last start that must be there are."""
        values = [value for start, value in noted(self.log) if start == self.killed]
        values = values if whole else values[: -self.on_the_way]
        with suppress(gibo.InputError):  # the journal was not begun yet
            recorded = [e.value for e in told_in(self.journal)]
            missing = [value for value in values if value not in recorded]
            self.lost += len(missing)
            return
        self.lost += len(values)


def train_words(seed, folder):
    words = ["train", "CartPole-v1", "--preset", "none", "--budget", "15", "--seed", str(seed), "--set", "M=2"]
    return [*words, "--max-steps", "60", "--out", str(folder)]


def undisturbed(name, seed, folder):
    if name == "gibo train":
        process = forked(quiet_train, seed, folder)
        process.join()
        return state_of(folder / "trial-00")
    optimizer = OPTIMIZERS["GIBO" if name == "workers" else name](seed)
    gibo.run(optimizer, hill, budget=BUDGET)
    return optimizer.state()


def quiet_train(seed, folder):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(command_line(train_words(seed, folder)))


def killed_runs(name, kills, folder):
    killed = survived = lost = different = 0
    findings, seed = [], SEED
    while killed < kills:
        expected = undisturbed(name, seed, folder / f"calm-{seed}")  # first: the modules are loaded before the forks
        attack = Attack(name, seed, folder / f"{seed}", kills - killed)
        attack.until_done()
        findings += attack.findings
        killed, survived, lost = killed + attack.killed, survived + attack.survived, lost + attack.lost
        if attack.findings or state_of(attack.journal) != expected:
            different += 1
        if attack.findings:
            break
        seed += 1
    return Row(f"SIGKILL, {name}", killed, survived, lost, different, tuple(findings))


# -- by hand ----------------------------------------------------------------------------------------------------------


def tell_one(folder, number, value):
    with suppress(QueryError):  # told before the kill
        manual.tell(folder, number, value)


def by_hand(kills, folder):
    """`ask` and `tell`, each a process that is killed now and then and made again."""
    rng, killed, survived, lost, findings, told = random.Random(SEED), 0, 0, 0, [], {}
    description = manual.Description(["a", "b"], X0, [0.3] * 2, [-9.0] * 2, [9.0] * 2)
    manual.create(folder / "run", description)

    def done(target, *arguments):
        nonlocal killed, survived
        while True:
            process = forked(target, *arguments)
            kill = killed < kills and rng.random() < 0.5
            if kill:
                time.sleep(rng.uniform(0.0, 0.03))
                process.kill()
            process.join()
            if process.exitcode == 0:
                return
            if process.exitcode != -signal.SIGKILL:
                raise RuntimeError(f"{target.__name__} ended with {process.exitcode}")
            killed += 1

    while killed < kills:
        try:
            done(manual.ask, folder / "run")
            for query in manual.ask(folder / "run").queries:
                value = hill(query.x, query.seed)
                note(folder / "log", query.id, value)
                done(tell_one, folder / "run", query.id, value)
                told[query.id] = value
                recorded = {e.id: e.value for e in told_in(folder / "run")}
                lost += sum(recorded.get(number) != each for number, each in noted(folder / "log"))
        except (RuntimeError, gibo.GiboError) as error:
            findings.append(str(error))
            break
    survived = killed if not findings else killed - 1
    optimizer = description.optimizer()
    while len(optimizer.evaluations) < len(told):
        for query in optimizer.ask():
            optimizer.tell(query, hill(query.x, query.seed))
    different = int(state_of(folder / "run")["events"] != optimizer.state()["events"])
    return Row("SIGKILL, by hand", killed, survived, lost, different, tuple(findings))


def rows(share, folder):
    known = gibo.runs.records.versions()
    gibo.runs.records.versions = lambda: known  # to look them up takes longer than all else that a start does
    for name, kills in KILLS.items():
        (folder / name).mkdir()
        count = share_of(kills, share)
        yield by_hand(count, folder / name) if name == "by hand" else killed_runs(name, count, folder / name)
