"""Controllers with two to six gains on small plants with delays: what engineers tune with a few dozen experiments.

Each plant has the structure of one that is used in the literature on tuning. All gains lie between bounds and are
searched on a logarithmic axis: a parameter u in [0, 1] is the gain low·(high/low)^u.

The plants, with u the input and L the delay:

    lag-pi          T y' = −y + u(t−L)                                        PI                        2 gains
    integrating     y'' = −y' + u(t−L)                                        PID                       3
    fourth-order    (s + 1)⁻⁴, Åström and Hägglund's test batch               PID with a filter         4
    resonant        y'' = ω²(u(t−L) − y) − 2ζω y'                             PID, setpoint weight, filter  5
    motor-cascade   current, speed and angle of a motor                       P over PI, feedforward    4
    tank-cascade    flow and level of a tank, square-root outflow             PI over PI, filter        5
    cart-pole       an inverted pendulum on a cart, linearised, with delay    state feedback            4
    two-mass        two masses with a spring, delay                           state feedback, integral, filter  6

An episode is a step of the setpoint of random size and a load of random size half-way (cart-pole: a random start and
random pushes), with a noisy measurement. A value is minus the mean cost: squared error plus a weight times squared
changes of the input. An episode that leaves its limits costs `WORST` from then on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from gibo._linalg import Array
from gibo_studies.leaderboard.task import Problem, Task, generator

WORST = 4.0  # cost per step of an episode that left its limits
LIMIT = 10.0  # of what is controlled
JUDGING_EPISODES = 20
LOOKS = (10, 20, 40)
MARGIN = 1.5  # a start costs at least so many times as much as the best gains known
NOISE = 0.02  # standard deviation of a measurement

# The control error and the input at each step of an episode, which ends early when it leaves its limits.
Simulation: TypeAlias = Iterator[tuple[float, float]]
Episode: TypeAlias = Callable[[Sequence[float], np.random.Generator, int], Simulation]


class Delay:
    """A value comes out `steps` calls after it went in."""

    def __init__(self, steps: int) -> None:
        self._pipe = deque([0.0] * steps)

    def __call__(self, value: float) -> float:
        self._pipe.append(value)
        return self._pipe.popleft()


class PID:
    """Gains of the error, its integral and the measurement's filtered derivative; the input lies in [−limit, limit].

    The integral waits while the input is at its limit.
    """

    def __init__(
        self, dt: float, limit: float, p: float, i: float, d: float = 0.0, filter: float = 0.0, weight: float = 1.0
    ) -> None:
        self.p, self.i, self.d, self.limit, self.dt = p, i, d, limit, dt
        self.weight, self.blend = weight, dt / (filter + dt)
        self.integral = self.filtered = 0.0

    def __call__(self, setpoint: float, y: float) -> float:
        before, self.filtered = self.filtered, self.filtered + self.blend * (y - self.filtered)
        error = setpoint - self.filtered
        u = self.p * (self.weight * setpoint - self.filtered) + self.integral
        u -= self.d * (self.filtered - before) / self.dt
        limited = min(max(u, -self.limit), self.limit)
        if u == limited:
            self.integral += self.dt * self.i * error
        return limited


class Disturbances(NamedTuple):
    """What is random in an episode: the sizes of the setpoint's step and of the load, and the measurement's noise."""

    setpoint: float
    load: float
    noise: list[float]

    @classmethod
    def draw(cls, rng: np.random.Generator, steps: int) -> Disturbances:
        setpoint, load = 1.0 + 0.2 * rng.standard_normal(), 0.5 + 0.2 * rng.standard_normal()
        return cls(setpoint, load, (NOISE * rng.standard_normal(steps)).tolist())


def _setpoint_control(
    plant: Callable[[list[float], float, float], list[float]], state: int, delay: int, dt: float, **fixed: float
) -> Episode:
    """A plant with one input and one output, which is its state's first entry, under a PID controller.

    The plant is the state's derivative from the state, the input, which comes so many steps later, and the load. The
    integrator (Euler) has the step dt. Not all options of the controller are tuned.
    """

    def episode(gains: Sequence[float], rng: np.random.Generator, steps: int) -> Simulation:
        given, control, pipe = Disturbances.draw(rng, steps), PID(dt, 5.0, *gains, **fixed), Delay(delay)
        x = [0.0] * state
        for k in range(steps):
            u = control(given.setpoint, x[0] + given.noise[k])
            yield given.setpoint - x[0], u
            slope = plant(x, pipe(u), given.load if 2 * k > steps else 0.0)
            x = [value + dt * rate for value, rate in zip(x, slope, strict=True)]
            if abs(x[0]) > LIMIT:
                return

    return episode


def _lag(x: list[float], u: float, load: float) -> list[float]:
    return [u + load - x[0]]


def _integrating(x: list[float], u: float, load: float) -> list[float]:
    return [x[1], u + load - x[1]]


def _fourth_order(x: list[float], u: float, load: float) -> list[float]:
    return [x[1] - x[0], x[2] - x[1], x[3] - x[2], u + load - x[3]]


def _resonant(x: list[float], u: float, load: float) -> list[float]:
    frequency, damping = 1.5, 0.15
    return [x[1], frequency**2 * (u + load - x[0]) - 2.0 * damping * frequency * x[1]]


def motor_cascade(gains: Sequence[float], rng: np.random.Generator, steps: int) -> Simulation:
    """The angle's P controller asks for a speed, the speed's PI controller for a voltage, which arrives delayed."""
    dt = 0.02
    outer, p, i, forward = gains
    given, inner, pipe = Disturbances.draw(rng, steps), PID(dt, 12.0, p, i, filter=0.02), Delay(2)
    current = speed = angle = 0.0
    for k in range(steps):
        wanted = outer * (given.setpoint - angle - given.noise[k])
        u = inner(wanted, speed) + forward * wanted
        yield given.setpoint - angle, u
        current += dt * 10.0 * (pipe(min(max(u, -12.0), 12.0)) - current - 0.5 * speed)
        speed += dt * 2.0 * (current - 0.3 * speed - (2.0 * given.load if 2 * k > steps else 0.0))
        angle += dt * speed
        if abs(angle) > LIMIT or abs(speed) > 100.0:
            return


def tank_cascade(gains: Sequence[float], rng: np.random.Generator, steps: int) -> Simulation:
    """The level's PI controller asks for an inflow, the flow's PI controller for a valve, which answers delayed."""
    dt = 0.2
    p, i, inner_p, inner_i, filter = gains
    given, pipe = Disturbances.draw(rng, steps), Delay(5)
    outer, inner = PID(dt, 4.0, p, i, filter=filter), PID(dt, 6.0, inner_p, inner_i)
    flow, level = 0.5, 1.0
    for k in range(steps):
        target = 1.0 + given.setpoint
        wanted = max(0.0, outer(target, level + given.noise[k]))
        u = inner(wanted, flow)
        yield target - level, u
        flow += dt * 0.8 * (max(0.0, pipe(u)) - flow)
        outflow = 0.5 * math.sqrt(max(level, 0.0)) + (0.5 * given.load if 2 * k > steps else 0.0)
        level = max(0.0, level + dt * 0.4 * (flow - outflow))
        if level > LIMIT:
            return


def cart_pole(gains: Sequence[float], rng: np.random.Generator, steps: int) -> Simulation:
    """Four gains of an inverted pendulum's state; the force arrives delayed."""
    dt = 0.02
    position, velocity, angle, turning = gains
    x, v, w = 0.5 * rng.standard_normal(), 0.0, 0.0
    a = 0.1 * rng.standard_normal()
    noise = (0.2 * NOISE * rng.standard_normal((steps, 4))).tolist()
    pushes = (3.0 * rng.standard_normal(steps)).tolist()
    pipe = Delay(2)
    for k, (n0, n1, n2, n3) in enumerate(noise):
        u = position * (x + n0) + velocity * (v + n1) + angle * (a + n2) + turning * (w + n3)
        yield math.sqrt(x * x + 10.0 * a * a), u
        force = min(max(pipe(u), -30.0), 30.0) + pushes[k]
        v += dt * (force - 0.98 * a)
        w += dt * (21.6 * a - 2.0 * force)
        x, a = x + dt * v, a + dt * w
        if abs(x) > 3.0 or abs(a) > 0.8:
            return


