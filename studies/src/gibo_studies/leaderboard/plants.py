"""Tasks from engineering, in plain NumPy: a regulator, a PID controller, a rover's path, two learning algorithms."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.task import Problem, generator, noisy
from gibo_studies.paper.control.lqr import LQR

STEPS = 300  # of an episode of the regulator
WORST, BEST = 10.0, 0.01  # relative costs of the regulator between which it is judged


def regulator(number: int) -> Problem:
    """The paper's regulator from the gain 0, which is unstable: a value is an episode's return.

    Judged is ``−log10`` of the exact relative cost, cut off at 10, also where the gain is unstable, and at 0.01.
    """
    lqr = LQR.paper()

    def truth(x: Array) -> float:
        return -math.log10(min(max(lqr.relative_cost(x), BEST), WORST))

    def evaluate(x: Array, seed: int) -> float:
        return lqr.episode_return(x, STEPS, seed=seed)

    return Problem(evaluate, truth, -math.log10(BEST), np.ravel(lqr.optimal_gain), told_mean=lambda x: None)


# -- PID --------------------------------------------------------------------------------------------------------------

PID_STEPS, PID_DT, PID_DELAY = 150, 0.1, 6
PID_START = np.log([0.1, 0.02, 0.01, 1.0])  # gains of P, I and D, and the time constant of the measurement's filter
PID_JUDGES = 20
PID_REFERENCE = -0.1193  # found by a long search on the judging episodes


def pid(number: int) -> Problem:
    """A PID controller of a plant of second order with delay, by the logarithms of its gains and of its filter.

    ``y'' + 1.2·y' + 0.5·y = u(t − 0.6) + disturbance``, |u| ≤ 3; a step of the setpoint, a step of the load half-way, a
    noisy measurement. A value is minus the mean of the squared error and of 0.05 times the input's squared changes.
    """

    def truth(x: Array) -> float:
        return math.fsum(_pid_episode(x, generator("pid", e, 2)) for e in range(PID_JUDGES)) / PID_JUDGES

    def evaluate(x: Array, seed: int) -> float:
        return _pid_episode(x, generator("pid", seed, 1))

    return Problem(evaluate, truth, PID_REFERENCE)


def _pid_episode(x: Array, rng: np.random.Generator) -> float:
    kp, ki, kd, tau = np.exp(np.clip(x, -8.0, 6.0)).tolist()
    setpoint, load = 1.0 + 0.3 * rng.standard_normal(), 0.3 * rng.standard_normal()
    measured = (0.03 * rng.standard_normal(PID_STEPS)).tolist()
    y = v = integral = last = before = cost = 0.0
    pipe = [0.0] * PID_DELAY
    blend = PID_DT / (tau + PID_DT)
    for i in range(PID_STEPS):
        last_filtered, last = last, last + blend * (y + measured[i] - last)
        error = setpoint - last
        u = kp * error + ki * integral - kd * (last - last_filtered) / PID_DT
        limited = min(max(u, -3.0), 3.0)
        if u == limited:  # the integral waits while the input is at its limit
            integral += PID_DT * error
        cost += (setpoint - y) ** 2 + 0.05 * (limited - before) ** 2
        before = limited
        pipe.append(limited)
        v += PID_DT * (pipe.pop(0) + (load if i > PID_STEPS // 2 else 0.0) - 1.2 * v - 0.5 * y)
        y += PID_DT * v
    return -cost / PID_STEPS


# -- rover ------------------------------------------------------------------------------------------------------------

WAYPOINTS = 30
ROVER_FROM, ROVER_TO = np.array([0.05, 0.05]), np.array([0.95, 0.95])
ROVER_REFERENCE = 4.32  # found by long searches without noise
_ALONG = 400


def rover_start() -> Array:
    """(60,) the straight path; first the first coordinates of all waypoints."""
    return np.concatenate([np.linspace(a, b, WAYPOINTS) for a, b in zip(ROVER_FROM, ROVER_TO, strict=True)])


def rover(name: str, noise: str) -> Problem:
    """A path through 30 waypoints among 15 round obstacles, smoothed by a cubic spline of control points.

    The value is 5 minus the length-weighted cost of the ground and ten times the distances of the path's ends from
    where they should be.
    """

    def evaluate(x: Array, seed: int) -> float:
        return float(noisy_value(x, seed))

    noisy_value = noisy(name, noise, rover_value, rover_start(), ROVER_REFERENCE)
    return Problem(evaluate, rover_value, ROVER_REFERENCE)


def rover_value(x: Array) -> float:
    """Without noise."""
    P = x.reshape(2, WAYPOINTS).T
    path = _spline() @ P
    pieces = np.diff(path, axis=0)
    middle = 0.5 * (path[1:] + path[:-1])
    cost = float(_ground(middle) @ np.linalg.norm(pieces, axis=1))
    ends = float(np.abs(P[0] - ROVER_FROM).sum() + np.abs(P[-1] - ROVER_TO).sum())
    return 5.0 - cost - 10.0 * ends


def _ground(points: Array) -> Array:
    """Cost per length: 20 deep inside an obstacle, 0.05 on free ground, with soft edges."""
    centres, radii = _obstacles()
    depth = radii - np.linalg.norm(points[:, None, :] - centres, axis=2)
    cost: Array = 0.05 + 20.0 / (1.0 + np.exp(-np.clip(depth.max(axis=1) / 0.015, -60.0, 60.0)))
    return cost


@functools.lru_cache(maxsize=1)
def _obstacles() -> tuple[Array, Array]:
    rng = generator("rover", 0)
    centres = np.vstack([[[0.3, 0.34], [0.52, 0.5], [0.74, 0.71]], rng.uniform(0.1, 0.9, (12, 2))])
    far = np.minimum(*(np.linalg.norm(centres - end, axis=1) for end in (ROVER_FROM, ROVER_TO)))
    return centres, np.minimum(rng.uniform(0.05, 0.09, len(centres)), far - 0.05)


@functools.lru_cache(maxsize=1)
def _spline() -> Array:
    """(400, 30): from control points to the points of a clamped cubic B-spline."""
    from scipy.interpolate import BSpline

    inner = np.linspace(0.0, 1.0, WAYPOINTS - 2)
    knots = np.concatenate([[0.0] * 3, inner, [1.0] * 3])
    matrix: Array = BSpline.design_matrix(np.linspace(0.0, 1.0 - 1e-12, _ALONG), knots, 3).toarray()
    return matrix


# -- learning algorithms, as functions of their settings in [0, 1] ----------------------------------------------------


@dataclass(frozen=True)
class Hyperparameters:
    """A test score in percent as a function of settings on logarithmic axes, each from 0 to 1.

    Some settings matter much, some work together, some do nothing; where the learning rate is too high for the others
    the training fails, and the score is that of guessing.

    Attributes:
        name: of the task.
        d: number of settings; the first is the learning rate.
        matter: how many matter.
        noise: a level.
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
