"""How many evaluations of a machine a simulator saves that is close to it, or far, or has nothing to do with it.

    python -m gibo_studies.machines.simulator --trials 12 --out simulator.csv

In each trial gibo searches the simulator first. Then it searches the machine in four ways, with the same noise:
from the usual start without the simulator (``none``), from there with the simulator's values as the prior mean
(``mean``, `gibo.means.from_run`), from the simulator's recommended point (``start``), and both (``both``).

Machines and their simulators:

- ``hill-*``: a hill of 6 or 12 parameters with noise. The simulator's hill stands 0.2 (small), 0.6 (middle) or 1.5
  (large) away, is half as high, and has waves of its own; or it is another hill (unrelated), or has the wrong sign.
- ``lqr-*``: a linear system with the 9 entries of a gain; the simulator has wrong matrices.
- ``cartpole``: Gymnasium's, with a pole three times as heavy and 1.6 times as long as in the simulator.

Regrets are those of the recommended point without noise, as shares of the usual start's. ``needed``: evaluations of the
machine until the regret is 10 % for the first time; the budget if it is never. ``quarter``, ``half``, ``all``: regrets
after these shares of the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import gibo
from gibo._linalg import Array
from gibo_studies.machines.common import Hill, arguments, write
from gibo_studies.paper.control.lqr import LQR

WAYS = ("none", "mean", "start", "both")
GAPS = {"small": 0.2, "middle": 0.6, "large": 1.5}
NOISE, REACHED, SIMULATED = 0.1, 0.1, 300


class Plant(NamedTuple):
    """value(x, seed): with noise; regret(x): without; start (d,); scale."""

    value: Callable[[Array, int], float]
    regret: Callable[[Array], float]
    start: Array
    scale: float


def hills(gap: str, d: int, trial: int) -> tuple[Plant, Plant]:
    """A machine and its simulator."""
    rng = np.random.default_rng([d, trial])
    hill, other = Hill(d, rng), Hill(d, rng)
    way, waves, phases = rng.normal(size=d), rng.normal(size=(100, d)) / np.sqrt(d), rng.uniform(0.0, 2.0 * np.pi, 100)
    way /= np.linalg.norm(way)

    def simulated(x: Array) -> float:
        if gap == "wrong-sign":
            return -hill(x)
        if gap == "unrelated":
            return other(x)
        ripple = np.sqrt(2.0) * float(np.cos(waves @ x + phases).mean()) * 10.0
        return float(5.0 + 0.5 * (hill(x, GAPS[gap] * way) + GAPS[gap] * ripple))

    def plant(height: Callable[[Array], float]) -> Plant:
        def value(x: Array, seed: int) -> float:
            return height(x) + NOISE * np.random.default_rng([trial, seed]).normal()

        return Plant(value, lambda x: 10.0 - height(x), np.zeros(d), 0.5)

    return plant(hill), plant(simulated)


def systems(gap: str, trial: int) -> tuple[Plant, Plant]:
    """The paper's system, and one with wrong matrices; from a gain that stabilises both."""
    rng, lqr = np.random.default_rng(trial), LQR.paper()
    error = {"small": 0.01, "large": 0.05}[gap]
    A, B = (matrix + size * rng.normal(size=(3, 3)) for matrix, size in ((lqr.A, error), (lqr.B, 5.0 * error)))

    def plant(system: LQR) -> Plant:
        def value(x: Array, seed: int) -> float:
            return -float(np.log(system.simulate(x, 300, seed=1000 * trial + seed).costs.mean()))

        return Plant(value, lambda x: min(system.relative_cost(x), 10.0), -0.5 * np.eye(3).ravel(), 0.3)

    return plant(lqr), plant(LQR(A, B, lqr.Q, lqr.R, lqr.W))


def poles(trial: int) -> tuple[Plant, Plant]:
    """Gymnasium's CartPole with another pole, and as it is."""
    import gymnasium

    def plant(mass: float, length: float) -> Plant:
        env: Any = gymnasium.make("CartPole-v1")
        inner = env.unwrapped
        inner.masspole, inner.length = mass * inner.masspole, length * inner.length
        inner.total_mass, inner.polemass_length = inner.masspole + inner.masscart, inner.masspole * inner.length

        def value(x: Array, seed: int) -> float:
            observation, steps, over = env.reset(seed=seed)[0], 0, False
            while not over:
                observation, _, ended, cut, _ = env.step(int(x @ observation > 0.0))
                steps, over = steps + 1, ended or cut
            return float(steps)

        def regret(x: Array) -> float:
            return 500.0 - float(np.mean([value(x, 10**6 + i) for i in range(10)]))

        return Plant(lambda x, seed: value(x, 1000 * trial + seed), regret, np.zeros(4), 1.0)

    return plant(3.0, 1.6), plant(1.0, 1.0)


_HILLS = product((6, 12), (*GAPS, "unrelated", "wrong-sign"))
CASES: dict[str, Callable[[int], tuple[Plant, Plant]]] = {
    **{f"hill-{gap}-{d}": partial(hills, gap, d) for d, gap in _HILLS},
    **{f"lqr-{gap}": partial(systems, gap) for gap in ("small", "large")},
    "cartpole": poles,
}


def search(plant: Plant, start: Array, budget: int, seed: int, mean: Any = None) -> tuple[gibo.GIBO, list[float]]:
    """A search, and the regret of the recommended point after each evaluation."""
    settings = gibo.Settings() if mean is None else gibo.Settings(mean=mean)
    optimizer, regrets = gibo.GIBO(start, scale=plant.scale, seed=seed, settings=settings), [plant.regret(start)]
    while len(regrets) <= budget:
        batch = optimizer.ask()[: budget + 1 - len(regrets)]
        for query in batch:
            optimizer.tell(query, plant.value(query.x, query.id))
        best = optimizer.best
        assert best is not None
        # Within an iteration the recommended point is that of the one before.
        regrets += [regrets[-1]] * (len(batch) - 1) + [plant.regret(best.x)]
    return optimizer, regrets[1:]


def rows(trials: int) -> Iterator[dict[str, Any]]:
    for case, make in CASES.items():
        for trial in range(trials):
            machine, simulator = make(trial)
            first, _ = search(simulator, simulator.start, SIMULATED, trial)
            mean = gibo.means.from_run([(e.x, e.outcome) for e in first.evaluations])
            assert first.best is not None
            budget, worst = 10 * len(machine.start), machine.regret(machine.start)
            for way in WAYS:
                start = first.best.x if way in ("start", "both") else machine.start
                _, regrets = search(machine, start, budget, trial, mean if way in ("mean", "both") else None)
                shares = np.array(regrets) / worst
                needed = next((i + 1 for i, share in enumerate(shares) if share <= REACHED), budget)
                at = {name: shares[budget // part - 1] for name, part in (("quarter", 4), ("half", 2), ("all", 1))}
                yield {"case": case, "run": trial, "way": way, "needed": needed, **at}


if __name__ == "__main__":
    given = arguments(__doc__ or "", trials=12)
    write(given.out, rows(given.trials), by=("case", "way"))
