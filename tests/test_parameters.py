import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibo import InputError
from gibo.parameters import SHARE, Parameter, Parameters, free, integer, linear, log

REALS = st.floats(-1e6, 1e6)
POSITIVE = st.floats(1e-6, 1e6)
WHOLE = st.integers(-1000, 1000)


@st.composite
def single(draw):
    """Any parameter, with a start of its own or without."""
    kind = draw(st.sampled_from(["linear", "log", "integer", "log integer", "free"]))
    if kind == "free":
        return free(draw(REALS), draw(POSITIVE))
    if kind == "linear":
        low, high = sorted(draw(st.tuples(REALS, REALS).filter(lambda pair: abs(pair[0] - pair[1]) > 1e-9)))
        start = draw(st.none() | st.floats(low, high))
        return linear(low, high, start=start, scale=draw(st.none() | POSITIVE))
    if kind == "log":
        low, high = sorted(draw(st.tuples(POSITIVE, POSITIVE).filter(lambda pair: max(pair) / min(pair) > 1.001)))
        # One next to an end may have its logarithm, and then they are one entry of the vector.
        ends = {math.log(low), math.log(high)}
        apart = st.floats(low, high).filter(lambda start: start in (low, high) or math.log(start) not in ends)
        start = draw(st.none() | apart)
        return log(low, high, start=start, scale=draw(st.none() | st.floats(1.01, 100.0)))
    numbers = WHOLE if kind == "integer" else st.integers(1, 1000)
    low, high = sorted(draw(st.tuples(numbers, numbers).filter(lambda pair: pair[0] != pair[1])))
    return integer(low, high, start=draw(st.none() | st.integers(low, high)), log=kind == "log integer")


MANY = st.lists(single(), min_size=1, max_size=4).map(
    lambda each: Parameters(**{f"p{i}": p for i, p in enumerate(each)})
)


@st.composite
def with_a_vector(draw):
    parameters = draw(MANY)
    shares = draw(st.lists(st.floats(-0.5, 1.5), min_size=parameters.d, max_size=parameters.d))
    x = [
        p.inner_start + share * p.inner_scale
        if p.kind == "free"
        else p.inner_lower + share * (p.inner_upper - p.inner_lower)
        for p, share in zip(parameters.entries.values(), shares, strict=True)
    ]
    return parameters, np.array(x)


# -- round trips ------------------------------------------------------------------------------------------------------


@given(with_a_vector())
def test_a_vector_becomes_values_that_lead_back_to_where_they_are_evaluated(case):
    parameters, x = case
    values = parameters.to_values(x)
    for name, value in values.items():
        assert type(value) is (int if parameters[name].kind == "integer" else float)
    np.testing.assert_allclose(parameters.to_vector(values), parameters.rounded(x), rtol=1e-12, atol=1e-12)


@given(with_a_vector())
def test_rounding_twice_is_rounding_once_and_stays_within_the_bounds(case):
    parameters, x = case
    once = parameters.rounded(x)
    np.testing.assert_array_equal(parameters.rounded(once), once)
    if parameters.bounds is not None:
        assert (parameters.bounds.lb <= once).all()
        assert (once <= parameters.bounds.ub).all()


@given(MANY)
def test_the_ends_and_the_start_are_exact(parameters):
    assert parameters.to_values(parameters.x0) == {name: parameters[name].start for name in parameters}
    for name in ("lower", "upper"):
        side = [getattr(p, f"inner_{name}") for p in parameters.entries.values()]
        if all(map(math.isfinite, side)):
            assert parameters.to_values(side) == {each: getattr(parameters[each], name) for each in parameters}


@given(MANY)
def test_saved_and_loaded_they_are_the_same(parameters):
    assert Parameters.from_plain(json.loads(json.dumps(parameters.to_plain()))) == parameters


# -- what they mean ---------------------------------------------------------------------------------------------------


def test_without_a_scale_it_is_a_share_of_the_range_but_at_least_one_step():
    parameters = Parameters(
        a=linear(0, 3), b=log(1, 100), c=integer(0, 1000), d=integer(1, 9), e=integer(1, 9, log=True)
    )
    expected = [SHARE * 3, SHARE * math.log(100), SHARE * 1000, 1.0, math.log(4 / 3)]
    np.testing.assert_allclose(parameters.scale, expected)


