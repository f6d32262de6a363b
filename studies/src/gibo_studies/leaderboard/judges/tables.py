"""A judge's tables and its figure, from its rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gibo._linalg import Array
from gibo.figures.style import pyplot, save
from gibo_studies.leaderboard.comparison import (
    LEAST,
    Interval,
    average_ranks,
    interquartile_mean,
    paired_difference,
    probability_of_improvement,
)
from gibo_studies.leaderboard.methods import DEFAULT
from gibo_studies.report import table
from gibo_studies.styles import line_style

Row: TypeAlias = Mapping[str, str]
CENTRE = (DEFAULT, "CMA-ES")  # the first of these that ran is what the others are compared with


def summary(judge: str, rule: str, rows: Sequence[Row], apart: str = "") -> str:
    """All tables; the tasks whose names end with `apart` have their own."""
    methods = in_order(rows)
    looks = looks_of(rows)
    text = (
        f"# {judge}\n\n{rule[0].upper()}{rule[1:]}.\n\nA share is (value − start)/(best known − start), by the value "
        "without noise of the recommended point; in the tables it counts as at least −100 %. Intervals hold 95 %.\n"
    )
    for part, own in parts(rows, apart):
        there = in_order(own)
        centre = next((name for name in CENTRE if name in there), there[0])
        own_looks = looks_of(own)
        for k in range(max(map(len, own_looks.values()))):
            some = [row for row in own if own_looks[row["task"]].index(int(row["look"])) == k]
            values = _values(own_looks, k)
            title = f"After {values} values" + (f" (look {k + 1})" if "to" in values else "")
            title += f", {part}" if part else ""
            text += f"\n## {title}\n\n{_look_table(some, there, centre)}"
    last = [row for row in rows if int(row["look"]) == looks[row["task"]][-1]]
    return text + "\n## Mean share per task in the end, in percent\n\n" + _task_table(last, list(looks), methods)


def in_order(rows: Iterable[Row]) -> list[str]:
    """The methods: the default and its former versions, the paper's, and the others."""
    return sorted({row["method"] for row in rows}, key=lambda name: (name != DEFAULT, "GIBO" not in name, name.lower()))


def parts(rows: Sequence[Row], apart: str) -> list[tuple[str, list[Row]]]:
    """The rows that are compared together, under a name; those of tasks whose names end with `apart` are the second."""
    if not apart:
        return [("", list(rows))]
    found = [
        ("", [row for row in rows if not row["task"].endswith(apart)]),
        (apart.strip(), [row for row in rows if row["task"].endswith(apart)]),
    ]
    return [(name, some) for name, some in found if some]


def _values(looks: Mapping[str, Sequence[int]], k: int) -> str:
    """How many values the tasks have had at their look k."""
    found = sorted({each[k] for each in looks.values()})
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _look_table(rows: Sequence[Row], methods: Sequence[str], centre: str) -> str:
    ranks = _mean_ranks(rows, methods)
    header = (
        "method", "runs", "interquartile mean, %", "mean, %", "mean rank", f"paired difference to {centre}, %",
        f"better than {centre} with probability, %", "below the start", "at the start", "90 % interval held",
    )  # fmt: skip
    theirs = by_trial([row for row in rows if row["method"] == centre])
    lines = []
    for method in sorted(methods, key=lambda name: ranks.get(name, np.inf)):
        own = [row for row in rows if row["method"] == method]
        if not own:
            continue
        shares = by_trial(own)
        compared = ("", "")
        if method != centre and set(shares) & set(theirs):
            compared = (
                _percent(paired_difference(shares, theirs), sign=True),
                _percent(probability_of_improvement(by_task(shares), by_task(theirs))),
            )
        told = [row for row in own if row["low"] and row["mean"]]
        held = sum(float(r["low"]) <= float(r["mean"]) <= float(r["high"]) for r in told)
        mean, rank = f"{100 * np.mean(list(shares.values())):.1f}", ranks.get(method)
        below, at_start = sum(float(row["share"]) < 0.0 for row in own), sum(row["at_start"] == "1" for row in own)
        averages = (_percent(interquartile_mean(by_task(shares))), mean, "" if rank is None else f"{rank:.2f}")
        interval = f"{held} of {len(told)}" if told else ""
        lines.append((method, len(own), *averages, *compared, below, at_start, interval))
    return table(header, lines)


