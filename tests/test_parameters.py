import json
import math

import numpy as np
import pytest

from gibo import InputError
from gibo.parameters import SHARE, Parameter, Parameters, free, integer, linear, log

EACH = [
    linear(-1e6, 1e6),
    linear(0.1, 0.3, start=0.3, scale=0.5),
    log(1e-6, 1e6, start=7.3),
    log(0.1, 0.3, scale=1.01),
    integer(-1000, 999),
    integer(1, 2, start=2),
    integer(1, 1000, log=True),
    integer(3, 900, start=77, log=True),
    free(0.1, 1e-6),
    free(-1e6, 3.0),
]
ALL = Parameters(**{f"p{i}": p for i, p in enumerate(EACH)})


@pytest.mark.parametrize("share", [-0.5, 0.0, 0.1, 1 / 3, 0.5, 0.987, 1.0, 1.5])
def test_a_vector_becomes_values_that_lead_back_to_where_they_are_evaluated(share):
    ranges = [(p.inner_start, p.inner_scale) if p.kind == "free" else (p.inner_lower, p.inner_upper) for p in EACH]
    x = np.array([low + share * (high - low) for low, high in ranges])
    values, once = ALL.to_values(x), ALL.rounded(x)
    for name, value in values.items():
        assert type(value) is (int if ALL[name].kind == "integer" else float)
    np.testing.assert_allclose(ALL.to_vector(values), once, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(ALL.rounded(once), once)
    assert (ALL.bounds.lb <= once).all()
    assert (once <= ALL.bounds.ub).all()


def test_the_ends_and_the_start_are_exact():
    assert ALL.to_values(ALL.x0) == {name: ALL[name].start for name in ALL}
    for p in EACH[:-2]:
        assert (p.value(p.inner_lower), p.value(p.inner_upper)) == (p.lower, p.upper)


def test_saved_and_loaded_they_are_the_same():
    assert Parameters.from_plain(json.loads(json.dumps(ALL.to_plain()))) == ALL


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
