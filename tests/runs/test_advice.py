"""What a run says at its end, and what to try next."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import gibo
from gibo.outcome import Best
from gibo.runs.advice import Facts, remarks
from gibo.runs.spec import Naming
from gibo.runs.verdict import lower_by_chance, verdict


def hill(noise: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    return lambda x: 1.0 - float(((x - 0.3) ** 2).sum()) + noise * float(rng.standard_normal())


def codes(result: gibo.Result) -> list[str]:
    return [advice.code for advice in result.advice]


def facts(**changes) -> Facts:
    usual = {
        "minimize": False,
        "naming": Naming(["gain", "delay"]),
        "scale": [1.0, 1.0],
        "lower": [-np.inf, -np.inf],
        "upper": [np.inf, np.inf],
        "count": 40,
        "failures": 0,
        "recent": [None] * 40,
        "alike": None,
        "ascents": [0.9] * 10,
        "steps": [[1.0, 0.0], [0.0, 1.0], [-0.7, 0.0], [0.0, -0.7]] * 3,
        "lengthscale": [2.0, 2.0],
        "expected": 2.0,
        "signal": 5.0,
        "recommended": [0.0, 0.0],
        "values": [float(i) for i in range(40)],
        "batch": 4,
        "iterations": 10,
    }
    return Facts(**{**usual, **changes})


def test_a_run_that_improved_says_by_how_much_and_from_where():
    result = gibo.maximize(hill(0.05), np.zeros(6), budget=100, scale=0.1)
    assert codes(result) == ["improved"]
    assert result.start.interval[0] < 0.46 < result.start.interval[1]  # the truth there, where noise is 0.05
    assert f"{result.value - result.start.value:.3g}" in result.advice[0].text
    assert result.advice[0].text in str(result)
    with pytest.raises(FrozenInstanceError):
        result.advice[0].text = "fine"


@pytest.mark.parametrize(
    ("scale", "method", "code"),
    [
        (0.001, gibo.Settings(), "scale_small"),
        (3.0, gibo.Settings.paper(), "scale_large"),
        (3.0, gibo.Settings(), None),  # the lengthscales are fitted to it
        (0.1, gibo.Settings(), None),
    ],
)
def test_a_scale_that_is_far_off_is_noticed(scale, method, code):
    result = gibo.maximize(hill(0.002), np.zeros(4), budget=80, scale=scale, settings=method)
    assert [c for c in codes(result) if c.startswith("scale")] == ([] if code is None else [code])


def test_a_search_with_a_good_scale_hears_nothing_on_its_way_nor_when_it_has_arrived():
    """It marches at first, as every search does; and on a hill it fits longer lengthscales the longer it is there."""
    heard, rng = set(), np.random.default_rng(1)

    def far_hill(x):
        return -float(((x - 1.0) ** 2).sum()) + 0.03 * float(rng.standard_normal())

    gibo.maximize(far_hill, np.zeros(12), scale=0.3, budget=90, callback=lambda result: heard.update(codes(result)))
    assert not {code for code in heard if code.startswith("scale")}


def test_values_that_are_all_alike_end_with_that_and_a_callback_hears_no_verdict():
    heard = set()
    result = gibo.maximize(
        lambda x: -200.0, np.zeros(4), budget=30, callback=lambda so_far: heard.update(codes(so_far))
    )
    assert heard == {"all_alike"}
    assert codes(result) == ["all_alike"]
    assert "all 30 values are -200" in result.advice[0].text


def test_a_budget_below_one_iteration():
    result = gibo.maximize(hill(0.1), np.zeros(10), budget=3)
    assert codes(result) == ["budget_small"]
    assert "3 of the 11" in result.advice[0].text


def test_an_optimiser_without_a_model_is_judged_by_the_values_of_the_start():
    x0, objective = np.zeros(4), hill(0.02)
    result = gibo.run(gibo.ARS(x0, scale=0.1), objective, budget=120)
    assert result.start is None
    assert codes(result)[0] == "improved"
    assert "at the start" in result.advice[0].text
    unknown = verdict(facts(at_start=[]), None, None)
    assert unknown.code == "start_unknown"


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize(("gap", "code"), [(2.2, "improved"), (1.78, "no_improvement"), (-2.2, "no_improvement")])
def test_without_a_model_the_rise_must_exceed_the_doubt_of_both(gap, code, minimize):
    """The deviation of one value of the start is s, that of a mean of four is s/2: 1.645 √(1 + ¼) s = 1.84 s."""
    last = np.array([-1.0, 1.0, -1.0, 1.0])
    rise = (-1.0 if minimize else 1.0) * gap * last.std(ddof=1)
    values = [*range(36), *(rise + last)]
    assert verdict(facts(minimize=minimize, values=values, at_start=[0.0]), None, None).code == code


def test_where_the_start_is_recommended_the_verdict_says_so():
    """However the values have risen: the two beliefs are of the same point, seen early and late."""
    start, end = Best(np.zeros(2), 1.0, (0.9, 1.1)), Best(np.zeros(2), 3.0, (2.9, 3.1))
    said = verdict(facts(), start, end)
    assert said.code == "no_improvement"
    assert "the start is recommended, 3 (2.9 to 3.1); nothing was surely better. Try a" in said.text


def test_one_relapse_does_not_hide_a_climb():
    """Values like CartPole's, at the highest score from the sixth episode on but for a fall now and then."""
    start, end = Best(np.zeros(2), 20.0, (-400.0, 380.0)), Best(np.ones(2), 500.0, (499.0, 501.0))
    climb = [9.0, 10.0, 40.0, 35.0, 60.0, *[500.0, 480.0, 500.0, 69.0, 500.0] * 5]
    assert verdict(facts(values=climb), start, end).code == "improved"
    assert verdict(facts(values=[-v for v in climb], minimize=True), flipped(start), flipped(end)).code == "improved"
    wide = Best(np.ones(2), 500.0, (100.0, 900.0))
    assert verdict(facts(values=sorted(climb)), start, wide).code == "improved"


