import numpy as np
import pytest

from gibo import InputError
from gibo.policies import MLP, Affine, Linear, architecture


def test_the_layout_in_numbers():
    ((W, b),) = Affine(2, 3).layers([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert W.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert b.tolist() == [7, 8, 9]
    ((W, b),) = Linear(2, 1).layers([1, 2])
    assert W.tolist() == [[1, 2]]
    assert b is None
    first, second = MLP(2, 1, (2,)).layers([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert (first.W.tolist(), first.b.tolist()) == ([[1, 2], [3, 4]], [5, 6])
    assert (second.W.tolist(), second.b.tolist()) == ([[7, 8]], [9])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("linear", Linear(4, 2)),
        ("affine", Affine(4, 2)),
        ("mlp:16,16", MLP(4, 2, (16, 16), "tanh")),
        ("mlp:16,16:relu", MLP(4, 2, (16, 16), "relu")),
        ("mlp:7", MLP(4, 2, (7,))),
    ],
)
def test_the_short_form_and_back(text, expected):
    assert architecture(text, 4, 2) == expected
    assert expected.text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Linear",
        "mlp:0",
        "mlp:16,",
        "mlp:16:sin",
        "mlp:٣",
        None,
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match=r'^policy: expected "linear", "affine", "mlp:16,16" or "mlp:16,16:relu", got'):
        architecture(text, 4, 2)


def test_the_start_is_scaled_by_the_inputs_and_given_by_its_seed():
    net = MLP(100, 1, (400, 50))
    (first, _), (second, _), _ = net.layers(net.initial(seed=3))
    assert first.std() == pytest.approx(1 / 10, rel=0.02)
    assert second.std() == pytest.approx(1 / 20, rel=0.02)
    assert np.array_equal(net.initial(seed=3), net.initial(seed=3))
    assert not np.array_equal(net.initial(seed=3), net.initial(seed=4))
