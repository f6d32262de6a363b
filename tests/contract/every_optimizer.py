"""The optimisers of the contract suite, those of gibo-studies too. A new one is one more line in OPTIMIZERS."""

import numpy as np
import pytest

from gibo import ARS, CMAES, GIBO, InputError, RandomSearch, Settings, VanillaBO
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.queries import RandomQueries
from gibo.steps import GradientAscent
from gibo_studies.rivals import MPD, LocalEntropySearch, MinUCB, TrustRegionBO

D = 4
X0 = [0.1, -0.2, 0.4, 0.0]


def gibo(settings=lambda d: None):
    def make(x0, bounds=None, seed=0, scale=0.5):
        d = len(x0) if isinstance(x0, (list, np.ndarray)) and len(x0) else D
        return GIBO(x0, scale=scale, bounds=bounds, seed=seed, settings=settings(d))

    return make


def plain(kind, **options):
    def make(x0, bounds=None, seed=0, scale=0.5):
        return kind(x0, scale=scale, bounds=bounds, seed=seed, **options)

    return make


def vanilla_bo(kind=VanillaBO):
    """It needs a box, and a finite one; where the suite has none, it gets a large one."""

    def make(x0, bounds=None, seed=0, scale=0.5):
        options = {"scale": scale, "seed": seed}
        if bounds is None:
            bounds = (-3.0, 3.0)
        try:
            return kind(x0, bounds=bounds, **options)
        except InputError as error:
            if "finite bounds" not in str(error):
                raise
            return kind(x0, bounds=[np.clip(b, -3.0, 3.0) for b in bounds], **options)

    return make


# Each makes an optimiser from (x0, bounds, seed) and, by keyword, scale. One of each class, and variants with a state
# of their own: a step rule's, an iterate asked alone, a noise handler's.
OPTIMIZERS = [
    pytest.param(gibo(), id="gibo"),
    pytest.param(gibo(lambda d: Settings(fit_at="iterate")), id="gibo-fit-after-iterate"),
    pytest.param(
        gibo(
            lambda d: Settings.paper(
                kernel="matern52", move=GradientStep(GradientAscent(0.05, momentum=0.5)), queries=RandomQueries()
            )
        ),
        id="gibo-paper-random-momentum",
    ),
    pytest.param(plain(GIBO, sources={"simulator": 1, "machine": 20}), id="gibo-sources"),
    pytest.param(plain(ARS, directions=4, top=2), id="ars"),
    pytest.param(plain(CMAES), id="cma-es"),
    pytest.param(plain(CMAES, noise_handling=True), id="cma-es-noise"),
    pytest.param(vanilla_bo(), id="vanilla-bo"),
    pytest.param(plain(MPD), id="mpd"),
    pytest.param(plain(MinUCB), id="min-ucb"),
    pytest.param(plain(LocalEntropySearch, batch=2, ways=8), id="local-entropy-search"),
    pytest.param(plain(TrustRegionBO, batch=2), id="trust-region-bo"),
    pytest.param(plain(RandomSearch, batch=2), id="random-search"),
]

# Those whose points are drawn. The others use chance only to start a search for points, which may end at the same ones.
DRAWN = [p for p in OPTIMIZERS if p.id in ("gibo-paper-random-momentum", "ars", "cma-es", "random-search")]

every_optimizer = pytest.mark.parametrize("make", OPTIMIZERS)

# For what no method changes, such as what is refused at the door.
ONE_EACH = ("gibo", "ars", "cma-es", "vanilla-bo")
every_class = pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id in ONE_EACH])

# Those that go on only when all values of an iteration are there, and the others.
PATIENT = [p for p in OPTIMIZERS if not p.id.startswith("gibo") and p.id != "random-search"]
IMPATIENT = [p for p in OPTIMIZERS if p not in PATIENT]
