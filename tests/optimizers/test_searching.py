"""Finding the scale, warping values, steps to a confidence bound: the parts of `Settings.default`."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibo
from gibo.acquisition.confidence import LowerConfidenceBound
from gibo.optimizers.scale_search import (
    SHRINK,
    VARIES,
    WIDEN,
    Finding,
    by_chance,
    is_lower_far_away,
    look,
    shrunk,
    varies,
)
from gibo.optimizers.settings import Settings
from gibo.optimizers.surrogate import Surrogate, Units
from gibo.outcome import Evaluation, Outcome, Query

D = 4


def evaluated(X, y, kinds=None, iteration=1):
    kinds = kinds or ["query"] * len(y)
    return [
        Evaluation(Query(i, np.asarray(x), 0, kind, iteration), Outcome(float(v)))
        for i, (x, v, kind) in enumerate(zip(X, y, kinds, strict=True))
    ]


values = st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=30).filter(lambda y: np.std(y) > 1e-3)


@settings(deadline=None)
@given(values)
def test_every_warp_is_monotone_and_comes_back(y):
    y = np.sort(np.array(y))
    for units in Units.candidates(y):
        u = units.apply(y)
        assert (np.diff(u) >= -1e-9).all()
        assert abs(u.mean()) < 1e-6
        back = units.invert(u)
        np.testing.assert_allclose(back, y, rtol=1e-6, atol=1e-6 * np.abs(y).max())


@pytest.mark.parametrize("at", [-40.0, -3.0, 0.2, 5.0])
def test_the_slopes_are_derivatives(at):
    y = np.array([-50.0, -3.0, -1.0, 0.0, 0.5, 1.0, 2.0])
    for units in Units.candidates(y):
        h = 1e-6
        slope = (units.warped(np.array(at + h)) - units.warped(np.array(at - h))) / (2 * h)
        assert np.exp(units.log_slope(np.array(at))) == pytest.approx(slope, rel=1e-5)
        u = float(units.apply(np.array(at)))
        assert units.inverse_slope(u) == pytest.approx(units.spread / slope, rel=1e-4)


def test_a_heavy_bad_tail_is_squeezed_and_a_smooth_hill_is_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    smooth = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    surrogate = Surrogate.initial(Settings(warp="chosen", lengthscale=2.0).resolve(2), np.ones(2))
    assert np.allclose(surrogate.given(evaluated(X, smooth)).units.warped(smooth), smooth)
    cliff = np.where(X[:, 0] > 0.8, -1000.0 * (1 + rng.random(60)), 0.1 * smooth)
    assert surrogate.given(evaluated(X, cliff)).units.warped(cliff).min() > -500.0


@pytest.mark.parametrize("mean", ["estimated", 0.3])
def test_the_warp_that_is_chosen_makes_the_values_likeliest(mean):
    """One model for each warp, conditioned from scratch, gives the same choice and the same posterior."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(5, 40)), 3))
        y = X @ rng.normal(size=3) + rng.choice([0.1, 3.0]) * rng.standard_t(1.5 if seed % 2 else 30.0, len(X))
        surrogate = Surrogate.initial(Settings(warp="chosen", mean=mean).resolve(3), np.ones(3))
        models = [(units, surrogate.prior.condition(X, units.apply(y))) for units in Units.candidates(y)]
        densities = [
            gp.log_likelihood + float(units.log_slope(y).sum()) - len(y) * np.log(units.spread) for units, gp in models
        ]
        units, gp = models[next(i for i, found in enumerate(densities) if found > max(densities) - 1e-6)]
        model = surrogate.given(evaluated(X, y))
        assert model.units == units
        np.testing.assert_allclose(model.gp.predict(X + 0.1), gp.predict(X + 0.1), rtol=1e-9, atol=1e-12)


