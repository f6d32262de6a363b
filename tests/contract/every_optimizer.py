"""The optimisers of the contract suite, those of gibo-studies too. A new one is one more line in OPTIMIZERS."""

import numpy as np
import pytest

from gibo import ARS, CMAES, GIBO, RandomSearch, Settings, VanillaBO
from gibo.optimizers.moves import GradientStep
from gibo.optimizers.queries import RandomQueries
from gibo.steps import GradientAscent
from gibo_studies.rivals import MPD, LocalEntropySearch, MinUCB, TrustRegionBO

D = 4
X0 = [0.1, -0.2, 0.4, 0.0]


def make(kind, **options):
    def made(x0, bounds=None, seed=0, scale=0.5):
        return kind(x0, scale=scale, bounds=bounds, seed=seed, **options)

    return made


def vanilla_bo(x0, bounds=(-3.0, 3.0), seed=0, scale=0.5):
    """It needs a finite box; where the suite has none, it gets a large one."""
    bounds = (-3.0, 3.0) if bounds is None else [np.clip(side, -3.0, 3.0) for side in bounds]
    return VanillaBO(x0, scale=scale, seed=seed, bounds=bounds)


MOMENTUM = Settings.paper(
    kernel="matern52", move=GradientStep(GradientAscent(0.05, momentum=0.5)), queries=RandomQueries()
)

# Each makes an optimiser from (x0, bounds, seed) and, by keyword, scale. One of each class, and variants with a state
# of their own: a step rule's, an iterate asked alone, a noise handler's.
OPTIMIZERS = [
    pytest.param(make(GIBO), id="gibo"),
    pytest.param(make(GIBO, settings=Settings(fit_at="iterate")), id="gibo-fit-after-iterate"),
    pytest.param(make(GIBO, settings=MOMENTUM), id="gibo-paper-random-momentum"),
    pytest.param(make(GIBO, sources={"simulator": 1, "machine": 20}), id="gibo-sources"),
    pytest.param(make(ARS, directions=4, top=2), id="ars"),
    pytest.param(make(CMAES), id="cma-es"),
    pytest.param(make(CMAES, noise_handling=True), id="cma-es-noise"),
    pytest.param(vanilla_bo, id="vanilla-bo"),
    pytest.param(make(MPD), id="mpd"),
    pytest.param(make(MinUCB), id="min-ucb"),
    pytest.param(make(LocalEntropySearch, batch=2, ways=8), id="local-entropy-search"),
    pytest.param(make(TrustRegionBO, batch=2), id="trust-region-bo"),
    pytest.param(make(RandomSearch, batch=2), id="random-search"),
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
