import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from tiny_environments import Scripted

from gibo import InputError, MissingExtraError
from gibo.policies import Task
from gibo.policies.gym_adapter import observation_shape


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CartPoole-v1", "environment 'CartPoole-v1': .*CartPoole.* doesn't exist"),
        ("no_such_module:Thing-v0", "environment 'no_such_module:Thing-v0': No module named 'no_such_module'"),
    ],
)
def test_an_unknown_id_is_refused_in_one_line(name, words):
    with pytest.raises(InputError, match=words) as caught:
        Task(name)
    assert "\n" not in str(caught.value)


def register(name, entry_point):
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=entry_point)
    return name


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


@pytest.mark.parametrize(("shape", "kind"), [((3,), np.float32), ((8, 8, 3), np.uint8), ((), np.float64)])
def test_a_box_of_any_shape_can_be_observed(shape, kind):
    assert observation_shape(Scripted(observation_space=spaces.Box(0, 1, shape, kind))) == shape


BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"observation_space": spaces.Dict(a=BOX)}, "observation space .*: not supported; expected a Box"),
        ({"observation_space": spaces.Box(-1.0, 1.0, (0,))}, "observation space .*: not supported; expected a Box"),
        ({"action_space": spaces.Dict(a=BOX)}, "action space .*: not supported; expected Discrete or a Box"),
        ({"action_space": spaces.Box(0, 5, (2,), np.int64)}, "action space .*: not supported; expected Discrete"),
        ({"action_space": spaces.Box(-1.0, 1.0, (0,))}, "action space .*: not supported; expected Discrete"),
    ],
)
def test_other_spaces_are_refused_by_name(given, words):
    with pytest.raises(InputError, match=words) as caught:
        Task(lambda: Scripted(**given))
    assert str(next(iter(given.values())))[:40] in str(caught.value)


@pytest.mark.parametrize(
    "made",
    [lambda: None, lambda: 3, lambda: gymnasium.make_vec("CartPole-v1", num_envs=2)],
    ids=["none", "number", "vector"],
)
def test_what_a_function_makes_must_be_one_environment(made):
    with pytest.raises(InputError, match=r"^environment: expected one environment of Gymnasium, got an object of type"):
        Task(made)
