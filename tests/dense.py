"""The slow twin of the Gaussian process: dense algebra, with covariances that are made pair by pair."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibo import GaussianProcess, Matern52, SquaredExponential
from gibo.blocks import BlockTerm
from gibo.gap import MACHINE, SIMULATOR, GapTerm
from gibo.means import LinearMean, Mean, QuadraticMean

D = 3
ELL = np.array([0.5, 1.2, 0.8])
T = np.array([0.1, -0.3, 0.2])
NOISE, GRADIENT_NOISE = 0.05, 0.1
KERNELS = [SquaredExponential(ELL, 1.7), Matern52(ELL, 1.7)]
DAYS = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0]
SOURCES = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]


@dataclass(frozen=True)
class Wave(Mean):
    """A user's own."""

    size: float

    def __call__(self, X):
        return self.size * np.sin(X).sum(axis=1)

    def gradient(self, X):
        return self.size * np.cos(X)


class Case(NamedTuple):
    """A kind of model: its mean, its block term, and what the data have besides points and values."""

    mean: Any = 0.3
    term: BlockTerm | None = None
    more: dict[str, Any] = {}  # noqa: RUF012


CASES = {
    "constant": Case(),
    "estimated": Case("estimated"),
    "noise": Case(
        "estimated", None, {"noise_scale": [1, 1, 1, 0, 0.3, 0.5, 1, 0.2], "known_noise": [0, 0, 0, 0.2, 0.1, 0, 0, 0]}
    ),
    "linear": Case(LinearMean((1.0, -2.0, 0.5), 0.3)),
    "quadratic": Case(QuadraticMean(centre=(0.2, -0.1, 0.4), curvature=(1.0, 2.0, 0.5), top=0.7)),
    "own mean": Case(Wave(1.5)),
    "shift": Case("estimated", BlockTerm(0.7, 0.0), {"blocks": DAYS}),
    "share": Case(0.3, BlockTerm(0.0, 0.4), {"blocks": DAYS}),
    "drift": Case(0.3, BlockTerm(0.7, 0.4, timescale=2.0, now=4.5), {"blocks": DAYS}),
    "gap": Case(
        0.3,
        GapTerm(shift=0.7, share=0.4, factor=0.6, simulator_noise=0.02),
        {"blocks": SOURCES, "noise_scale": [1.0, 0.5] * 4},
    ),
}


def data(case, gradients):
    """Arguments of `condition`: points of which some coincide, within a block and across blocks."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, D)), rng.normal(size=8)
    X[1], X[2], X[7] = X[0], X[1], X[4]
    given = {"X": X, "y": y, **case.more}
    if gradients:
        given |= {"gradient_X": np.vstack([X[2], rng.normal(size=D)]), "gradients": rng.normal(size=(2, D))}
        given |= {"gradient_noise": GRADIENT_NOISE}
    if gradients and case.term is not None:
        given |= {"gradient_blocks": [MACHINE, SIMULATOR] if isinstance(case.term, GapTerm) else [2.0, 3.0]}
    return given


def with_value(given, x, block):
    """The data with one more value, in this block."""
    more = {"noise_scale": 1.0, "known_noise": 0.0, "blocks": block}
    added = {name: np.append(given[name], number) for name, number in more.items() if name in given}
    return {**given, "X": np.vstack([given["X"], x]), "y": np.append(given["y"], 0.0), **added}


def model(case, kernel, given):
    return GaussianProcess(kernel, NOISE, case.mean, blocks=case.term).condition(**given)


def differences(f, x, step):
    """Central differences of f by the components of x, stacked last; a step for each component, or one for all."""
    return np.stack([(f(x + s) - f(x - s)) / (2.0 * s.max()) for s in np.diag(np.broadcast_to(step, len(x)))], axis=-1)


class Dense:
    """The posterior of a case. A row is a value or a gradient: its kind, its place and its block."""

    def __init__(self, case, kernel, given):
        self.case, self.kernel = case, kernel
        points, nowhere = given["X"], [None] * len(given["X"])
        blocks = given.get("blocks", nowhere)
        at, of_gradients = given.get("gradient_X", points[:0]), given.get("gradient_blocks", nowhere)
        self.rows = [("g", x, block) for x, block in zip(at, of_gradients, strict=False)]
        self.rows += [("v", x, block) for x, block in zip(points, blocks, strict=True)]
        simulator_noise = getattr(case.term, "simulator_noise", NOISE)
        noise = np.array([simulator_noise if block == SIMULATOR else NOISE for block in blocks])
        noise = noise * given.get("noise_scale", 1.0) + given.get("known_noise", 0.0)
        self.K = self.block(self.rows, self.rows) + np.diag([*[GRADIENT_NOISE] * at.size, *noise])
        self.one = np.concatenate([np.zeros(len(self.K) - len(blocks)), np.ones(len(blocks))])
        self.observed = np.concatenate([np.ravel(given.get("gradients", ())), given["y"]])
        self.level = 0.3 if case.mean == 0.3 else 0.0
        if case.mean == "estimated":
            b = np.linalg.solve(self.K, self.one)
            self.level = (b @ self.observed) / (b @ self.one)
        self.residuals = self.observed - self.block_of_means(self.rows)
        self.a = np.linalg.solve(self.K, self.residuals)

    def weights(self, b, b2):
        """The factor on the kernel and the addition to it for these blocks; None is that of the objective."""
        term = self.case.term
        if term is None:
            return 1.0, 0.0
        if isinstance(term, GapTerm):
            simulated = (b or MACHINE) + (b2 or MACHINE)
            factor = {0.0: 1.0, 1.0: term.factor, 2.0: term.factor**2 + term.share}[simulated]
            return factor, term.shift * (simulated == 2.0)
        if term.timescale is None:
            w = float(b is not None and b == b2)
        else:
            b, b2 = (term.now if each is None else each for each in (b, b2))
            w = np.exp(-abs(b - b2) / term.timescale)
        return 1.0 + term.share * w, term.shift * w

    def pair(self, row, row2):
        (kind, x, b), (kind2, x2, b2) = row, row2
        factor, addition = self.weights(b, b2)
        if kind + kind2 == "vv":
            return factor * self.kernel.k(x[None], x2[None]) + addition
        derivative = {"vg": self.kernel.dk_db, "gv": self.kernel.dk_da, "gg": self.kernel.d2k_dadb}[kind + kind2]
        found = derivative(x[None], x2[None])[0, 0]
        return factor * (found[:, None] if kind + kind2 == "gv" else np.atleast_2d(found))

    def block(self, rows, rows2):
        return np.block([[self.pair(row, row2) for row2 in rows2] for row in rows])

    def block_of_means(self, rows):
        mean = self.case.mean
        if isinstance(mean, Mean):
            return np.concatenate([mean(x[None]) if kind == "v" else mean.gradient(x[None])[0] for kind, x, _ in rows])
        return np.concatenate([[self.level] if kind == "v" else np.zeros(D) for kind, *_ in rows])

    def posterior(self, kind, x):
        """Mean and covariance of the objective's value or gradient at x."""
        target = [(kind, x, None)]
        k = self.block(self.rows, target)
        mean = self.block_of_means(target) + k.T @ self.a
        return mean, self.block(target, target) - k.T @ np.linalg.solve(self.K, k)

    @property
    def log_likelihood(self):
        return -0.5 * (self.residuals @ self.a + np.linalg.slogdet(2.0 * np.pi * self.K)[1])
