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
from gibo.optimizers.base import Optimizer
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
def server(folder):
    with ManualBench(folder) as bench, Serve(bench) as server:
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


@pytest.fixture
def bench(folder):
    with ManualBench(folder) as bench:
        yield bench


def test_lines_do_the_same(bench, folder):
    (asked,) = lines(bench, {"do": "ask", "tag": "a"})
    assert (asked["ok"], asked["tag"]) == (True, "a")
    query = asked["queries"][0]
    answers = lines(
        bench, {"do": "tell", "id": query["id"], "value": 2.5}, {"do": "status"}, {"do": "best"}, {"do": "export"}
    )
    assert [each["ok"] for each in answers] == [True] * 4
    assert answers[1]["evaluations"] == 1
    assert answers[2]["best_seen"]["value"] == 2.5
    assert told(folder)[query["id"]].value == 2.5


def test_gradients_and_failures_are_recorded(server, folder):
    first, *_ = call(server, "POST", "/ask", {})[1]["queries"]
    gradient = {"id": first["id"], "value": 1.0, "gradient": [1.0, 2.0], "gradient_noise": 0.1, "repeats": 3}
    assert call(server, "POST", "/tell", gradient) == (200, {"id": first["id"], "recorded": True})
    assert call(server, "POST", "/tell", gradient) == (200, {"id": first["id"], "recorded": False})
    answer = told(folder)[first["id"]]
    assert (answer.gradient.tolist(), answer.gradient_noise.tolist()) == ([1.0, 2.0], [0.1, 0.1])
    assert answer.repeats == 3
    for query in call(server, "POST", "/ask", {})[1]["queries"]:
        assert call(server, "POST", "/tell", {"id": query["id"], "failed": "joint limit"})[0] == 200
        assert told(folder)[query["id"]].failure == "joint limit"
    assert call(server, "GET", "/status")[1]["failures"] > 0


def test_the_same_value_twice_is_no_error_and_another_one_is(server, folder):
    number = call(server, "POST", "/ask", {})[1]["queries"][0]["id"]
    assert call(server, "POST", "/tell", {"id": number, "value": 1.5})[1]["recorded"] is True
    assert call(server, "POST", "/tell", {"id": number, "value": 1.5}) == (200, {"id": number, "recorded": False})
    status, answer = call(server, "POST", "/tell", {"id": number, "value": 1.6})
    assert status == 409
    assert "1.5" in answer["error"]
    assert call(server, "POST", "/tell", {"id": number, "failed": True})[0] == 409
    assert told(folder)[number].value == 1.5


def test_a_hundred_clients_at_once(tmp_path):
    names, d = [f"p{i}" for i in range(4)], 4
    description = manual.Description(
        names, [0.0] * d, [1.0] * d, [-5.0] * d, [5.0] * d, settings={"M": 100, "N_m": 120, "fit": "never"}
    )
    manual.create(tmp_path / "run", description)
    with ManualBench(tmp_path / "run") as bench, Serve(bench) as server:
        queries = call(server, "POST", "/ask", {})[1]["queries"]
        assert len(queries) >= 100

        def tell(query):
            # Each of them twice, as a client does whose connection broke.
            answers = [
                call(server, "POST", "/tell", {"id": query["id"], "value": float(query["id"])}) for _ in range(2)
            ]
            return [(status, answer["recorded"]) for status, answer in answers]

        with ThreadPoolExecutor(100) as pool:
            found = list(pool.map(tell, queries))
    assert found == [[(200, True), (200, False)]] * len(queries)
    assert {number: answer.value for number, answer in told(tmp_path / "run").items()} == {
        query["id"]: float(query["id"]) for query in queries
    }


def test_while_it_serves_others_read_the_run_and_are_told_at_once_who_holds_it(folder):
    (folder / KEPT).touch()  # of a server that was killed
    with ManualBench(folder) as bench:
        (first, *_) = bench.ask()["queries"]
        with pytest.raises(InUseError, match=f"in use by process {os.getpid()}; .* through it .gibo serve"):
            manual.tell(folder, first["id"], 1.0, waiting=lambda: pytest.fail("it waits"))
        assert manual.status(folder).result.evaluations == 0
    assert not (folder / KEPT).exists()
    manual.tell(folder, first["id"], 1.0)
    with ManualBench(folder) as again:
        assert again.tell({"id": first["id"], "value": 1.0})["recorded"] is False


def test_a_relative_folder_is_found_wherever_the_process_goes(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder.parent)
    with ManualBench(folder.name) as bench:
        monkeypatch.chdir(tmp_path.parent)
        query = bench.ask()["queries"][0]
        assert bench.tell({"id": query["id"], "value": 1.0})["recorded"]
        assert len(bench.export()["rows"]) >= 1
    assert len(told(folder)) == 1


