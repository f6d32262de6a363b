"""SciPy's compiled routines called directly give what its public functions give, bit for bit."""

import subprocess
import sys

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.optimize import fmin_l_bfgs_b, rosen, rosen_der

from gibo import _linalg as linalg
from gibo import compiled
from gibo.compiled import minimise

OPTIONS = {"factr": 1e7, "pgtol": 1e-5}


def rosenbrock(z):
    return float(rosen(z)), rosen_der(z)


def rough(z):
    """With many bumps, so that line searches take several evaluations."""
    return float(z @ z + np.sin(9.0 * z).sum()), 2.0 * z + 9.0 * np.cos(9.0 * z)


def wall(z):
    """Not finite beyond 2, as a model whose matrix cannot be factorised is reported."""
    return (1e100, np.zeros_like(z)) if (z > 2.0).any() else (-float(z.sum()), -np.ones_like(z))


def flat(z):
    return 1.0, np.zeros_like(z)


ENDS = st.floats(-3.0, 3.0) | st.just(np.inf)


@settings(deadline=None)
@given(
    cost=st.sampled_from([rosenbrock, rough, wall, flat]),
    points=st.lists(st.tuples(st.floats(-4.0, 4.0), ENDS, ENDS), min_size=2, max_size=7),
    steps=st.sampled_from([1, 2, 7, 200]),
)
def test_minimise_is_scipys(cost, points, steps):
    start, a, b = map(np.array, zip(*points, strict=True))
    low, high = np.where(np.isinf(a), -np.inf, np.minimum(a, b)), np.maximum(a, b)
    x, lowest = minimise(cost, start, low, high, maximum_steps=steps, **OPTIONS)
    bounds = list(zip(low, high, strict=True))
    expected, expected_lowest, _ = fmin_l_bfgs_b(cost, start, bounds=bounds, maxiter=steps, **OPTIONS)
    assert x.tobytes() == expected.tobytes()
    assert lowest == expected_lowest


def test_minimise_evaluates_as_often_as_scipy():
    calls = {"ours": 0, "theirs": 0}

    def counted(who):
        def cost(z):
            calls[who] += 1
            return rough(z)

        return cost

    start, low, high = np.array([2.0, -1.0, 0.3]), np.full(3, -5.0), np.full(3, 5.0)
    minimise(counted("ours"), start, low, high, maximum_steps=50, **OPTIONS)
    fmin_l_bfgs_b(counted("theirs"), start, bounds=list(zip(low, high, strict=True)), maxiter=50, **OPTIONS)
    assert calls["ours"] == calls["theirs"] > 5


def test_minimise_leaves_its_arguments_alone():
    start, low, high = np.array([3.0, 4.0]), np.array([1.0, -np.inf]), np.array([np.inf, np.inf])
    x, _ = minimise(rough, start, low, high, maximum_steps=50, **OPTIONS)
    assert x is not start
    assert (start == [3.0, 4.0]).all()
    assert (low == [1.0, -np.inf]).all()
    assert (high == [np.inf, np.inf]).all()


def test_a_point_that_the_cost_keeps_does_not_change():
    kept = []

    def cost(z):
        kept.append((z, z.copy()))
        return rough(z)

    minimise(cost, np.array([2.0, -1.0]), np.full(2, -5.0), np.full(2, 5.0), maximum_steps=50, **OPTIONS)
    assert len(kept) > 3
    assert all((z == copy).all() for z, copy in kept)


@pytest.fixture
def unknown_scipy(monkeypatch):
    """A SciPy whose version is unknown and whose compiled modules are elsewhere."""
    caches = (compiled.blas, compiled.lapack, compiled._setulb)
    monkeypatch.setattr(scipy, "__version__", "99.0.0")
    monkeypatch.setattr(compiled, "_module", lambda package, name: None)
    for function in caches:
        function.cache_clear()
    yield
    for function in caches:
        function.cache_clear()


def test_an_unknown_scipy_is_used_through_its_public_functions(unknown_scipy):
    assert compiled._setulb() is None
    assert compiled.blas().__name__ == "scipy.linalg.blas"
    assert compiled.lapack().__name__ == "scipy.linalg.lapack"
    start, low, high = np.array([2.0, -1.0, 0.3]), np.array([0.0, -np.inf, -5.0]), np.array([5.0, 5.0, np.inf])
    x, lowest = minimise(rough, start, low, high, maximum_steps=50, **OPTIONS)
    compiled._setulb.cache_clear()
    assert lowest == rough(x)[0]
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    assert np.allclose(linalg.solve(linalg.cholesky(K).L, K), np.eye(2))


def test_this_scipy_is_called_directly():
    version = tuple(map(int, scipy.__version__.split(".")[:2]))
    assert (compiled._setulb() is not None) == (version in compiled.KNOWN)


def test_modules_that_are_missing_or_broken_are_none(monkeypatch, tmp_path):
    assert compiled._module("linalg", "_no_such_module") is None
    (tmp_path / "linalg").mkdir()
    (tmp_path / "linalg" / "_broken.py").write_text("raise ImportError('a library is missing')\n")
    monkeypatch.setattr(scipy, "__path__", [str(tmp_path)])
    assert compiled._module("linalg", "_broken") is None
    assert "scipy.linalg._broken" not in sys.modules


@pytest.mark.parametrize("d", [1, 2, 3, 8, 36, 100])
def test_leading_eigenvectors_are_scipys(d):
    A = np.random.default_rng(d).standard_normal((d, d))
    S = A @ A.T
    count = min(4, d)
    V = linalg.leading_eigenvectors(S, 4)
    assert V.shape == (d, count)
    assert (eigh(S, subset_by_index=[d - count, d - 1], check_finite=False)[1] == V).all()
    values = np.linalg.eigvalsh(S)[-count:]
    assert np.allclose(S @ V, V * values, atol=1e-9 * values.max())


PLAN = """
import sys
import numpy as np
import gibo

opt = gibo.GIBO(np.zeros(4), scale=0.1)
for _ in range(3):
    for query in opt.ask():
        opt.tell(query, -float(query.x @ query.x))
print(*sorted(name for name in sys.modules if name in ("scipy.linalg", "scipy.optimize", "scipy.special")))
import scipy.linalg, scipy.optimize
print(scipy.linalg.lapack.dpotrf is sys.modules["scipy.linalg._flapack"].dpotrf)
print(scipy.linalg.cholesky(np.eye(2))[0, 0], scipy.optimize.fmin_l_bfgs_b(lambda z: (z @ z, 2 * z), [1.0])[1])
"""


def test_a_plan_needs_no_package_of_scipy_and_leaves_them_usable():
    """What makes `gibo ask` quick, and that a user who needs SciPy too gets it whole afterwards."""
    result = subprocess.run([sys.executable, "-c", PLAN], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.splitlines() == ["", "True", "1.0 0.0"], result.stderr