def looks_of(rows: Sequence[Row]) -> dict[str, list[int]]:
    """After how many values each task was looked at."""
    tasks = dict.fromkeys(row["task"] for row in rows)
    return {task: sorted({int(row["look"]) for row in rows if row["task"] == task}) for task in tasks}


def by_trial(rows: Sequence[Row]) -> dict[tuple[str, int], float]:
    """Shares, which are at least `LEAST`."""
    return {(row["task"], int(row["trial"])): max(float(row["share"]), LEAST) for row in rows}


def by_task(shares: Mapping[tuple[str, int], float]) -> dict[str, Array]:
    """The shares of the trials of each task."""
    found: dict[str, list[float]] = {}
    for (task, _), share in shares.items():
        found.setdefault(task, []).append(share)
    return {task: np.array(values) for task, values in found.items()}


def _mean_ranks(rows: Sequence[Row], methods: Sequence[str]) -> dict[str, float]:
    """Over the runs that all had, of those methods that ran at least half as much as the one that ran most."""
    by_method = {method: by_trial([row for row in rows if row["method"] == method]) for method in methods}
    most = max(map(len, by_method.values()))
    ranked = [method for method in methods if 2 * len(by_method[method]) >= most]
    runs = set.intersection(*(set(by_method[method]) for method in ranked))
    ranks = np.array([average_ranks([by_method[method][run] for method in ranked]) for run in sorted(runs)])
    return dict(zip(ranked, ranks.mean(axis=0).tolist(), strict=True)) if len(runs) else {}


def _task_table(rows: Sequence[Row], tasks: Sequence[str], methods: Sequence[str]) -> str:
    shares = {method: by_task(by_trial([row for row in rows if row["method"] == method])) for method in methods}
    lines = [
        (task, *(f"{100 * shares[m][task].mean():.0f}" if task in shares[m] else "" for m in methods)) for task in tasks
    ]
    return table(("task", *methods), lines)


def _percent(interval: Interval, sign: bool = False) -> str:
    mark = "+" if sign else ""
    mean, low, high = (100.0 * value for value in interval)
    return f"{mean:{mark}.1f} ({low:{mark}.1f} to {high:{mark}.1f})"


def in_short(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """The interquartile mean of these methods at the last look."""
    looks = looks_of(rows)
    last = [row for row in rows if int(row["look"]) == looks[row["task"]][-1]]
    texts = []
    for method in methods:
        shares = by_task(by_trial([row for row in last if row["method"] == method]))
        texts.append(f"{method} {100 * interquartile_mean(shares).mean:.0f} %" if shares else f"{method}: none")
    return "; ".join(texts)


def figure(judge: str, rows: Sequence[Row], apart: str, path: Path) -> list[Path]:
    """The interquartile mean of the shares at each look, with the interval of the first method alone.

    The other intervals are in the tables; they would hide the lines.
    """
    panels = parts(rows, apart)
    with pyplot() as plt:
        size = (3.5 + 3.5 * len(panels), 4.0)
        figure, every_axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
        for axes, (part, some) in zip(every_axes[0], panels, strict=True):
            _draw(axes, some)
            axes.set_title(f"{judge}, {part}" if part else judge, fontsize=10)
        lines = {line.get_label(): line for axes in every_axes[0] for line in axes.get_lines()}
        names = in_order(rows)
        figure.legend([lines[name] for name in names], names, loc="outside right center", fontsize=7)
        return save(figure, plt, path)


def _draw(axes: Any, rows: Sequence[Row]) -> None:
    looks = looks_of(rows)
    first, *_ = methods = in_order(rows)
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        at = [[row for row in own if looks[row["task"]].index(int(row["look"])) == k] for k in range(3)]
        intervals = np.array([interquartile_mean(by_task(by_trial(some))) for some in at if some])
        x = np.arange(1, len(intervals) + 1)
        axes.plot(x, intervals[:, 0], label=method, **line_style(method))
        if method == first:
            axes.fill_between(x, intervals[:, 1], intervals[:, 2], color=line_style(method)["color"], alpha=0.12)
    axes.set_xticks([1, 2, 3], [_values(looks, k) for k in range(3)])
    axes.set_xlabel("values")
    axes.set_ylabel("interquartile mean of the share")
