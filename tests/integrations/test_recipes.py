"""Recipes for what is not here: a SLURM queue and ROS 2, with stand-ins, and an FMU that is built from C."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from gibo.parameters import Parameters, integer, linear, log
from gibo.runs import manual
from gibo.web.bench import ManualBench
from gibo.web.serve import Serve

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "recipes"


def run(command, folder, **variables):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


SBATCH = """
sbatch() {
    for id in $(echo "$2" | tr -dc '0-9,' | tr , ' '); do SLURM_ARRAY_TASK_ID=$id bash -c "$5" > "tasks/$id.out"; done
}
gibo() { python -m gibo "$@"; }
"""
EPISODE = """
import json, sys
query = next(query for query in json.load(open(sys.argv[1]))["queries"] if query["id"] == int(sys.argv[2]))
assert query["id"] != 1, "the node has no licence"
print("warming up"), print(-sum((x - 1.0) ** 2 for x in query["x"]))
"""


def test_tasks_of_a_slurm_array_are_evaluations(tmp_path):
    (tmp_path / "episode.py").write_text(EPISODE)
    manual.create(tmp_path / "runs" / "cluster", manual.Description.of(Parameters(a=linear(-2, 2), b=linear(-2, 2))))
    shown = run(["bash", "-c", f"{SBATCH} . {RECIPES / 'slurm.sh'}"], tmp_path, ITERATIONS="1")
    assert re.search(r"\d evaluations \(1 failed\), 0 queries pending", shown)


def test_an_fmu_is_an_objective(tmp_path):
    fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed (the extra fmi)")
    if fmpy.platform != "linux64" or shutil.which("gcc") is None:
        pytest.skip("the FMU is built by gcc, for 64-bit Linux")
    source, headers = ROOT / "tests" / "data" / "fmu", Path(fmpy.__file__).parent / "c-code"
    library = tmp_path / "oscillator.so"
    run(["gcc", "-shared", "-fPIC", "-I", headers, "-o", library, source / "oscillator.c"], tmp_path)
    with zipfile.ZipFile(tmp_path / "oscillator.fmu", "w") as archive:
        archive.write(source / "modelDescription.xml", "modelDescription.xml")
        archive.write(library, "binaries/linux64/oscillator.so")
    assert "Improved by" in run([sys.executable, RECIPES / "fmu.py", "oscillator.fmu"], tmp_path)


ENDS = ("", ".msg", ".srv")


class Robot:
    """What a node of rclpy can do, and behind it a controller and an episode of it; every third episode fails."""

    def __init__(self, name):
        self.set, self.episodes = {}, 0

    def declare_parameter(self, name, value):
        return SimpleNamespace(value=8 if name == "budget" else value)

    def create_client(self, kind, name):
        answer = self.set_parameters if name.endswith("/set_parameters") else self.run_episode
        client = MagicMock()
        client.call_async = lambda request: SimpleNamespace(result=partial(answer, request))
        return client

    def get_logger(self):
        return SimpleNamespace(info=print)

    def set_parameters(self, request):
        for each in request.parameters:
            (self.set[each.name],) = (value for name, value in vars(each.value).items() if name.endswith("_value"))
        return SimpleNamespace(results=[SimpleNamespace(successful=True)])

    def run_episode(self, request):
        self.episodes += 1
        if self.episodes % 3 == 0:
            return SimpleNamespace(success=False, message="the arm is at its limit")
        value = (self.set["kp"] - 3.0) ** 2 + (self.set["delay"] - 4) ** 2
        return SimpleNamespace(success=True, message=str(value))


def test_the_ros_2_node_with_a_stand_in_for_rclpy(tmp_path, monkeypatch):
    for name in ("rclpy", "rclpy.node", *(f"{each}{end}" for each in ("rcl_interfaces", "std_srvs") for end in ENDS)):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    sys.modules["rclpy.node"].Node = Robot
    messages, services = sys.modules["rcl_interfaces.msg"], sys.modules["rcl_interfaces.srv"]
    messages.Parameter = messages.ParameterValue = SimpleNamespace
    services.SetParameters.Request = lambda: SimpleNamespace(parameters=[])
    spec = importlib.util.spec_from_file_location("gibo_tuner", ROOT / "contrib" / "ros2" / "gibo_tuner.py")
    tuner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tuner)
    parameters = Parameters(kp=log(0.1, 100, start=1), delay=integer(1, 9))
    manual.create(tmp_path / "run", manual.Description.of(parameters, minimize=True))
    with ManualBench(tmp_path / "run") as bench, Serve(bench) as server:
        node = tuner.Tuner()
        node.url = server.address
        node.run()
        best = node.request("best")["best"]["parameters"]
        text = json.dumps(node.request("export"))
    assert node.set == best
    assert isinstance(node.set["delay"], int)
    assert text.count("the arm is at its limit") == node.episodes // 3
