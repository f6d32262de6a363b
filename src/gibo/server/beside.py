"""The page beside a run of this process: it reads the journal in a thread of its own, as any other process would."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gibo.server.control import Control
from gibo.server.watch import watch


@contextmanager
def page_beside(folder: Path, control: bool = False, trials: bool = False) -> Iterator[None]:
    """While the block runs, the page of the run in this folder is served; its address goes to standard error.

    Args:
        folder: of the run, or of trials.
        control: whether the page can act on it; then the address has a token.
        trials: whether these are trials, of which none need be there yet.
    """
    acts = Control if control else None
    # A run of this process has made its environment, so it may be made again; of other trials nothing is known.
    with watch(folder, control=acts, trials=trials, allow_module=not trials) as server:
        sys.stderr.write(f"gibo: watch {'these trials' if trials else 'this run'} at {server.page_address}\n")
        sys.stderr.flush()
        yield
