import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from tiny_environments import Scripted

from gibo import InputError, MissingExtraError
from gibo.policies import ContinuousActions, DiscreteActions, Task
from gibo.policies.gym_adapter import actions_of, observation_shape


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CartPoole-v1", "environment 'CartPoole-v1': .*CartPoole.* doesn't exist"),
        ("Nowhere/CartPole-v1", "environment 'Nowhere/CartPole-v1': Namespace Nowhere not found"),
        ("no_such_module:Thing-v0", "environment 'no_such_module:Thing-v0': No module named 'no_such_module'"),
    ],
)
def test_an_unknown_id_is_refused_in_one_line(name, words):
    with pytest.raises(InputError, match=words) as caught:
        Task(name)
    assert "\n" not in str(caught.value)


def test_options_that_an_environment_does_not_have_are_refused():
    with pytest.raises(InputError, match=r"'CartPole-v1' cannot be made with the options {'colour': 'red'}: TypeError"):
        Task("CartPole-v1", environment_options={"colour": "red"})


def register(name, entry_point):
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=entry_point)
    return name


def test_a_deprecated_environment_says_which_to_use():
    register("GiboTest-v1", Scripted)
    register("GiboTest-v2", Scripted)
    with pytest.warns(DeprecationWarning, match="out of date"), pytest.raises(InputError, match=r"'GiboTest-v0': .*v2"):
        Task("GiboTest-v0")


def needs_box2d(**_):
    raise gymnasium.error.DependencyNotInstalled("Box2D is not installed,\nrun `pip install gymnasium[box2d]`")


def needs_imageio(**_):
    raise ModuleNotFoundError("No module named 'imageio'", name="imageio")


def needs_mujoco(**_):
    raise gymnasium.error.DependencyNotInstalled('MuJoCo is not installed, run `pip install "gymnasium[mujoco]"`')


@pytest.mark.parametrize(
    ("entry_point", "words"),
    [
        (needs_box2d, r"GiboNeeds0-v0 needs Box2D, which is not installed: pip install 'gibo\[box2d\]'"),
        (
            needs_imageio,
            r"GiboNeeds1-v0 needs imageio, which is not installed: pip install 'gibo\[mujoco\]'",
        ),
        (needs_mujoco, r"GiboNeeds2-v0 needs mujoco, which is not installed: pip install 'gibo\[mujoco\]'"),
    ],
)
def test_what_is_not_installed_is_named(entry_point, words):
    number = [needs_box2d, needs_imageio, needs_mujoco].index(entry_point)
    with pytest.raises(MissingExtraError, match=f"^{words}$"):
        Task(register(f"GiboNeeds{number}-v0", entry_point))


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (
            "gymnasium",
            "a task needs gymnasium, which is not installed: pip install 'gibo[gym]'",
        ),
        ("mujoco", "Hopper-v5 needs mujoco, which is not installed: pip install "),
    ],
)
def test_without_a_library_the_message_says_what_to_install(missing, words):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import gibo\nfrom gibo.policies import Task\n"
        "try:\n    Task('Hopper-v5')\nexcept gibo.MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(words), done.stderr


# -- spaces -----------------------------------------------------------------------------------------------------------

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(("shape", "kind"), [((3,), np.float32), ((8, 8, 3), np.uint8), ((), np.float64)])
def test_a_box_of_any_shape_can_be_observed(shape, kind):
    assert observation_shape(Scripted(observation_space=spaces.Box(0, 1, shape, kind))) == shape


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(5),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Dict(a=BOX),
        spaces.Tuple((BOX, BOX)),
        spaces.Text(5),
        spaces.Box(-1.0, 1.0, (0,), np.float32),
    ],
    ids=lambda space: type(space).__name__,
)
def test_other_observations_are_refused_by_name(space):
    with pytest.raises(InputError, match=r"^observation space .*: not supported; expected a Box") as caught:
        Task(lambda: Scripted(observation_space=space))
    assert str(space)[:40] in str(caught.value)
    assert "FlattenObservation" in str(caught.value)


@pytest.mark.parametrize("space", [spaces.Discrete(5), spaces.MultiDiscrete([2, 3]), spaces.Dict(a=BOX, b=BOX)])
def test_what_the_message_suggests_works(space):
    class Observes(Scripted):
        def observation(self):
            return self.observation_space.sample()

    def environment():
        return gymnasium.wrappers.FlattenObservation(Observes(observation_space=space))

    with Task(environment, policy="linear") as task:
        assert task.d == spaces.flatdim(space)
        assert task(np.ones(task.d)).info["steps"] == 3


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Discrete(2), DiscreteActions(2)),
        (spaces.Discrete(5, start=-2), DiscreteActions(5, -2)),
        (spaces.Discrete(1), DiscreteActions(1)),
    ],
)
def test_discrete_actions(space, expected):
    assert actions_of(Scripted(action_space=space)) == expected


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3,), (2, 2), ()])
def test_continuous_actions(shape, kind):
    actions = actions_of(Scripted(action_space=spaces.Box(-1.5, np.inf, shape, kind)))
    assert isinstance(actions, ContinuousActions)
    assert actions.shape == shape
    assert actions.dtype == np.dtype(kind).name
    assert (actions.low == -1.5).all()
    assert np.isposinf(actions.high).all()


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Dict(a=BOX),
        spaces.Tuple((BOX, BOX)),
        spaces.Box(0, 5, (2,), np.int64),
        spaces.Box(-1.0, 1.0, (0,), np.float32),
    ],
    ids=repr,
)
def test_other_actions_are_refused_by_name(space):
    with pytest.raises(InputError, match=r"^action space .*: not supported; expected Discrete or a Box") as caught:
        Task(lambda: Scripted(action_space=space))
    assert str(space)[:40] in str(caught.value)


@pytest.mark.parametrize(
    "made",
    [lambda: None, lambda: 3, lambda: gymnasium.make_vec("CartPole-v1", num_envs=2)],
    ids=["none", "number", "vector"],
)
def test_what_a_function_makes_must_be_one_environment(made):
    with pytest.raises(InputError, match=r"^environment: expected one environment of Gymnasium, got an object of type"):
        Task(made)
