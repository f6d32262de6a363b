"""A simulator beside the machine: where queries are evaluated, and whose values count."""

import json

import numpy as np
import pytest

import gibo
from gibo import GIBO, InputError, Settings
from gibo.gap import MACHINE, SIMULATOR
from gibo.optimizers.sources import Sources, aligned
from optimizer_helpers import through_json

D, X0 = 4, [0.0] * 4
COSTS = {"simulator": 1, "robot": 20}


def robot(x):
    return -float(((x - 0.8) ** 2).sum())


def good(x):
    return 5.0 - float(((x - 0.9) ** 2).sum())


def worthless(x):
    return float(np.sin(40.0 * x.sum()))


def run(simulator, robots, costs=COSTS, seed=0, **options):
    """A search until this many evaluations of the robot."""
    optimizer = GIBO(X0, scale=0.3, seed=seed, sources=costs, **options)
    go_on(optimizer, simulator, robots)
    return optimizer


def go_on(optimizer, simulator, robots):
    while len(optimizer.log.valued) < robots:
        for query in optimizer.ask():
            noise = 0.02 * np.random.default_rng(query.seed).standard_normal()
            optimizer.tell(query, (robot if query.source == "robot" else simulator)(query.x) + noise)


def batches(optimizer):
    """The source and the number of queries of each batch."""
    asked = [event.queries for event in optimizer.log.events if hasattr(event, "queries")]
    assert all(len({query.source for query in batch}) == 1 for batch in asked)
    return [(batch[0].source, len(batch)) for batch in asked]


def test_the_start_and_the_first_look_are_single_evaluations_of_the_machine():
    found = batches(run(good, 2))
    assert found[0] == ("robot", 1)
    assert found[-1] == ("robot", 1)
    assert {source for source, _ in found[1:-1]} == {"simulator"}


def test_a_good_simulator_saves_evaluations_and_a_worthless_one_is_left():
    with_good = run(good, 6)
    assert robot(with_good.best.x) > 0.2 * robot(np.array(X0))
    with_worthless = run(worthless, 30)
    assert not with_worthless._surrogate.uses_simulator
    assert batches(with_worthless)[-1][0] == "robot"
    assert robot(with_worthless.best.x) > 0.1 * robot(np.array(X0))


def test_the_values_of_the_machine_are_the_values():
    optimizer = run(good, 6)
    real = [e for e in optimizer.evaluations if e.source == "robot"]
    assert optimizer.log.valued == real
    assert optimizer.best_seen.value == max(e.value for e in real)
    assert any(np.array_equal(optimizer.best.x, e.x) for e in real)
    assert abs(optimizer.best.value - robot(optimizer.best.x)) < 0.2  # the simulator's level is 5 above
    assert abs(optimizer.at_start().value - robot(np.array(X0))) < 0.4
    assert optimizer.trend() is None


def test_the_simulator_costs_at_most_as_much_as_the_machine():
    for ratio in (3, 20):
        optimizer = run(good, 8, {"simulator": 1, "robot": ratio})
        counts = np.cumsum([[e.source == "simulator", e.source == "robot"] for e in optimizer.evaluations], axis=0)
        assert (counts[:, 0] <= ratio * counts[:, 1]).all()


def test_the_source_has_the_most_information_per_cost():
    """Against the decrease of the covariance's trace when the value is added to the model."""
    optimizer = run(good, 2)
    M_first = optimizer.settings.sizes[1]
    state = optimizer._rng.bit_generator.state
    information = optimizer._information(iterate_comes=False)
    gp = optimizer._model().gp
    t, gains = optimizer._iterate / optimizer.scale, {}
    for name, source in (("simulator", SIMULATOR), ("robot", MACHINE)):
        at_source = information.in_block(source)
        z = optimizer.settings.queries.choose(at_source, *optimizer._box(), 1, optimizer._rng, optimizer._directions)[0]
        after = gp.extend(z, 0.0, blocks=source)
        gains[name] = gp.jacobian(t).covariance.trace() - after.jacobian(t).covariance.trace()
        assert at_source(z) == pytest.approx(gains[name], rel=1e-8)
    breaks_even = gains["robot"] / gains["simulator"]
    assert breaks_even > 1.0
    for factor, chosen in ((0.99, "robot"), (1.01, "simulator")):
        optimizer._rng.bit_generator.state = state
        costs = {"simulator": 1e-3, "robot": 1e-3 * factor * breaks_even}
        optimizer.sources = Sources(costs)
        optimizer.sources.__dict__["can_afford"] = lambda log, more: True
        assert optimizer._source_and_count(optimizer.sources)[0] == chosen
        optimizer.sources.__dict__["can_afford"] = lambda log, more: False
        assert optimizer._source_and_count(optimizer.sources)[0] == "robot"
    assert optimizer._source_and_count(Sources(COSTS))[1] == M_first


def test_queries_do_not_depend_on_pending_values():
    first, second = run(good, 5), run(good, 5)
    batch, same = first.ask(), second.ask()
    for query in batch:
        first.tell(query, robot(query.x))
    for query in same[::-1]:
        assert query.id in {each.id for each in second.ask()}
        second.tell(query, robot(query.x))
    assert [query.x.tolist() for query in first.ask()] == [query.x.tolist() for query in second.ask()]


@pytest.mark.parametrize("robots", [1, 2, 7])
def test_a_saved_search_goes_on_as_if_it_had_not_been_saved(robots):
    optimizer = run(good, robots)
    again = GIBO.from_state(through_json(optimizer.state()))
    assert again.sources == optimizer.sources
    for each in (optimizer, again):
        go_on(each, good, robots + 3)
    assert [e.source for e in again.evaluations] == [e.source for e in optimizer.evaluations]
    assert [e.x.tolist() for e in again.evaluations] == [e.x.tolist() for e in optimizer.evaluations]


