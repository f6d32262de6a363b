import sys
import warnings

import numpy as np
import pytest

from gibo import InputError, MissingExtraError
from gibo.optimizers.cma import CMAES
from optimizer_helpers import advance, noisy

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    cma = pytest.importorskip("cma")


def direct(x0, sigma0, seed, bounds=None):
    """The package, driven by hand with the same random numbers."""
    rng = np.random.default_rng(seed)
    options = {"randn": lambda *shape: rng.standard_normal(shape), "seed": np.nan, "verbose": -10, "verb_log": 0}
    if bounds is not None:
        options["bounds"] = bounds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cma.CMAEvolutionStrategy(x0, sigma0, options)


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
@pytest.mark.parametrize("d", [2, 7])
def test_it_is_the_package_step_for_step_and_writes_nothing(d, bounds, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x0, scale = np.full(d, 0.4), 0.25  # a power of two: dividing by it is exact
    box = None if bounds is None else [bound / scale for bound in bounds]
    opt, strategy = CMAES(x0, scale=scale, sigma0=0.5, bounds=bounds, seed=3), direct(x0 / scale, 0.5, 3, box)
    assert opt.population == strategy.popsize
    for _ in range(30):
        Z = strategy.ask()
        queries = opt.ask()
        assert [query.x.tolist() for query in queries] == [(scale * z).tolist() for z in Z]
        values = [noisy(query) for query in queries]
        strategy.tell(Z, [-value for value in values])
        for query, value in zip(queries, values, strict=True):
            opt.tell(query, value)
        assert opt.iterate.tolist() == (scale * strategy.result.xfavorite).tolist()
        assert opt.best.value == np.mean(values)
    CMAES(np.zeros(2), bounds=(-0.1, 0.1)).ask()  # an initial step that the package finds too large
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def spread(opt):
    """The standard deviation of its next queries, in units of the first."""
    return float(np.std([query.x for query in opt.ask()]))


def test_noise_handling_lets_sigma_grow_on_noise_and_leaves_it_alone_without():
    def after(value, **options):
        opt = CMAES(np.zeros(4), seed=1, population=10, **options)
        advance(opt, 30, value=value)
        return opt

    noise = np.random.default_rng(0)
    plain, handled = (after(lambda query: float(noise.standard_normal()), noise_handling=on) for on in (False, True))
    assert spread(handled) > 3.0 * spread(plain)
    plain, handled = (after(lambda query: -float(query.x @ query.x), noise_handling=on) for on in (False, True))
    assert handled.iterate.tolist() == plain.iterate.tolist()


@pytest.mark.parametrize(("cap", "largest"), [(1 / 3, 1 / 3), (0.1, 0.1), (None, 1.0)])
def test_within_bounds_the_standard_deviation_is_capped_or_not(cap, largest):
    opt = CMAES(np.full(5, 0.5), bounds=(0.0, 1.0), sigma0=1.0, cap=cap)
    np.testing.assert_allclose(opt._strategy.stds, largest, rtol=1e-3)


def test_a_failed_query_counts_as_the_worst_of_its_batch():
    one, two = CMAES(np.zeros(3)), CMAES(np.zeros(3))
    for _ in range(5):
        queries = one.ask()
        values = [noisy(query) for query in queries]
        for query, value in zip(queries, values, strict=True):
            fails = query.id % 3 == 0
            one.tell(query, None if fails else value, failed=fails)
        worst = min(value for query, value in zip(queries, values, strict=True) if query.id % 3)
        for query, value in zip(two.ask(), values, strict=True):
            two.tell(query, value if query.id % 3 else worst)
    assert one.iterate.tolist() == two.iterate.tolist()


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(MissingExtraError, match=r"gibo\[cma\]"):
        CMAES([0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"sigma0": 0.0}, "sigma0: expected a positive"), ({"population": 3}, "population: expected at least 4")],
)
def test_mistakes_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        CMAES([0.0, 0.0], **arguments)
