"""Problems with limits: a value to maximise, and quantities that must be at most 0. Each starts where all of them are.

Quadratic   a quadratic started 2 from its maximum; a load that is nearly linear has its limit half-way to it
Coco        COCO's suite `bbob-constrained` (Hansen et al. 2021), without noise, with 1, 3 or 9 limits
Pid         a PID controller of a plant with delay; the overshoot of a step must be at most 5 %
Quadrotor   eight gains of a planar quadrotor in gusts; the demanded thrust must not saturate the motors
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod

import numpy as np

from gibo._linalg import Array

# Episodes whose mean is the truth of a controller.
EPISODES = 10


class Limited(ABC):
    """Base of these problems; it counts evaluations that truly violate a limit."""

    x0: Array  # (d,) the start
    scale: float  # by how much a parameter must change to matter
    bounds: tuple[float, float]  # of each parameter
    violated = 0  # evaluations so far at points that truly violate a limit

    @abstractmethod
    def truth(self, x: Array) -> tuple[float, Array]:
        """The value and the quantities (m,) at x (d,) without noise."""

    def measured(self, x: Array) -> tuple[float, Array]:
        """The same with noise, if there is any."""
        return self.truth(x)

    def __call__(self, x: Array) -> tuple[float, Array]:
        self.violated += not self.satisfies(x)
        return self.measured(x)

    def satisfies(self, x: Array) -> bool:
        return bool((self.truth(x)[1] <= 0.0).all())


class Quadratic(Limited):
    scale, bounds, noise, load_noise = 0.3, (-3.0, 3.0), 0.05, 0.01

    def __init__(self, d: int, seed: int) -> None:
        rng = np.random.default_rng([d, seed])
        normal, towards = rng.standard_normal((2, d))
        self.normal = normal / np.linalg.norm(normal)
        self.maximum = 2.0 * towards / np.linalg.norm(towards)
        self.normal *= np.sign(self.normal @ self.maximum)
        self.curvature = rng.uniform(0.5, 2.0, d)
        self.limit = 0.5 * float(self.normal @ self.maximum)
        self.x0, self.rng = np.zeros(d), np.random.default_rng(seed + 1000)

    def truth(self, x: Array) -> tuple[float, Array]:
        load = float(self.normal @ x + 0.15 * np.sin(2.0 * x).sum() / np.sqrt(len(x)))
        return -float(self.curvature @ (x - self.maximum) ** 2), np.array([load - self.limit])

    def measured(self, x: Array) -> tuple[float, Array]:
        value, load = self.truth(x)
        noise = self.rng.standard_normal(2)
        return value + self.noise * noise[0], load + self.load_noise * noise[1]


class Coco(Limited):
    scale, bounds = 2.0, (-5.0, 5.0)

    def __init__(self, number: int, d: int, instance: int) -> None:
        cocoex = importlib.import_module("cocoex")
        cocoex.log_level("warning")
        # COCO's problem lives as long as its suite
        self._suite = cocoex.Suite("bbob-constrained", f"instances: {instance}", f"dimensions: {d}")
        self._problem = self._suite.get_problem_by_function_dimension_instance(number, d, instance)
        self.x0 = np.array(self._problem.initial_solution)

    def truth(self, x: Array) -> tuple[float, Array]:
        return -float(self._problem(x)), np.array(self._problem.constraint(x))


class Controller(Limited):
    """A controller: an episode has a seed, and the truth is the mean of `EPISODES` of them."""

    def __init__(self, seed: int) -> None:
        self._seeds = np.random.default_rng([seed, 5])

    @abstractmethod
    def episode(self, x: Array, rng: np.random.Generator) -> tuple[float, float]:
        """The value and the one quantity."""

    def truth(self, x: Array) -> tuple[float, Array]:
        episodes = [self.episode(x, np.random.default_rng([e, 77])) for e in range(EPISODES)]
        value, quantity = np.mean(episodes, axis=0).tolist()
        return value, np.array([quantity])

    def measured(self, x: Array) -> tuple[float, Array]:
        value, quantity = self.episode(x, np.random.default_rng(self._seeds.integers(2**62)))
        return value, np.array([quantity])


class Pid(Controller):
    """``y'' + a·y' + b·y = u(t − delay)``, |u| ≤ 3, by the logarithms of three gains and of the filter's time constant.

    A value is minus ten times the mean of the squared error and of 0.05 times the input's squared changes, for a step
    of the setpoint and a load half-way.
    """

    scale, bounds, steps, dt, overshoot = 0.5, (-5.0, 3.0), 150, 0.1, 0.05

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = np.random.default_rng([seed, 4])
        self.damping, self.stiffness = rng.uniform([0.8, 0.3], [1.6, 0.8]).tolist()
        self.delay = int(rng.integers(3, 9))
        self.x0 = np.log([0.1, 0.02, 0.02, 0.5])

    def episode(self, x: Array, rng: np.random.Generator) -> tuple[float, float]:
        kp, ki, kd, tau = np.exp(np.clip(x, -8.0, 6.0)).tolist()
        noise = (0.02 * rng.standard_normal(self.steps)).tolist()
        y = v = integral = filtered = before = cost = peak = 0.0
        pipe, blend, dt = [0.0] * self.delay, self.dt / (tau + self.dt), self.dt
        for i in range(self.steps):
            last, filtered = filtered, filtered + blend * (y + noise[i] - filtered)
            wanted = kp * (1.0 - filtered) + ki * integral - kd * (filtered - last) / dt
            u = min(max(wanted, -3.0), 3.0)
            if u == wanted:  # the integral waits while the input is at its limit
                integral += dt * (1.0 - filtered)
            cost += (1.0 - y) ** 2 + 0.05 * (u - before) ** 2
            before = u
            pipe.append(u)
            load = -0.3 if i > self.steps // 2 else 0.0
            v += dt * (pipe.pop(0) + load - self.damping * v - self.stiffness * y)
            y += dt * v
            peak = max(peak, y)
        return -10.0 * cost / self.steps, peak - 1.0 - self.overshoot


class Quadrotor(Controller):
    """A flight over 1 m to the side and up, by the logarithms of eight gains; a value is minus the mean distance in m.

    A motor can push 0.65 times the weight. The quantity is the largest demand of a flight, as a share of that, less 1.
    """

    scale, bounds, dt, steps = 0.3, (-5.0, 3.0), 0.02, 200

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = np.random.default_rng([seed, 6])
        self.mass, self.inertia = rng.uniform([0.8, 0.015], [1.2, 0.025]).tolist()
        self.x0 = np.log([0.1, 0.1, 1.0, 1.0, 0.3, 0.1, 0.05, 0.05])

    def episode(self, x: Array, rng: np.random.Generator) -> tuple[float, float]:
        kx, kvx, kz, kvz, ktilt, kturn, lead_x, lead_z = np.exp(x).tolist()
        dt, mass, arm, gravity = self.dt, self.mass, 0.2, 9.81
        most = 0.65 * mass * gravity
        gusts = (1.2 * np.sqrt(dt) * rng.standard_normal(self.steps)).tolist()
        px = pz = vx = vz = tilt = turning = gust = distance = demand = 0.0
        for i in range(self.steps):
            gust += gusts[i] - 2.0 * dt * gust
            wanted = min(max(kvx * vx - kx * (1.0 - px - lead_x * vx), -0.6), 0.6)
            lift = mass * (gravity + kz * (1.0 - pz - lead_z * vz) - kvz * vz)
            torque = ktilt * (wanted - tilt) - kturn * turning
            left, right = (lift - torque / arm) / 2.0, (lift + torque / arm) / 2.0
            demand = max(demand, left, right)
            left, right = (min(max(push, 0.0), most) for push in (left, right))
            vx += dt * (gust - (left + right) * float(np.sin(tilt)) / mass)
            vz += dt * ((left + right) * float(np.cos(tilt)) / mass - gravity)
            turning += dt * (right - left) * arm / self.inertia
            px, pz, tilt = px + dt * vx, pz + dt * vz, tilt + dt * turning
            distance += min(float(np.hypot(px - 1.0, pz - 1.0)), 2.0)
            if abs(tilt) > 1.5:  # it has tipped over
                distance += 2.0 * (self.steps - 1 - i)
                break
        return -distance / self.steps, demand / most - 1.0
