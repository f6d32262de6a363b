"""A policy without Python: a C header for a microcontroller, an ONNX file for an inference engine.

Both compute the same as `Policy`: the first layer includes the normalisation of states, the outputs are clipped to the
actions' bounds, and the largest output chooses a discrete action (with two actions, the sign of one output). Sums may
have another order, so that numbers agree up to rounding, and a discrete action may differ if two outputs are that
close.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from gibo._checks import instance, one_of, shown
from gibo._linalg import Array
from gibo.errors import InputError, missing_extra
from gibo.policies.policy import ContinuousActions, Policy, write_whole

Precision: TypeAlias = Literal["double", "float"]

# Version of ONNX: old enough for common engines, new enough for all operators used here.
OPSET, IR_VERSION = 13, 8


def to_c(policy: Policy, name: str = "gibo_policy", precision: Precision = "double") -> str:
    """A header in C99, which is also C++, that needs only ``math.h``.

    It defines, for continuous and discrete actions::

        static void gibo_policy(const double *observation, double *action);
        static int gibo_policy(const double *observation);

    and ``GIBO_POLICY_OBSERVATIONS`` and ``GIBO_POLICY_ACTIONS``, the sizes of these arrays (row by row for several
    dimensions). It allocates no memory and keeps no state.

    Args:
        policy: the policy.
        name: name of the function.
        precision: "double", or "float" for a machine without fast doubles.
    """
    _check(policy, precision)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,60}", name, flags=re.ASCII):
        raise InputError(f"name: expected a valid name of a C function, such as gibo_policy, got {shown(name)}")
    layers, continuous = _layers(policy), isinstance(policy.actions, ContinuousActions)
    inputs, outputs = layers[0][0].shape[1], len(layers[-1][0])
    tanh = "tanh(sum)" if precision == "double" else "tanhf(sum)"
    squash = "sum < 0 ? 0 : sum" if policy.architecture.is_relu else tanh
    head = f"int {name}(const {precision} *observation)"
    if continuous:
        head = f"void {name}(const {precision} *observation, {precision} *action)"
    constants, sums = [], []
    for i, (W, b) in enumerate(layers):
        h, k = W.shape
        rows = [", ".join(_number(value, precision) for value in row.tolist()) for row in (*W, b)]
        constants += [f"    static const {precision} W{i}[{h}][{k}] = {{", *(f"        {{{r}}}," for r in rows[:-1])]
        constants += [
            "    };",
            f"    static const {precision} b{i}[{h}] = {{{rows[-1]}}};",
            f"    {precision} h{i}[{h}];",
        ]
        sums += [
            f"    for (i = 0; i < {h}; i++) {{",
            f"        {precision} sum = b{i}[i];",
            f"        for (j = 0; j < {k}; j++) sum += W{i}[i][j] * {f'h{i - 1}' if i else 'observation'}[j];",
            f"        h{i}[i] = {'sum' if i == len(layers) - 1 else squash};",
            "    }",
        ]
    lines = [
        f"/* {policy.architecture.text} policy: {inputs} numbers in, "
        f"{f'{outputs} out' if continuous else 'the number of an action out'}. Written by gibo. */",
        f"#ifndef {name.upper()}_H\n#define {name.upper()}_H\n\n#include <math.h>\n",
        f"#define {name.upper()}_OBSERVATIONS {inputs}",
        f"#define {name.upper()}_ACTIONS {outputs if continuous else 1}\n",
        f"static {head}\n{{",
        *constants,
        "    int i, j;\n",
        *sums,
        *_c_actions(policy, f"h{len(layers) - 1}", precision),
        f"}}\n\n#endif /* {name.upper()}_H */\n",
    ]
    return "\n".join(lines)


def save_c(
    policy: Policy, path: str | os.PathLike[str], name: str = "gibo_policy", precision: Precision = "double"
) -> None:
    """Write the result of `to_c` to a file, such as ``policy.h``."""
    write_whole(path, to_c(policy, name, precision).encode("ascii"))


def to_onnx(policy: Policy, precision: Precision = "double") -> Any:
    """An ``onnx.ModelProto``; needs the extra: ``pip install '.[onnx]'``.

    Its input ``observation`` has n observations, shape (n, …). Its output ``action`` has n actions in their shape and
    type, or n whole numbers (int64).

    Args:
        policy: the policy.
        precision: of the computation and the input: "double", or "float" for engines without doubles.
    """
    _check(policy, precision)
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise missing_extra("an ONNX file needs the onnx package", "onnx") from error
    dtype = np.dtype(np.float64 if precision == "double" else np.float32)
    constants: dict[str, npt.NDArray[Any]] = {}
    nodes: list[Any] = []
    names = ["observation"]

    def then(operator: str, *inputs: npt.NDArray[Any], **attributes: Any) -> None:
        """Add a node that takes the last result and these constants."""
        given = [names[-1]]
        for value in inputs:
            given.append(f"c{len(constants)}")
            constants[given[-1]] = value
        names.append(f"h{len(nodes)}")
        nodes.append(helper.make_node(operator, given, [names[-1]], **attributes))

    layers, actions = _layers(policy), policy.actions
    shape = policy.observation_shape or ()
    if len(shape) != 1:
        then("Flatten", axis=1)
    for i, (W, b) in enumerate(layers):
        then("Gemm", W.astype(dtype), b.astype(dtype), transB=1)
        if i < len(layers) - 1:
            then("Relu" if policy.architecture.is_relu else "Tanh")
    if isinstance(actions, ContinuousActions):
        low, high = actions.low.reshape(-1).astype(dtype), actions.high.reshape(-1).astype(dtype)
        if np.isfinite(low).any():
            then("Max", low)
        if np.isfinite(high).any():
            then("Min", high)
        if len(actions.shape) != 1:
            then("Reshape", np.array([-1, *actions.shape], dtype=np.int64))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(actions.dtype))
        then("Cast", to=kind)
        output: tuple[Any, list[Any]] = (kind, ["n", *actions.shape])
    else:
        if actions.n == 2:
            then("Greater", np.array(0.0, dtype=dtype))
            then("Cast", to=TensorProto.INT64)
            then("Reshape", np.array([-1], dtype=np.int64))
        else:
            then("ArgMax", axis=1, keepdims=0)
        then("Add", np.array(actions.start, dtype=np.int64))
        output = (TensorProto.INT64, ["n"])
    nodes[-1].output[0] = "action"
    graph = helper.make_graph(
        nodes,
        "gibo_policy",
        [helper.make_tensor_value_info("observation", helper.np_dtype_to_tensor_dtype(dtype), ["n", *shape])],
        [helper.make_tensor_value_info("action", *output)],
        [numpy_helper.from_array(np.ascontiguousarray(value), key) for key, value in constants.items()],
    )
    model = helper.make_model(
        graph, producer_name="gibo", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    onnx.checker.check_model(model)
    return model


def save_onnx(policy: Policy, path: str | os.PathLike[str], precision: Precision = "double") -> None:
    """Write the result of `to_onnx` to a file, such as ``policy.onnx``."""
    write_whole(path, to_onnx(policy, precision).SerializeToString())


# -- parts ------------------------------------------------------------------------------------------------------------


def _layers(policy: Policy) -> list[tuple[Array, Array]]:
    """W and b of each layer."""
    return [(W, np.zeros(len(W)) if b is None else b) for W, b in policy.layers()]


def _c_actions(policy: Policy, h: str, precision: str) -> list[str]:
    """The code from the outputs to the action."""
    actions = policy.actions
    if not isinstance(actions, ContinuousActions):
        if actions.n == 2:
            return [f"    return {h}[0] > 0 ? {actions.start + 1} : {actions.start};"]
        return [
            "    j = 0;",
            f"    for (i = 1; i < {actions.n}; i++) if ({h}[i] > {h}[j]) j = i;",
            f"    return {actions.start} + j;",
        ]
    lines = []
    for k, (low, high) in enumerate(zip(actions.low.reshape(-1), actions.high.reshape(-1), strict=True)):
        if np.isfinite(low):
            lines.append(f"    if ({h}[{k}] < {_number(low, precision)}) {h}[{k}] = {_number(low, precision)};")
        if np.isfinite(high):
            lines.append(f"    if ({h}[{k}] > {_number(high, precision)}) {h}[{k}] = {_number(high, precision)};")
    return [*lines, f"    for (i = 0; i < {actions.outputs}; i++) action[i] = {h}[i];"]


def _number(value: float, precision: str) -> str:
    """A constant of C with all of its digits, with a point or an exponent, so that it is no int."""
    if precision == "double":
        return repr(float(value))
    text = f"{float(np.float32(value)):.9g}"
    return f"{text}f" if re.search(r"[.e]", text) else f"{text}.0f"


def _check(policy: Any, precision: Any) -> None:
    instance("policy", policy, Policy, "a gibo.policies.Policy, such as load_policy gives,")
    one_of("precision", precision, ("double", "float"))
    if precision == "float" and any(np.abs(each).max() > np.finfo(np.float32).max for each in sum(_layers(policy), ())):
        raise InputError('precision: the weights are too large for "float"; use "double"')
