"""The event file read back: by a small reader of its own and, where it is installed, by TensorBoard's protocol."""

import struct

import numpy as np
import pytest

import gibo
from gibo import InputError
from gibo.integrations.tensorboard import TensorBoard, crc32c


def bowl(x):
    return -float(((x - 1.0) ** 2).sum())


def records(path):
    """The events in a file, as bytes, with their checksums checked."""
    content, found = path.read_bytes(), []

    def unmask(masked):
        rotated = (masked - 0xA282EAD8) % 2**32
        return (rotated >> 17 | rotated << 15) % 2**32

    while content:
        (length,), (check,) = struct.unpack("<Q", content[:8]), struct.unpack("<I", content[8:12])
        event, (event_check,) = content[12 : 12 + length], struct.unpack("<I", content[12 + length : 16 + length])
        assert crc32c(content[:8]) == unmask(check)
        assert crc32c(event) == unmask(event_check)
        found.append(event)
        content = content[16 + length :]
    return found


def fields(message):
    """Number, value of each field of a protocol buffer."""
    i = 0

    def varint():
        nonlocal i
        number, shift = 0, 0
        while True:
            byte = message[i]
            i += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while i < len(message):
        number, wire = divmod(varint(), 8)
        size = {0: None, 1: 8, 2: None, 5: 4}[wire]
        if wire == 0:
            yield number, varint()
            continue
        size = varint() if wire == 2 else size
        yield number, message[i : i + size]
        i += size


def curves(path):
    """Per name the (step, value) pairs."""
    found = {}
    for event in records(path)[1:]:
        parts = dict(fields(event))
        for _, value in fields(parts[5]):
            tag, number = dict(fields(value)).values()
            found.setdefault(tag.decode(), []).append((parts[2], struct.unpack("<f", number)[0]))
    return found


@pytest.fixture
def run(tmp_path):
    with TensorBoard(tmp_path / "logs") as board:
        result = gibo.maximize(bowl, [0.0, 0.0], budget=21, scale=0.3, callback=board)
        board(result)  # the last iteration
    return result, board.path


def test_the_file_begins_with_its_version_and_holds_the_run(run):
    result, path = run
    assert path.name.startswith("events.out.tfevents.")
    assert dict(fields(records(path)[0]))[3] == b"brain.Event:2"
    found = curves(path)
    assert [step for step, _ in found["gibo/value"]] == list(range(1, 22))
    np.testing.assert_allclose([value for _, value in found["gibo/value"]], result.history.value, rtol=1e-6)
    assert [step for step, _ in found["gibo/certainty"]] == result.history.evaluations.tolist()
    np.testing.assert_allclose([value for _, value in found["gibo/uncertainty"]], result.history.uncertainty, rtol=1e-6)
    assert found["gibo/believed"][-1] == (21, pytest.approx(result.value, rel=1e-6))


def test_the_protocol_buffers_are_tensorboards(run):
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2", reason="needs tensorboardX, to compare with")
    _, path = run
    events = [event_pb2.Event.FromString(event) for event in records(path)]
    assert events[0].file_version == "brain.Event:2"
    points = [(e.step, v.tag, v.simple_value) for e in events[1:] for v in e.summary.value]
    expected = [(step, tag, value) for tag, pairs in curves(path).items() for step, value in pairs]
    assert sorted(points) == sorted(expected)


def test_own_curves_large_steps_and_what_is_not_finite(tmp_path):
    with TensorBoard(tmp_path) as board:
        board.write({"ä": 1.5, "b": float("nan")}, step=300)
        board.write({"b": float("inf")}, step=2**40)
        board.write({"b": -2.0}, step=2**40)
    assert curves(board.path) == {"ä": [(300, 1.5)], "b": [(2**40, -2.0)]}


def test_failed_evaluations_are_gaps(tmp_path):
    calls = iter(range(100))

    def flaky(x):
        if next(calls) == 3:
            raise ValueError("dropped")
        return bowl(x)

    with TensorBoard(tmp_path) as board, pytest.warns(gibo.FailedEvaluationWarning):
        gibo.maximize(flaky, [0.0, 0.0], budget=15, scale=0.3, callback=board)
    steps = [step for step, _ in curves(board.path)["gibo/value"]]
    assert 4 not in steps
    assert steps[:4] == [1, 2, 3, 5]


def test_it_does_not_stop_the_run_and_a_file_in_its_place_is_refused(tmp_path, run):
    assert run[0].evaluations == 21
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        TensorBoard(tmp_path / "file" / "logs")
