"""The page's server: who may speak to it, what it answers, and that it only reads."""

import hashlib
import http.client
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from watching import Deeds

import gibo
from gibo.cli import main
from gibo.errors import InputError
from gibo.parameters import Parameters, integer, linear, log
from gibo.runs import manual
from gibo.runs.control import control_of
from gibo.runs.journal import Journal
from gibo.runs.store import FILE
from gibo.web.advice import advice
from gibo.web.snapshot import snapshot
from gibo.web.trials import Trials
from gibo.web.watch import Watch

DATA = Path(__file__).parent.parent / "data"


def asked(server, method, path, body=None, **headers):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


# -- the snapshot -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_page_shows_what_the_result_says(tmp_path, sign):
    """In the middle of a batch and after its last value; in the user's units and sign."""
    solve, names = gibo.maximize if sign > 0 else gibo.minimize, ["kp", "delay", "angle"]
    parameters = Parameters(kp=log(0.1, 10), delay=integer(1, 9), angle=linear(-1, 1))
    rng = np.random.default_rng(0)

    def bench(kp, delay, angle):
        value = -(np.log(kp / 3.0) ** 2) - 0.1 * (delay - 4) ** 2 - 3.0 * angle**2 + 0.02 * rng.standard_normal()
        return gibo.Outcome(sign * value, info={"overshoot": 2.0 * kp, "log": "text"})

    for budget in (40, 41, 42):
        result = solve(bench, parameters=parameters, budget=budget, journal=tmp_path, force=True)
        s = snapshot(tmp_path)
        assert (s["belief"]["x"], s["belief"]["value"]) == (list(result.parameters.values()), result.value)
        assert (s["belief"]["low"], s["belief"]["high"]) == result.interval
        assert s["belief"]["sd"] > 0.0
        assert s["verdict"]["text"] == result.advice[0].text
        assert s["start"]["value"] == result.start.value
    told = result.to_dataframe()
    assert [json.loads(x) for x in s["evaluations"]["x"]] == told[names].to_numpy().tolist()
    assert s["evaluations"]["info"][-1] == {"overshoot": told["info.overshoot"].iloc[-1]}
    kp, delay, _ = s["parameters"]
    assert (kp["start"], kp["lower"], kp["upper"], kp["log"]) == (1.0, 0.1, 10.0, True)
    assert kp["scale"] == pytest.approx(100**0.1)  # a factor
    assert (delay["start"], delay["integer"]) == (5, True)
    assert s["best_seen"]["x"][1] in range(1, 10)
    assert s["pending"] == [] or s["pending"][0]["x"][1] in range(1, 10)
    assert sorted(each["parameter"] for each in s["views"]["model"]["slices"]) == [0, 1, 2]
    with Journal.read(tmp_path) as journal:
        *_, last = journal.beliefs().values()
        scale = np.array(journal.spec().arguments["scale"])
    assert s["gradient"]["mean"] == (np.array(last["gradient"]) * scale).tolist()
    assert s["gradient"]["sd"] == (np.array(last["gradient_deviation"]) * scale).tolist()


@pytest.mark.parametrize("name", ["journal-v1", "journal-v1-train", "journal-v1-workers", "journal-v2"])
def test_journals_of_earlier_versions_have_a_page(tmp_path, name):
    shutil.copy(DATA / name / FILE, tmp_path / FILE)
    with gibo.Journal.read(tmp_path) as journal:
        told = [e for e, _ in journal.evaluations()]
    s = snapshot(tmp_path)
    assert json.loads(json.dumps(s, allow_nan=False)) == s
    assert s["evaluations"]["kind"] == [e.kind for e in told]
    assert s["beliefs"]["value"] == []  # nothing of it was recorded


def test_trials_that_differ_by_a_number_have_a_mean_and_a_band(tmp_path):
    for i, name in enumerate(("pole-gibo-00", "pole-gibo-01", "pole-ars-00", "pole-ars-01", "robot")):
        method = gibo.ARS if "ars" in name else gibo.RandomSearch
        gibo.run(method([1.0], seed=i), lambda x: -float(x @ x), budget=4, journal=tmp_path / "study" / name)
    trials = Trials(tmp_path)
    groups = {group["name"]: group for group in trials.snapshot()["groups"]}
    trials.close()
    names = {name: [trial["name"] for trial in group["trials"]] for name, group in groups.items()}
    kinds = {"study/pole-gibo": ["pole-gibo-00", "pole-gibo-01"], "study/pole-ars": ["pole-ars-00", "pole-ars-01"]}
    assert names == {**{k: [f"study/{each}" for each in v] for k, v in kinds.items()}, "study/robot": ["study/robot"]}
    group = groups["study/pole-ars"]
    a, b = (dict(zip(t["curve"]["x"], t["curve"]["y"], strict=True)) for t in group["trials"])
    x, band = group["band"]["x"][-1], group["band"]
    assert band["mean"][-1] == pytest.approx((a[x] + b[x]) / 2.0)
    assert band["high"][-1] - band["mean"][-1] == pytest.approx(abs(a[x] - b[x]) / 2.0)
    assert band["mean"][-1] - band["low"][-1] == pytest.approx(abs(a[x] - b[x]) / 2.0)


