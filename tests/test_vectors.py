"""Cases whose expected values an independent program made (dense algebra, automatic differentiation)."""

import json
from pathlib import Path

import numpy as np
import pytest

from gibo import GaussianProcess, GradientInformation
from gibo.kernels import KERNELS

CASES = sorted((Path(__file__).parent / "vectors").glob("*.json"))


def test_there_are_cases():
    assert len(CASES) >= 6


@pytest.fixture(params=CASES, ids=lambda path: path.stem)
def case(request):
    return json.loads(request.param.read_text())


@pytest.fixture
def gp(case):
    kernel = KERNELS[case["kernel"]](case["lengthscale"], case["variance"])
    gradients = [case[name] or None for name in ("gradient_X", "gradients", "gradient_noise")]
    return GaussianProcess(kernel, noise=case["noise"], mean=case["mean"]).condition(case["X"], case["y"], *gradients)


def close(actual, expected, rtol=1e-8):
    # Entries that are zero or nearly so by cancellation are measured against the largest one.
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * 1e-3 * np.abs(expected).max())


def test_log_likelihood(case, gp):
    close(gp.log_likelihood, case["expect"]["log_likelihood"])


def test_predict(case, gp):
    expect = case["expect"]["predict"]
    mean, variance = gp.predict(expect["x"])
    close(mean, expect["mean"])
    close(variance, expect["variance"])
    for x, m, v in zip(expect["x"], expect["mean"], expect["variance"], strict=True):
        close(gp.predict(x), [m, v])


def test_jacobian(case, gp):
    mean, covariance = gp.jacobian(case["at"])
    close(mean, case["expect"]["jacobian"]["mean"])
    close(covariance, case["expect"]["jacobian"]["covariance"])


def test_gradient_information(case, gp):
    expect = case["expect"]["gradient_information"]
    gi = GradientInformation(gp, at=case["at"])
    close(gi(expect["x"]), expect["value"])
    close([gi(x) for x in expect["x"]], expect["value"])
    for x, value, gradient in zip(expect["x"], expect["value"], expect["gradient"], strict=True):
        found, slope = gi.value_and_gradient(x)
        close(found, value)
        close(slope, gradient, rtol=1e-6)


def test_gradient_information_grown_value_by_value(case, gp):
    """The same numbers when the values arrive one at a time, after the gradients if there are any."""
    prior = GaussianProcess(gp.kernel, noise=gp.noise, mean=gp.mean)
    if case["gradient_X"]:
        prior = prior.condition([], [], case["gradient_X"], case["gradients"], case["gradient_noise"])
    gi = GradientInformation(prior, at=case["at"])
    for x in case["X"]:
        gi = gi.extend(x)
    close(gi(case["expect"]["gradient_information"]["x"]), case["expect"]["gradient_information"]["value"])
    close(gi.covariance, case["expect"]["jacobian"]["covariance"])
