"""Everything public, each with a right call of it. A new public name is one more entry; a test says what is missing.

Left out is what takes an ``Array``, a float64 array of the right shape, and checks nothing because inner loops call it:
the matrices and derivatives of kernels, the densities of priors.
"""

import functools
import inspect
import itertools
import json
import shutil
from typing import Any, NamedTuple

import numpy as np

import gibo
import gibo.figures
import gibo.integrations.scipy
from gibo import GIBO, GaussianProcess, GradientInformation, Outcome, Settings, SquaredExponential, priors, steps
from gibo._serialize import to_plain
from gibo.acquisition.expected_improvement import LogExpectedImprovement
from gibo.acquisition.information import plan
from gibo.integrations.optuna import GIBOSampler
from gibo.integrations.tensorboard import TensorBoard
from gibo.map_fit import Fit
from gibo.parameters import Parameter, Parameters, free, integer, linear, log
from gibo.policies import (
    MLP,
    Affine,
    Architecture,
    ContinuousActions,
    DiscreteActions,
    Linear,
    Normalization,
    Policy,
    Reexpression,
    Statistics,
    Task,
    architecture,
    export,
    load_policy,
    reexpress,
    rollout,
)
from gibo.runs import manual
from gibo.runs.description import Description, read_description
from gibo.runs.journal import Journal
from gibo.runs.spec import RunSpec
from gibo.training.training import Training, last_episode, read_trial, train
from gibo.web.snapshot import Since, snapshot
from gibo.web.watch import report

D = 3
X0 = [0.1, -0.2, 0.4]
X, Y = [[0.0, 0.0, 0.1], [0.5, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.1, 0.9]], [0.0, 0.9, 1.0, 0.4]
SETTINGS = Settings(lengthscale=1.0, variance=1.0, noise=0.01, M=2, N_m=8)
GP = GaussianProcess(SquaredExponential(0.5), 0.01).condition(X, Y)
GI = GradientInformation(GP, X0)
PRIORS = {"lengthscale": priors.LogNormal(1.0, 0.5), "noise": priors.Uniform(1e-4, 1.0)}
IDENTITY, OTHER = Normalization([0.0] * 2, [1.0] * 2), Normalization([0.0, 1.0], [1.0, 1.0])
POLICY = Policy(Affine(2, 1), [1.0, 2.0, -0.5], DiscreteActions(2))
CONTINUOUS = Policy(MLP(2, 1, (3,)), [0.1] * 13, ContinuousActions([-1.0], [1.0]), IDENTITY)
PARAMETERS = Parameters(gain=log(0.1, 100.0), delay=integer(1, 9), angle=linear(-1.0, 1.0))
STATISTICS = Statistics.of([[0.0, 1.0], [1.0, 2.0], [0.5, 0.5]])
COUNT = itertools.count()


class Call(NamedTuple):
    """A right call: what is called, with which arguments; and what a user would do with what it returns."""

    name: str
    function: Any
    arguments: dict[str, Any]
    use: Any


class In(NamedTuple):
    """What is made anew for each call, in a folder."""

    make: Any


def real(value, folder):
    return value.make(folder) if isinstance(value, In) else value


def call(function, use=None, with_defaults=False, **arguments):
    """A maker of this call; with the defaults of the arguments that are not named, or without them."""

    def made(folder):
        called = real(function, folder)
        given = {name: real(value, folder) for name, value in arguments.items()}
        if with_defaults:
            parameters = inspect.signature(called).parameters.values()
            given = {each.name: each.default for each in parameters if each.default is not each.empty} | given
        return Call(getattr(called, "__qualname__", type(called).__name__), called, given, use or used)

    return made


full = functools.partial(call, with_defaults=True)


# -- what a user does next --------------------------------------------------------------------------------------------


def hill(x, seed=0):
    return -float(((np.asarray(x) - 0.3) ** 2).sum())


def drive(optimizer):
    """A batch or two, and all that can be asked then."""
    for _ in range(2):
        queries = optimizer.ask()
        for query in queries[:6]:
            optimizer.tell(query, hill(query.x))
        for query in queries[6:]:
            optimizer.tell(query, failed=True)
    queries = optimizer.ask()
    again = type(optimizer).from_state(json.loads(json.dumps(optimizer.state())))
    seen = [optimizer.best, optimizer.best_seen, optimizer.iterate, optimizer.jacobian(), again.best]
    return [*seen, *(query.x for query in queries)]


