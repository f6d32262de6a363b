"""What policy search costs besides the environment: rollouts, workers and the optimiser.

    python benchmarks/policies.py            # about two minutes on two free cores

Ratios within one run; each line says what it compares.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import gymnasium
import numpy as np

from gibo.policies import Task
from gibo.policies.environment import rollout
from gibo.policies.normalizer import Normalization
from gibo.runs.journal import Journal
from gibo.training.presets import PRESETS
from gibo.training.training import train
from gibo_studies.paper.control import LQR

# Policies under which an episode lasts: a pole that is balanced, a swimmer at rest, and a hopper that may fall.
ENVIRONMENTS = {"CartPole-v1": 40_000, "Swimmer-v5": 12_000, "Hopper-v5": 8_000, "HalfCheetah-v5": 12_000}
ROUNDS = 5


def bare(environment: gymnasium.Env, K: np.ndarray, steps: int) -> float:
    """Steps per second of a loop with a matrix-vector product as the policy, and nothing else."""
    discrete = isinstance(environment.action_space, gymnasium.spaces.Discrete)
    done, seed, began = 0, 0, time.perf_counter()
    while done < steps:
        observation, _ = environment.reset(seed=seed)
        seed += 1
        over = False
        while not over:
            u = K @ observation
            observation, _, terminated, truncated, _ = environment.step(int(u[0] > 0.0) if discrete else u)
            over = terminated or truncated
            done += 1
    return done / (time.perf_counter() - began)


def ours(environment: gymnasium.Env, task: Task, K: np.ndarray, steps: int, collect: bool) -> float:
    """Steps per second of our rollout; with statistics of the states, the policy normalises them too."""
    identity = Normalization.identity(K.shape[1]) if collect else None
    policy = task.bind(K.ravel(), identity)
    done, seed, began = 0, 0, time.perf_counter()
    while done < steps:
        done += rollout(environment, policy, seed=seed, collect=collect).steps
        seed += 1
    return done / (time.perf_counter() - began)


def rollouts() -> None:
    print("steps per second of our rollout as a share of a bare loop's, median of rounds (lowest, highest)")
    for name, steps in ENVIRONMENTS.items():
        with Task(name, policy="linear") as task:
            environment = task.make()
            K = np.zeros((task.architecture.outputs, task.architecture.inputs))
            if name == "CartPole-v1":
                K[:] = [0.1, 0.5, 1.0, 1.0]  # balances
            shares = []
            for _ in range(ROUNDS):  # one after the other, so that a slow moment of the machine meets all three
                floor = bare(environment, K, steps)
                shares.append([ours(environment, task, K, steps, collect) / floor for collect in (False, True)])
            environment.close()
        plain, collecting = np.array(shares).T
        texts = [f"{np.median(s):.2f} ({s.min():.2f}, {s.max():.2f})" for s in (plain, collecting)]
        print(f"  {name}: {texts[0]}; with normalised states and their statistics {texts[1]}", flush=True)


def regulator() -> None:
    lqr = LQR.paper()
    times = []
    for seed in range(300):
        K = -0.3 * np.eye(3) + 0.1 * np.random.default_rng(seed).standard_normal((3, 3))
        began = time.perf_counter()
        lqr.episode_return(K, seed=seed)
        times.append(time.perf_counter() - began)
    print(f"linear quadratic regulator, an episode of 300 steps: {1e3 * np.median(times):.2f} ms (at most 2 ms)")


def seconds(name: str, budget: int, folder: Path, workers: int | None) -> float:
    training = PRESETS["gibo"][name, "gibo"]
    began = time.perf_counter()
    train(training, folder, budget=budget, seed=0, workers=workers)
    return time.perf_counter() - began


def workers(folder: Path) -> None:
    name, budget = "Swimmer-v5", 6 * 17
    seconds(name, 17, folder / "warm", 1)  # load what is loaded at the first use
    gains = []
    for i in range(ROUNDS):
        one, two = (seconds(name, budget, folder / f"{n}-{i}", n) for n in (1, 2))
        gains.append(one / two)
    text = f"{np.median(gains):.2f} ({min(gains):.2f}, {max(gains):.2f})"
    print(f"two workers: {text} times the episodes per second of one ({name}, {budget} episodes)")
    values = []
    for n in (1, 2):
        with Journal.read(folder / f"{n}-0") as journal:
            values.append(sorted((e.query.id, e.value) for e, _ in journal.evaluations()))
    print(f"  the same returns: {values[0] == values[1]}")


def optimiser(folder: Path) -> None:
    name, budget = "Swimmer-v5", 10 * 17
    taken = seconds(name, budget, folder / "alone", None)
    with Journal.read(folder / "alone") as journal:
        episodes = sum(e.outcome.seconds or 0.0 for e, _ in journal.evaluations())
    share = 1.0 - episodes / taken
    where = f"{name}, {budget} episodes, window full"
    print(f"optimiser, journal and all else: {100 * share:.1f} % of the run's time ({where})")


def main() -> None:
    rollouts()
    regulator()
    with tempfile.TemporaryDirectory() as name:
        workers(Path(name))
        optimiser(Path(name))


if __name__ == "__main__":
    main()
