import json
import multiprocessing
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import threadpoolctl
from gymnasium import spaces
from tiny_environments import Broken, Drift, Scripted

import gibo
from gibo import InputError
from gibo.policies import Affine, Normalization, Statistics, Task, rollout


def facts(outcome):
    """All of an outcome, to be compared bit for bit."""
    return json.dumps({"value": outcome.value, "info": outcome.info}, allow_nan=False, sort_keys=True)


def some_thetas(task, n=4):
    return np.random.default_rng(5).standard_normal((n, task.d))


def test_the_value_is_the_mean_shaped_return_and_info_says_the_rest():
    settings = {"reward_shift": 0.25, "reward_scale": 2.0}
    with Task(Drift, episodes=3, normalize_states=True, **settings) as task:
        theta = some_thetas(task)[0]
        outcome = task(theta, seed=7)
        seeds = [int(np.random.SeedSequence((7, e)).generate_state(1)[0]) for e in range(3)]
        episodes = [rollout(Drift(), task.bind(theta), seed=s, collect=True, **settings) for s in seeds]
    assert outcome.value == pytest.approx(np.mean([e.shaped for e in episodes]), rel=1e-14)
    assert outcome.gradient is None
    info = outcome.info
    assert info["return"] == pytest.approx(np.mean([e.value for e in episodes]), rel=1e-14)
    assert info["steps"] == sum(e.steps for e in episodes)
    assert info["terminated"] == sum(e.terminated for e in episodes)
    statistics = Statistics.from_plain(info["statistics"])
    merged = episodes[0].statistics.merge(episodes[1].statistics).merge(episodes[2].statistics)
    assert statistics.to_plain() == merged.to_plain()
    assert statistics.count == info["steps"]
    facts(outcome)


def test_every_episode_has_a_seed_of_its_own():
    environment = Drift()
    task = Task(environment, episodes=3)
    task(task.x0(), seed=0)
    task(task.x0(), seed=1)
    task.evaluate(task.x0(), 3, seed=0)
    task.evaluate(task.x0(), 3, seed=1)
    assert len(environment.seeds) == 12
    assert len(set(environment.seeds)) == 12
    expected = [int(np.random.SeedSequence((0, e, 1)).generate_state(1)[0]) for e in range(3)]
    assert environment.seeds[6:9] == expected
    assert all(type(seed) is int for seed in environment.seeds)


def test_a_normalization_is_used():
    normalization = Normalization([1.0, -1.0], [0.5, 2.0])
    with Task(Drift, normalize_states=True) as task:
        theta = some_thetas(task)[0]
        plain, normalised = task(theta, seed=3), task(theta, seed=3, normalization=normalization)
        moved = gibo.policies.reexpress(task.architecture, Normalization.identity(2), normalization).parameters(theta)
        same = task(moved, seed=3, normalization=normalization)
    assert normalised.value != plain.value
    assert same.value == pytest.approx(plain.value, rel=1e-5)  # the actions are float32
    # Statistics are of the states as they come, not as the policy sees them.
    np.testing.assert_allclose(same.info["statistics"]["mean"], plain.info["statistics"]["mean"], rtol=1e-4)


@pytest.mark.parametrize(("high", "sd"), [(1.0, 0.5), (3.0, 1.5), (np.inf, 0.5)])
def test_noise_on_actions_is_a_share_of_half_their_range_while_searching_alone(high, sd):
    made = Drift(actions=spaces.Box(-high, high, (2,), np.float64), length=4000, noise=0.0)
    with Task(made, "linear", action_noise=0.5) as task:
        value = task(np.zeros(4), seed=3).value
        noisy = np.array(made.taken)
        assert task(np.zeros(4), seed=3).value == value != task(np.zeros(4), seed=4).value
        task.evaluate(np.zeros(4), 1, seed=3)
        assert not np.any(made.taken)
    assert np.abs(noisy).max() <= high
    rng = np.random.default_rng(np.random.SeedSequence((3, 0, 2)))
    drawn = np.array([sd * rng.standard_normal(2) for _ in noisy])
    np.testing.assert_array_equal(noisy, np.clip(drawn, -high, high))


SHORT = {"length": 4, "noise": 0.0}


