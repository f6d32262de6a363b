"""The page's server: who may speak to it, what it answers, and that it only reads."""

import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from watching import Deeds, noisy

import gibo
from gibo.cli import main
from gibo.errors import InputError, NumericalError, QueryError
from gibo.optimizers.surrogate import Surrogate
from gibo.runs import manual
from gibo.runs.control import ANY_TIME, control_of
from gibo.runs.spec import Naming
from gibo.runs.store import FILE
from gibo.web.advice import advice
from gibo.web.belief import Belief, Recorded
from gibo.web.snapshot import Reader, Since, snapshot
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


@pytest.mark.parametrize("N_m", [100, 8])
def test_the_belief_is_the_runs_own(tmp_path, N_m):
    """In the middle of a batch, after its last value, and with what is remembered: within the window, and of old."""
    settings = gibo.Settings.default(N_m=N_m)
    for budget in range(58, 64):
        with pytest.warns(gibo.FailedEvaluationWarning) if budget == 58 else nullcontext():
            result = gibo.maximize(noisy, np.zeros(4), budget=budget, scale=0.2, settings=settings, journal=tmp_path)
        s = snapshot(tmp_path)
        assert s["belief"]["x"] == pytest.approx(result.x.tolist(), abs=1e-9)
        assert s["belief"]["value"] == pytest.approx(result.value, rel=1e-6)
        assert (s["belief"]["low"], s["belief"]["high"]) == pytest.approx(result.interval, rel=1e-6)
        assert s["gradient"]["mean"] == pytest.approx(result.jacobian.mean.tolist(), rel=1e-5, abs=1e-6)
        assert s["belief"]["sd"] > 0.0


def test_points_are_judged_by_the_same_values_as_in_the_run(tmp_path, monkeypatch):
    seen = {}
    for module in ("optimizers.gibo", "server.belief"):

        def noted(optimizer, surrogate, model, window, first, iterate, failed, module=module):
            seen[module] = [[(e.id, *e.x, e.value) for e in part] for part in (window, first)]
            return iterate

        monkeypatch.setattr(f"gibo.{module}.recommended", noted)
    settings = gibo.Settings.default(N_m=8)
    gibo.minimize(noisy, np.zeros(4), budget=60, scale=0.2, settings=settings, journal=tmp_path)
    snapshot(tmp_path)
    run, page = seen.values()
    assert run == page
    assert [len(part) for part in page] == [9, 7]  # the start, which is kept, and the other first values


def test_a_reading_of_the_record_that_cannot_be_computed_with_is_passed_over(monkeypatch):
    opt = gibo.GIBO(np.zeros(4), scale=0.2)
    while len(opt.evaluations) < 20:
        for query in opt.ask():
            opt.tell(query, -float(((query.x - 1.0) ** 2).sum()))
    belief, window, model = Belief(Surrogate.initial(opt.settings, opt.scale), 1.0, opt), opt.evaluations, Belief.model
    gradient = model(belief, belief.surrogate, window).jacobian(opt.iterate).mean
    own = belief.surrogate.hyperparameters
    step = Recorded(opt.iterate, gradient, own.lengthscale * opt.scale, own.variance, own.noise)
    tried = []

    def none_of_the_first(belief, surrogate, window):
        tried.append(surrogate)
        if len(tried) == 1:
            raise NumericalError("no factor")
        return model(belief, surrogate, window)

    monkeypatch.setattr(Belief, "model", none_of_the_first)
    found = belief.as_recorded(belief.surrogate, window, step)
    assert len(tried) > 2
    assert found.hyperparameters.lengthscale == pytest.approx(own.lengthscale)