def test_beliefs_are_in_the_users_units_whatever_the_warp():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0.8, -1000.0, 10.0 + X[:, 1])
    model = Surrogate.initial(Settings(warp="chosen", noise=1e-4).resolve(2), np.ones(2)).given(evaluated(X, y))
    good = X[:, 0] < 0.3
    assert np.abs(model.mean(X[good]) - y[good]).max() < 1.0
    x, h = X[good][0], 1e-5
    slopes = [np.diff(model.mean(np.array([x - h * e, x + h * e])))[0] / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(model.jacobian(x).mean, slopes, rtol=1e-3, atol=1e-4)


def test_the_bound_is_mean_less_standard_deviation_with_its_gradient():
    rng = np.random.default_rng(1)
    gp = gibo.GaussianProcess(gibo.SquaredExponential(), noise=0.01).condition(
        rng.normal(size=(9, 2)), rng.normal(size=9)
    )
    bound, x = LowerConfidenceBound(gp, 2.0), np.array([0.3, -0.2])
    p = gp.predict(x)
    value, gradient = bound.value_and_gradient(x)
    assert value == pytest.approx(p.mean - 2.0 * np.sqrt(p.variance))
    h = 1e-6
    differences = [(bound(np.array([x + h * e]))[0] - bound(np.array([x - h * e]))[0]) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-6)


def model_of(X, y, **options):
    return Surrogate.initial(Settings(lengthscale=1.0, noise=0.01, **options).resolve(2), np.ones(2)).given(
        evaluated(X, y)
    )


def looked(model, *data, **found):
    """Where the fit changed nothing."""
    return look(model, model.gp.kernel.ell(2), *data, **found)


def test_an_iterate_above_its_queries_means_too_wide():
    X = [[0.0, 0.0], *np.random.default_rng(0).normal(size=(6, 2)) * 9.0]
    y = [1.0, -5.0, -6.0, -7.0, -8.0, -9.0, -6.5]
    batch = evaluated(X, y, ["iterate", *["query"] * 6])
    finding = looked(model_of(X, y), batch, batch, [], found=False)
    assert finding.factor == shrunk(y[:1], y[1:]) == pytest.approx(0.19, abs=0.02)
    assert finding.back is None
    fitted = model_of(X, y)
    assert look(fitted, 2.0 * fitted.gp.kernel.ell(2), batch, batch, [], False).factor == pytest.approx(
        2.0 * finding.factor
    )
    assert look(fitted, 9.0 * fitted.gp.kernel.ell(2), batch, batch, [], False).factor == 1.0  # the fit was enough
    near = evaluated(X, [1.0, 0.9, 0.0, -1.0, 0.8, -5.0, 0.7], ["iterate", *["query"] * 6])  # below, but not too far
    assert look(fitted, 0.1 * fitted.gp.kernel.ell(2), near, near, [], False).factor == 1.0  # longer by the fit
    assert looked(model_of(X, y), batch, batch, [], found=True).factor == 1.0
    few = batch[:4]  # three queries: a quarter of all iterates would be above them by chance, which is no hint to widen
    assert looked(model_of(X[:4], y[:4]), few, few, [], found=False).factor == 1.0


def test_how_often_chance_puts_the_iterate_on_top():
    """Against simulation: all values alike but for noise, an iterate above all of its two queries, twice in a row."""
    assert by_chance(([2.0], [0.0, 1.0])) == pytest.approx(1 / 3)
    assert by_chance(([2.0], [0.0, 1.0]), ([3.0], [1.0, 1.0])) == pytest.approx(1 / 9)
    assert by_chance(([2.0], [0.0, 1.0]), ([0.0], [1.0, 1.0])) == pytest.approx(1 / 3)
    assert by_chance(([0.0], [0.0, 1.0]), ([3.0], [1.0, 1.0])) == 1.0
    assert by_chance(([], [1.0])) == 1.0
    y = np.random.default_rng(0).normal(size=(20_000, 2, 3))
    simulated = (y[:, :, 0] > y[:, :, 1:].max(axis=2)).all(axis=1).mean()
    assert simulated == pytest.approx(1 / 9, abs=0.01)


def test_two_queries_below_the_iterate_are_no_reason_to_shrink_and_twice_in_a_row_they_are():
    X, kinds = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), ["iterate", "query", "query"]
    first, second = evaluated(X, [1.0, 0.0, 0.5], kinds, 0), evaluated(X + 0.1, [1.2, 0.0, 0.5], kinds, 1)
    model = model_of(X, [1.0, 0.0, 0.5])
    assert looked(model, first, first, [], False).factor == 1.0
    assert looked(model, [*first, *second], second, first, False).factor == shrunk([1.2], [0.0, 0.5]) < 1.0


