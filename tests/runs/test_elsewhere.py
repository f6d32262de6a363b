"""Values of points that nobody asked for: earlier data, and a file of them."""

import numpy as np
import pytest

import gibo
from gibo.cli import main
from gibo.errors import InputError
from gibo.parameters import Parameters, integer, log
from gibo.runs.manual import Description, ask, create, status, tell, tell_elsewhere, undo

DATA = [([1.0, 1.0], -1.0), (np.array([2.0, 1.5]), -0.3), ([0.5, 0.1], gibo.Outcome(-4.0))]


def hill(x):
    return -float(((x - 2.0) ** 2).sum())


def test_earlier_data_are_told_first_kept_and_not_counted(tmp_path):
    result = gibo.maximize(hill, [0.0, 0.0], data=DATA, budget=6, journal=tmp_path)
    assert result.evaluations == 9
    assert result.history.value[:3].tolist() == [-1.0, -0.3, -4.0]
    whole = gibo.maximize(hill, [0.0, 0.0], data=DATA, budget=10, journal=tmp_path)  # the same call goes on
    straight = gibo.maximize(hill, [0.0, 0.0], data=DATA, budget=10)
    assert whole.history.x.tolist() == straight.history.x.tolist()
    assert whole.history.x[3:].tolist() != gibo.maximize(hill, [0.0, 0.0], budget=10).history.x.tolist()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([([1.0], 2.0)], r"data\[0\]: x: expected a vector of 2"),
        ([([1.0, 2.0], None)], r"data\[0\]: value: expected a number, got None"),
        ([([1.0, 2.0], 1.0), 3.0], r"data\[1\]: expected a point and its value"),
        ([({"gain": 1.0}, 1.0)], r"data\[0\]: 'gain': expected a value for each of x0, x1"),
    ],
)
def test_data_that_are_none_are_refused_before_anything_is_told(data, text, tmp_path):
    with pytest.raises(InputError, match=text):
        gibo.maximize(hill, [0.0, 0.0], data=data, budget=3)


def test_points_from_elsewhere_by_hand_and_from_a_file(tmp_path, capsys):
    run, file, other = tmp_path / "run", tmp_path / "values.csv", tmp_path / "other"
    for folder in (run, other):
        main(["init", str(folder), "--dim", "2", "--scale", "0.5", "--maximize"])
    assert main(["tell", str(run), "--at", "x0=1,x1=-2.5", "-0.75"]) == 0
    assert main(["export", str(run), "--out", str(file)]) == 0
    assert main(["import", str(other), str(file)]) == 0
    for folder in (run, other):
        best = status(folder).result.best_seen
        assert (best.x.tolist(), best.value) == ([1.0, -2.5], -0.75)
    capsys.readouterr()
    for words, text in (
        (["tell", str(run), "--at", "x0=1", "2"], "'x1': expected a value for each of x0, x1"),
        (["tell", str(run), "--at", "x0", "2"], "--at: expected NAME=X"),
        (["tell", str(run), "--at", "x0=1,x1=2", "a"], "VALUE: expected a number, got 'a'"),
        (["import", str(run), str(tmp_path / "no.csv")], "there is no such file"),
    ):
        assert main(words) == 2
        assert text in capsys.readouterr().err
    file.write_text("x0,value\n1,2\n")
    assert main(["import", str(run), str(file)]) == 2
    assert "no x1" in capsys.readouterr().err


def test_the_search_starts_at_the_best_known_point_within_the_bounds(tmp_path):
    data = [*DATA, ([9.0, 9.0], 50.0)]
    result = gibo.maximize(hill, [0.0, 0.0], data=data, bounds=(-3, 3), budget=1, journal=tmp_path)
    assert result.history.x[-1].tolist() == [2.0, 1.5]
    assert result.history.x[3].tolist() == [9.0, 9.0]
    assert gibo.resume(tmp_path, hill, budget=2).start.x.tolist() == [2.0, 1.5]
    assert gibo.maximize(hill, [0.0, 0.0], bounds=(-3, 3), budget=3, journal=tmp_path).evaluations == 7
    with pytest.raises(InputError, match="x0"):
        gibo.maximize(hill, [0.1, 0.0], bounds=(-3, 3), budget=3, journal=tmp_path)


def test_by_hand_the_start_follows_what_is_imported_until_the_first_ask(tmp_path):
    run = tmp_path / "run"
    create(run, Description(["a", "b"], [0.0, 0.0], [1.0, 1.0], [-9.0, -9.0], [9.0, 9.0], minimize=True))
    data = [({"a": 1.0, "b": 2.0}, 3.0), ({"a": 5.0, "b": 5.0}, 1.0)]
    assert tell_elsewhere(run, data) == 2
    assert [status(run).result.iterate.tolist(), *[code(run)]] == [[5.0, 5.0], "nothing_asked"]
    undo(run)
    assert status(run).result.iterate.tolist() == [1.0, 2.0]
    undo(run)
    assert status(run).result.iterate.tolist() == [0.0, 0.0]
    assert tell_elsewhere(run, data) == 2
    assert ask(run).queries[0].x.tolist() == [5.0, 5.0]
    tell_elsewhere(run, [({"a": 6.0, "b": 5.0}, -1.0)])
    assert ask(run).queries[0].x.tolist() == [5.0, 5.0]


