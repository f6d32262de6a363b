"""The folder in the form that the registry of OptunaHub wants: README with its header, LICENSE, module, example."""

import importlib.util
import inspect
import re
import runpy
import sys
import types
from pathlib import Path

import pytest

from gibo.integrations.optuna import GIBOSampler

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = ROOT / "contrib" / "optunahub" / "package"
FOLDER = REGISTRY / "samplers" / "gibo"
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def load_module(package, **_):
    """As optunahub does: the folder as a module, from its __init__.py."""
    spec = importlib.util.spec_from_file_location("hub_package", REGISTRY / package / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def optunahub(monkeypatch):
    module = types.ModuleType("optunahub")
    module.load_module = load_module
    monkeypatch.setitem(sys.modules, "optunahub", module)


def test_the_folder_and_its_header_hold_what_the_registry_checks():
    names = {path.name for path in FOLDER.iterdir() if path.name != "__pycache__"}
    assert names == {"LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt"}
    assert (FOLDER / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    found = re.match(r"---\n(.*?)\n---\n", README, flags=re.DOTALL)
    header = dict(line.split(": ", 1) for line in found[1].splitlines())
    assert set(header) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert "sampler" in header["tags"].strip("[]").split(", ")
    assert re.fullmatch(r"\[\d+\.\d+\.\d+(, \d+\.\d+\.\d+)*\]", header["optuna_versions"])


def test_the_documented_arguments_are_the_samplers():
    arguments = set(inspect.signature(GIBOSampler).parameters)
    assert set(re.findall(r"^  - `(\w+)`:", README, flags=re.MULTILINE)) == arguments
    assert load_module("samplers/gibo").GIBOSampler is GIBOSampler


@pytest.mark.usefixtures("optunahub")
def test_the_example_and_the_program_of_the_readme_run(capsys):
    runpy.run_path(str(FOLDER / "example.py"), run_name="__main__")
    assert "'gain'" in capsys.readouterr().out
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), names := {})
    assert names["study"].best_value < 0.05