def flipped(best):
    return Best(best.x, -best.value, (-best.interval[1], -best.interval[0]))


def test_rules_by_themselves():
    assert remarks(facts()) == []
    assert [r.code for r in remarks(facts(ascents=[0.5] * 5))] == ["no_ascent"]
    assert [r.code for r in remarks(facts(lengthscale=[20.0, 30.0]))] == ["scale_small"]
    assert remarks(facts(lengthscale=[20.0, 30.0], signal=1.0)) == []  # a lengthscale that was fitted to noise
    assert remarks(facts(lengthscale=[20.0, 30.0], signal=100.0)) == []  # long, but the value does change in a scale
    assert [r.code for r in remarks(facts(steps=[[1.0, 0.1]] * 8))] == ["scale_small"]
    assert remarks(facts(steps=[[0.8, 0.1]] * 8)) == []  # on its way
    assert [r.code for r in remarks(facts(steps=[[1.0, 0.1]] * 8, signal=0.9))] == ["no_ascent"]
    assert remarks(facts(signal=0.9, count=8)) == []  # of so few values a model knows nothing
    assert [r.code for r in remarks(facts(steps=[[1.0, 0.0], [-1.0, 0.0]] * 8))] == ["scale_large"]
    at_bound = remarks(facts(upper=[np.inf, 0.0]))
    assert [r.code for r in at_bound] == ["at_bound"]
    assert "delay (its upper bound 0)" in at_bound[0].text
    assert "Try 20 times it" in remarks(facts(lengthscale=[40.0, 60.0]))[0].text
    assert remarks(facts(steps=[[1.0, 0.1]] * 8 + [[0.01, 0.0]] * 4)) == []  # it has arrived
    # A single step that leads from nothing to the highest score, as on CartPole, is no march.
    jump = [[0.1, 0.0], [3.0, 1.0], [0.1, 0.1], [-0.1, 0.2], [0.3, -0.1], [-0.2, -0.2], [0.2, 0.3], [-0.3, 0.2]]
    assert remarks(facts(steps=jump)) == []
    (failing,) = remarks(facts(recent=[None] * 30 + ["the belt slipped", None] * 10, failures=25))
    assert (failing.code, failing.text) == ("most_failed", "25 of 40 evaluations failed. Last reason: the belt slipped")


def believed(start, end):
    """What a model believes of the start and of another point."""
    points = np.zeros(2), np.ones(2)
    return [Best(x, value, (value - 0.1, value + 0.1)) for x, value in zip(points, (start, end), strict=True)]


def test_what_the_start_is_worth_now_is_the_witness_and_not_what_it_was():
    """All values fall, as the machine wears; those of the start fall lower still."""
    falling = [10.0 - 0.2 * i for i in range(27)]
    last = [1.0, -0.1] * 6 + [1.0]  # on the average clearly above the start now; about half are below it
    baseline = [9.0, 8.0, 7.0, 0.0, 0.0, 0.01]
    of_start = {"baseline": baseline, "at_start": [10.0, *baseline]}
    by_mean = facts(values=[*falling, *last], **of_start)
    assert verdict(by_mean, *believed(0.0, 1.0)).code == "improved"
    assert verdict(facts(values=[*falling, *last]), *believed(0.0, 1.0)).code == "no_improvement"
    better = [0.1] * 12 + [-50.0]  # nine of ten are better than the start now
    by_share = facts(values=[*falling, *better], **of_start)
    assert verdict(by_share, *believed(0.0, 1.0)).code == "improved"
    assert "at the start (evaluated again 6 times)" in verdict(by_share, *believed(0.0, 1.0)).text


def test_after_a_new_start_only_what_followed_is_a_witness():
    rising = [float(i) for i in range(40)]
    assert verdict(facts(values=rising), *believed(0.0, 30.0)).code == "improved"
    assert verdict(facts(values=rising, since=36), *believed(0.0, 30.0)).text.startswith("4 values: too few")


def test_iterates_that_rose_are_a_witness_also_where_queries_fall_the_lower_the_farther_they_go():
    start, end = Best(np.zeros(2), -5.0, (-5.2, -4.8)), Best(np.ones(2), 0.0, (-0.1, 0.1))
    values = [-5.0, -4.0] * 5 + [-1.0, -8.0] * 10
    risen = [-5.0, -1.6, -0.2, -0.01, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert verdict(facts(values=values, iterates=risen), start, end).code == "improved"
    assert verdict(facts(values=values, iterates=[-1.0, 1.0] * 5), start, end).code == "no_improvement"


few = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=12)


@settings(deadline=None)
@given(few, few)
def test_ranks_are_compared_as_mann_and_whitney_do(some, others):
    m, n = len(some), len(others)
    above = sum((a > b) + 0.5 * (a == b) for a in some for b in others)
    expected = ndtr((above - m * n / 2.0 + 0.5) / math.sqrt(m * n * (m + n + 1) / 12.0))
    assert lower_by_chance(some, others) == pytest.approx(expected)
