"""A small HTTP server for this machine only: who may connect, limits, and answers.

    Host      must name this server, so that a page of another site cannot reach it under its own name (DNS rebinding)
    Origin    if sent, must be this server's; Sec-Fetch-Site, if sent, must not name another site
    token     if the server has one, `X-Gibo-Token` must equal it; other users of this machine do not know it
    bodies    need a length, which is limited
    time      a request must arrive within one deadline, however slowly its bytes come; of too many connections, the one
              that has waited longest for its request is closed
    routes    are fixed; nothing in an address is ever used as a path of a file

Answers are never cached, never sniffed and never shown inside another page.
"""

from __future__ import annotations

import hmac
import json
import math
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, urlsplit
from weakref import WeakSet

from gibo.errors import GiboError, InputError, JournalError, QueryError
from gibo.runs.lock import at_fork

ADDRESS = "127.0.0.1"
LARGEST_BODY = 1 << 20
# The server reads and drops a part of a body that is too large, so that the client reads the reason of the refusal.
DRAINED = 1 << 26
PATIENCE = 20.0  # seconds within which a request must be here, and within which a client must take a part of an answer
MOST_CONNECTIONS = 128
DEADLINE_POLL = 0.1  # seconds between two looks at the deadlines
TOKEN = "X-Gibo-Token"

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"


