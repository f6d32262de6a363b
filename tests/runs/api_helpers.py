"""What the tests of the front door share: a hill, and objectives that fail now and then."""

import itertools

from gibo import Settings, maximize
from gibo.optimizers.moves import GradientStep
from gibo.steps import GradientAscent

# Cheap, and with two queries after each iterate.
SETTINGS = Settings(
    lengthscale=1.0, variance=1.0, noise=0.01, mean=0.0, M=2, M_first=2, N_m=12, move=GradientStep(GradientAscent(0.3))
)
X0 = [0.0, 0.0]


def hill(x):
    return 5.0 - float(((x - 1.0) ** 2).sum())


def climb(objective=hill, **options):
    return maximize(objective, X0, **{"budget": 12, "settings": SETTINGS, **options})


def failing_at(calls, how, objective=hill):
    """The objective, but `how(x)` takes its place at the given calls, counted from 0."""
    count = itertools.count()
    return lambda x: how(x) if next(count) in calls else objective(x)


def raising(error):
    def how(x):
        raise error

    return how
