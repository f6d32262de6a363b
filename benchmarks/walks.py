"""How many files and functions of gibo one call passes: what a reader must know to follow it.

    python benchmarks/walks.py [--list maximize]

Each walk runs in a process of its own, in which Python's profiler notes every function of src/gibo that is called.
Bodies of modules and classes do not count. Up to Python 3.11 a comprehension is a function, too; so these are counted
apart as well.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import gibo
from gibo.cli import main as command

PACKAGE = Path(gibo.__file__).parent


def iteration() -> Callable[[], Any]:
    """An iteration of ask and tell, the second one of a run."""
    optimizer = gibo.GIBO(np.zeros(8), scale=0.1, seed=0)

    def run() -> None:
        for query in optimizer.ask():
            optimizer.tell(query, hill(query.x))

    run()
    return run


def maximize() -> Callable[[], Any]:
    """`maximize` with a journal."""
    return lambda: gibo.maximize(hill, np.zeros(8), budget=30, scale=0.1, seed=0, journal="run")


def train() -> Callable[[], Any]:
    """`gibo train`."""
    return lambda: succeed("train", "CartPole-v1", "--budget", "20", "--out", "trained")


def ask() -> Callable[[], Any]:
    """`gibo ask` for the first queries of a run by hand."""
    succeed("init", "bench", "--dim", "3", "--scale", "0.1", "--maximize")
    return lambda: succeed("ask", "bench")


WALKS = {"iteration": iteration, "maximize": maximize, "train": train, "ask": ask}


def succeed(*words: str) -> None:
    """Run a command of gibo; one that fails is no walk."""
    if command(list(words)) != 0:
        raise RuntimeError(f"gibo {' '.join(words)} failed")


def hill(x: Any) -> float:
    return -float(((np.asarray(x) - 0.3) ** 2).sum())


def passed(walk: Callable[[], Callable[[], Any]]) -> list[str]:
    """The functions of gibo that a walk calls, each as ``file:name``."""
    run = walk()
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = [code for code in seen if code.co_flags & inspect.CO_OPTIMIZED]
    ours = [code for code in functions if Path(code.co_filename).is_relative_to(PACKAGE)]
    return sorted(
        f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_qualname}:{code.co_firstlineno}" for code in ours
    )


def files(functions: list[str]) -> list[str]:
    return sorted({function.split(":")[0] for function in functions})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", choices=WALKS, help="print the functions of this walk, as JSON")
    name = parser.parse_args().list
    if name is not None:
        with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(StringIO()):
            functions = passed(WALKS[name])
        print(json.dumps(functions, indent=1))
        return
    for name in WALKS:
        program = [sys.executable, __file__, "--list", name]
        done = subprocess.run(program, check=True, capture_output=True, text=True)
        functions = json.loads(done.stdout)
        nameless = sum(function.split(":")[1].endswith(">") for function in functions)
        print(
            f"{name:10} {len(files(functions)):3} files {len(functions):4} functions, "
            f"{nameless} of them comprehensions and lambdas"
        )


if __name__ == "__main__":
    main()
