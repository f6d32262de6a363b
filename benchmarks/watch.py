"""How long the page of a long run takes to open, and whether it stays smooth.

    python benchmarks/watch.py [--evaluations 20000]     # needs chromium and playwright

The run has eight parameters and is made here, with the model and the step of every iteration but with random queries
and fixed hyperparameters, because these are quick. It is opened in a headless Chromium:

    to open        from the start of `gibo watch` as a process, and from the request of the page, to a drawn chart
    smoothness     milliseconds between two frames, and tasks above 50 ms that hold the page up, while one scrolls,
                   sorts, pages and searches the table, and while values arrive
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gibo
from gibo.optimizers.queries import RandomQueries
from gibo.outcome import Evaluation, Outcome
from gibo.runs.session import Session
from gibo.runs.spec import RunSpec
from gibo.web.watch import Watch

D = 8
FRAMES = """() => {
  window.frames_ = []; window.long_ = [];
  new PerformanceObserver((list) => list.getEntries().forEach((e) => window.long_.push(e.duration)))
    .observe({type: "longtask"});
  let last = performance.now();
  const tick = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}"""


def outcome(x: np.ndarray, seed: int) -> Outcome:
    rng = np.random.default_rng(seed)
    if seed % 97 == 0:
        return Outcome(None, failure="the robot fell")
    return Outcome(-float(((x - 0.5) ** 2).sum()) + 0.1 * float(rng.standard_normal()))


def session_in(folder: Path) -> Session:
    optimizer = gibo.GIBO(np.zeros(D), scale=0.1, settings=gibo.Settings(queries=RandomQueries(), fit="never"))
    session = Session.begin(folder, optimizer, RunSpec.of(optimizer))
    assert session.journal is not None
    session.journal.begin({"budget": 1_000_000})
    return session


def go_on(session: Session, count: int) -> None:
    """So many evaluations more, at least; a batch at once."""
    first = len(session.optimizer.evaluations)
    while len(session.optimizer.evaluations) - first < count:
        session.tell([Evaluation(query, outcome(query.x, query.seed)) for query in session.ask()])


def let_go(session: Session) -> None:
    assert session.journal is not None
    session.end("the benchmark's")
    session.journal.close()


def open_page(folder: Path, browser: Any) -> None:
    words = [sys.executable, "-c", "import gibo.cli; gibo.cli.entry()", "watch", str(folder), "--port", "0"]
    began = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        while "http://" not in line:
            line = process.stdout.readline()
        address = next(word for word in line.split() if word.startswith("http://"))
        print(f"the server says where it is after {time.perf_counter() - began:.2f} s")
        for _ in range(3):
            tab, asked = browser.new_page(), time.perf_counter()
            tab.goto(address, wait_until="commit")
            tab.wait_for_selector("#chart-values canvas")
            tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            print(f"the chart is drawn after {time.perf_counter() - asked:.2f} s")
            tab.close()
        process.terminate()


def smoothness(folder: Path, browser: Any) -> None:
    session = session_in(folder)
    stop = threading.Event()

    def values() -> None:
        while not stop.wait(0.1):
            go_on(session, 1)

    with Watch(folder) as watch:
        tab = browser.new_page()
        tab.set_viewport_size({"width": 1280, "height": 900})
        tab.goto(watch.address_with_token)
        tab.wait_for_selector("canvas")
        tab.wait_for_timeout(1000)
        tab.evaluate(FRAMES)

        def scroll() -> None:
            for _ in range(30):
                tab.mouse.wheel(0, 120)
                tab.wait_for_timeout(16)
            for _ in range(30):
                tab.mouse.wheel(0, -120)
                tab.wait_for_timeout(16)

        def sort() -> None:
            for _ in range(3):
                tab.evaluate("() => document.querySelectorAll('#table th button').forEach((b) => b.click())")
                tab.wait_for_timeout(100)

        def pages() -> None:
            for _ in range(10):
                tab.evaluate("() => document.querySelector('#next').click()")
                tab.wait_for_timeout(50)

        def search() -> None:
            for text in ("f", "fe", "fel", "fell", ""):
                tab.fill("#search", text)
                tab.wait_for_timeout(100)

        def wait() -> None:
            tab.wait_for_timeout(3000)

        measure(tab, "at rest", wait)
        measure(tab, "scrolling", scroll)
        measure(tab, "sorting", sort)
        measure(tab, "paging", pages)
        measure(tab, "searching", search)
        thread = threading.Thread(target=values)
        thread.start()
        measure(tab, "values arrive", wait)
        stop.set()
        thread.join()
        let_go(session)
        tab.close()


def measure(tab: Any, name: str, what: Callable[[], None]) -> None:
    tab.evaluate("() => { window.frames_.length = 0; window.long_.length = 0; }")
    what()
    frames, long = tab.evaluate("() => [window.frames_, window.long_]")
    print(
        f"{name}: {statistics.median(frames):.0f} ms between two frames, at most {max(frames):.0f}; "
        f"{len(long)} tasks above 50 ms" + (f", at most {max(long):.0f}" if long else "")
    )


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=20_000, metavar="N")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        folder = Path(base) / "long"
        session = session_in(folder)
        go_on(session, arguments.evaluations)
        let_go(session)
        context = playwright.chromium.launch_persistent_context(
            Path(base) / "profile", executable_path=shutil.which("chromium"), headless=True, args=["--no-sandbox"]
        )
        open_page(folder, context)
        smoothness(folder, context)
        context.close()


if __name__ == "__main__":
    main()
