"""A simulator beside the machine: where queries are evaluated, and whose values count."""

import json

import numpy as np
import pytest
from known_model import CHOICES, Noted

import gibo
from gibo import GIBO, InputError, Settings
from gibo._serialize import to_plain
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
    model = with_worthless.model()  # of the machine's values alone
    assert model.gp.blocks is None
    assert model.gp.n == sum(e.source == "robot" for e in with_worthless.evaluations)
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


def test_the_source_has_the_most_information_per_cost(monkeypatch):
    optimizer = run(good, 2, settings=Settings(queries=Noted()))
    state = through_json(optimizer.state())
    CHOICES.clear()
    optimizer.ask()
    gains = [float(choice.information(choice.Z[0])) for choice in CHOICES[:2]]  # in the simulator and on the machine
    breaks_even = gains[1] / gains[0]
    assert breaks_even > 1.0
    for affordable, factor, chosen in ((True, 0.99, "robot"), (True, 1.01, "simulator"), (False, 1.01, "robot")):
        monkeypatch.setattr(Sources, "can_afford", lambda self, log, more, affordable=affordable: affordable)
        state["arguments"]["sources"] = to_plain(Sources({"simulator": 1e-3, "robot": 1e-3 * factor * breaks_even}))
        again = GIBO.from_state(state)
        assert {query.source for query in again.ask()} == {chosen}


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
        ({"robot": 1}, "expected two sources, a simulator and a machine"),
        ({"simulator": 0, "robot": 1}, "simulator: expected a positive finite number, got 0"),
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
