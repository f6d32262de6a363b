"""How long programs wait for `gibo serve`: an ask that plans, one that repeats, a tell, in this process and over HTTP.

    python benchmarks/serve.py [--d 20] [--evaluations 200] [--times 20] [--out results/serve.md]

The run has that many parameters and evaluations before anything is timed; each tell is on the disk when it is answered.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gibo.runs import manual
from gibo.runs.description import Description
from gibo.web.bench import ManualBench
from gibo.web.serve import Serve

Request = Callable[[str, dict[str, Any]], dict[str, Any]]


def objective(x: list[float]) -> float:
    return -sum((item - 1.0) ** 2 for item in x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--times", type=int, default=20, help="how many batches are timed")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    d = arguments.d
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        names = [f"p{i}" for i in range(d)]
        description = Description(names, [0.0] * d, [0.3] * d, [-5.0] * d, [5.0] * d)
        manual.create(path, description)
        with ManualBench(path) as bench:
            while bench.status()["evaluations"] < arguments.evaluations:
                for query in bench.ask()["queries"]:
                    bench.tell({"id": query["id"], "value": objective(query["x"])})

            def call(name: str, body: dict[str, Any]) -> dict[str, Any]:
                found: dict[str, Any] = getattr(bench, name)(*([body] if name == "tell" else []))
                return found

            direct = timed(call, arguments.times)
            computing = timed(call, arguments.times, time.process_time)
            with Serve(bench) as server:
                connection = http.client.HTTPConnection("127.0.0.1", server.port)

                def request(name: str, body: dict[str, Any]) -> dict[str, Any]:
                    connection.request("POST", f"/{name}", json.dumps(body), {"Content-Type": "application/json"})
                    found: dict[str, Any] = json.loads(connection.getresponse().read())
                    return found

                over_http = timed(request, arguments.times)
                connection.close()
            count = bench.status()["evaluations"]
        started = time.perf_counter()
        ManualBench(path).close()
        opened = 1e3 * (time.perf_counter() - started)
    lines = [
        f"d = {d}, {arguments.evaluations} to {count} evaluations; milliseconds: median (largest).",
        "",
        "| | ask that plans | ask that repeats | tell | last tell of a batch |",
        "|---|---|---|---|---|",
    ]
    for name, found in (("in this process", direct), ("its CPU time", computing), ("over HTTP", over_http)):
        columns = " | ".join(f"{statistics.median(each):.1f} ({max(each):.1f})" for each in found)
        lines.append(f"| {name} | {columns} |")
    lines += ["", f"To open the run with {count} evaluations: {opened:.0f} ms."]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text, encoding="utf-8")


def timed(request: Request, times: int, clock: Callable[[], float] = time.perf_counter) -> tuple[list[float], ...]:
    """Milliseconds of each kind of request."""
    plans: list[float] = []
    repeats: list[float] = []
    tells: list[float] = []
    lasts: list[float] = []

    def clocked(into: list[float], name: str, body: dict[str, Any]) -> dict[str, Any]:
        started = clock()
        found = request(name, body)
        into.append(1e3 * (clock() - started))
        return found

    for _ in range(times):
        queries = clocked(plans, "ask", {})["queries"]
        clocked(repeats, "ask", {})
        for query in queries:
            into = lasts if query is queries[-1] else tells
            clocked(into, "tell", {"id": query["id"], "value": objective(query["x"])})
    return plans, repeats, tells or [0.0], lasts


if __name__ == "__main__":
    main()