def predict(gp):
    at = np.zeros(D) if gp.observations is None else np.zeros(gp.observations.X.shape[1])
    found = [gp.predict(at), gp.predict(at[None]), gp.jacobian(at)]
    return [*found, gp.log_likelihood] if gp.n else found


def tell_outcome(outcome):
    optimizer, query = told()
    optimizer.tell(query, outcome)
    return optimizer.best, optimizer.jacobian()


def read_all(journal):
    with journal:
        return [journal.spec(), journal.starts(), journal.evaluations(), journal.queries(), journal.events()]


def sample(sampler):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler, direction="minimize")
    study.optimize(lambda trial: trial.suggest_float("a", 0.0, 1.0) ** 2, n_trials=4)
    return study.best_value


def prepare(training):
    with training.task() as task:
        return [training.optimizer(task, 0).iterate, training.to_plain()["environment"]]


def play(task):
    with task:
        return [task.x0(), task(task.x0(), seed=1)]


USES = {
    gibo.Kernel: lambda k: [k.k(np.zeros((1, D)), np.ones((2, D))), k.dk_da(np.zeros((1, D)), np.ones((2, D)))],
    GaussianProcess: predict,
    Fit: lambda fit: predict(fit.gp),
    priors.SharedLogNormal: lambda p: [p.mean, p.support],
    priors.Prior: lambda p: p.mean,
    steps.Schedule: lambda s: s(2),
    steps.StepRule: lambda s: s.update(np.ones(2), s.init(2)),
    GradientInformation: lambda gi: [gi(X0), gi.value_and_gradient(X0)],
    LogExpectedImprovement: lambda ei: ei(X0),
    gibo.Optimizer: drive,
    Settings: lambda settings: drive(GIBO(X0, settings=settings)),
    Outcome: tell_outcome,
    gibo.Result: lambda r: [str(r), r.x, len(r.history), r.failures, r.warnings, r.jacobian],
    Journal: read_all,
    Description: lambda description: drive(description.optimizer()),
    Parameter: lambda p: [p.inner_start, p.inner_scale, p.value(0.3)],
    Parameters: lambda p: [p.x0, p.scale, p.bounds],
    Architecture: lambda network: network.initial(0),
    Policy: lambda p: [p([0.3, -0.2]), p.to_plain(), Policy.from_plain(json.loads(json.dumps(p.to_plain())))],
    Normalization: lambda normalization: normalization([0.0, 1.0]),
    Statistics: lambda statistics: statistics.normalization,
    Reexpression: lambda reexpression: reexpression.parameters([1.0, 2.0, 3.0]),
    Task: play,
    Training: prepare,
    GIBOSampler: sample,
    TensorBoard: lambda board: board.close(),
}


def used(result):
    """What a user does with it, by its kind."""
    return next((use(result) for kind, use in USES.items() if isinstance(result, kind)), result)


# -- optimisers, files, environments ----------------------------------------------------------------------------------


def told(folder=None):
    """An optimiser with a batch of which one is told, and the next query."""
    optimizer = GIBO(X0, scale=0.3, settings=SETTINGS)
    first, second, *_ = optimizer.ask()
    optimizer.tell(first, 0.5)
    return optimizer, second


def tell(folder):
    optimizer, pending = told()

    def tell(query, **outcome):
        optimizer.tell(pending if isinstance(query, str) and query == "the next" else query, **outcome)
        return [optimizer.best, optimizer.jacobian(), optimizer.state()]

    return tell


def state(kind, **options):
    def make(folder):
        optimizer = kind(X0, scale=0.3, bounds=(-9.0, 9.0), **options)
        for query in optimizer.ask():
            optimizer.tell(query, hill(query.x))
        optimizer.ask()
        return json.loads(json.dumps(optimizer.state()))

    return call(gibo.Optimizer.from_state, state=In(make))


def optimizer(kind, **options):
    return call(kind, **{"x0": X0, "scale": 0.3, "bounds": (-9.0, 9.0), "seed": 1, **options})


