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

K = 6
NORMALIZATION = Normalization([1.0, -2.0, 0.0, 10.0, 0.0, 1e3], [0.5, 3.0, 1.0, 20.0, 1e-3, 1e2])
ACTIONS = {
    "bounded": ContinuousActions([-1.0, -0.2, -np.inf], [1.0, 0.2, 0.5], "float64"),
    "matrix": ContinuousActions(-np.ones((2, 2)), np.ones((2, 2)), "float32"),
    "free": ContinuousActions([-np.inf], [np.inf], "float64"),
    "two": DiscreteActions(2),
    "two, from 5": DiscreteActions(2, start=5),
    "four, from −1": DiscreteActions(4, start=-1),
}
NETS = {
    "linear": Linear,
    "affine": Affine,
    "tanh": lambda k, m: MLP(k, m, (5, 3)),
    "relu": lambda k, m: MLP(k, m, (6,), "relu"),
}
CASES = [(net, actions, n) for net in NETS for actions in ACTIONS for n in (None, NORMALIZATION)]


def some_policy(net="affine", actions="bounded", normalization=None, shape=None, seed=1):
    made = NETS[net](K, ACTIONS[actions].outputs)
    theta = np.random.default_rng(seed).standard_normal(made.d)
    return Policy(made, theta, ACTIONS[actions], normalization, shape)


def some_observations(policy, n=40):
    """Some that such a policy sees, both within and beyond the actions' bounds."""
    S = np.random.default_rng(1).standard_normal((n, K)) * np.geomspace(0.05, 3.0, n)[:, None]
    if policy.normalization is not None:
        S = policy.normalization.mean + policy.normalization.std * S
    return S.reshape(n, *policy.observation_shape)


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


@pytest.mark.parametrize(("net", "actions", "normalization"), CASES)
def test_it_acts_as_the_formula_says_also_read_back(net, actions, normalization):
    policy = some_policy(net, actions, normalization)
    again = Policy.from_plain(json.loads(json.dumps(policy.to_plain())))
    assert again.to_plain() == policy.to_plain()
    observations = some_observations(policy)
    pairs = [(again(each), policy.act(each), twin(policy, each)) for each in observations]
    assert len({str(action) for action, _, _ in pairs}) > 1
    single = actions == "matrix"
    for action, unchecked, expected in pairs:  # each action is a new array
        assert type(action) is type(expected)
        assert getattr(action, "dtype", None) == getattr(expected, "dtype", None)
        np.testing.assert_array_equal(action, unchecked)
        np.testing.assert_allclose(action, expected, rtol=2e-6 if single else 1e-11, atol=1e-11)


@pytest.mark.parametrize(("shape", "kind"), [((6,), np.uint8), ((2, 3), np.float32), ((1, 6, 1), np.int64)])
def test_observations_of_any_shape_and_type_are_flattened(shape, kind):
    policy = some_policy(shape=shape, normalization=NORMALIZATION)
    observation = np.arange(6).reshape(shape).astype(kind)
    np.testing.assert_allclose(policy(observation), twin(policy, np.arange(6.0)), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Policy(Affine(4, 1), np.ones(4), DiscreteActions(2)), "theta: expected a vector of 5 numbers, got 4"),
        (lambda: some_policy()(np.zeros((1, 6))), r"observation: expected shape \(6,\), got "),
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


def test_the_layout_in_numbers():
    ((W, b),) = Affine(2, 3).layers([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert (W.tolist(), b.tolist()) == ([[1, 2], [3, 4], [5, 6]], [7, 8, 9])
    ((W, b),) = Linear(2, 1).layers([1, 2])
    assert (W.tolist(), b) == ([[1, 2]], None)
    first, second = MLP(2, 1, (2,)).layers([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert (first.W.tolist(), first.b.tolist()) == ([[1, 2], [3, 4]], [5, 6])
    assert (second.W.tolist(), second.b.tolist()) == ([[7, 8]], [9])


@pytest.mark.parametrize("text", ["", "Linear", "mlp:0", "mlp:16,", "mlp:16:sin", "mlp:٣", None])
def test_the_short_form_and_other_texts(text):
    assert architecture("mlp:16,16:relu", 4, 2) == MLP(4, 2, (16, 16), "relu")
    assert architecture("mlp:7", 4, 2) == MLP(4, 2, (7,))
    with pytest.raises(InputError, match=r'^policy: expected "linear", "affine", "mlp:16,16" or "mlp:16,16:relu", got'):
        architecture(text, 4, 2)


def test_the_start_is_scaled_by_the_inputs_and_given_by_its_seed():
    net = MLP(100, 1, (400, 50))
    (first, _), (second, _), _ = net.layers(net.initial(seed=3))
    assert first.std() == pytest.approx(1 / 10, rel=0.02)
    assert second.std() == pytest.approx(1 / 20, rel=0.02)
    assert not np.array_equal(net.initial(seed=3), net.initial(seed=4))


def test_loading_needs_no_gymnasium(tmp_path):
    policy = some_policy(normalization=NORMALIZATION)
    policy.save(tmp_path / "policy.json")
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from gibo.policies import load_policy\n"
        f"print(load_policy({str(tmp_path / 'policy.json')!r})([0.5] * 6).tolist())"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == policy([0.5] * 6).tolist()


def test_a_planted_link_is_not_written_through(tmp_path):
    mine, link = tmp_path / "mine", tmp_path / "policy.json.tmp"
    mine.write_text("mine")
    link.symlink_to(mine)
    some_policy().save(tmp_path / "policy.json")
    assert mine.read_text() == "mine"


def test_when_writing_fails_the_old_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "policy.json"
    some_policy(seed=1).save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match=r"policy\.json: cannot be written: No space left on device"):
        some_policy(seed=2).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["policy.json"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("[" * 100_000, "not readable as JSON"),
        ('{"theta": [1.0]}', "not a policy of gibo"),
        ({"version": 2}, "expected version 1 of its format, got 2; a newer gibo may read it"),
        ({"theta": [1.0]}, "damaged: theta: expected a vector of 21 numbers, got 1"),
        ({"actions": None}, "damaged: actions: expected a saved space of actions, got None"),
        ({"normalization": {"mean": [0.0] * 6}}, "damaged: normalization: expected a dictionary with mean, std"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_damaged_foreign_and_newer_files_are_refused_in_one_line(changes, words, tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(changes if isinstance(changes, str) else json.dumps(some_policy().to_plain() | changes))
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}: {words}")