def test_queries_on_a_bowl_say_by_how_much_they_are_too_far_away():
    """Seen from the distance r, queries at a distance D in d dimensions: r/D of 2/√d, within the limits."""
    rng = np.random.default_rng(0)
    d, r = 16, 4.0
    bottom = np.full(d, r / np.sqrt(d))
    for D in (1.0, 4.0, 8.0, 1000.0):
        U = rng.normal(size=(2000, d))
        X = D * U / np.linalg.norm(U, axis=1, keepdims=True)
        factor = shrunk([-(r**2)], (-((X - bottom) ** 2).sum(axis=1)).tolist())
        assert factor == pytest.approx(np.clip(2.0 * r / (D * np.sqrt(d)), 0.1, 1.0), rel=0.1)
    assert shrunk([0.0], [1.0, 2.0]) == 1.0
    assert shrunk([2.0], [1.0, 1.0]) == 0.1
    assert shrunk([2.0], [1.0]) == SHRINK
    assert shrunk([3.0], [0.0, 1.0]) > shrunk([3.0], [0.0, 1.0] * 50)  # of two values the deviation is hardly known


def test_what_the_fit_has_shortened_is_not_shortened_again():
    """In a bowl that is narrower than the scale the first batch makes the fit shorten the lengthscales."""
    opt = gibo.GIBO(np.zeros(12), scale=1.0, seed=0)
    planned = opt._surrogate
    for query in opt.ask():
        opt.tell(query, -float(((query.x - 0.5) ** 2).sum()))
    fitted = planned.fit(opt.log.valued)
    before, after, now = (
        np.exp(np.log(s.hyperparameters.lengthscale).mean()) for s in (planned, fitted, opt._surrogate)
    )
    values = [e.value for e in opt.log.valued]
    factor = shrunk(values[:1], values[1:])
    assert factor * before < after < before
    assert now == pytest.approx(factor * before)


def test_where_the_scale_is_far_too_large_nothing_below_the_start_is_recommended():
    """A scale that is ten times too large: the first steps end far below the start, which the model does not see."""

    def valley(x):
        return -float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))

    optimizer = gibo.GIBO(np.full(6, 0.1), scale=3.0, seed=0)
    start, recommended = valley(np.full(6, 0.1)), []
    for _ in range(4):
        for query in optimizer.ask():
            optimizer.tell(query, valley(query.x))
        recommended.append(valley(optimizer.best.x))
    assert min(recommended) >= start


def test_noise_alone_means_too_narrow_and_a_signal_that_it_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    kinds = ["iterate", *["query"] * 29]
    noise, signal = rng.normal(size=30), np.sin(X[:, 0]) + 0.5 * X[:, 1]
    noise[0] = signal[0] = 0.0
    nothing = Surrogate.initial(Settings(lengthscale=1.0, noise=0.95, variance=0.05).resolve(2), np.ones(2))
    told = evaluated(X, noise, kinds)
    found = looked(nothing.given(told), told, told, [], found=False)
    assert (found.factor, found.found) == (WIDEN, False)
    told = evaluated(X, signal, kinds)
    found = looked(model_of(X, signal), told, told, [], found=False)
    assert (found.factor, found.found) == (1.0, True)


def test_a_failed_step_goes_back():
    X = [[0.0, 0.0], [0.2, 0.0], [0.0, 0.2], [2.0, 2.0], [2.2, 2.0], [2.0, 2.2]]
    y = [1.0, 0.9, 1.1, -9.0, -8.0, -9.5]
    told = evaluated(X, y, ["iterate", "query", "query"] * 2)
    assert looked(model_of(X, y), told, told[3:], told[:3], found=True).back is told[0]
    told = evaluated(X, y[::-1], ["iterate", "query", "query"] * 2)
    assert looked(model_of(X, y[::-1]), told, told[3:], [], True).back is None


def repeated_iterates(differences, spread, rng):
    """Iterates told twice, with these differences of the two values, and the values of queries with a spread."""
    told = []
    for k, difference in enumerate(differences):
        x = np.full(2, float(k))
        for kind, value in (("iterate", 0.0), ("query", difference)):
            told.append(Evaluation(Query(len(told), x, 0, kind, k), Outcome(value)))
    return told, (spread * rng.standard_normal(8)).tolist()


def test_queries_that_differ_by_more_than_an_iterate_told_twice_mean_detail():
    rng = np.random.default_rng(5)
    told, queries = repeated_iterates([0.1, -0.1], 3.0, rng)
    ratio = 0.5 * 0.01 / np.var(queries)
    assert varies(told, queries) == pytest.approx(-np.log(ratio) - 1.0 + ratio)
    assert varies(told, queries) > VARIES
    told, queries = repeated_iterates([2.0, -3.0], 3.0, rng)
    assert varies(told, queries) < VARIES
    assert varies([], queries) == 0.0


