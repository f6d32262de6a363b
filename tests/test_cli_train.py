"""`gibo train`, `evaluate`, `play` and `plot`, as they are typed."""

import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from PIL import Image

from gibo.cli import main, play
from gibo.figures.training import Trial, read_curve
from gibo.runs.journal import Journal, has_journal
from gibo.runs.result import Status
from gibo.training.presets import PRESETS
from gibo.training.training import read_trial

SPENT = SimpleNamespace(reason="the budget is spent", status=Status.BUDGET_SPENT, advice=())
SHORT = ["--preset", "none", "--max-steps", "30"]  # of an episode


def values(folder):
    """All that was asked and told in a trial, by the queries' ids, and no times."""
    with Journal.read(folder) as journal:
        told = sorted((e for e, _ in journal.evaluations()), key=lambda e: e.id)
        return [(e.id, e.kind, e.query.seed, e.x.tolist(), e.value) for e in told]


def training_of(folder):
    with Journal.read(folder) as journal:
        return journal.spec().training


def error_of(capsys, words):
    """The one line on standard error of a call that is wrong."""
    capsys.readouterr()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("gibo: ")
    assert len(error.splitlines()) == 1, error
    return error


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two trials with GIBO, and one with each of the others; not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    words = ["train", "CartPole-v1", *SHORT]
    assert main([*words, "--preset", "published", "--budget", "20", "--trials", "2", "--out", f"{folder}/gibo"]) == 0
    for method, budget in (("ars", "7"), ("cma-es", "17")):
        assert main([*words, "--method", method, "--budget", budget, "--out", f"{folder}/{method}"]) == 0
    return folder


# -- train ------------------------------------------------------------------------------------------------------------


def test_what_is_not_given_on_an_existing_run_is_the_journals(tmp_path):
    out = str(tmp_path / "x")
    given = ["--preset", "published", "--max-steps", "30", "--set", "M=3", "--scale", "0.7", "--seed", "3"]
    assert main(["train", "CartPole-v1", *given, "--budget", "7", "--out", out]) == 0
    before = training_of(tmp_path / "x" / "trial-00")
    assert main(["train", "CartPole-v1", "--budget", "12", "--out", out]) == 0
    assert main(["train", "CartPole-v1", "--out", out]) == 0  # the budget is that of the last start, and spent
    assert training_of(tmp_path / "x" / "trial-00") == before
    assert main(["train", "CartPole-v1", *given, "--budget", "12", "--out", str(tmp_path / "whole")]) == 0
    assert values(tmp_path / "x" / "trial-00") == values(tmp_path / "whole" / "trial-00")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_a_signal_the_same_command_continues_to_the_same_values(tmp_path, number):
    words = ["train", "CartPole-v1", "--preset", "published", "--episodes", "5", "--budget", "60"]
    trial = tmp_path / "x" / "trial-00"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-m", "gibo", *words, "--out", "x"], cwd=tmp_path, **pipes)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (has_journal(trial) and len(values(trial)) >= 10):
        time.sleep(0.02)
    process.send_signal(number)
    output, error = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in error) == (130, False)
    assert "The same command continues the training." in output
    assert 10 <= len(values(trial)) < 60
    for out in ("x", "whole"):
        assert main([*words, "--out", str(tmp_path / out)]) == 0
    assert values(trial) == values(tmp_path / "whole" / "trial-00")


def test_a_preset_what_overrides_it_and_settings_of_the_method(tmp_path):
    def trained(environment, *words):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        assert main(["train", environment, *words, "--budget", "1", "--out", str(out)]) == 0
        training = training_of(out / "trial-00")
        return training, training["options"].get("settings")

    options = ["--policy", "affine", "--no-normalize-states", "--reward-shift", "0.5", "--scale", "0.7"]
    training, settings = trained("Hopper-v5", "--preset", "paper", *options, "--max-steps", "3")
    names = ("policy", "normalize_states", "reward_shift", "scale", "max_steps", "reward_scale")
    assert [training[name] for name in names] == ["affine", False, 0.5, 0.7, 3, 1 / 1000]
    assert settings["N_m"] == 48
    _, settings = trained("CartPole-v1", "--set", "M=3", "--set", "kernel=matern52")
    assert (settings["M"], settings["kernel"], settings["move"]["type"]) == (3, "matern52", "BoundStep")
    _, settings = trained("CartPole-v1", "--set", "eta=0.1")
    assert (settings["move"]["type"], settings["move"]["step"]["eta"]) == ("GradientStep", 0.1)
    published = ["--preset", "published"]
    _, settings = trained("CartPole-v1", *published, "--set", "M=3", "--set", "eta=0.2")
    assert (settings["M"], settings["N_m"], settings["move"]["step"]["eta"]) == (3, 20, 0.2)  # N_m is the preset's
    training, _ = trained("CartPole-v1", *published, "--method", "ars", "--set", "directions=5")
    assert training["options"] == PRESETS["published"]["CartPole-v1", "ars"].options | {"directions": 5}


