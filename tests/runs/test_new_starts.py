"""A run is given another start: what was pending is withdrawn, what was told stays, and the journal has it."""

import numpy as np
import pytest

import gibo
from gibo import GIBO, InputError, Journal, Limits, Settings
from gibo.cli import main
from gibo.optimizers.log import Started
from gibo.runs import manual
from gibo.runs.control import held_here
from gibo.runs.manual import abort, start_at
from gibo.runs.session import Session
from gibo.web.bench import ManualBench

X0 = [0.0, 0.0]
ELSEWHERE = [0.5, 0.25]


def hill(x):
    return -float(((np.asarray(x) - 1.0) ** 2).sum())


def told(optimizer, count):
    """Tell so many values of a hill."""
    for _ in range(count):
        query = optimizer.ask()[0]
        optimizer.tell(query, hill(query.x))
    return optimizer


def climbing(count=5, **options):
    return told(GIBO(X0, scale=0.3, **options), count)


# -- the optimiser ----------------------------------------------------------------------------------------------------


def test_it_is_recommended_until_another_point_is_surely_better():
    optimizer = GIBO(X0, scale=0.3, settings=Settings(M=2, M_first=2))
    told(optimizer, 9)
    assert optimizer.best.x.tolist() != X0
    top = max(optimizer.evaluations, key=lambda e: e.value).x
    optimizer.start_at(top)
    assert optimizer.best.x.tolist() == optimizer.at_start().x.tolist() == top.tolist()
    optimizer.start_at([3.0, 3.0])  # nothing is known of it
    assert optimizer.best.x.tolist() == [3.0, 3.0]
    told(optimizer, 1)
    assert optimizer.best.x.tolist() != [3.0, 3.0]  # what was told before is surely better
    assert optimizer.at_start().x.tolist() == [3.0, 3.0]


def test_before_the_first_query_it_replaces_x0(bench):
    optimizer = GIBO(X0, scale=0.3)
    optimizer.start_at(ELSEWHERE)
    assert optimizer.x0.tolist() == optimizer.ask()[0].x.tolist() == ELSEWHERE
    go_on_from(bench, *ELSEWHERE)
    assert manual.ask(bench).queries[0].x.tolist() == ELSEWHERE


def test_a_careful_search_looks_at_the_new_start_first():
    optimizer = GIBO(X0, scale=0.3, limits=Limits({"load": (None, 0.5)}, careful=True))
    (query,) = optimizer.ask()
    optimizer.tell(query, hill(query.x), measured={"load": 0.0})
    optimizer.start_at(ELSEWHERE)
    (query,) = optimizer.ask()
    optimizer.tell(query, hill(query.x), measured={"load": 0.75})
    with pytest.raises(InputError, match=r"load is 0.75, above its upper limit 0.5. Begin at a point that satisfies"):
        optimizer.ask()
    optimizer.start_at(X0)
    (query,) = optimizer.ask()
    optimizer.tell(query, hill(query.x), measured={"load": 0.0})
    assert [query.kind for query in optimizer.ask()] == ["query"]


# -- by hand ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path):
    run = tmp_path / "run"
    assert main(["init", str(run), "--dim", "2", "--maximize", "--scale", "0.3"]) == 0
    return run


def tell_next(run, count):
    for _ in range(count):
        query = manual.ask(run).queries[0]
        manual.tell(run, query.id, hill(query.x))


def state_of(folder):
    with Journal.read(folder) as journal:
        return Session.of(journal).optimizer.state()


def go_on_from(folder, x0, x1):
    with Journal.open(folder) as journal:
        start_at(journal, {"x0": x0, "x1": x1})


def test_each_command_is_a_process_and_the_run_is_that_of_one_optimiser(bench, capsys):
    expected = climbing(4)
    tell_next(bench, 4)
    manual.ask(bench)
    assert main(["start", str(bench), "--at", "x0=0.5,x1=0.25"]) == 0
    assert "the start is x0 = 0.5, x1 = 0.25; next: gibo ask" in capsys.readouterr().out
    expected.ask()
    expected.start_at(ELSEWHERE)
    assert state_of(bench) == expected.state()
    go_on_from(bench, 0.1, 0.1)  # twice, with and without a batch between
    manual.ask(bench)
    go_on_from(bench, 0.2, 0.2)
    expected.start_at([0.1, 0.1])
    expected.ask()
    expected.start_at([0.2, 0.2])
    assert state_of(bench) == expected.state()
    tell_next(bench, 7)
    told(expected, 7)
    assert state_of(bench) == expected.state()
    assert manual.status(bench).result.start.x.tolist() == [0.2, 0.2]
    with Journal.read(bench) as journal:
        kinds = [(each.kind, each.body["x"], each.body["withdrawn"]) for each in journal.actions()]
        pending = Session.of(journal).optimizer.log.pending
    assert [x for _, x, _ in kinds] == [ELSEWHERE, [0.1, 0.1], [0.2, 0.2]]
    assert kinds[0][2] == [4, 5]
    assert [query.id for query in manual.status(bench).pending] == sorted(pending)


