"""Policies, their architectures and their files."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from gibo import InputError
from gibo.policies import (
    MLP,
    Affine,
    ContinuousActions,
    DiscreteActions,
    Linear,
    Normalization,
    Policy,
    architecture,
    load_policy,
)

K = 4
NORMALIZATION = Normalization([1.0, -2.0, 0.0, 10.0], [0.5, 3.0, 1.0, 20.0])
ACTIONS = [
    ContinuousActions([-1.0, -0.2, -np.inf], [1.0, 0.2, 0.5]),
    ContinuousActions([[-1.0, -1.0], [-1.0, -1.0]], [[1.0, 1.0], [1.0, 1.0]], "float64"),
    ContinuousActions([-np.inf], [np.inf], "float64"),
    DiscreteActions(2),
    DiscreteActions(2, start=5),
    DiscreteActions(4, start=-1),
]
NETS = [Linear, Affine, lambda k, m: MLP(k, m, (5, 3)), lambda k, m: MLP(k, m, (6,), "relu")]
NET_IDS = ["linear", "affine", "tanh", "relu"]


# -- architectures ----------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("text", ["", "Linear", "mlp:0", "mlp:16,", "mlp:16:sin", "mlp:٣", None])
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


# -- acting -----------------------------------------------------------------------------------------------------------


def twin(policy, observation):
    """The policy written out: normalise, layer by layer, then the action."""
    h = np.asarray(observation, dtype=np.float64).ravel()
    if policy.normalization is not None:
        h = (h - policy.normalization.mean) / policy.normalization.std
    layers = policy.architecture.layers(policy.theta)
    for i, (W, b) in enumerate(layers):
        h = np.array([sum(w * x for w, x in zip(row, h, strict=True)) for row in W]) + (0.0 if b is None else b)
        if i < len(layers) - 1:
            h = np.where(h > 0, h, 0.0) if policy.architecture.nonlinearity == "relu" else np.tanh(h)
    actions = policy.actions
    if isinstance(actions, ContinuousActions):
        return np.clip(h.reshape(actions.shape), actions.low, actions.high).astype(actions.dtype)
    return actions.start + (int(h[0] > 0) if actions.n == 2 else int(np.argmax(h)))


def some_policy(net=Affine, actions=ACTIONS[0], normalization=None, shape=None, seed=0):
    made = net(K, actions.outputs)
    return Policy(made, np.random.default_rng(seed).standard_normal(made.d), actions, normalization, shape)


@pytest.mark.parametrize("normalization", [None, NORMALIZATION], ids=["raw", "normalised"])
@pytest.mark.parametrize("actions", ACTIONS, ids=repr)
@pytest.mark.parametrize("net", NETS, ids=NET_IDS)
def test_it_acts_as_the_formula_says(net, actions, normalization):
    rng = np.random.default_rng(0)
    pairs = []
    for seed, observation in enumerate((5.0 * rng.standard_normal((40, K))).astype(np.float32)):
        policy = some_policy(net, actions, normalization, seed=seed)
        pairs.append((policy(observation), twin(policy, observation)))
        assert np.array_equal(pairs[-1][0], policy.act(observation))
    assert len({str(np.asarray(action).tolist()) for action, _ in pairs}) > 1
    single = getattr(actions, "dtype", "") == "float32"
    for action, expected in pairs:  # each action is a new array
        assert type(action) is type(expected)
        assert getattr(action, "dtype", None) == getattr(expected, "dtype", None)
        np.testing.assert_allclose(action, expected, rtol=2e-6 if single else 1e-12, atol=1e-12)


@pytest.mark.parametrize(("shape", "kind"), [((4,), np.uint8), ((2, 2), np.float32), ((1, 4, 1), np.int64)])
def test_observations_of_any_shape_and_type_are_flattened(shape, kind):
    policy = some_policy(shape=shape, normalization=NORMALIZATION)
    observation = np.arange(4).reshape(shape).astype(kind)
    np.testing.assert_allclose(policy(observation), twin(policy, [0.0, 1.0, 2.0, 3.0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Policy(Affine(4, 1), np.ones(4), DiscreteActions(2)), "theta: expected a vector of 5 numbers, got 4"),
        (lambda: some_policy()(np.zeros((1, 4))), r"observation: expected shape \(4,\), got "),
        (lambda: Policy(Affine(1, 2), np.ones(4), DiscreteActions(2)), "the actions need 1 outputs, it has 2"),
        (
            lambda: Policy(Affine(4, 1), np.ones(5), DiscreteActions(2), observation_shape=(2, 3)),
            r"shape \(2, 3\) need 6 inputs, it has 4",
        ),
        (
            lambda: Policy(Affine(4, 1), np.ones(5), DiscreteActions(2), Normalization.identity(3)),
            "normalization: expected states of 4 numbers, got 3",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


# -- its file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", [None, NORMALIZATION], ids=["raw", "normalised"])
@pytest.mark.parametrize("actions", ACTIONS, ids=repr)
@pytest.mark.parametrize("net", NETS, ids=NET_IDS)
def test_saved_and_loaded_it_is_the_same(net, actions, normalization, tmp_path):
    policy = some_policy(net, actions, normalization, shape=(2, 2))
    policy.save(tmp_path / "policy.json")
    again = load_policy(tmp_path / "policy.json")
    assert again.theta.tobytes() == policy.theta.tobytes()
    assert again.to_plain() == policy.to_plain()
    observation = np.array([[0.5, -1.0], [1.5, 0.1]])
    assert np.array_equal(again(observation), policy(observation))


def test_loading_needs_no_gymnasium(tmp_path):
    policy = some_policy(normalization=NORMALIZATION)
    policy.save(tmp_path / "policy.json")
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from gibo.policies import load_policy\n"
        f"print(load_policy({str(tmp_path / 'policy.json')!r})([0.5, 1.0, 1.5, 2.0]).tolist())"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == policy([0.5, 1.0, 1.5, 2.0]).tolist()


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_when_writing_fails_the_old_file_stays(function, tmp_path, monkeypatch):
    path = tmp_path / "policy.json"
    some_policy(seed=1).save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(InputError, match=r"policy\.json: cannot be written: No space left on device"):
        some_policy(seed=2).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["policy.json"]


def damaged(**changes):
    plain = some_policy(normalization=NORMALIZATION).to_plain()
    for key, value in changes.items():
        if value is ...:
            del plain[key]
        else:
            plain[key] = value
    return json.dumps(plain)


FOREIGN = [
    (b"[" * 100_000, "not readable as JSON"),
    (b'{"theta": [1.0]}', "not a policy of gibo"),
    (damaged(version=2), "expected version 1 of its format, got 2; a newer gibo may read it"),
    (damaged(theta=...), "damaged: KeyError: 'theta'"),
    (damaged(theta=[1.0]), "damaged: theta: expected a vector of 15 numbers, got 1"),
    (damaged(actions=None), "damaged: actions: expected a saved space of actions, got None"),
    (damaged(normalization={"mean": [0.0] * 4}), "damaged: normalization: expected a dictionary with mean, std"),
]


@pytest.mark.parametrize(("content", "words"), FOREIGN, ids=range(len(FOREIGN)))
def test_damaged_foreign_and_newer_files_are_refused_in_one_line(content, words, tmp_path):
    path = tmp_path / "policy.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}: {words}")
    assert "\n" not in str(caught.value)