def test_the_last_value_of_a_batch_is_answered_before_the_step_and_nothing_is_lost(bench, folder, tmp_path):
    def value(query):
        return sum(x * x for x in query["x"])

    for query in bench.ask()["queries"]:
        assert bench.tell({"id": query["id"], "value": value(query)})["recorded"]
    steps = bench._session.optimizer.log.iterations
    assert len(steps) == 0
    shutil.copytree(folder, tmp_path / "killed")  # as the disk is now, with the step in nobody's memory
    with ManualBench(tmp_path / "killed") as other:
        first, found = other.best(), other.ask()
    assert bench.best() == first
    assert (len(steps), bench.status()["iteration"]) == (1, 1)
    assert bench.ask() == found
    # The same as if the step had been made at once.
    manual.create(tmp_path / "whole", manual.Description(["gain", "lag"], [0.0] * 2, [1.0] * 2, [-5.0] * 2, [5.0] * 2))
    with ManualBench(tmp_path / "whole") as at_once:
        for query in at_once.ask()["queries"]:
            at_once.tell({"id": query["id"], "value": -value(query)})
            at_once.status()
        assert [query["x"] for query in at_once.ask()["queries"]] == [query["x"] for query in found["queries"]]


def test_what_the_disk_did_not_take_is_not_said_to_be_recorded(bench, folder, monkeypatch):
    (first, *_) = bench.ask()["queries"]
    request = {"id": first["id"], "value": 1.0}

    def full(self, *_):
        raise JournalError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Journal, "told", full)
        with pytest.raises(JournalError, match="full"):
            bench.tell(request)
    assert told(folder) == {}
    assert bench.tell(request)["recorded"] is True
    assert told(folder)[first["id"]].value == 1.0
    for query in bench.ask()["queries"]:
        bench.tell({"id": query["id"], "value": 1.0})
    with monkeypatch.context() as broken:
        broken.setattr(Journal, "asked", full)
        for _ in range(2):
            with pytest.raises(JournalError, match="full"):
                bench.ask()
    (first, *_) = bench.ask()["queries"]
    with Journal.read(folder) as journal:
        assert first["id"] in journal.queries()


# -- clients that err -------------------------------------------------------------------------------------------------

WRONG = [
    ({}, 400),
    ({"id": 0}, 400),
    ({"id": "0", "value": 1.0}, 400),
    ({"id": True, "value": 1.0}, 400),
    ({"id": 0.0, "value": 1.0}, 400),
    ({"id": 0, "value": "1.0"}, 400),
    ({"id": 0, "value": True}, 400),
    ({"id": 0, "value": [1.0]}, 400),
    ({"id": 0, "value": 1.0, "failed": True}, 400),
    ({"id": 0, "failed": 3}, 400),
    ({"id": 0, "value": 1.0, "gradient": [1.0, None], "gradient_noise": 0.1}, 400),
    ({"id": 0, "worth": 1.0}, 400),
    ({"id": 10**40, "value": 1.0}, 409),
    ({"id": 77, "value": 1.0}, 409),
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
    assert lines(server.bench, b'{"do": "tell", "id": 0, "value": 1')[0]["ok"] is False  # half a line
    assert told(folder) == {}


def test_addresses_methods_and_senders(server):
    assert call(server, "GET", "/ask")[0] == 405
    assert call(server, "GET", "/../run/journal.sqlite")[0] == 404
    assert call(server, "GET", "/export?format=exe")[0] == 400
    assert call(server, "POST", "/ask", {"n": 3})[0] == 400
    assert call(server, "POST", "/ask", {}, Content_Type="text/plain")[0] == 415
    assert call(server, "POST", "/ask", {}, Origin="http://evil.example")[0] == 403
    assert call(server, "GET", "/status", Host="evil.example")[0] == 403


def test_a_gigabyte_is_refused_before_it_is_read(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        head = f"POST /tell HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {1 << 30}\r\n\r\n".encode() + b" " * 100_000)
        assert b" 413 " in client.recv(100)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert b" 411 " in client.recv(100)
    assert call(server, "GET", "/status")[0] == 200


def test_a_line_that_is_too_long_is_passed_over(bench):
    long = b'{"do": "' + b"x" * (3 * LARGEST_BODY) + b'"}\n'
    first, second = lines(bench, long, {"do": "status"})
    assert (first["ok"], second["ok"]) == (False, True)
    assert str(LARGEST_BODY) in first["error"]


def test_a_client_that_leaves_before_the_answer(server, folder):
    call(server, "POST", "/ask", {})
    body = b'{"id": 0, "value": 1.5}'
    head = f"POST /tell HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    for data in (body, body[:9]):  # whole, and cut off in the middle
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + data)
            client.shutdown(socket.SHUT_WR)
            client.recv(1)
    assert call(server, "POST", "/tell", {"id": 0, "value": 1.5}) == (200, {"id": 0, "recorded": False})


