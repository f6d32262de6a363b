"""Ask and tell over HTTP and over lines: every client gets a clear answer, each value is recorded once."""

import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from gibo.cli import main
from gibo.errors import InUseError, JournalError
from gibo.runs import manual
from gibo.runs.description import read_description
from gibo.runs.journal import Journal
from gibo.runs.lock import KEPT
from gibo.runs.store import Store
from gibo.web import loopback
from gibo.web.bench import ManualBench
from gibo.web.loopback import LARGEST_BODY
from gibo.web.serve import Serve, serve_lines

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    description = manual.Description(["gain", "lag"], [0.0] * 2, [1.0] * 2, [-5.0] * 2, [5.0] * 2, minimize=True)
    manual.create(path, description)
    return path


@pytest.fixture
def bench(folder):
    with ManualBench(folder) as bench:
        yield bench


@pytest.fixture
def server(bench):
    with Serve(bench) as server:
        yield server


def call(server, method, path, body=None, raw=None, **headers):
    """Status and content of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        data = json.dumps(body) if raw is None and body is not None else raw
        kind = {"Content-Type": "application/json"} if method == "POST" else {}
        connection.request(method, path, data, kind | {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if "json" in answer.headers["Content-Type"] else content.decode()
    finally:
        connection.close()


def told(folder):
    with Journal.read(folder) as journal:
        return {e.id: e.outcome for e, _ in journal.evaluations()}


def lines(bench, *requests):
    """The answers to lines; a request that is bytes is sent as it is."""
    source = b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in requests)
    sink = io.BytesIO()
    serve_lines(bench, io.BytesIO(source), sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


# -- what it does -----------------------------------------------------------------------------------------------------


def test_a_run_over_http(server, folder):
    for _ in range(8):
        status, answer = call(server, "POST", "/ask", {})
        assert status == 200
        assert call(server, "POST", "/ask", {})[1] == answer  # the same ones until they are told
        for query in answer["queries"]:
            assert list(query["parameters"].values()) == query["x"]
            value = (query["x"][0] - 1.0) ** 2 + query["x"][1] ** 2
            assert call(server, "POST", "/tell", {"id": query["id"], "value": value})[1]["recorded"] is True
    best = call(server, "GET", "/best")[1]
    assert best["best"]["value"] == manual.status(folder).result.value < 1.0
    status = call(server, "GET", "/status")[1]
    assert (status["evaluations"], status["minimize"], status["names"]) == (len(told(folder)), True, ["gain", "lag"])
    table = call(server, "GET", "/export")[1]
    assert len(table["rows"]) == len(told(folder))
    text = call(server, "GET", "/export?format=csv")[1]
    assert text.splitlines()[0] == ",".join(table["columns"])


def test_over_lines_a_value_is_told_once_with_what_is_known_of_it(bench, folder):
    (asked,) = lines(bench, {"do": "ask", "tag": "a"})
    assert (asked["ok"], asked["tag"]) == (True, "a")
    first, second, *_ = (query["id"] for query in asked["queries"])
    known = {"repeats": 3, "block": "monday"}
    tell = {"do": "tell", "id": first, "value": 1.5, "gradient": [1.0, 2.0], "gradient_noise": 0.1, **known}
    answers = lines(bench, tell, tell, {**tell, "value": 1.6}, {"do": "tell", "id": first, "failed": True})
    assert [each.get("recorded") for each in answers] == [True, False, None, None]
    assert "1.5" in answers[2]["error"]
    outcome = told(folder)[first]
    assert (outcome.value, outcome.gradient.tolist(), outcome.details()) == (1.5, [1.0, 2.0], known)
    answers = lines(bench, {"do": "tell", "id": second, "failed": "joint limit"}, {"do": "status"}, {"do": "best"})
    assert told(folder)[second].failure == "joint limit"
    assert (answers[1]["evaluations"], answers[1]["failures"], answers[2]["best_seen"]["value"]) == (2, 1, 1.5)
    assert len(lines(bench, {"do": "export"})[0]["rows"]) == len(asked["queries"])


def test_many_clients_at_once_are_each_recorded_once(server, folder):
    queries = call(server, "POST", "/ask", {})[1]["queries"]

    def tell(query):
        return call(server, "POST", "/tell", {"id": query["id"], "value": float(query["id"])})

    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(tell, queries * 10))  # as clients do whose connection broke
    assert {status for status, _ in found} == {200}
    assert sum(answer["recorded"] for _, answer in found) == len(queries)
    assert {number: outcome.value for number, outcome in told(folder).items()} == {q["id"]: q["id"] for q in queries}


def test_while_it_serves_others_read_the_run_and_are_told_at_once_who_holds_it(folder):
    (folder / KEPT).touch()  # of a server that was killed
    with ManualBench(folder) as bench:
        (first, *_) = bench.ask()["queries"]
        with pytest.raises(InUseError, match=f"in use by process {os.getpid()}; .* through it .gibo serve"):
            manual.tell(folder, first["id"], 1.0, waiting=lambda: pytest.fail("it waits"))
        assert manual.status(folder).result.evaluations == 0
    manual.tell(folder, first["id"], 1.0)
    assert not (folder / KEPT).exists()
    with ManualBench(folder) as again:
        assert again.tell({"id": first["id"], "value": 1.0})["recorded"] is False


def test_the_last_value_of_a_batch_is_answered_before_the_step_and_nothing_is_lost(bench, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "whole", ignore=shutil.ignore_patterns("*-shm"))
    for query in bench.ask()["queries"]:
        assert bench.tell({"id": query["id"], "value": sum(x * x for x in query["x"])})["recorded"]
    steps = bench._session.optimizer.log.iterations
    assert len(steps) == 0
    shutil.copytree(folder, tmp_path / "killed")  # as the disk is now, with the step in nobody's memory
    with ManualBench(tmp_path / "killed") as other, ManualBench(tmp_path / "whole") as at_once:
        first, found = other.best(), other.ask()
        for query in at_once.ask()["queries"]:
            at_once.tell({"id": query["id"], "value": sum(x * x for x in query["x"])})
            at_once.status()  # with the step
        assert at_once.ask() == found
    assert bench.best() == first
    assert (len(steps), bench.status()["iteration"]) == (1, 1)
    assert bench.ask() == found


@pytest.mark.parametrize("record", ["told", "asked"])
def test_what_the_disk_did_not_take_is_not_said_to_be_recorded(record, bench, folder, monkeypatch):
    def full(self, *_):
        raise JournalError("the disk is full")

    if record == "told":
        request = {"id": bench.ask()["queries"][0]["id"], "value": 1.0}
    with monkeypatch.context() as broken:
        broken.setattr(Journal, record, full)
        for _ in range(2):
            with pytest.raises(JournalError, match="full"):
                bench.tell(request) if record == "told" else bench.ask()
    assert told(folder) == {}
    if record == "told":
        assert bench.tell(request)["recorded"] is True
    asked = {query["id"] for query in bench.ask()["queries"]}
    with Journal.read(folder) as journal:
        assert asked <= journal.queries().keys()


# -- clients that err -------------------------------------------------------------------------------------------------

WRONG = [
    ({}, 400),
    ({"id": 0}, 400),
    ({"id": True, "value": 1.0}, 400),
    ({"id": 0.0, "value": 1.0}, 400),
    ({"id": 0, "value": True}, 400),
    ({"id": 0, "value": 1.0, "failed": True}, 400),
    ({"id": 0, "failed": 3}, 400),
    ({"id": 0, "value": 1.0, "gradient": [1.0, None], "gradient_noise": 0.1}, 400),
    ({"id": 0, "worth": 1.0}, 400),
    ({"id": 10**40, "value": 1.0}, 409),
    ({"id": -1, "value": 1.0}, 409),
]


NO_OBJECTS = [b'{"id": 0, "val', b"\xff\xfe", b"[" * 100_000, b'{"id": 0, "value": NaN}', b"7"]


def test_wrong_tells_get_a_clear_answer(server, folder):
    call(server, "POST", "/ask", {})
    for request, status in WRONG:
        found, answer = call(server, "POST", "/tell", request)
        assert (found, bool(answer["error"])) == (status, True), request
        assert lines(server.bench, {"do": "tell", **request}) == [{"ok": False, "error": answer["error"]}]
    for raw in NO_OBJECTS:
        status, answer = call(server, "POST", "/tell", raw=raw)
        assert (status, "JSON" in answer["error"]) == (400, True), raw[:20]
        assert lines(server.bench, raw + b"\n", {"do": "status"})[1]["ok"]
    long = b'{"do": "' + b"x" * (3 * LARGEST_BODY) + b'"}\n'
    for raw in (b'{"do": "tell", "id": 0, "value": 1', long):  # half a line, and one that is skipped
        assert lines(server.bench, raw)[0]["ok"] is False
    assert [each["ok"] for each in lines(server.bench, long, {"do": "status"})] == [False, True]
    assert told(folder) == {}


def test_addresses_methods_and_senders(server):
    assert call(server, "GET", "/ask")[0] == 405
    assert call(server, "GET", "/../run/journal.sqlite")[0] == 404
    assert call(server, "GET", "/export?format=exe")[0] == 400
    assert call(server, "POST", "/ask", {"n": 3})[0] == 400
    assert call(server, "POST", "/ask", {}, Content_Type="text/plain")[0] == 415
    assert call(server, "GET", "/status", Host="evil.example")[0] == 403  # test_watch.py has all senders


def test_a_gigabyte_is_refused_before_it_is_read(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        head = f"POST /tell HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {1 << 30}\r\n\r\n".encode() + b" " * 100_000)
        assert b" 413 " in client.recv(100)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert b" 411 " in client.recv(100)
    assert call(server, "GET", "/status")[0] == 200


# -- the guide's programs ---------------------------------------------------------------------------------------------


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder in which the command gibo is this one."""
    command = tmp_path / "bin" / "gibo"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from gibo.cli import entry; entry()" "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


