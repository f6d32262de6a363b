import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gibo import NumericalError
from gibo.policies import MLP, Affine, ContinuousActions, Linear, Normalization, Policy, Statistics, reexpress
from gibo.policies.normalizer import CHUNK, Collector


def welford(states):
    """The direct twin: one state after the other."""
    count, mean, m2 = 0, np.zeros(states.shape[1]), np.zeros(states.shape[1])
    for s in states:
        count += 1
        delta = s - mean
        mean = mean + delta / count
        m2 = m2 + delta * (s - mean)
    return count, mean, m2


def collect(states, shape):
    collector = Collector(shape)
    for s in states:
        collector.add(s.reshape(shape))
    return collector.statistics()


def assert_close(statistics, states, rtol=1e-12):
    count, mean, m2 = welford(states)
    assert statistics.count == count == len(states)
    scale = np.abs(states).max() + 1e-300
    np.testing.assert_allclose(statistics.mean, mean, rtol=rtol, atol=1e-13 * scale)
    np.testing.assert_allclose(statistics.m2, m2, rtol=1e-10, atol=1e-13 * scale**2 * count)
    np.testing.assert_allclose(statistics.mean, states.mean(axis=0), rtol=rtol, atol=1e-13 * scale)
    np.testing.assert_allclose(statistics.m2 / count, states.var(axis=0), rtol=1e-10, atol=1e-13 * scale**2)


@pytest.mark.parametrize("n", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 1000])
def test_collected_one_by_one_equals_welford_and_numpy(n):
    rng = np.random.default_rng(1)
    states = rng.standard_normal((n, 6)) * [1e-6, 1.0, 1e6, 3.0, 1.0, 1.0] + [0.0, 5.0, 1e7, -4.0, 1e3, 0.0]
    assert_close(collect(states, (6,)), states)
    assert_close(collect(states, (2, 3)), states)
    assert_close(Statistics.of(states), states)


@given(arrays(np.float64, st.tuples(st.integers(2, 40), st.just(2)), elements=st.floats(-1e6, 1e6)), st.data())
def test_merge_equals_the_statistics_of_all(states, data):
    cut = data.draw(st.integers(0, len(states)))
    a, b = Statistics.of(states[:cut]), Statistics.of(states[cut:])
    both, whole = a.merge(b), Statistics.of(states)
    scale = np.abs(states).max() + 1e-300
    assert both.count == whole.count
    np.testing.assert_allclose(both.mean, whole.mean, rtol=1e-12, atol=1e-14 * scale)
    # Squares below 1e-300 have few digits left, or none.
    np.testing.assert_allclose(both.m2, whole.m2, rtol=1e-10, atol=1e-13 * scale**2 + 1e-300)


@pytest.mark.parametrize(
    ("mean", "std", "expected"), [(0.0, 1e-9, 1.0), (1e9, 1e-4, 1.0), (1e9, 7.0, 7.0), (0.0, 1e-6, 1e-6)]
)
def test_the_floor_of_the_std(mean, std, expected):
    statistics = Statistics.of([[mean - std], [mean + std]])
    assert statistics.std[0] == pytest.approx(expected)


def test_statistics_come_back_from_json_bit_for_bit():
    statistics = Statistics.of(np.random.default_rng(6).standard_normal((7, 3)) / 3.0)
    for value in (statistics, statistics.normalization):
        text = json.dumps(value.to_plain(), allow_nan=False)
        assert json.dumps(type(value).from_plain(json.loads(text)).to_plain()) == text


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_an_observation_without_statistics_is_a_numerical_error(bad):
    collector = Collector((1,))
    for value in (0.0, bad):
        collector.add(value)
    with pytest.raises(NumericalError, match="an observation is not finite, or too large"):
        collector.statistics()


NETS = [Affine(3, 2), MLP(3, 2, (5,)), MLP(3, 2, (4, 6), "relu"), Affine(3, 1)]
OLD = Normalization([0.5, -1.0, 3.0], [0.7, 2.0, 1.0])
NEW = Normalization([-0.3, 4.0, 3.5], [1.9, 0.4, 1.0])
UNBOUNDED = {m: ContinuousActions([-np.inf] * m, [np.inf] * m, "float64") for m in (1, 2)}


def outputs(net, theta, normalization, states):
    policy = Policy(net, theta, UNBOUNDED[net.outputs], normalization)
    return np.array([policy(s) for s in states])


@pytest.mark.parametrize("net", [Linear(3, 2), *NETS], ids=repr)
def test_many_vectors_at_once_and_the_matrix(net):
    rng = np.random.default_rng(10)
    change, thetas = reexpress(net, OLD, NEW), rng.standard_normal((4, net.d))
    T = change.parameters(np.eye(net.d)).T
    np.testing.assert_allclose(change.parameters(thetas), thetas @ T.T, atol=1e-12)
    np.testing.assert_allclose(change.gradients(thetas), np.linalg.solve(T.T, thetas.T).T, atol=1e-12)
    assert np.array_equal(change.parameters(thetas[0]), change.parameters(thetas)[0])
    assert np.array_equal(change.gradients(thetas[0]), change.gradients(thetas)[0])


@pytest.mark.parametrize("net", NETS, ids=repr)
def test_gradients_by_differences(net):
    """The gradient of a function of the behaviour, in both parametrisations."""
    rng = np.random.default_rng(12)
    theta, states = rng.standard_normal(net.d), rng.standard_normal((10, 3))
    change = reexpress(net, OLD, NEW)

    def gradient(theta, normalization, step=1e-6):
        f = [(outputs(net, theta + sign * step * e, normalization, states) ** 2).sum() for e in np.eye(net.d)
             for sign in (1, -1)]  # fmt: skip
        return (np.array(f[::2]) - np.array(f[1::2])) / (2 * step)

    old, new = gradient(theta, OLD), gradient(change.parameters(theta), NEW)
    np.testing.assert_allclose(change.gradients(old), new, rtol=1e-6, atol=1e-6 * np.abs(new).max())