def test_a_scale_is_in_the_users_unit_or_a_factor():
    parameters = Parameters(a=linear(0, 3, scale=0.5), b=log(1, 100, scale=2), c=free(1, 0.25))
    np.testing.assert_allclose(parameters.scale, [0.5, math.log(2.0), 0.25])


def test_bounds_are_infinite_where_there_are_none():
    bounds = Parameters(a=log(1, math.e), b=free(0, 1)).bounds
    np.testing.assert_allclose(bounds.lb, [0.0, -np.inf])
    np.testing.assert_allclose(bounds.ub, [1.0, np.inf])
    assert Parameters(b=free(0, 1)).bounds is None


def test_whole_numbers_are_rounded_to_the_nearest():
    parameters = Parameters(n=integer(1, 9), m=integer(1, 1000, log=True))
    assert parameters.to_values([3.6, math.log(99.7)]) == {"n": 4, "m": 100}
    np.testing.assert_allclose(parameters.rounded([3.6, math.log(99.7)]), [4.0, math.log(100)])
    assert parameters.to_values([-7.0, 99.0]) == {"n": 1, "m": 1000}


# -- files ------------------------------------------------------------------------------------------------------------


def test_read_from_toml(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(
        '[parameters.gain]\nkind = "log"\nlower = 0.1\nupper = 100\nstart = 1\n'
        '[parameters.delay]\nkind = "integer"\nlower = 1\nupper = 9\n'
        '[parameters.rate]\nkind = "integer"\nlower = 1\nupper = 900\nlog = true\n'
        '[parameters.offset]\nkind = "free"\nstart = 0\nscale = 0.1\n'
    )
    assert Parameters.from_toml(path) == Parameters(
        gain=log(0.1, 100, start=1), delay=integer(1, 9), rate=integer(1, 900, log=True), offset=free(0, 0.1)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ('kind = "linear"\nlower = 0\nuppr = 1\n', "expected one of .*'upper'.*, got 'uppr'"),
        ('kind = "linear"\nlower = 0\nupper = 1\nwhen = "mode == 1"\n', "conditional .* parameters are not supported"),
        ('kind = "choice"\n', "got 'choice'"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path, text, message):
    path = tmp_path / "space.toml"
    if text is not None:
        path.write_text(f"[parameters.gain]\n{text}")
    with pytest.raises(InputError, match=message) as caught:
        Parameters.from_toml(path)
    assert str(path) in str(caught.value)


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear(1, 1), "set a fixed parameter in your objective"),
        (lambda: linear(2, 1), "lower below upper"),
        (lambda: linear(0, math.inf), "expected a finite number"),
        (lambda: linear(-1e308, 1e308), "too far apart"),
        (lambda: log(0, 1), "positive low"),
        (lambda: log(1e300, np.nextafter(1e300, np.inf)), "too close"),
        (lambda: integer(0, 9, log=True), "positive low"),
        (lambda: integer(0.5, 9), "whole number"),
        (lambda: linear(0, 1, start=2), "start: expected a value within"),
        (lambda: log(1, 10, scale=0.5), "above 1, a factor on the log scale"),
        (lambda: free(0, None), "start and a scale"),
        (lambda: Parameter("linear", 0, 1, log=True), "no log scale"),
        (lambda: Parameters(a=3.0), "expected linear"),
        (lambda: Parameters(**{"lambda": linear(0, 1)}), "valid name of a Python"),
        (lambda: Parameters(seed=linear(0, 1)), "choose another name"),
        (lambda: Parameters(gain=linear(0, 1)).to_vector({"gian": 1.0}), "expected one of 'gain', got 'gian'"),
        (lambda: Parameters(a=linear(0, 1), b=linear(0, 1)).to_vector({"a": 1.0}), "missing: b"),
        (lambda: Parameters(a=linear(0, 1)).to_vector({"a": 2.0}), "a: value: expected one within"),
    ],
)
def test_what_cannot_be_searched_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