def test_what_is_detail_shrinks_the_scale():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 2))
    told = evaluated(X, rng.normal(size=12), ["iterate", *["query"] * 11])
    told = [Evaluation(replace(e.query, iteration=1), e.outcome) for e in told]
    twice = Evaluation(Query(99, told[0].x, 0, "query", 1), Outcome(told[0].value + 1e-3))
    nothing = Surrogate.initial(Settings(lengthscale=1.0, noise=0.95, variance=0.05).resolve(2), np.ones(2))
    assert looked(nothing.given(told), told, told, [], False).factor == WIDEN
    assert looked(nothing.given(told), [*told, twice], [*told, twice], [], False).factor == SHRINK


def test_the_start_and_the_best_point_outlive_the_window():
    def run(**options):
        rng = np.random.default_rng(0)
        opt = gibo.GIBO(np.zeros(2), scale=0.1, settings=Settings.default(N_m=8, M=2, scale_search=False, **options))
        for k in range(12):
            for query in opt.ask():
                opt.tell(query, (5.0 if query.id == 0 else float(-k)) + 0.01 * rng.standard_normal())
        return opt

    opt = run()
    kept = [e.id for e in opt._window(8)]
    assert kept[0] == 0
    assert len(kept) == 9
    again = gibo.GIBO.from_state(opt.state())
    assert [e.id for e in again._window(8)] == kept
    assert [e.id for e in run(remember=False)._window(8)] == kept[1:]


@pytest.mark.parametrize("wrong", [0.1, 1.0, 10.0])
def test_a_wrong_scale_costs_little(wrong):
    """Regret of the recommended point on a noisy bowl, from where it is 1."""
    rng = np.random.default_rng(3)
    goal = np.array([0.4, -0.3, 0.5, 0.2])

    def objective(x):
        return -float(((x - goal) ** 2).sum()) / float(goal @ goal) + 0.02 * rng.standard_normal()

    result = gibo.maximize(objective, np.zeros(D), budget=120, scale=0.2 * wrong, settings=Settings.default())
    assert ((result.x - goal) ** 2).sum() / (goal @ goal) < 0.25


def test_a_plateau_is_searched_farther_and_farther_away():
    opt = gibo.GIBO(np.zeros(2), scale=0.01, settings=Settings.default())
    reach = []
    for _ in range(5):
        queries = opt.ask()
        reach.append(max(np.abs(query.x - opt.iterate).max() for query in queries))
        for query in queries:
            opt.tell(query, 0.0)
    assert reach[-1] > 5.0 * reach[0]
    assert (opt.iterate == 0.0).all()


def test_what_is_combined_in_vain_is_refused():
    with pytest.raises(gibo.InputError, match="leave standardize at True"):
        Settings(warp="chosen", standardize=False)


@pytest.mark.parametrize("factor", [SHRINK, WIDEN])
def test_the_scale_is_searched_within_a_factor_of_ten(factor):
    """Memos of runs that began when it was a hundred are still understood."""
    surrogate = first = Surrogate.initial(Settings.default().resolve(D), np.ones(D))
    for _ in range(20):
        surrogate = surrogate.rescaled(factor)
    ratio = surrogate.hyperparameters.lengthscale / first.hyperparameters.lengthscale
    np.testing.assert_allclose(ratio, 10.0 if factor > 1.0 else 0.1)
    older = {**first.memo(), "log_factor": np.log(99.0)}
    assert first.recall(older).log_factor == np.log(99.0)
    with pytest.raises(gibo.InputError, match="log_factor"):
        first.recall({**older, "log_factor": np.log(101.0)})


def asked(*iterations):
    """Iterations (how far away the queries were, their values), at one iterate that was told twice."""
    told = []
    for k, (far, queries) in enumerate(iterations):
        at = [("iterate", 0.0, 9.0), ("query", 0.0, -9.0), *(("query", far, value) for value in queries)]
        told += [
            Evaluation(Query(len(told) + i, np.array([x]), 0, kind, k), Outcome(v)) for i, (kind, x, v) in enumerate(at)
        ]
    return told


