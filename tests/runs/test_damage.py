"""What is no journal is named, and damage is never taken for content."""

import re
import shutil
import sqlite3

import pytest
from run_helpers import add_row, climb, columns_of, content

import gibo
from gibo import InputError, Journal, JournalError
from gibo.runs.store import FILE, TABLES

# -- what is no journal -----------------------------------------------------------------------------------------------


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE evaluations (number INTEGER PRIMARY KEY, value REAL)")
        connection.execute("INSERT INTO evaluations VALUES (1, 2.0)")
    connection.close()


def of_the_future(path):
    climb(path.parent, budget=3)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 4")
    connection.close()


def said_to_be_older(path):
    climb(path.parent, budget=3)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.close()


def without_a_table(path):
    climb(path.parent, budget=3)
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE facts")
    connection.close()


NOT_JOURNALS = {
    "foreign-database": (foreign_database, "not a journal of gibo"),
    "text": (lambda path: path.write_text("a,b\n1,2\n" * 500), "file is not a database"),
    "short-text": (lambda path: path.write_text("x"), "not a journal of gibo"),
    "newer": (of_the_future, "a journal of version 4, but this gibo knows versions up to 3; update gibo"),
    "older-by-its-word": (said_to_be_older, "the journal is damaged (gibo did not make its table views)"),
    "lost-table": (without_a_table, "no such table: facts"),
}


def whole_read(folder):
    with Journal.read(folder) as journal:
        return journal.spec()


@pytest.mark.parametrize(("make", "words"), NOT_JOURNALS.values(), ids=NOT_JOURNALS.keys())
def test_what_is_no_journal_is_named_in_one_line_and_left_as_it_is(tmp_path, make, words):
    path = tmp_path / FILE
    make(path)
    before = path.read_bytes()
    calls = []
    for use in (whole_read, lambda f: gibo.resume(f, calls.append), lambda f: climb(f, calls.append)):
        with pytest.raises((JournalError, InputError), match=re.escape(words)) as caught:
            use(tmp_path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == before
    assert not calls


@pytest.mark.parametrize("use", [Journal.read, Journal.open, lambda f: gibo.resume(f, abs)], ids=["read", "open", "go"])
def test_where_there_is_no_run_nothing_is_made(tmp_path, use):
    with pytest.raises(InputError, match=r"nowhere: there is no run; expected a folder with journal\.sqlite"):
        use(tmp_path / "nowhere")
    assert not any(tmp_path.iterdir())


def test_a_path_under_a_file_is_an_error_before_any_evaluation(tmp_path):
    (tmp_path / "file").write_text("mine")
    calls = []
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(JournalError, match=r"file.*cannot be read or written: (File exists|Not a directory)"):
            climb(folder, calls.append)
    assert not calls
    assert (tmp_path / "file").read_text() == "mine"


# -- damage -----------------------------------------------------------------------------------------------------------


def make_sound(folder):
    """A cleanly closed journal with 40 evaluations, failures, gradients and two starts."""
    climb(folder, budget=25)
    climb(folder, budget=40, retries=1)
    assert not (folder / f"{FILE}-wal").exists()


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    make_sound(folder)
    return folder


def copy_with_every_table(sound, folder):
    shutil.copy(sound / FILE, folder / FILE)
    add_row(folder, "moves", 3, 1)
    add_row(folder, "actions", 0, 1.7e9, 3, "remark", '{"text": "warm"}')
    add_row(folder, "views", "test", 3, "[1.0]")
    return sqlite3.connect(folder / FILE, isolation_level=None)


def every_use(calls):
    """All that opens a journal: what is refused once is refused always."""
    yield content
    yield Journal.open
    yield lambda folder: gibo.resume(folder, calls.append, budget=50)
    yield lambda folder: climb(folder, calls.append, budget=50)


def assert_refused_by_all(folder, words):
    before, calls = (folder / FILE).read_bytes(), []
    for use in every_use(calls):
        with pytest.raises(JournalError, match=f"damaged .{words}.*; restore a copy") as caught:
            use(folder)
        assert "\n" not in str(caught.value)
        assert (folder / FILE).read_bytes() == before
    assert not calls


@pytest.mark.parametrize("table", TABLES)
def test_a_change_that_sqlite_cannot_see_is_seen(sound, tmp_path, table):
    connection = copy_with_every_table(sound, tmp_path)
    (first,) = connection.execute(f"SELECT min(rowid) FROM {table}").fetchone()
    change = "17" if columns_of(table)[-1] == "batch" else "'[1]'"
    connection.execute(f"UPDATE {table} SET {columns_of(table)[-1]} = {change} WHERE rowid = ?", (first,))
    connection.close()
    assert_refused_by_all(tmp_path, f"a row of {table} does not match its checksum")


@pytest.mark.parametrize("table", TABLES)
def test_rows_that_are_gone_are_missed(sound, tmp_path, table):
    connection = copy_with_every_table(sound, tmp_path)
    connection.execute(f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
    connection.close()
    assert_refused_by_all(tmp_path, f"rows of {table} are missing")


def test_a_changed_tally_is_seen(sound, tmp_path):
    connection = copy_with_every_table(sound, tmp_path)
    connection.execute("UPDATE tally SET content = replace(content, 'moves', 'doves')")
    connection.close()
    assert_refused_by_all(tmp_path, "its tally does not match its checksum")


@pytest.mark.parametrize(
    ("text", "damage"),
    [
        (b"CREATE TABLE queries", b"CREATE TABLE quer\xffes"),
        (b"Traceback (most", b"\xd2raceback (most"),
        (b"Traceback (most", b"\xd2raceback full,"),  # no words of ours: the text is in SQLite's message
    ],
    ids=["schema", "row", "words"],
)
def test_what_is_no_text_any_more_is_damage_in_one_line(sound, tmp_path, text, damage):
    (tmp_path / FILE).write_bytes((sound / FILE).read_bytes().replace(text, damage, 1))
    with pytest.raises(JournalError, match="the journal is damaged") as caught:
        content(tmp_path)
    assert "\n" not in str(caught.value)
