"""Every optimiser: a state that is damaged, or made up, is refused with an error of gibo's own."""

import copy
import json

import numpy as np
import pytest
from every_optimizer import OPTIMIZERS, X0, D, every_class, every_optimizer

from gibo import ARS, GIBO, GiboError, InputError, Optimizer, QueryError
from optimizer_helpers import advance, noisy


def nested(depth):
    data = []
    for _ in range(depth):
        data = [data]
    return data


def without(key):
    return lambda state: {name: value for name, value in state.items() if name != key}


def with_events(change):
    """The events changed: a function of them in place."""

    def spoil(state):
        change(state["events"])
        return state

    return spoil


def first(events, name):
    return next(content for kind, content in events if kind == name)


def setting(name, *path, to):
    """The first event of that name with something else at a path."""

    def change(events):
        place = first(events, name)
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to

    return with_events(change)


def removing(name, *path):
    def change(events):
        place = first(events, name)
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return with_events(change)


BAD_STATES = {
    "not-json": lambda state: "{broken",
    "a-list": lambda state: [],
    "deep-text": lambda state: "[" * 100_000,
    "deep": lambda state: {**state, "events": nested(2000)},
    "deep-arguments": lambda state: {**state, "arguments": nested(2000)},
    "no-optimizer": without("optimizer"),
    "no-arguments": without("arguments"),
    "another-format": lambda state: {**state, "format": 99},
    "unknown-optimizer": lambda state: {**state, "optimizer": "Nobody"},
    "unknown-argument": lambda state: {**state, "arguments": {**state["arguments"], "colour": "red"}},
    "unknown-type": lambda state: {**state, "arguments": {**state["arguments"], "scale": {"type": "Nobody"}}},
    "bad-argument": lambda state: {**state, "arguments": {**state["arguments"], "seed": -1}},
    "no-x0": lambda state: {**state, "arguments": without("x0")(state["arguments"])},
    "events-are-numbers": lambda state: {**state, "events": [1.0]},
    "unknown-event": lambda state: {**state, "events": [["exploded", {}]]},
    "told-first": with_events(lambda events: events.pop(0)),
    "asked-twice": with_events(lambda events: events.insert(1, copy.deepcopy(events[0]))),
    "told-twice": with_events(lambda events: events.insert(2, copy.deepcopy(events[1]))),
    "proceeded-first": with_events(lambda events: events.insert(0, ["proceeded", {}])),
    "proceeded-twice": with_events(lambda events: events.extend([["proceeded", {}], ["proceeded", {}]])),
    "reparametrized-while-pending": with_events(
        lambda events: events.append(["reparametrized", {"transform": {"type": "Uniform"}, "moves_iterate": True}])
    ),
    "transform-is-a-prior": with_events(
        lambda events: events.insert(
            0, ["reparametrized", {"transform": {"type": "Uniform", "lower": 0, "upper": 1}, "moves_iterate": True}]
        )
    ),
    "reparametrized-by-nothing": with_events(lambda events: events.insert(0, ["reparametrized", {}])),
    "queries-are-empty": setting("asked", "queries", to=[]),
    "memo-is-missing": removing("asked", "memo"),
    "query-without-x": removing("asked", "queries", 0, "x"),
    "x-is-short": setting("asked", "queries", 0, "x", to=[0.0]),
    "x-is-too-large": setting("asked", "queries", 0, "x", to=[10**400] * D),
    "id-is-another": setting("asked", "queries", 0, "id", to=7),
    "seed-is-huge": setting("asked", "queries", 0, "seed", to=1 << 70),
    "kind-is-from-elsewhere": setting("asked", "queries", 0, "kind", to="external"),
    "told-of-another-point": setting("told", "query", "x", to=[9.0] * D),
    "told-of-another-query": setting("told", "query", "id", to=77),
    "told-without-outcome": removing("told", "outcome"),
    "outcome-has-more": setting("told", "outcome", to={"value": 1.0, "colour": "red"}),
    "gradient-without-noise": setting("told", "outcome", to={"value": 1.0, "gradient": [1.0] * D}),
    "gradient-is-huge": setting(
        "told", "outcome", to={"value": 1.0, "gradient": [10**400] * D, "gradient_noise": [1.0] * D}
    ),
}


def told_and_asked(make):
    """One batch, or two, that were told, and one that is pending."""
    optimizer = make(X0)
    advance(optimizer, 1)
    optimizer.ask()
    return optimizer


@pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id in ("gibo", "cma-es")])
@pytest.mark.parametrize("spoil", BAD_STATES.values(), ids=BAD_STATES.keys())
def test_bad_states_are_refused(make, spoil):
    state = copy.deepcopy(told_and_asked(make).state())
    with pytest.raises((InputError, QueryError)):
        Optimizer.from_state(spoil(state))


