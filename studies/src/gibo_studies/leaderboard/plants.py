"""Random plants with two to six bounded gains: tasks to choose settings by where few parameters lie in a wide box.

An instance draws a plant of first to third order with a dead time, the noise, and where the search starts. None is a
plant of the judge `gains`, whose plants are fixed ones of the literature. Controllers:

    2 gains    P, I                            4 gains    P, I, D, filter
    3 gains    P, I, D                         6 gains    P, I, D, filter, setpoint weight, feedforward

A value is minus the mean of the absolute error and of 0.05 times the input's changes, over an episode with a step of
the setpoint and, half-way, of the load. Gains are searched on a logarithmic axis, two decades wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.task import Problem, generator

STEPS, DT = 160, 0.08
FARTHEST = 10.0  # the output is held within this
JUDGING_EPISODES = 24
DECADES = 2.0
# This and those of `GAINS` were found by long runs of CMA-ES.
CHAIN_REFERENCE = -0.050522195921513316
WORSE = 1.3  # the start costs at least so many times as much as the best gains
# The gains that a controller with fewer of them does not tune.
FIXED = np.array([0.0, 0.0, 0.0, 0.1, 1.0, 0.0])
# The best values known of the instances by their number of gains: the best of 256 Sobol points and of Nelder-Mead from
# the three best of these.
BEST = {
    2: (-0.17296, -0.07028, -0.19607, -0.08464, -0.11694, -0.06868, -0.19865, -0.19054),
    3: (-0.22302, -0.06265, -0.08006, -0.08177, -0.05940, -0.05770, -0.15918, -0.14593),
    4: (-0.03428, -0.11614, -0.12405, -0.09943, -0.09934, -0.07433, -0.14683, -0.04586),
    6: (-0.08414, -0.06957, -0.16914, -0.04194, -0.09322, -0.10347, -0.08610, -0.10451),
}


class RandomPlant:
    """The plant and controller of an instance; see the module's text."""

    def __init__(self, d: int, number: int) -> None:
        rng = generator(f"plant {d}", number)
        self.number = number
        order = int(rng.integers(1, 4))
        self.lags = np.exp(rng.uniform(math.log(0.15), math.log(1.5), order))
        self.gain = math.exp(rng.uniform(math.log(0.5), math.log(2.0)))
        self.delay = int(rng.integers(1, 7))
        # P, I, D, filter, setpoint weight, feedforward: about where tuning rules would put them, but for a factor of 3
        lag, dead = float(self.lags.sum()), 0.5 * float(self.lags.min()) + self.delay * DT
        p = 0.6 * lag / (self.gain * dead)
        centre = np.array([p, p / max(lag, 0.3), 0.3 * p * dead, 0.3 * dead, 0.7, 0.5 / self.gain])[:d]
        self.centre = centre * np.exp(rng.uniform(-1.1, 1.1, d))
        self.spread, noise = rng.choice([0.03, 0.1, 0.25], 2).tolist()
        self.noise, self.order = 0.1 * noise, rng.permutation(d)

    def cost(self, x: Array, rng: np.random.Generator, episodes: int) -> Array:
        """The mean cost (episodes,) of each episode with x (d,) in [0, 1]."""
        lags, spread = self.lags, self.spread
        u01 = np.clip(x, 0.0, 1.0)[np.argsort(self.order)]
        k = np.concatenate([self.centre * 10.0 ** (DECADES * (u01 - 0.5)), FIXED[len(x) :]])
        p, i, derivative, filter, weight, forward = k
        setpoint = 1.0 + spread * rng.standard_normal(episodes)
        load = 0.5 * (1.0 + spread * rng.standard_normal(episodes))
        measured = self.noise * rng.standard_normal((STEPS, episodes))
        stages, pipe = np.zeros((len(lags), episodes)), [np.zeros(episodes)] * self.delay
        integral, seen, before, total = np.zeros(episodes), np.zeros(episodes), np.zeros(episodes), np.zeros(episodes)
        blend = DT / (filter + DT)
        for step in range(STEPS):
            y = stages[-1]
            last, seen = seen, seen + blend * (y + measured[step] - seen)
            u = (weight * p + forward) * setpoint - p * seen + integral - derivative * (seen - last) / DT
            u, free = np.clip(u, -5.0, 5.0), np.abs(u) < 5.0
            integral = integral + free * DT * i * (setpoint - seen)
            total += np.minimum(np.abs(setpoint - y), FARTHEST) + 0.05 * np.abs(u - before)
            before = u
            pipe.append(u)
            inflow = self.gain * (pipe.pop(0) + (load if 2 * step > STEPS else 0.0))
            stages = stages + DT / lags[:, None] * (np.vstack([inflow[None], stages[:-1]]) - stages)
            stages = np.clip(stages, -FARTHEST, FARTHEST)
        return total / STEPS

    def truth(self, x: Array) -> float:
        """Minus the mean cost of the judging episodes."""
        return -float(self.cost(x, generator("plants", self.number, 2), JUDGING_EPISODES).mean())


def random_plant(d: int, number: int) -> Problem:
    """The instance with so many gains."""
    plant, best = RandomPlant(d, number), BEST[d][number]
    rng = generator("start", d, number)
    start = rng.uniform(0.05, 0.6, d)
    while plant.truth(start) > WORSE * best:
        start = rng.uniform(0.05, 0.6, d)

    def evaluate(x: Array, seed: int) -> float:
        return -float(plant.cost(x, generator("value", number, seed), 1)[0])

    return Problem(evaluate, plant.truth, best, start=start)


# -- single plants ----------------------------------------------------------------------------------------------------


def chain(number: int) -> Problem:
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
