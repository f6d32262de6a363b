"""An optimiser of a user's own, as CONTRIBUTING says how to write one, takes part in all that gibo's own do."""

from dataclasses import dataclass

import numpy as np
import pytest

import gibo
from gibo import InputError, Optimizer, resume, run
from gibo._serialize import Serializable
from gibo.outcome import QUERY, Best
from optimizer_helpers import advance, as_data, hill, noisy, same_from_here_on, snapshot

X0 = [0.6, -0.4]


@dataclass(frozen=True)
class Shrinking(Serializable):
    factor: float


HALF = Shrinking(0.5)


class PatternSearch(Optimizer):
    """Steps along the axes, shorter ones when none of them gains. Its options are of several kinds."""

    def __init__(self, x0, *, scale=1.0, bounds=None, seed=0, first=1.0, axes=None, shrinking=HALF):
        super().__init__(x0, scale=scale, bounds=bounds, seed=seed)
        self.first, self.shrinking = float(first), shrinking
        self.axes = np.eye(self.d) if axes is None else np.array(axes, dtype=float)
        self._size, self._value = self.first, None

    @property
    def best(self):
        return None if self._value is None else Best(self.iterate, self._value)

    def _propose(self):
        moves = self._size * self.scale * np.vstack([0.0 * self.axes[:1], self.axes, -self.axes])
        return [(self._iterate + move, QUERY) for move in moves]

    def _update(self, batch):
        self._iteration += 1
        told = [e for e in batch if e.value is not None]
        top = max(told, key=lambda e: e.value, default=None)
        if top is None or (self._value is not None and top.value <= self._value):
            self._size *= self.shrinking.factor
        else:
            self._iterate, self._value = top.x.copy(), top.value


class Wandering(Optimizer):
    """Hands all but its own option on, and has no bounds. Its memo is a number that was slow to find."""

    computed = 0

    def __init__(self, x0, *, patience=3, **others):
        super().__init__(x0, **others)
        self.patience = patience
        self._luck = 1.0

    @property
    def best(self):
        return self.best_seen

    def _propose(self):
        type(self).computed += 1
        self._luck = 0.5 * self._luck + abs(float(self._rng.standard_normal()))
        return [(self._iterate + self._luck * self._rng.standard_normal(self.d), QUERY) for _ in range(self.patience)]

    def _update(self, batch):
        self._iteration += 1
        self._iterate = self.best_seen.x

    def _memo(self):
        return {"luck": self._luck}

    def _recall(self, memo):
        self._luck = float(memo["luck"])


OWN = {
    "plain": lambda: PatternSearch(X0, scale=0.5, first=0.7, axes=[[1.0, 1.0], [1.0, -1.0]], shrinking=Shrinking(0.4)),
    "bounds": lambda: PatternSearch(X0, bounds=([-1.0, -np.inf], [0.7, 0.0])),
    "memo": lambda: Wandering(X0, seed=3, patience=4, scale=0.3),
}
each = pytest.mark.parametrize("make", OWN.values(), ids=OWN.keys())


@each
def test_it_is_saved_and_loaded_and_runs_with_a_journal(make, tmp_path):
    optimizer = make()
    advance(optimizer, 3)
    query = optimizer.ask()[0]
    optimizer.tell(query, noisy(query))
    again = Optimizer.from_state(snapshot(optimizer))
    assert type(again) is type(optimizer)
    assert again.best.value == optimizer.best.value
    same_from_here_on(again, optimizer)
    run(make(), hill, budget=9, journal=tmp_path / "run")
    resumed, straight = resume(tmp_path / "run", hill, budget=25), run(make(), hill, budget=25)
    assert resumed.history.value.tolist() == straight.history.value.tolist()
    assert resumed.x.tolist() == straight.x.tolist()


def test_what_is_slow_is_not_done_again():
    optimizer = OWN["memo"]()
    advance(optimizer, 4)
    optimizer.ask()
    text, before = snapshot(optimizer), Wandering.computed
    again = Optimizer.from_state(text)
    assert Wandering.computed == before
    OWN["memo"]().replay(optimizer.log.events)
    assert Wandering.computed == before
    assert as_data(again.ask()) == as_data(optimizer.ask())


# -- mistakes ---------------------------------------------------------------------------------------------------------


class Forgetful(PatternSearch):
    def __init__(self, x0, *, temper=1.0, seed=0):
        super().__init__(x0, seed=seed)
        self._temper = temper


def test_an_option_that_is_not_kept_is_named_before_a_run_begins(tmp_path):
    calls = []
    with pytest.raises(InputError, match="Forgetful: keep the option 'temper'"):
        run(Forgetful(X0), calls.append, budget=5, journal=tmp_path / "run")
    assert not calls


def test_an_option_that_cannot_be_saved_is_named():
    optimizer = Wandering(X0, patience=hill)
    with pytest.raises(InputError, match="Wandering: the option 'patience' cannot be saved: no plain form"):
        optimizer.state()


def test_a_subclass_does_not_take_the_name_of_its_method():
    class Verbose(gibo.RandomSearch):
        pass

    assert Verbose.method == "random-search"
    assert gibo.optimizers.methods()["random-search"] is gibo.RandomSearch
