"""The sampler with the real Optuna."""

import pickle
import subprocess
import sys
import threading

import numpy as np
import optuna
import pytest
from optuna.search_space import intersection_search_space
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from gibo import InputError
from gibo.integrations.optuna import BATCH_KEY, EXTRA_KEY, EXTRA_ROUNDS, QUERY_KEY, GIBOSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)

OPTIMUM = np.array([0.3, -1.2, 2.0, 0.7])


def smooth(trial):
    x = np.array([trial.suggest_float(f"x{i}", -5, 5) for i in range(4)])
    return float(((x - OPTIMUM) ** 2 * [1.0, 2.0, 0.5, 1.0]).sum())


def make(objective=smooth, trials=0, direction="minimize", seed=0, storage=None, **options):
    study = optuna.create_study(sampler=GIBOSampler(seed=seed, **options), direction=direction, storage=storage)
    study.optimize(objective, n_trials=trials)
    return study


def queries(study):
    return [t for t in study.trials if QUERY_KEY in t.system_attrs]


def test_the_same_search_maximised_by_ask_and_tell_and_continued_by_another_sampler(monkeypatch):
    expected = [t.params for t in make(trials=20).trials]
    assert expected[:12] != [t.params for t in make(trials=12, seed=1).trials]
    assert expected == [t.params for t in make(lambda trial: -smooth(trial), 20, direction="maximize").trials]
    study = make(trials=6)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.sampler.reseed_rng()
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, smooth(trial))
    monkeypatch.setattr("gibo.integrations.optuna.PIECE", 100)  # so that the state is kept in pieces
    study.optimize(smooth, n_trials=4)
    assert max(t.system_attrs.get(BATCH_KEY, {"pieces": 0})["pieces"] for t in study.trials) > 5
    study.sampler = GIBOSampler(seed=5)  # reads the state
    study.optimize(smooth, n_trials=4)
    assert [t.params for t in study.trials] == expected


def test_whole_numbers_and_steps_are_modelled_where_they_were_evaluated():
    def objective(trial):
        delay, even = trial.suggest_int("delay", 1, 9), trial.suggest_int("even", 2, 20, step=2)
        gain, angle = trial.suggest_float("gain", 0.1, 10, log=True), trial.suggest_float("angle", 0.0, 1.0, step=0.25)
        units = trial.suggest_int("units/first", 1, 512, log=True)
        trial.suggest_float("fixed", 1, 1)  # is no hindrance
        assert (type(delay), type(even), type(units)) == (int, int, int)
        assert (even in range(2, 21, 2), 0.1 <= gain <= 10, angle in (0.0, 0.25, 0.5, 0.75, 1.0)) == (True,) * 3
        return -((delay - 5) ** 2) - (even - 10) ** 2 - gain - angle - abs(np.log(units / 64))

    sampler = GIBOSampler(seed=0)
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.optimize(objective, n_trials=14)
    for again in (sampler, GIBOSampler(seed=0)):  # and as another process finds it in the storage
        again.sample_relative(study, study.ask()._cached_frozen_trial, again.infer_relative_search_space(study, None))
        X = np.array([e.x for e in again._search.optimizer.evaluations])
        assert len(X) >= 10
        names = [name for name in intersection_search_space(study.get_trials()) if name != "fixed"]
        whole, stepped = X[:, [names.index("delay"), names.index("even")]], X[:, names.index("angle")] * 4
        assert np.array_equal(whole, np.round(whole))
        assert (whole[:, 1] % 2 == 0).all()
        assert np.array_equal(stepped, np.round(stepped))


def test_the_first_trial_is_the_start_and_the_search_begins_at_the_best():
    assert make(trials=1).trials[0].params == dict.fromkeys(["x0", "x1", "x2", "x3"], 0.0)
    study = make(trials=2, start={"x0": 1.0, "x3": -1.0})
    assert study.trials[0].params == {"x0": 1.0, "x1": 0.0, "x2": 0.0, "x3": -1.0}
    assert study.trials[1].params == study.trials[0].params  # the iterate