@every_optimizer
def test_the_state_that_is_spoilt_is_a_good_one(make):
    Optimizer.from_state(copy.deepcopy(told_and_asked(make).state())).ask()


def test_a_state_is_refused_by_another_class():
    with pytest.raises(InputError, match="expected one of GIBO, got one of 'ARS'"):
        GIBO.from_state(ARS(X0).state())


# -- memos ------------------------------------------------------------------------------------------------------------

GENERATORS = {
    "none": None,
    "text": "random",
    "another": {"bit_generator": "MT19937", "state": {"key": [], "pos": 0}},
    "empty": {"bit_generator": "PCG64", "state": {}, "has_uint32": 0, "uinteger": 0},
    "negative": {"bit_generator": "PCG64", "state": {"state": -1, "inc": 1}, "has_uint32": 0, "uinteger": 0},
    "huge": {"bit_generator": "PCG64", "state": {"state": 1 << 200, "inc": 1}, "has_uint32": 0, "uinteger": 0},
    "huge-too": {"bit_generator": "PCG64", "state": {"state": 1, "inc": 1}, "has_uint32": 1 << 80, "uinteger": 1 << 80},
}
ELL = [1.0] * D
BAD_MEMOS = {
    **{f"generator-{name}": {"generator": state} for name, state in GENERATORS.items()},
    "iterate-is-short": {"iterate": [0.0]},
    "iterate-is-none": {"iterate": None},
    "hyperparameters-are-none": {"hyperparameters": None},
    "hyperparameters-are-two": {"hyperparameters": [ELL, 1.0]},
    "lengthscales-are-few": {"hyperparameters": [[1.0], 1.0, 0.1]},
    "lengthscales-are-a-number": {"hyperparameters": [1.0, 1.0, 0.1]},
    "lengthscales-are-negative": {"hyperparameters": [[-1.0] * D, 1.0, 0.1]},
    "lengthscales-are-not-finite": {"hyperparameters": [[float("nan")] * D, 1.0, 0.1]},
    "variance-is-negative": {"hyperparameters": [ELL, -1.0, 0.1]},
    "variance-is-text": {"hyperparameters": [ELL, "much", 0.1]},
    "variance-is-huge": {"hyperparameters": [ELL, 10**400, 0.1]},
    "noise-is-negative": {"hyperparameters": [ELL, 1.0, -0.1]},
    "noise-is-not-finite": {"hyperparameters": [ELL, 1.0, "inf"]},
    "warning-is-a-list": {"warning": []},
}


@pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id in ("gibo-paper-random-momentum", "vanilla-bo")])
@pytest.mark.parametrize("memo", [*BAD_MEMOS.values()], ids=[*BAD_MEMOS.keys()])
def test_memos_that_nobody_left_are_refused(make, memo):
    spoil_memo(make, memo)


def spoil_memo(make, memo):
    state = copy.deepcopy(told_and_asked(make).state())
    asked = state["events"][-1][1]
    asked["memo"] = {**asked["memo"], **memo}
    with pytest.raises(InputError):
        Optimizer.from_state(state)
    missing = {name: part for name, part in asked["memo"].items() if name not in memo}
    if not {"iterate", "warning", "step"} & set(memo):  # without these it can do, as earlier versions did
        asked["memo"] = missing
        with pytest.raises(InputError):
            Optimizer.from_state(state)


# -- anything at all --------------------------------------------------------------------------------------------------

ABSURD = 1e300  # a setting may be so large, and then nothing is right
NASTY = [None, True, -1, 0, 1, 10**30, 10**400, -0.5, 1e30, ABSURD, np.nan, np.inf, "", "x", "inf", [], [[]], {}]


def spots(data, path=()):
    """All paths in nested data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, part in items:
        yield (*path, key)
        yield from spots(part, (*path, key))


def small(path):
    """Sizes of things: a large one is right, and takes as long as it takes."""
    return not {"M", "N_m", "N_g", "directions", "population", "batch", "fit_every"} & {str(key) for key in path}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers that nobody would have
@every_class
def test_whatever_is_changed_in_a_state_nothing_but_our_own_errors_escapes(make):
    rng = np.random.default_rng(0)
    text = json.dumps(told_and_asked(make).state())
    paths, loaded = [path for path in spots(json.loads(text)) if small(path)], 0
    for _ in range(60):
        state = json.loads(text)
        *way, last = paths[rng.integers(len(paths))]
        place = state
        for key in way:
            place = place[key]
        changed = NASTY[rng.integers(len(NASTY))]
        if rng.random() < 0.15:
            del place[last]
        else:
            place[last] = changed
        try:
            again = Optimizer.from_state(state)
            if changed == ABSURD:
                continue
            # What is taken in can be worked with.
            _ = again.best, again.iterate, again.jacobian(), again.state()
            for query in again.ask():
                again.tell(query, noisy(query))
            again.ask()
        except GiboError:
            continue
        loaded += 1
    assert loaded < 40