def fresh(folder):
    path = folder / f"new-{next(COUNT)}"
    shutil.rmtree(folder / f"new-{next(COUNT) - 3}", ignore_errors=True)
    return path


def kept(name, make):
    """A folder that is made once."""

    def made(folder):
        if not (folder / name).exists():
            make(folder / name)
        return folder / name

    return made


def copied(original, told=False):
    """A copy of a run; by hand with its first value if it is told."""

    def made(folder):
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.copytree(original(folder), folder / "copy")
        if told:
            manual.tell(folder / "copy", 0, 2.0)
        return folder / "copy"

    return In(made)


def begin_by_hand(folder):
    manual.create(folder, Description(["a", "b"], [0.0] * 2, [1.0] * 2, [-9.0] * 2, [9.0] * 2))
    manual.ask(folder)


FINISHED = kept("finished", lambda folder: gibo.maximize(hill, X0, budget=7, settings=SETTINGS, journal=folder))
BY_HAND = kept("by-hand", begin_by_hand)
TRAINED = kept("trained", lambda folder: train(Training("CartPole-v1"), folder, budget=4))


def file(name, text):
    def made(folder):
        (folder / name).write_text(text)
        return folder / name

    return In(made)


def roll_out(**arguments):
    """What an environment or a policy that is a function raises comes out as it is, and is no finding."""
    try:
        return rollout(**arguments)
    except gibo.GiboError:
        raise
    except BaseException:
        if callable(arguments["policy"]):
            return None
        raise


def task(folder=None):
    return Task("CartPole-v1", max_steps=20)


RUN = {"budget": 5, "target": 10.0, "least_certainty": 0.1, "callback": lambda result: False, "max_failures": 3}
SEARCH = {"objective": hill, "x0": X0, "scale": 0.3, "bounds": (-9.0, 9.0), "settings": SETTINGS, "retries": 1, **RUN}
SEARCH |= {"journal": In(lambda folder: fresh(folder) if next(COUNT) % 2 else None)}
ROLLOUT = {"environment": In(lambda folder: task().make()), "policy": lambda state: 1, "seed": 0, "max_steps": 20}
THETA = [0.1, 0.5, 1.0, 1.0, 0.0]
DESCRIBED = {"names": ["a", "b"], "start": [0.0] * 2, "scale": [1.0] * 2, "lower": [-9.0] * 2, "upper": [9.0] * 2}
GRADIENTS = {"gradient_X": X[:1], "gradients": [[1.0, 0.0, 0.5]], "gradient_noise": 0.1}
BOX = {"lower": [-1.0] * D, "upper": [1.0] * D}
FIELDS = {field: getattr(SETTINGS, field) for field in Settings.__dataclass_fields__}
RANGE = {"lower": 0.1, "upper": 10.0, "start": 1.0, "scale": 2.0}

