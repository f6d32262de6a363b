"""Policy search as a run: a normalisation that is learnt between the iterations, journals, workers."""

import multiprocessing
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from gibo import InputError, Journal, QueryError, Settings, resume
from gibo.optimizers.gibo import GIBO
from gibo.policies import Affine, Linear, Normalization, Statistics, load_policy, reexpress
from gibo.policies.environment import rollout
from gibo.training.training import StateNormalizer, Training, last_episode, read_trial, train

PENDULUM = Training(
    "Pendulum-v1", policy="affine", normalize_states=True, max_steps=30, options={"settings": Settings(M=3)}
)


def recorded(folder):
    with Journal.read(folder) as journal:
        return sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)


def records(folder):
    return [(e.x.tolist(), e.value, e.outcome.info) for e in recorded(folder)]


def test_a_trial_in_pieces_and_with_workers_is_the_same(tmp_path):
    whole = train(PENDULUM, tmp_path / "whole", budget=22, seed=4)
    for budget in (3, 10, 11, 22):
        pieces = train(PENDULUM, tmp_path / "pieces", budget=budget, seed=4)
    workers = train(PENDULUM, tmp_path / "workers", budget=22, seed=4, workers=2)
    assert records(tmp_path / "whole") == records(tmp_path / "pieces") == records(tmp_path / "workers")
    for other in (pieces, workers):
        assert other.x.tolist() == whole.x.tolist()
        assert other.history.x.tolist() == whole.history.x.tolist()


def test_a_killed_trial_goes_on(tmp_path):
    train(PENDULUM, tmp_path / "whole", budget=22, seed=4)
    process = multiprocessing.get_context("fork").Process(target=killed_in_the_middle, args=(tmp_path / "killed",))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(records(tmp_path / "killed")) == 13
    train(PENDULUM, tmp_path / "killed", budget=22, seed=4)
    assert records(tmp_path / "killed") == records(tmp_path / "whole")


def killed_in_the_middle(folder):
    class Killer:
        def update(self, standing):
            if standing.spent == 13:
                os.kill(os.getpid(), signal.SIGKILL)

    train(PENDULUM, folder, budget=22, seed=4, progress=Killer())


def test_the_saved_policy_is_the_one_that_was_found(tmp_path):
    result = train(PENDULUM, tmp_path, budget=14)
    saved, trial = load_policy(tmp_path / "policy.json"), read_trial(tmp_path)
    assert saved.theta.tolist() == result.x.tolist() == trial.policy.theta.tolist()
    assert saved.normalization.mean.tolist() == trial.policy.normalization.mean.tolist()
    assert np.abs(saved.normalization.mean).max() > 0.0
    assert len(trial.returns) == 14
    observation = [0.1, 0.2, 0.3]
    assert saved(observation).tolist() == trial.policy(observation).tolist()


@pytest.mark.parametrize(
    ("training", "budget"),
    [
        (PENDULUM, 11),  # in the middle of an iteration
        (PENDULUM, 13),  # after its end
        (replace(PENDULUM, action_noise=0.5), 6),
        (Training("CartPole-v1", "linear", "ars", max_steps=20), 5),  # has no episodes of iterates
    ],
)
def test_the_last_episode_is_the_one_that_was_recorded(tmp_path, training, budget):
    train(training, tmp_path, budget=budget)
    last = last_episode(tmp_path)
    kinds = [e.kind for e in recorded(tmp_path)]
    assert last.evaluation.id == (len(kinds) - 1 - kinds[::-1].index("iterate") if "iterate" in kinds else budget - 1)
    with training.task() as task:
        again = rollout(task.make(), last.policy, seed=last.seed, max_steps=training.max_steps)
    assert again.value == last.evaluation.outcome.info["return"]


@pytest.mark.parametrize("moves", [False, True])
def test_a_point_keeps_its_behaviour_when_the_normalisation_changes(moves):
    architecture = Affine(2, 1)
    old, new = Normalization([0.0, 0.0], [1.0, 1.0]), Normalization([0.5, -1.0], [2.0, 0.3])
    opt = GIBO([0.1, -0.2, 0.3], seed=1, settings=Settings(M=2))
    for query in opt.ask():
        opt.tell(query, float(query.x[0]), gradient=[1.0, 2.0, 3.0], gradient_noise=0.1)
    before, iterate = opt.evaluations, opt.iterate
    transform = reexpress(architecture, old, new)
    opt.reparametrize(transform, move_iterate=moves)
    state = np.array([0.7, 0.4])
    for was, now in zip(before, opt.evaluations, strict=True):
        assert now.value == was.value
        W, b = was.x[:2], was.x[2]
        V, c = now.x[:2], now.x[2]
        assert V @ new(state) + c == pytest.approx(W @ old(state) + b, rel=1e-12)
        # The same change of the value along the same change of the behaviour.
        change = np.array([0.3, -0.1, 0.2])
        assert now.gradient @ transform.parameters(change) == pytest.approx(was.gradient @ change)
        T = transform.parameters(np.eye(transform.d)).T
        covariance = np.linalg.inv(T).T @ np.diag(was.gradient_noise) @ np.linalg.inv(T)
        np.testing.assert_allclose(now.gradient_noise, np.diag(covariance), rtol=1e-12)
    expected = transform.parameters(iterate) if moves else iterate
    np.testing.assert_allclose(opt.iterate, expected)
    opt.ask()
    with pytest.raises(QueryError, match="between iterations only"):
        opt.reparametrize(transform)


