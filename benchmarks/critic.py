"""Whether a critic's policy gradients pay: GIBO with and without them, episodes counted alike.

    python benchmarks/critic.py [--trials 8] [--tasks Swimmer-v5] [--gradients "none;critic"] [--out results/critic]

Return of the recommended policy, the mean of further episodes without noise, after so many episodes. The same folder is
continued: every trial is kept when it ends.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gibo import GIBO
from gibo.policies import CriticGradient, PolicyGradient, Task

DEAREST = 4  # episodes of an evaluation, where a likelihood ratio is estimated
HEADER = ("task", "gradients", "trial", "episodes", "return")


class Setup(NamedTuple):
    """A task: policy, scale, noise on the actions, episodes that a critic remembers, and by which one is judged."""

    policy: str
    scale: float
    noise: float
    memory: int
    judged_by: int
    marks: tuple[int, ...] = (20, 40, 60, 80, 100, 120)


TASKS = {
    "Swimmer-v5": Setup("linear", 0.1, 0.1, 10, 3),
    "Pendulum-v1": Setup("affine", 1.0, 0.3, 20, 30, marks=(50, 100, 150, 200, 250, 300)),
}

# How the objective is made. Noise on the actions makes another one, smoother; so it is there without gradients, too.
ARMS: dict[str, Callable[[Task, Setup], Any]] = {
    "none": lambda task, setup: task,
    "none, noise on the actions": lambda task, setup: PolicyGradient(task, noise=setup.noise, at=()),
    "critic": lambda task, setup: CriticGradient(task, noise=setup.noise, memory=setup.memory),
    "likelihood ratio": lambda task, setup: PolicyGradient(task, noise=setup.noise, episodes=DEAREST),
}


def trial(name: str, arm: str, number: int) -> list[tuple[int, float]]:
    """Marks, and the return of the policy that is recommended then."""
    setup = TASKS[name]
    with Task(name, policy=setup.policy) as task:
        objective = ARMS[arm](task, setup)
        optimizer = GIBO(task.x0(), scale=setup.scale, seed=number)
        spent, recommended = 0, [(0, task.x0())]
        while spent < setup.marks[-1]:
            for query in optimizer.ask():
                options = {} if objective is task else {"kind": query.kind}
                outcome = objective(query.x, seed=1000 * number + spent, **options)
                spent += outcome.info.get("episodes", 1)
                optimizer.tell(query, outcome)
                if any(spent <= mark < spent + DEAREST for mark in setup.marks) and optimizer.best is not None:
                    recommended.append((spent, optimizer.best.x))
        judged = []
        for mark in setup.marks:
            x = [x for n, x in recommended if n <= mark][-1]
            episodes = task.evaluate(x, setup.judged_by, seed=77)
            judged.append((mark, math.fsum(each.value for each in episodes) / setup.judged_by))
        return judged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--gradients", default=";".join(ARMS), help="some of them, separated by semicolons")
    parser.add_argument("--out", type=Path, default=Path("results/critic"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "returns.csv"
    if not file.exists():
        file.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    rows = read(file)
    for number in range(arguments.trials):
        for name in arguments.tasks.split(","):
            for arm in arguments.gradients.split(";"):
                if any((row["task"], row["gradients"], row["trial"]) == (name, arm, str(number)) for row in rows):
                    continue
                found = trial(name, arm, number)
                with file.open("a", encoding="utf-8", newline="") as out:
                    csv.writer(out).writerows([(name, arm, number, n, f"{value:.6g}") for n, value in found])
                print(f"{name}, {arm}, trial {number}: {found[-1][1]:.0f}", flush=True)
    rows = read(file)
    text = summary(rows) + "\n`python benchmarks/critic.py`\n"
    (arguments.out / "summary.md").write_text(text, encoding="utf-8")
    draw(rows, arguments.out / "returns.png")
    print(text)


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def returns(rows: list[dict[str, str]], task: str, arm: str, mark: int) -> np.ndarray:
    wanted = (task, arm, str(mark))
    return np.array([float(r["return"]) for r in rows if (r["task"], r["gradients"], r["episodes"]) == wanted])


def summary(rows: list[dict[str, str]]) -> str:
    """A table per task: mean ± standard error."""
    text = "Return of the recommended policy after so many episodes: mean ± standard error over the trials.\n"
    for task in dict.fromkeys(row["task"] for row in rows):
        marks = TASKS[task].marks
        count = len(returns(rows, task, "none", marks[-1]))
        text += f"\n| {task}, {count} trials | " + " | ".join(f"after {mark}" for mark in marks)
        text += " |\n|---" + "|---" * len(marks) + "|\n"
        for arm in ARMS:
            each = [returns(rows, task, arm, mark) for mark in marks]
            if each[-1].size > 1:
                cells = [f"{r.mean():.0f} ± {r.std(ddof=1) / math.sqrt(r.size):.0f}" for r in each]
                text += f"| {arm} | " + " | ".join(cells) + " |\n"
    return text


def draw(rows: list[dict[str, str]], file: Path) -> None:
    """Mean return over the episodes, a panel per task."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    tasks = list(dict.fromkeys(row["task"] for row in rows))
    figure, axes = plt.subplots(1, len(tasks), figsize=(4.5 * len(tasks), 3.2), squeeze=False, layout="constrained")
    lines = {
        "none": "k-",
        "none, noise on the actions": "C2-.",
        "critic": "C0-",
        "likelihood ratio": "C1--",
    }
    for ax, task in zip(axes[0], tasks, strict=True):
        for arm, line in lines.items():
            each = [returns(rows, task, arm, mark) for mark in TASKS[task].marks]
            if each[-1].size:
                ax.plot(TASKS[task].marks, [r.mean() for r in each], line, label=arm)
        ax.set(title=task, xlabel="episodes", ylabel="return")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