@pytest.mark.parametrize(
    ("iterations", "lower"),
    [
        ([(1.0, [3.0, 4.0, 5.0]), (3.0, [0.0, 1.0, 2.0])], True),
        ([(1.0, [3.0, 4.0, 5.0]), (3.0, [-1e9, 1.0, 2.0])], True),  # ranks count
        ([(1.0, [3.0, 4.0, 5.0]), (1.9, [0.0, 1.0, 2.0])], False),  # it is not far
        ([(1.0, [3.0, 4.0]), (1.4, [5.0]), (3.0, [0.0, 1.0, 2.0])], True),  # about as near as the first
        ([(1.0, [3.0, 4.0]), (1.6, [-5.0]), (3.0, [0.0, 1.0, 2.0]), (0.5, [6.0])], True),  # and in between
        ([(1.0, [0.0, 1.0, 2.0]), (3.0, [3.0, 4.0, 5.0])], False),  # it is higher
        ([(3.0, [3.0, 4.0, 5.0]), (1.0, [0.0, 1.0, 2.0])], False),  # the first ones were the far ones
        ([(1.0, [1.0, 4.0, 5.0]), (3.0, [0.0, 2.0, 3.0])], False),  # by chance
        ([(1.0, [1.0] * 9), (3.0, [1.0] * 9)], False),  # level
        ([(1.0, [9.0]), (3.0, [0.0] * 9)], False),  # too few
        ([(1.0, [9.0] * 9), (3.0, [0.0])], False),
    ],
)
def test_what_is_asked_far_away_is_lower_by_its_ranks(iterations, lower):
    told = asked(*iterations)
    assert is_lower_far_away(told, np.ones(1)) == lower
    assert is_lower_far_away(told, np.full(1, 1e-3)) == lower
    assert not is_lower_far_away([e for e in told if e.iteration > 0], np.ones(1))  # the first ones left the window
    assert not is_lower_far_away(told, np.full(1, 1e300))  # distances that floats cannot tell from 0


def searched(objective, iterations, **changes):
    opt, rng = gibo.GIBO(np.zeros(D), scale=0.3, settings=Settings.default(**changes)), np.random.default_rng(3)
    for k in range(iterations):
        for query in opt.ask():
            opt.tell(query, objective(query.x, k, rng))
    return opt


def hill(x, k, rng):
    return -float(x @ x) + 8.0 * rng.standard_normal()


def test_under_noise_that_hides_everything_the_search_for_the_scale_ends():
    wide, ended = searched(hill, 12, patience=0), searched(hill, 12)
    assert not wide._scale_found
    assert wide._surrogate.log_factor == pytest.approx(np.log(10.0))
    assert ended._scale_found
    assert ended._surrogate.log_factor == 0.0
    again = gibo.GIBO.from_state(ended.state())
    assert again._scale_found


@pytest.mark.parametrize("patience", [3, 6])
def test_the_search_for_the_scale_has_time_until_patience_is_over(monkeypatch, patience):
    monkeypatch.setattr("gibo.optimizers.gibo.is_lower_far_away", lambda window, scale: True)
    before, after = (searched(hill, k, patience=patience) for k in (patience - 1, patience))
    assert not before._scale_found
    assert before._surrogate.log_factor > 0.0
    assert after._scale_found
    assert after._surrogate.log_factor == 0.0


def test_patience_begins_when_values_differ(monkeypatch):
    """On a plateau nothing is said against going farther."""
    monkeypatch.setattr("gibo.optimizers.gibo.is_lower_far_away", lambda window, scale: True)
    monkeypatch.setattr("gibo.optimizers.gibo.look", lambda *data: Finding(1.0, False, None))

    def step(x, k, rng):
        return 0.0 if k < 8 else float(x.any())

    for iterations, found in ((13, False), (14, True)):
        opt = searched(step, iterations)
        assert opt._scale_found == found
        assert opt._surrogate.log_factor == pytest.approx(0.0 if found else np.log(10.0))


def test_where_what_is_asked_far_away_is_not_lower_the_search_goes_on(monkeypatch):
    monkeypatch.setattr("gibo.optimizers.gibo.is_lower_far_away", lambda window, scale: False)
    opt = searched(hill, 12)
    assert not opt._scale_found
    assert opt._surrogate.log_factor == pytest.approx(np.log(10.0))


def test_a_search_that_shrinks_the_scale_goes_on(monkeypatch):
    monkeypatch.setattr("gibo.optimizers.gibo.is_lower_far_away", lambda window, scale: True)
    monkeypatch.setattr("gibo.optimizers.gibo.look", lambda *data: Finding(0.9, False, None))
    opt = searched(hill, 8)
    assert not opt._scale_found
    assert opt._surrogate.log_factor == pytest.approx(8.0 * np.log(0.9))


@pytest.mark.parametrize("patience", [-1, 2.5, "six", None])
def test_patience_is_a_number_of_iterations(patience):
    with pytest.raises(gibo.InputError, match="patience"):
        Settings.default(patience=patience)