@pytest.mark.parametrize(("reexpressed", "moves"), [("data", False), ("iterate", True), ("exact", False)])
def test_what_is_reexpressed(reexpressed, moves):
    infos = [{"statistics": Statistics.of([[0.0, 1.0, 2.0], [2.0, 2.0, 9.0]]).to_plain()}, {}]
    assert StateNormalizer(Affine(3, 1), reexpressed).learn(infos).moves_iterate is moves
    assert StateNormalizer(Affine(3, 1), "off").learn(infos) is None
    with pytest.raises(InputError, match=r"reexpressed: expected one of .*'exact'.*, got 'all'"):
        StateNormalizer(Affine(3, 1), "all")


@pytest.mark.parametrize(("net", "keeps"), [(Linear(3, 2), True), (Affine(3, 2), False)])
def test_what_was_told_keeps_its_behaviour_exactly_once_something_is_learnt(net, keeps):
    rng = np.random.default_rng(3)
    normalizer, theta, state = StateNormalizer(net), rng.standard_normal(net.d), rng.standard_normal(3)

    def learn():
        states = 5.0 + 2.0 * rng.standard_normal((9, 3))
        return normalizer.learn([{"statistics": Statistics.of(states).to_plain()}]).transform

    def acts(theta):
        ((W, b),) = net.layers(theta)
        return W @ normalizer.normalization(state) + (0.0 if b is None else b)

    normalizer.learn([{}])  # no episode ended well
    np.testing.assert_array_equal(normalizer.normalization.mean, np.zeros(3))
    learn()
    first, before = normalizer.normalization.mean, acts(theta)
    np.testing.assert_array_equal(first, normalizer.statistics.mean)
    for _ in range(3):
        theta = learn().parameters(theta)
        np.testing.assert_allclose(acts(theta), before, rtol=0.0, atol=1e-9)
    np.testing.assert_array_equal(normalizer.normalization.mean, first if keeps else normalizer.statistics.mean)
    assert (normalizer.statistics.mean != first).all()
    np.testing.assert_array_equal(normalizer.normalization.std, normalizer.statistics.std)


@pytest.mark.parametrize("begun", ["data", "off"])
def test_a_trial_goes_on_with_what_it_began_with(tmp_path, begun):
    linear = replace(PENDULUM, policy="linear", normalize_states=True)
    assert linear.chosen_reexpression == "exact"
    train(replace(linear, reexpressed=begun), tmp_path / "a", budget=6)
    train(replace(linear, reexpressed=begun), tmp_path / "b", budget=12)
    train(linear, tmp_path / "a", budget=12)
    assert records(tmp_path / "a") == records(tmp_path / "b")
    with pytest.raises(InputError, match="holds another run: reexpressed was"):
        train(replace(linear, reexpressed="iterate"), tmp_path / "a", budget=14)


def test_a_training_survives_being_written_down_and_is_checked_before_it_begins(tmp_path):
    noisy = replace(PENDULUM, action_noise=0.5, reexpressed="exact")
    assert Training.from_plain(noisy.to_plain()) == noisy
    older = {name: part for name, part in noisy.to_plain().items() if name != "action_noise"}
    assert Training.from_plain(older) == replace(noisy, action_noise=0.0)
    with pytest.raises(InputError, match="training: expected the result of to_plain"):
        Training.from_plain({"environment": "x"})
    with pytest.raises(InputError, match=r"method: expected one of 'ars', 'cma-es', 'gibo', .*got 'sgd'"):
        train(Training("Pendulum-v1", method="sgd"), tmp_path, budget=1)
    with pytest.raises(InputError, match="episodes: expected a whole number of at least 1"):
        train(replace(PENDULUM, episodes=0), tmp_path, budget=1)
    assert not any(tmp_path.iterdir())


def test_other_trainings_and_plain_resuming_are_refused(tmp_path):
    train(PENDULUM, tmp_path, budget=4)
    with pytest.raises(InputError, match="a run of gibo train"):
        resume(tmp_path, lambda x: 1.0)
    with pytest.raises(InputError, match=r"holds another run: action_noise was 0.0, now 0.5"):
        train(replace(PENDULUM, action_noise=0.5), tmp_path, budget=8)
    other = Training(**{**PENDULUM.__dict__, "reward_shift": 1.0})
    with pytest.raises(InputError, match=r"holds another run: reward_shift was 0.0, now 1.0"):
        train(other, tmp_path, budget=8)
