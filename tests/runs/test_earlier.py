"""An earlier run as the prior mean of another: from journals and data, by names, by hand, after a stop."""

import numpy as np
import pytest

import gibo
from gibo import InputError, Outcome, Settings
from gibo.cli import main
from gibo.means import from_run
from gibo.parameters import Parameters, linear, log
from gibo.runs.journal import Journal

PARAMETERS = Parameters(gain=log(0.1, 100.0), angle=linear(-1.0, 1.0))
OTHER_WAY_ROUND = Parameters(angle=linear(-2.0, 2.0, start=-0.5), gain=linear(0.1, 100.0))


def simulator(gain, angle):
    return np.log(gain / 20.0) ** 2 + (angle - 0.3) ** 2


def machine(gain, angle):
    return 7.0 + 3.0 * simulator(gain, angle) + 0.1 * angle


def pairs(n=60, d=2, seed=0):
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d))
    return [(x, -float(x @ x)) for x in X]


def believed(mean, X):
    """What a mean says at X, without its shift and factor."""
    m = mean.mean(np.array(X))
    return (m - m.mean()) / m.std()


@pytest.fixture
def simulated(tmp_path):
    near = gibo.Settings(survey=0)  # all points near the path, where the tests look
    gibo.minimize(simulator, parameters=PARAMETERS, budget=60, journal=tmp_path / "simulated", settings=near)
    return tmp_path / "simulated"


def test_the_mean_is_the_data_up_to_shift_and_factor():
    data, (X, y) = pairs(), zip(*pairs(20, seed=1), strict=True)
    expected = (np.array(y) - np.mean(y)) / np.std(y)
    np.testing.assert_allclose(believed(from_run(data), X), expected, atol=0.02)
    stretched = from_run([(x * [10.0, 0.1], value) for x, value in data])  # the scale follows from the points
    np.testing.assert_allclose(believed(stretched, np.array(X) * [10.0, 0.1]), expected, atol=0.02)
    noisy = [(x, Outcome(value, repeats=2)) for x, value in data] + [(X[0], Outcome.failed("slipped"))]
    np.testing.assert_allclose(believed(from_run(noisy), X), expected, atol=0.02)


def test_a_journal_is_oriented_and_matched_by_names(simulated):
    """Small values of the simulator were good; gain has a log scale there and none here."""
    settings = [{"gain": gain, "angle": angle} for gain in (5.0, 12.0, 30.0) for angle in (-0.2, 0.2, 0.6)]
    expected = np.array([-simulator(**each) for each in settings])
    expected = (expected - expected.mean()) / expected.std()
    for parameters in (PARAMETERS, OTHER_WAY_ROUND):
        X = [parameters.to_vector(each) for each in settings]
        assert np.corrcoef(believed(from_run(simulated, parameters), X), expected)[0, 1] > 0.97
    without = from_run(simulated)
    assert np.corrcoef(believed(without, [PARAMETERS.to_vector(each) for each in settings]), expected)[0, 1] > 0.97
    by_name = [(dict(each), -simulator(**each)) for each in settings]
    X = [PARAMETERS.to_vector(each) for each in settings]
    assert np.corrcoef(believed(from_run(by_name, PARAMETERS), X), expected)[0, 1] > 0.9


def test_a_run_with_it_needs_few_values_and_goes_on_after_a_stop(simulated, tmp_path):
    settings = Settings(mean=from_run(simulated, PARAMETERS))
    known = {"parameters": PARAMETERS, "settings": settings}
    costs = [
        machine(**gibo.minimize(machine, budget=10, **each).parameters) for each in (known, {"parameters": PARAMETERS})
    ]
    assert costs[0] < 7.05
    assert costs[1] > 7.5
    whole = gibo.minimize(machine, budget=14, **known)
    gibo.minimize(machine, budget=9, journal=tmp_path / "run", **known)
    again = gibo.resume(tmp_path / "run", machine, budget=14)
    assert (again.x == whole.x).all()
    assert again.value == whole.value


def test_the_command_line_and_a_file_take_it(simulated, tmp_path, capsys):
    parameters = (
        "[parameters.angle]\nstart = -0.5\nscale = 0.3\n[parameters.gain]\nkind = 'log'\nlower = 0.1\nupper = 100\n"
    )
    parameters = parameters.replace("start = -0.5\nscale", "kind = 'free'\nstart = -0.5\nscale")
    (tmp_path / "a.toml").write_text(f"minimize = true\n{parameters}")
    (tmp_path / "b.toml").write_text(f"minimize = true\nprior_run = '{simulated}'\n{parameters}")
    option = ["--prior-run", str(simulated)]
    assert main(["init", str(tmp_path / "a"), "--parameters", str(tmp_path / "a.toml"), *option]) == 0
    assert main(["init", str(tmp_path / "b"), "--parameters", str(tmp_path / "b.toml")]) == 0
    assert main(["init", str(tmp_path / "c"), "--dim", "2", "--minimize", *option]) == 2
    assert "its points are no points of the new run" in capsys.readouterr().err
    specs = []
    for name in "ab":
        with Journal.read(tmp_path / name) as journal:
            specs.append(journal.spec().arguments["settings"]["mean"])
    assert specs[0] == specs[1]
    assert machine(**gibo.resume(tmp_path / "b", machine, budget=20).parameters) < 7.1
    assert main(["init", str(tmp_path / "d"), "--dim", "2", "--minimize", "--method", "ars", *option]) == 2
    assert "only the method gibo has this option" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: from_run(path / "nothing"), "nothing"),
        (lambda path: from_run([([0.0], 1.0), ([1.0], 1.0)]), "different values"),
        (lambda path: from_run([([0.0], 1.0), ([1.0, 2.0], 2.0)]), r"run\[1\]: x"),
        (lambda path: from_run([], {"gain": 1.0}), "parameters"),
        (lambda path: from_run(path / "simulated", Parameters(gain=log(0.1, 100.0))), "angle"),
        (lambda path: gibo.GIBO([0.0] * 3, settings=Settings(mean=from_run(pairs()))), "does not fit|do not fit"),
    ],
)
def test_mistakes(make, words, simulated, tmp_path):
    with pytest.raises((InputError, gibo.JournalError), match=words):
        make(tmp_path)
