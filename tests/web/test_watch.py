"""The page's server: who may speak to it, what it answers, and that it only reads."""

import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from watching import Deeds

import gibo
from gibo.cli import main
from gibo.errors import InputError
from gibo.parameters import Parameters, integer, linear, log
from gibo.runs import manual
from gibo.runs.control import ANY_TIME, control_of
from gibo.runs.journal import Journal
from gibo.runs.store import FILE
from gibo.web.advice import advice
from gibo.web.snapshot import Reader, Since, seen, snapshot
from gibo.web.trials import Trials
from gibo.web.watch import Watch, watch

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


def events(server, path, count):
    """The first events of a stream."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = []
    while len(found) < count:
        line = answer.readline().decode()
        if line.startswith("data: "):
            found.append(json.loads(line[6:]))
    connection.close()
    return found


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
    ups = [each["parameter"] for each in s["views"]["model"]["slices"]]
    assert sorted(ups) == [0, 1, 2]


def test_a_gradient_is_a_change_per_scale(tmp_path):
    gibo.minimize(lambda x: float(x @ [1.0, -2.0]), [0.0, 0.0], budget=30, scale=[0.1, 3.0], journal=tmp_path)
    with gibo.Journal.read(tmp_path) as journal:
        *_, last = journal.beliefs().values()
    gradient = snapshot(tmp_path)["gradient"]
    assert gradient["mean"] == (np.array(last["gradient"]) * [0.1, 3.0]).tolist()
    assert gradient["sd"] == (np.array(last["gradient_deviation"]) * [0.1, 3.0]).tolist()


@pytest.mark.parametrize("name", ["journal-v1", "journal-v1-train", "journal-v1-workers", "journal-v2"])
def test_journals_of_earlier_versions_have_a_page(tmp_path, name):
    shutil.copy(DATA / name / FILE, tmp_path / FILE)
    with gibo.Journal.read(tmp_path) as journal:
        told = [e for e, _ in journal.evaluations()]
    s = snapshot(tmp_path)
    assert json.loads(json.dumps(s, allow_nan=False)) == s
    assert s["evaluations"]["kind"] == [e.kind for e in told]
    assert s["beliefs"]["value"] == []  # nothing of it was recorded


def test_increments_add_up_to_the_whole(finished):
    whole = snapshot(finished)
    with Reader(finished) as reader:
        part = reader.snapshot(Since(40, 5, 5, whole["viewed"]))
    assert (part["views"], seen(part)) == (None, seen(whole))
    for table, first in (("evaluations", 40), ("iterations", 5), ("beliefs", 5)):
        assert part[table]["first"] == first
        for name, column in part[table].items():
            if name != "first":
                assert column == whole[table][name][first:]


def test_the_version_changes_with_the_journal(tmp_path):
    manual.create(tmp_path, manual.Description(["a"], [0.0], [1.0], [-5.0], [5.0]))
    with Reader(tmp_path) as reader:
        before = reader.version()
        assert reader.version() == before
        manual.ask(tmp_path)
        assert reader.version() != before


@pytest.mark.parametrize("method", ["ars", "random-search", "vanilla-bo"])
def test_optimisers_without_our_model_have_a_page_too(tmp_path, method):
    manual.create(tmp_path, manual.Description(["a", "b"], [0.0] * 2, [1.0] * 2, [-5.0] * 2, [5.0] * 2, method))
    for query in manual.ask(tmp_path).queries:
        manual.tell(tmp_path, query.id, -float((query.x**2).sum()))
    s = snapshot(tmp_path)
    assert s["gradient"] is None
    assert len(s["evaluations"]["id"]) == s["count"] > 0
    assert s["state"] == "waiting"


def test_trials_of_one_folder_have_a_mean_and_a_band(tmp_path):
    for seed in range(2):
        gibo.maximize(
            lambda x: -float((x**2).sum()), [1.0, 2.0], budget=12, seed=seed, journal=tmp_path / f"trial-{seed}"
        )
    trials = Trials(tmp_path)
    try:
        (group,) = trials.snapshot()["groups"]
        assert [trial["name"] for trial in group["trials"]] == ["trial-0", "trial-1"]
        a, b = (dict(zip(t["curve"]["x"], t["curve"]["y"], strict=True)) for t in group["trials"])
        x, band = group["band"]["x"][-1], group["band"]
        assert band["mean"][-1] == pytest.approx((a[x] + b[x]) / 2.0)
        assert band["high"][-1] - band["mean"][-1] == pytest.approx(abs(a[x] - b[x]) / 2.0)
    finally:
        trials.close()


def test_a_folder_whose_runs_cannot_be_read_says_why(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / FILE).write_bytes(b"SQLite format 3\0" + bytes(200))
    with pytest.raises(gibo.JournalError, match="run"):
        Trials(tmp_path)


def test_trials_of_different_kinds_have_a_mean_each(tmp_path):
    for name in ("pole-gibo-00", "pole-gibo-01", "pole-ars-00", "pole-ars-01", "robot"):
        method = gibo.ARS if "ars" in name else gibo.RandomSearch
        gibo.run(method([1.0]), lambda x: -float(x @ x), budget=4, journal=tmp_path / "study" / name)
    for folder, prefix in ((tmp_path, "study/"), (tmp_path / "study", "")):
        trials = Trials(folder)
        groups = {group["name"]: [trial["name"] for trial in group["trials"]] for group in trials.snapshot()["groups"]}
        trials.close()
        kinds = {"pole-gibo": ["pole-gibo-00", "pole-gibo-01"], "pole-ars": ["pole-ars-00", "pole-ars-01"]}
        expected = {**kinds, "robot": ["robot"]}
        assert groups == {prefix + name: [prefix + each for each in its] for name, its in expected.items()}


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


def test_what_runs_where_and_what_comes_next(running):
    folder, gate = running
    s = snapshot(folder)
    assert (s["state"], [query["underway"] for query in s["pending"]][:2]) == ("running", [True, False])
    assert s["now"] - s["pending"][0]["since"] < 60.0
    control_of(folder).act({"action": "pause"})
    for i in range(51):  # more than the page shows
        control_of(folder).act({"action": "remark", "text": f"remark {i}"})
    gate.allowed.release(1)
    deadline = time.monotonic() + 20.0
    while (s := snapshot(folder))["state"] != "paused" or any(query["underway"] for query in s["pending"]):
        assert time.monotonic() < deadline
    assert s["pending"]


# -- advice -----------------------------------------------------------------------------------------------------------


def test_advice_where_something_is_off(finished):
    s = snapshot(finished)
    with Reader(finished) as reader:
        facts = reader.recorded.facts(60, [None] * 50, s["failures"], s["belief"], reader.recorded.last(), None)
    codes = [each["code"] for each in advice(s, [(float(i), None) for i in range(20)], facts)]
    assert "process_gone" not in codes
    gone = {**s, "state": "gone"}
    assert next(each["code"] for each in advice(gone, [], facts)) == "process_gone"
    silent = {**s, "state": "running", "now": 1000.0}
    assert next(each["code"] for each in advice(silent, [(float(i), None) for i in range(9)], facts)) == "silence"
    failing = replace(facts, recent=["crash"] * 9)
    assert next(each["code"] for each in advice(s, [], failing)) == "all_failing"


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
        stop = {"Content_Type": "application/json", "X_Gibo_Token": server.token}
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
        assert post('["stop"]', **kind, **token) == 400
        assert post('{"action": "explode"}', **kind, **token) == 400
        assert post('{"action": "tell", "id": "0", "value": 1}', **kind, **token) == 400
        assert post('{"action": "tell", "id": 0, "value": true}', **kind, **token) == 400
        assert post(f'{{"action": "remark", "text": "{"x" * 3000}"}}', **kind, **token) == 400
        assert post(b" " * (2 << 20), **kind, **token) == 413
        assert asked(server, "GET", "/api/control", **token)[0] == 405
        assert control.done == []
        assert post('{"action": "stop"}', **kind, **token, Origin=server.address) == 200
        assert post('{"action": "tell", "id": 4, "value": 1}', **kind, **token) == 200
        assert post('{"action": "mark_failed", "id": 4}', **kind, **token) == 200
        assert control.done == ["stop", ("tell", 4, 1.0), ("mark_failed", 4, "marked as failed by hand")]


def test_only_what_is_new_is_sent(running):
    folder, gate = running
    gate.allowed.release(3)
    with Watch(folder) as server:
        first = events(server, "/api/events?evaluations=0&iterations=0", 1)[0]
        known = len(first["evaluations"]["id"])
        later = events(server, f"/api/events?evaluations={known}&iterations=0", 1)[0]
        assert later["evaluations"]["first"] == known
        assert asked(server, "GET", "/api/events?evaluations=x")[0] == 400


def test_trials_are_asked_for_by_name_only(tmp_path, finished):
    gibo.maximize(lambda x: -float((x**2).sum()), [1.0], budget=5, journal=tmp_path / "all" / "trial-0")
    with Watch(tmp_path / "all") as server:
        assert asked(server, "GET", "/api/snapshot?trial=trial-0")[0] == 200
        for name in ("../robot", "..", "trial-0/../trial-0", str(finished)):
            assert asked(server, "GET", f"/api/snapshot?trial={name}")[0] == 404


def test_the_usual_port_or_a_free_one(finished):
    servers = [watch(finished), watch(finished)]
    try:
        assert servers[0].port != servers[1].port
        with pytest.raises(InputError, match="cannot listen"):
            Watch(finished, servers[0].port)
    finally:
        for server in servers:
            server.server_close()


def test_the_command_lines_mistakes(tmp_path, capsys):
    assert main(["watch", str(tmp_path)]) == 2
    assert "there is no run" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "missing")]) == 2
    assert main(["watch", str(tmp_path), "--port", "99999"]) == 2


@pytest.fixture
def a_person(tmp_path):
    """Whoever runs the tests, but not the superuser, who may read and write everything."""
    tmp_path.chmod(0o755)
    me = os.geteuid()
    if me == 0:
        "localhost".encode("idna")  # loaded when a socket needs it first, by who may not read Python's own folder
        for path in (tmp_path, *tmp_path.parents):
            if "pytest-of-" in str(path):  # pytest's own folders, one more of them where tests run side by side
                path.chmod(0o755)
        os.seteuid(65534)
    yield
    os.seteuid(me)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="this system has other permissions")
def test_a_run_that_may_be_read_alone_has_a_page_and_one_that_may_not_a_line(finished, tmp_path, capsys, request):
    folder = shutil.copytree(finished, tmp_path / "run")
    hidden = shutil.copytree(finished, tmp_path / "hidden")
    for path in (folder / FILE, folder):
        path.chmod(0o555)
    (hidden / FILE).chmod(0o000)
    request.getfixturevalue("a_person")
    assert snapshot(folder)["count"] == 60
    with Watch(folder) as server:
        assert asked(server, "GET", "/api/snapshot")[0] == 200
    for words in (["watch", "--port=0"], ["report"]):
        assert main([words[0], str(hidden), *words[1:]]) == 2
        said, complained = capsys.readouterr()
        assert (said, complained.count("\n")) == ("", 1)
        assert "Permission denied" in complained


def test_the_watch_command(finished):
    command = [
        sys.executable,
        "-c",
        "from gibo.cli import entry; entry()",
        "watch",
        str(finished),
        "--port=0",
        "--control",
    ]
    # A shell's background jobs ignore Ctrl-C, and so would what is started here.
    listening = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **listening) as process:
        try:
            address = process.stdout.readline().split()[-1]
            assert "#token=" in address
            with urllib.request.urlopen(address.split("#")[0] + "api/snapshot", timeout=10) as answer:
                assert json.load(answer)["control"] == sorted(ANY_TIME)  # no process runs it
            process.send_signal(signal.SIGINT)
            process.wait(30)
        finally:
            process.kill()
    assert process.returncode == 0
