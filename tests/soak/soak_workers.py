"""Workers that die in the middle of an evaluation, on this machine and of a Dask cluster."""

import os
import signal
import threading

import numpy as np
from pool_helpers import SETTINGS, X0, everything, hill, quiet

import gibo
from soak import Row, share_of


def rows(share, folder):
    """Each worker that dies is replaced, its evaluation tried again, and the result is the one without deaths."""
    wanted, deaths, different, seed = share_of(100, share), 0, 0, 0
    while deaths < wanted:
        marks = folder / f"marks-{seed}"
        marks.mkdir()

        def objective(x, seed, marks=marks, room=wanted - deaths):
            mark = marks / str(seed)
            if seed % 2 and not mark.exists() and len(list(marks.iterdir())) < room:
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return hill(x, seed)

        options = {"budget": 30, "settings": SETTINGS, "seed": seed}
        with quiet():
            calm = gibo.maximize(hill, X0, **options)
            result = gibo.maximize(objective, X0, workers=2, retries=1, journal=folder / f"run-{seed}", **options)
        deaths += len(list(marks.iterdir()))
        different += everything(result) != everything(calm)
        seed += 1
    yield Row("dead workers", deaths, deaths - different, 0, different)


def dask_rows(share, folder):
    """One worker of two is killed in the middle of an iteration and another one takes its place."""
    from distributed import Client
    from test_dask import BUDGET, Cluster
    from test_dask import SETTINGS as DASK_SETTINGS
    from test_dask import hill as slow_hill

    wanted, deaths, different = share_of(30, share), 0, 0
    options = {"budget": BUDGET, "scale": 0.3, "settings": DASK_SETTINGS}
    calm = gibo.maximize(slow_hill, np.zeros(4), **options)
    cluster = Cluster(folder)
    try:
        with Client(cluster.address(), timeout=120) as client:
            while deaths < wanted:
                client.wait_for_workers(2, timeout=120)
                killer = threading.Timer(0.03, cluster.workers[0].kill)

                def callback(result, killer=killer):
                    if not killer.ident:
                        killer.start()

                result = gibo.maximize(
                    slow_hill,
                    np.zeros(4),
                    executor=client.get_executor(),
                    journal=folder / f"run-{deaths}",
                    callback=callback,
                    **options,
                )
                killer.join()
                cluster.workers.pop(0).wait()
                cluster.workers.append(cluster.start("dask_worker", "--nthreads", "1", "--no-nanny"))
                deaths += 1
                different += everything(result) != everything(calm)
    finally:
        cluster.end()
    yield Row("dead Dask workers", deaths, deaths - different, 0, different)
