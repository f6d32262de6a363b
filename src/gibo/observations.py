"""The data of a Gaussian process: values and gradients with their noise and blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gibo._checks import as_finite, as_points, moderate, shown
from gibo._linalg import Array
from gibo.errors import InputError


@dataclass(frozen=True, eq=False)
class Observations:
    """Values and gradients. In K and in all arrays with a row per observation, gradients come before values.

    The noise on value i has the variance ``noise·noise_scale_i + known_noise_i``: 1 and 0 for a usual value, 1/r and 0
    for the mean of r repeats, 0 and v for a value whose noise variance v is known. The
    blocks (n,) of values and (m,) of gradients are those of `gibo.blocks`, NaN where none are given.
    """

    X: Array
    y: Array
    G: Array
    g: Array
    g_noise: Array
    noise_scale: Array
    known_noise: Array
    blocks: Array
    gradient_blocks: Array

    @classmethod
    def of_values(
        cls, X: Array, y: Array, noise_scale: Array, known_noise: Array, blocks: Array | None
    ) -> Observations:
        """Values alone."""
        none, of_values = np.empty((0, X.shape[1])), np.full(len(y), np.nan) if blocks is None else blocks
        return cls(X, y, none, none, none, noise_scale, known_noise, of_values, np.empty(0))

    def targets(self, mean: float) -> Array:
        return np.concatenate([self.g.ravel(), self.y - mean])

    def noise(self, noise: float | Array) -> Array:
        """The noise variances (N,) where the model's is `noise`, one number or one per value."""
        return np.concatenate([self.g_noise.ravel(), noise * self.noise_scale + self.known_noise])

    @cached_property
    def row_blocks(self) -> Array:
        """The block (N,) of each row of K."""
        return np.concatenate([np.repeat(self.gradient_blocks, self.X.shape[1]), self.blocks])

    def select(self, chosen: Array) -> Observations:
        """Some of the values (n,), without the gradients."""
        of_values = ("X", "y", "noise_scale", "known_noise", "blocks")
        names = self.__dataclass_fields__
        return Observations(**{name: getattr(self, name)[chosen if name in of_values else slice(0)] for name in names})

    def append(self, new: Observations) -> Observations:
        """These and further observations."""
        both = {name: np.concatenate([getattr(self, name), getattr(new, name)]) for name in self.__dataclass_fields__}
        return Observations(**both)


def checked(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    gradient_X: npt.ArrayLike | None = None,
    gradients: npt.ArrayLike | None = None,
    gradient_noise: npt.ArrayLike | None = None,
    noise_scale: npt.ArrayLike = 1.0,
    known_noise: npt.ArrayLike = 0.0,
    blocks: npt.ArrayLike | None = None,
    gradient_blocks: npt.ArrayLike | None = None,
) -> Observations:
    """Data from outside; the arguments are those of `gibo.GaussianProcess.condition`."""
    y = moderate("y", as_finite("y", y, ndim=1))
    X, G = as_finite("X", X), None if gradient_X is None else as_finite("gradient_X", gradient_X)
    if G is not None and not X.size and G.ndim == 2:
        X = np.empty((0, G.shape[1]))  # gradients alone
    X = moderate("X", as_finite("X", X, ndim=2))
    if not X.shape[1]:
        raise InputError(f"X: expected points of one or more dimensions, got shape {X.shape}")
    if len(X) != len(y):
        raise InputError(f"X, y: expected one value for each point, got {len(X)} points and {len(y)} values")
    d, n = X.shape[1], len(y)
    noise = _one_per_value("noise_scale", noise_scale, n), _one_per_value("known_noise", known_noise, n)
    values = Observations.of_values(X, y, *noise, _blocks("blocks", blocks, n))
    if G is None or not G.size:
        if gradients is not None and as_finite("gradients", gradients).size:
            raise InputError("gradients: their locations are missing; give gradient_X too")
        return values
    G = moderate("gradient_X", as_points("gradient_X", G, d))
    if gradients is None or gradient_noise is None:
        raise InputError("gradient_X: give gradients and gradient_noise with it")
    g = as_points("gradients", gradients, d)
    if len(g) != len(G):
        raise InputError(f"gradients: expected one for each of the {len(G)} rows of gradient_X, got {len(g)}")
    of_gradients = _blocks("gradient_blocks", gradient_blocks, len(G))
    return replace(values, G=G, g=g, g_noise=_gradient_noise(gradient_noise, len(G), d), gradient_blocks=of_gradients)


def _one_per_value(name: str, given: npt.ArrayLike, n: int) -> Array:
    """Non-negative numbers (n,) from one number or n."""
    array = moderate(name, as_finite(name, given))
    if array.shape not in ((), (n,)) or not (array >= 0).all():
        raise InputError(f"{name}: expected a non-negative number or {n} of them, got {shown(array.tolist())}")
    return np.broadcast_to(array, (n,)).copy()


def _blocks(name: str, given: npt.ArrayLike | None, n: int) -> Array:
    """Numbers (n,), or NaN (n,) if none are given."""
    if given is None:
        return np.full(n, np.nan)
    array = np.atleast_1d(as_finite(name, given))
    if array.shape != (n,):
        raise InputError(f"{name}: expected {n} numbers, got {shown(array.tolist())}")
    return array.copy()


def _gradient_noise(noise: npt.ArrayLike, m: int, d: int) -> Array:
    """Variances (m, d) from a number, one per gradient (m,), or all (m, d)."""
    array = as_finite("gradient_noise", noise)
    if array.ndim == 1 and len(array) == m:
        array = array[:, None]
    try:
        array = np.broadcast_to(array, (m, d)).copy()
    except ValueError:
        raise InputError(f"gradient_noise: expected a number, {m} or ({m}, {d}) numbers, got {array.shape}") from None
    if not (array >= 0).all():
        raise InputError("gradient_noise: expected non-negative variances")
    return array
