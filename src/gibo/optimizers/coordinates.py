"""Between the user's parameters and the coordinates in which the model sees them; derivatives by the chain rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibo._linalg import Array
from gibo.gp import Jacobian
from gibo.means import Mean


class Coordinates(NamedTuple):
    """Where the model sees x (d,): at ``x/scale``, and with a correlation ``C = N Nᵀ`` at ``N⁻¹ (x/scale)``.

    Lengthscales are along these coordinates. With a correlation they are those of a full matrix L, Müller et al. 2021,
    appendix A.1: squared distances are ``(a − b)ᵀ L (a − b)`` with ``L⁻¹ = diag(scale) C diag(scale)``.
    """

    scale: Array
    N: Array | None = None

    @classmethod
    def of(cls, scale: Array, C: Any) -> Coordinates:
        return cls(scale, None if C is None else np.linalg.cholesky(np.array(C)))

    def to(self, X: Array) -> Array:
        """The model's coordinates (…, d) of points."""
        Z = X / self.scale
        return Z if self.N is None else Z @ np.linalg.inv(self.N).T

    def back(self, Z: Array) -> Array:
        """The points (…, d) at the model's coordinates."""
        X: Array = (Z if self.N is None else Z @ self.N.T) * self.scale
        return X

    def gradient_to(self, g: Array, spread: float) -> Array:
        """Derivatives (…, d) by the model's coordinates, of values divided by spread, from those by x."""
        slope: Array = g * (self.scale / spread)
        return slope if self.N is None else slope @ self.N

    def gradient_variance_to(self, v: Array, spread: float) -> Array:
        """Variances (…, d) of `gradient_to` from those by x; correlations between its entries are left out."""
        variance: Array = v * (self.scale / spread) ** 2
        return variance if self.N is None else variance @ self.N**2

    def gradient_back(self, g: Jacobian, spread: float) -> Jacobian:
        """The derivative by x, of values multiplied by spread, from the one by the model's coordinates."""
        mean, S, slope = *g, spread / self.scale
        if self.N is not None:
            inverse = np.linalg.inv(self.N)
            mean, S = mean @ inverse, inverse.T @ S @ inverse
        return Jacobian(mean * slope, S * np.outer(slope, slope))


@dataclass(frozen=True)
class InUnits(Mean):
    """A mean of the user's x and y as the model sees it: ``(m(x) − shift)/spread``."""

    mean: Mean
    coordinates: Coordinates
    shift: float
    spread: float

    def __call__(self, X: Array) -> Array:
        m: Array = (self.mean(self.coordinates.back(X)) - self.shift) / self.spread
        return m

    def gradient(self, X: Array) -> Array:
        return self.coordinates.gradient_to(self.mean.gradient(self.coordinates.back(X)), self.spread)