def test_a_reader_of_lines_that_leaves_ends_the_server(bench):
    class Gone(io.BytesIO):
        def write(self, data):
            raise BrokenPipeError

    serve_lines(bench, io.BytesIO(b'{"do": "status"}\n' * 3), Gone())


def test_an_error_of_ours_ends_one_request_alone(folder, capfd):
    class Broken(ManualBench):
        def best(self):
            raise ZeroDivisionError

    with Broken(folder) as bench, Serve(bench) as server:
        assert call(server, "GET", "/best")[0] == 500
        assert call(server, "GET", "/status")[0] == 200
    assert "ZeroDivisionError" in capfd.readouterr().err


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


def program(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return found


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_the_shell_script(workplace):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    output = run("bash", "-euc", program("bash").replace("8643", str(port)))
    assert len(told(workplace / "bench-sh")) == output.count('"recorded":true') > 6


def test_the_python_program(workplace):
    assert "'value': " in run(sys.executable, "-c", program("python"))
    assert len(told(workplace / "bench-py")) > 6


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler on this machine")
def test_the_cpp_program(workplace):
    (workplace / "bench.cpp").write_text(program("cpp"))
    run("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", "bench", "bench.cpp")
    assert json.loads(run("./bench").splitlines()[-1])["ok"] is True
    assert len(told(workplace / "bench-cpp")) > 6


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


def die_after(owner, name):
    whole = getattr(owner, name)

    def then_die(*args, **kwargs):
        whole(*args, **kwargs)
        die()

    setattr(owner, name, then_die)


KILLS = {
    "before the request is read": lambda: setattr(loopback.LoopbackHandler, "body", die),
    "before the transaction": lambda: setattr(Store, "__enter__", die),
    "after an insert": lambda: die_after(Store, "insert"),
    "before the commit": lambda: setattr(Store, "__exit__", die),
    "after the commit": lambda: die_after(Store, "__exit__"),
    "before the optimiser has it": lambda: setattr(Optimizer, "receive", die),
    "before the answer": lambda: setattr(loopback.LoopbackHandler, "send_json", die),
    "after the answer": lambda: None,
}
RECORDED = list(KILLS)[4:]


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
        address, token = server.public_address.split("/#token=")
        assert address == server.address
        for method, path in (("GET", "/status"), ("GET", "/export"), ("POST", "/ask"), ("POST", "/tell")):
            body = {} if method == "POST" else None
            assert call(server, method, path, body)[0] == 403
            assert call(server, method, path, body, X_Gibo_Token=f".{token[1:]}")[0] == 403
        assert call(server, "POST", "/ask", {}, X_Gibo_Token=token)[0] == 200


# -- what takes for ever ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["GET /", "POST /ask HTTP/1.1\r\nContent-Type: application/json\r\nX: "])
def test_a_request_that_trickles_has_one_deadline(part, server, monkeypatch):
    monkeypatch.setattr(loopback, "PATIENCE", 0.6)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(part.encode())
        for _ in range(200):  # each byte comes in time
            try:
                client.sendall(b"x")
                time.sleep(0.05)
            except OSError:
                break
        else:
            pytest.fail("the connection is held for ever")
    assert call(server, "GET", "/status")[0] == 200


def test_a_body_that_trickles_after_it_was_refused_has_a_deadline_too(server, monkeypatch):
    monkeypatch.setattr(loopback, "PATIENCE", 0.6)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"POST /tell HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 1000000\r\n\r\n")
        assert b" 403 " in client.recv(100)
        for _ in range(200):
            try:
                client.sendall(b"x")
                time.sleep(0.05)
            except OSError:
                break
        else:
            pytest.fail("the connection is held for ever")


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


@pytest.mark.parametrize("moment", ["as the port opens", "in a destructor", "as it starts", "as its thread runs"])
@pytest.mark.parametrize("command", ["serve", "watch"])
def test_a_request_to_end_is_heard_whenever_it_comes(command, moment, folder, monkeypatch):
    def end():
        signal.raise_signal(signal.SIGTERM)

    class Dying:
        def __del__(self):
            end()  # an exception that is raised here is lost

    def after(owner, name, act):
        whole = getattr(owner, name)

        def then(*args, **kwargs):
            found = whole(*args, **kwargs)
            act()
            return found

        monkeypatch.setattr(owner, name, then)

    acts = {
        "as the port opens": (loopback.LoopbackServer, "server_bind", end),
        "in a destructor": (loopback.LoopbackServer, "server_activate", lambda: Dying() and None),
        "as it starts": (
            threading.Thread,
            "start",
            lambda: threading.main_thread() is threading.current_thread() and end(),
        ),
        "as its thread runs": (
            loopback.LoopbackServer,
            "service_actions",
            lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM),  # the main thread goes on waiting
        ),
    }
    after(*acts[moment])
    before = signal.getsignal(signal.SIGTERM)
    assert main([command, str(folder), "--port=0"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    ManualBench(folder).close()  # it has let go of the run
