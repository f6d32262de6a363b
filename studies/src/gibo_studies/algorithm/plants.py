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
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gibo._linalg import Array
from gibo_studies.leaderboard.task import Problem, Task, generator

STEPS, DT = 160, 0.08
FARTHEST = 10.0  # the output is held within this
JUDGING_EPISODES = 24
DECADES = 2.0
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


@dataclass(frozen=True)
class RandomPlant:
    """The plant and controller of an instance; see the module's text."""

    d: int
    number: int

    @cached_property
    def _drawn(self) -> tuple[Array, float, int, Array, float, float, npt.NDArray[np.int64]]:
        rng = generator(f"plant {self.d}", self.number)
        order = int(rng.integers(1, 4))
        lags = np.exp(rng.uniform(math.log(0.15), math.log(1.5), order))
        gain = math.exp(rng.uniform(math.log(0.5), math.log(2.0)))
        delay = int(rng.integers(1, 7))
        # P, I, D, filter, setpoint weight, feedforward: about where tuning rules would put them, but for a factor of 3
        lag, dead = float(lags.sum()), 0.5 * float(lags.min()) + delay * DT
        p = 0.6 * lag / (gain * dead)
        centre = np.array([p, p / max(lag, 0.3), 0.3 * p * dead, 0.3 * dead, 0.7, 0.5 / gain])[: self.d]
        centre = centre * np.exp(rng.uniform(-1.1, 1.1, self.d))
        spread, noise = rng.choice([0.03, 0.1, 0.25], 2)
        return lags, gain, delay, centre, float(spread), 0.1 * float(noise), rng.permutation(self.d)

    def cost(self, x: Array, rng: np.random.Generator, episodes: int) -> Array:
        """The mean cost (episodes,) of each episode with x (d,) in [0, 1]."""
        lags, gain, delay, centre, spread, noise, order = self._drawn
        u01 = np.clip(x, 0.0, 1.0)[np.argsort(order)]
        k = np.concatenate([centre * 10.0 ** (DECADES * (u01 - 0.5)), FIXED[self.d :]])
        p, i, derivative, filter, weight, forward = k
        setpoint = 1.0 + spread * rng.standard_normal(episodes)
        load = 0.5 * (1.0 + spread * rng.standard_normal(episodes))
        measured = noise * rng.standard_normal((STEPS, episodes))
        stages, pipe = np.zeros((len(lags), episodes)), [np.zeros(episodes)] * delay
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
            inflow = gain * (pipe.pop(0) + (load if 2 * step > STEPS else 0.0))
            stages = stages + DT / lags[:, None] * (np.vstack([inflow[None], stages[:-1]]) - stages)
            stages = np.clip(stages, -FARTHEST, FARTHEST)
        return total / STEPS

    def truth(self, x: Array) -> float:
        """Minus the mean cost of the judging episodes."""
        return -float(self.cost(x, generator("plants", self.number, 2), JUDGING_EPISODES).mean())

    @property
    def best(self) -> float:
        """The highest value known."""
        return BEST[self.d][self.number]


@dataclass(frozen=True)
class Plants:
    """Instances with so many gains; see `Task.make`."""

    d: int

    def __call__(self, number: int) -> Problem:
        plant = RandomPlant(self.d, number)
        rng = generator("start", self.d, number)
        start = rng.uniform(0.05, 0.6, self.d)
        while plant.truth(start) > WORSE * plant.best:
            start = rng.uniform(0.05, 0.6, self.d)

        def evaluate(x: Array, seed: int) -> float:
            return -float(plant.cost(x, generator("value", number, seed), 1)[0])

        return Problem(evaluate, plant.truth, plant.best, start=start)


def tasks() -> tuple[Task, ...]:
    """Those with 2, 3, 4 and 6 gains, looked at after 10, 20 and 40 values."""
    return tuple(
        Task(f"plants{d}", np.full(d, 0.3), 0.2, 40, Plants(d), "own", (10, 20, 40), (0.0, 1.0), trials=len(BEST[d]))
        for d in BEST
    )
