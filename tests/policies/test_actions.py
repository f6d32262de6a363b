import numpy as np
import pytest
from gymnasium import spaces

from gibo.policies import ContinuousActions, DiscreteActions

INF = np.inf


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]),
        ([-INF, -1.0, 0.5], [INF, INF, 0.5]),
        ([-INF, -INF, -INF], [1.0, INF, INF]),
        ([-INF, -INF, -INF], [INF, INF, INF]),
        ([[-1.0], [-0.1]], [[1.0], [0.1]]),
        (-0.5, 0.5),
    ],
)
def test_outputs_are_clipped_into_the_space(low, high, dtype):
    rng = np.random.default_rng(0)
    actions = ContinuousActions(low, high, dtype)
    space = spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=np.dtype(dtype))
    for _ in range(20):
        outputs = 3.0 * rng.standard_normal(actions.outputs)
        action = actions.bind(lambda observation: observation.copy())(outputs)
        assert space.contains(action)
        assert action.dtype == dtype
        clipped = np.clip(outputs.reshape(np.shape(low)), low, high)
        assert np.array_equal(action, clipped.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bound", [1.0, INF])
def test_every_action_is_a_new_array(dtype, bound):
    act = ContinuousActions([-bound], [bound], dtype).bind(lambda observation: np.array([observation]))
    first = act(0.25)
    act(0.75)
    assert first.tolist() == [0.25]


@pytest.mark.parametrize("start", [0, -3, 5])
def test_the_sign_of_one_output_decides_between_two(start):
    actions = DiscreteActions(2, start)
    act = actions.bind(lambda observation: np.array([observation]))
    assert actions.outputs == 1
    assert [act(-1.0), act(0.0), act(1e-300)] == [start, start, start + 1]


@pytest.mark.parametrize("start", [0, -3, 5])
@pytest.mark.parametrize("n", [1, 3, 4])
def test_the_largest_output_decides_among_more(n, start):
    actions = DiscreteActions(n, start)
    space = spaces.Discrete(n, start=start)
    act = actions.bind(np.array)
    assert actions.outputs == n
    for i in range(n):
        action = act(np.eye(n)[i])
        assert action == start + i
        assert type(action) is int
        assert space.contains(action)
    assert act(np.zeros(n)) == start  # the first of several
