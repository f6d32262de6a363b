"""The page beside a run of the same process: it is there while the run goes on, and changes nothing."""

import json
import os
import re
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

import gibo
from gibo.cli import main
from gibo.errors import InputError
from gibo.web.watch import Watch


def page_of(text):
    """The address that was said."""
    (address,) = re.findall(r"watch (?:this run|these trials) at (http://127\.0\.0\.1:\d+/(?:#token=[\w-]+)?)\n", text)
    return address


def read(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.read()


class Looking:
    """An objective that looks at the page from within each evaluation."""

    def __init__(self, capfd):
        self.capfd, self.address, self.counts = capfd, None, []

    def __call__(self, x):
        self.address = self.address or page_of(self.capfd.readouterr().err)
        self.counts.append(json.loads(read(f"{self.address}api/snapshot"))["count"])
        return -float((x**2).sum())


def test_the_page_is_there_while_the_run_goes_on(tmp_path, capfd):
    look = Looking(capfd)
    watched = gibo.maximize(look, [1.0, 2.0], budget=12, journal=tmp_path / "watched", watch=True)
    assert look.counts[0] == 0
    assert look.counts[-1] > 0
    assert look.counts == sorted(look.counts)
    assert "#" not in look.address  # no token without control
    with pytest.raises(urllib.error.URLError):
        read(look.address)
    alone = gibo.maximize(lambda x: -float((x**2).sum()), [1.0, 2.0], budget=12)
    assert np.array_equal(watched.x, alone.x)


def test_the_page_hears_how_the_run_ended(tmp_path, capfd, tab):
    gate, begun = threading.Event(), threading.Event()

    def held(x):
        begun.set()
        gate.wait(30)
        return -float((x**2).sum())

    options = {"budget": 5, "journal": tmp_path / "run", "watch": True}
    thread = threading.Thread(target=gibo.maximize, args=(held, [1.0, 2.0]), kwargs=options)
    thread.start()
    try:
        assert begun.wait(30)
        tab.goto(page_of(capfd.readouterr().err))
        tab.wait_for_selector("#state >> text=Running")
    finally:
        gate.set()
        thread.join(30)
    assert not thread.is_alive()
    tab.wait_for_selector("#state >> text=Ended")
    tab.wait_for_selector("#trouble >> text=The page shows the final state")
    tab.goto("about:blank")
    tab.problems.clear()  # the browser has said that nobody listens any more


def test_it_ends_with_a_run_that_raises(tmp_path, capfd):
    class Rude:
        def update(self, standing):
            raise ZeroDivisionError

    result = gibo.maximize(lambda x: 0.0, [1.0], budget=3, journal=tmp_path / "run", watch=True, progress=Rude())
    assert result.status is gibo.Status.ERROR
    with pytest.raises(urllib.error.URLError):
        read(page_of(capfd.readouterr().err))
    again = gibo.resume(
        tmp_path / "run", lambda x: -float(x @ x), budget=3, watch=True, force=True
    )  # nothing is held any more
    assert again.evaluations == 3


@pytest.mark.parametrize("options", [{"watch": True}, {"watch": "yes", "journal": "run"}])
def test_mistakes(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="watch: "):
        gibo.maximize(lambda x: 0.0, [1.0], budget=3, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_child_does_not_keep_the_port(tmp_path):
    gibo.maximize(lambda x: -float(x @ x), [1.0], budget=3, journal=tmp_path / "run")
    reader, writer = os.pipe()
    with Watch(tmp_path / "run") as server:
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # until the parent says so
            os.kill(os.getpid(), 9)
        port = server.port
    try:
        Watch(tmp_path / "run", port).server_close()
    finally:
        os.close(writer)
        os.waitpid(child, 0)
        os.close(reader)


def post(address, path, body):
    """An action with the token that the address has."""
    base, _, token = address.partition("#token=")
    headers = {"Content-Type": "application/json", "X-Gibo-Token": token}
    with urllib.request.urlopen(urllib.request.Request(base + path, json.dumps(body).encode(), headers)) as answer:
        return json.loads(answer.read())


def test_with_control_the_page_acts_on_its_run(tmp_path, capfd):
    addresses = []

    def stopping(x):
        if not addresses:
            addresses.append(page_of(capfd.readouterr().err))
            post(addresses[0], "api/control", {"action": "remark", "text": "the oil is warm"})
            post(addresses[0], "api/control", {"action": "stop"})
        return -float((x**2).sum())

    result = gibo.maximize(stopping, [1.0, 2.0], budget=100, journal=tmp_path / "run", watch="control")
    assert "stopped by a person" in result.reason
    assert result.evaluations < 10
    with gibo.Journal.read(tmp_path / "run") as journal:
        assert [each.kind for each in journal.actions()] == ["remark", "stop"]


@pytest.fixture
def episodes(monkeypatch):
    """What is called in each episode of a training."""
    pytest.importorskip("gymnasium")
    from gibo.policies.task import Task

    calls, play = [], Task.__call__

    def call(self, *args, **kwargs):
        for each in calls:
            each()
        return play(self, *args, **kwargs)

    monkeypatch.setattr(Task, "__call__", call)
    return calls


def training(tmp_path, *words):
    return main(["train", "CartPole-v1", "--max-steps", "20", "--out", str(tmp_path / "out"), *words])


def test_several_trials_have_one_page(tmp_path, capfd, episodes):
    addresses, seen = [], []

    def look():
        if not addresses:
            addresses.append(page_of(capfd.readouterr().err))
        (group,) = json.loads(read(f"{addresses[0]}api/snapshot"))["groups"]
        seen.append([(trial["name"], trial["state"], trial["count"]) for trial in group["trials"]])
        assert json.loads(read(f"{addresses[0]}api/snapshot?trial={seen[-1][-1][0]}"))["count"] == seen[-1][-1][2]

    episodes.append(look)
    assert training(tmp_path, "--budget", "4", "--trials", "2", "--watch") == 0
    assert seen[0] == [("trial-00", "running", 0)]
    assert seen[-1][0] == ("trial-00", "ended", 4)
    assert seen[-1][1][:2] == ("trial-01", "running")
    with pytest.raises(urllib.error.URLError):
        read(addresses[0])


def test_a_trial_is_stopped_on_the_page_of_all(tmp_path, capfd, episodes):
    addresses = []

    def stop():
        if not addresses:
            addresses.append(page_of(capfd.readouterr().err))
            with pytest.raises(urllib.error.HTTPError, match="400"):
                post(addresses[0], "api/control", {"action": "stop"})
            post(addresses[0], "api/control?trial=trial-00", {"action": "stop"})

    episodes.append(stop)
    training(tmp_path, "--budget", "50", "--trials", "2", "--control")
    assert "trial-00: stopped by a person" in capfd.readouterr().out
