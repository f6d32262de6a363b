"""Learning curves of policy search, from saved data alone."""

from __future__ import annotations

from pathlib import Path

from gibo.figures.style import pyplot, save
from gibo_studies.paper.gym import COLUMNS
from gibo_studies.report import read_curves, read_points
from gibo_studies.styles import line_style


def figures(out: Path) -> list[Path]:
    """Mean and standard deviation of the iterate's return over the episodes, a panel per environment; thin: each trial.

    Figures 6 and 7 of the paper.
    """
    curves = read_curves(out, COLUMNS)
    environments = list(dict.fromkeys(environment for environment, _ in curves))
    size = (0.8 + 3.6 * len(environments), 3.2)
    with pyplot() as plt:
        figure, ((*panels,),) = plt.subplots(1, len(environments), figsize=size, squeeze=False, layout="constrained")
        lines = {}
        for (environment, method), curve in curves.items():
            axes = panels[environments.index(environment)]
            episodes, mean, sd, style = curve["episodes"], curve["mean"], curve["sd"], line_style(method)
            lines[method] = axes.plot(episodes, mean, **style, label=method)[0]
            axes.fill_between(episodes, mean - sd, mean + sd, color=style["color"], alpha=0.15, linewidth=0)
        for (environment, method), trials in read_points(out / "returns.csv", COLUMNS).items():
            axes, color = panels[environments.index(environment)], line_style(method)["color"]
            for trial in trials:
                axes.plot(*zip(*trial, strict=True), color=color, linewidth=0.4, alpha=0.4, zorder=1)
        for axes, environment in zip(panels, environments, strict=True):
            axes.set_title(environment)
            axes.set_xlabel("episodes")
        panels[0].set_ylabel("return, mean ± standard deviation")
        beside = sum(len(name) + 8 for name in lines) < 17 * size[0]  # whether the names fit beside each other
        figure.legend(handles=list(lines.values()), loc="outside upper center", ncols=len(lines) if beside else 1)
        return save(figure, plt, out / "learning")
