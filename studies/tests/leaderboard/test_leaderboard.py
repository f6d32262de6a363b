"""What is judged of a run, and the methods that take part."""

import json
import sys

import numpy as np
import pytest

from gibo import InputError, RandomSearch
from gibo.optimizers.base import Optimizer
from gibo.outcome import QUERY, Best
from gibo_studies.leaderboard import methods as methods_module
from gibo_studies.leaderboard.comparison import average_ranks
from gibo_studies.leaderboard.functions import Shifted, sphere
from gibo_studies.leaderboard.methods import METHODS, REACH, box, chosen_methods
from gibo_studies.leaderboard.run import look_at_a_run
from gibo_studies.leaderboard.task import Task
from gibo_studies.leaderboard.tasks import TASKS
from gibo_studies.study import missing
from gibo_studies.styles import line_style

TINY = Task("tiny", np.zeros(2), 1.0, Shifted("tiny", sphere, 2, "small"), (12, 24))


# -- what is judged ---------------------------------------------------------------------------------------------------


class Stubborn(Optimizer):
    """It recommends the point that it asked for k evaluations ago."""

    @property
    def best(self):
        told = self.evaluations
        return Best(told[-1].x, told[-1].value) if told else None

    def _propose(self):
        return [(np.array([float(self._iteration), 0.0]), QUERY)]

    def _update(self, batch):
        self._iteration += 1


def test_judged_is_the_recommended_point_after_exactly_so_many_evaluations():
    problem = TINY.make(0)
    looked = look_at_a_run(TINY, problem, Stubborn([0.0, 0.0]), [3, 7, 10])
    expected = [(n, problem.truth(np.array([n - 1.0, 0.0])), False) for n in (3, 7, 10)]
    assert [(look.spent, look.truth, look.at_start) for look in looked.looks] == expected
    assert looked.looks[0].believed != expected[0][1]  # what it was told is noisy


def test_a_run_that_ends_early_is_no_result():
    def broken(x, seed):
        raise ValueError("no light")

    problem = TINY.make(0)
    dark = type(problem)(broken, problem.truth, problem.reference)
    message = "the run ended early: stopped: 10 evaluations in a row failed"
    with pytest.raises(InputError, match=message), pytest.warns():
        look_at_a_run(TINY, dark, RandomSearch(TINY.start), [20])


# -- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_a_small_task(method):
    if missing(METHODS[method].needs):
        pytest.skip(f"needs {missing(METHODS[method].needs)}")
    optimizer = METHODS[method].make(TINY, TINY.scale, 3)
    assert optimizer.x0.tolist() == TINY.start.tolist()
    assert optimizer.seed == 3
    looked = look_at_a_run(TINY, TINY.make(0), optimizer, [0, 8])
    assert np.isfinite([look.truth for look in looked.looks]).all()
    again = look_at_a_run(TINY, TINY.make(0), METHODS[method].make(TINY, TINY.scale, 3), [0, 8])
    assert looked.looks == again.looks


OTHERS = ("lq-CMA-ES", "LRA-CMA-ES", "Optuna", "COBYQA", "Py-BOBYQA", "PyBADS")  # of other packages


def told(optimizer, values):
    for value in values:
        (query,) = optimizer.ask()
        optimizer.tell(query, value, failed=value is None)
    return optimizer


@pytest.mark.parametrize("method", [name for name in METHODS if name.startswith(OTHERS)])
def test_one_of_another_package_passes_over_a_failure_and_continues_from_its_state(method):
    if missing(METHODS[method].needs):
        pytest.skip(f"needs {missing(METHODS[method].needs)}")
    optimizer = told(METHODS[method].make(TINY, 1.0, 3), [0.1, 0.3, None, 0.2, 0.5, 0.4, 0.6])
    asked = [query.x.tolist() for query in optimizer.ask()]
    again = Optimizer.from_state(json.loads(json.dumps(optimizer.state())))
    assert [query.x.tolist() for query in again.ask()] == asked
    assert again.best.x.tolist() == optimizer.best.x.tolist()


def test_those_that_search_a_box_get_one():
    assert [bound.tolist() for bound in box(TINY, 3.0)] == [[-3.0 * REACH] * 2, [3.0 * REACH] * 2]
    assert box(TASKS["hyper9"], 3.0)[1].tolist() == [1.0] * 9


def test_the_scale_reaches_every_method():
    for name, method in METHODS.items():
        if not missing(method.needs):
            scales = [method.make(TASKS["gp8"], factor * 0.1, 0).scale for factor in (1.0, 3.0)]
            # In a box of its own, best practice measures by the box.
            expected = 1.0 if name == "Vanilla BO (best practice)" else 3.0
            assert (scales[1] / scales[0]).tolist() == pytest.approx([expected] * 8), name


# -- ranks ------------------------------------------------------------------------------------------------------------


def test_ranks_share_what_is_equal():
    assert average_ranks([0.5, 0.9, 0.5, 0.1]).tolist() == [2.5, 1.0, 2.5, 4.0]
    assert average_ranks([1.0, 1.0 + 1e-9]).tolist() == [1.5, 1.5]


# -- a user's own -----------------------------------------------------------------------------------------------------


def test_a_method_of_a_users_own_takes_part_by_its_place(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import gibo\nclass Near(gibo.RandomSearch): pass\nnumber = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(methods_module, "METHODS", dict(METHODS))
    assert chosen_methods(("mine:Near", "gibo (PAPER)", "mpd")) == ("GIBO (paper)", "MPD (our reading)", "mine:Near")
    assert type(methods_module.method_of("mine:Near").make(TINY, 1.0, 0)).__name__ == "Near"
    with pytest.raises(InputError, match="expected the place of an Optimizer class"):
        chosen_methods(("mine:number",))
    with pytest.raises(InputError, match="methods: 'SGD' is not in the leaderboard"):
        chosen_methods(("SGD",))
    sys.modules.pop("mine")


def test_every_method_has_a_line_of_its_own_and_so_has_a_users():
    lines = [tuple(line_style(name).values()) for name in (*METHODS, "mine:Near")]
    assert len(set(lines)) == len(METHODS) + 1
