"""No silent loss and no silent wrong answer: two writers, the order of arrival, media that cannot be written to."""

import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from run_helpers import climb, content, forked, told_in

import gibo
import gibo.cli.manual
import gibo.runs.lock
import gibo.runs.manual
from gibo import GiboError, Journal, JournalError, RandomSearch, Status
from gibo.cli import main
from gibo.errors import InUseError
from gibo.runs.pools import InProcess
from gibo.runs.store import FILE

X0 = [0.0, 0.2]


# -- two writers ------------------------------------------------------------------------------------------------------


def test_there_is_one_writer_whatever_path_leads_to_the_journal(tmp_path):
    folder, link = tmp_path / "run", tmp_path / "other"
    climb(folder)
    link.symlink_to(folder)
    with Journal.open(folder):
        for path in folder.iterdir():
            if path.name not in (FILE, f"{FILE}-wal"):
                path.unlink()
        for other in (folder, link):
            for write in (Journal.open, lambda other: climb(other, pytest.fail, budget=20)):
                with pytest.raises(GiboError, match="in use by "):
                    write(other)
            assert len(told_in(other)) == 12  # readers go on reading
    assert climb(link, budget=15).evaluations == 15


def test_a_journal_with_a_second_name_is_read_but_not_written_to(tmp_path):
    """SQLite would keep a log for each of the names, and lose what is in the other one."""
    climb(tmp_path / "run")
    other = tmp_path / "other"
    other.mkdir()
    os.link(tmp_path / "run" / FILE, other / FILE)
    for folder in (tmp_path / "run", other):
        with pytest.raises(JournalError, match=r"has a second name \(a hard link\); copy it instead"):
            climb(folder, pytest.fail, budget=20)
    assert content(tmp_path / "run") == content(other)
    (other / FILE).unlink()
    assert climb(tmp_path / "run", budget=15).evaluations == 15


# -- by hand ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_hand(tmp_path, capsys):
    assert main(["init", str(tmp_path / "run"), "--dim", "2", "--maximize"]) == 0
    assert main(["ask", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    return tmp_path / "run"


def hold(folder, connection):
    with Journal.open(folder):
        connection.send("held")
        connection.recv()


@pytest.fixture
def held(by_hand, monkeypatch):
    """A run that another process holds, and how to make it let go."""
    monkeypatch.setattr(gibo.runs.lock, "SAY_AFTER", 0.0)
    ours, theirs = multiprocessing.Pipe()
    process = forked(hold, by_hand, theirs)
    theirs.close()
    ours.recv()

    def let_go():
        ours.send(None)
        process.join()

    yield by_hand, let_go
    process.kill()
    process.join()


def test_a_command_waits_for_another_process_and_says_so(held, monkeypatch, capsys):
    folder, let_go = held
    with monkeypatch.context() as patch:
        patch.setattr(gibo.runs.manual, "LOCK_PATIENCE", 0.1)
        assert main(["ask", str(folder)]) == 3  # it gives up
    waiting, given_up = capsys.readouterr().err.splitlines()
    assert waiting == "gibo: another process works on this run; waiting for it"
    assert ": in use by " in given_up
    assert main(["status", str(folder)]) == 0  # to read it nobody has to wait
    say = gibo.cli.manual._say_waiting
    monkeypatch.setattr(gibo.cli.manual, "_say_waiting", lambda: (say(), let_go()))
    capsys.readouterr()
    assert main(["tell", str(folder), "0", "1.5"]) == 0
    assert capsys.readouterr().err == f"{waiting}\n"
    assert len(told_in(folder)) == 1


# -- the order of arrival ---------------------------------------------------------------------------------------------


class Ordered(InProcess):
    """All that is asked is evaluated, in an order of its own, before any of it is told one by one."""

    order = staticmethod(sorted)

    def wait(self):
        if not self.done:
            while self.queue:
                super().wait()
            by_id = {e.id: e for e in self.arrived}
            self.done = [by_id[i] for i in self.order(by_id)]
            self.arrived = []

    def take(self):
        return [self.done.pop(0)] if self.done else []

    def __init__(self, objective):
        super().__init__(objective)
        self.done = []

    def drop_pending(self):
        return len(self.done)


def failing(*ids):
    """An objective that fails for these ids; it is in order in every pool that evaluates in order."""
    count = iter(range(1000))

    def objective(x):
        if next(count) in ids:
            raise OSError("it broke")
        return 1.0

    return objective


ORDERS = {
    "backwards": lambda ids: sorted(ids, reverse=True),
    "even ones first": lambda ids: sorted(ids, key=lambda i: (i % 2, i)),
}


@pytest.mark.filterwarnings("ignore::gibo.FailedEvaluationWarning")
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ((0, 2, 4), "the budget of 16 evaluations is spent"),  # three in a row where even ones arrive first
        ((7, 5, 6), "stopped: 3 evaluations in a row failed, the last one with OSError: it broke"),
        ((1, 2, 3), "stopped: 3 evaluations in a row failed, the last one with OSError: it broke"),
        ((1, 2, 9, 10), "the budget of 16 evaluations is spent"),
    ],
    ids=str,
)
def test_failures_in_a_row_are_those_of_consecutive_ids(ids, reason, order, monkeypatch):
    monkeypatch.setattr(Ordered, "order", staticmethod(order))
    monkeypatch.setattr("gibo.runs.api.make_pool", lambda objective, *_: Ordered(objective))
    result = gibo.run(RandomSearch(X0, batch=8), failing(*ids), budget=16, max_failures=3)
    assert result.reason == reason
    assert (result.status is Status.TOO_MANY_FAILURES) == reason.startswith("stopped")
    assert [e.id for e in result.failures] == sorted(ids)  # by id, whatever arrived first


