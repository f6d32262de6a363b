"""The progress bar: a line that fits the terminal, lines in a log, a bar in a notebook."""

import io
import sys
import types

import numpy as np
import pytest

import gibo
from gibo.cli.train import _parts
from gibo.outcome import Evaluation
from gibo.runs import progress
from gibo.runs.progress import Standing, bar_over


def hill(x):
    return 1000.0 - float(((x - 1.0) ** 2).sum())


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def lines(self):
        """Each look of the line that stays in its place."""
        return self.getvalue().replace("\n", "").split("\r\x1b[2K")[1:]


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes as the test says."""
    now = types.SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


def a_terminal(monkeypatch):
    """In place of standard error; not a fixture, because pytest puts its own there between fixtures and test."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


PARTS = ["best seen 12.345", "now 11.2", "P(ascent) 0.97", "3 failed", "trial 1/10"]


@pytest.mark.parametrize("columns", [200, 110, 80, 60, 50, 40, 12])
def test_the_line_keeps_count_value_and_time_and_fits(columns, clock, monkeypatch):
    terminal = a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(columns))
    with bar_over(12000, "evaluations") as bar:
        bar.show(0)
        clock.seconds += 60.0
        bar.show(1200, PARTS)
    assert terminal.getvalue().endswith("\n")
    line = terminal.lines()[-1]
    assert len(line) < columns
    assert line.count("1200/12000") == 1 or columns < 20
    if columns >= 50:
        assert "best seen 12.345" in line
        assert line.endswith("9:00 left")
    assert ("━━──" in line) == (columns >= 200)
    assert ("trial 1/10" in line) == (columns >= 100)


def test_a_terminal_sees_the_end_and_not_every_moment(clock, monkeypatch):
    terminal = a_terminal(monkeypatch)
    with bar_over(1000, "cells") as bar:
        for done in range(1000):
            bar.show(done)
            clock.seconds += 0.01
        bar.above("a line above")
    assert 90 <= len(terminal.lines()) <= 110
    assert "999/1000 cells" in terminal.lines()[-1]
    assert "\r\x1b[2Ka line above\n" in terminal.getvalue()


@pytest.mark.parametrize(("seconds", "lines"), [(0.001, 10), (1.0, 30), (60.0, 300)])
def test_a_log_has_a_line_every_ten_seconds_or_ten_percent(seconds, lines, capsys, clock):
    with bar_over(300, "evaluations") as bar:
        bar.show(0)
        for done in range(1, 301):
            clock.seconds += seconds
            bar.show(done, ["best seen 1"])
    out, err = capsys.readouterr()
    assert out == ""
    found = err.splitlines()
    assert len(found) == lines
    assert found[-1] == "300/300 evaluations · best seen 1"
    assert "\r" not in err
    assert "━" not in err


def test_what_was_shown_last_is_in_the_log_when_it_ends_early(capsys, clock):
    def interrupted():
        with bar_over(300, "evaluations") as bar:
            bar.show(0)
            bar.show(7, ["best seen 1"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert capsys.readouterr().err == "7/300 evaluations · best seen 1 · 0:00 left\n"


def test_what_an_objective_says_cannot_command_a_terminal(monkeypatch):
    terminal = a_terminal(monkeypatch)
    with bar_over(3, "evaluations") as bar:
        bar.show(1, ["\x1b[31mred\r"])
    assert "\x1b[31m" not in terminal.getvalue()


def test_a_closed_standard_error_is_no_reason_to_stop(monkeypatch):
    closed = io.StringIO()
    closed.close()
    stream = types.SimpleNamespace(isatty=lambda: True, write=closed.write, flush=closed.flush)
    monkeypatch.setattr(sys, "stderr", stream)
    assert gibo.maximize(hill, [0.0], budget=3, progress=True).evaluations == 3


def test_a_notebook_has_one_bar_that_is_updated(monkeypatch, capsys):
    shown = []

    class Handle:
        def update(self, content, raw):
            shown.append(("update", content, raw))

    def display(content, raw, display_id):
        shown.append(("display", content, raw and display_id))
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    gibo.maximize(hill, [0.0], budget=3, progress=True)
    assert [kind for kind, *_ in shown].count("display") == 1
    assert all(raw is True for *_, raw in shown)
    *_, (_, content, _) = shown
    assert '<progress value="3" max="3"' in content["text/html"]
    assert "3/3 evaluations · best seen" in content["text/plain"]
    assert capsys.readouterr() == ("", "")
    shell.kernel = None  # IPython in a terminal
    gibo.maximize(hill, [0.0], budget=3, progress=True)
    assert "3/3 evaluations" in capsys.readouterr().err


def test_of_a_run(capsys):
    def fails(x):
        calls.append(x)
        if len(calls) == 2:
            raise RuntimeError("no")
        return hill(x)

    calls = []
    with pytest.warns(gibo.FailedEvaluationWarning):
        gibo.maximize(fails, [0.0, 0.0], budget=6, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "6/6 evaluations · best seen" in err
    assert "1 failed" in err
    result = gibo.minimize(hill, [0.0], budget=3, progress=True)
    assert f"best seen {result.best_seen.value:.4g}" in capsys.readouterr().err
    gibo.maximize(hill, [0.0], budget=3)
    assert capsys.readouterr() == ("", "")


def test_values_that_are_all_alike_have_no_probability_of_ascent():
    said = {}
    for name, value in {"alike": lambda x: -200.0, "different": lambda x: -float(x @ x)}.items():
        opt, parts, told = gibo.GIBO(np.zeros(2), scale=0.1), _parts("trial 1/1"), 0
        while opt.iteration < 2:
            for query in opt.ask():
                outcome = gibo.Outcome(value(query.x), info={"return": value(query.x)})
                opt.tell(query, outcome)
                told += 1
                said[name] = parts(Standing(told, 0.0, 0, [Evaluation(query, outcome)], opt))
    assert said["alike"] == ["best -200.0", "now -200.0", "all alike", "trial 1/1"]
    assert said["different"][2].startswith("P(ascent) ")