@pytest.mark.parametrize(("words", "budget"), [([], 300), (["--preset", "paper"], 100)])
def test_without_a_budget_it_is_that_of_the_preset_or_300(tmp_path, monkeypatch, words, budget):
    asked = []
    monkeypatch.setattr("gibo.training.training.train", lambda *_, budget, **__: asked.append(budget) or SPENT)
    assert main(["train", "CartPole-v1", *words, "--out", str(tmp_path)]) == 0
    assert asked == [budget]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["CartPoll-v1"], "CartPoll"),
        (["FrozenLake-v1"], "Discrete(16)"),
        (["CartPole-v1", "--trials", "0"], "--trials"),
        (["CartPole-v1", "--method", "sgd"], "method"),
        (["CartPole-v1", "--workers", "2", "--dask", "tcp://127.0.0.1:1"], "--workers, --dask"),
        (["CartPole-v1", "--set", "M"], "NAME=VALUE"),
        (["CartPole-v1", "--set", "N=8"], "'N'"),
        (["CartPole-v1", "--method", "ars", "--set", "steps=1"], "'steps'"),
        (["CartPole-v1", "--preset", "papre"], "--preset: expected one of 'paper', "),
        (["CartPole-v1", "--preset", "paper", "--method", "cma-es"], "--preset paper: expected one of "),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_left_behind(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert message in error_of(capsys, ["train", *words])
    assert not list(tmp_path.rglob("journal.sqlite"))


ROBOT = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
gymnasium.register("GiboTestArm-v0", CartPoleEnv, max_episode_steps=5)
"""


def test_a_module_of_the_current_folder_is_found_and_a_journal_cannot_name_one(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_arm.py").write_text(ROBOT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    try:
        assert main(["train", "my_arm:GiboTestArm-v0", "--budget", "2", "--out", "run"]) == 0
        del sys.modules["my_arm"], gymnasium.registry["GiboTestArm-v0"]
        monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(tmp_path)])
        assert "--allow-module" in error_of(capsys, ["evaluate", "run", "--episodes", "1"])
        assert "--allow-module" in error_of(capsys, ["play", "run", "--video", "x.gif"])
        for command in ("status", "best", "export"):
            assert main([command, "run/trial-00"]) == 0
        assert "my_arm" not in sys.modules
        assert main(["evaluate", "run", "--episodes", "1", "--allow-module"]) == 0
        assert "mean 5.0" in capsys.readouterr().out
    finally:
        sys.modules.pop("my_arm", None)
        gymnasium.registry.pop("GiboTestArm-v0", None)
    assert "no_robot" in error_of(capsys, ["train", "no_robot:GiboTestArm-v0", "--budget", "2"])


# -- evaluate ---------------------------------------------------------------------------------------------------------


def test_evaluate_prints_mean_standard_deviation_and_quantiles_of_each_trial(runs, capsys):
    assert main(["evaluate", str(runs / "gibo"), "--episodes", "5", "--seed", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert values(runs / "gibo" / "trial-00") != values(runs / "gibo" / "trial-01")  # their seeds differ
    for line, trial in zip(lines, ("trial-00", "trial-01"), strict=True):
        read = read_trial(runs / "gibo" / trial)
        with read.training.task() as task:
            returns = [e.value for e in task.evaluate(read.policy.theta, 5, seed=2)]
        numbers = f"mean {np.mean(returns):.1f}, standard deviation {np.std(returns, ddof=1):.1f}"
        assert line.startswith(f"{runs / 'gibo' / trial}: 5 episodes, {numbers}, 10 % ")
        assert f"median {np.median(returns):.1f}, 90 % {max(returns):.1f}" in line


# -- play -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def headless(monkeypatch):
    """No display; what the command sets is taken back."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", *play.WITHOUT_DISPLAY):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def contents(folder):
    """The files that hold something; to read, SQLite makes itself one of shared memory, and an empty log."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("-shm")]
    return {path.relative_to(folder): content for path in files if (content := path.read_bytes())}


def frames(path):
    with Image.open(path) as image:
        durations = []
        for i in range(image.n_frames):
            image.seek(i)
            durations.append(image.info["duration"])
        return image.size, durations


@pytest.mark.usefixtures("headless")
def test_a_video_shows_the_episodes_of_evaluate_and_leaves_the_run_alone(runs, tmp_path, capsys):
    before = contents(runs / "gibo")
    video = tmp_path / "new" / "pole.gif"
    words = [str(runs / "gibo"), "--episodes", "2", "--seed", "4"]
    assert main(["play", *words, "--trial", "1", "--video", str(video)]) == 0
    said = capsys.readouterr().out
    returns = [float(text) for text in re.findall(r"return ([\d.]+)", said)]
    assert said.splitlines()[-1] == f"video: {video}"
    assert main(["evaluate", str(runs / "gibo" / "trial-01"), *words[1:]]) == 0
    assert f"mean {np.mean(returns):.1f}," in capsys.readouterr().out
    size, durations = frames(video)
    assert size == (600, 400)
    assert sum(durations) == 20 * (sum(returns) + 2)  # 50 a second, a reward of 1 for each step, and the first states
    assert contents(runs / "gibo") == before


@pytest.mark.usefixtures("headless")
def test_a_gif_keeps_the_time_of_the_environment(runs, tmp_path, monkeypatch):
    from gymnasium.envs.classic_control import CartPoleEnv

    monkeypatch.setattr(CartPoleEnv, "metadata", {**CartPoleEnv.metadata, "render_fps": 125})
    assert main(["play", str(runs / "gibo"), "--video", str(tmp_path / "x.gif")]) == 0
    durations = frames(tmp_path / "x.gif")[1]
    assert min(durations) >= 20
    assert sum(durations) == pytest.approx(31 * 8, abs=3 * 8)


def test_a_gif_is_never_long_and_never_large(tmp_path, monkeypatch):
    monkeypatch.setattr(play, "MOST_FRAMES", 30)
    monkeypatch.setattr(play, "LARGEST_GIF", 20_000)

    def filmed(pictures):
        film = play._GIF(tmp_path / "x.gif", 50.0)
        for picture in pictures:
            film.append_data(picture)
        film.close()
        return frames(tmp_path / "x.gif")

    assert filmed(np.full((8, 8, 3), i, np.uint8) for i in range(101)) == ((8, 8), [80] * 25 + [20])  # every fourth
    rng = np.random.default_rng(0)
    (width, height), durations = filmed(rng.integers(0, 256, (3, 150, 300, 3), dtype=np.uint8))
    assert 10_000 < (tmp_path / "x.gif").stat().st_size <= 20_000
    assert width / height == pytest.approx(2.0, abs=0.1)
    assert durations == [20, 20, 20]


@pytest.mark.usefixtures("headless")
def test_ctrl_c_keeps_the_video_so_far(runs, tmp_path, monkeypatch, capsys):
    def interrupted(screen, policy, **_):
        observation, _ = screen.reset(seed=0)
        for step in range(9):
            if step == 4:
                signal.raise_signal(signal.SIGINT)
            observation, *_ = screen.step(policy(observation))

    monkeypatch.setattr(sys.modules["gibo.policies.environment"], "rollout", interrupted)
    assert main(["play", str(runs / "gibo"), "--video", str(tmp_path / "x.gif")]) == 130
    assert capsys.readouterr().err == "gibo: interrupted\n"
    assert sum(frames(tmp_path / "x.gif")[1]) == 5 * 20


@pytest.mark.usefixtures("headless")
def test_a_window_and_its_end(runs, monkeypatch, capsys):
    monkeypatch.setenv("DISPLAY", ":of the imagination")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = []
    for trial in ("gibo", "gibo/trial-00"):  # without a trial it is the first one
        assert main(["play", str(runs / trial)]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].startswith("episode 1: return ")
    import pygame

    looks = iter(range(100))
    closed = play._Screen._window_closed

    def click_on_the_cross(screen):
        if next(looks) == 3:
            pygame.event.post(pygame.event.Event(pygame.QUIT))
        return closed(screen)

    monkeypatch.setattr(play._Screen, "_window_closed", click_on_the_cross)
    assert main(["play", str(runs / "gibo" / "trial-00"), "--episodes", "3"]) == 0
    assert capsys.readouterr().out == "the window was closed\n"
    assert next(looks) == 4


@pytest.mark.usefixtures("headless")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--video FILE.mp4"),
        (["--video", "x.avi"], ".mp4 or .gif"),
        (["--video", "x.gif", "--trial", "7"], "trial-07: there is no run"),
        (["--video", "x.gif", "--episodes", "0"], "--episodes"),
        (["--video", "x.mp4"], "needs imageio-ffmpeg"),
    ],
)
def test_mistakes_of_play(runs, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert message in error_of(capsys, ["play", str(runs / "gibo"), *words])
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("headless")
def test_the_packages_that_mujoco_lacks_to_render(tmp_path, monkeypatch, capsys):
    words = ["train", "Swimmer-v5", "--budget", "1", "--max-steps", "2"]
    assert main([*words, "--out", str(tmp_path / "x")]) == 0
    from gymnasium.envs.mujoco import mujoco_rendering

    def no_library(width, height):
        raise ImportError("Cannot initialize\nan EGL device display")

    monkeypatch.setitem(mujoco_rendering._ALL_RENDERERS, "egl", no_library)
    error = error_of(capsys, ["play", str(tmp_path / "x"), "--video", str(tmp_path / "x.gif")])
    assert "apt-get install libegl1 libgl1-mesa-dri libopengl0" in error
    assert not (tmp_path / "x.gif").exists()
    monkeypatch.setenv("DISPLAY", ":of the imagination")
    assert "the display :of the imagination does not answer" in error_of(capsys, ["play", str(tmp_path / "x")])


# -- plot -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "size"), [("gibo", 1), ("ars", 2), ("cma-es", 8)])
def test_a_curve_is_that_of_the_iterates_or_the_mean_of_each_whole_batch(runs, method, size):
    curve, trial = read_curve(runs / method / "trial-00"), read_trial(runs / method / "trial-00")
    assert curve.of_iterates == (method == "gibo")
    if method == "gibo":
        at = [i for i, kind in enumerate(trial.kinds) if kind == "iterate"]
        batches = [[trial.returns[i]] for i in at]
    else:
        whole = len(trial.returns) // size
        assert whole * size < len(trial.returns)  # so that there is one which is not
        at = [size * (i + 1) - 1 for i in range(whole)]
        batches = [trial.returns[size * i :][:size] for i in range(whole)]
    assert curve.episodes.tolist() == [i + 1 for i in at]
    assert curve.returns == pytest.approx([np.mean(batch) for batch in batches])


def test_a_trial_that_is_behind_counts_as_far_as_it_has_come():
    curve = Trial(
        "E", "gibo", True, np.array([2.0, 6.0]), np.array([10.0, 20.0]), 8, np.array([2.0]), np.array([10.0]), {}
    )
    assert curve.at(np.array([1, 2, 5, 6, 8, 9])) == pytest.approx([np.nan, 10, 10, 20, 20, np.nan], nan_ok=True)


def test_several_runs_in_one_figure_without_their_environment_also_while_one_is_writing(
    runs, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    folders = [str(runs / name) for name in ("gibo", "ars", "gibo/trial-00")]
    with Journal.open(runs / "ars" / "trial-00"):  # as a run has it
        assert main(["plot", *folders, "--out", str(tmp_path / "new" / "v1.2.png")]) == 0
    paths = [tmp_path / "new" / f"v1.2.{ending}" for ending in ("png", "svg")]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in paths]
    with Image.open(paths[0]) as image:
        assert image.size[0] > 500
    text = paths[1].read_text()
    for label in (
        "gibo: GIBO, mean ± standard deviation of 2 trials",
        "ars: ARS, one trial (batch means; the iterate is not evaluated)",
        "gibo/trial-00: GIBO, one trial",
    ):
        assert f"<!-- {label} -->" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "BY-HAND"], "not one of gibo train"),
        (["evaluate", "RUN", "--episodes", "0"], "episodes: expected a whole number of at least 1"),
        (["plot", "RUN", "--out", "x.pdf"], ".png, .svg or nothing"),
        (["plot", "BY-HAND"], "no evaluation has a value"),
        (["plot", "RUN", "BY-HAND"], "nothing to draw yet"),
    ],
)
def test_mistakes_of_evaluate_and_plot(words, message, runs, tmp_path, capsys):
    assert main(["init", str(tmp_path / "by-hand"), "--dim", "2", "--maximize"]) == 0
    places = {"RUN": str(runs / "gibo"), "BY-HAND": str(tmp_path / "by-hand")}
    assert message in error_of(capsys, [places.get(word, word) for word in words])
