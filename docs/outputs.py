"""Writes computed outputs into README.md and pages of docs: ``python docs/outputs.py``.

The output follows its program. docs/tune.md shows the first lines that the parts of examples/pid.sh print. README's
table of results has the paired differences from the judges' pages in studies/results/judges. So have the tables of
docs/leaderboard.md, each below a comment that names its judges and looks. The tables of docs/limits.md and
docs/failures.md come from studies/results/machines.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "tune.md"
PAGES = (
    ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "leaderboard.md", ROOT / "docs" / "limits.md",
    ROOT / "docs" / "failures.md", TUTORIAL,
)  # fmt: skip
PROGRAM_AND_OUTPUT = re.compile(r"(```python\n(.*?)```\n\n```text\n).*?(```)", re.DOTALL)
# A part of examples/pid.sh in the tutorial, then the lines that it prints.
PART_AND_OUTPUT = re.compile(r"(:start-after: '# (\d)\.(?:(?!literalinclude).)*?```text\n)(.*?)(```)", re.DOTALL)
RESULTS = re.compile(r"(\| \| CMA-ES (.*)\n\|---.*\n)(\|.*\n)*")
# A table of docs/leaderboard.md: the judges with the number of the look; the methods in their order.
JUDGED = re.compile(r"(<!-- judges: (.*) -->\n\n(\| \|.*\n\|---.*\n))(\|.*\n)*")
DEFAULT = "GIBO with bound step"
# A table of a study of machines, below a comment that names it.
MACHINES = re.compile(r"(<!-- machines: (\w+) -->\n\n)(\|.*\n)*")
KINDS = {"coco": "COCO", "pid": "PID", "quadrotor": "quadrotor", "quadratic": "quadratic"}
WAYS = {
    "gibo": "`limits=`",
    "careful": "`limits=`, `careful=True`",
    "penalty": "a penalty in the objective",
    "tpe": "Optuna's TPE with `constraints_func`",
    "gp": "Optuna's GP with `constraints_func`",
    "cma": "CMA-ES with augmented Lagrangians",
}
METHODS = (
    DEFAULT, "GIBO (former default)", "GIBO (paper)", "CMA-ES", "CMA-ES (half sigma)", "lq-CMA-ES", "LRA-CMA-ES",
    "Optuna TPE", "Optuna GP", "COBYQA", "Py-BOBYQA", "PyBADS", "Random search",
)  # fmt: skip
# A row of README's table: its name, the judge, the number of the look.
ROWS = (
    ("8 plants, 2 to 6 gains, after 10 values", "gains", 0),
    ("the same, after 40 values", "gains", 2),
    ("COCO's 30 noisy functions, d = 5 and 10, after 30 d values", "coco-noisy", 2),
    ("COCO's 24 functions without noise, d = 5 and 10, after 30 d values", "coco", 2),
    ("6 cheap policies, after 200 episodes", "policies", 2),
)


def current(text: str) -> str:
    """A page with the present outputs and results."""
    text = JUDGED.sub(with_methods, RESULTS.sub(with_rows, PROGRAM_AND_OUTPUT.sub(with_output, text)))
    text = MACHINES.sub(lambda found: found[1] + {"limits": limits, "failures": failures}[found[2]](), text)
    if PART_AND_OUTPUT.search(text):
        printed = outputs_of_the_tutorial()
        text = PART_AND_OUTPUT.sub(lambda found: with_lines(found, printed[found[2]]), text)
    return text


def with_output(found: re.Match[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", found[2]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return found[1] + done.stdout + found[3]


def outputs_of_the_tutorial() -> dict[str, str]:
    """The lines that each numbered part of examples/pid.sh prints."""
    script = (ROOT / "examples" / "pid.sh").read_text(encoding="utf-8")
    parts = re.split(r"^# (?=\d\.)", script, flags=re.MULTILINE)[1:]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    printed = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "examples" / "pid.py", folder)
        for part in parts:
            command = ["bash", "-c", f'gibo() {{ python -m gibo "$@"; }}; set -e\n# {part}']
            environment = {**os.environ, "PATH": path}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
            printed[part[0]] = done.stdout
    return printed


def with_lines(found: re.Match[str], printed: str) -> str:
    """As many lines as the page shows."""
    return found[1] + "".join(printed.splitlines(keepends=True)[: found[3].count("\n")]) + found[4]


def with_rows(found: re.Match[str]) -> str:
    methods = [each.strip() for each in found[1].splitlines()[0].strip("|").split("|")][1:]
    rows = [[name, *(lead(judge, look, method) for method in methods)] for name, judge, look in ROWS]
    return found[1] + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_methods(found: re.Match[str]) -> str:
    """The interquartile mean of the share of each method, and how far the default is ahead of it."""
    judges = [(name, int(look)) for name, look in (each.split() for each in found[2].split(", "))]
    lines = []
    for method in METHODS:
        cells = []
        for judge, look in judges:
            mean, ahead = column(judge, look, method, "interquartile mean"), lead(judge, look, method)
            mean = mean and str(round(float(mean.split()[0]))).replace("-", "−")
            cells.append(f"{mean}; {ahead}" if ahead else mean)
        if any(cells):
            name = f"**{method}**" if method == DEFAULT else method
            lines.append(f"| {name} | {' | '.join(cells)} |\n")
    return found[1] + "".join(lines)


def lead(judge: str, look: int, method: str) -> str:
    """How far the default is ahead of a method, with its interval. The page has the difference the other way round."""
    difference = column(judge, look, method, f"paired difference to {DEFAULT}")
    if not difference:
        return ""
    mean, low, high = (round(-float(number)) for number in re.findall(r"[-+]?[\d.]+", difference))
    return f"{mean:+d} ({high:+d} to {low:+d})".replace("-", "−")


def limits() -> str:
    """Medians of regrets, means of violations, and how many recommended points satisfy; for each kind of problem.

    The regret of a way is what it lacks of the best satisfying gain of all ways, as a share of that; 1 if its point
    does not satisfy.
    """
    problems: dict[tuple[str, str, str], dict[str, dict[str, str]]] = defaultdict(dict)
    for row in machines("limits"):
        problems[row["kind"], row["d"], row["seed"]][row["way"]] = row
    cells: dict[tuple[str, str], list[tuple[float, float, int]]] = defaultdict(list)
    for (kind, *_), found in problems.items():
        if not {"gibo", "careful", "penalty", "tpe", "cma"} <= set(found):
            continue  # a study that was stopped
        best = max([1e-300, *(float(row["gain"]) for row in found.values() if row["satisfies"] == "1")])
        for way, row in found.items():
            satisfies = int(row["satisfies"])
            regret = 1.0 - float(row["gain"]) / best if satisfies else 1.0
            cells[kind, way].append((100.0 * regret, 100.0 * float(row["violations"]), satisfies))
    head = " | ".join(f"{title} ({len(cells[kind, 'gibo'])})" for kind, title in KINDS.items())
    lines = [f"| regret; violations; satisfied | {head} |", "|---" * (1 + len(KINDS)) + "|"]
    for way, name in WAYS.items():
        entries = []
        for kind in KINDS:
            several = cells[kind, way]
            regrets, violations, satisfied = zip(*several, strict=True) if several else ((), (), ())
            texts = (
                f"{median(regrets):.1f}; {mean(violations):.1f}; {sum(satisfied)} of {len(several)}" if several else ""
            )
            entries.append(texts)
        lines.append(f"| {name} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def failures() -> str:
    """Means of failures, and medians of the regret in percent of the start's."""
    cells: dict[tuple[int, str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in machines("failures"):
        case = (int(row["d"]), row["place"], row["random"], row["way"])
        cells[case].append((float(row["failures"]), 100.0 * float(row["regret"])))
    lines = ["| parameters | fails | functions | failures | failures, skip | regret | regret, skip |", "|---" * 7 + "|"]
    for d, place, random in sorted({case[:3] for case in cells}):
        name = {"half": "half space", "third": "third of the box", "none": "nothing"}[place]
        if float(random):
            name = (
                f"{100.0 * float(random):.0f} % at random"
                if place == "none"
                else f"{name}, {100 * float(random):.0f} % at random"
            )
        entries = []
        for way in ("gibo", "passing over"):
            several = cells.get((d, place, random, way), [])
            entries.append(
                [f"{mean(n for n, _ in several):.0f}", f"{median(r for _, r in several):.2f}"] if several else ["", ""]
            )
        (n, r), (n_skip, r_skip) = entries
        count = len(cells.get((d, place, random, "gibo"), []))
        lines.append(f"| {d} | {name} | {count} | {n} | {n_skip} | {r} | {r_skip} |")
    return "\n".join(lines) + "\n"


def machines(study: str) -> list[dict[str, str]]:
    """The rows of a study of machines, from each file whose name begins with it."""
    rows = []
    for path in sorted((ROOT / "studies" / "results" / "machines").glob(f"{study}*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows += list(csv.DictReader(file))
    return rows


def column(judge: str, look: int, method: str, title: str) -> str:
    """An entry of a judge's table; empty if the method, or what it is compared with, did not run."""
    page = (ROOT / "studies" / "results" / "judges" / f"{judge}.md").read_text(encoding="utf-8")
    table = page.split("\n## ")[1 + look]
    head, *rows = [line.strip("| ").split("|") for line in table.splitlines() if line.startswith("|")]
    places = [i for i, each in enumerate(head) if title in each]
    return next((row[places[0]].strip() for row in rows if places and row[0].strip() == method), "")


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(current(page.read_text(encoding="utf-8")), encoding="utf-8")
