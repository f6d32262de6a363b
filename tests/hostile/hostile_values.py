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


class Submitting:
    """An executor that gives something else than futures of values."""

    def __init__(self, given):
        self.given = given

    def submit(self, *arguments):
        future = Future()
        if self.given == "refusal":
            raise Raised("closed")
        if self.given == "failure":
            future.set_exception(Raised("lost\nit"))
        else:
            future.set_result("neither")
        return future if self.given is not None else None


class Showing:
    """A progress object whose update is none, or raises."""

    def __init__(self, update):
        self.update = update


def shut_down():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


def itself():
    data = []
    data.append(data)
    return data


def deep():
    data = []
    for _ in range(3000):
        data = [data]
    return data


TEXTS = ["", "x", "nan", "inf", "1e400", "\ud800", "a\x1b[2J\rb", "a\nb", "a\0b", "∂x/∂t", "x" * 5000, "../x"]
WHOLE = [0, -1, 1, 3, True, False, 10**9, -(10**9), 10**18, 2**63, -(2**63), 10**30, 10**400]
SMALL = [0.5, -0.5, 0.0, -0.0, 1e-300, 5e-324]
LARGE = [1e16, 1e99, 1e101, 1e154, 1e200, 1e306, 1e308, -1e308, math.nan, math.inf, -math.inf]
OF_NUMPY = [np.float32(0.1), np.int8(-3), np.uint64(2**63), np.bool_(True), np.datetime64("2020-01-01")]
CONSTANTS = [*TEXTS, *WHOLE, *SMALL, *LARGE, *OF_NUMPY, np.timedelta64(3, "s"), 1j, None, ..., NotImplemented]
SHAPES = [0, (0, 2), (2, 0), 1, 2, 3, (2, 2), (3, 3), (2, 3, 4)]
ARRAYS = [
    *(np.zeros(shape) for shape in SHAPES),
    *(np.array(numbers) for numbers in (2.0, [[1.0]], [np.nan, 1.0], [np.inf, 1.0, 2.0], [1j, 2j], ["a", "b"])),
    *(np.array(things, dtype=object) for things in (None, [object(), None], [1.0, None, 3.0])),
    *(np.full(shape, size) for shape, size in ((2, 1e308), (3, 1e16), ((2, 2), 1e200))),
    np.array([b"a", b"b"]),
    np.array(["2020-01-01"], dtype="datetime64[s]"),
    np.zeros(2, dtype=[("a", float), ("b", int)]),
    np.ma.masked_array([1.0, 2.0], mask=[True, False]),
]
BYTES = [b"bytes", b"\xff\xfe", bytearray(b"x"), memoryview(b"abc")]
LISTS = [[], [None], [[]], [[1.0, 2.0], [3.0]], [1.0, [2.0]], [1.0, "a"], ["a", "b"], [10**400, 1], [1e16] * 2]
LISTS += [[1e306, -1e306], [math.nan, 0.0], (), (1,), (1.0, 2.0), (2.0, 1.0), {1.0, 2.0}]
LISTS += [{}, {"a": 1}, {1: 2}, {"type": "Settings"}, {None: None}]
CALLABLE = [raises, leaves, abs, int, object, lambda: 1.0]
RETURNED = [None, "high", math.nan, [1.0, 2.0], np.ones(3), Rude(), 1e300]
OTHERS = [range(3), range(10**12), slice(1), Exception("two\nlines")]
# Each of these makes one anew.
MAKERS = [Rude, Lying, Chatty, object, itself, deep, shut_down, lambda: (i for i in range(2)), lambda: iter([1.0, 2.0])]
MAKERS += [lambda given=given: Submitting(given) for given in ("refusal", None, "nonsense", "failure")]
MAKERS += [lambda update=update: Showing(update) for update in (None, raises)]
MAKERS += [lambda array=array: array.copy() for array in ARRAYS]
MAKERS += [lambda given=given: given.copy() if isinstance(given, (list, dict, set)) else given for given in LISTS]
MAKERS += [lambda given=given: given for given in [*CONSTANTS, *BYTES, *CALLABLE, *OTHERS]]
MAKERS += [lambda given=given: lambda x: given for given in RETURNED]


def hostile(rng):
    """Any of them, made anew."""
    return MAKERS[rng.integers(len(MAKERS))]()


def bent(value, rng, depth=0):
    """A right argument with something wrong in one place of it; or something else altogether."""
    if depth > 6 or not has_parts(value) or rng.random() < 0.3:
        return hostile(rng)
    parts = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    key, how = list(parts)[rng.integers(len(parts))], rng.random()
    if how < 0.2:
        del parts[key]
    elif how < 0.3:
        parts["more"] = hostile(rng)
    else:
        parts[key] = bent(parts[key], rng, depth + 1)
    kind = tuple if isinstance(value, tuple) else list
    return parts if isinstance(value, dict) else kind(parts.values())


def has_parts(value):
    if isinstance(value, np.ndarray):
        return value.size > 0 and value.ndim > 0
    return isinstance(value, (list, tuple, dict)) and len(value) > 0
