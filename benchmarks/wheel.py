"""Tries an installed gibo in an empty folder: ``wheel.py readme``, ``train`` or ``reproduce``; see ``make wheel``.

``readme`` runs the first program of the README and says how large the installation is and how much CPU time the import
takes.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
COMMANDS = {
    "train": ["train", "CartPole-v1", "--budget", "20", "--out", "pole"],
    "reproduce": ["reproduce", "cartpole", "--quick", "--out", "cartpole"],
}
IMPORT_TIME = "import time; t = time.process_time(); import gibo; print(time.process_time() - t)"


def output(*words: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def size(folder: Path) -> float:
    """In MB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main(step: str) -> None:
    if step in COMMANDS:
        print(output("-m", "gibo", *COMMANDS[step])[-400:])
        return
    (program, *_) = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    print(output("-c", program))
    packages = Path(sysconfig.get_paths()["purelib"])
    dependencies = ("numpy", "numpy.libs", "scipy", "scipy.libs", "threadpoolctl.py", "tqdm")
    others = sum(size(packages / name) for name in dependencies)
    seconds = min(float(output("-c", IMPORT_TIME)) for _ in range(5))
    print(f"gibo: {size(packages / 'gibo'):.1f} MB, its dependencies {others:.0f} MB; import {seconds:.2f} s of CPU")


if __name__ == "__main__":
    main(sys.argv[1])
