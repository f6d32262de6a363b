"""Ask and tell for any program: JSON over HTTP on 127.0.0.1, or a JSON object per line as a child process.

    POST /ask              {}                                         {"do": "ask"}
    POST /tell             {"id": 3, "value": 1.5}                    {"do": "tell", "id": 3, "value": 1.5}
    POST /start            {"parameters": {"gain": 2.5, …}}           {"do": "start", "parameters": …}
    POST /abort            {} or {"reason", "parameters"}             {"do": "abort"}
    GET  /status                                                      {"do": "status"}
    GET  /best                                                        {"do": "best"}
    GET  /export           ?format=csv for a table                    {"do": "export"}

``x`` and ``parameters`` of a query have the values to set, in the user's units. Over HTTP an error has a status of 400
or above and the body ``{"error": text}``. The answer to a line is a line with ``"ok"``, and with the request's
``"tag"`` if any; an error is ``{"ok": false, "error": text}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, BinaryIO

from gibo._checks import describe
from gibo.errors import GiboError, InputError
from gibo.runs.table import encoded
from gibo.web.bench import ManualBench
from gibo.web.loopback import LARGEST_BODY, NOTHING, LoopbackHandler, LoopbackServer, Refusal, as_object

POSTED, READ = ("ask", "tell", "start", "abort"), ("status", "best", "export")
TAKING = ("tell", "start", "abort")  # requests with content


def answer(bench: ManualBench, do: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, over HTTP or as a line."""
    if request and do not in TAKING:
        raise InputError(f"{do}: takes nothing, got {describe(next(iter(request)))}")
    found: dict[str, Any] = getattr(bench, do)(*([request] if do in TAKING else []))
    return found


class Serve(LoopbackServer):
    """The HTTP server of a run.

    Args:
        bench: the run.
        port: 0 takes a free one.
        with_token: every request needs a token, which is part of `address_with_token`.
    """

    def __init__(self, bench: ManualBench, port: int = 0, with_token: bool = False) -> None:
        self.bench = bench
        super().__init__(port, _Handler, with_token)


class _Handler(LoopbackHandler):
    server: Serve
    routes = {  # noqa: RUF012
        **{("POST", f"/{do}"): do for do in POSTED},
        **{("GET", f"/{do}"): do for do in READ},
    }

    def check_sender(self) -> None:
        super().check_sender()
        self.check_token()

    def respond(self, do: str) -> dict[str, Any] | None:
        form = self.query.get("format", ["json"])[0]
        if form not in ("json", "csv"):
            raise Refusal(HTTPStatus.BAD_REQUEST, f"format: expected json or csv, got {form[:40]!r}")
        found = answer(self.server.bench, do, self.body() if do in POSTED else {})
        if do != "export" or form == "json":
            return found
        columns = {name: [row[i] for row in found["rows"]] for i, name in enumerate(found["columns"])}
        self.send_text(encoded(columns, "csv"), "text/csv", NOTHING)
        return None


# -- lines ------------------------------------------------------------------------------------------------------------


def serve_lines(bench: ManualBench, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer each line of the source with a line, in order, until the source ends or nobody reads the answers."""
    for line in _lines(source):
        if isinstance(line, bytes) and not line.strip():
            continue
        said = _line_answer(bench, line)
        try:
            sink.write(json.dumps(said, allow_nan=False, separators=(",", ":")).encode() + b"\n")
            sink.flush()
        except (BrokenPipeError, ConnectionResetError):
            return


def _line_answer(bench: ManualBench, line: bytes | None) -> dict[str, Any]:
    tag: dict[str, Any] = {}
    try:
        if line is None:
            raise InputError(f"expected a line of at most {LARGEST_BODY} bytes; this line was skipped")
        request = as_object(line)
        if "tag" in request:
            tag = {"tag": request.pop("tag")}
        do = request.pop("do", None)
        if do not in (*POSTED, *READ):
            raise InputError(f"do: expected one of {', '.join((*POSTED, *READ))}, got {describe(do)}")
        return {**tag, "ok": True, **answer(bench, do, request)}
    except GiboError as error:
        return {**tag, "ok": False, "error": str(error)}


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """The lines of a source, the last one also without a line end. A line that is too long gives None; only a piece of
    it is kept in memory.
    """
    while piece := source.readline(LARGEST_BODY + 1):
        if len(piece) <= LARGEST_BODY or piece.endswith(b"\n"):
            yield piece
            continue
        while piece and not piece.endswith(b"\n"):
            piece = source.readline(LARGEST_BODY + 1)
        yield None
