"""What a page draws of a model: slices, importance and contours, in the user's units, against the model itself."""

import json

import numpy as np
import pytest

import gibo
from gibo.parameters import Parameters, free, integer, linear, log
from gibo.runs.spec import Naming
from gibo.runs.views import MOST_SLICES, model_view, views_of

PARAMETERS = Parameters(kp=log(0.1, 10), delay=integer(1, 9), angle=linear(-1, 1), offset=free(0.0, 0.5))


def told(sign=1.0, parameters=PARAMETERS, count=40, **settings):
    naming = Naming(list(parameters), parameters)
    optimizer = gibo.GIBO(parameters.x0, scale=parameters.scale, bounds=parameters.bounds, **settings)
    optimizer.rounding = naming.rounding
    rng = np.random.default_rng(0)
    while len(optimizer.evaluations) < count:
        for query in optimizer.ask():
            kp, delay, angle, offset = naming(query.x).values()
            value = -((np.log(kp) - 0.5) ** 2) - 0.1 * (delay - 4) ** 2 - 3.0 * angle**2 - 0.01 * offset**2
            optimizer.tell(query, value + 0.02 * rng.standard_normal())
    return model_view(optimizer, sign, naming), optimizer, naming


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_slice_is_the_model_through_the_recommended_point(sign):
    view, optimizer, naming = told(sign)
    point, model = dict(zip(naming.names, view["point"], strict=True)), optimizer.model()
    assert point == naming(optimizer.best.x)
    for each in view["slices"]:
        name = naming.names[each["parameter"]]
        X = np.array([PARAMETERS.to_vector({**point, name: at}) for at in each["at"]])
        assert each["mean"] == pytest.approx(sign * model.mean(X), rel=1e-3, abs=1e-3)
        bounds = [model.units.mean(model.lower_bound(X, by), model.gp.noise, model.seen) for by in (1.6449, -1.6449)]
        ends = np.sort(sign * np.array(bounds), axis=0)
        assert np.allclose([each["low"], each["high"]], ends, rtol=1e-3, atol=1e-3)
    by_name = {naming.names[each["parameter"]]: each["at"] for each in view["slices"]}
    assert by_name["delay"] == list(range(1, 10))
    assert (by_name["kp"][0], by_name["kp"][-1]) == (0.1, 10.0)


def test_importance_is_a_change_with_the_deviation_that_the_posterior_gives_it():
    view, optimizer, naming = told()
    model, x, scale = optimizer.model(), optimizer.best.x, optimizer.scale
    changes = {naming.names[each["parameter"]]: abs(each["range"]["change"]) for each in view["slices"]}
    assert list(changes)[-1] == "offset"
    assert sorted(changes.values(), reverse=True) == list(changes.values())
    angle = next(each for each in view["slices"] if naming.names[each["parameter"]] == "angle")
    ends = x + np.array([[-1.0], [1.0]]) * scale * (np.array(naming.names) == "angle")
    far = max(ends, key=lambda end: abs(model.mean(end[None])[0] - model.mean(x[None])[0]))
    assert angle["scale"]["change"] == pytest.approx(float(np.diff(model.mean(np.array([x, far])))[0]), rel=1e-3)
    # Var(f(a) - f(b)) by brute force: the covariance of f(b) from how much a value at b narrows f(a).
    Z, gp = np.array([far, x]) / model.scale, model.gp
    K = gp.kernel.k(Z, Z) - gp.cross(Z).T @ np.linalg.solve(
        gp.kernel.k(gp.observations.X, gp.observations.X) + gp.noise * np.eye(gp.n), gp.cross(Z)
    )
    u = np.asarray(gp.predict(Z).mean)
    slope = abs(angle["scale"]["change"] / (u[0] - u[1]))
    deviation = np.sqrt(K[0, 0] + K[1, 1] - 2.0 * K[0, 1])
    assert angle["scale"]["deviation"] == pytest.approx(slope * deviation, rel=0.02)


def test_a_contour_is_the_model_over_two_parameters():
    view, optimizer, naming = told()
    assert len(view["contours"]) == 6
    point = dict(zip(naming.names, view["point"], strict=True))
    for each in view["contours"]:
        (one, other), (at, across) = ([naming.names[i] for i in each["parameters"]], each["at"])
        X = [PARAMETERS.to_vector({**point, one: at[2], other: entry}) for entry in across]
        assert each["mean"][2] == pytest.approx(optimizer.model().mean(np.array(X)), rel=1e-3, abs=1e-3)


def test_many_parameters_have_views_of_bounded_size():
    optimizer = gibo.GIBO(np.zeros(100), scale=0.1)
    while len(optimizer.evaluations) < 60:
        for query in optimizer.ask():
            optimizer.tell(query, -float(((query.x - 0.1)[:3] ** 2).sum()))
    view = views_of(optimizer, 1.0, Naming([f"x{i}" for i in range(100)]))
    assert len(view["model"]["slices"]) == MOST_SLICES
    assert len(json.dumps(view, allow_nan=False)) < 200_000
    assert view["believed"]["best"]["x"] == optimizer.best.x.tolist()


def test_an_optimiser_without_a_model_has_no_picture_of_one():
    optimizer = gibo.RandomSearch(np.zeros(2))
    assert views_of(optimizer, 1.0, Naming(["a", "b"])) == {}
    while len(optimizer.evaluations) < 10:
        for query in optimizer.ask():
            optimizer.tell(query, float(query.x.sum()))
    assert list(views_of(optimizer, 1.0, Naming(["a", "b"]))) == ["believed"]
