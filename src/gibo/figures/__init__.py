"""Results as figures. Nothing here runs an optimiser; matplotlib is imported when the first figure is drawn."""

from gibo.figures.run import run_figure

__all__ = ["run_figure"]
