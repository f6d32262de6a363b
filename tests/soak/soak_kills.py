"""Runs that are killed over and over, see `kill_helpers`; by hand, a value is in the journal when `tell` returns."""

import functools
import os
import random
import signal
import time
from contextlib import suppress

import numpy as np
from kill_helpers import OPTIMIZERS, X0, Attack, killed_runs, note, noted
from run_helpers import forked, state_of, told_in

import gibo
import gibo.policies.task
import gibo.runs.records
from gibo.cli import main as command_line
from gibo.errors import QueryError
from gibo.runs import manual
from gibo_studies.rivals import MPD, LocalEntropySearch, MinUCB, TrustRegionBO
from soak import SEED, Row, share_of

SEARCHES = {
    **OPTIMIZERS,
    "VanillaBO": lambda seed: gibo.VanillaBO(X0, scale=0.3, seed=seed, bounds=(-1.0, 1.0)),
    "RandomSearch": lambda seed: gibo.RandomSearch(X0, scale=0.3, seed=seed, batch=4),
    "MPD": lambda seed: MPD(X0, scale=0.3, seed=seed),
    "MinUCB": lambda seed: MinUCB(X0, scale=0.3, seed=seed),
    "LocalEntropySearch": lambda seed: LocalEntropySearch(X0, scale=0.3, seed=seed, ways=4),
    "TrustRegionBO": lambda seed: TrustRegionBO(X0, scale=0.3, seed=seed, batch=2),
}
KILLS = 80


def hill(x, seed):
    return -float(((x - 0.5) ** 2).sum()) + 0.1 * float(np.random.default_rng(seed).standard_normal())


class OnTraining(Attack):
    """An attack on gibo train."""

    def __init__(self, seed, folder, kills):
        super().__init__(None, seed, folder, kills)
        self.journal = folder / "trial-00"

    def start(self, connection):
        play = gibo.policies.task.Task.__call__

        @functools.wraps(play)  # it has a parameter named seed, for which a run looks
        def logged(task, *arguments, **options):
            connection.send("begun")
            outcome = play(task, *arguments, **options)
            note(self.log, self.killed, outcome.value)
            return outcome

        gibo.policies.task.Task.__call__ = logged
        quietly_train(self.seed, self.folder)

    def undisturbed(self):
        folder = self.folder.with_name(f"calm-{self.seed}")
        process = forked(quietly_train, self.seed, folder)
        process.join()
        return state_of(folder / "trial-00")


def quietly_train(seed, folder):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    words = ["train", "CartPole-v1", "--preset", "none", "--budget", "15", "--seed", str(seed), "--set", "M=2"]
    os._exit(command_line([*words, "--max-steps", "60", "--out", str(folder)]))


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
    attacks = {name: (functools.partial(Attack, make), KILLS) for name, make in SEARCHES.items()}
    attacks |= {"workers": (functools.partial(Attack, OPTIMIZERS["GIBO"], workers=2), 2 * KILLS)}
    attacks |= {"gibo train": (OnTraining, KILLS)}
    for name, (begin, kills) in attacks.items():
        (folder / name).mkdir()
        yield Row(f"SIGKILL, {name}", *killed_runs(begin, share_of(kills, share), folder / name))
    (folder / "by hand").mkdir()
    yield by_hand(share_of(120, share), folder / "by hand")
