"""Mutations of the numerical code, each of which a test must notice.

    python tests/mutants/mutants.py [--processes 2] [--only gp information]

Each mutation of `mutations.py` replaces one text of one file in a copy of the repository and runs there the tests that
are named with it. They must fail. A mutation that they pass has survived: no test holds what the line computes. A text
that is not found exactly once is an error, so that the list follows the code. The tests must pass without mutations,
which is tried first. `make nightly` runs all of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300  # for the tests of one mutation; one that makes a program endless is noticed, too
PASSED, FAILED = 0, 1  # what pytest returns


def copied(folder: Path) -> Path:
    """The files of the repository that Git knows, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
    for name in listed.stdout.decode().splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def run_tests(folder: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """What pytest returns, and the end of what it says."""
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder / 'studies' / 'src'}"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return FAILED, f"not over after {SECONDS} s"
    return done.returncode, (done.stdout + done.stderr)[-2000:]


def tried(mutation: Mutation, folder: Path) -> str | None:
    """What is wrong: None if the tests noticed the mutation."""
    file = folder / mutation.file
    text = file.read_text() if file.exists() else ""
    if text.count(mutation.old) != 1:
        return f"error: {mutation.old!r} stands {text.count(mutation.old)} times in {mutation.file}, expected once"
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        code, said = run_tests(folder, mutation.tests)
    finally:
        file.write_text(text)
    if code == PASSED and " passed" not in said:
        return "not tried: all its tests are skipped here; install the packages that they need"
    if code == PASSED:
        return f"survived: {mutation.old!r} as {mutation.new!r} in {mutation.file} passes {' '.join(mutation.tests)}"
    return None if code == FAILED else f"error: pytest returned {code}:\n{said}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Report the mutations that no test notices.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="those with one of these words in name or file")
    arguments = parser.parse_args()
    words = arguments.only or [""]
    chosen = [each for each in MUTATIONS if any(word in f"{each.name} {each.file}" for word in words)]
    with tempfile.TemporaryDirectory(prefix="gibo-mutants-") as folder:
        copies: Queue[Path] = Queue()
        for i in range(arguments.processes):
            copies.put(copied(Path(folder) / str(i)))

        def report(mutation: Mutation) -> bool:
            copy = copies.get()
            try:
                wrong = tried(mutation, copy)
            finally:
                copies.put(copy)
            print(
                f"{'killed' if wrong is None else 'NOT KILLED'}: {mutation.name}",
                *([wrong] if wrong else []),
                flush=True,
            )
            return wrong is None

        copy = copies.get()
        code, said = run_tests(copy, tuple(sorted({test for each in chosen for test in each.tests})))
        copies.put(copy)
        if code != PASSED:
            print(f"the tests do not pass without mutations:\n{said}")
            return 2
        with ThreadPoolExecutor(arguments.processes) as pool:
            killed = list(pool.map(report, chosen))
    print(f"{sum(killed)} of {len(killed)} mutations were noticed")
    return 0 if all(killed) else 1


if __name__ == "__main__":
    sys.exit(main())
