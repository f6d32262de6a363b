import numpy as np
import pytest

from gibo.acquisition.climb import climb

D = 2
LOWER, UPPER = np.zeros(D), np.ones(D)


class Bumps:
    """Two hills, the higher one at (0.8, 0.8), and how often it was asked."""

    centres, heights = np.array([[0.2, 0.2], [0.8, 0.8]]), np.array([1.0, 2.0])

    def __init__(self):
        self.batches, self.points = [], 0

    def values(self, X):
        return np.exp(-20.0 * ((X[:, None] - self.centres) ** 2).sum(axis=2)) * self.heights

    def __call__(self, X):
        self.batches.append(len(X))
        return self.values(X).sum(axis=1)

    def value_and_gradient(self, x):
        self.points += 1
        values = self.values(x[None])[0]
        return float(values.sum()), -40.0 * (values @ (x - self.centres))


def group(*points):
    return np.array(points)


def test_it_climbs_from_the_best_start_of_each_group():
    low, high = group([0.3, 0.3], [0.1, 0.4]), group([0.7, 0.9])
    x, value = climb(Bumps(), [low], LOWER, UPPER)
    np.testing.assert_allclose(x, [0.2, 0.2], atol=1e-2)
    for groups in ([low, high], [high, low]):
        x, value = climb(Bumps(), groups, LOWER, UPPER)
        np.testing.assert_allclose(x, [0.8, 0.8], atol=1e-2)
        assert value == pytest.approx(2.0, rel=1e-4)


def test_a_start_that_no_climb_exceeds_is_the_maximum():
    class Flat:
        def __call__(self, X):
            return np.where(X[:, 0] == 0.25, 1.0, 0.0)  # a needle that no gradient shows

        def value_and_gradient(self, x):
            return 0.0, np.zeros(D)

    x, value = climb(Flat(), [group([0.5, 0.5], [0.25, 0.7]), group([0.9, 0.9])], LOWER, UPPER)
    assert (x.tolist(), value) == ([0.25, 0.7], 1.0)
