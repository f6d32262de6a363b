"""Values compared by their ranks, against SciPy and by all pairs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from gibo.runs.verdict import lower_by_chance

few = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=12)


@settings(deadline=None)
@given(st.integers(2, 20), st.integers(2, 20), st.integers(0, 2**32 - 1))
def test_it_is_mann_and_whitneys(m, n, seed):
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(seed)
    some, others = rng.standard_normal(m), rng.standard_normal(n)
    expected = mannwhitneyu(some, others, alternative="less", method="asymptotic").pvalue
    assert lower_by_chance(some, others) == pytest.approx(expected, rel=1e-9)
    assert lower_by_chance(np.ones(m), np.ones(n)) > 0.5


@given(few, few)
def test_of_equal_values_half_count(some, others):
    m, n = len(some), len(others)
    above = sum((a > b) + 0.5 * (a == b) for a in some for b in others)
    expected = ndtr((above - m * n / 2.0 + 0.5) / math.sqrt(m * n * (m + n + 1) / 12.0))
    assert lower_by_chance(some, others) == pytest.approx(expected)
