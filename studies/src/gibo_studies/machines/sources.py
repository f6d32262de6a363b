"""How many evaluations of a machine two sources save: gibo chooses for each iteration between simulator and machine.

    python -m gibo_studies.machines.sources --trials 10 --out sources.csv

The machines and simulators are those of `gibo_studies.machines.simulator`. An evaluation of the simulator costs a 20th
of one of the machine. Each trial searches the machine without the simulator (``none``), and with both (``both``,
``gibo.GIBO(..., sources={"simulator": 1, "machine": 20})``), with the same seed and noise.

``needed``: evaluations of the machine until the regret of the recommended point without noise is 10 % of the start's
for the first time; the search ends there, or when the budget of 10 per parameter is spent. ``simulated``: evaluations
of the simulator until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gibo
from gibo_studies.machines.common import arguments, write
from gibo_studies.machines.simulator import CASES, REACHED, Plant

COSTS = {"simulator": 1, "machine": 20}
SIMULATOR = "simulator"


def search(machine: Plant, simulator: Plant, seed: int, sources: dict[str, int] | None) -> tuple[int, int]:
    """The evaluations of the machine until it is reached, and those of the simulator."""
    optimizer = gibo.GIBO(machine.start, scale=machine.scale, seed=seed, sources=sources)
    wanted, budget = REACHED * machine.regret(machine.start), 10 * len(machine.start)
    needed = simulated = 0
    while needed < budget:
        batch = optimizer.ask()
        is_simulated = batch[0].source == SIMULATOR
        for query in batch if is_simulated else batch[: budget - needed]:
            plant = simulator if is_simulated else machine
            optimizer.tell(query, plant.value(query.x, query.id))
        needed, simulated = needed + (not is_simulated) * len(batch), simulated + is_simulated * len(batch)
        best = None if is_simulated else optimizer.best
        if best is not None and machine.regret(best.x) <= wanted:
            break
    return min(needed, budget), simulated


def rows(trials: int) -> Iterator[dict[str, Any]]:
    for case, make in CASES.items():
        for trial in range(trials):
            machine, simulator = make(trial)
            for way, sources in (("none", None), ("both", COSTS)):
                needed, simulated = search(machine, simulator, trial, sources)
                yield {"case": case, "run": trial, "way": way, "needed": needed, "simulated": simulated}


if __name__ == "__main__":
    given = arguments(__doc__ or "", trials=10)
    write(given.out, rows(given.trials), by=("case", "way"))
