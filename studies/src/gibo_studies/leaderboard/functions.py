"""Test functions, turned and shifted anew in every instance; to be maximised, the best value is 0 or as said.

x are the parameters, z = Q(x − x*)/scale what the function sees: x* the optimum, away from the start by `AWAY` scales
in every parameter on average (root mean square), Q the identity or a random rotation.
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
CLIFF = 20.0

Function = Callable[[Array], float]


def sphere(z: Array) -> float:
    return -float(z @ z)


def ellipsoid(z: Array, condition: float) -> float:
    """Curvatures from 1 to the condition number, evenly on a logarithmic axis."""
    return -float(condition ** np.linspace(0.0, 1.0, len(z)) @ z**2)


def ackley(z: Array) -> float:
    bowl, waves = math.sqrt(float((z**2).mean())), float(np.cos(2.0 * math.pi * z).mean())
    return 20.0 * math.exp(-0.2 * bowl) + math.exp(waves) - 20.0 - math.e


def levy(z: Array) -> float:
    w = 1.0 + z / 4.0
    middle = ((w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * w[:-1] + 1.0) ** 2)).sum()
    last = (w[-1] - 1.0) ** 2 * (1.0 + math.sin(2.0 * math.pi * w[-1]) ** 2)
    # sin(π w) is 0 at w = 1, so the first term is, too.
    return -float(math.sin(math.pi * w[0]) ** 2 + middle + last)


def griewank(z: Array) -> float:
    """Like Griewank's: a bowl with a product of waves on it, here with a bowl that is steep enough to be seen."""
    waves = float(np.cos(2.0 * z / np.sqrt(np.arange(1.0, len(z) + 1.0))).prod())
    return -float((z**2).mean()) / 4.0 - (1.0 - waves)


def saturating(z: Array) -> float:
    """Flat far away; the best value is 1."""
    return math.exp(-float((z**2).mean()) / 2.0)


def l1(z: Array) -> float:
    return -float(np.abs(z).sum())


def sharp_ridge(z: Array) -> float:
    """Along a ridge that must not be left."""
    return -4.0 * float(z[0] ** 2) - 5.0 * float(np.linalg.norm(z[1:]))


def plateau(z: Array) -> float:
    """Nothing below 0 and nothing above 1, as where a score has a least and a highest value."""
    return float(np.clip((3.2 - 0.6 * float((z**2).mean())) / 2.8, 0.0, 1.0))


def rosenbrock(w: Array) -> float:
    """Its best point is (1, …, 1)."""
    return -float((100.0 * (w[1:] - w[:-1] ** 2) ** 2 + (1.0 - w[:-1]) ** 2).sum())


@dataclass(frozen=True)
class Shifted:
    """Instances of a function of z, in parameters with this scale.

    Attributes:
        name: of the task, from which the instances are drawn.
        function: of z.
        d: number of parameters.
        noise: a level.
        scale: of the parameters.
        best: the function's best value, at z = 0.
        rotated: whether Q is a random rotation.
    """

    name: str
    function: Function
    d: int
    noise: str
    scale: float = 1.0
    best: float = 0.0
    rotated: bool = False

    def __call__(self, number: int) -> Problem:
        rng = generator(self.name, number)
        optimum = rng.standard_normal(self.d)
        optimum *= AWAY * self.scale * math.sqrt(self.d) / float(np.linalg.norm(optimum))
        Q = rotation(self.d, rng) if self.rotated else np.eye(self.d)

        def truth(x: Array) -> float:
            return self.function(Q @ (x - optimum) / self.scale)

        evaluate = noisy(self.name, self.noise, truth, np.zeros(self.d), self.best)
        return Problem(evaluate, truth, self.best, optimum)


@dataclass(frozen=True)
class Cliff:
    """A bowl that falls off half a scale beyond its best point, seen from the start: the bad values are far worse."""

    name: str
    d: int
    noise: str

    def __call__(self, number: int) -> Problem:
        rng = generator(self.name, number)
        optimum = rng.standard_normal(self.d)
        optimum *= AWAY * math.sqrt(self.d) / float(np.linalg.norm(optimum))
        onward = optimum / float(np.linalg.norm(optimum))

        def truth(x: Array) -> float:
            z = x - optimum
            beyond = float(onward @ z) - 0.5
            return -float((z**2).mean()) - (CLIFF * (1.0 + beyond) if beyond > 0.0 else 0.0)

        return Problem(noisy(self.name, self.noise, truth, np.zeros(self.d), 0.0), truth, 0.0, optimum)


@dataclass(frozen=True)
class Rosenbrock:
    """The curved valley, from near the origin, mirrored or rotated anew in every instance."""

    name: str
    d: int
    noise: str
    rotated: bool = False

    def __call__(self, number: int) -> Problem:
        rng = generator(self.name, number)
        Q = rotation(self.d, rng) if self.rotated else np.diag(rng.choice([-1.0, 1.0], self.d))
        shift = 0.1 * rng.standard_normal(self.d)

        def truth(x: Array) -> float:
            return rosenbrock(Q @ x + shift)

        optimum = Q.T @ (1.0 - shift)
        return Problem(noisy(self.name, self.noise, truth, np.zeros(self.d), 0.0), truth, 0.0, optimum)


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


def rotation(d: int, rng: np.random.Generator) -> Array:
    """A random orthogonal matrix (d, d)."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    turned: Array = Q * np.sign(R.diagonal())
    return turned