def test_the_recommendation_is_the_models_and_not_the_luckiest_trial():
    rng = np.random.default_rng(0)
    study = make(lambda trial: smooth(trial) + 0.2 * rng.standard_normal(), trials=80)
    params, value = study.sampler.recommend(study)
    found = np.array([params[f"x{i}"] for i in range(4)])
    assert np.abs(found - OPTIMUM).max() < 1.0
    assert abs(value) < 0.5
    assert study.best_value < value


def test_a_trial_enqueued_in_between_counts_as_a_value_from_elsewhere_and_takes_no_query():
    study = make()
    study.enqueue_trial({"x0": 0.5, "x1": -1.0, "x2": 1.5, "x3": 1.0})
    study.optimize(smooth, n_trials=7)
    assert study.trials[0].params == study.trials[1].params == {"x0": 0.5, "x1": -1.0, "x2": 1.5, "x3": 1.0}
    study.enqueue_trial({"x0": 0.3, "x1": -1.2, "x2": 2.0, "x3": 0.7})
    study.enqueue_trial({"x0": 4.0})  # the others at the iterate
    study.optimize(smooth, n_trials=12)
    enqueued = [t for t in study.trials if "fixed_params" in t.system_attrs]
    assert len(enqueued) == 3
    assert not any(QUERY_KEY in t.system_attrs for t in enqueued)
    assert enqueued[2].params["x0"] == 4.0
    assert study.sampler._search.told == {t.number for t in study.trials[:-1]}
    assert len(study.sampler._search.optimizer.evaluations) == 18
    assert study.sampler.recommend(study).value < 0.2  # the trial at the optimum counts


def test_failed_and_pruned_trials_are_passed_over():
    calls = iter(range(1000))

    def objective(trial):
        value, i = smooth(trial), next(calls)
        if i % 10 == 3:
            raise ValueError("the robot fell")
        if i % 10 == 4:
            trial.report(1e9, 0)  # would ruin the model
            raise optuna.TrialPruned
        return float("nan") if i % 10 == 7 else value

    study = make(lambda trial: smooth(trial) * np.inf, trials=2)
    assert queries(study) == []  # there is no value to begin with
    with pytest.raises(InputError, match="no complete trial"):
        study.sampler.recommend(study)
    study.optimize(objective, n_trials=80, catch=(ValueError,))
    states = {t.state for t in study.trials}
    assert states == {TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED}
    assert study.best_value < 0.2


def test_choices_are_sampled_independently_and_the_rest_is_searched(caplog):
    def objective(trial):
        return smooth(trial) + {"a": 0.0, "b": 1.0}[trial.suggest_categorical("mode", ["a", "b"])]

    optuna.logging.enable_propagation()
    try:
        study = make(objective, trials=40)
    finally:
        optuna.logging.disable_propagation()
    assert {t.params["mode"] for t in study.trials} == {"a", "b"}
    assert study.best_value < 0.5
    assert len([record for record in caplog.records if "mode: sampled by RandomSampler" in record.message]) == 1


def test_a_search_space_that_changes_starts_a_new_search_with_all_values():
    def objective(trial):
        value = smooth(trial)
        return value if trial.number >= 20 else value + 0.0 * trial.suggest_float("extra", 0, 1)

    study = make(objective, trials=60)
    keys = [t.system_attrs[BATCH_KEY]["space"] for t in study.trials if BATCH_KEY in t.system_attrs]
    assert len(set(keys)) == 2
    assert study.best_value < 0.2


def test_wrong_options_and_two_objectives_are_refused():
    two = optuna.create_study(directions=["minimize", "maximize"], sampler=GIBOSampler())
    for wrong in (lambda: make(scale=0.0), lambda: make(trials=1, start={"x0": 7.0}), lambda: two.optimize(smooth, 1)):
        with pytest.raises(InputError):
            wrong()


