"""Interquartile means, probabilities of improvement and paired differences, against brute force."""

import itertools

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean

from gibo_studies.leaderboard.comparison import interquartile_mean, paired_difference, probability_of_improvement


def scores(seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return {task: rng.standard_normal(n).round(1) + shift for task, n in (("a", 7), ("b", 12), ("c", 6))}


def test_the_interquartile_mean_is_that_of_all_runs():
    found = interquartile_mean(scores(0))
    assert found.mean == pytest.approx(trim_mean(np.concatenate(list(scores(0).values())), 0.25))
    assert found.low < found.mean < found.high


def test_the_probability_of_improvement_counts_pairs():
    a, b = scores(1, 0.5), scores(2)
    pairs = [[(x > y) + 0.5 * (x == y) for x, y in itertools.product(a[task], b[task])] for task in a]
    found = probability_of_improvement(a, b)
    assert found.mean == pytest.approx(np.mean([np.mean(each) for each in pairs]))
    by_test = np.mean([mannwhitneyu(a[task], b[task]).statistic / (len(a[task]) * len(b[task])) for task in a])
    assert found.mean == pytest.approx(by_test)
    assert probability_of_improvement(b, a).mean == pytest.approx(1.0 - found.mean)


def test_a_paired_difference_is_over_what_both_ran():
    a = {("s", 0): 1.0, ("s", 1): 3.0, ("t", 0): 5.0, ("t", 7): 100.0}
    b = {("s", 0): 0.0, ("s", 1): 0.0, ("t", 0): 1.0, ("u", 0): 9.0}
    found = paired_difference(a, b)
    assert found.mean == (2.0 + 4.0) / 2
    assert (found.low, found.high) == (2.0, 4.0)
    rng = np.random.default_rng(6)
    a = {(task, trial): rng.standard_normal() for task in "abcdefghijkl" for trial in range(3)}
    means = [np.mean([a[task, trial] for trial in range(3)]) for task in "abcdefghijkl"]
    found = paired_difference(a, dict.fromkeys(a, 0.0))
    assert_about_equal(found, bootstrap(lambda rng: np.mean(drawn(means, rng))))


def test_with_one_trial_per_task_tasks_are_drawn():
    """A bootstrap within tasks of one trial each would have no width."""
    a = {str(i): np.array([float(i % 2)]) for i in range(40)}
    b = {str(i): np.array([0.5]) for i in range(40)}
    for found in (interquartile_mean(a), probability_of_improvement(a, b)):
        assert found.mean == 0.5
        assert found.low < 0.45 < 0.55 < found.high


# -- slow twins: one draw after the other ------------------------------------------------------------------------------


def bootstrap(statistic, samples=2000):
    """The interval of a statistic that draws from a generator."""
    rng = np.random.default_rng(5)
    return np.quantile([statistic(rng) for _ in range(samples)], [0.025, 0.975])


def drawn(values, rng):
    return [values[rng.integers(len(values))] for _ in values]


def assert_about_equal(found, interval):
    """Ends of two bootstraps with other draws differ by a tenth of the width at most."""
    assert [found.low, found.high] == pytest.approx(interval, abs=0.1 * (found.high - found.low))


def test_the_interval_of_an_interquartile_mean_draws_trials_within_tasks():
    a = scores(3, 0.2) | {"far": np.full(4, 3.0)}  # a task without spread stays as it is

    def one(rng):
        values = sorted(value for each in a.values() for value in drawn(each, rng))
        cut = int(0.25 * len(values))
        return np.mean(values[cut : len(values) - cut])

    assert_about_equal(interquartile_mean(a), bootstrap(one))


def test_the_interval_of_a_probability_draws_the_trials_of_both():
    a, b = scores(4, 0.3), scores(5)

    def one(rng):
        by_task = []
        for task in a:
            pairs = itertools.product(drawn(a[task], rng), drawn(b[task], rng))
            by_task.append(np.mean([(x > y) + 0.5 * (x == y) for x, y in pairs]))
        return np.mean(by_task)

    assert_about_equal(probability_of_improvement(a, b), bootstrap(one, samples=500))
