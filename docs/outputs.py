"""Writes what programs in README.md and docs/index.md print into the block below them: ``python docs/outputs.py``."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM_AND_OUTPUT = re.compile(r"(```python\n(.*?)```\n\n```text\n).*?(```)", re.DOTALL)


def with_output(found: re.Match[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", found[2]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return found[1] + done.stdout + found[3]


for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
    page.write_text(PROGRAM_AND_OUTPUT.sub(with_output, page.read_text(encoding="utf-8")), encoding="utf-8")
