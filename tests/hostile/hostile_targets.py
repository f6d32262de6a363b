"""Everything public, each with a right call of it. A new public name is one more entry; a test says what is missing.

Left out is what takes an ``Array``, a float64 array of the right shape, and checks nothing because inner loops call it:
the matrices and derivatives of kernels, the densities of priors.
"""

import inspect
import itertools
import json
import shutil
from contextlib import suppress

import numpy as np
from hostile_calls import Call

import gibo
import gibo.figures
import gibo.integrations.scipy
from gibo import GIBO, GaussianProcess, Outcome, Settings, SquaredExponential, priors, steps
from gibo.acquisition.expected_improvement import LogExpectedImprovement
from gibo.acquisition.information import plan
from gibo.integrations.optuna import GIBOSampler
from gibo.integrations.tensorboard import TensorBoard
from gibo.parameters import Parameter, Parameters, free, integer, linear, log
from gibo.policies import (
    MLP,
    Affine,
    ContinuousActions,
    DiscreteActions,
    Linear,
    Normalization,
    Policy,
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
PRIORS = {"lengthscale": priors.LogNormal(1.0, 0.5), "noise": priors.Uniform(1e-4, 1.0)}
JACOBIAN = GP.jacobian(X0)
POLICY = Policy(Affine(2, 1), [1.0, 2.0, -0.5], DiscreteActions(2))
CONTINUOUS = Policy(MLP(2, 1, (3,)), [0.1] * 13, ContinuousActions([-1.0], [1.0]), Normalization([0.0] * 2, [1.0] * 2))
PARAMETERS = Parameters(gain=log(0.1, 100.0), delay=integer(1, 9), angle=linear(-1.0, 1.0))
STATISTICS = Statistics.of([[0.0, 1.0], [1.0, 2.0], [0.5, 0.5]])
COUNT = itertools.count()


def hill(x, seed=0):
    return -float(((np.asarray(x) - 0.3) ** 2).sum())


def rng():
    return np.random.default_rng(0)


# -- what a user does next --------------------------------------------------------------------------------------------


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


def look(result):
    return [str(result), result.x, len(result.history), result.failures, result.warnings, result.jacobian]


def predict(gp):
    at = np.zeros(D) if gp.observations is None else np.zeros(gp.observations.X.shape[1])
    found = [gp.predict(at), gp.predict(at[None]), gp.jacobian(at)]
    return [*found, gp.log_likelihood] if gp.n else found


def told():
    """An optimiser with a batch of which one is told, and the next query."""
    optimizer = GIBO(X0, scale=0.3, settings=SETTINGS)
    first, second, *_ = optimizer.ask()
    optimizer.tell(first, 0.5)
    return optimizer, second


def tell(folder):
    optimizer, query = told()
    arguments = {"query": query, "value": 0.3, "gradient": None, "gradient_noise": None, "failed": False}
    return Call(optimizer.tell, arguments, lambda _: [optimizer.best, optimizer.jacobian(), optimizer.state()])


# -- files ------------------------------------------------------------------------------------------------------------


def fresh(folder):
    path = folder / f"new-{next(COUNT)}"
    shutil.rmtree(folder / f"new-{next(COUNT) - 3}", ignore_errors=True)
    return path


def finished(folder):
    """A finished run."""
    if not (folder / "finished").exists():
        gibo.maximize(hill, X0, budget=7, settings=SETTINGS, journal=folder / "finished")
    return folder / "finished"


def by_hand(folder, told=False):
    """A copy of a run by hand with a batch that is asked, and its first value if it is told."""
    if not (folder / "by-hand").exists():
        manual.create(folder / "by-hand", Description(["a", "b"], [0.0] * 2, [1.0] * 2, [-9.0] * 2, [9.0] * 2))
        manual.ask(folder / "by-hand")
    shutil.rmtree(folder / "copy", ignore_errors=True)
    shutil.copytree(folder / "by-hand", folder / "copy")
    if told:
        manual.tell(folder / "copy", 0, 2.0)
    return folder / "copy"


def training(folder):
    """A trial of gibo train."""
    if not (folder / "trained").exists():
        train(Training("CartPole-v1"), folder / "trained", budget=4)
    return folder / "trained"


def policy_file(folder):
    POLICY.save(folder / "policy.json")
    return str(folder / "policy.json")


def toml_file(folder, text="[parameters.gain]\nkind = 'log'\nlower = 0.1\nupper = 100\n"):
    (folder / "parameters.toml").write_text(text)
    return folder / "parameters.toml"


def state(kind, **options):
    def make(folder):
        optimizer = kind(X0, scale=0.3, bounds=(-9.0, 9.0), **options)
        for query in optimizer.ask():
            optimizer.tell(query, hill(query.x))
        optimizer.ask()
        data = json.loads(json.dumps(optimizer.state()))
        return Call(gibo.Optimizer.from_state, {"state": data}, drive)

    return make


def make_optimizer(kind, **options):
    arguments = {"x0": X0, "scale": 0.3, "bounds": (-9.0, 9.0), "seed": 1, **options}
    return lambda folder: Call(kind, arguments, drive, ("batch", "initial", "directions", "population", "most_steps"))


def fixed(function, use=None, sizes=(), **arguments):
    """A call with these arguments and, for all others, their defaults."""
    with suppress(ValueError):  # a class without a signature
        parameters = inspect.signature(function).parameters.values()
        arguments = {each.name: each.default for each in parameters if each.default is not each.empty} | arguments
    return lambda folder: Call(function, arguments, use, sizes)


SIZES = ("budget", "workers", "max_failures", "retries")
RUN = {"budget": 5, "target": 10.0, "least_certainty": 0.1, "callback": lambda result: False, "max_failures": 3}


def maximize(function, **more):
    def make(folder):
        arguments = {"objective": hill, "x0": X0, "scale": 0.3, "bounds": (-9.0, 9.0), "settings": SETTINGS, **RUN}
        arguments |= {"journal": fresh(folder) if next(COUNT) % 2 else None, "retries": 1, **more}
        return fixed(function, look, SIZES, **arguments)(folder)

    return make


def run(folder):
    return fixed(gibo.run, look, SIZES, optimizer=GIBO(X0, settings=SETTINGS), objective=hill, **RUN)(folder)


def resume(folder):
    shutil.rmtree(folder / "resumed", ignore_errors=True)
    shutil.copytree(finished(folder), folder / "resumed")
    return fixed(gibo.resume, look, SIZES, journal=folder / "resumed", objective=hill, **RUN | {"budget": 9})(folder)


def read_all(journal):
    with journal:
        return [journal.spec(), journal.starts(), journal.evaluations(), journal.queries(), journal.events()]


def tell_outcome(outcome):
    optimizer, query = told()
    optimizer.tell(query, outcome)
    return optimizer.best, optimizer.jacobian()


def sample(sampler):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler, direction="minimize")
    study.optimize(lambda trial: trial.suggest_float("a", 0.0, 1.0) ** 2, n_trials=4)
    return study.best_value


