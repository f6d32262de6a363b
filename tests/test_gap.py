"""A machine and its simulator: against dense formulas made pair by pair."""

import numpy as np
import pytest

from gibo import GaussianProcess, GradientInformation, InputError, Matern52, SquaredExponential
from gibo.acquisition.confidence import PosteriorAtPoint
from gibo.gap import MACHINE, SIMULATOR, GapTerm
from gibo.priors import LogNormal
from optimizer_helpers import assert_slopes_of_the_log_posterior

D = 3
ELL = np.array([0.5, 1.2, 0.8])
T = np.array([0.1, -0.3, 0.2])
NOISE = 0.05
GAP = GapTerm(shift=0.7, share=0.4, factor=0.6, simulator_noise=0.02)
BLOCKS = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0])


@pytest.fixture(params=[SquaredExponential, Matern52])
def kernel(request):
    return request.param(ELL, 1.7)


def data(gradients):
    """Values, and perhaps gradients, of both sources; two points coincide in the simulator, two across the sources."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, D)), rng.normal(size=8)
    X[2], X[3] = X[1], X[4]
    given = {"X": X, "y": y, "blocks": BLOCKS}
    if not gradients:
        return given
    of_gradients = {"gradient_X": rng.normal(size=(2, D)), "gradients": rng.normal(size=(2, D)), "gradient_noise": 0.1}
    return {**given, **of_gradients, "gradient_blocks": [MACHINE, SIMULATOR]}


def dense(kernel, given, gap=GAP):
    """K with the noise, and the covariances of the observations with value and gradient of the machine at T."""
    gradients = zip(given.get("gradient_X", ()), given.get("gradient_blocks", ()), strict=True)
    rows = [("g", x, b) for x, b in gradients] + [("v", x, b) for x, b in zip(given["X"], given["blocks"], strict=True)]

    def of_kernel(kind, x, kind2, x2):
        if kind + kind2 == "vv":
            return kernel.k(x[None], x2[None])
        found = {"vg": kernel.dk_db, "gv": kernel.dk_da, "gg": kernel.d2k_dadb}[kind + kind2](x[None], x2[None])[0, 0]
        return found[:, None] if kind + kind2 == "gv" else np.atleast_2d(found)

    def pair(row, row2):
        (kind, x, b), (kind2, x2, b2) = row, row2
        factor = {0.0: 1.0, 1.0: gap.factor, 2.0: gap.factor**2 + gap.share}[b + b2]
        return factor * of_kernel(kind, x, kind2, x2) + gap.shift * (b + b2 == 2.0 and kind + kind2 == "vv")

    K = np.block([[pair(row, other) for other in rows] for row in rows])
    noise = [0.1] * (len(K) - len(given["X"])) + [gap.simulator_noise if b else NOISE for b in given["blocks"]]
    targets = [np.block([[pair(row, (kind, T, MACHINE))] for row in rows]) for kind in "vg"]
    return K + np.diag(noise), *targets


@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
def test_the_posterior_of_the_machine_against_the_dense_formula(kernel, gradients):
    given = data(gradients)
    gp = GaussianProcess(kernel, NOISE, 0.3, blocks=GAP).condition(**given)
    K, value, gradient = dense(kernel, given)
    a = np.linalg.solve(K, np.concatenate([np.ravel(given.get("gradients", ())), given["y"] - 0.3]))
    mean, variance = gp.predict(T)
    assert mean == pytest.approx(0.3 + (value.T @ a).item(), rel=1e-10)
    assert variance == pytest.approx(1.7 - (value.T @ np.linalg.solve(K, value)).item(), rel=1e-10)
    jacobian = gp.jacobian(T)
    np.testing.assert_allclose(jacobian.mean, gradient.T @ a, rtol=1e-9)
    S = np.diag(kernel.gradient_variance(D)) - gradient.T @ np.linalg.solve(K, gradient)
    np.testing.assert_allclose(jacobian.covariance, S, rtol=1e-9, atol=1e-12)
    moments, step = PosteriorAtPoint(gp)(T), np.diag(1e-5 * ELL)
    np.testing.assert_allclose(moments[:2], [mean, variance], rtol=1e-10)
    numerical = [(np.array(gp.predict(T + s)) - np.array(gp.predict(T - s))) / (2.0 * s.max()) for s in step]
    np.testing.assert_allclose(np.transpose(moments[2:]), numerical, rtol=1e-5, atol=1e-7)
    residuals = np.concatenate([np.ravel(given.get("gradients", ())), given["y"] - 0.3])
    expected = -0.5 * (residuals @ a + np.linalg.slogdet(2.0 * np.pi * K)[1])
    assert gp.log_likelihood == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("source", [MACHINE, SIMULATOR])
def test_gradient_information_of_a_source_is_the_trace_difference(kernel, gradients, source):
    given = data(gradients)
    gp = GaussianProcess(kernel, NOISE, blocks=GAP).condition(**given)
    gi = GradientInformation(gp, T, MACHINE).in_block(source)

    def trace(given):
        K, _, gradient = dense(kernel, given)
        return float(np.trace(gradient.T @ np.linalg.solve(K, gradient)))

    for x in (T + 0.4, given["X"][1], given["X"][3]):
        more = {**given, "X": np.vstack([given["X"], x]), "blocks": np.append(BLOCKS, source)}
        brute = trace(more) - trace(given)
        alpha, slope = gi.value_and_gradient(x)
        assert alpha == pytest.approx(brute, abs=1e-12 * float(kernel.gradient_variance(D).sum()))
        numerical = [(gi(x + s) - gi(x - s)) / (2.0 * s.max()) for s in np.diag(1e-5 * ELL)]
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-6)
        after = gp.extend(x, 0.0, blocks=source)
        for other in (MACHINE, SIMULATOR):
            fresh = GradientInformation(after, T, other)
            np.testing.assert_allclose(gi.extend(x).in_block(other)(given["X"]), fresh(given["X"]), rtol=1e-8)


@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
def test_slopes_of_the_likelihood_against_central_differences(kernel, gradients):
    names = ("shift", "share", "factor", "simulator_noise", "lengthscale", "variance", "noise")
    gp = GaussianProcess(kernel, NOISE, 0.3, blocks=GAP).condition(**data(gradients), noise_scale=[1, 0.5] * 4)
    assert_slopes_of_the_log_posterior(gp, {name: LogNormal(1.0, 1.0) for name in names})


def test_a_gap_that_is_all_of_the_simulator_leaves_the_machine_alone(kernel):
    """With a small factor the simulator's values say nothing of the machine."""
    given, real = data(False), BLOCKS == MACHINE
    deaf = GaussianProcess(kernel, NOISE, blocks=GapTerm(0.7, 0.4, factor=1e-9)).condition(**given)
    alone = GaussianProcess(kernel, NOISE).condition(given["X"][real], given["y"][real])
    np.testing.assert_allclose(deaf.jacobian(T).mean, alone.jacobian(T).mean, rtol=1e-6)
    np.testing.assert_allclose(deaf.jacobian(T).covariance, alone.jacobian(T).covariance, rtol=1e-6, atol=1e-9)
    assert GradientInformation(deaf, T, SIMULATOR)(T + 0.3) < 1e-12


def test_bad_numbers():
    with pytest.raises(InputError, match="factor: expected a positive finite number"):
        GapTerm(0.1, 0.1, factor=0.0)
    with pytest.raises(InputError, match="simulator_noise"):
        GapTerm(0.1, 0.1, simulator_noise=-1.0)