def test_a_process_that_nobody_has_asked_how_it_ended_is_gone_too(tmp_path, monkeypatch):
    code = (
        "import sys, gibo; from gibo.runs.journal import Journal; from gibo.runs.spec import RunSpec\n"
        "Journal.create(sys.argv[1], RunSpec.of(gibo.GIBO([0.0]))).begin({})"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "run")]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        s = snapshot(tmp_path / "run")
    assert s["state"] == manual.status(tmp_path / "run").state == "gone"
    assert [each["code"] for each in s["advice"]] == ["process_gone"]
    assert "Start the run's program again" in s["next"]
    with Journal.open(tmp_path / "run"):  # the same journal, held
        assert snapshot(tmp_path / "run")["state"] == manual.status(tmp_path / "run").state == "running"
    monkeypatch.setattr("platform.node", lambda: "elsewhere")  # where nothing is known of the process
    assert snapshot(tmp_path / "run")["state"] == manual.status(tmp_path / "run").state == "running"


# -- advice -----------------------------------------------------------------------------------------------------------


def test_a_run_that_is_silent_for_long_is_named(finished):
    s = {**snapshot(finished), "state": "running", "now": 1000.0}
    for last, codes in ((8.0, ["silence"]), (995.0, [])):
        assert [each["code"] for each in advice(s, [last + i / 10.0 for i in range(9)], [])] == codes


# -- the server -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"},
    ],
)
def test_other_sites_are_refused(finished, headers):
    with Watch(finished) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        assert asked(server, "GET", "/api/snapshot", **headers)[0] == 403
        assert asked(server, "GET", "/api/events", **headers)[0] == 403


def test_every_answer_is_guarded_and_the_journal_stays_as_it_was(finished):
    before = hashlib.sha256((finished / FILE).read_bytes()).digest()
    with Watch(finished) as server:
        for path, status in (("/", 200), ("/api/snapshot", 200), ("/nothing", 404), ("/../../etc/passwd", 404)):
            code, headers, _ = asked(server, "GET", path)
            assert code == status
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "unsafe" not in headers["Content-Security-Policy"]
        link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
        assert asked(server, "GET", "/", **link)[0] == 200  # a link on another site may lead here
        stop = {"Content_Type": "application/json", "X_Gibo_Token": ""}
        assert asked(server, "POST", "/api/control", '{"action": "stop"}', **stop)[0] == 403  # it only watches
    assert hashlib.sha256((finished / FILE).read_bytes()).digest() == before


def test_control_needs_the_token_the_origin_and_sense(finished):
    control = Deeds()
    with Watch(finished, control=lambda _: control) as server:
        kind, token = {"Content_Type": "application/json"}, {"X_Gibo_Token": server.token}

        def post(body, **headers):
            return asked(server, "POST", "/api/control", body, **headers)[0]

        assert post('{"action": "stop"}', **kind) == 403
        assert post('{"action": "stop"}', **kind, X_Gibo_Token="." + server.token[1:]) == 403  # a token has no dots
        assert post('{"action": "stop"}', **kind, **token, Origin="http://evil.example") == 403
        assert post('{"action": "stop"}', **token) == 415
        assert post('{"action": "sto', **kind, **token) == 400
        assert post('{"action": "explode"}', **kind, **token) == 400
        assert post(b" " * (2 << 20), **kind, **token) == 413
        assert asked(server, "GET", "/api/control", **token)[0] == 405
        assert control.done == []
        assert post('{"action": "stop"}', **kind, **token, Origin=server.address) == 200
        assert post('{"action": "tell", "id": 4, "value": 1}', **kind, **token) == 200
        assert control.done == [{"action": "stop"}, {"action": "tell", "id": 4, "value": 1}]


def test_a_stream_has_what_is_new_and_what_runs(running, monkeypatch):
    monkeypatch.setattr("gibo.web.watch.REFRESH", math.inf)  # only what is new is sent
    folder, gate = running
    with Watch(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", "/api/events?evaluations=0&iterations=0")
        stream = connection.getresponse()

        def event():
            while not (line := stream.readline().decode()).startswith("data: "):
                pass
            return json.loads(line[6:])

        data = event()
        assert (data["state"], [each["underway"] for each in data["pending"]][:2]) == ("running", [True, False])
        assert data["now"] - data["pending"][0]["since"] < 60.0
        gate.allowed.release(3)
        known = 0
        while known < 3:  # each evaluation is sent once
            data = event()
            assert data["evaluations"]["first"] == known
            known += len(data["evaluations"]["id"])
        control_of(folder).act({"action": "pause"})
        gate.allowed.release(1)
        while data["state"] != "paused" or any(each["underway"] for each in data["pending"]):
            data = event()
        connection.close()
        assert asked(server, "GET", "/api/events?evaluations=x")[0] == 400


def test_runs_and_their_episodes_are_asked_for_by_name_only(tmp_path, finished):
    gibo.maximize(lambda x: -float((x**2).sum()), [1.0], budget=5, journal=tmp_path / "all" / "trial-0")
    with Watch(tmp_path / "all") as server:
        assert asked(server, "GET", "/api/snapshot?trial=trial-0")[0] == 200
        assert b"trial: name the trial" in asked(server, "GET", "/api/replay")[2]
        for name in ("../robot", "..", "trial-0/../trial-0", str(finished)):
            assert asked(server, "GET", f"/api/snapshot?trial={name}")[0] == 404


def test_the_usual_port_or_a_free_one(finished):
    servers = [Watch(finished, None), Watch(finished, None)]
    try:
        assert servers[0].port != servers[1].port
        with pytest.raises(InputError, match="cannot listen"):
            Watch(finished, servers[0].port)
        assert main(["watch", str(finished), "--port", "99999"]) == 2
    finally:
        for server in servers:
            server.server_close()
