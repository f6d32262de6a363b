"""`gibo plot` on runs of any kind: what is in the figures, and that nothing leaves them."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import gibo
from gibo.cli import main
from gibo.figures import run, training
from gibo.figures.style import smoothed
from gibo.parameters import Parameters, integer, log
from gibo.runs.manual import Description, ask, create, tell


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would be saved."""
    found = []
    for module in (run, training):
        monkeypatch.setattr(module, "save", lambda figure, plt, path: found.append(figure) or [path])
    yield found
    for figure in found:
        plt.close(figure)


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def own(folder, d=3, budget=24, optimizer=None):
    rng = np.random.default_rng(0)

    def objective(x):
        if rng.random() < 0.1:
            raise RuntimeError("it slipped")
        return 1.0 - float(((x - 0.3) ** 2).sum()) + 0.05 * rng.standard_normal()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gibo.FailedEvaluationWarning)
        gibo.run(optimizer or gibo.GIBO(np.zeros(d), scale=0.1), objective, budget=budget, journal=folder)
    return str(folder)


def assert_inside(figure):
    """Legend, title and names of the axes are within the figure, and the axes are of a size to be seen."""
    figure.canvas.draw()
    width, height = figure.bbox.size
    texts = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
    for text in [*figure.legends, *(text for text in texts if text.get_text())]:
        box = text.get_window_extent()
        assert -1 <= box.x0 <= box.x1 <= width + 1, text
        assert -1 <= box.y0 <= box.y1 <= height + 1, text
    for axes in figure.axes:
        assert axes.get_window_extent().height > 60


def test_a_run_of_ones_own_has_values_belief_uncertainty_and_lengthscales(tmp_path, drawn):
    assert main(["plot", own(tmp_path)]) == 0
    (figure,) = drawn
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "value",
        "uncertainty of\nthe gradient",
        "lengthscale\nin scales",
    ]
    said = labels(figure)
    for part in (
        "value of an iterate",
        "failed",
        "recommended point by the model, 90 %",
        "recommended point by the model: ",
    ):
        assert any(part in label for label in said), part
    (band,) = figure.axes[0].collections[:1]
    assert np.isfinite(band.get_paths()[0].vertices).all()
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    values = np.concatenate([lines["value of a query"], lines["value of an iterate"]])
    assert set(lines["failed"]) == {np.nanmin(values)}  # on the bad side
    assert_inside(figure)


def test_a_run_by_hand_and_many_parameters(tmp_path, drawn):
    names = [f"a parameter with a long name, number {i}" for i in range(30)]
    create(tmp_path, Description(names, [0.0] * 30, [0.3] * 30, [-5.0] * 30, [5.0] * 30, minimize=True))
    for _ in range(2):
        for query in ask(tmp_path).queries:
            tell(tmp_path, query.id, float(((query.x - 1.0) ** 2).sum()))
    ask(tmp_path)
    assert main(["plot", str(tmp_path)]) == 0
    (said,) = (text.get_text() for text in drawn[0].axes[2].get_legend().get_texts())
    assert said in ("median of 30, and 80 % of them", "one for all")
    assert_inside(drawn[0])


def test_an_optimizer_without_a_model_has_values_alone(tmp_path, drawn):
    assert main(["plot", own(tmp_path, optimizer=gibo.ARS(np.zeros(3), scale=0.1))]) == 0
    assert len(drawn[0].axes) == 1
    assert any("running mean" in label for label in labels(drawn[0]))


def test_a_training_and_its_trials(tmp_path, drawn):
    out = str(tmp_path / "pole")
    assert main(["train", "CartPole-v1", "--budget", "24", "--trials", "2", "--out", out]) == 0
    assert main(["plot", out]) == 0
    assert main(["plot", f"{out}/trial-00"]) == 0
    for figure in drawn:
        assert_inside(figure)
    assert (drawn[1].axes[0].get_title(), drawn[1].axes[0].get_ylabel()) == ("CartPole-v1", "return")


def test_runs_with_named_parameters_are_drawn_together_in_the_users_units(tmp_path, drawn):
    parameters = Parameters(kp=log(100, 900), delay=integer(1, 9))
    for seed in range(2):
        gibo.minimize(
            lambda kp, delay: np.log(kp / 300) ** 2 + (delay - 4) ** 2,
            parameters=parameters,
            budget=20,
            seed=seed,
            journal=tmp_path / f"run-{seed}",
        )
    assert main(["plot", str(tmp_path / "run-0"), str(tmp_path / "run-1")]) == 0
    _, best, kp, delay = drawn[0].axes
    assert [axes.get_ylabel() for axes in drawn[0].axes] == ["value", "best value\nso far", "kp", "delay"]
    assert [len(axes.lines) for axes in (best, kp, delay)] == [2, 2, 2]
    for line in best.lines:
        assert (np.diff(line.get_ydata()) <= 0.0).all()  # small values are good
    with gibo.Journal.read(tmp_path / "run-0") as run:
        at_iterates = [parameters.to_values(e.query.x) for e, _ in run.evaluations() if e.kind == "iterate"]
    assert kp.lines[0].get_ydata().tolist() == [point["kp"] for point in at_iterates]
    assert delay.lines[0].get_ydata().tolist() == [point["delay"] for point in at_iterates]
    drawn[0].canvas.draw()
    ticks = [text.get_text() for text in kp.get_yticklabels(which="both") if text.get_text()]
    assert ticks
    assert not any("\N{MULTIPLICATION SIGN}" in text or "times" in text for text in ticks)
    assert_inside(drawn[0])


def test_a_running_mean_is_that_of_its_neighbours():
    values = np.arange(40.0)
    mean, width = smoothed(values)
    assert width == 5
    assert mean[2:-2] == pytest.approx(values[2:-2])
    assert (mean[0], mean[-1]) == (1.0, 38.0)
    assert smoothed(values[:5]) == (pytest.approx(values[:5]), 1)
