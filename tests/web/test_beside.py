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
from gibo.web.watch import Watch


def page_of(text):
    """The address that was said."""
    (address,) = re.findall(r"watch (?:this run|these trials) at (http://127\.0\.0\.1:\d+(?:/#token=[\w-]+)?)\n", text)
    return address


def read(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.read()


def post(address, path, body):
    """An action with the token that the address has."""
    base, _, token = address.partition("/#token=")
    headers = {"Content-Type": "application/json", "X-Gibo-Token": token}
    with urllib.request.urlopen(urllib.request.Request(base + path, json.dumps(body).encode(), headers)) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("watch", [True, "control"])
def test_the_page_is_there_while_the_run_goes_on(watch, tmp_path, capfd):
    addresses, counts = [], []

    def objective(x):
        if not addresses:
            addresses.append(page_of(capfd.readouterr().err))
            if watch == "control":
                post(addresses[0], "/api/control", {"action": "remark", "text": "the oil is warm"})
                post(addresses[0], "/api/control", {"action": "stop"})
        counts.append(json.loads(read(f"{addresses[0].partition('/#')[0]}/api/snapshot"))["count"])
        return -float((x**2).sum())

    watched = gibo.maximize(objective, [1.0, 2.0], budget=12, journal=tmp_path / "run", watch=watch)
    assert counts == list(range(watched.evaluations))
    with pytest.raises(urllib.error.URLError):
        read(addresses[0])
    if watch == "control":
        assert "stopped by a person" in watched.reason
        with gibo.Journal.read(tmp_path / "run") as journal:
            assert [each.kind for each in journal.actions()] == ["remark", "stop"]
        return
    assert "#" not in addresses[0]  # no token without control
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


def test_several_trials_have_one_page_on_which_one_is_stopped(tmp_path, capfd, monkeypatch):
    pytest.importorskip("gymnasium")
    from gibo.policies.task import Task

    addresses, seen, play = [], [], Task.__call__

    def look(*args, **kwargs):
        if not addresses:
            addresses.append(page_of(capfd.readouterr().err))
            with pytest.raises(urllib.error.HTTPError, match="400"):
                post(addresses[0], "/api/control", {"action": "stop"})
        base = addresses[0].partition("/#")[0]
        (group,) = json.loads(read(f"{base}/api/snapshot"))["groups"]
        seen.append([(trial["name"], trial["state"], trial["count"]) for trial in group["trials"]])
        if seen[-1][-1][0] == "trial-01":
            post(addresses[0], "/api/control?trial=trial-01", {"action": "stop"})
        return play(*args, **kwargs)

    monkeypatch.setattr(Task, "__call__", look)
    words = ["train", "CartPole-v1", "--max-steps", "20", "--out", str(tmp_path / "out"), "--trials", "3"]
    main([*words, "--budget", "9", "--control"])
    assert "trial-01: stopped by a person" in capfd.readouterr().out
    assert seen[0] == [("trial-00", "running", 0)]
    assert seen[-1][0] == ("trial-00", "ended", 9)
    assert seen[-1][1][:2] == ("trial-01", "running")
    with pytest.raises(urllib.error.URLError):
        read(addresses[0])
