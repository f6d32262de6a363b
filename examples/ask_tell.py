"""Your own loop: run all queries of an iteration at once, report them as they come, stop and continue.

python examples/ask_tell.py
"""

import json
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

import gibo


def episode(x, seed):
    """Stands for an episode on a robot: a return with noise. Sometimes it fails."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.05:
        raise RuntimeError("the robot fell over")
    return -float(np.sum((x - 0.5) ** 2)) + 0.01 * rng.standard_normal()


opt = gibo.GIBO(np.zeros(8), scale=0.1, bounds=(-1.0, 1.0), seed=1)
with ThreadPoolExecutor(4) as pool:
    for _ in range(15):
        running = {pool.submit(episode, query.x, query.seed): query for query in opt.ask()}
        for future in as_completed(running):
            try:
                opt.tell(running[future], future.result())
            except RuntimeError as error:
                opt.tell(running[future], failed=str(error))
        # Everything the optimiser knows is plain data; continuing from it is the same as not having stopped.
        opt = gibo.GIBO.from_state(json.loads(json.dumps(opt.state())))
        step = opt.iterations[-1]
        print(f"after {step.evaluations:3d} episodes: it ascended with probability {step.probability_of_ascent:.2f}")

print("best by the model:", opt.best.x.round(2), round(opt.best.value, 3))
