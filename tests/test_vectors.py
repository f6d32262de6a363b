"""Cases whose expected values an independent program made (dense algebra, automatic differentiation)."""

import json
from pathlib import Path

import numpy as np
import pytest

from gibo import GaussianProcess, GradientInformation
from gibo.kernels import KERNELS

CASES = sorted((Path(__file__).parent / "vectors").glob("*.json"))


def close(actual, expected, rtol=1e-8):
    # Entries that are zero or nearly so by cancellation are measured against the largest one.
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * 1e-3 * np.abs(expected).max())


def test_there_are_cases():
    assert len(CASES) >= 6


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_vectors(path):
    case = json.loads(path.read_text())
    expect, at = case["expect"], case["at"]
    kernel = KERNELS[case["kernel"]](case["lengthscale"], case["variance"])
    prior = GaussianProcess(kernel, noise=case["noise"], mean=case["mean"])
    gradients = [case[name] or None for name in ("gradient_X", "gradients", "gradient_noise")]
    gp = prior.condition(case["X"], case["y"], *gradients)
    close(gp.log_likelihood, expect["log_likelihood"])
    mean, variance = gp.predict(expect["predict"]["x"])
    close(mean, expect["predict"]["mean"])
    close(variance, expect["predict"]["variance"])
    jacobian = gp.jacobian(at)
    close(jacobian.mean, expect["jacobian"]["mean"])
    close(jacobian.covariance, expect["jacobian"]["covariance"])
    information = expect["gradient_information"]
    gi = GradientInformation(gp, at=at)
    close(gi(information["x"]), information["value"])
    for x, value, gradient in zip(information["x"], information["value"], information["gradient"], strict=True):
        found, slope = gi.value_and_gradient(x)
        close(found, value)
        close(slope, gradient, rtol=1e-6)
    # The same when the values arrive one at a time, after the gradients if there are any.
    grown = GradientInformation(prior.condition([], [], *gradients) if gradients[0] else prior, at=at)
    for x in case["X"]:
        grown = grown.extend(x)
    close(grown(information["x"]), information["value"])
    close(grown.covariance, expect["jacobian"]["covariance"])