def code(run):
    return status(run).result.advice[0].code


@pytest.fixture
def exported(tmp_path):
    """A run with a log and an integer parameter, and its values as a CSV file."""
    run = tmp_path / "run"
    create(run, Description.of(Parameters(gain=log(0.1, 100), delay=integer(1, 9)), minimize=True))
    for query in ask(run).queries:
        tell(run, query.id, 1.0 + query.id % 2)
    assert main(["export", str(run), "--out", str(tmp_path / "values.csv")]) == 0
    return run, tmp_path / "values.csv"


def test_rows_that_a_run_has_are_not_imported_again(exported, tmp_path, capsys):
    run, file = exported
    n = status(run).result.evaluations
    for new, words in ((0, []), (n, ["--again"])):
        capsys.readouterr()
        assert main(["import", str(run), str(file), *words]) == 0
        assert capsys.readouterr().out == f"{n} rows: {new} new, {n - new} already known\n"
    assert status(run).result.evaluations == 2 * n
    create(tmp_path / "other", Description.of(Parameters(gain=log(0.1, 100), delay=integer(1, 9)), minimize=True))
    twice = tmp_path / "twice.csv"
    twice.write_text(file.read_text() + file.read_text().partition("\n")[2])
    for new in (2 * n, 0):
        capsys.readouterr()
        assert main(["import", str(tmp_path / "other"), str(twice)]) == 0
        assert capsys.readouterr().out.startswith(f"{2 * n} rows: {new} new")


@pytest.mark.parametrize(("separator", "point"), [(";", ","), ("\t", ","), (";", "."), ("\t", ".")])
def test_other_separators_and_decimal_commas(separator, point, exported, tmp_path, capsys):
    run, file = exported
    text = file.read_text().replace(",", separator).replace(".", point)
    (tmp_path / "other.csv").write_text(text, encoding="utf-8-sig")
    assert main(["import", str(run), str(tmp_path / "other.csv")]) == 0
    assert ": 0 new" in capsys.readouterr().out.splitlines()[-1].replace("rows", "")


def test_a_spreadsheet_executes_no_cell(tmp_path, capsys):
    run = str(tmp_path / "run")
    create(run, Description(["=a", "value"], [0.0, 0.0], [1.0, 1.0], [-9.0, -9.0], [9.0, 9.0]))
    tell(run, ask(run).queries[0].id, failed='=HYPERLINK("x")')
    tell(run, 1, -2.0)
    assert main(["export", run, "--out", f"{run}.csv"]) == 0
    text = (tmp_path / "run.csv").read_text()
    assert "'=HYPERLINK" in text
    assert text.startswith("id,iteration,kind,'=a,parameter value,value")
    capsys.readouterr()
    assert main(["import", run, f"{run}.csv"]) == 0
    assert capsys.readouterr().out == "1 rows: 0 new, 1 already known\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a head with x0, x1, value"),
        ("x0|x1|value\n1|2|3\n", "separated by commas, semicolons or tabs"),
        ("x0,x1,value\n1,2,3\n1,a,3\n", "line 3: x1: expected a finite number, got 'a'"),
        ("x0,x1,value\n1,2,nan\n", "line 2: value: expected a finite number"),
        ("x0,x1,value\n1\n1,2,3,4\n", None),
    ],
)
def test_files_that_are_none(text, message, tmp_path, capsys):
    main(["init", str(tmp_path / "run"), "--dim", "2", "--maximize"])
    (tmp_path / "values.csv").write_text(text)
    assert main(["import", str(tmp_path / "run"), str(tmp_path / "values.csv")]) == (0 if message is None else 2)
    assert (message or "") in capsys.readouterr().err


def test_noise_repeats_and_blocks_come_from_files_and_go_to_them(tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(["init", str(folder), "--dim", "1", "--maximize"]) == 0
    (tmp_path / "values.csv").write_text("x0,value,noise,repeats,block\n1,2.5,0.04,,monday\n2,3.5,,5,\n3,4.5,,,7\n")
    assert main(["import", str(folder), str(tmp_path / "values.csv")]) == 0
    assert main(["import", str(folder), str(tmp_path / "values.csv")]) == 0
    assert "0 new, 3 already known" in capsys.readouterr().out
    with gibo.Journal.read(folder) as journal:
        details = [e.outcome.details() for e, _ in journal.evaluations()]
        table = journal.columns()
    assert details == [{"noise": 0.04, "block": "monday"}, {"repeats": 5}, {"block": 7.0}]
    assert (table["noise"], table["repeats"]) == ([0.04, None, None], [None, 5, None])
    (tmp_path / "wrong.csv").write_text("x0,value,repeats\n9,2.5,2.5\n")
    assert main(["import", str(folder), str(tmp_path / "wrong.csv")]) == 2
    assert "repeats: expected a whole number" in capsys.readouterr().err
