"""The tasks by which the default is chosen: some of the leaderboard's, one with skewed noise, three plants and
random ones with two to six gains.

Instances flip the signs or draw the order of the parameters, so that nothing can be gained from how a task's authors
ordered them. None is a task of a judge, except that the judge of policies has the environments CartPole-v1 and
InvertedPendulum-v5 as well, with orders of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo_studies.algorithm import plants
from gibo_studies.leaderboard import functions as f
from gibo_studies.leaderboard.environments import Environment
from gibo_studies.leaderboard.task import Problem, Task
from gibo_studies.leaderboard.tasks import TASKS

# Instances of the leaderboard's tasks begin here: its own trials have smaller numbers.
FIRST, FIRST_GP = 50, 20
CHAIN_REFERENCE = -0.050522195921513316  # this and those of `GAINS` were found by long runs of CMA-ES


@dataclass(frozen=True)
class Shuffled:
    """Instances with the parameters in a random order, with random signs, or both: x is given, the problem sees theta.

    Attributes:
        make: the instance of a number.
        start: (d,) of theta.
        first: the number of the first instance.
        order, signs: what is drawn.
    """

    make: Callable[[int], Problem]
    start: Array
    first: int = 0
    order: bool = True
    signs: bool = False

    def __call__(self, number: int) -> Problem:
        d, rng = len(self.start), np.random.default_rng((991, number))
        order = rng.permutation(d) if self.order else np.arange(d)
        signs = rng.choice([-1.0, 1.0], d) if self.signs else np.ones(d)
        problem = self.make(number + self.first)

        def theta(x: Array) -> Array:
            found = np.empty(d)
            found[order] = signs * x
            return found

        return Problem(
            evaluate=lambda x, seed: problem.evaluate(theta(x), seed),
            truth=lambda x: problem.truth(theta(x)),
            reference=problem.reference,
            told_mean=None if problem.told_mean is None else lambda x: None,
            start=signs * self.start[order],
        )


def policy(environment: Environment, marks: tuple[int, ...]) -> Task:
    """A policy's parameters in random order."""
    task = TASKS[environment.id]
    return replace(task, budget=marks[-1], marks=marks, make=Shuffled(environment, task.start))


def _shuffled(name: str, budget: int, first: int = FIRST, order: bool = False, signs: bool = False) -> Task:
    task = TASKS[name]
    make = Shuffled(task.make, task.start, first, order, signs)
    return replace(task, budget=budget, marks=quarters(budget), make=make)


def quarters(budget: int) -> tuple[int, ...]:
    """A quarter, a half and all of a budget."""
    return math.ceil(budget / 4), budget // 2, budget


# -- skewed noise -----------------------------------------------------------------------------------------------------


def _skewed(number: int) -> Problem:
    """A rotated ellipsoid; the noise has a heavy lower tail, mean 0 and a standard deviation of 10 % of the gain."""
    d, rng = 6, np.random.default_rng((77, number))
    optimum = rng.standard_normal(d)
    optimum *= f.AWAY * math.sqrt(d) / float(np.linalg.norm(optimum))
    Q, weights = f.rotation(d, rng), 30.0 ** np.linspace(0.0, 1.0, d)

    def truth(x: Array) -> float:
        return -float(weights @ (Q @ (x - optimum)) ** 2)

    sd = -0.1 * truth(np.zeros(d)) / math.sqrt((math.e - 1.0) * math.e)  # a log-normal number has that deviation

    def evaluate(x: Array, seed: int) -> float:
        drawn = math.exp(np.random.default_rng((78, number, seed)).standard_normal())
        return truth(x) - sd * (drawn - math.exp(0.5))

    return Problem(evaluate, truth, 0.0)


# -- plants -----------------------------------------------------------------------------------------------------------


def _chain(number: int) -> Problem:
    """Four masses in a chain with local feedback of position and speed, in units that are wrong by up to 5.5."""
    n, steps, dt, rng = 4, 80, 0.1, np.random.default_rng((79, number))
    unit, order = 30.0 ** rng.uniform(-0.5, 0.5, 2 * n), rng.permutation(2 * n)
    spring = 0.5 * np.eye(n) - 0.6 * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
    A = np.block([[np.zeros((n, n)), np.eye(n)], [spring, 0.05 * np.eye(n)]])

    def cost(x: Array, states: Array, pushes: Array) -> float:
        gains = (x / unit)[np.argsort(order)]
        s, total = states, 0.0
        for push in pushes:
            u = -np.clip(gains[:n] * s[:, :n] + gains[n:] * s[:, n:], -3.0, 3.0)
            rate = s @ A.T
            rate[:, n:] += u
            s = np.clip(s + dt * rate, -20.0, 20.0)
            s[:, n:] += push
            total += float(np.mean(np.log1p((s[:, :n] ** 2).sum(1)) + 0.02 * (u**2).sum(1)))
        return total / steps

    judging = 0.5 * np.random.default_rng(80).standard_normal((8, 2 * n))

    def evaluate(x: Array, seed: int) -> float:
        drawn = np.random.default_rng((81, number, seed))
        return -cost(x, 0.5 * drawn.standard_normal((1, 2 * n)), 0.05 * drawn.standard_normal((steps, n)))

    return Problem(evaluate, lambda x: -cost(x, judging, np.zeros((steps, n))), CHAIN_REFERENCE)


