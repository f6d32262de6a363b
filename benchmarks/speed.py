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
from gibo._linalg import Array, single_thread

# d, N_m, gradients in the window, queries per iteration, repetitions, the most that a query should take
CASES = (
    (8, 40, 0, 8, 30, "2 ms"),
    (36, 180, 0, 36, 10, "4 ms"),
    (36, 180, 5, 35, 10, "50 ms"),
    (100, 500, 0, 50, 3, "40 ms"),
    (1000, 2000, 0, 8, 1, "3 s"),
)


def best_of(repetitions: int, action: Callable[[], object]) -> float:
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def query_and_floor(d: int, N_m: int, N_g: int, M: int, repetitions: int) -> tuple[float, float]:
    """Seconds per query and per evaluation of α with its gradient, the window full; N_g > 0: of gradients too."""
    rng = np.random.default_rng(0)
    ell = rng.uniform(0.7, 1.3, d) * 0.3 * np.sqrt(d)
    settings = gibo.Settings(
        lengthscale=ell,
        variance=1.0,
        noise=0.01,
        mean=0.0,
        standardize=False,
        warp=False,
        M=M,
        N_m=N_m,
        N_g=max(1, N_g),
        fit="never",
    )
    opt = gibo.GIBO(np.zeros(d), settings=settings)

    def tell(query: gibo.Query | Array, x: Array, with_gradient: bool) -> None:
        more = {"gradient": np.cos(x / ell) / ell, "gradient_noise": 0.01} if with_gradient else {}
        opt.tell(query, float(np.sin(x / ell).sum()) + 0.1 * rng.standard_normal(), **more)

    for i, x in enumerate(0.5 * ell * rng.uniform(-1.0, 1.0, (N_m, d))):
        tell(x, x, with_gradient=i % (M + 1) == 0 and N_g > 0)

    def iteration() -> None:
        for query in opt.ask():
            tell(query, query.x, with_gradient=query.kind == "iterate" and N_g > 0)

    iteration()
    per_query = best_of(repetitions, iteration) / (M + 1)
    seen = opt.evaluations[-N_m:]
    gp = gibo.GaussianProcess(gibo.SquaredExponential(ell), noise=0.01)
    given = [(e.x, e.gradient) for e in seen if e.gradient is not None]
    assert len(given) == N_g
    with single_thread():
        X, y = [e.x for e in seen], [e.value for e in seen if e.value is not None]
        gp = gp.condition(X, y, [x for x, _ in given], [g for _, g in given], 0.01)
        gi = gibo.GradientInformation(gp, at=opt.iterate)
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
        "lengthscale": gibo.priors.SharedLogNormal(2.0, 0.7, 0.3),
        "variance": gibo.priors.LogNormal(1.0, 0.7),
        "noise": gibo.priors.LogNormal(0.1, 1.5),
    }
    with single_thread():
        gp = gibo.GaussianProcess(gibo.SquaredExponential(np.full(d, 2.0)), noise=0.1, mean="estimated")
        fitted = gibo.fit(gp.condition(X[:n], y[:n]), priors).gp
        # An iteration of 18 values further on.
        later = fitted.condition(X[18:], y[18:])
        seconds = best_of(5, lambda: gibo.fit(later, priors))
        return seconds, gibo.fit(later, priors).evaluations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skip-large", action="store_true", help="leave out d = 1000, which takes half a minute")
    arguments = parser.parse_args()
    print("| d | N_m | gradients | one query | at most | one α with gradient | query / α |")
    print("|---|---|---|---|---|---|---|")
    for d, N_m, N_g, M, repetitions, limit in CASES[:-1] if arguments.skip_large else CASES:
        query, alpha = query_and_floor(d, N_m, N_g, M, repetitions)
        times = f"{1e3 * query:.2f} ms | {limit} | {1e6 * alpha:.0f} µs | {query / alpha:.0f}"
        print(f"| {d} | {N_m} | {N_g} | {times} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of this process: {peak:.0f} MB")
    seconds, evaluations = warm_fit()
    print(
        f"MAP fit at d = 36, n = 180, warm-started: {1e3 * seconds:.0f} ms, {evaluations} likelihoods (at most 100 ms)"
    )


if __name__ == "__main__":
    main()
