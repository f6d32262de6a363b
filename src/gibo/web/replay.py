"""The last episode of a training as an animated picture, drawn when a page asks for it.

`gibo play --last` draws it in a separate process, because drawing may need the main thread, take long or fail. The
picture is kept until there is a newer episode. The process creates the environment that the journal names if it is in
Gymnasium's registry. An id that would import a module (``"module:Env-v0"``) is refused unless the user allowed it.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from gibo.errors import InputError

DEADLINE = 120.0  # seconds


class Replays:
    """Draws pictures, one at a time, and keeps the last one; thread-safe.

    Args:
        allow_module: whether the environment's module may be imported.
    """

    def __init__(self, allow_module: bool = False) -> None:
        self.allow_module = allow_module
        self._lock = threading.Lock()
        self._kept: tuple[Path, int, dict[str, Any]] | None = None

    def of(self, folder: Path, evaluation: int) -> dict[str, Any]:
        """The last episode of a run, which belongs to this evaluation: ``{"id", "text", "picture": a data URL}``."""
        with self._lock:
            if self._kept is None or self._kept[:2] != (folder, evaluation):
                self._kept = (folder, evaluation, {"id": evaluation, **self._made(folder)})
            return self._kept[2]

    def _made(self, folder: Path) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="gibo-") as place:
            path = Path(place) / "episode.gif"
            # -P: no module is imported from the current folder, which may be the run's.
            words = [sys.executable, "-P", "-m", "gibo", "play", str(folder.resolve()), "--last", "--video", str(path)]
            said = self._run([*words, *(["--allow-module"] if self.allow_module else [])])
            data = path.read_bytes()
        text = said.partition("\n")[0]
        return {"text": text, "picture": f"data:image/gif;base64,{base64.b64encode(data).decode()}"}

    def _run(self, words: list[str]) -> str:
        """The output of a program; its error message becomes an exception."""
        here = str(Path(__file__).parents[2])  # the same gibo
        paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]  # an empty entry would be the current folder
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        options: Any = {"env": environment, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}
        try:
            done = subprocess.run(words, **options, capture_output=True, timeout=DEADLINE, check=False)
        except subprocess.TimeoutExpired:
            raise InputError(f"the episode was not drawn: drawing took more than {DEADLINE:.0f} s") from None
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"gibo play ended with code {done.returncode}"]
            raise InputError(lines[-1].removeprefix("gibo: "))
        return str(done.stdout)