def test_two_threads_share_one_search():
    both = threading.Barrier(2, timeout=60)

    def objective(trial):
        value = smooth(trial)
        both.wait()  # always two at the same time
        return value

    study = optuna.create_study(sampler=GIBOSampler(seed=0))
    study.optimize(objective, n_trials=60, n_jobs=2)
    claims = [(t.system_attrs[QUERY_KEY]["token"], t.system_attrs[QUERY_KEY]["id"]) for t in queries(study)]
    assert len(claims) == len(set(claims))
    assert len(claims) > 35
    assert study.best_value < 0.2


def test_while_all_queries_are_out_extra_points_are_evaluated_and_at_last_they_are_passed_over():
    study = make(trials=10)
    open_trials = []
    while True:  # take all queries of a batch, and tell none of them
        trial = study.ask()
        smooth(trial)
        if EXTRA_KEY in study.trials[trial.number].system_attrs:
            break
        open_trials.append(trial)
    head = study.sampler._search.token
    study.tell(trial, smooth(trial))
    study.optimize(smooth, n_trials=EXTRA_ROUNDS * len(open_trials) - 1)
    assert study.sampler._search.token == head
    study.optimize(smooth, n_trials=1)
    assert study.sampler._search.token != head
    before = len(study.sampler._search.optimizer.evaluations)
    study.tell(open_trials[0], smooth(open_trials[0]))  # it was not lost, only slow
    study.sampler.recommend(study)
    assert len(study.sampler._search.optimizer.evaluations) == before + 2  # and the trial before
    study.optimize(smooth, n_trials=40)
    assert study.best_value < 0.2


WORKER = """
import sys, optuna
from gibo.integrations.optuna import GIBOSampler
from optuna.storages.journal import JournalFileBackend
storage = optuna.storages.JournalStorage(JournalFileBackend(sys.argv[1]))
study = optuna.load_study(study_name="s", storage=storage, sampler=GIBOSampler(seed=int(sys.argv[2])))
study.optimize(lambda t: sum((t.suggest_float(f"x{i}", -5, 5) - i / 2) ** 2 for i in range(4)), n_trials=20)
"""


def test_two_processes_on_one_storage_share_one_search(tmp_path):
    file = str(tmp_path / "study.log")
    study = optuna.create_study(study_name="s", storage=JournalStorage(JournalFileBackend(file)))
    commands = [[sys.executable, "-W", "error", "-c", WORKER, file, str(seed)] for seed in (0, 1)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert len(study.trials) == 40
    assert study.best_value < 0.5
    batches = [t.system_attrs[BATCH_KEY]["batch"] for t in study.trials if BATCH_KEY in t.system_attrs]
    assert max(batches) > 5
    assert len(queries(study)) > 20


def test_of_two_heads_made_at_the_same_moment_one_wins(monkeypatch):
    """Another process asks for the same batch between this one's look at the trials and its write."""
    study = make(trials=10)
    while set(study.sampler._search.pending) - {study.trials[-1].system_attrs[QUERY_KEY]["id"]}:
        study.optimize(smooth, n_trials=1)  # until the next trial asks for a batch
    rival = study.ask()
    other = GIBOSampler(seed=0)
    original = GIBOSampler._next_batch

    def late(self, *arguments):
        monkeypatch.setattr(GIBOSampler, "_next_batch", original)
        smooth(rival)  # the rival, with the lower number, becomes the head now
        study.sampler, mine = other, study.sampler
        assert mine is self
        return original(self, *arguments)

    trial = study.ask()
    monkeypatch.setattr(GIBOSampler, "_next_batch", late)
    rival.study = optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=other)
    smooth(trial)
    heads = [study.trials[number].system_attrs for number in (rival.number, trial.number)]
    assert heads[0][BATCH_KEY]["batch"] == heads[1][BATCH_KEY]["batch"]
    assert heads[1][QUERY_KEY]["token"] == heads[0][BATCH_KEY]["token"] == heads[0][QUERY_KEY]["token"]
    assert heads[1][QUERY_KEY]["id"] != heads[0][QUERY_KEY]["id"]