# -- where nothing can be written -------------------------------------------------------------------------------------


def climb_and_die(folder):
    calls = []

    def objective(x):
        calls.append(x)
        if len(calls) == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    climb(folder, objective)


def test_on_a_read_only_file_system_a_run_is_read_rightly_or_not_at_all(disk, tmp_path, capsys):
    make, remount = disk
    folder = make(8000) / "run"
    process = forked(climb_and_die, folder)
    process.join()
    assert (folder / f"{FILE}-wal").stat().st_size > 0
    shutil.copytree(folder, tmp_path / "copy")
    remount("ro")
    try:
        told = len(told_in(folder))
    except JournalError as error:
        assert "copy the folder" in str(error)  # noqa: PT017
        told = 7
    assert told == len(told_in(tmp_path / "copy")) == 7
    remount("rw")
    (folder / f"{FILE}-shm").unlink()  # as in a copy of the other files
    remount("ro")
    with pytest.raises(JournalError, match="copy the folder"):
        told_in(folder)
    remount("rw")
    assert climb(folder, lambda x: 1.0).evaluations == 12
    before = content(folder)
    remount("ro")  # now it has ended
    assert content(folder) == before
    assert main(["export", str(folder)]) == 0
    capsys.readouterr()
    assert main(["tell", str(folder), "12", "1.0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(JournalError, match="readonly"):
        climb(folder, pytest.fail, budget=20)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_reader_in_the_writers_process_does_not_take_its_locks_away(tmp_path):
    """Of a file that is closed anywhere in a process, the system drops SQLite's locks of that whole process."""
    climb(tmp_path)
    with Journal.open(tmp_path) as journal:
        journal.begin({})

        def locks():
            inode = (tmp_path / FILE).stat().st_ino
            lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
            ours = [line for line in lines if f":{inode} " in line and f" {os.getpid()} " in line]
            return sorted(line.split(maxsplit=1)[1] for line in ours)

        before = locks()
        assert any("POSIX" in line for line in before)
        for _ in range(3):
            Journal.read(tmp_path).close()
            with pytest.raises(InUseError):
                Journal.open(tmp_path)
        assert locks() == before
