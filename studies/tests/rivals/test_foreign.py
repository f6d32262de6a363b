"""Optimisers of other packages: what they recommend."""

import numpy as np
import pytest

from gibo_studies.rivals.foreign import COBYQA, LRACMAES, LqCMAES, PyBADS, PyBOBYQA


def told(kind, values):
    optimizer = kind([0.3, 0.4], scale=0.2, bounds=(0.0, 1.0), seed=1)
    for value in values:
        (query,) = optimizer.ask()
        optimizer.tell(query, value)
    return optimizer


@pytest.mark.parametrize(("kind", "module"), [(COBYQA, "scipy"), (PyBOBYQA, "pybobyqa"), (PyBADS, "pybads")])
def test_the_point_with_the_highest_value_is_recommended(kind, module):
    """By PyBADS while its initial design is evaluated, when its incumbent still is the start."""
    pytest.importorskip(module)
    optimizer = told(kind, [0.0, 0.1, 0.7, 0.2, 0.3])
    assert optimizer.best.value == 0.7
    assert optimizer.best.x.tolist() == optimizer.evaluations[2].x.tolist()


@pytest.mark.parametrize(("kind", "module"), [(LqCMAES, "cma"), (LRACMAES, "cmaes")])
def test_variants_of_cma_recommend_their_mean(kind, module):
    pytest.importorskip(module)
    optimizer = told(kind, -np.arange(40.0))
    asked = [e.x.tolist() for e in optimizer.evaluations]
    assert optimizer.best.x.tolist() not in asked
    assert ((optimizer.best.x >= 0.0) & (optimizer.best.x <= 1.0)).all()


def test_a_search_that_ends_begins_again_at_the_best_point():
    """COBYQA converges on a constant function within some dozens of values."""
    optimizer = told(COBYQA, [0.0] * 150)
    assert len(optimizer.evaluations) == 150
