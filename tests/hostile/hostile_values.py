"""Arguments that nobody should pass: wrong types, numbers at the edge of what a float holds, objects that misbehave."""

import math
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np


class Raised(Exception):
    """Raised by what a user would have written: an objective, a callback, an object's own methods."""


def raises(*arguments, **options):
    raise Raised("two\nlines")


def leaves(*arguments, **options):
    raise SystemExit(3)


class Rude:
    """Everything that can be asked of it raises."""

    __float__ = __int__ = __index__ = __len__ = __iter__ = __bool__ = __array__ = __repr__ = __str__ = raises
    __eq__ = __lt__ = __getitem__ = __fspath__ = __call__ = __getattr__ = raises
    __hash__ = None


class Lying:
    """It says that it is long, and is not."""

    def __len__(self):
        return 5

    def __getitem__(self, i):
        raise IndexError(i)


class Chatty:
    """Its text has many lines, and more."""

    def __repr__(self):
        return "line\n" * 1000


class Refusing:
    def submit(self, *arguments):
        raise Raised("closed")


class GivingNothing:
    def submit(self, *arguments):
        return None


class GivingNonsense:
    def submit(self, *arguments):
        future = Future()
        future.set_result("neither")
        return future


class GivingFailures:
    def submit(self, *arguments):
        future = Future()
        future.set_exception(Raised("lost\nit"))
        return future


class ShowingNothing:
    update = None


class ShowingErrors:
    update = raises


def shut_down():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


def itself():
    data = []
    data.append(data)
    return data


def deep(depth=3000):
    data = []
    for _ in range(depth):
        data = [data]
    return data


TEXTS = ["", "x", "nan", "inf", "1e400", "\ud800", "a\x1b[2J\rb", "a\nb", "a\0b", "∂x/∂t", "x" * 5000, "../x"]
NUMBERS = [
    0,
    -1,
    1,
    3,
    True,
    False,
    10**9,
    -(10**9),
    10**18,
    2**63,
    -(2**63),
    10**30,
    10**400,
    0.5,
    -0.5,
    0.0,
    -0.0,
    1e-300,
    5e-324,
    1e16,
    1e99,
    1e101,
    1e154,
    1e200,
    1e306,
    1e308,
    -1e308,
    math.nan,
    math.inf,
    -math.inf,
    1j,
    np.float32(0.1),
    np.int8(-3),
    np.uint64(2**63),
    np.bool_(True),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
]
ARRAYS = [
    np.empty(0),
    np.empty((0, 2)),
    np.empty((2, 0)),
    np.zeros(1),
    np.zeros(2),
    np.zeros(3),
    np.zeros((2, 2)),
    np.zeros((3, 3)),
    np.zeros((2, 3, 4)),
    np.array(2.0),
    np.array([[1.0]]),
    np.array(None, dtype=object),
    np.array([object(), None], dtype=object),
    np.array([1.0, None, 3.0], dtype=object),
    np.array(["a", "b"]),
    np.array([b"a", b"b"]),
    np.array([np.nan, 1.0]),
    np.array([np.inf, 1.0, 2.0]),
    np.array([1j, 2j]),
    np.full(2, 1e308),
    np.full(3, 1e16),
    np.full((2, 2), 1e200),
    np.array(["2020-01-01"], dtype="datetime64[s]"),
    np.zeros(2, dtype=[("a", float), ("b", int)]),
    np.ma.masked_array([1.0, 2.0], mask=[True, False]),
]
THINGS = [
    lambda: None,
    lambda: ...,
    lambda: NotImplemented,
    object,
    lambda: object,
    lambda: int,
    Rude,
    Lying,
    Chatty,
    lambda: b"bytes",
    lambda: b"\xff\xfe",
    lambda: bytearray(b"x"),
    lambda: [],
    lambda: [None],
    lambda: [[]],
    lambda: [[1.0, 2.0], [3.0]],
    lambda: [1.0, [2.0]],
    lambda: [1.0, "a"],
    lambda: ["a", "b"],
    lambda: [10**400, 1],
    lambda: [1e16] * 2,
    lambda: [1e306, -1e306],
    lambda: [math.nan, 0.0],
    itself,
    deep,
    lambda: (),
    lambda: (1,),
    lambda: (1.0, 2.0),
    lambda: (2.0, 1.0),
    lambda: {},
    lambda: {"a": 1},
    lambda: {1: 2},
    lambda: {"type": "Settings"},
    lambda: {None: None},
    lambda: {1.0, 2.0},
    lambda: range(3),
    lambda: range(10**12),
    lambda: (i for i in range(2)),
    lambda: iter([1.0, 2.0]),
    lambda: slice(1),
    lambda: memoryview(b"abc"),
    lambda: Exception("two\nlines"),
    lambda: raises,
    lambda: leaves,
    lambda: abs,
    lambda: lambda: 1.0,
    lambda: lambda x: None,
    lambda: lambda x: "high",
    lambda: lambda x: math.nan,
    lambda: lambda x: [1.0, 2.0],
    lambda: lambda x: np.ones(3),
    lambda: lambda x: Rude(),
    lambda: lambda x: 1e300,
    Refusing,
    GivingNothing,
    GivingNonsense,
    GivingFailures,
    ShowingNothing,
    ShowingErrors,
    shut_down,
]
EVERYTHING = [
    *((lambda text=text: text) for text in TEXTS),
    *((lambda number=number: number) for number in NUMBERS),
    *(array.copy for array in ARRAYS),
    *THINGS,
]


def hostile(rng):
    """Any of them, made anew."""
    return EVERYTHING[rng.integers(len(EVERYTHING))]()


def bent(value, rng, depth=0):
    """A right argument with something wrong in one place of it; or something else altogether."""
    if depth > 6 or not value_has_parts(value) or rng.random() < 0.3:
        return hostile(rng)
    if isinstance(value, dict):
        key = list(value)[rng.integers(len(value))]
        how = rng.random()
        if how < 0.2:
            return {name: part for name, part in value.items() if name != key}
        if how < 0.3:
            return {**value, "more": hostile(rng)}
        return {**value, key: bent(value[key], rng, depth + 1)}
    parts = list(value)
    i, how = rng.integers(len(parts)), rng.random()
    if how < 0.2:
        del parts[i]
    elif how < 0.3:
        parts.insert(i, hostile(rng))
    else:
        parts[i] = bent(parts[i], rng, depth + 1)
    return parts if isinstance(value, (list, np.ndarray)) else tuple(parts)


def value_has_parts(value):
    if isinstance(value, np.ndarray):
        return value.size > 0 and value.ndim > 0
    return isinstance(value, (list, tuple, dict)) and len(value) > 0