def test_the_belief_knows_a_correlation(tmp_path):
    def valley(x, seed):
        return float(-((x[0] - x[1] - 1.0) ** 2) - 0.05 * x.sum() ** 2 + 0.05 * np.random.default_rng(seed).normal())

    settings = gibo.Settings(correlation=((1.0, 0.7), (0.7, 1.0)), M=3)
    for budget in (20, 22, 24):  # in the middle of a batch, and after its last value
        result = gibo.maximize(valley, np.zeros(2), budget=budget, scale=0.3, settings=settings, journal=tmp_path)
        s = snapshot(tmp_path)
        assert s["belief"]["x"] == pytest.approx(result.x.tolist(), abs=1e-9)
        assert s["belief"]["value"] == pytest.approx(result.value, rel=1e-6)
        assert s["gradient"]["mean"] == pytest.approx(result.jacobian.mean.tolist(), rel=1e-5, abs=1e-6)
        assert all(value is not None for value in s["iterations"]["belief"])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradient_observations_are_part_of_the_belief_and_signs_are_the_users(tmp_path, sign):
    def bowl(x):
        return gibo.Outcome(-sign * float((x**2).sum()), gradient=-sign * 2.0 * x, gradient_noise=1e-4)

    solve = gibo.maximize if sign > 0 else gibo.minimize
    result = solve(bowl, [0.5, 1.0, 2.0], budget=24, scale=0.3, journal=tmp_path / "run")
    s = snapshot(tmp_path / "run")
    assert s["minimize"] is (sign < 0)
    assert s["belief"]["value"] == pytest.approx(result.value, rel=1e-6, abs=1e-9)
    assert s["belief"]["low"] < s["belief"]["value"] < s["belief"]["high"]
    assert s["gradient"]["mean"] == pytest.approx(result.jacobian.mean.tolist(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("policy", ["affine", "linear"])
@pytest.mark.parametrize("reexpressed", ["exact", "data", "iterate", "off"])
def test_the_belief_moves_with_what_is_learnt_of_the_states(tmp_path, reexpressed, policy):
    pytest.importorskip("gymnasium")
    from gibo.training.training import Training, train

    options = {"policy": policy, "normalize_states": True, "max_steps": 30, "reexpressed": reexpressed}
    for budget in (18, 19, 20):
        result = train(Training("Pendulum-v1", **options), tmp_path, budget=budget)
        s = snapshot(tmp_path)
        assert s["belief"]["x"] == pytest.approx(result.x.tolist(), abs=1e-9)
        assert s["belief"]["value"] == pytest.approx(result.value, rel=1e-6)
        assert s["gradient"]["mean"] == pytest.approx(result.jacobian.mean.tolist(), rel=1e-5, abs=1e-6)
    assert sum(value is not None for value in s["iterations"]["belief"]) == len(s["iterations"]["number"])


@pytest.mark.parametrize("name", ["journal-v1", "journal-v1-train", "journal-v1-workers", "journal-v2"])
def test_journals_of_earlier_versions_have_a_page(tmp_path, name):
    shutil.copy(DATA / name / FILE, tmp_path / FILE)
    with gibo.Journal.read(tmp_path) as journal:
        told = [e for e, _ in journal.evaluations()]
    s = snapshot(tmp_path)
    assert json.loads(json.dumps(s, allow_nan=False)) == s
    assert s["evaluations"]["kind"] == [e.kind for e in told]
    if s["optimizer"] == "GIBO":
        assert s["belief"]["value"] is not None
        assert len(s["gradient"]["mean"]) == len(s["parameters"])


def test_increments_add_up_to_the_whole(finished):
    whole = snapshot(finished)
    with Reader(finished) as reader:
        part = reader.snapshot(Since(40, 5))
    for table, first in (("evaluations", 40), ("iterations", 5)):
        assert part[table]["first"] == first
        for name, column in part[table].items():
            if name not in ("first", "belief", "belief_sd"):
                assert column == whole[table][name][first:]


def test_a_snapshot_is_plain_json(finished):
    s = snapshot(finished)
    assert json.loads(json.dumps(s, allow_nan=False)) == s


def test_reading_leaves_the_journal_as_it_was(finished):
    path = finished / "journal.sqlite"
    before = hashlib.sha256(path.read_bytes()).digest()
    with Watch(finished) as server:
        assert asked(server, "GET", "/api/snapshot")[0] == 200
    assert hashlib.sha256(path.read_bytes()).digest() == before


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


def test_a_process_that_has_gone_is_seen(tmp_path):
    code = (
        "import sys, gibo; from gibo.runs.journal import Journal; from gibo.runs.spec import RunSpec\n"
        "Journal.create(sys.argv[1], RunSpec.of(gibo.GIBO([0.0]))).begin({})"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)
    s = snapshot(tmp_path / "run")
    assert s["state"] == "gone"
    assert [each["code"] for each in s["advice"]] == ["process_gone"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not tell")
def test_a_process_that_nobody_has_asked_how_it_ended_is_gone_too(tmp_path):
    code = (
        "import sys, gibo; from gibo.runs.journal import Journal; from gibo.runs.spec import RunSpec\n"
        "Journal.create(sys.argv[1], RunSpec.of(gibo.GIBO([0.0]))).begin({})"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "run")]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert snapshot(tmp_path / "run")["state"] == "gone"


def test_control_of_a_run_that_no_process_holds(tmp_path):
    manual.create(tmp_path, manual.Description(["a", "b"], [0.0] * 2, [1.0] * 2, [-5.0] * 2, [5.0] * 2))
    first, second = manual.ask(tmp_path).queries[:2]
    control = control_of(tmp_path)
    control.tell(first.id, 1.5)
    control.mark_failed(second.id, "it fell")
    control.remark("the oil is warm")
    for action in (control.pause, control.continue_, control.stop):
        with pytest.raises(InputError, match="no process works on this run"):
            action()
    with pytest.raises(QueryError, match="was told before"):
        control.tell(first.id, 2.0)
    s = snapshot(tmp_path)
    assert [(each["kind"], each["after"]) for each in s["actions"]] == [("told", 1), ("failed", 2), ("remark", 2)]
    assert s["state"] == "waiting"


def test_what_runs_where_and_what_comes_next(running):
    folder, gate = running
    s = snapshot(folder)
    assert (s["state"], [query["underway"] for query in s["pending"]][:2]) == ("running", [True, False])
    assert s["now"] - s["pending"][0]["since"] < 60.0
    control_of(folder).pause()
    gate.allowed.release(1)
    deadline = time.monotonic() + 20.0
    while (s := snapshot(folder))["state"] != "paused" or any(query["underway"] for query in s["pending"]):
        assert time.monotonic() < deadline
    assert s["pending"]


# -- advice -----------------------------------------------------------------------------------------------------------


def codes(s, recent=(), ascents=(), walk=lambda i: np.eye(4)[i % 4]):  # neither on nor back
    steps = [(p, (0.1 * walk(i)).tolist(), 1.0, 0.01) for i, p in enumerate(ascents)]
    return [each["code"] for each in advice(s, recent, steps, None, Naming(["a", "b", "c", "d"]))]


def test_a_good_run_gets_no_advice(finished):
    s = {**snapshot(finished), "belief": None}
    assert codes(s, [(float(i), None) for i in range(20)], [0.9] * 10) == []


def test_advice_where_something_is_off(finished):
    s = {**snapshot(finished), "belief": None}
    assert codes(s, [(float(i), "crash" if i > 3 else None) for i in range(10)]) == ["all_failing"]
    assert codes(s, [(float(i), "crash" if i % 2 else None) for i in range(19)]) == ["many_failing"]
    assert codes(s, ascents=[0.9, 0.5, 0.55, 0.5, 0.4, 0.5]) == ["no_ascent"]
    assert codes({**s, "lengthscale": [50.0] * 4}, ascents=[0.9] * 6) == ["scale_small"]
    assert codes(s, ascents=[0.9] * 16, walk=lambda i: (-1.0) ** i * np.eye(4)[0]) == ["scale_large"]
    assert codes({**s, "state": "gone"}) == ["process_gone"]
    assert codes({**s, "state": "running", "now": 1000.0}, [(float(i), None) for i in range(9)]) == ["silence"]
    assert codes({**s, "belief": {"x": [0.0, 2.0, 0.0, 0.0], "value": 1.0, "sd": None}}) == ["at_bound"]


# -- the server -------------------------------------------------------------------------------------------------------


def test_it_listens_on_this_machine_alone(finished):
    with Watch(finished) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        assert server.page_address == f"http://127.0.0.1:{server.port}/"


def test_every_answer_is_guarded(finished):
    with Watch(finished) as server:
        for path, status in (("/", 200), ("/api/snapshot", 200), ("/nothing", 404), ("/../../etc/passwd", 404)):
            code, headers, _ = asked(server, "GET", path)
            assert code == status
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "unsafe" not in headers["Content-Security-Policy"]


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
        assert asked(server, "GET", "/api/snapshot", **headers)[0] == 403
        assert asked(server, "GET", "/api/events", **headers)[0] == 403


def test_a_link_on_another_site_may_lead_here(finished):
    with Watch(finished) as server:
        assert asked(server, "GET", "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200


def test_without_control_nothing_can_be_changed(finished):
    with Watch(finished) as server:
        body = json.dumps({"action": "stop"})
        answer = asked(server, "POST", "/api/control", body, Content_Type="application/json", X_Gibo_Token=server.token)
        assert answer[0] == 403


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


def test_a_client_that_says_nothing_or_leaves_does_no_harm(finished, capfd):
    with Watch(finished) as server:
        silent = socket.create_connection(("127.0.0.1", server.port))
        rude = socket.create_connection(("127.0.0.1", server.port))
        rude.sendall(b"POST /api/control HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf")
        rude.close()
        garbage = socket.create_connection(("127.0.0.1", server.port))
        garbage.sendall(b"\x00\xff\r\n\r\n")
        garbage.recv(1000)
        garbage.close()
        leaving = socket.create_connection(("127.0.0.1", server.port))
        leaving.sendall(f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        leaving.recv(100)
        leaving.close()
        assert asked(server, "GET", "/api/snapshot")[0] == 200
        silent.close()
    assert "Traceback" not in capfd.readouterr().err


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
@pytest.mark.parametrize("words", [["watch", "--port=0"], ["report"], ["status"], ["export"]])
@pytest.mark.parametrize("path", [".", FILE])
def test_what_may_not_be_read_is_one_line(words, path, finished, tmp_path, capsys, request):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / path).chmod(0o000)
    request.getfixturevalue("a_person")
    assert main([words[0], str(folder), *words[1:]]) == 2
    said, complained = capsys.readouterr()
    assert (said, complained.count("\n")) == ("", 1)
    assert "Permission denied" in complained


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="this system has other permissions")
def test_a_run_that_can_only_be_read_has_a_page(finished, tmp_path, request):
    folder = shutil.copytree(finished, tmp_path / "run")
    for path in (folder / FILE, folder):
        path.chmod(0o555)
    request.getfixturevalue("a_person")
    assert snapshot(folder)["count"] == 60
    with Watch(folder) as server:
        assert asked(server, "GET", "/api/snapshot")[0] == 200


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


def test_the_report_command(finished, tmp_path, capsys):
    assert main(["report", str(finished), "-o", str(tmp_path / "report.html")]) == 0
    html = (tmp_path / "report.html").read_text()
    assert "<script>document.title" not in html  # the hostile message is in it, and is data
    assert "Leon Sorokin" in html  # the chart library's licence goes with it
