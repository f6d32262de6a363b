"""The event file read back with TensorBoard's protocol."""

import struct
import sys

import numpy as np
import pytest

import gibo
from gibo import InputError
from gibo.integrations.tensorboard import TensorBoard


def bowl(x):
    return -float(((x - 1.0) ** 2).sum())


def curves(folder):
    """Per name the (step, value) pairs of a folder's only event file."""
    from tensorboardX.proto import event_pb2

    (path,), found = folder.glob("events.out.tfevents.*"), {}
    content = path.read_bytes()
    while content:  # length, its checksum, the event, its checksum
        (length,) = struct.unpack("<Q", content[:8])
        event, content = event_pb2.Event.FromString(content[12 : 12 + length]), content[16 + length :]
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_the_file_holds_the_run(tmp_path):
    with TensorBoard(tmp_path / "logs") as board:
        result = gibo.maximize(bowl, [0.0, 0.0], budget=21, scale=0.3, callback=board)
        board(result)  # the last iteration
    found = curves(tmp_path / "logs")
    assert [step for step, _ in found["gibo/value"]] == list(range(1, 22))
    np.testing.assert_allclose([value for _, value in found["gibo/value"]], result.history.value, rtol=1e-6)
    assert [step for step, _ in found["gibo/certainty"]] == result.history.evaluations.tolist()
    np.testing.assert_allclose([value for _, value in found["gibo/uncertainty"]], result.history.uncertainty, rtol=1e-6)
    assert found["gibo/believed"][-1] == (21, pytest.approx(result.value, rel=1e-6))


def test_a_file_in_its_place_and_a_missing_extra_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        TensorBoard(tmp_path / "file" / "logs")
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(gibo.errors.MissingExtraError, match="tensorboard"):
        TensorBoard(tmp_path)
