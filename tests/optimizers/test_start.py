"""What a run believes of its start: what the first values' model does, the present one, or what was told of it."""

import math

import numpy as np
import pytest

import gibo
from gibo.optimizers.surrogate import Surrogate
from gibo_studies.rivals.min_ucb import MinUCB

# A model that cannot bend: far too long lengthscales, and noise as large as the values' spread.
STIFF = {"lengthscale": 50.0, "variance": 0.1, "noise": 1.0, "fit": "never", "warp": "none", "scale_search": False}


def crashing(x, rng, core=-100.0, around=-600.0):
    """A lander: −100 where it does nothing, and a crash for all that is around it, until it is some way off."""
    value = core if np.linalg.norm(x) < 0.05 else around if np.linalg.norm(x) < 30.0 else core
    return value + 5.0 * rng.standard_normal()


def run(optimizer, objective, evaluations, seed=0):
    rng = np.random.default_rng(seed)
    while len(optimizer.log.evaluations) < evaluations:
        for query in optimizer.ask():
            value = objective(query.x, rng)
            optimizer.tell(query, value, failed=value is None)
    return optimizer


def of_the_first_values(optimizer):
    first = optimizer.log.valued[: optimizer.settings.beginning]
    return Surrogate.initial(optimizer.settings, optimizer.scale).fit(first).given(first).at(optimizer.x0)


def at_the_start(optimizer):
    return [e.value for e in optimizer.log.valued if np.array_equal(e.x, optimizer.x0)]


@pytest.fixture
def landers():
    """That told −100 of their start, and −600 of all that they asked around it; later ones are asked far away."""
    opt = gibo.GIBO(np.zeros(4), scale=0.1, seed=0, settings=gibo.Settings.default(N_m=20, **STIFF))
    run(opt, crashing, 20)
    opt.tell(opt.x0, -106.0)  # once more
    opt._iterate = np.full(4, 100.0)
    return run(opt, crashing, 60)


def test_what_was_told_of_the_start_is_believed_where_the_first_values_model_is_far_below_it(landers):
    assert of_the_first_values(landers).interval[1] < -300.0
    start, told = landers.at_start(), at_the_start(landers)
    assert start.value == pytest.approx(np.mean(told))
    assert np.array_equal(start.x, landers.x0)
    assert start.interval[0] < -100.0 < start.interval[1]


def test_its_interval_is_as_wide_as_the_noise_that_the_present_model_sees(landers):
    model, (low, high) = landers._model(), landers.at_start().interval
    sd = model.units.spread * math.sqrt(model.gp.noise / len(at_the_start(landers)))
    assert high - low == pytest.approx(2 * 1.6448536269514722 * sd)
    assert (low + high) / 2 == pytest.approx(landers.at_start().value)


def test_values_of_the_start_far_below_its_model_are_believed_too():
    opt = gibo.GIBO(np.zeros(4), scale=0.1, seed=0, settings=gibo.Settings.default(N_m=20, **STIFF))
    run(opt, lambda x, rng: -crashing(x, rng), 20)
    opt._iterate = np.full(4, 100.0)
    run(opt, lambda x, rng: -crashing(x, rng), 60)
    assert of_the_first_values(opt).interval[0] > 300.0
    assert opt.at_start().value == pytest.approx(np.mean(at_the_start(opt)))


@pytest.mark.parametrize("method", [gibo.GIBO, MinUCB])
def test_otherwise_it_is_the_first_values_model(method):
    opt = run(method(np.zeros(4), scale=0.3, seed=1), lambda x, rng: -((x - 1) ** 2).sum() + 0.1 * rng.normal(), 40)
    believed, expected = opt.at_start(), of_the_first_values(opt)
    assert believed.value == pytest.approx(expected.value)
    assert believed.interval == pytest.approx(expected.interval)
    assert believed.value != pytest.approx(np.mean(at_the_start(opt)), abs=1e-9)


def test_nothing_is_believed_before_there_is_a_value():
    assert gibo.GIBO(np.zeros(3)).at_start() is None


def test_a_start_that_has_no_value_is_judged_by_what_is_around_it():
    opt = run(
        gibo.GIBO(np.zeros(3), scale=0.3, seed=0),
        lambda x, rng: None if not x.any() else -float(((x - 1) ** 2).sum()),
        20,
    )
    assert not at_the_start(opt)
    assert opt.at_start().value == pytest.approx(of_the_first_values(opt).value)


def peak(x, rng):
    """A start from which nearly all ways lead down, steeply at first."""
    return -12.0 - 15.0 * np.tanh(np.linalg.norm(x[1:])) + 0.5 * x[0] + 0.5 * rng.standard_normal()


def bowl(x, rng):
    return -float(((x - 1.0) ** 2).sum()) + rng.standard_normal()


def both_models(objective, d, evaluations, seed, **changes):
    """What the run believes of its start; what the first values' model does, and the present one; what was told."""
    x0 = np.full(d, 0.7)
    opt = gibo.GIBO(x0, scale=0.3, seed=seed, settings=gibo.Settings.default(M_first=d, **changes))
    run(opt, lambda x, rng: objective(x - x0, rng), evaluations)
    return opt.at_start(), of_the_first_values(opt), opt._model().at(opt.x0), np.mean(at_the_start(opt))


def test_that_model_is_believed_to_which_what_was_told_of_the_start_is_nearer():
    by_the_present = []
    for seed in range(10):
        objective = peak if seed < 3 else bowl
        believed, first, present, told = both_models(objective, 8, 120, seed, N_m=40)
        by_the_present.append(abs(present.value - told) < abs(first.value - told))
        expected = present if by_the_present[-1] else first
        assert believed.value == pytest.approx(expected.value)
        assert believed.interval == pytest.approx(expected.interval)
    assert any(by_the_present)
    assert not all(by_the_present)


def test_the_present_model_is_not_believed_where_it_has_no_value_of_the_start_any_more():
    nearer = []
    for seed in range(8):
        believed, first, present, told = both_models(peak, 8, 120, seed, N_m=40, remember=False)
        nearer.append(abs(present.value - told) < abs(first.value - told))
        assert believed.value == pytest.approx(first.value)
    assert any(nearer)
