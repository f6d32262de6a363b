"""Exported policies act as ours do: C compiled by the system's compiler, ONNX run by its engine."""

import shutil
import subprocess

import numpy as np
import pytest
from test_policy import CASES, K, some_observations, some_policy

from gibo import InputError
from gibo.policies import ContinuousActions, DiscreteActions, Linear, Policy
from gibo.policies.export import save_c, to_c, to_onnx

SHAPES = {"vector": (K,), "matrix": (2, 3)}
# Each pair of an architecture and actions once, raw and normalised in turn.
SOME = [case for i, case in enumerate(CASES) if (i // 2 + i // 12 + i) % 2 == 0]


def ours(policy):
    return np.array([policy(observation) for observation in some_observations(policy)])


def outputs_are_apart(policy, precision):
    """Where another order of a sum does not decide between two actions."""
    free = ContinuousActions(*[np.full(policy.actions.outputs, side) for side in (-np.inf, np.inf)], "float64")
    raw = Policy(policy.architecture, policy.theta, free, policy.normalization, policy.observation_shape)
    h = ours(raw)
    h = np.c_[h, np.zeros(len(h))] if policy.actions.outputs == 1 else h
    top = np.sort(h, axis=1)
    return top[:, -1] - top[:, -2] > (1e-12 if precision == "double" else 1e-4)


def assert_alike(policy, found, precision):
    expected = ours(policy)
    found = np.asarray(found).reshape(expected.shape)
    if isinstance(policy.actions, DiscreteActions):
        apart = outputs_are_apart(policy, precision)
        assert apart.sum() > 20
        assert len(set(expected[apart])) > 1
        np.testing.assert_array_equal(found[apart], expected[apart])
    else:
        single = precision == "float" or policy.actions.dtype == "float32"
        # A state's normalisation in floats loses digits: mean/std is up to 10, and a standard deviation is 1e-3.
        np.testing.assert_allclose(found, expected, rtol=1e-4 if single else 1e-11, atol=1e-4 if single else 1e-11)


COMPILERS = {"c": shutil.which("cc") or shutil.which("gcc"), "c++": shutil.which("c++") or shutil.which("g++")}


def program(policies, precision):
    """All policies in one file; it prints their actions, one observation a line."""
    lines = ["#include <stdio.h>"]
    calls = []
    for i, policy in enumerate(policies):
        lines += [to_c(policy, f"policy_{i}", precision)]
        S = some_observations(policy).reshape(-1, K).tolist()
        rows = ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in S)
        lines += [f"static const double observations_{i}[][{K}] = {{{rows}}};"]
        calls += [f"    for (n = 0; n < {len(S)}; n++) {{"]
        calls += [f"        for (k = 0; k < {K}; k++) s[k] = ({precision})observations_{i}[n][k];"]
        if isinstance(policy.actions, DiscreteActions):
            calls += [f'        printf("%d\\n", policy_{i}(s));']
        else:
            calls += [f"        policy_{i}(s, a);"]
            calls += [f'        for (k = 0; k < POLICY_{i}_ACTIONS; k++) printf("%.17g ", (double)a[k]);']
            calls += ['        printf("\\n");']
        calls += ["    }"]
    body = [f"    {precision} s[{K}], a[8];", "    int n, k;", "    (void)a;", *calls, "    return 0;"]
    return "\n".join([*lines, "int main(void)", "{", *body, "}", ""])


@pytest.mark.parametrize(("precision", "language"), [("double", "c"), ("float", "c++")])
def test_the_header_compiles_without_a_warning_and_acts_as_ours(tmp_path, precision, language):
    if COMPILERS[language] is None:
        pytest.skip(f"there is no {language} compiler here")
    policies = [some_policy(*case, shape) for case in CASES for shape in SHAPES.values()]
    source = tmp_path / f"main.{language.replace('++', 'pp')}"
    source.write_text(program(policies, precision), encoding="ascii")
    standard = {"c": "-std=c99", "c++": "-std=c++11"}[language]
    flags = [standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]
    built = tmp_path / "main"
    compile_ = [COMPILERS[language], *flags, str(source), "-o", str(built), "-lm"]
    done = subprocess.run(compile_, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = subprocess.run([str(built)], capture_output=True, text=True, check=True).stdout.splitlines()
    for policy in policies:
        found, lines = lines[:40], lines[40:]
        assert_alike(policy, [[float(word) for word in line.split()] for line in found], precision)
    assert lines == []


def test_constants_keep_all_digits_and_are_never_ints():
    policy = Policy(Linear(3, 1), [1 / 3, 1e22, 5.0], ContinuousActions([-np.inf], [1.0], "float64"))
    assert "{0.3333333333333333, 1e+22, 5.0}" in to_c(policy)
    assert "{0.333333343f, 9.99999978e+21f, 5.0f}" in to_c(policy, precision="float")


def engine(model):
    """ONNX Runtime where it is, else ONNX's own slow interpreter."""
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("net", "actions", "normalization"), SOME)
def test_the_onnx_file_acts_as_ours(net, actions, normalization, shape, precision):
    pytest.importorskip("onnx")
    policy = some_policy(net, actions, normalization, SHAPES[shape])
    S = some_observations(policy).astype(np.float64 if precision == "double" else np.float32)
    (found,) = engine(to_onnx(policy, precision)).run(None, {"observation": S})
    expected = ours(policy)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert_alike(policy, found, precision)


@pytest.mark.parametrize(
    ("export", "message"),
    [
        (lambda: to_c("policy.json"), "such as load_policy gives"),
        (lambda: to_c(some_policy(), name="1st"), "valid name of a C function"),
        (lambda: to_c(some_policy(), precision="half"), "'double', 'float'"),
        (lambda: to_c(Policy(Linear(1, 1), [1e300], DiscreteActions(2)), precision="float"), "too large"),
        (lambda: save_c(some_policy(), "/nowhere/policy.h"), "cannot be written"),
    ],
)
def test_what_cannot_be_exported_is_refused(export, message):
    with pytest.raises(InputError, match=message):
        export()
