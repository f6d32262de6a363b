"""The page beside a run of this process: it reads the journal in a thread of its own, as any other process would."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gibo.server.watch import watch


@contextmanager
def page_beside(folder: Path) -> Iterator[None]:
    """While the block runs, the page of the run in this folder is served; its address goes to standard error."""
    with watch(folder) as server:
        sys.stderr.write(f"gibo: watch this run at {server.page_address}\n")
        sys.stderr.flush()
        yield
