"""The last episode of a training as an animated picture, made when a page asks for it.

`gibo play --last` makes it, in a process of its own and with a low priority: whoever draws may need the main thread,
take long or break, and a run that goes on in this process must not notice. So it costs nothing until somebody wants to
see it, and it is kept until there is a newer episode. An environment that a journal names is made there, if it is in
Gymnasium's registry; an id that would import a module (``"module:Env-v0"``) is refused unless that was allowed.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from gibo.errors import InputError

DEADLINE = 120.0  # seconds
LARGEST_PICTURE = 4_000_000  # bytes; gibo play stays below
POLITENESS = 5  # of the process that draws, as in nice(1)


class Replays:
    """Makes pictures, one at a time, and keeps the last one; safe to use from many threads.

    Args:
        allow_module: whether the environment's module may be imported.
        stopping: once it is set, nothing is made any more.
    """

    def __init__(self, allow_module: bool = False, stopping: threading.Event | None = None) -> None:
        self.allow_module, self.stopping = allow_module, stopping or threading.Event()
        self._lock = threading.Lock()
        self._kept: tuple[Path, int, dict[str, Any]] | None = None

    def of(self, folder: Path, evaluation: int) -> dict[str, Any]:
        """The episode of an evaluation, the last one of a run: ``{"id", "text", "picture": a data URL}``."""
        with self._lock:
            if self._kept is None or self._kept[:2] != (folder, evaluation):
                self._kept = (folder, evaluation, {"id": evaluation, **self._made(folder)})
            return self._kept[2]

    def _made(self, folder: Path) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="gibo-") as place:
            path = Path(place) / "episode.gif"
            # -P: nothing that lies in the current folder, which may be the run's, is taken for a module.
            words = [sys.executable, "-P", "-m", "gibo", "play", str(folder.resolve()), "--last", "--video", str(path)]
            said = self._run([*words, *(["--allow-module"] if self.allow_module else [])])
            data = path.read_bytes()
        if len(data) > LARGEST_PICTURE:
            raise InputError(f"the picture has {len(data)} bytes, more than {LARGEST_PICTURE}")
        text = said.partition("\n")[0]
        return {"text": text, "picture": f"data:image/gif;base64,{base64.b64encode(data).decode()}"}

    def _run(self, words: list[str]) -> str:
        """What a program says; its complaint is an error."""
        here = str(Path(__file__).parents[2])  # the same gibo
        paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]  # an empty one would be the current folder
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(words, env=environment, text=True, errors="replace", **pipes) as child:
            with suppress(OSError, AttributeError):
                os.setpriority(os.PRIO_PROCESS, child.pid, POLITENESS)
            deadline = time.monotonic() + DEADLINE
            while True:
                try:
                    said, complained = child.communicate(timeout=0.1)
                    break
                except subprocess.TimeoutExpired:
                    ended = self.stopping.is_set()
                    if ended or time.monotonic() > deadline:
                        child.kill()
                        why = "the program that served this page has ended" if ended else f"it took {DEADLINE:.0f} s"
                        raise InputError(f"the episode was not drawn: {why}; gibo watch can show it later") from None
        if child.returncode:
            lines = complained.strip().splitlines() or [f"gibo play ended with code {child.returncode}"]
            raise InputError(lines[-1].removeprefix("gibo: "))
        return str(said)
