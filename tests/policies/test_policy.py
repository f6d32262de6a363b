import json
import os
import subprocess
import sys

import numpy as np
import pytest

from gibo import InputError
from gibo.policies import MLP, Affine, ContinuousActions, DiscreteActions, Linear, Normalization, Policy, load_policy

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
    architecture = net(K, actions.outputs)
    theta = np.random.default_rng(seed).standard_normal(architecture.d)
    return Policy(architecture, theta, actions, normalization, shape)


@pytest.mark.parametrize("normalization", [None, NORMALIZATION], ids=["raw", "normalised"])
@pytest.mark.parametrize("actions", ACTIONS, ids=repr)
@pytest.mark.parametrize("net", NETS, ids=NET_IDS)
def test_it_acts_as_the_formula_says(net, actions, normalization):
    rng = np.random.default_rng(0)
    seen = []
    for seed, observation in enumerate((5.0 * rng.standard_normal((40, K))).astype(np.float32)):
        policy = some_policy(net, actions, normalization, seed=seed)
        action, expected = policy(observation), twin(policy, observation)
        assert type(action) is type(expected)
        np.testing.assert_allclose(action, expected, rtol=2e-6 if action_is_single(actions) else 1e-12, atol=1e-12)
        assert np.array_equal(action, policy.act(observation))
        seen.append(np.asarray(action).tolist())
    assert len({str(action) for action in seen}) > 1


def action_is_single(actions):
    return isinstance(actions, ContinuousActions) and actions.dtype == "float32"


@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 4, 1)])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8, np.int64])
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
def test_saved_and_loaded_it_acts_the_same_bit_for_bit(net, actions, normalization, tmp_path):
    policy = some_policy(net, actions, normalization, shape=(2, 2))
    policy.save(tmp_path / "policy.json")
    again = load_policy(tmp_path / "policy.json")
    assert again.architecture == policy.architecture
    assert again.theta.tobytes() == policy.theta.tobytes()
    assert again.observation_shape == (2, 2)
    assert again.to_plain() == policy.to_plain()
    for observation in np.random.default_rng(1).standard_normal((20, 2, 2)):
        first, second = policy(observation), again(observation)
        assert type(first) is type(second)
        assert np.asarray(first).tobytes() == np.asarray(second).tobytes()


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


WHOLE = damaged()
FOREIGN = [
    (b"[" * 100_000, "not readable as JSON"),
    (b'{"theta": [1.0]}', "not a policy of gibo"),
    (damaged(version=2), "written by a newer gibo: its format is version 2, this gibo reads 1; upgrade gibo"),
    (damaged(theta=...), "damaged: theta is missing"),
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