def act(policy):
    return [policy([0.3, -0.2]), policy.to_plain(), Policy.from_plain(json.loads(json.dumps(policy.to_plain())))]


def play(made):
    with made:
        return [made.x0(), made(made.x0(), seed=1)]


THETA = [0.1, 0.5, 1.0, 1.0, 0.0]


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


def task():
    return Task("CartPole-v1", max_steps=20)


def with_task(method, use=None, **arguments):
    def make(folder):
        return Call(getattr(task(), method), {"theta": THETA, **arguments}, use, ("episodes",))

    return make


TARGETS = {
    # The model.
    "gibo.SquaredExponential": fixed(
        SquaredExponential,
        lambda k: k.k(np.zeros((1, D)), np.ones((2, D))),
        lengthscale=[0.2] * D,
        variance=2.0,
    ),
    "gibo.Matern52": fixed(
        gibo.Matern52, lambda k: k.dk_da(np.zeros((1, D)), np.ones((2, D))), lengthscale=0.2, variance=2.0
    ),
    "gibo.Kernel.with_hyperparameters": fixed(GP.kernel.with_hyperparameters, lengthscale=[0.2] * D, variance=2.0),
    "gibo.GaussianProcess": fixed(
        GaussianProcess, lambda gp: predict(gp.condition(X, Y)), kernel=GP.kernel, noise=0.01, mean="estimated"
    ),
    "gibo.GaussianProcess.condition": fixed(
        GaussianProcess(GP.kernel, 0.01).condition,
        predict,
        X=X,
        y=Y,
        gradient_X=X[:1],
        gradients=[[1.0, 0.0, 0.5]],
        gradient_noise=0.1,
        noise_scale=0.5,
        known_noise=[0.1] * len(X),
    ),
    "gibo.GaussianProcess.extend": fixed(GP.extend, predict, X=X0, y=0.3),
    "gibo.GaussianProcess.predict": fixed(GP.predict, x=X),
    "gibo.GaussianProcess.jacobian": fixed(GP.jacobian, x=X0),
    "gibo.Jacobian.probability_of_ascent": fixed(JACOBIAN.probability_of_ascent, step=[0.1, 0.0, 0.2]),
    "gibo.fit": fixed(gibo.fit, lambda fit: predict(fit.gp), gp=GP, priors=PRIORS, maximum_steps=5),
    "gibo.priors.Uniform": fixed(priors.Uniform, lambda p: p.mean, lower=0.1, upper=0.3),
    "gibo.priors.Normal": fixed(priors.Normal, lambda p: p.mean, centre=0.1, sd=0.3),
    "gibo.priors.LogNormal": fixed(priors.LogNormal, lambda p: p.mean, median=0.1, log_sd=0.3),
    "gibo.priors.SharedLogNormal": fixed(
        priors.SharedLogNormal, lambda p: [p.mean, p.support], median=0.1, shared_log_sd=0.3, log_sd=0.2
    ),
    "gibo.steps.direction": fixed(steps.direction, g=[1.0, 2.0], ell=[0.5, 0.5], normalization="paper"),
    "gibo.steps.Piecewise": fixed(steps.Piecewise, lambda s: s(2), pieces=((0, 0.8), (3, 0.3))),
    "gibo.steps.Decay": fixed(steps.Decay, lambda s: s(2), initial=0.5, halving=10.0),
    "gibo.steps.GradientAscent": fixed(
        steps.GradientAscent, lambda s: s.update(np.ones(2), s.init(2)), eta=steps.Decay(0.5, 10.0), momentum=0.3
    ),
    # Acquisitions.
    "gibo.GradientInformation": fixed(
        gibo.GradientInformation, lambda gi: [gi(X0), gi.value_and_gradient(X0)], gp=GP, at=X0
    ),
    "gibo.GradientInformation.__call__": fixed(gibo.GradientInformation(GP, X0), x=X),
    "gibo.GradientInformation.value_and_gradient": fixed(gibo.GradientInformation(GP, X0).value_and_gradient, x=X[0]),
    "gibo.GradientInformation.extend": fixed(gibo.GradientInformation(GP, X0).extend, lambda gi: gi(X0), x=X[0]),
    "gibo.acquisition.information": lambda folder: Call(
        plan,
        {
            "gi": gibo.GradientInformation(GP, X0),
            "lower": [-1.0] * D,
            "upper": [1.0] * D,
            "M": 2,
            "rng": rng(),
            "least_share": 0.0,
        },
        None,
        ("M",),
    ),
    "gibo.acquisition.LogExpectedImprovement": fixed(LogExpectedImprovement, lambda ei: ei(X0), gp=GP, best=0.3),
    # Optimisers.
    "gibo.GIBO": make_optimizer(GIBO, settings=SETTINGS),
    "gibo.GIBO-defaults": make_optimizer(GIBO),
    "gibo.ARS": make_optimizer(gibo.ARS, step_size=0.15, noise=0.3, directions=3, top=2),
    "gibo.CMAES": make_optimizer(gibo.CMAES, sigma0=1.0, population=6, noise_handling=False),
    "gibo.VanillaBO": make_optimizer(gibo.VanillaBO, lengthscale=0.3, variance=1.0, noise=0.01),
    "gibo.RandomSearch": make_optimizer(gibo.RandomSearch, batch=2),
    "gibo.Optimizer.tell": tell,
    "gibo.Optimizer.start_at": lambda folder: Call(told()[0].start_at, {"x": X0}),
    "gibo.Optimizer.external": lambda folder: Call(told()[0].external, {"x": X0}),
    "gibo.Optimizer.from_state-GIBO": state(GIBO, settings=SETTINGS),
    "gibo.Optimizer.from_state-ARS": state(gibo.ARS),
    "gibo.Optimizer.from_state-CMAES": state(gibo.CMAES),
    "gibo.Optimizer.from_state-RandomSearch": state(gibo.RandomSearch, batch=2),
    "gibo.Optimizer.from_arguments": fixed(
        gibo.Optimizer.from_arguments, drive, name="ARS", arguments={"x0": X0, "scale": 0.3, "seed": 0}
    ),
    "gibo.Outcome": fixed(
        Outcome, tell_outcome, value=1.0, gradient=[1.0, 2.0, 3.0], gradient_noise=0.1, info={"a": 1}, seconds=1.0
    ),
    "gibo.Outcome.failed": fixed(Outcome.failed, tell_outcome, reason="it broke", seconds=0.1),
    "gibo.Settings": fixed(
        Settings,
        lambda settings: drive(GIBO(X0, settings=settings)),
        sizes=("M",),
        **{field: getattr(SETTINGS, field) for field in Settings.__dataclass_fields__},
    ),
    "gibo.Limits": fixed(gibo.Limits, quantities={"torque": (None, 4.0)}, confidence=0.95, careful=False),
    "gibo.Settings.resolve": fixed(SETTINGS.resolve, d=3),
    "gibo.Settings.from_plain": fixed(Settings.from_plain, data=gibo._serialize.to_plain(SETTINGS)),
    "gibo.within_model": fixed(gibo.within_model, lengthscale=[0.2, 0.3]),
    "gibo.out_of_model": fixed(gibo.out_of_model, d=3, sizes=("d",)),
    "gibo.Settings.paper": fixed(gibo.Settings.paper, M=3, standardize=True, delta=0.5),
    # Runs.
    "gibo.maximize": maximize(gibo.maximize),
    "gibo.minimize": maximize(gibo.minimize),
    "gibo.maximize-workers": maximize(gibo.maximize, workers=2, time_limit=30.0),
    "gibo.run": run,
    "gibo.resume": resume,
    "gibo.Journal.read": lambda folder: Call(Journal.read, {"folder": finished(folder)}, read_all),
    "gibo.Journal.open": lambda folder: Call(
        Journal.open, {"folder": by_hand(folder), "patience": 0.0, "waiting": None}, read_all, ("patience",)
    ),
    "gibo.Journal.create": lambda folder: Call(
        Journal.create, {"folder": fresh(folder), "spec": RunSpec.of(GIBO(X0))}, lambda journal: journal.close()
    ),
    "gibo.runs.description.Description": fixed(
        Description,
        lambda d: drive(d.optimizer()),
        names=["a", "b"],
        start=[0.0] * 2,
        scale=[1.0] * 2,
        lower=[-9.0] * 2,
        upper=[9.0] * 2,
        settings={"M": 2},
    ),
    "gibo.runs.manual.create": lambda folder: Call(
        manual.create, {"folder": fresh(folder), "description": Description(["a"], [0.0], [1.0], [-9.0], [9.0])}
    ),
    "gibo.runs.manual.ask": lambda folder: Call(manual.ask, {"folder": by_hand(folder), "waiting": None}),
    "gibo.runs.manual.tell": lambda folder: Call(
        manual.tell, {"folder": by_hand(folder), "number": 0, "value": 1.0, "failed": None, "waiting": None}
    ),
    "gibo.runs.manual.undo": lambda folder: Call(
        manual.undo, {"folder": by_hand(folder, told=True), "count": 1, "reason": "a comma", "waiting": None}
    ),
    "gibo.runs.manual.correct": lambda folder: Call(
        manual.correct,
        {"folder": by_hand(folder, told=True), "number": 0, "value": 1.0, "reason": "a comma", "failed": None},
    ),
    "gibo.runs.manual.status": lambda folder: Call(manual.status, {"folder": finished(folder)}),
    "gibo.runs.description.read_description": lambda folder: Call(
        read_description, {"path": toml_file(folder, "minimize = true\n[parameters.gain]\nstart = 1.0\n")}
    ),
    # Parameters with names.
    "gibo.parameters.Parameter": fixed(
        Parameter,
        lambda p: [p.inner_start, p.value(0.3)],
        kind="log",
        lower=0.1,
        upper=10.0,
        start=1.0,
        scale=2.0,
        log=True,
    ),
    "gibo.parameters.linear": fixed(
        linear, lambda p: [p.inner_start, p.inner_scale], lower=0.1, upper=10.0, start=1.0, scale=2.0
    ),
    "gibo.parameters.log": fixed(
        log, lambda p: [p.inner_start, p.inner_scale], lower=0.1, upper=10.0, start=1.0, scale=2.0
    ),
    "gibo.parameters.integer": fixed(
        integer, lambda p: [p.inner_start, p.inner_scale], lower=1, upper=10, start=2, scale=2.0
    ),
    "gibo.parameters.free": fixed(free, lambda p: [p.inner_start, p.inner_scale], start=1.0, scale=2.0),
    "gibo.parameters.Parameters": fixed(
        Parameters, lambda p: [p.x0, p.scale, p.bounds], gain=log(0.1, 100.0), delay=integer(1, 9)
    ),
    "gibo.parameters.Parameter.inner": fixed(linear(0.0, 1.0).inner, value=0.3),
    "gibo.parameters.Parameter.value": fixed(log(0.1, 1.0).value, x=0.3),
    "gibo.parameters.Parameter.rounded": fixed(integer(1, 9).rounded, x=0.3),
    "gibo.parameters.Parameters.to_vector": fixed(PARAMETERS.to_vector, values={"gain": 1.0, "delay": 3, "angle": 0.1}),
    "gibo.parameters.Parameters.to_values": fixed(PARAMETERS.to_values, x=[0.0, 3.0, 0.1]),
    "gibo.parameters.Parameters.rounded": fixed(PARAMETERS.rounded, x=[0.0, 3.0, 0.1]),
    "gibo.parameters.Parameters.from_plain": fixed(
        Parameters.from_plain, lambda p: [p.x0, p.scale, p.bounds], data=PARAMETERS.to_plain()
    ),
    "gibo.parameters.Parameters.from_toml": lambda folder: Call(Parameters.from_toml, {"path": toml_file(folder)}),
    # Policies.
    "gibo.policies.Linear": fixed(Linear, lambda net: net.initial(0), inputs=2, outputs=1),
    "gibo.policies.Affine": fixed(Affine, lambda net: net.initial(0), inputs=2, outputs=1),
    "gibo.policies.MLP": fixed(MLP, lambda net: net.initial(0), inputs=2, outputs=1, hidden=(3,)),
    "gibo.policies.architecture": fixed(
        architecture, lambda net: net.initial(0), text="mlp:4,4:relu", inputs=2, outputs=1
    ),
    "gibo.policies.Architecture.initial": fixed(MLP(2, 1, (3,)).initial, seed=0),
    "gibo.policies.Architecture.layers": fixed(Affine(2, 1).layers, theta=[1.0, 2.0, 3.0]),
    "gibo.policies.ContinuousActions": fixed(ContinuousActions, low=[-1.0], high=[1.0]),
    "gibo.policies.DiscreteActions": fixed(DiscreteActions, n=2),
    "gibo.policies.Policy": fixed(
        Policy,
        act,
        architecture=Affine(2, 1),
        theta=[1.0, 2.0, 3.0],
        actions=DiscreteActions(2),
        normalization=Normalization([0.0] * 2, [1.0] * 2),
        observation_shape=(2,),
    ),
    "gibo.policies.Policy.__call__": fixed(POLICY, observation=[0.0, 1.0]),
    "gibo.policies.Policy.from_plain": fixed(Policy.from_plain, act, data=CONTINUOUS.to_plain()),
    "gibo.policies.Policy.save": lambda folder: Call(POLICY.save, {"path": folder / "saved.json"}),
    "gibo.policies.load_policy": lambda folder: Call(load_policy, {"path": policy_file(folder)}),
    "gibo.policies.export.to_c": fixed(export.to_c, policy=POLICY),
    "gibo.policies.export.to_onnx": fixed(export.to_onnx, policy=CONTINUOUS),
    "gibo.policies.Normalization": fixed(Normalization, lambda n: n([0.0, 1.0]), mean=[0.0, 1.0], std=[1.0, 1.0]),
    "gibo.policies.Normalization.__call__": fixed(Normalization([0.0, 1.0], [1.0, 1.0]), states=[[0.0, 1.0]]),
    "gibo.policies.Normalization.from_plain": fixed(
        Normalization.from_plain, lambda n: n([0.0, 1.0]), data=Normalization([0.0, 1.0], [1.0, 1.0]).to_plain()
    ),
    "gibo.policies.Statistics": fixed(Statistics, lambda s: s.normalization, count=3, mean=[0.0, 1.0], m2=[1.0, 1.0]),
    "gibo.policies.Statistics.of": fixed(Statistics.of, lambda s: s.normalization, states=[[0.0, 1.0], [1.0, 2.0]]),
    "gibo.policies.Statistics.merge": fixed(STATISTICS.merge, lambda s: s.normalization, other=STATISTICS),
    "gibo.policies.Statistics.from_plain": fixed(
        Statistics.from_plain, lambda s: s.normalization, data=STATISTICS.to_plain()
    ),
    "gibo.policies.reexpress": fixed(
        reexpress,
        lambda r: r.parameters([1.0, 2.0, 3.0]),
        architecture=Affine(2, 1),
        old=Normalization.identity(2),
        new=STATISTICS.normalization,
    ),
    "gibo.policies.Reexpression.parameters": fixed(
        reexpress(Affine(2, 1), Normalization.identity(2), STATISTICS.normalization).parameters, theta=[1.0, 2.0, 3.0]
    ),
    "gibo.policies.Task": fixed(
        Task,
        play,
        sizes=("episodes",),
        environment="CartPole-v1",
        normalize_states=True,
        max_steps=20,
        environment_options={},
    ),
    "gibo.policies.Task.__call__": with_task("__call__", seed=0, normalization=None),
    "gibo.policies.Task.evaluate": with_task("evaluate", episodes=2, seed=0, normalization=None),
    "gibo.policies.Task.bind": with_task("bind", normalization=None),
    "gibo.policies.Task.make": lambda folder: Call(task().make, {"render_mode": None}),
    "gibo.policies.rollout": lambda folder: Call(
        roll_out,
        {
            "environment": task().make(),
            "policy": lambda state: 1,
            "seed": 0,
            "max_steps": 20,
            "reward_shift": 0.0,
            "reward_scale": 1.0,
            "collect": True,
        },
    ),
    "gibo.training.Training": fixed(
        Training, lambda t: t.to_plain(), environment="CartPole-v1", policy="affine", options={}, reexpressed="data"
    ),
    "gibo.training.Training.from_plain": fixed(
        Training.from_plain, lambda t: t.to_plain(), data=Training("CartPole-v1").to_plain()
    ),
    "gibo.training.train": lambda folder: Call(
        train,
        {
            "training": Training("CartPole-v1", options={"settings": SETTINGS}),
            "folder": fresh(folder),
            "budget": 3,
            "seed": 0,
            "workers": None,
            "executor": None,
            "time_limit": None,
            "progress": False,
        },
        look,
        ("budget", "workers"),
    ),
    "gibo.training.read_trial": lambda folder: Call(read_trial, {"folder": training(folder), "allow_module": False}),
    "gibo.training.last_episode": lambda folder: Call(
        last_episode, {"folder": training(folder), "allow_module": False}
    ),
    # Inside other libraries, figures, the page.
    "gibo.integrations.scipy.minimize": fixed(
        gibo.integrations.scipy.minimize,
        lambda found: [found.x, found.fun if found.success else found.message],
        sizes=("budget", "maxfev"),
        fun=hill,
        x0=X0,
        bounds=[(-1.0, 1.0)] * D,
        budget=4,
        scale=0.3,
    ),
    "gibo.integrations.optuna.GIBOSampler": fixed(
        GIBOSampler, sample, start={"a": 0.3}, seed=0, settings=SETTINGS, warn_independent_sampling=False
    ),
    "gibo.integrations.tensorboard.TensorBoard": lambda folder: Call(
        TensorBoard, {"folder": folder / "logs"}, lambda board: board.close()
    ),
    "gibo.figures.run_figure": lambda folder: Call(
        gibo.figures.run_figure,
        {
            "result": gibo.maximize(hill, X0, budget=6, settings=SETTINGS),
            "path": folder / "figure.png",
            "truth": None,
            "optimum": 0.0,
            "title": "a run",
        },
    ),
    "gibo.web.snapshot": lambda folder: Call(snapshot, {"folder": finished(folder), "since": Since(0, 0)}),
    "gibo.web.report": lambda folder: Call(report, {"folder": finished(folder)}),
}
