"""What tests and soak share of kills: runs that are killed over and over, with a log of evaluations outside of gibo.

A line of the log is on the disk before an evaluation returns. In a run of one process an evaluation begins after the
value before it was recorded, so of the values of one start all but the last must be in the journal. Of each worker two
values may be on their way. Each run must end bit for bit as one that was never disturbed.
"""

import json
import os
import random
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from run_helpers import FORK, forked, state_of, told_in

import gibo
from gibo import ARS, CMAES, GIBO, Limits, Outcome, Settings

X0 = [0.0, 0.1]
BUDGET = 45


def noisy(x, seed):
    if seed % 13 == 0:
        raise RuntimeError("it broke")
    value = -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())
    return Outcome(value, measured={"load": float(x.sum())}, block=seed % 5 or None)


def with_baseline(seed):
    optimizer = GIBO(X0, scale=0.3, seed=seed, settings=Settings(blocks="given"))
    optimizer.baseline = 2
    return optimizer


OPTIMIZERS = {
    "GIBO": lambda seed: GIBO(X0, scale=0.3, seed=seed),
    "GIBO with limits": lambda seed: GIBO(X0, scale=0.3, seed=seed, limits=Limits({"load": (None, 0.4)}, careful=True)),
    "GIBO with days": with_baseline,
    "ARS": lambda seed: ARS(X0, scale=0.3, seed=seed, directions=3),
    "CMA-ES": lambda seed: CMAES(X0, scale=0.3, seed=seed),
}


def quietly_run(optimizer, objective, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        return gibo.run(optimizer, objective, **options)


def undisturbed(optimizer, objective=noisy, budget=BUDGET):
    """The state of the optimiser after a run that nobody disturbs."""
    quietly_run(optimizer, objective, budget=budget)
    return optimizer.state()


def by_id(state):
    """A state with the values of each batch in the order of their ids: those of workers arrive in any order."""
    found, others = [], 0
    for kind, content in state["events"]:
        others += kind != "told"
        found.append((others, content["query"]["id"] if kind == "told" else -1, content))
    return {**state, "events": sorted(found, key=lambda each: each[:2])}


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
    """One run: started, killed and started again until it has come to its end.

    Attributes:
        killed, survived: kills, and those after which the run went on.
        lost: values of the log that are not in the journal.
        findings: what else was wrong, in words.
    """

    def __init__(self, make, seed, folder, kills, **options):
        self.make, self.seed, self.folder, self.journal, self.kills = make, seed, folder, folder, kills
        self.options, self.on_the_way = options, 2 * options.get("workers", 0) or 1
        self.rng = random.Random(seed)
        self.log, self.killed, self.survived, self.lost, self.findings = folder.with_suffix(".log"), 0, 0, 0, []

    def undisturbed(self):
        return undisturbed(self.make(self.seed))

    def start(self, connection):
        """In a process of its own."""

        def objective(x, seed):
            connection.send("begun")
            outcome = noisy(x, seed)
            note(self.log, self.killed, outcome.value)
            return outcome

        quietly_run(self.make(self.seed), objective, budget=BUDGET, journal=self.journal, **self.options)

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
                self.findings.append(f"seed {self.seed}: a start ended with {process.exitcode}")
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
            values = [value for value in values if value not in recorded]
        self.lost += len(values)


def killed_runs(begin, kills, folder):
    """Kill runs so often in all: kills, those survived, values lost, runs with another end, and findings.

    `begin` makes the attack on a run from its seed, its folder and the kills that are left.
    """
    killed = survived = lost = different = seed = 0
    findings = []
    while killed < kills and not findings:
        attack = begin(seed, folder / f"{seed}", kills - killed)
        expected = attack.undisturbed()  # first: the modules are loaded before the forks
        attack.until_done()
        findings += attack.findings
        killed, survived, lost = killed + attack.killed, survived + attack.survived, lost + attack.lost
        different += bool(attack.findings) or by_id(state_of(attack.journal)) != by_id(expected)
        seed += 1
    return killed, survived, lost, different, tuple(findings)
