from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import Bounds

from gibo._checks import as_bounds, as_finite, as_number, as_points, as_vector, natural, positive, positive_int
from gibo.errors import InputError, printable

# -- bounds -----------------------------------------------------------------------------------------------------------


INF = np.inf
THREE = ([-1, -1, -1], [2, 2, 2])


@pytest.mark.parametrize(
    ("d", "bounds", "expected"),
    [
        *((3, bounds, THREE) for bounds in ((-1, 2), np.array([-1.0, 2.0]), THREE, np.array(THREE), [(-1, 2)] * 3)),
        *((3, bounds, THREE) for bounds in ((-1, [2, 2, 2]), (np.full(3, -1.0), 2), Bounds(-1, 2))),
        (3, [(0, 1), (2, 3), (4, 5)], ([0, 2, 4], [1, 3, 5])),
        (3, ([0, 2, 4], [1, 3, 5]), ([0, 2, 4], [1, 3, 5])),
        (3, (-INF, [1.0, INF, 3.0]), ([-INF] * 3, [1, INF, 3])),
        (3, [(0, None), (None, 3), (1, 2)], ([0, -INF, 1], [INF, 3, 2])),
        (3, [["-inf", 1.0], [0.0, "inf"], [0.0, 1.0]], ([-INF, 0, 0], [1, INF, 1])),  # as saved data have them
        *((1, bounds, ([0], [1])) for bounds in ((0, 1), [(0, 1)], ([0], [1]), (0, [1]))),
        # With two parameters a pair of pairs has two readings: one that makes sense is taken, Bounds has only one.
        (2, ([0, 0], [1, 1]), ([0, 0], [1, 1])),
        (2, [(0, 1), (0, 1)], ([0, 0], [1, 1])),
        (2, ([0, 1], [1, 2]), ([0, 1], [1, 2])),
        (2, Bounds([0, 2], [1, 3]), ([0, 2], [1, 3])),
    ],
    ids=repr,
)
def test_bounds_may_be_numbers_vectors_or_pairs(d, bounds, expected):
    lower, upper = as_bounds(bounds, d)
    assert lower.dtype == upper.dtype == np.float64
    assert (lower.tolist(), upper.tolist()) == expected
    lower[0] = 7.0  # a copy
    assert as_bounds(bounds, d)[0].tolist() == expected[0]


def test_bounds_that_can_be_read_both_ways_are_refused():
    assert as_bounds(None, 4) is None
    with pytest.raises(InputError, match=r"Bounds\(lower, upper\)"):
        as_bounds([(0, 1), (2, 3)], 2)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1), (0, 1), (1.0, 0.5)], "dimension 2 has 1.0 and 0.5"),
        (([0, 3, 0], [1, 2, 1]), "dimension 1 has 3.0 and 2.0"),
        ((1, 1), "lower must be below upper"),
        ((0, np.nan), "NaN"),
        ([0, 1, 2], r"or 3 pairs, got list \[0, 1, 2\]"),
        ([(0, 1), (0, 1)], r"got shapes \(2,\) and \(2,\)"),
        ([[0, 1, 2]] * 3, r"got list \[\[0, 1, 2\]"),
        (1.0, r"got float 1\.0"),
        ("wide", r"expected \(lower, upper\)"),
        ((0, "one"), "expected .*one"),
        ((0, [1, 2]), "expected"),
        ({"lower": 0}, "expected"),
    ],
)
def test_bad_bounds_say_what_came(bounds, message):
    with pytest.raises(InputError, match=f"bounds: .*{message}"):
        as_bounds(bounds, 3)


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2, Fraction(2), np.float32(2), np.int8(2), np.array(2.0), np.array([2])])
def test_as_number_takes_real_numbers_and_arrays_of_one(value):
    number = as_number("value", value)
    assert (type(number), number) == (float, 2.0)
    assert np.isnan(as_number("value", np.nan))  # a failed evaluation is the caller's to judge


def test_numbers_in_their_range():
    assert positive("scale", np.float32(0.5)) == 0.5
    assert positive("scale", 0, or_zero=True) == 0.0
    number = positive_int("budget", np.uint8(7))
    assert (type(number), number) == (int, 7)


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (as_number, ["2", None, [2.0], np.array([1.0, 2.0]), np.array(["2"]), 2j, np.array([2j]), object()]),
        (positive, [0.0, -1.0, np.nan, np.inf, "1", None]),
        (positive_int, [0, -3, 1.0, True, "3", None, np.float64(3), np.array(3)]),
        (natural, [-1, 1.5, "x", None, True, 1 << 128]),
    ],
)
def test_other_things_are_rejected_by_name(check, bad):
    for value in bad:
        with pytest.raises(InputError, match=r"^number: expected a"):
            check("number", value)


# -- arrays -----------------------------------------------------------------------------------------------------------


def test_arrays_are_float64_copies():
    given = np.zeros((2, 3))
    array = as_points("X", given, 3)
    array[0, 0] = 1.0
    assert given[0, 0] == 0.0
    assert as_vector("x", [1, 2]).dtype == np.float64
    assert as_finite("m", 3, ndim=0).shape == ()


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: as_finite("X", [1.0, 2.0], ndim=2), r"X: expected a matrix of points, .*, got shape \(2,\)"),
        (lambda: as_finite("x", 1.0, ndim=1), r"x: expected a vector, shape \(d,\), got shape \(\)"),
        (lambda: as_finite("m", [1.0], ndim=0), r"m: expected a number, got shape \(1,\)"),
        (lambda: as_finite("m", np.inf, ndim=0), "m: expected finite numbers, got inf$"),
        (lambda: as_finite("X", [[0.0, 1.0], [np.nan, 1.0]], ndim=2), "got nan at index 1, 0"),
        (lambda: as_finite("X", [[1.0], [1.0, 2.0]], ndim=2), "X: expected numbers"),
        (lambda: as_finite("X", np.array([1.0 + 1.0j])), "X: expected numbers"),
        (lambda: as_finite("X", None), "X: expected numbers, got None"),
        (lambda: as_points("X", np.zeros((4, 2)), 3), "X: expected points of 3 dimensions, got 2"),
        (lambda: as_vector("x", []), "x: expected a vector of one or more numbers, got 0"),
        (lambda: as_vector("x", [1.0, 2.0], 3), "x: expected a vector of 3 numbers, got 2"),
    ],
)
def test_bad_arrays_say_what_was_expected_and_what_came(check, message):
    with pytest.raises(InputError, match=message):
        check()


def test_a_terminal_obeys_nothing_that_is_printable():
    assert printable("naïve Ω = 3 µm") == "naïve Ω = 3 µm"
    assert printable("a\x1b[2J\x07\x9b\u202e\ud800") == "a\\x1b[2J\\x07\\x9b\\u202e\\ud800"
    assert printable("a\tb\nc\r") == "a\\tb\\nc\\r"
    assert printable("a\tb\nc\r", lines=True) == "a\tb\nc\\r"
