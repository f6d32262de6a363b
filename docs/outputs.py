"""Writes what is computed into README.md and docs/index.md: ``python docs/outputs.py``.

Each program is followed by what it prints. README's table of results has the paired differences from the judges'
pages in studies/results/judges.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md")
PROGRAM_AND_OUTPUT = re.compile(r"(```python\n(.*?)```\n\n```text\n).*?(```)", re.DOTALL)
RESULTS = re.compile(r"(\| \| CMA-ES (.*)\n\|---.*\n)(\|.*\n)*")
# A row of README's table: its name, the judge, the number of the look.
ROWS = (
    ("8 plants, 2 to 6 gains, after 10 values", "gains", 0),
    ("the same, after 40 values", "gains", 2),
    ("COCO's 30 noisy functions, d = 5, after 150 values", "coco-noisy", 2),
    ("COCO's 24 functions without noise, d = 5 and 10, after 30 d values", "coco", 2),
    ("6 cheap policies, after 200 episodes", "policies", 2),
)


def current(text: str) -> str:
    """A page with the outputs and results of today."""
    return RESULTS.sub(with_rows, PROGRAM_AND_OUTPUT.sub(with_output, text))


def with_output(found: re.Match[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", found[2]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return found[1] + done.stdout + found[3]


def with_rows(found: re.Match[str]) -> str:
    methods = [each.strip() for each in found[1].splitlines()[0].strip("|").split("|")][1:]
    rows = [[name, *(lead(judge, look, method) for method in methods)] for name, judge, look in ROWS]
    return found[1] + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def lead(judge: str, look: int, method: str) -> str:
    """How far the default is ahead of a method, with its interval. The page has the difference the other way round."""
    page = (ROOT / "studies" / "results" / "judges" / f"{judge}.md").read_text(encoding="utf-8")
    table = page.split("\n## ")[1 + look]
    head, *rows = [line.strip("| ").split("|") for line in table.splitlines() if line.startswith("|")]
    column = next(i for i, each in enumerate(head) if "paired difference to GIBO" in each)
    cells = [row[column] for row in rows if row[0].strip() == method]
    if not cells:
        return ""
    mean, low, high = (round(-float(number)) for number in re.findall(r"[-+]?[\d.]+", cells[0]))
    return f"{mean:+d} ({high:+d} to {low:+d})".replace("-", "−")


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(current(page.read_text(encoding="utf-8")), encoding="utf-8")
