"""The progress bar: a bar on a terminal and in a notebook, lines in a log."""

import io
import sys
import types

import pytest

import gibo
from gibo.runs.progress import Bar, Standing


def hill(x):
    return 1000.0 - float(((x - 1.0) ** 2).sum())


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes as the test says."""
    now = types.SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr("tqdm.std.time", lambda: now.seconds)
    return now


def a_terminal(monkeypatch):
    """In place of standard error; not a fixture, because pytest puts its own there between fixtures and test."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def test_a_terminal_shows_count_best_value_failures_and_a_pause(monkeypatch):
    terminal = a_terminal(monkeypatch)
    with Bar(12) as bar:
        bar.update(Standing(0, None, 0, [], None))
        bar.update(Standing(5, 12.345, 2, [], None, paused=True))
        paused = terminal.getvalue().rpartition("\r")[2]
        bar.update(Standing(12, 13.0, 2, [], None))
    assert paused.startswith("5/12 evaluations")
    assert "paused · best seen 12.35 · 2 failed" in paused
    last = terminal.getvalue().rpartition("\r")[2]
    assert last.startswith("12/12 evaluations")
    assert "paused" not in last
    assert last.endswith("\n")


def test_a_log_has_a_line_every_ten_seconds_and_the_last_one(capsys, clock):
    with Bar(300) as bar:
        bar.show(100)
        for done in range(101, 136):
            clock.seconds += 1.0
            bar.show(done, ["best seen 1"])
        bar.above("a line above")
    out, err = capsys.readouterr()
    assert out == ""
    counts = [line.partition(" ")[0] for line in err.splitlines()]
    assert counts == ["110/300", "120/300", "130/300", "a", "135/300"]
    assert err.splitlines()[-1] == "135/300 evaluations · 02:45 left · best seen 1"  # the speed is that of this start


def test_a_standard_error_that_cannot_be_written_is_no_reason_to_stop(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: True, write=full, flush=full))
    assert gibo.maximize(hill, [0.0], budget=3, progress=True).evaluations == 3
    monkeypatch.setattr(sys, "stderr", None)
    assert gibo.maximize(hill, [0.0], budget=3, progress=True).evaluations == 3


def test_of_a_run(capsys):
    result = gibo.minimize(lambda x: -hill(x), [0.0], budget=3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "3/3 evaluations" in err
    assert f"best seen {result.best_seen.value:.4g}" in err
    gibo.maximize(hill, [0.0], budget=3)
    assert capsys.readouterr() == ("", "")
