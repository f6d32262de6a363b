"""The package as a whole: what it loads, which part may know which, and that what is shown to users runs."""

import ast
import dataclasses
import graphlib
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gibo
from gibo.runs.options import OptionNames, RunOptions

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
STUDIES = ROOT / "studies" / "src"
FILES = sorted((SOURCE / "gibo").rglob("*.py"))

# Each part may import from its own layer and from those above it in this list.
LAYERS = [
    {"errors", "_linalg", "_checks", "_plugins", "_serialize", "outcome"},
    {"parameters"},
    {"kernels", "priors", "means", "observations", "blocks", "gap"},
    {"gp"},
    {"map_fit", "acquisition"},
    {"steps"},
    {"optimizers", "policies"},
    {"runs", "web"},  # a run may have its page beside it
    {"training"},
    {"figures", "integrations"},
    {"cli"},
]
LAYER = {part: i for i, parts in enumerate(LAYERS) for part in parts}

# Parts of one layer that must not know each other, and libraries that only some parts may use.
FORBIDDEN = {
    "optimizers": {"gibo.policies", "gymnasium", "matplotlib", "rich"},
    "policies": {"gibo.optimizers", "gibo.runs"},
    "map_fit": {"gibo.acquisition"},
    "acquisition": {"gibo.map_fit"},
    "kernels": {"gibo.means"},
    "priors": {"gibo.kernels", "gibo.means"},
    "means": {"gibo.priors"},
}

# What only those load who ask for it.
OPTIONAL = ("rich", "matplotlib", "cma", "gymnasium", "optuna", "onnx", "dask", "distributed", "mujoco", "torch")
SLOW = ("scipy.optimize", "scipy.stats")


def module_name(file):
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): ast.parse(file.read_text()) for file in FILES}


def imports(name):
    """All modules that a module imports, wherever in it; of gibo by their full names."""
    found = set()
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute here"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
    return found


def names_in(name):
    """All names and attributes that a module uses."""
    for node in ast.walk(MODULES[name]):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield ast.unparse(node)


def part(name):
    return name.split(".")[1]


INNER = sorted(name for name in MODULES if name not in ("gibo", "gibo.__main__"))


def starts_with(name, package):
    return name == package or name.startswith(package + ".")


# -- what is loaded ---------------------------------------------------------------------------------------------------


