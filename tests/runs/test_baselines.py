"""The start is evaluated again now and then, and the improvement is reported against it."""

import numpy as np
import pytest

import gibo
from gibo import ARS, CMAES, GIBO, InputError, RandomSearch, Settings, VanillaBO
from gibo.cli import main
from gibo.optimizers.log import Asked
from gibo.runs import manual
from gibo.web.snapshot import snapshot as page_data
from optimizer_helpers import noisy, snapshot

X0 = [0.0, 0.1]
SEARCHES = {
    "GIBO": lambda: GIBO(X0, scale=0.3),
    "limits": lambda: GIBO(X0, scale=0.3, limits=gibo.Limits({"load": (None, 5.0)}, careful=True)),
    "ARS": lambda: ARS(X0, scale=0.3, directions=3),
    "CMAES": lambda: CMAES(X0, scale=0.3),
    "RandomSearch": lambda: RandomSearch(X0, scale=0.3),
    "VanillaBO": lambda: VanillaBO(X0, scale=0.3, bounds=(-1.0, 1.0)),
}


def machine(x, seed):
    value = -float(((x - 0.5) ** 2).sum()) + 0.05 * float(np.random.default_rng(seed).standard_normal())
    return gibo.Outcome(value, measured={"load": float(x.sum())})


def by_iteration(evaluations):
    found = {}
    for e in evaluations:
        found.setdefault(e.iteration, []).append((e.kind, e.x.tolist()))
    return found


@pytest.mark.parametrize("name", SEARCHES)
def test_every_second_iteration_has_the_start_once(name, tmp_path):
    optimizer = SEARCHES[name]()
    result = gibo.run(optimizer, machine, budget=60, baseline=2, journal=tmp_path / "one")
    batches = by_iteration(result._optimizer.evaluations)
    *whole, _ = batches.items()
    assert len(whole) > 4
    for iteration, batch in whole:
        there = [kind for kind, x in batch if x == X0]
        assert ("baseline" in there) <= (iteration % 2 == 0)
        assert len(there) >= 1 or iteration % 2
        assert batch.count(("baseline", X0)) <= 1
    again = gibo.run(SEARCHES[name](), machine, budget=60, baseline=2, workers=2)
    assert again.history.x.tolist() == result.history.x.tolist()
    for budget in (7, 31, 60):
        parts = gibo.run(SEARCHES[name](), machine, budget=budget, baseline=2, journal=tmp_path / "parts")
    assert parts.history.x.tolist() == result.history.x.tolist()
    assert parts.advice == result.advice


def far(x, seed):
    return -1.0 - float((x**2).sum())


@pytest.mark.parametrize("name", ["ARS", "CMAES", "RandomSearch"])
def test_without_a_model_the_start_is_evaluated_once_beside_the_first_batch(name, tmp_path):
    alone = [query.x.tolist() for query in SEARCHES[name]().ask()]
    whole = gibo.run(SEARCHES[name](), far, budget=40, journal=tmp_path / "whole")
    there = [e.id for e in whole._optimizer.evaluations if e.kind == "baseline"]
    assert there == [len(alone)]
    assert whole.history.x[: len(alone)].tolist() == alone
    assert (whole.history.x[len(alone)].tolist(), whole.evaluations) == (X0, 40)
    for budget in (1, len(alone), 23, 40):
        parts = gibo.run(SEARCHES[name](), far, budget=budget, journal=tmp_path / "parts")
    assert parts.history.x.tolist() == whole.history.x.tolist()
    assert (parts.status, parts.advice) == (whole.status, whole.advice)
    known = gibo.run(SEARCHES[name](), far, budget=40, data=[(X0, -1.0)])
    assert all(e.kind != "baseline" for e in known._optimizer.evaluations)


def test_an_earlier_run_without_a_model_goes_on_as_it_began(tmp_path, monkeypatch):
    monkeypatch.setattr("gibo.runs.api.baseline_of", lambda optimizer, given: given)
    gibo.run(SEARCHES["ARS"](), far, budget=7, journal=tmp_path)
    monkeypatch.undo()
    result = gibo.run(SEARCHES["ARS"](), far, budget=30, journal=tmp_path)
    assert all(e.kind != "baseline" for e in result._optimizer.evaluations)
    assert result.advice[0].code == "start_unknown"


