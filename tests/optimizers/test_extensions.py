"""Parts of a user's own take part in all that gibo's own do: a kernel, prior, schedule, step, move, queries, scale."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from gibo import GIBO, GaussianProcess, InputError, Settings, SquaredExponential
from gibo._serialize import to_plain
from gibo.acquisition.climb import climb
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.optimizers.moves import BoundStep, GradientStep, Move
from gibo.optimizers.queries import Queries
from gibo.optimizers.scale import ScaleRule
from gibo.priors import LogNormal, Prior
from gibo.steps import GradientAscent, Schedule, StepRule
from optimizer_helpers import advance, hill, through_json
from test_kernels import RationalQuadratic

X0 = np.array([0.6, -0.4, 0.3])


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


KERNEL = RationalQuadratic.name
SETTINGS = {
    "queries, move, scale rule": Settings(queries=Uncertain(), move=Heavy(), scale_rule=HalvedOnce()),
    "schedule": Settings(move=GradientStep(GradientAscent(eta=Cosine(0.5, updates=10)))),
    "kernel, priors, rule": Settings.paper(
        kernel=KERNEL, lengthscale=Exponential(0.4), noise=Exponential(10.0), move=GradientStep(Signs(0.2, (0.3, 0.7)))
    ),
}


def run(optimizer, iterations):
    advance(optimizer, iterations, value=lambda query: hill(query.x))
    return optimizer


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_run_with_them_climbs_and_goes_on_as_if_it_had_not_been_saved(settings):
    whole = run(GIBO(X0, scale=0.2, seed=1, settings=settings), 15)
    half = run(GIBO(X0, scale=0.2, seed=1, settings=settings), 6)
    loaded = run(GIBO.from_state(through_json(half.state())), 9)
    assert hill(whole.best.x) > 0.1 * hill(X0)
    assert [e.x.tolist() for e in loaded.evaluations] == [e.x.tolist() for e in whole.evaluations]
    assert loaded.state() == whole.state()
    again = Settings.from_plain(through_json(to_plain(settings)))
    assert to_plain(again) == to_plain(settings)
    assert (type(again.move), type(again.lengthscale)) == (type(settings.move), type(settings.lengthscale))
    if settings.kernel == KERNEL:
        assert whole.model().gp.kernel.alpha != 1.3


# -- mistakes ---------------------------------------------------------------------------------------------------------


def test_a_kernel_that_is_not_defined_is_named():
    plain = through_json(to_plain(Settings(kernel=KERNEL))) | {"kernel": "elsewhere"}
    with pytest.raises(InputError, match=rf"kernel: expected one of .*'{KERNEL}'.*got 'elsewhere'.*import its module"):
        Settings.from_plain(plain)


class LoosePrior(LogNormal):
    """Derives from a dataclass, but has fields that are none."""

    def __init__(self, median):
        super().__init__(median, 0.5)


def test_what_could_not_be_saved_is_refused_at_once():
    for name in ("lengthscale", "noise"):
        with pytest.raises(InputError, match=rf"{name}: to be saved, LoosePrior must be a dataclass"):
            Settings(**{name: LoosePrior(1.0)})
