"""How long GIBO thinks about one query, and how far that is from the floor.

    python benchmarks/speed.py [--skip-large]

A query is choosing it and taking its value into the model: the time of one iteration (ask, M tells, the step), divided
by its evaluations. Beside it, measured in the same process, the time of one α with its gradient, the floor of which a
query needs a few. One BLAS thread. Times are the best of several repetitions: other work on the machine adds to them.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

import gibo
from gibo.linalg import single_thread

# d, N_m, queries per iteration, repetitions, the most that a query should take
CASES = (
    (8, 40, 8, 30, "2 ms"),
    (36, 180, 36, 10, "4 ms"),
    (100, 500, 50, 3, "40 ms"),
    (1000, 2000, 8, 1, "3 s"),
)


def best_of(repetitions: int, action: Callable[[], object]) -> float:
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def query_and_floor(d: int, N_m: int, M: int, repetitions: int) -> tuple[float, float]:
    """Seconds per query and per evaluation of α with its gradient, the window full."""
    rng = np.random.default_rng(0)
    ell = rng.uniform(0.7, 1.3, d) * 0.3 * np.sqrt(d)
    settings = gibo.Settings(
        lengthscale=ell, variance=1.0, noise=0.01, mean=0.0, standardize=False, M=M, N_m=N_m, fit="never"
    )
    opt = gibo.GIBO(np.zeros(d), settings=settings)
    for x in 0.5 * ell * rng.uniform(-1.0, 1.0, (N_m, d)):
        opt.tell(x, float(np.sin(x / ell).sum()) + 0.1 * rng.standard_normal())

    def iteration() -> None:
        for query in opt.ask():
            opt.tell(query, float(np.sin(query.x / ell).sum()) + 0.1 * rng.standard_normal())

    iteration()
    per_query = best_of(repetitions, iteration) / (M + 1)
    seen = opt.evaluations[-N_m:]
    gp = gibo.GaussianProcess(gibo.SquaredExponential(ell), noise=0.01)
    with single_thread():
        gi = gibo.GradientInformation(gp.condition([e.x for e in seen], [e.value for e in seen]), at=opt.iterate)
        u = 0.1 * rng.standard_normal(d)
        calls = 200 if d < 500 else 5

        def floor() -> None:
            for _ in range(calls):
                gi.scaled_value_and_gradient(u)

        per_alpha = best_of(5, floor) / calls
    return per_query, per_alpha


def warm_fit() -> tuple[float, int]:
    """Seconds and likelihood evaluations of a warm-started MAP fit at d = 36, n = 180."""
    rng = np.random.default_rng(0)
    d, n = 36, 180
    ell = rng.uniform(0.7, 1.3, d) * 0.3 * np.sqrt(d)
    X = 0.5 * ell * rng.uniform(-1.0, 1.0, (n + 18, d))
    kernel = gibo.SquaredExponential(ell)
    y = np.linalg.cholesky(kernel.k(X, X) + 0.01 * np.eye(len(X))) @ rng.standard_normal(len(X))
    priors = {
        "lengthscale": gibo.SharedLogNormal(2.0, 0.7, 0.3),
        "variance": gibo.LogNormal(1.0, 0.7),
        "noise": gibo.LogNormal(0.1, 1.5),
    }
    with single_thread():
        gp = gibo.GaussianProcess(gibo.SquaredExponential(np.full(d, 2.0)), noise=0.1, mean="estimated")
        fitted = gibo.fit(gp.condition(X[:n], y[:n]), priors).gp
        later = fitted.condition(X[18:], y[18:])  # an iteration of 18 values further on
        seconds = best_of(5, lambda: gibo.fit(later, priors))
        return seconds, gibo.fit(later, priors).evaluations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skip-large", action="store_true", help="leave out d = 1000, which takes half a minute")
    arguments = parser.parse_args()
    print("| d | N_m | one query | at most | one α with gradient | query / α |")
    print("|---|---|---|---|---|---|")
    for d, N_m, M, repetitions, limit in CASES[:-1] if arguments.skip_large else CASES:
        query, alpha = query_and_floor(d, N_m, M, repetitions)
        print(
            f"| {d} | {N_m} | {1e3 * query:.2f} ms | {limit} | {1e6 * alpha:.0f} µs | {query / alpha:.0f} |", flush=True
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of this process: {peak:.0f} MB")
    seconds, evaluations = warm_fit()
    print(
        f"MAP fit at d = 36, n = 180, warm-started: {1e3 * seconds:.0f} ms, {evaluations} likelihoods (at most 100 ms)"
    )


if __name__ == "__main__":
    main()
