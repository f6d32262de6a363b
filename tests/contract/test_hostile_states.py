"""Every optimiser: a state that is damaged, or made up, is refused with an error of gibo's own."""

import copy
import json

import numpy as np
import pytest
from every_optimizer import OPTIMIZERS, X0, D, every_class

from gibo import GIBO, GiboError, InputError, Optimizer, QueryError, RandomSearch
from optimizer_helpers import advance, noisy

REMOVED = object()


def nested(depth):
    data = []
    for _ in range(depth):
        data = [data]
    return data


def edited(state, *path, to):
    """The state with something else at a path; a text after "events" is the first event of that name."""
    place = state
    for i, key in enumerate(path):
        if i == 1 and path[0] == "events" and isinstance(key, str):
            place = next(content for kind, content in place if kind == key)
        elif i < len(path) - 1:
            place = place[key]
        elif to is REMOVED:
            del place[key]
        else:
            place[key] = to
    return state


def edit(*path, to=REMOVED):
    return lambda state: edited(state, *path, to=to)


def with_events(change):
    """The events changed by a function in place."""
    return lambda state: change(state["events"]) or state


OUTCOME = ("events", "told", "outcome")
QUERY = ("events", "asked", "queries", 0)
UNIFORM = {"type": "Uniform", "lower": 0, "upper": 1}
BAD_STATES = {
    "not-json": lambda state: "{broken",
    "a-list": lambda state: [],
    "deep-text": lambda state: "[" * 100_000,
    "deep": edit("events", to=nested(2000)),
    "deep-arguments": edit("arguments", to=nested(2000)),
    "no-optimizer": edit("optimizer"),
    "no-arguments": edit("arguments"),
    "another-format": edit("format", to=99),
    "unknown-optimizer": edit("optimizer", to="Nobody"),
    "unknown-argument": edit("arguments", "colour", to="red"),
    "unknown-type": edit("arguments", "scale", to={"type": "Nobody"}),
    "bad-argument": edit("arguments", "seed", to=-1),
    "no-x0": edit("arguments", "x0"),
    "events-are-numbers": edit("events", to=[1.0]),
    "unknown-event": edit("events", to=[["exploded", {}]]),
    "told-first": with_events(lambda events: events.__delitem__(0)),
    "asked-twice": with_events(lambda events: events.insert(1, copy.deepcopy(events[0]))),
    "told-twice": with_events(lambda events: events.insert(2, copy.deepcopy(events[1]))),
    "proceeded-first": with_events(lambda events: events.insert(0, ["proceeded", {}])),
    "proceeded-twice": with_events(lambda events: events.extend([["proceeded", {}], ["proceeded", {}]])),
    "reparametrized-while-pending": with_events(
        lambda events: events.append(["reparametrized", {"transform": {"type": "Uniform"}, "moves_iterate": True}])
    ),
    "transform-is-a-prior": with_events(
        lambda events: events.insert(0, ["reparametrized", {"transform": UNIFORM, "moves_iterate": True}])
    ),
    "reparametrized-by-nothing": with_events(lambda events: events.insert(0, ["reparametrized", {}])),
    "queries-are-empty": edit("events", "asked", "queries", to=[]),
    "memo-is-missing": edit("events", "asked", "memo"),
    "query-without-x": edit(*QUERY, "x"),
    "x-is-short": edit(*QUERY, "x", to=[0.0]),
    "x-is-too-large": edit(*QUERY, "x", to=[10**400] * D),
    "id-is-another": edit(*QUERY, "id", to=7),
    "seed-is-huge": edit(*QUERY, "seed", to=1 << 70),
    "kind-is-from-elsewhere": edit(*QUERY, "kind", to="external"),
    "told-of-another-point": edit("events", "told", "query", "x", to=[9.0] * D),
    "told-of-another-query": edit("events", "told", "query", "id", to=77),
    "told-without-outcome": edit(*OUTCOME),
    "outcome-has-more": edit(*OUTCOME, to={"value": 1.0, "colour": "red"}),
    "gradient-without-noise": edit(*OUTCOME, to={"value": 1.0, "gradient": [1.0] * D}),
    "gradient-is-huge": edit(*OUTCOME, to={"value": 1.0, "gradient": [10**400] * D, "gradient_noise": [1.0] * D}),
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


def test_a_state_is_refused_by_another_class():
    with pytest.raises(InputError, match="expected one of GIBO, got one of 'RandomSearch'"):
        GIBO.from_state(RandomSearch(X0).state())


# -- memos ------------------------------------------------------------------------------------------------------------

PCG = {"bit_generator": "PCG64", "state": {"state": 1, "inc": 1}, "has_uint32": 0, "uinteger": 0}
GENERATORS = [
    None,
    "random",
    {"bit_generator": "MT19937", "state": {"key": [], "pos": 0}},
    {**PCG, "state": {}},
    {**PCG, "state": {"state": -1, "inc": 1}},
    {**PCG, "state": {"state": 1 << 200, "inc": 1}},
    {**PCG, "has_uint32": 1 << 80, "uinteger": 1 << 80},
]
ELL = [1.0] * D
HYPERPARAMETERS = [
    None,
    [ELL, 1.0],  # too few
    [[1.0], 1.0, 0.1],
    [1.0, 1.0, 0.1],
    [[-1.0] * D, 1.0, 0.1],
    [[float("nan")] * D, 1.0, 0.1],
    [ELL, -1.0, 0.1],
    [ELL, "much", 0.1],
    [ELL, 10**400, 0.1],
    [ELL, 1.0, -0.1],
    [ELL, 1.0, "inf"],
]
MEMOS = {"generator": GENERATORS, "iterate": [[0.0], None], "hyperparameters": HYPERPARAMETERS, "warning": [[]]}


@pytest.mark.parametrize("make", [p for p in OPTIMIZERS if p.id in ("gibo-paper-random-momentum", "vanilla-bo")])
def test_memos_that_nobody_left_are_refused(make):
    state = told_and_asked(make).state()
    memo = state["events"][-1][1].pop("memo")
    needed = {"generator", "hyperparameters"}  # without the others it can do, as earlier versions did
    missing = [{name: part for name, part in memo.items() if name != without} for without in needed]
    for bad in [*missing, *({**memo, name: value} for name, values in MEMOS.items() for value in values)]:
        state["events"][-1][1]["memo"] = bad
        with pytest.raises(InputError):
            Optimizer.from_state(copy.deepcopy(state))


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