def two_mass(gains: Sequence[float], rng: np.random.Generator, steps: int) -> Simulation:
    """Two masses with a spring: the far one is to be moved by a force on the near one; six gains with the filter's."""
    dt = 0.02
    near_p, near_d, far_p, far_d, i, filter = gains
    given, pipe = Disturbances.draw(rng, steps), Delay(3)
    x1 = v1 = x2 = v2 = integral = filtered = rate = 0.0
    blend = dt / (filter + dt)
    for k in range(steps):
        before, filtered = filtered, filtered + blend * (x2 + given.noise[k] - filtered)
        rate = (filtered - before) / dt
        error = given.setpoint - filtered
        integral += dt * i * error
        u = far_p * error + near_p * (given.setpoint - x1) - near_d * v1 - far_d * rate + integral
        u = min(max(u, -20.0), 20.0)
        yield given.setpoint - x2, u
        spring = 20.0 * (x1 - x2) + 0.3 * (v1 - v2)
        v1 += dt * (pipe(u) - spring)
        v2 += dt * (spring - (2.0 * given.load if 2 * k > steps else 0.0))
        x1, x2 = x1 + dt * v1, x2 + dt * v2
        if abs(x2) > LIMIT:
            return


@dataclass(frozen=True)
class Plant:
    name: str
    episode: Episode
    steps: int
    weight: float  # of the input's squared changes
    ranges: tuple[tuple[float, float], ...]  # (low, high) of each gain
    # The highest mean value known over the judging episodes, found by a long search with differential evolution and
    # Nelder-Mead on that mean itself.
    best: float

    def value(self, gains: Sequence[float], rng: np.random.Generator) -> float:
        """Minus the mean cost of an episode."""
        total, before, finished = 0.0, 0.0, 0
        for error, u in self.episode(gains, rng, self.steps):
            total += min(error * error + self.weight * (u - before) ** 2, WORST)
            before = u
            finished += 1
        return -(total + WORST * (self.steps - finished)) / self.steps

    def gains(self, x: Array) -> list[float]:
        """From parameters in [0, 1]."""
        within = np.clip(x, 0.0, 1.0).tolist()
        return [low * (high / low) ** u for (low, high), u in zip(self.ranges, within, strict=True)]

    def truth(self, x: Array) -> float:
        """The mean over the judging episodes."""
        gains, n = self.gains(x), JUDGING_EPISODES
        return math.fsum(self.value(gains, generator(self.name, e, 2)) for e in range(n)) / n

    def __call__(self, number: int) -> Problem:
        """The start is the first draw from the box's lower half that costs at least `MARGIN` times the best."""
        rng = generator(self.name, number, 3)
        start = rng.uniform(0.0, 0.5, len(self.ranges))
        while self.truth(start) > MARGIN * self.best:
            start = rng.uniform(0.0, 0.5, len(self.ranges))

        def evaluate(x: Array, seed: int) -> float:
            return self.value(self.gains(x), generator(self.name, seed, 1))

        return Problem(evaluate, self.truth, self.best, start=start)