@pytest.mark.parametrize(
    ("source", "policy", "options"),
    [("CartPole-v1", "affine", {}), ("Hopper-v5", "mlp:8", {}), (Drift, "mlp:4", {"environment_options": SHORT})],
)
def test_the_same_bit_for_bit_again_in_a_fresh_task_in_threads_and_in_another_process(source, policy, options):
    settings = {"policy": policy, "normalize_states": True, "episodes": 2, "max_steps": 150, **options}
    with Task(source, **settings) as task, Task(source, **settings) as fresh, ThreadPoolExecutor(4) as threads:
        thetas = some_thetas(task, 4)
        first = [facts(task(theta, seed=i)) for i, theta in enumerate(thetas)]
        assert len(set(first)) == 4
        assert source != Drift or (json.loads(first[0])["info"]["steps"] <= 8 < task.make(length=9).length)
        for i, theta in reversed(list(enumerate(thetas))):  # in another order, after other episodes
            assert facts(task(theta, seed=i)) == first[i]
        assert facts(fresh(thetas[2], seed=2)) == first[2]
        at_once = threads.map(lambda i: facts(task(thetas[i % 4], seed=i % 4)), range(16))
        assert list(at_once) == 4 * first
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            assert pool.submit(outcome_elsewhere, task, thetas[1], 1).result() == first[1]


def outcome_elsewhere(task, theta, seed):
    with task:
        return facts(task(theta, seed=seed))


def send(task, theta, queue):
    try:
        queue.put(facts(task(theta)))
    except InputError as error:
        queue.put(str(error))


@pytest.mark.parametrize("made", [Drift, Drift()], ids=["class", "environment"])
def test_after_a_fork_an_environment_stays_with_the_parent(made):
    task, context = Task(made), multiprocessing.get_context("fork")
    before, queue = facts(task(task.x0())), context.SimpleQueue()
    child = context.Process(target=send, args=(task, task.x0(), queue))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside BLAS's threads
        child.start()
    answer = queue.get()
    child.join()
    assert answer == before if made is Drift else "given an environment stays in its process" in answer
    assert facts(task(task.x0())) == before


class Nested(Drift):
    """Evaluates its task in the middle of an episode, as another thread could."""

    task = None
    raised = None

    def step(self, action):
        if self.task is not None and self.raised is None:
            try:
                self.raised = False
                self.task(self.task.x0())
            except InputError as error:
                self.raised = str(error)
        return super().step(action)


def test_one_environment_cannot_run_two_episodes_at_once():
    environment = Nested()
    task = Task(environment)
    environment.task = task
    task(task.x0())
    assert "this one is in use by another thread" in environment.raised
    task(task.x0())  # it is free again


def test_one_environment_is_made_and_used_again_until_it_is_closed():
    made = []
    task = Task(lambda: made.append(Drift()) or made[-1])
    for seed in range(3):
        task(task.x0(), seed=seed)
    task.evaluate(task.x0(), 2)
    assert [each.closed for each in made] == [0]
    task.close()
    task.close()
    first = facts(task(task.x0()))  # it can be used after that
    with task:
        assert facts(task(task.x0())) == first
    assert [each.closed for each in made] == [1, 1]


@pytest.mark.parametrize("given", [False, True])
def test_an_environment_that_raises_is_closed_and_made_anew_unless_it_was_given(given):
    Broken.made = 0
    kept = []
    task = Task(Broken() if given else lambda: kept.append(Broken()) or kept[-1])
    with task:
        for _ in range(1 + given):  # it is still there
            with pytest.raises(RuntimeError, match="the cable came off"):
                task(task.x0())
        if not given:
            assert kept[0].closed == 1
            assert task(task.x0()).value == 7.0
    assert [each.closed for each in kept] == ([] if given else [1, 1])


def test_a_given_environment_is_not_sent_elsewhere():
    with pytest.raises(InputError, match="stays in its process; give it an id or a function"):
        pickle.dumps(Task(Drift()))
    with pytest.raises(InputError, match="cannot create another"):
        Task(Drift()).make()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"policy": Affine(3, 1)}, "this environment needs 1 inputs and 1 outputs, Affine has 3 and 1"),
        ({"action_noise": 0.1}, "action_noise: only for continuous actions"),
        ({"environment": Drift(), "environment_options": {"length": 3}}, "this environment already exists"),
    ],
)
def test_wrong_settings_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        Task(**{"environment": Scripted, **arguments})


def test_wide_layers_use_one_thread():
    threads = set()

    class Threads(Drift):
        def step(self, action):
            pools = threadpoolctl.threadpool_info()
            threads.update(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
            return super().step(action)

    with threadpoolctl.threadpool_limits(2, user_api="blas"), Task(lambda: Threads((70,)), policy="mlp:70") as task:
        task(0.1 * some_thetas(task)[0])
    assert threads == {1}
