import numpy as np
import pytest
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

from gibo_studies.paper.control import LQR, LSPI
from gibo_studies.paper.control.lspi import smat, svec

PAPER = LQR.paper()
QUIET = LQR(PAPER.A, PAPER.B, PAPER.Q, PAPER.R, 0 * np.eye(3))


def exact_q(lqr, K, discount):
    """The H of a gain, from the matrices."""
    F = np.sqrt(discount) * (lqr.A + lqr.B @ K)
    assert np.abs(np.linalg.eigvals(F)).max() < 1
    P = solve_discrete_lyapunov(F.T, lqr.Q + K.T @ lqr.R @ K)
    AB = np.hstack([lqr.A, lqr.B])
    H = discount * AB.T @ P @ AB
    H[: lqr.n, : lqr.n] += lqr.Q
    H[lqr.n :, lqr.n :] += lqr.R
    return H


def discounted_optimum(lqr, discount):
    A, B = np.sqrt(discount) * lqr.A, np.sqrt(discount) * lqr.B
    P = solve_discrete_are(A, B, lqr.Q, lqr.R)
    return -np.linalg.solve(lqr.R + B.T @ P @ B, B.T @ P @ A)


def learner(lqr, episodes, steps=300, **options):
    lspi = LSPI(lqr.n, lqr.p, lqr.Q, lqr.R, **options)
    for seed in range(episodes):
        episode = lqr.simulate(np.zeros((lqr.p, lqr.n)), steps, seed=seed, exploration=1.0)
        lspi.add(episode.states, episode.inputs)
    return lspi


@pytest.mark.parametrize("discount", [0.8, 1.0])
def test_without_noise_the_q_function_is_exact(discount):
    lspi = learner(QUIET, 3, steps=40)
    K = PAPER.optimal_gain + 0.005  # not the gain that acted
    np.testing.assert_allclose(lspi.q_function(K, discount), exact_q(PAPER, K, discount), rtol=1e-7, atol=1e-8)


def test_sums_over_transitions_against_lstd_transition_by_transition():
    lspi, K, discount = learner(PAPER, 1, steps=60), -0.1 * np.ones((3, 3)), 0.9
    episode = PAPER.simulate(np.zeros(9), 60, seed=0, exploration=1.0)
    M, v = np.zeros((22, 22)), np.zeros(22)
    cost = svec(np.block([[PAPER.Q, np.zeros((3, 3))], [np.zeros((3, 3)), PAPER.R]]))
    for x, u, y in zip(episode.states, episode.inputs, episode.states[1:], strict=False):
        z, z_next = np.concatenate([x, u]), np.concatenate([y, K @ y])
        weight = (1.0 + z @ z) ** -2
        phi = np.append(svec(np.outer(z, z)), 1.0)
        phi_next = np.append(svec(np.outer(z_next, z_next)), 0.0)
        M += weight * np.outer(phi, phi - discount * phi_next)
        v += weight * phi * (phi[:-1] @ cost)
    np.testing.assert_allclose(lspi.q_function(K, discount), smat(np.linalg.solve(M, v)[:-1]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_without_noise_the_optimal_gain_is_found_from_little_data(discount):
    gain = learner(QUIET, 3, steps=40, discount=discount).gain()
    np.testing.assert_allclose(gain, discounted_optimum(PAPER, discount), atol=1e-6)


def test_with_noise_the_gain_gets_closer_with_more_data():
    few, many = (PAPER.relative_cost(learner(PAPER, n).gain()) for n in (20, 400))
    assert many < min(few, 0.01)


def test_huge_states_leave_everything_finite():
    lspi = LSPI(3, 3, PAPER.Q, PAPER.R)
    episode = PAPER.simulate(50 * np.ones((3, 3)), seed=0, exploration=1.0)
    assert np.abs(episode.states).max() > 1e100
    lspi.add(episode.states, episode.inputs)
    assert np.isfinite(lspi.gain()).all()