def _pid(gains: Sequence[float], rng: np.random.Generator, damping: float, delay: int, filter: float) -> float:
    """``y'' + damping·y' + y = u(t − delay)``: the setpoint jumps, half-way a load comes; noisy measurement."""
    (p, i, d), steps, dt = gains, 160, 0.1
    setpoint, load = 1.0 + 0.2 * rng.standard_normal(), 0.4 * rng.standard_normal()
    noise = (0.02 * rng.standard_normal(steps)).tolist()
    y = v = integral = filtered = before = cost = 0.0
    pipe = [0.0] * delay
    for k in range(steps):
        last, filtered = filtered, filtered + dt / (filter + dt) * (y + noise[k] - filtered)
        error = setpoint - filtered
        u = p * error + i * integral - d * (filtered - last) / dt
        limited = min(max(u, -4.0), 4.0)
        integral += dt * error if u == limited else 0.0
        cost += abs(setpoint - y) + 0.03 * (limited - before) ** 2
        before = limited
        pipe.append(limited)
        v += dt * (pipe.pop(0) + (load if k > steps // 2 else 0.0) - damping * v - y)
        y += dt * v
        if abs(y) > 20.0:
            return -20.0
    return -min(cost / steps, 20.0)


def _pi2(x: Array, rng: np.random.Generator) -> float:
    return _pid([math.exp(x[0]), math.exp(x[1]), 0.0], rng, damping=1.8, delay=4, filter=0.1)


def _pid3(x: Array, rng: np.random.Generator) -> float:
    return _pid([math.exp(gain) for gain in x], rng, damping=0.5, delay=3, filter=0.15)


@dataclass(frozen=True)
class Gains:
    """Bounded gains, each from 0 to 1 between its bounds; the start is drawn near a poor one. See `Task.make`."""

    episode: Callable[[Array, np.random.Generator], float]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    poor: tuple[float, ...]
    reference: float

    def __call__(self, number: int) -> Problem:
        lower, upper = np.array(self.lower), np.array(self.upper)
        rng = np.random.default_rng((992, number))
        order = rng.permutation(len(lower))
        near = (np.array(self.poor) - lower) / (upper - lower) + 0.08 * rng.standard_normal(len(lower))

        def value(x: Array, seed: Any) -> float:
            gains = lower + (upper - lower) * np.clip(x[np.argsort(order)], 0.0, 1.0)
            return float(self.episode(gains, np.random.default_rng(seed)))

        judging = [np.random.SeedSequence((5, k)) for k in range(12)]
        return Problem(
            evaluate=lambda x, seed: value(x, (6, number, seed)),
            truth=lambda x: float(np.mean([value(x, seed) for seed in judging])),
            reference=self.reference,
            start=np.clip(near, 0.05, 0.95)[order],
        )


GAINS = {
    "g-pi2": Gains(_pi2, (-4, -5), (2, 2), (-2.5, -4.0), -0.153441796049883),
    "g-pid3": Gains(_pid3, (-4, -5, -5), (2, 2, 2), (-2.0, -3.5, -3.5), -0.11407278825161708),
}


def _gains(name: str) -> Task:
    make = GAINS[name]
    return Task(name, np.full(len(make.lower), 0.5), 0.12, 40, make, "own", quarters(40), bounds=(0.0, 1.0))


# -- the list ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def choosing_tasks() -> dict[str, Task]:
    """By their names."""
    found = [
        _shuffled("gp8", 80, FIRST_GP),
        _shuffled("sphere20", 120, signs=True),
        _shuffled("ackley10", 100, signs=True),
        _shuffled("l1-12", 120, signs=True),
        _shuffled("plateau6", 60, signs=True),
        _shuffled("hyper9", 90, order=True),
        Task("skewed6", np.zeros(6), 1.0, 60, _skewed, "own", quarters(60)),
        Task("chain8", np.zeros(8), 1.0, 80, _chain, "own", quarters(80)),
        *map(_gains, GAINS),
        *plants.tasks(),
        policy(Environment("CartPole-v1", 500.0, 20), quarters(64)),
        policy(Environment("InvertedPendulum-v5", 1000.0, 8), quarters(60)),
        _shuffled("rotated-ellipsoid10", 150, signs=True),
        _shuffled("saturating16", 160, signs=True),
    ]
    return {task.name: task for task in found}
