"""The last episode of a training on the page: drawn when asked for, in a process that trusts the journal no further."""

import base64
import io

import pytest
from watching import until

from gibo.cli import main
from gibo.errors import InputError
from gibo.web.replay import Replays
from gibo.web.watch import Watch, report

pytest.importorskip("gymnasium")
from gibo.training.training import Training, last_episode, train

TINY = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # a picture of one point


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a trial that has ended."""
    folder = tmp_path_factory.mktemp("trained") / "trial-00"
    train(Training("CartPole-v1", "linear", max_steps=12), folder, budget=6)
    return folder


def test_the_page_shows_the_last_episode(trained, tab):
    images = pytest.importorskip("PIL.Image")
    pytest.importorskip("pygame")
    with Watch(trained) as watch:
        tab.goto(watch.address_with_token)
        tab.click("#replay-show")
        tab.wait_for_selector("#replay-picture:visible", timeout=60_000)
        until(tab, "document.getElementById('replay-picture').naturalWidth > 50")
        last = last_episode(trained).evaluation
        value = last.outcome.info["return"]
        assert tab.inner_text("#replay-note") == f"evaluation {last.id} (iterate): return {value} in {value:.0f} steps"
        assert tab.is_hidden("#replay-show")  # there is no newer one
        source = tab.get_attribute("#replay-picture", "src")
    with images.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))) as picture:
        assert picture.format == "GIF"
        assert 1 < picture.n_frames <= value + 1  # frames that look the same are one


def test_neither_the_journal_nor_the_current_folder_is_imported(tmp_path, monkeypatch):
    """A folder from elsewhere, in which somebody stands: its files are no modules, and it cannot name one."""
    (tmp_path / "strange.py").write_text(
        "import gymnasium\ngymnasium.register('S-v0', 'gymnasium.envs.classic_control:CartPoleEnv')\n"
    )
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        train(Training("strange:S-v0", "linear", max_steps=5), tmp_path / "run", budget=2)
    for name in ("strange", "numpy", "argparse"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"would import the module 'strange'. If you trust it, give --allow-module"):
        Replays().of(tmp_path / "run", 0)
    assert not (tmp_path / "ran").exists()


def test_a_report_can_have_it(trained, finished, tmp_path, tab, monkeypatch, capsys):
    made = {"text": "an episode", "picture": f"data:image/gif;base64,{TINY}"}
    monkeypatch.setattr(Replays, "_made", lambda self, folder: made)
    path = tmp_path / "report.html"
    path.write_text(report(trained, replay=True), encoding="utf-8")
    tab.goto(path.as_uri())
    tab.wait_for_selector("#replay-picture:visible")
    assert tab.is_hidden("#replay-show")
    assert main(["report", str(finished), "--replay", "-o", str(path)]) == 2
    assert "has no episode to show" in capsys.readouterr().err