TARGETS = [
    # The model.
    call(SquaredExponential, lengthscale=[0.2] * D, variance=2.0),
    call(gibo.Matern52, lengthscale=0.2, variance=2.0),
    call(GP.kernel.with_hyperparameters, lengthscale=[0.2] * D, variance=2.0),
    call(GaussianProcess, lambda gp: predict(gp.condition(X, Y)), kernel=GP.kernel, noise=0.01, mean="estimated"),
    full(GaussianProcess(GP.kernel, 0.01).condition, X=X, y=Y, **GRADIENTS, noise_scale=0.5, known_noise=[0.1] * 4),
    full(GP.extend, X=X0, y=0.3),
    call(GP.predict, x=X),
    call(GP.jacobian, x=X0),
    call(GP.jacobian(X0).probability_of_ascent, step=[0.1, 0.0, 0.2]),
    call(gibo.fit, gp=GP, priors=PRIORS, maximum_steps=5),
    call(priors.Uniform, lower=0.1, upper=0.3),
    call(priors.Normal, centre=0.1, sd=0.3),
    call(priors.LogNormal, median=0.1, log_sd=0.3),
    call(priors.SharedLogNormal, median=0.1, shared_log_sd=0.3, log_sd=0.2),
    full(steps.direction, g=[1.0, 2.0], ell=[0.5, 0.5], normalization="paper"),
    full(steps.Piecewise, pieces=((0, 0.8), (3, 0.3))),
    full(steps.Decay, initial=0.5, halving=10.0),
    full(steps.GradientAscent, eta=steps.Decay(0.5, 10.0), momentum=0.3),
    # Acquisitions.
    full(GradientInformation, gp=GP, at=X0),
    call(GI, x=X),
    call(GI.value_and_gradient, x=X[0]),
    call(GI.extend, x=X[0]),
    call(plan, gi=GI, **BOX, M=2, rng=In(lambda folder: np.random.default_rng(0)), least_share=0.0),
    call(LogExpectedImprovement, gp=GP, best=0.3),
    # Optimisers.
    optimizer(GIBO, settings=SETTINGS),
    optimizer(GIBO),
    optimizer(gibo.ARS, step_size=0.15, noise=0.3, directions=3, top=2),
    optimizer(gibo.CMAES, sigma0=1.0, population=6, noise_handling=False),
    optimizer(gibo.VanillaBO, lengthscale=0.3, variance=1.0, noise=0.01),
    optimizer(gibo.RandomSearch, batch=2),
    call(In(tell), query="the next", value=0.3, gradient=None, gradient_noise=None, failed=False),
    call(In(lambda folder: told()[0].start_at), x=X0),
    call(In(lambda folder: told()[0].external), x=X0),
    *(state(kind, **options) for kind, options in ((GIBO, {"settings": SETTINGS}), (gibo.ARS, {}), (gibo.CMAES, {}))),
    state(gibo.RandomSearch, batch=2),
    call(gibo.Optimizer.from_arguments, name="ARS", arguments={"x0": X0, "scale": 0.3, "seed": 0}),
    full(Outcome, value=1.0, gradient=[1.0, 2.0, 3.0], gradient_noise=0.1, info={"a": 1}, seconds=1.0),
    full(Outcome.failed, reason="it broke", seconds=0.1),
    call(Settings, **FIELDS),
    call(gibo.Limits, quantities={"torque": (None, 4.0)}, confidence=0.95, careful=False),
    call(SETTINGS.resolve, lambda settings: None, d=3),
    call(Settings.from_plain, data=to_plain(SETTINGS)),
    call(gibo.within_model, lambda settings: None, lengthscale=[0.2, 0.3]),
    call(gibo.out_of_model, lambda settings: None, d=3),
    call(Settings.paper, M=3, standardize=True, delta=0.5),
    # Runs.
    full(gibo.maximize, **SEARCH),
    full(gibo.minimize, **SEARCH),
    full(gibo.maximize, **SEARCH, workers=2, time_limit=30.0),
    full(gibo.run, optimizer=In(lambda folder: GIBO(X0, settings=SETTINGS)), objective=hill, **RUN),
    full(gibo.resume, journal=copied(FINISHED), objective=hill, **RUN | {"budget": 9}),
    call(Journal.read, folder=In(FINISHED)),
    call(Journal.open, folder=copied(BY_HAND), patience=0.0, waiting=None),
    call(Journal.create, Journal.close, folder=In(fresh), spec=RunSpec.of(GIBO(X0))),
    full(Description, **DESCRIBED, settings={"M": 2}),
    call(manual.create, folder=In(fresh), description=Description(**DESCRIBED)),
    call(manual.ask, folder=copied(BY_HAND), waiting=None),
    call(manual.tell, folder=copied(BY_HAND), number=0, value=1.0, failed=None, waiting=None),
    call(manual.undo, folder=copied(BY_HAND, told=True), count=1, reason="a comma", waiting=None),
    call(manual.correct, folder=copied(BY_HAND, told=True), number=0, value=1.0, reason="a comma", failed=None),
    call(manual.status, folder=In(FINISHED)),
    call(read_description, path=file("run.toml", "minimize = true\n[parameters.gain]\nstart = 1.0\n")),
    # Parameters with names.
    full(Parameter, kind="log", **RANGE, log=True),
    full(linear, **RANGE),
    full(log, **RANGE),
    full(integer, lower=1, upper=10, start=2, scale=2.0),
    full(free, start=1.0, scale=2.0),
    call(Parameters, gain=log(0.1, 100.0), delay=integer(1, 9)),
    call(linear(0.0, 1.0).inner, value=0.3),
    call(log(0.1, 1.0).value, x=0.3),
    call(integer(1, 9).rounded, x=0.3),
    call(PARAMETERS.to_vector, values={"gain": 1.0, "delay": 3, "angle": 0.1}),
    call(PARAMETERS.to_values, x=[0.0, 3.0, 0.1]),
    call(PARAMETERS.rounded, x=[0.0, 3.0, 0.1]),
    call(Parameters.from_plain, data=PARAMETERS.to_plain()),
    call(Parameters.from_toml, path=file("p.toml", "[parameters.gain]\nkind = 'log'\nlower = 0.1\nupper = 100\n")),
    # Policies.
    call(Linear, inputs=2, outputs=1),
    call(Affine, inputs=2, outputs=1),
    call(MLP, inputs=2, outputs=1, hidden=(3,)),
    call(architecture, text="mlp:4,4:relu", inputs=2, outputs=1),
    call(MLP(2, 1, (3,)).initial, seed=0),
    call(Affine(2, 1).layers, theta=[1.0, 2.0, 3.0]),
    call(ContinuousActions, low=[-1.0], high=[1.0]),
    call(DiscreteActions, n=2),
    full(Policy, architecture=Affine(2, 1), theta=[1.0, 2.0, 3.0], actions=DiscreteActions(2), normalization=IDENTITY),
    call(POLICY, observation=[0.0, 1.0]),
    call(Policy.from_plain, data=CONTINUOUS.to_plain()),
    call(POLICY.save, path=In(lambda folder: folder / "saved.json")),
    call(load_policy, path=file("policy.json", json.dumps(POLICY.to_plain()))),
    call(export.to_c, policy=POLICY),
    call(export.to_onnx, policy=CONTINUOUS),
    call(Normalization, mean=[0.0, 1.0], std=[1.0, 1.0]),
    call(OTHER, states=[[0.0, 1.0]]),
    call(Normalization.from_plain, data=OTHER.to_plain()),
    call(Statistics, count=3, mean=[0.0, 1.0], m2=[1.0, 1.0]),
    call(Statistics.of, states=[[0.0, 1.0], [1.0, 2.0]]),
    call(STATISTICS.merge, other=STATISTICS),
    call(Statistics.from_plain, data=STATISTICS.to_plain()),
    call(reexpress, architecture=Affine(2, 1), old=IDENTITY, new=STATISTICS.normalization),
    call(reexpress(Affine(2, 1), IDENTITY, STATISTICS.normalization).parameters, theta=[1.0, 2.0, 3.0]),
    full(Task, environment="CartPole-v1", normalize_states=True, max_steps=20, environment_options={}),
    call(In(task), theta=THETA, seed=0, normalization=None),
    call(In(lambda folder: task().evaluate), theta=THETA, episodes=2, seed=0, normalization=None),
    call(In(lambda folder: task().bind), bool, theta=THETA, normalization=None),
    call(In(lambda folder: task().make), render_mode=None),
    call(roll_out, **ROLLOUT, reward_shift=0.0, reward_scale=1.0, collect=True),
    full(Training, environment="CartPole-v1", policy="affine", options={}, reexpressed="data"),
    call(Training.from_plain, data=Training("CartPole-v1").to_plain()),
    call(train, training=Training("CartPole-v1", options={"settings": SETTINGS}), folder=In(fresh), budget=3),
    call(read_trial, folder=In(TRAINED), allow_module=False),
    call(last_episode, folder=In(TRAINED), allow_module=False),
    # Inside other libraries, figures, the page.
    full(
        gibo.integrations.scipy.minimize,
        lambda found: [found.x, found.fun if found.success else found.message],
        **{"fun": hill, "x0": X0, "bounds": [(-1.0, 1.0)] * D, "budget": 4, "scale": 0.3},
    ),
    full(GIBOSampler, start={"a": 0.3}, seed=0, settings=SETTINGS, warn_independent_sampling=False),
    call(TensorBoard, folder=In(lambda folder: folder / "logs")),
    call(
        gibo.figures.run_figure,
        result=In(lambda folder: gibo.maximize(hill, X0, budget=6, settings=SETTINGS)),
        path=In(lambda folder: folder / "figure.png"),
        **{"truth": None, "optimum": 0.0, "title": "a run"},
    ),
    call(snapshot, folder=In(FINISHED), since=Since(0, 0)),
    call(report, folder=In(FINISHED)),
]
