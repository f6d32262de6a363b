"""How long `gibo ask` takes where it plans a new batch, and a program waits for `gibo serve`, at 20 parameters.

    python benchmarks/asking.py            # about half a minute

The run has 200 evaluations before anything is timed; each tell is on the disk when it is answered.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import gibo
from gibo.runs import manual
from gibo.runs.description import Description
from gibo.web.bench import ManualBench
from gibo.web.serve import Serve

D, EVALUATIONS, CALLS, BATCHES = 20, 200, 24, 20
LIMIT = 1.5  # seconds


def objective(x: Any) -> float:
    return -float(sum((item - 0.3) ** 2 for item in x))


def command(run: Path, copy: Path) -> None:
    """Time `gibo ask` as a process, each time on a copy of the run."""
    times = []
    for _ in range(CALLS):
        shutil.copytree(run, copy)
        os.sync()  # what was copied is not the command's to write
        began = time.perf_counter()
        words = [str(Path(sys.executable).parent / "gibo"), "ask", str(copy), "--json"]
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
        shutil.rmtree(copy)
    above = sum(seconds >= LIMIT for seconds in times)
    middle = statistics.median(times)
    print(f"gibo ask, {CALLS} calls: {min(times):.2f} to {max(times):.2f} s, median {middle:.2f} s; ", end="")
    print(f"{above} took {LIMIT} s or more")


def server(run: Path) -> None:
    """Time each kind of request over HTTP."""
    times = defaultdict(list)
    with ManualBench(run) as bench, Serve(bench) as serving:
        connection = http.client.HTTPConnection("127.0.0.1", serving.port)

        def clocked(kind: str, name: str, **body: Any) -> Any:
            began = time.perf_counter()
            connection.request("POST", f"/{name}", json.dumps(body), {"Content-Type": "application/json"})
            found = json.loads(connection.getresponse().read())
            times[kind].append(1e3 * (time.perf_counter() - began))
            return found

        for _ in range(BATCHES):
            queries = clocked("ask that plans", "ask")["queries"]
            clocked("ask that repeats", "ask")
            for query in queries:
                kind = "last tell of a batch" if query is queries[-1] else "tell"
                clocked(kind, "tell", id=query["id"], value=objective(query["x"]))
        connection.close()
    for kind, found in times.items():
        print(f"{kind}: {statistics.median(found):.1f} ms, largest {max(found):.1f} ms")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        run, copy = Path(name) / "run", Path(name) / "copy"
        names = [f"p{i}" for i in range(D)]
        manual.create(run, Description(names, [0.5] * D, [0.1] * D, [0.0] * D, [1.0] * D))
        gibo.resume(run, objective, budget=EVALUATIONS)
        for query in manual.status(run).pending:  # of the last batch, so that the next ask has to plan
            manual.tell(run, query.id, objective(query.x))
        command(run, copy)
        server(run)


if __name__ == "__main__":
    main()
