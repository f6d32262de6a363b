"""Learning curves of policy search, from saved data alone."""

from __future__ import annotations

from pathlib import Path

from gibo.figures.style import look, pyplot, save
from gibo.studies.gym_report import read_gym_report


def gym_figures(out: Path) -> list[Path]:
    """Mean and standard deviation of the iterate's return over the episodes, a panel per environment."""
    data = read_gym_report(out)
    with pyplot() as plt:
        figure, grid = plt.subplots(
            1, len(data), figsize=(0.8 + 3.6 * len(data), 3.2), squeeze=False, layout="constrained"
        )
        lines = {}
        for axes, (environment, curves) in zip(grid[0], data.items(), strict=True):
            for method, curve in curves.items():
                color, line = look(method)
                lines[method] = axes.plot(curve.episodes, curve.mean, color=color, linestyle=line, label=method)[0]
                low, high = curve.mean - curve.sd, curve.mean + curve.sd
                axes.fill_between(curve.episodes, low, high, color=color, alpha=0.15, linewidth=0)
            axes.set_title(environment)
            axes.set_xlabel("episodes")
        grid[0][0].set_ylabel("return, mean ± standard deviation")
        figure.legend(handles=list(lines.values()), loc="outside upper center", ncols=len(lines))
        return save(figure, plt, out / "learning")
