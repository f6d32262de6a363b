"""Test functions, other ones in every instance; to be maximised, the best value is 0 or as said.

x are the parameters, z = Q(x − x*) what the function sees: x* the optimum, away from the start by `AWAY` in every
parameter on average (root mean square), Q the identity or a random rotation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.task import Problem, generator, noisy
from gibo_studies.paper.problems import NOISE_SD, gp_function

AWAY = 2.0

Function = Callable[[Array], float]


def sphere(z: Array) -> float:
    return -float(z @ z)


def ellipsoid(z: Array, condition: float) -> float:
    """Curvatures from 1 to the condition number, evenly on a logarithmic axis."""
    return -float(condition ** np.linspace(0.0, 1.0, len(z)) @ z**2)


def ackley(z: Array) -> float:
    bowl, waves = math.sqrt(float((z**2).mean())), float(np.cos(2.0 * math.pi * z).mean())
    return 20.0 * math.exp(-0.2 * bowl) + math.exp(waves) - 20.0 - math.e


def saturating(z: Array) -> float:
    """Flat far away; the best value is 1."""
    return math.exp(-float((z**2).mean()) / 2.0)


def l1(z: Array) -> float:
    return -float(np.abs(z).sum())


def plateau(z: Array) -> float:
    """Nothing below 0 and nothing above 1, as where a score has a least and a highest value."""
    return float(np.clip((3.2 - 0.6 * float((z**2).mean())) / 2.8, 0.0, 1.0))


@dataclass(frozen=True)
class Shifted:
    """Instances of a function of z in d parameters, with noise of a level."""

    name: str
    function: Function
    d: int
    noise: str
    best: float = 0.0  # at z = 0
    rotated: bool = False  # whether Q is a random rotation

    def __call__(self, number: int) -> Problem:
        rng = generator(self.name, number)
        optimum = far_point(self.d, rng)
        Q = rotation(self.d, rng) if self.rotated else np.eye(self.d)

        def truth(x: Array) -> float:
            return self.function(Q @ (x - optimum))

        evaluate = noisy(self.name, self.noise, truth, np.zeros(self.d), self.best)
        return Problem(evaluate, truth, self.best, optimum)


def skewed(number: int) -> Problem:
    """A rotated ellipsoid; the noise has a heavy lower tail, mean 0 and a standard deviation of 10 % of the gain."""
    d, rng = 6, np.random.default_rng((77, number))
    optimum = far_point(d, rng)
    Q, weights = rotation(d, rng), 30.0 ** np.linspace(0.0, 1.0, d)

    def truth(x: Array) -> float:
        return -float(weights @ (Q @ (x - optimum)) ** 2)

    sd = -0.1 * truth(np.zeros(d)) / math.sqrt((math.e - 1.0) * math.e)  # a log-normal number has that deviation

    def evaluate(x: Array, seed: int) -> float:
        drawn = math.exp(np.random.default_rng((78, number, seed)).standard_normal())
        return truth(x) - sd * (drawn - math.exp(0.5))

    return Problem(evaluate, truth, 0.0)


@dataclass(frozen=True)
class Paper:
    """The paper's functions on the unit cube, another one in every instance, with noise of standard deviation 0.1."""

    d: int

    def __call__(self, number: int) -> Problem:
        function = _gp_function(self.d, 5000 + number)  # not those of the synthetic study

        def evaluate(x: Array, seed: int) -> float:
            return function(x) + NOISE_SD * float(generator("gp", seed, 1).standard_normal())

        return Problem(evaluate, function, function.f_best, function.x_best)


_gp_function = functools.lru_cache(maxsize=64)(gp_function)


@dataclass(frozen=True)
class Hyperparameters:
    """A test score in percent as a function of settings on logarithmic axes, each from 0 to 1.

    The first is the learning rate. Only `matter` of them matter, some work together; where the learning rate is too
    high for the others the training fails, and the score is that of guessing.
    """

    name: str
    d: int
    matter: int
    noise: str

    def __call__(self, number: int) -> Problem:
        rng = generator(self.name, number)
        best = rng.uniform(0.2, 0.8, self.d)
        best[0] = rng.uniform(0.55, 0.7)
        weight = np.concatenate([[90.0, 40.0], rng.uniform(15.0, 40.0, self.d)])[: self.matter]
        together = 0.6 * float(rng.choice([-1.0, 1.0]))

        def truth(x: Array) -> float:
            u = (x - best)[: self.matter]
            u[0] += together * u[1]  # a larger batch wants another learning rate
            if u[0] > 0.22:
                return 10.0
            return 10.0 + 85.0 * math.exp(-float(weight @ u**2) / 10.0)

        start = np.full(self.d, 0.5)
        return Problem(noisy(self.name, self.noise, truth, start, 95.0), truth, 95.0, best)


def far_point(d: int, rng: np.random.Generator) -> Array:
    """A random point (d,), away from zero by `AWAY` in every parameter on average."""
    point = rng.standard_normal(d)
    point *= AWAY * math.sqrt(d) / float(np.linalg.norm(point))
    return point


def rotation(d: int, rng: np.random.Generator) -> Array:
    """A random orthogonal matrix (d, d)."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    turned: Array = Q * np.sign(R.diagonal())
    return turned