@pytest.mark.parametrize("name", ["limits", "CMAES"])
def test_a_saved_one_goes_on_bit_for_bit(name):
    one = SEARCHES[name]()
    one.baseline = 1
    for _ in range(25):
        query = one.ask()[0]
        one.tell(query, noisy(query), measured={"load": 0.0})
    again, computed = type(one).from_state(snapshot(one)), SEARCHES[name]()
    computed.baseline = 1
    computed.replay([Asked(e.queries, None) if isinstance(e, Asked) else e for e in one.log.events])
    for optimizer in (one, again, computed):
        for _ in range(10):
            query = optimizer.ask()[0]
            optimizer.tell(query, noisy(query), measured={"load": 0.0})
    assert snapshot(one) == snapshot(again) == snapshot(computed)


def test_after_a_new_start_that_one_is_evaluated_again():
    optimizer = SEARCHES["GIBO"]()
    optimizer.baseline = 2
    for i in range(30):
        if i == 11:
            optimizer.start_at([0.3, 0.3])
        query = optimizer.ask()[0]
        optimizer.tell(query, noisy(query))
    places = {tuple(e.x) for e in optimizer.evaluations if e.kind == "baseline" and e.iteration > optimizer.begun}
    assert places == {(0.3, 0.3)}


def ageing(speed):
    """A machine whose level falls with each evaluation, ten times as far as its hill is high."""
    count, rng = iter(range(1000)), np.random.default_rng(3)
    return lambda x: -float(((x - 0.5) ** 2).sum()) - speed * next(count) + 0.01 * rng.standard_normal()


@pytest.mark.parametrize("search", [gibo.maximize, gibo.minimize])
def test_the_improvement_is_that_over_the_start_now(search, tmp_path):
    sign = 1.0 if search is gibo.maximize else -1.0

    def run(**options):
        f, settings = ageing(0.05), Settings(drift=True)
        return search(lambda x: sign * f(x), X0, budget=80, scale=0.2, settings=settings, **options)

    result, plain = run(baseline=2, journal=tmp_path), run()
    assert plain.advice[0].code == "no_improvement"  # all values fell
    assert result.advice[0].code == "improved"
    assert "at the start (evaluated again " in result.advice[0].text
    now = sign * (-0.41 - 0.05 * 79)
    assert abs(result.start.value - now) < 0.15
    assert 0.2 < sign * (result.value - result.start.value) < 0.5
    assert page_data(tmp_path)["verdict"]["text"] == result.advice[0].text


def test_a_file_of_parameters_has_it(tmp_path, capsys):
    file, run = tmp_path / "bench.toml", tmp_path / "run"
    file.write_text("minimize = false\nbaseline = 1\n[parameters.gain]\nstart = 0.5\nscale = 0.1\n")
    assert main(["init", str(run), "--parameters", str(file)]) == 0
    kinds = []
    for _ in range(6):
        query = manual.ask(run).queries[0]
        kinds.append((query.kind, query.x.tolist() == [0.5]))
        manual.tell(run, query.id, -float(query.x[0] ** 2))
    assert kinds[2][0] == "iterate"
    assert ("baseline", True) in kinds
    assert main(["init", str(tmp_path / "x"), "--parameters", str(file), "--baseline", "2"]) == 2
    assert "baseline: the file already" in capsys.readouterr().err


def test_a_run_keeps_to_it(tmp_path):
    gibo.maximize(machine, X0, budget=10, scale=0.3, baseline=1, journal=tmp_path)
    with pytest.raises(InputError, match="baseline was 1, now 2"):
        gibo.maximize(machine, X0, budget=20, scale=0.3, journal=tmp_path, baseline=2)
    gibo.maximize(machine, X0, budget=15, scale=0.3, journal=tmp_path)
    result = gibo.resume(tmp_path, machine, budget=20)
    assert result.history.x.tolist() == gibo.maximize(machine, X0, budget=20, scale=0.3, baseline=1).history.x.tolist()