def tasks() -> tuple[Task, ...]:
    """All plants, in the unit box; the scale is a fifth of its width."""
    return tuple(
        Task(name, np.full(len(plant.ranges), 0.25), 0.2, plant, LOOKS, bounds=(0.0, 1.0))
        for name, plant in PLANTS.items()
    )


_LAG = _setpoint_control(_lag, 1, 10, 0.05)
_INTEGRATING = _setpoint_control(_integrating, 2, 10, 0.05, filter=0.1)
_FOURTH_ORDER = _setpoint_control(_fourth_order, 4, 0, 0.1)
_RESONANT = _setpoint_control(_resonant, 2, 4, 0.05)

_P, _I = (0.05, 5.0), (0.005, 0.5)  # ranges that several plants share
PLANTS = {
    plant.name: plant
    for plant in (
        Plant("lag-pi", _LAG, 300, 0.02, (_P, _P), -0.0577),
        Plant("integrating", _INTEGRATING, 300, 0.02, (_P, _I, _P), -0.1299),
        Plant("fourth-order", _FOURTH_ORDER, 300, 0.02, (_P, (0.01, 1.0), _P, (0.02, 2.0)), -0.0743),
        Plant("resonant", _RESONANT, 300, 0.02, ((0.02, 2.0), _P, (0.02, 2.0), (0.02, 2.0), (0.05, 2.0)), -0.0571),
        Plant("motor-cascade", motor_cascade, 250, 0.002, ((0.2, 20.0), (0.1, 10.0), (0.1, 10.0), _P), -0.0709),
        Plant("tank-cascade", tank_cascade, 300, 0.02, (_P, _I, _P, _P, _P), -0.0402),
        Plant("cart-pole", cart_pole, 250, 0.001, ((0.2, 20.0), (0.5, 50.0), (3.0, 100.0), (0.5, 50.0)), -0.0833),
        Plant("two-mass", two_mass, 300, 0.002, (*((0.2, 20.0),) * 2, *((0.1, 10.0),) * 3, (0.01, 1.0)), -0.0914),
    )
}