def test_import_loads_nothing_optional_and_nothing_slow_and_has_all_names():
    code = (
        f"import sys, gibo; print([name for name in {(*OPTIONAL, *SLOW, 'gibo.policies')!r} if name in sys.modules])\n"
        "gibo.policies.Task, [getattr(gibo, name) for name in gibo.__all__]"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_options_for_type_checkers_are_those_of_the_dataclass():
    ours = {each.name: each.type for each in dataclasses.fields(RunOptions) if each.name != "budget"}
    assert {name: kind.__forward_arg__ for name, kind in OptionNames.__annotations__.items()} == ours


# -- the direction of dependencies ------------------------------------------------------------------------------------


def test_each_part_imports_only_from_the_layers_above_it():
    for name in INNER:
        assert part(name) in LAYER, f"{part(name)} has no place in LAYERS yet"
        for imported in imports(name):
            assert imported != "gibo", f"{name} imports from the package's front; import from the module itself"
            if starts_with(imported, "gibo"):
                assert LAYER[part(imported)] <= LAYER[part(name)], f"{name} must not import {imported}"
            for package in FORBIDDEN.get(part(name), ()):
                assert not starts_with(imported, package), f"{name} must not import {imported}"


def test_nothing_of_gibo_knows_the_studies():
    assert [name for name, file in zip(MODULES, FILES, strict=True) if "gibo_studies" in file.read_text()] == []


def test_no_imports_in_circles():
    graph = {name: {i for i in imports(name) if i in MODULES and i != name} for name in INNER}
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(("i", "package"), [(0, SOURCE / "gibo"), (1, STUDIES / "gibo_studies")])
def test_the_map_in_contributing_is_the_tree(i, package):
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## The map\n")[2]
    named, folder = [], ""
    for line in re.findall(r"^```\n(.*?)^```", text, flags=re.M | re.S)[i].splitlines():
        name = line.split()[0]
        folder = folder if line.startswith(" ") else name if name.endswith("/") else ""
        named.append(folder + name if line.startswith(" ") else name)
    assert len(set(named)) == len(named)
    whole = {
        name for name in named if name.endswith("/") and not any(each.startswith(name) for each in set(named) - {name})
    }
    tree = set()
    for file in package.rglob("*"):
        path = file.relative_to(package).as_posix()
        room = next((each for each in whole if path.startswith(each)), None)
        if room is not None:
            tree.add(room)
        elif file.suffix == ".py":
            tree.add(path.removesuffix("__init__.py") or path)
    assert set(named) == tree


# -- habits -----------------------------------------------------------------------------------------------------------


def test_forbidden_calls_and_imports():
    """Only the command prints; nothing is unpickled or evaluated; nothing private of SciPy is used."""
    for name in INNER:
        used = set(names_in(name))
        assert "print" not in used or name == "gibo.cli"
        assert not used & {"eval", "exec", "os._exit", "locals"}
        assert not {"pickle", "marshal", "shelve", "joblib", "dill"} & {each.split(".")[0] for each in imports(name)}
        for each in [*imports(name), *used]:
            assert not re.match(r"scipy(\.\w+)*\._", each), f"{name} uses {each}"


def test_a_constant_has_one_name_and_one_home():
    """Upper-case names of two modules are two names, unless one module imports the other's."""
    homes = {}
    for name, tree in MODULES.items():
        for node in tree.body:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            for each in ast.walk(ast.Tuple([target for target in targets if target is not None])):
                if isinstance(each, ast.Name) and each.id.isupper() and len(each.id) > 1:
                    homes.setdefault(each.id, set()).add(name)
    assert homes
    assert {constant: modules for constant, modules in homes.items() if len(modules) > 1} == {}


def test_no_module_is_much_longer_than_400_lines():
    lines = {module_name(file): len(file.read_text().splitlines()) for file in FILES}
    assert {name: count for name, count in lines.items() if count > 420} == {}


# -- version ----------------------------------------------------------------------------------------------------------


def test_project_and_changelog_have_the_version():
    assert gibo.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    versions = re.findall(r"^## \[?v?(\d+\.\d+\.\d+[\w.+-]*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert versions[0] == gibo.__version__


# -- what is shown to users -------------------------------------------------------------------------------------------


def blocks():
    """The programs in the README and the documentation, with the names of their files."""
    return [
        (page.name, code)
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        if page.name != "serve.md"  # its programs start the command gibo; tests/web runs them
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize(("name", "code"), blocks(), ids=[f"{name}-{i}" for i, (name, _) in enumerate(blocks())])
def test_programs_of_the_documentation_run(name, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    exec(compile(code, name, "exec"), {"__name__": "__main__"})


def run_program(command, folder):
    environment = {**os.environ, "GIBO_EXAMPLE_QUICK": "1", "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{ROOT / 'examples'}:{os.environ.get('PYTHONPATH', '')}"  # for train_arm.sh
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # for python
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def in_bash(code):
    return ["bash", "-c", f'gibo() {{ python -m gibo "$@"; }}; set -e\n{code}']


def test_front_pages_show_what_is_printed_and_measured_today():
    """Of the numbers, the first digits: other processors round otherwise."""
    outputs = runpy.run_path(str(ROOT / "docs" / "outputs.py"))
    number = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:e-?\d+)?")
    for page in outputs["PAGES"]:
        shown = page.read_text(encoding="utf-8")
        today = outputs["current"](shown)
        assert number.sub("#", today) == number.sub("#", shown), f"{page}: run python docs/outputs.py"
        values = [[float(each.replace("−", "-")) for each in number.findall(text)] for text in (shown, today)]
        assert values[0] == pytest.approx(values[1], rel=0.02, abs=0.02), f"{page}: run python docs/outputs.py"


def test_every_code_of_advice_is_in_the_troubleshooting_page():
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    calls = [node for tree in MODULES.values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    codes = {ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "Advice"}
    assert {code for code in codes if f"`{code}`" not in page} == set()


EXAMPLES = sorted([*(ROOT / "examples").glob("*.*"), *(ROOT / "studies" / "examples").glob("*.py")])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example, tmp_path):
    python = [sys.executable, "-W", "error", str(example)]
    run_program(in_bash(f". {shlex.quote(str(example))}") if example.suffix == ".sh" else python, tmp_path)


def test_the_site_builds_and_every_link_leads_somewhere(tmp_path):
    """Each link and picture that leads nowhere is a warning of Sphinx."""
    for module in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(module, reason=f"{module} is not installed (the extra docs)")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(ROOT / "docs")]
    run_program([*command, str(tmp_path)], tmp_path)
    built = {page.stem for page in tmp_path.glob("*.html")}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= built


def test_blas_is_held_to_one_thread_in_a_process_that_set_nothing():
    code = (
        "import gibo\n"
        "from gibo._linalg import single_thread\n"
        "with single_thread():\n"
        "    gibo.GIBO([0.0, 0.0]).ask()\n"
        "    from threadpoolctl import threadpool_info\n"
        "    print([pool['num_threads'] for pool in threadpool_info() if pool['user_api'] == 'blas'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    threads = ast.literal_eval(done.stdout)
    assert threads
    assert set(threads) == {1}
