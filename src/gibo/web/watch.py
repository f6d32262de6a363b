"""Serves the page of a run, or of a folder of trials, and its updates. It reads journals and never writes to one.

GET  /                the page
GET  /api/snapshot    the run, or with ?trial=NAME one of the trials, as JSON
GET  /api/events      what is new since ?evaluations=N&iterations=M&beliefs=…&viewed=…, as server-sent events
GET  /api/replay      the last episode of a training as an animated picture, see `gibo.web.replay`
POST /api/control     an action on it; needs the token, see `gibo.runs.control`
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from weakref import WeakSet

from gibo._checks import as_path
from gibo.errors import GiboError, InputError
from gibo.runs.control import FolderControl, Requests, control_of, held_here
from gibo.runs.journal import has_journal
from gibo.web.loopback import LoopbackHandler, LoopbackServer, Refusal
from gibo.web.page import page
from gibo.web.replay import Replays
from gibo.web.snapshot import Reader, Since, seen, snapshot
from gibo.web.trials import Trials

PORT = 8642
POLL = 0.2  # seconds between two checks of the journal's version
# Seconds after which a silent run is checked again, because its process may be gone.
REFRESH = 5.0
LAST_WORD = 1.0  # seconds that a page has to receive the end of the run


class Watch(LoopbackServer):
    """The page's server.

    Args:
        folder: of a run, or with runs below it.
        port: 0 takes a free one; None the usual one, or a free one if the usual one is taken.
        control: a function from a run's folder to the object that takes requests, such as `control_of`. None: the page
            cannot change anything.
        trials: whether the folder is for trials; there may be none yet.
        allow_module: whether the module of a run's environment may be imported to show an episode.

    Example:
        ``with Watch("runs/robot") as watch: print(watch.address_with_token)``
    """

    def __init__(
        self,
        folder: Path | str,
        port: int | None = 0,
        control: Callable[[Path], Requests] | None = None,
        trials: bool = False,
        allow_module: bool = False,
    ) -> None:
        self.folder, self.control = as_path("folder", folder).absolute(), control
        self.streams: WeakSet[threading.Thread] = WeakSet()  # to open pages
        self.run = Reader(self.folder) if not trials and has_journal(self.folder) else None
        self.trials = Trials(self.folder, may_be_none=trials) if self.run is None else None
        try:
            super().__init__(PORT if port is None else port, _Handler, with_token=control is not None)
        except InputError:
            if port is not None:
                raise
            super().__init__(0, _Handler, with_token=control is not None)
        self.replays = Replays(allow_module)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for stream in list(self.streams):
            stream.join(LAST_WORD)
        for each in (self.run, self.trials):
            if each is not None:
                each.close()


@contextmanager
def page_beside(folder: Path, control: bool = False, trials: bool = False) -> Iterator[None]:
    """Serve the page of the run in this folder while the block runs; prints its address to standard error.

    It reads the journal in a separate thread, as another process would.

    Args:
        folder: of the run or of the trials.
        control: whether the page can act on the run; the address then has a token.
        trials: whether the folder is for trials; there may be none yet.
    """
    acts = control_of if control else None
    # A run of this process has created its environment, so it may be created again; other trials are not known.
    with Watch(folder, None, acts, trials, allow_module=not trials) as server:
        sys.stderr.write(f"gibo: watch {'these trials' if trials else 'this run'} at {server.address_with_token}\n")
        sys.stderr.flush()
        yield


def report(folder: Path | str, replay: bool = False, allow_module: bool = False) -> str:
    """The page of a run or of a folder of trials as one file without a server; `replay` adds the last episode."""
    if has_journal(folder):
        data = snapshot(folder)
        if replay:
            if data["replay"] is None:
                raise InputError(f"--replay: {folder} has no episode to show")
            data["episode"] = Replays(allow_module).of(as_path("folder", folder), data["replay"])
        return page(alone=True).html(data)
    if replay:
        raise InputError(f"--replay: {folder} is a folder of trials; name one of them")
    trials = Trials(folder)
    try:
        return page(alone=True).html(trials.snapshot())
    finally:
        trials.close()


class _Handler(LoopbackHandler):
    server: Watch
    routes = {  # noqa: RUF012
        ("GET", "/"): "page",
        ("GET", "/api/snapshot"): "snapshot",
        ("GET", "/api/events"): "events",
        ("GET", "/api/replay"): "replay",
        ("POST", "/api/control"): "control",
        ("GET", "/favicon.ico"): "icon",
    }

    def page(self) -> None:
        document = page()
        self.send_text(document.html().encode(), "text/html", document.policy)

    def icon(self) -> None:
        self.send_text(b"", "image/x-icon", "default-src 'none'", HTTPStatus.NO_CONTENT)

    def snapshot(self) -> dict[str, Any]:
        reader = self._reader()
        if reader is None:
            return self._trials().snapshot()
        return self._marked(reader, Since())

    def replay(self) -> dict[str, Any]:
        reader = self._reader()
        if reader is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, "trial: name the trial whose episode to show")
        number = reader.last_episode()
        if number is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is no episode to show")
        return self.server.replays.of(reader.folder, number)

    def _reader(self) -> Reader | None:
        """The reader of the requested run; None for all trials."""
        if self.server.run is not None:
            return self.server.run
        names = self.query.get("trial", [])
        reader = self._trials().reader(names[0]) if names else None
        if names and reader is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "trial: there is no trial of this name")
        return reader

    def _trials(self) -> Trials:
        assert self.server.trials is not None
        return self.server.trials

    def _marked(self, reader: Reader, known: Since) -> dict[str, Any]:
        """What is new of a run, with the permissions of this page."""
        control = self.server.control
        found = held_here(reader.folder) or FolderControl
        return {**reader.snapshot(known), "control": None if control is None else sorted(found.actions)}

    # -- what is new --------------------------------------------------------------------------------------------------

    def events(self) -> None:
        reader = self._reader()
        self.close_connection = True  # the stream has no length; it ends with the connection
        if reader is None:
            self._stream(self._trials().version, self._trials().snapshot)
            return
        known, run = self._known(), reader.version()[0]

        def new() -> dict[str, Any]:
            nonlocal known, run
            if reader.version()[0] != run:  # another run: send it from its beginning
                known, run = Since(), reader.version()[0]
            data = self._marked(reader, known)
            known = seen(data)
            return data

        self._stream(reader.version, new, lambda: "-".join(map(str, known)))

    def _known(self) -> Since:
        """The part that the page has: from its last event after a break, or from the address."""
        last = self.headers.get("Last-Event-ID", "").split("-")
        texts = last if len(last) == len(Since._fields) else [self.query.get(name, ["0"])[0] for name in Since._fields]
        if not all(text.isascii() and text.isdigit() and len(text) < 16 for text in texts):
            raise Refusal(HTTPStatus.BAD_REQUEST, f"{', '.join(Since._fields)}: expected whole numbers")
        return Since(*map(int, texts))

    def _stream(
        self, version: Callable[[], Any], new: Callable[[], dict[str, Any]], mark: Callable[[], str] | None = None
    ) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_head("text/event-stream", "default-src 'none'")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"retry: 1000\n\n")
        self.wfile.flush()
        self.server.streams.add(threading.current_thread())
        seen, sent, last = None, 0.0, False
        while not last:
            last = self.server.stopping.is_set()  # then one more check, so that the page gets the end of the run
            now, current = time.monotonic(), version()
            if current != seen or now - sent > REFRESH:
                seen, sent = current, now
                with suppress(GiboError):  # between two runs, or during a copy: try again
                    data = json.dumps(new(), allow_nan=False, separators=(",", ":"))
                    head = "" if mark is None else f"id: {mark()}\n"
                    self.wfile.write(f"{head}data: {data}\n\n".encode())
                    self.wfile.flush()  # raises when the page is gone
            self.server.stopping.wait(POLL)

    # -- actions ------------------------------------------------------------------------------------------------------

    def control(self) -> dict[str, Any]:
        control = self.server.control
        if control is None:
            raise Refusal(HTTPStatus.FORBIDDEN, "this page can only watch; start gibo watch with --control")
        self.check_token()
        reader = self._reader()
        if reader is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, "trial: name one trial; a request cannot act on all of them")
        return control(reader.folder).act(self.body())
