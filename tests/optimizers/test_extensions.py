"""Parts of a user's own take part in all that gibo's own do: a kernel, prior, schedule, step, move, queries, scale."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from gibo import GIBO, GaussianProcess, InputError, Kernel, Settings, SquaredExponential, maximize, resume
from gibo._serialize import to_plain
from gibo.acquisition.climb import climb
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.optimizers.moves import BoundStep, GradientStep, Move
from gibo.optimizers.queries import Queries
from gibo.optimizers.scale import ScaleRule
from gibo.priors import LogNormal, Prior
from gibo.steps import GradientAscent, Schedule, StepRule
from optimizer_helpers import advance, through_json

X0 = np.array([0.6, -0.4, 0.3])


@dataclass(frozen=True, eq=False)
class Cauchy(Kernel):
    """``k = s2·(1 + q/2)^−alpha``, alpha fitted."""

    name = "cauchy"
    alpha: float = 1.0
    priors: ClassVar = {"alpha": LogNormal(1.0, 0.5)}

    def profile(self, q, order):
        b, a = 1.0 / (1.0 + 0.5 * q), self.alpha
        factors = (1.0, -0.5 * a, 0.25 * a * (a + 1.0), -0.125 * a * (a + 1.0) * (a + 2.0))
        return tuple(factor * b ** (a + m) for m, factor in enumerate(factors[: order + 1]))

    def profile_by_log(self, name, q, order):  # of data without gradients: order 0
        return (-self.alpha * np.log1p(0.5 * q) * self.profile(q, 0)[0],)


@dataclass(frozen=True)
class Exponential(Prior):
    rate: float

    def log_density(self, x):
        return math.log(self.rate) - self.rate * x

    def gradient(self, x):
        return np.full_like(x, -self.rate)

    @property
    def mean(self):
        return 1.0 / self.rate


@dataclass(frozen=True)
class Cosine(Schedule):
    initial: float
    updates: int

    def __call__(self, t):
        return 0.5 * self.initial * (1.1 + math.cos(math.pi * min(t / self.updates, 1.0)))


@dataclass(frozen=True)
class Signs(StepRule):
    """Steps by the signs of a mean of the directions; its state has arrays of several shapes."""

    size: float
    memory: tuple[float, float] = (0.5, 0.5)

    def init(self, d):
        return {"mean": np.zeros(d), "past": np.zeros((2, d)), "count": np.zeros(())}

    def update(self, direction, state):
        mean = self.memory[0] * state["mean"] + self.memory[1] * direction
        past = np.stack([direction, state["past"][0]])
        return self.size * np.sign(mean), {"mean": mean, "past": past, "count": state["count"] + 1.0}


class Spread:
    """An acquisition of a user's own: the model's variance, least where there are values."""

    def __init__(self, gp):
        self.posterior = PosteriorAtPoint(gp)

    def __call__(self, X):
        return np.array([self.posterior(x).variance for x in X])

    def value_and_gradient(self, x):
        moments = self.posterior(x)
        return moments.variance, moments.variance_gradient


@dataclass(frozen=True)
class Uncertain(Queries):
    """Queries where the model knows least, given those before them; the model is that of the values at their places."""

    starts: int = 4

    def choose(self, information, lower, upper, M, rng, directions):
        gp, chosen = GaussianProcess(SquaredExponential(upper - lower), 0.1), [information.t]
        for _ in range(M):
            spread = Spread(gp.condition(np.array(chosen), np.zeros(len(chosen))))
            starts = lower + (upper - lower) * rng.random((self.starts, len(lower)))
            chosen.append(climb(spread, [starts], lower, upper)[0])
        return np.array(chosen[1:])


@dataclass(frozen=True)
class Heavy(Move):
    """A part of the way of the last move is added to the next one."""

    share: float = 0.3

    def init(self, d):
        return {"last": np.zeros(d)}

    def next(self, gp, t, lower, upper, state):
        aim, _ = BoundStep().next(gp, t, lower, upper, {})
        z = np.clip(aim + self.share * state["last"], lower, upper)
        return z, {"last": z - t}


@dataclass(frozen=True)
class HalvedOnce(ScaleRule):
    """The scale is halved once."""

    def factor(self, found):
        return 0.5 if found.n < 5 else None


SETTINGS = {
    "kernel": Settings.paper(kernel="cauchy"),
    "queries, move, scale rule": Settings(queries=Uncertain(), move=Heavy(), scale_rule=HalvedOnce()),
    "prior": Settings.paper(lengthscale=Exponential(0.4), noise=Exponential(10.0)),
    "schedule": Settings(move=GradientStep(GradientAscent(eta=Cosine(0.5, updates=10)))),
    "rule": Settings(move=GradientStep(Signs(0.2))),
    "all": Settings.paper(kernel="cauchy", lengthscale=Exponential(0.4), move=GradientStep(Signs(0.2, (0.3, 0.7)))),
}
each = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())


def hill(x):
    return -float(((x - 0.1) ** 2).sum())


def run(optimizer, iterations):
    advance(optimizer, iterations, value=lambda query: hill(query.x))
    return optimizer


def as_json(value):
    return through_json(to_plain(value))


@each
def test_settings_with_them_come_back(settings):
    again = Settings.from_plain(as_json(settings))
    assert as_json(again) == as_json(settings)
    assert type(again.move) is type(settings.move)
    assert type(again.lengthscale) is type(settings.lengthscale)


@each
def test_a_run_with_them_climbs(settings):
    optimizer = run(GIBO(X0, scale=0.2, seed=1, settings=settings), 15)
    assert hill(optimizer.best.x) > 0.1 * hill(X0)
    if settings.kernel == "cauchy":
        assert optimizer.model().gp.kernel.alpha != 1.0


@each
def test_a_run_that_is_saved_and_loaded_goes_on_as_if_it_had_not_been(settings):
    whole = run(GIBO(X0, scale=0.2, seed=1, settings=settings), 8)
    half = run(GIBO(X0, scale=0.2, seed=1, settings=settings), 4)
    loaded = run(GIBO.from_state(as_json(half.state())), 4)
    assert [e.x.tolist() for e in loaded.evaluations] == [e.x.tolist() for e in whole.evaluations]
    assert loaded.state() == whole.state()


def test_a_journal_holds_them(tmp_path):
    first = maximize(hill, X0, budget=10, scale=0.2, settings=SETTINGS["all"], journal=tmp_path / "run")
    again = resume(tmp_path / "run", hill, budget=20)
    straight = maximize(hill, X0, budget=20, scale=0.2, settings=SETTINGS["all"])
    assert len(first.history.value) == 10
    assert again.history.value.tolist() == straight.history.value.tolist()


# -- mistakes ---------------------------------------------------------------------------------------------------------


def test_a_kernel_that_is_not_defined_is_named():
    plain = as_json(Settings(kernel="cauchy")) | {"kernel": "elsewhere"}
    with pytest.raises(InputError, match=r"kernel: expected one of .*'cauchy'.*got 'elsewhere'.*import its module"):
        Settings.from_plain(plain)


class Loose(StepRule):
    """No dataclass, so nothing of it would be saved."""

    def __init__(self, size):
        self.size = size

    def init(self, d):
        return {}

    def update(self, direction, state):
        return self.size * direction, state


class LoosePrior(LogNormal):
    """Derives from a dataclass, but has fields that are none."""

    def __init__(self, median):
        super().__init__(median, 0.5)


@pytest.mark.parametrize(
    "arguments",
    [{"lengthscale": LoosePrior(1.0)}, {"noise": LoosePrior(0.1)}],
    ids=lambda arguments: next(iter(arguments)),
)
def test_what_could_not_be_saved_is_refused_at_once(arguments):
    (name,) = arguments
    with pytest.raises(InputError, match=rf"{name}: to be saved, Loose\w* must be a dataclass"):
        Settings(**arguments)
