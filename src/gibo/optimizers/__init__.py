"""Optimisers, all with the same face: ask for queries, tell their values."""

from gibo.optimizers.ars import ARS
from gibo.optimizers.base import Optimizer
from gibo.optimizers.cma import CMAES
from gibo.optimizers.gibo import GIBO
from gibo.optimizers.local_entropy_search import LocalEntropySearch
from gibo.optimizers.min_ucb import MinUCB
from gibo.optimizers.mpd import MPD
from gibo.optimizers.random_search import RandomSearch
from gibo.optimizers.trust_region_bo import TrustRegionBO
from gibo.optimizers.vanilla_bo import VanillaBO

__all__ = [
    "ARS",
    "CMAES",
    "GIBO",
    "MPD",
    "LocalEntropySearch",
    "MinUCB",
    "Optimizer",
    "RandomSearch",
    "TrustRegionBO",
    "VanillaBO",
    "methods",
]


def methods() -> dict[str, type[Optimizer]]:
    """The optimisers by the name of their method, those of one's own included; a subclass has its own name or none."""
    kinds = Optimizer.registry.values()
    return {kind.method: kind for kind in kinds if kind.method is not None and "method" in vars(kind)}
