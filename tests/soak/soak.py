"""The long attack on what gibo promises: kills, hostile calls, damaged journals, dead workers, full disks.

    python tests/soak/soak.py                    everything, about five minutes on two idle cores
    python tests/soak/soak.py --share 0.1        a tenth of it
    python tests/soak/soak.py --only kills       a part of it: kills, calls, journals, workers, dask, disks

It prints one table. A try survived if what followed it went as promised; lost are values that returned and are not in
the journal; different are runs that ended otherwise than undisturbed ones, or journals read as what was not written.
"""

import argparse
import platform
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent, HERE.parent / "runs", HERE.parent / "hostile"):
    sys.path.insert(0, str(folder))

SEED = 0


class Row(NamedTuple):
    what: str
    tries: int
    survived: int
    lost: int
    different: int
    findings: tuple[str, ...] = ()


def share_of(number, share):
    return max(1, round(number * share))


def hostile_calls(share, folder):
    from hostile_calls import attacked
    from hostile_targets import TARGETS

    findings, made, _ = attacked(TARGETS, share_of(20_000, share), folder)
    yield Row("hostile calls", made, made - len(findings), 0, 0, tuple(findings))


def parts():
    import soak_journals
    import soak_kills
    import soak_machines

    rows = {"kills": soak_kills.rows, "calls": hostile_calls, "journals": soak_journals.rows}
    machines = {"workers": soak_machines.rows, "dask": soak_machines.dask_rows, "disks": soak_machines.disk_rows}
    return {**rows, **machines}


def table(rows, minutes):
    yield "| attack | tries | survived | lost | different |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield f"| {row.what} | {row.tries:,} | {row.survived:,} | {row.lost} | {row.different} |"
    yield ""
    yield f"`{' '.join(['python', *sys.argv])}`, {minutes:.0f} minutes, Python {platform.python_version()}."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="of all tries (default: 1)")
    parser.add_argument("--only", nargs="+", help="these parts")
    arguments = parser.parse_args()
    if not 0.0 < arguments.share <= 1.0:
        parser.error(f"--share: expected a number above 0 and at most 1, got {arguments.share}")
    known = parts()
    chosen = arguments.only or list(known)
    if not set(chosen) <= set(known):
        parser.error(f"--only: expected some of {', '.join(known)}")
    warnings.simplefilter("ignore")
    started, rows = time.monotonic(), []
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                for row in known[name](arguments.share, Path(folder)):
                    rows.append(row)
                    print(f"{(time.monotonic() - started) / 60:5.1f} min  {row[:5]}", file=sys.stderr, flush=True)
            except Exception:
                rows.append(Row(f"{name} (broken off)", 1, 0, 0, 0, (traceback.format_exc(),)))
    for row in rows:
        for finding in row.findings[:5]:
            print(f"{row.what}: {finding}\n", file=sys.stderr)
    print("\n".join(table(rows, (time.monotonic() - started) / 60)))
    return int(any(row.survived < row.tries or row.lost or row.different for row in rows))


if __name__ == "__main__":
    sys.exit(main())