PROGRAMS = {"bash": "curl", "python": sys.executable, "cpp": "c++"}  # and what each needs


@pytest.mark.parametrize("language", PROGRAMS)
def test_programs_of_the_guide(language, workplace):
    if shutil.which(PROGRAMS[language]) is None:
        pytest.skip(f"no {PROGRAMS[language]} on this machine")
    (text,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        text = text.replace("8643", str(probe.getsockname()[1]))
    (workplace / "bench.cpp").write_text(text)
    compiled = "c++ -std=c++17 -Wall -Wextra -Werror -o bench bench.cpp && ./bench"
    commands = {"bash": ["bash", "-euc", text], "python": [sys.executable, "-c", text], "cpp": ["sh", "-c", compiled]}
    done = subprocess.run(commands[language], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    names = {"bash": "bench-sh", "python": "bench-py", "cpp": "bench-cpp"}
    assert len(told(workplace / names[language])) > 6


# -- units and trust --------------------------------------------------------------------------------------------------


KINDS = """
minimize = false
[parameters.gain]
kind = "log"
lower = 0.1
upper = 10
start = 0.3
[parameters.damping]
kind = "integer"
lower = -3
upper = 3
start = 1
"""


def test_a_gradient_is_by_what_was_set(tmp_path):
    (tmp_path / "controller.toml").write_text(KINDS)
    manual.create(tmp_path / "run", read_description(tmp_path / "controller.toml"))
    with ManualBench(tmp_path / "run") as bench:
        query = bench.ask()["queries"][0]
        assert query["x"] == [0.3, 1] == list(query["parameters"].values())
        bench.tell({"id": query["id"], "value": 1.0, "gradient": [2.0, 3.0], "gradient_noise": [0.5, 0.5]})
    outcome = told(tmp_path / "run")[query["id"]]
    assert outcome.gradient.tolist() == pytest.approx([0.6, 3.0])  # by ln(gain): times the gain
    assert outcome.gradient_noise.tolist() == pytest.approx([0.5 * 0.09, 0.5])


def die(*_, **__):
    os._exit(9)


KILLS = {
    "before the commit": lambda: setattr(Store, "insert", die),
    "before the answer": lambda: setattr(loopback.LoopbackHandler, "send_json", die),
    "after the answer": lambda: None,
}
RECORDED = list(KILLS)[1:]


@pytest.mark.parametrize("moment", KILLS)
def test_what_was_answered_is_recorded_wherever_the_server_is_killed(moment, folder):
    number = manual.ask(folder).queries[0].id
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with ManualBench(folder) as bench, Serve(bench) as server:
            KILLS[moment]()
            status, _ = call(server, "POST", "/tell", {"id": number, "value": 2.5})
            os.write(writer, str(status).encode())
            die()
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answers:
        assert answers.read() == (b"200" if moment == "after the answer" else b"")
    assert (number in told(folder)) == (moment in RECORDED)
    with ManualBench(folder) as bench:  # the client says it once more
        assert bench.tell({"id": number, "value": 2.5})["recorded"] == (moment not in RECORDED)


def test_with_a_token_nobody_else_is_answered(folder):
    with ManualBench(folder) as bench, Serve(bench, with_token=True) as server:
        address, token = server.address_with_token.split("/#token=")
        assert address == server.address
        for method, path in (("GET", "/status"), ("POST", "/tell")):
            body = {} if method == "POST" else None
            assert call(server, method, path, body)[0] == 403
            assert call(server, method, path, body, X_Gibo_Token=f".{token[1:]}")[0] == 403
        assert call(server, "POST", "/ask", {}, X_Gibo_Token=token)[0] == 200


# -- what takes for ever ----------------------------------------------------------------------------------------------

SLOW = {
    "a header": "POST /ask HTTP/1.1\r\nContent-Type: application/json\r\nX: ",
    "a body that nobody reads": "GET /status HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 1000000\r\n\r\n",
}


def trickle(client):
    for _ in range(200):  # each byte comes in time
        client.sendall(b"x")
        time.sleep(0.05)


@pytest.mark.parametrize("part", SLOW)
def test_a_request_that_trickles_has_one_deadline(part, server, monkeypatch):
    monkeypatch.setattr(loopback, "PATIENCE", 0.6)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(SLOW[part].replace("PORT", str(server.port)).encode())
        with pytest.raises(OSError, match=r"reset|pipe"):
            trickle(client)
    assert call(server, "GET", "/status")[0] == 200


def test_half_requests_block_nobody(server):
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(600)]
    try:
        for client in silent:
            with suppress(OSError):  # the first ones are closed already
                client.sendall(b"GET /status HTTP/1.1\r\nHost: ")
        for _ in range(3):
            assert call(server, "GET", "/status")[0] == 200
        assert threading.active_count() < 2 * loopback.MOST_CONNECTIONS
    finally:
        for client in silent:
            client.close()


class Dying:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)  # an exception that is raised here is lost


@pytest.mark.parametrize(("command", "moment"), [("serve", "in a destructor"), ("watch", "in another thread")])
def test_a_request_to_end_is_heard_whenever_it_comes(command, moment, folder, monkeypatch):
    name = "server_activate" if moment == "in a destructor" else "service_actions"
    whole = getattr(loopback.LoopbackServer, name)

    def then(self):
        whole(self)
        if moment == "in a destructor":
            Dying()
        else:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # the main thread goes on waiting

    monkeypatch.setattr(loopback.LoopbackServer, name, then)
    before = signal.getsignal(signal.SIGTERM)
    assert main([command, str(folder), "--port=0"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    ManualBench(folder).close()  # it has let go of the run