def test_an_unused_simulator_leaves_the_model_of_the_machine_alone():
    optimizer = run(worthless, 20)
    assert not optimizer._surrogate.uses_simulator
    alone = GIBO(X0, scale=0.3, sources=None)
    alone._surrogate = alone._surrogate.recall({**alone._surrogate.memo(), **hyperparameters(optimizer)})
    for e in optimizer.log.valued:
        alone.receive(alone.external(e.x), e.outcome, update=False)
    np.testing.assert_array_equal(alone._model().jacobian(X0).mean, optimizer._model().jacobian(X0).mean)


def hyperparameters(optimizer):
    return {"hyperparameters": optimizer._surrogate.memo()["hyperparameters"]}


def test_without_sources_nothing_of_them_is_in_queries_or_memos():
    optimizer = GIBO(X0, scale=0.3)
    for _ in range(2):
        for query in optimizer.ask():
            assert query.source is None
            optimizer.tell(query, robot(query.x))
    assert "uses_simulator" not in optimizer._surrogate.memo()
    assert optimizer.log.simulated == []
    assert optimizer.settings == Settings().resolve(D)


def test_own_points_belong_to_the_machine_and_queries_to_their_source():
    optimizer = GIBO(X0, scale=0.3, sources=COSTS)
    optimizer.tell(np.ones(D), 1.0)
    optimizer.tell(np.zeros(D), gibo.Outcome(0.5, source="robot"))
    with pytest.raises(InputError, match="source: expected 'robot' for query 2, got 'simulator'"):
        optimizer.tell(np.ones(D), 9.0, source="simulator")
    assert [e.value for e in optimizer.log.valued] == [1.0, 0.5]
    query = optimizer.ask()[0]
    assert (query.source, query.kind) == ("simulator", "simulated")
    with pytest.raises(InputError, match="source: expected 'simulator' for query 2, got 'robot'"):
        optimizer.tell(query, 2.0, source="robot")
    optimizer.tell(query, 2.0, source="simulator")
    assert [e.value for e in optimizer.log.simulated] == [2.0]


def test_failures_of_the_simulator_are_not_the_machines():
    optimizer = run(good, 2)
    while (query := optimizer.ask()[0]).source == "robot":
        optimizer.tell(query, robot(query.x))
    optimizer.tell(query, failed="diverged")
    assert all(e.failure is None for e in optimizer._seen())
    go_on(optimizer, good, 8)
    assert np.isfinite(optimizer.best.value)


def test_values_of_the_simulator_are_aligned_with_the_machines():
    y, sources = np.array([1.0, 3.0, 10.0, 20.0]), np.array([MACHINE, MACHINE, SIMULATOR, SIMULATOR])
    X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.0]])
    assert aligned(y, sources, X).tolist() == [1.0, 3.0, -7.0, 3.0]  # both were evaluated at the second point
    assert aligned(y, sources, X * [[1], [1], [1], [9]]).tolist() == [1.0, 3.0, -3.0, 7.0]  # the means are compared
    assert aligned(y, np.full(4, SIMULATOR), X).tolist() == y.tolist()


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["simulator", "robot"], "expected costs by name"),
        ("robot", "expected costs by name"),
        (3, "expected costs by name"),
        ({"robot": 1}, "expected two sources, a simulator and a machine"),
        ({"a": 1, "b": 2, "c": 3}, "expected two sources"),
        ({"simulator": 0, "robot": 1}, "simulator: expected a positive finite number, got 0"),
        ({"simulator": -1, "robot": 1}, "simulator: expected a positive finite number"),
        ({"simulator": "cheap", "robot": 1}, "simulator: expected a"),
        ({"simulator": 1, "robot": 1}, "expected different costs"),
        ({"": 1, "robot": 2}, "expected a name"),
    ],
)
def test_bad_sources(sources, message):
    with pytest.raises(InputError, match=message):
        GIBO(X0, sources=sources)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"limits": {"load": (None, 1.0)}}, "limits"),
        ({"settings": Settings(blocks="given")}, "blocks"),
        ({"settings": Settings(drift=True)}, "drift"),
        ({"settings": Settings(fit_at="queries")}, "fit_at='queries'"),
        ({"settings": Settings(standardize=False, warp=False)}, "standardize=False"),
        ({"settings": Settings(mean=gibo.means.LinearMean([0.0] * D), warp=False)}, "a mean that is a function"),
    ],
)
def test_options_that_do_not_go_with_sources(options, name):
    with pytest.raises(InputError, match=f"sources: cannot be combined with {name}"):
        GIBO(X0, sources=COSTS, **options)


def test_an_unknown_source_is_refused():
    optimizer = GIBO(X0, sources=COSTS)
    with pytest.raises(InputError, match="source: expected 'robot' for query 0, got 'bench'"):
        optimizer.tell(optimizer.ask()[0], 1.0, source="bench")
    with pytest.raises(InputError, match="source: expected a name"):
        optimizer.tell(optimizer.ask()[0], 1.0, source=3)
    plain = GIBO(X0)
    with pytest.raises(InputError, match="source: expected none in a run without sources, got 'robot'"):
        plain.tell(plain.ask()[0], 1.0, source="robot")
    broken = optimizer.state()
    text = json.dumps(broken).replace('"source": "robot"', '"source": 7')
    with pytest.raises(InputError):
        GIBO.from_state(json.loads(text))