class Refusal(Exception):
    """An answer with an error: its status and a text for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


# A forked worker must not keep the port of a listening server, or clients would wait and get no answer.
_listening: WeakSet[LoopbackServer] = WeakSet()


def _listen_no_more() -> None:
    for server in list(_listening):
        server.socket.close()


at_fork(after_in_child=_listen_no_more)


class LoopbackServer(ThreadingHTTPServer):
    """Listens on 127.0.0.1 with a thread per client; a wrong request ends only its own thread.

    Args:
        port: 0 takes a free one.
        handler: the class that answers requests.
        with_token: whether `token` is a secret that clients must know, see `LoopbackHandler.check_token`, or None.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, port: int, handler: type[LoopbackHandler], with_token: bool) -> None:
        self.token = secrets.token_urlsafe(24) if with_token else None
        self.stopping = threading.Event()
        self._due: dict[socket.socket, float] = {}  # of each connection: when its request must be here
        self._lock = threading.Lock()  # of these
        try:
            super().__init__((ADDRESS, port), handler)
            _listening.add(self)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"port {port}: cannot listen there ({reason}); name another one with --port") from None

    def __enter__(self) -> Self:
        """Serve in a separate thread until the block ends."""
        threading.Thread(target=self.serve_forever, args=(DEADLINE_POLL,), name="gibo server", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """The address for a browser or a program on this machine."""
        return f"http://{ADDRESS}:{self.port}"

    @property
    def address_with_token(self) -> str:
        """The same with the token, if there is one: behind the #, which a browser does not send."""
        return self.address if self.token is None else f"{self.address}/#token={self.token}"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.expect_request(request, PATIENCE)
        with self._lock:
            if len(self._due) > MOST_CONNECTIONS:
                self._cut(min(self._due, key=self._due.__getitem__))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._due.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Between two looks for new connections: close those whose requests are late."""
        with self._lock:
            for connection in [each for each, due in self._due.items() if due < time.monotonic()]:
                self._cut(connection)

    def expect_request(self, connection: socket.socket, within: float) -> None:
        """From now on this connection's client has so many seconds to send a request; for ever once it is here."""
        with self._lock:
            self._due[connection] = time.monotonic() + within

    def _cut(self, connection: socket.socket) -> None:
        del self._due[connection]
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # its thread reads no more, and ends

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that is gone; show all other errors to the server's owner."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class LoopbackHandler(BaseHTTPRequestHandler):
    """Checks a request, finds its route, and answers with JSON; see the module's text.

    Subclasses fill `routes`: it maps ``("GET", "/status")`` to a name for `respond`.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is sent when it is written
    wbufsize = -1  # headers and body in one piece
    timeout = PATIENCE
    routes: ClassVar[dict[tuple[str, str], str]] = {}
    server: LoopbackServer

    def handle_one_request(self) -> None:
        self.server.expect_request(self.connection, PATIENCE)
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def version_string(self) -> str:
        """Without versions, which help attackers."""
        return "gibo"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing per request."""

    # -- one request --------------------------------------------------------------------------------------------------

    def _answer(self, method: str) -> None:
        self.left = self._announced() or 0  # bytes of the body that are not read yet
        try:
            self.check_sender()
            self.url = urlsplit(self.path)
            self.query = parse_qs(self.url.query, max_num_fields=10)
            name = self.routes.get((method, self.url.path))
            if name is None:
                other = "POST" if method == "GET" else "GET"
                if (other, self.url.path) in self.routes:
                    raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{self.url.path}: use {other}")
                known = ", ".join(f"{m} {path}" for m, path in self.routes)
                raise Refusal(HTTPStatus.NOT_FOUND, f"no such address; expected one of: {known}")
            if method == "GET":
                self.server.expect_request(self.connection, math.inf)
            found = self.respond(name)
            if found is not None:
                self.send_json(found)
        except Refusal as refusal:
            self.send_json({"error": refusal.text}, refusal.status)
        except GiboError as error:
            self.send_json({"error": str(error)}, status_of(error))
        except ValueError as error:  # of parse_qs
            self.send_json({"error": f"the address cannot be read: {error}"}, HTTPStatus.BAD_REQUEST)
        except (ConnectionError, TimeoutError):
            raise
        except Exception:  # an error of gibo: the client gets a short text, the server's owner the traceback
            self.close_connection = True
            self.server.handle_error(self.request, self.client_address)
            self.send_json({"error": "an internal error of gibo; the server's output has the details"}, 500)
        finally:
            self._drain()

    def respond(self, name: str) -> Any:
        """The JSON data of a route, or None if it has answered itself; by default its method of this name."""
        return getattr(self, name)()

    def check_sender(self) -> None:
        """Refuse a client that may not connect to this server."""
        names = {f"{host}:{self.server.port}" for host in (ADDRESS, "localhost")}
        if self.headers.get("Host") not in names:
            raise Refusal(HTTPStatus.FORBIDDEN, "Host: not a name of this server")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{name}" for name in names}:
            raise Refusal(HTTPStatus.FORBIDDEN, "Origin: requests from other sites are refused")
        site, mode = self.headers.get("Sec-Fetch-Site"), self.headers.get("Sec-Fetch-Mode")
        if site in ("cross-site", "same-site") and mode != "navigate":
            raise Refusal(HTTPStatus.FORBIDDEN, "Sec-Fetch-Site: requests from other sites are refused")

    def check_token(self) -> None:
        """Refuse a client without the token, if there is one."""
        token = self.server.token
        if token is not None and not hmac.compare_digest(self.headers.get(TOKEN, "").encode(), token.encode()):
            text = f"{TOKEN}: the token is missing or wrong; use the whole address that was printed"
            raise Refusal(HTTPStatus.FORBIDDEN, text)

    def _announced(self) -> int | None:
        """The length of the body in the client's header, or None."""
        text = self.headers.get("Content-Length", "")
        is_known = text.isascii() and text.isdigit() and len(text) < 19 and "Transfer-Encoding" not in self.headers
        return int(text) if is_known else None

    def body(self) -> dict[str, Any]:
        """The request's JSON object; an empty body means an empty object."""
        length = self._announced()
        if length is None:
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "Content-Length: expected, with the whole body in one piece")
        if length > LARGEST_BODY:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {LARGEST_BODY} bytes are taken, got {length}")
        kind = self.headers.get("Content-Type", "").split(";")[0].strip().lower()
        if kind != "application/json":  # a page of another site could send other types without a preflight request
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type: expected application/json")
        data = self.rfile.read(length)
        self.server.expect_request(self.connection, math.inf)
        self.left = 0
        if len(data) < length:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"expected {length} bytes, got {len(data)}")
        return as_object(data or b"{}")

    def _drain(self) -> None:
        """Read the rest of a body, because a client that is still sending reads no answer; for a limited time."""
        if not self.left and "Transfer-Encoding" not in self.headers:
            return
        self.close_connection = True
        self.server.expect_request(self.connection, PATIENCE)
        with suppress(OSError):
            self.wfile.flush()
            left = min(self.left, DRAINED)
            while left > 0 and (data := self.rfile.read(min(left, 1 << 16))):
                left -= len(data)

    # -- answers ------------------------------------------------------------------------------------------------------

    def send_json(self, content: Any, status: int = HTTPStatus.OK) -> None:
        """Answer with JSON."""
        data = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
        self.send_text(data, "application/json", NOTHING, status)

    def send_text(self, data: bytes, kind: str, policy: str, status: int = HTTPStatus.OK) -> None:
        """Answer with bytes of a content type, under a content security policy."""
        self.send_response(status)
        self.send_head(kind, policy)
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def send_head(self, kind: str, policy: str) -> None:
        """Send the headers of every answer."""
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", policy)
        for name, value in HEADERS.items():
            self.send_header(name, value)


def as_object(data: bytes) -> dict[str, Any]:
    """A JSON object from bytes."""
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not readable as JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise InputError(f'expected a JSON object such as {{"id": 3, "value": 1.5}}, got {str(found)[:60]}')
    return found


def status_of(error: GiboError) -> int:
    """The HTTP status of an error of gibo."""
    if isinstance(error, QueryError):
        return HTTPStatus.CONFLICT
    return HTTPStatus.SERVICE_UNAVAILABLE if isinstance(error, JournalError) else HTTPStatus.BAD_REQUEST


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")