def test_what_was_withdrawn_is_not_told_and_what_led_to_a_start_not_taken_back(bench, capsys):
    tell_next(bench, 2)
    go_on_from(bench, *ELSEWHERE)
    assert main(["tell", str(bench), "2", "1.0"]) == 2
    assert "query 2 is unknown; no query is pending" in capsys.readouterr().err
    with pytest.raises(InputError, match="there is nothing to take back"):
        manual.undo(bench)
    tell_next(bench, 1)
    assert manual.undo(bench) == [3]
    assert manual.ask(bench).queries[0].x.tolist() == ELSEWHERE
    with Journal.open(bench) as journal:
        assert abort(journal) == {"x0": 0.5, "x1": 0.25}


def test_a_program_sets_a_start_aborts_and_goes_on(bench):
    with ManualBench(bench) as served:
        first = served.ask()["queries"][0]
        served.tell({"id": first["id"], "value": 1.0})
        assert served.start({"parameters": {"x0": 0.5, "x1": 0.25}}) == {"start": {"x0": 0.5, "x1": 0.25}}
        query = served.ask()["queries"][0]
        assert (query["kind"], query["x"]) == ("iterate", ELSEWHERE)
        assert served.abort({"reason": "smoke"}) == {"set": {"x0": 0.5, "x1": 0.25}}
        with pytest.raises(InputError, match=r"this run was aborted; set x0 = 0.5, x1 = 0.25"):
            served.ask()
        assert served.status()["aborted"] == {"x0": 0.5, "x1": 0.25}
        assert served.abort({"revoke": True}) == {"set": None}
        assert served.ask()["queries"][0] == query
        assert served.abort({"parameters": {"x0": 0, "x1": 0.1}}) == {"set": {"x0": 0.0, "x1": 0.1}}
    with pytest.raises(InputError, match="this run was aborted"):
        manual.ask(bench)


# -- a run that goes on -----------------------------------------------------------------------------------------------


class At:
    """A progress bar that makes a request once so many evaluations are told."""

    def __init__(self, folder, count, request):
        self.folder, self.count, self.request = folder, count, request

    def update(self, standing):
        if standing.spent >= self.count and self.request is not None:
            request, self.request = self.request, None
            assert held_here(self.folder).act(request) == {"ok": True, "recorded": True}


START = {"action": "start", "at": {"x0": 0.5, "x1": 0.25}}


def climb(folder, budget=16, **options):
    return gibo.maximize(hill, X0, scale=0.3, budget=budget, journal=folder, **options)


@pytest.mark.parametrize("options", [{}, {"workers": 2}], ids=["here", "workers"])
def test_a_running_run_goes_on_from_there_and_after_a_stop(options, tmp_path):
    whole = climb(tmp_path / "whole", progress=At(tmp_path / "whole", 5, START), **options)
    assert (whole.evaluations, whole.failures) == (16, ())  # what was withdrawn is neither spent nor failed
    at = [e.x.tolist() for e in whole._optimizer.evaluations].index(ELSEWHERE)
    assert any(isinstance(event, Started) for event in whole._optimizer.log.events)
    if not options:  # with workers it depends on when the request comes
        assert at == 5
    climb(tmp_path / "parts", budget=10, progress=At(tmp_path / "parts", 5, START), **options)
    parts = climb(tmp_path / "parts")
    if not options:
        assert parts.history.x.tolist() == whole.history.x.tolist()
    with Journal.read(tmp_path / "parts") as journal:
        again = Session.of(journal).optimizer
    assert again.best.x.tolist() == parts.x.tolist()
    assert parts.start.x.tolist() == ELSEWHERE


@pytest.mark.parametrize("options", [{}, {"workers": 2}], ids=["here", "workers"])
def test_a_running_run_is_aborted_at_once(options, tmp_path):
    request = {"action": "abort", "reason": "smoke", "at": {"x0": 0.1, "x1": 0.2}}
    result = climb(tmp_path, progress=At(tmp_path, 5, request), **options)
    assert result.status is gibo.Status.STOPPED
    assert result.reason == "aborted: smoke"
    assert result.evaluations - 5 <= options.get("workers", 0)
    assert manual.status(tmp_path).aborted == {"x0": 0.1, "x1": 0.2}
    with pytest.raises(InputError, match=r"this run was aborted; set x0 = 0.1, x1 = 0.2. To go on: gibo abort"):
        climb(tmp_path)
    assert main(["abort", str(tmp_path), "--revoke"]) == 0
    assert manual.status(tmp_path).state == "ended"
    whole = gibo.maximize(hill, X0, scale=0.3, budget=16)
    assert climb(tmp_path).history.x.tolist() == whole.history.x.tolist()
