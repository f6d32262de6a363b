"""The studies of what tuning a machine needs."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from gibo_studies.machines import drift, failures, limited, limits, noise, simulator, sources
from gibo_studies.machines.common import write


@pytest.mark.parametrize("problem", [limited.Quadratic(3, 1), limited.Pid(0), limited.Quadrotor(0)])
def test_a_problem_with_limits_starts_within_them_and_counts_violations(problem):
    assert problem.satisfies(problem.x0)
    value, c = problem(problem.x0)
    truth, d = problem.truth(problem.x0)
    assert problem.violated == 0
    assert value == pytest.approx(truth, abs=1.0)
    np.testing.assert_allclose(c, d, atol=0.1)
    far = problem.x0 + 2.0 * problem.normal if hasattr(problem, "normal") else problem.x0 + 4.0
    problem(far)
    assert problem.violated == 1


def test_a_problem_of_coco_is_the_official_one():
    cocoex = pytest.importorskip("cocoex")
    suite = cocoex.Suite("bbob-constrained", "instances: 1", "dimensions: 5")
    official, problem = suite.get_problem_by_function_dimension_instance(3, 5, 1), limited.Coco(3, 5, 1)
    x = problem.x0 + 0.1
    assert problem.truth(x)[0] == -official(x)
    assert problem.truth(x)[1].tolist() == official.constraint(x).tolist()
    kinds = [(make().x0.size, len(make().truth(make().x0)[1])) for _, make in limits.problems("coco", [5, 10, 20], 1)]
    assert sorted(set(kinds)) == [(d, m) for d in (5, 10, 20) for m in (1, 3, 9)]


@pytest.mark.parametrize("way", ["gibo", "penalty", "tpe", "cma"])
def test_a_way_has_its_budget_and_recommends_from_it(way):
    pytest.importorskip({"tpe": "optuna", "cma": "cma"}.get(way, "numpy"))
    problem, seen = limited.Quadratic(2, 0), []
    measured = problem.measured
    problem.measured = lambda x: seen.append(np.array(x)) or measured(x)
    x = limits.BY[way](problem, 20, 0, way)
    assert len(seen) == 20
    assert min(np.abs(np.array(seen) - x).max(axis=1)) < 1e-12
    assert problem.truth(x)[0] > problem.truth(problem.x0)[0]
    row = limits.row(limited.Quadratic(2, 0), 0, way)
    assert row["gain"] == pytest.approx(problem.truth(x)[0] - problem.truth(problem.x0)[0])
    assert row["satisfies"] == problem.satisfies(x)


@pytest.mark.parametrize("place", ["half", "third"])
@pytest.mark.parametrize("shape", ["quadratic", "valley"])
def test_a_wall_stands_alongside_the_way(shape, place):
    function = failures.Function(shape, 6, 3, place)
    assert function.normal @ function.x0 == pytest.approx(function.edge - failures.TO_EDGE)
    assert function.normal @ function.maximum == pytest.approx(function.edge - failures.BEYOND)
    assert np.linalg.norm(function.maximum - function.x0) == pytest.approx(failures.AWAY)
    assert function.value(function.maximum) == 0.0 > function.value(function.maximum + 0.1)
    assert function.fails(function.maximum + 0.11 * function.normal)
    assert not function.fails(function.maximum)


def test_the_reactor_is_a_tube_in_which_a_becomes_b_becomes_waste():
    reactor, x = (
        drift.Reactor(8, np.random.default_rng(1), moves=True),
        np.array([0.3, -0.2, 0.1, 0.4, 0.2, -0.1, 0.5, 0.3]),
    )
    (flow, feed), (recycled, hydrogen) = np.exp(x[4:6]), 1.0 / (1.0 + np.exp(-x[6:]))
    state = np.array([feed, 0.0])
    for temperature in x[:4]:
        k = reactor.rates * np.exp(reactor.energies * temperature) * [drift.LEFT * (0.5 + hydrogen), 1.0]

        def reaction(_, s, k=k):
            return [-k[0] * s[0], k[0] * s[0] - k[1] * s[1]]

        state = solve_ivp(reaction, (0.0, 0.5 / (flow * (1.0 + recycled))), state, rtol=1e-10, atol=1e-12).y[:, -1]
    earned = drift.PRICE * flow * state[1] * (1.0 + 1.5 * recycled)
    costs = 2.0 * feed**3 + 2.0 * (flow * (1.0 + recycled)) ** 3 + (x[:4] ** 2).sum() + 10.0 * hydrogen**2
    assert reactor(x, 1.0) == pytest.approx(earned - costs)
    assert reactor(x, 0.0) > reactor(x, 1.0)


@pytest.mark.parametrize("case", ["hill-small-6", "lqr-large", "cartpole"])
def test_a_machine_and_its_simulator_differ_and_regret_is_without_noise(case):
    machine, wrong = simulator.CASES[case](0)
    x = machine.start + 0.1
    assert machine.value(x, 3) != wrong.value(x, 3)
    assert machine.value(x, 3) == machine.value(x, 3)
    assert machine.regret(x) == machine.regret(x) >= 0.0


def test_a_search_has_a_regret_after_each_evaluation():
    machine, other = simulator.hills("small", 6, 0)
    optimizer, regrets = simulator.search(machine, machine.start, 15, 0)
    assert len(regrets) == len(optimizer.evaluations) == 15
    assert regrets[0] == machine.regret(machine.start)
    assert regrets[-1] == machine.regret(optimizer.best.x) < regrets[0]
    needed, simulated = sources.search(machine, other, 0, sources.COSTS)
    assert 0 < needed <= 60
    assert simulated > 0


def test_the_studies_write_their_rows(tmp_path, capsys):
    """A row per run, and means of alike rows."""
    rows = [*drift.rows(1, 8, 9), {}][:4]
    write(tmp_path / "drift.csv", rows, by=("objective", "moves", "drift"))
    assert len((tmp_path / "drift.csv").read_text().splitlines()) == 5
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert len([*noise.rows(1, 2, 4)]) == 4
    assert failures.run("hill", 6, "half", 0.1, "pessimistic", 0)["failures"] >= 0
