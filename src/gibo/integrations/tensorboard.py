"""Curves of a run for TensorBoard, without TensorBoard: ``gibo.maximize(..., callback=TensorBoard("logs/run"))``.

An event file is a sequence of records; each is a protocol buffer of the type Event between its length and checksums:

    length (uint64)   checksum of the length (uint32)   the bytes   their checksum (uint32)      all little-endian

    Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
    Summary { repeated Value value = 1; }     Value { string tag = 1; float simple_value = 2; }

A checksum is CRC-32C, rotated by 15 bits, plus a constant. This is all that scalars need, so nothing is installed.
"""

from __future__ import annotations

import os
import secrets
import struct
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from gibo._checks import as_number, as_path, instance, natural
from gibo.errors import InputError
from gibo.integrations.events import events

if TYPE_CHECKING:
    from gibo.runs.result import Result


LARGEST = 3.4e38  # that a float of 32 bits holds


class TensorBoard:
    """Write the curves of a run, to be seen with ``tensorboard --logdir logs``.

    As a callback it writes after each iteration, at the number of evaluations spent: ``gibo/value`` (every evaluation's
    own), ``gibo/believed`` (what the model expects of the point that it recommends), ``gibo/uncertainty`` (trace of the
    gradient's covariance), ``gibo/probability_of_ascent`` and ``gibo/certainty``; in a run of gibo train also
    ``gibo/return``. `write` writes whatever you like.

    Args:
        folder: for the event file; made if it is not there. Each object writes a file of its own.

    Example:
        >>> import gibo, tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TensorBoard(folder) as board:
        ...     result = gibo.maximize(lambda x: -float(x @ x), [1.0, 1.0], budget=10, callback=board)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        name = f"events.out.tfevents.{int(time.time())}.gibo.{os.getpid()}.{secrets.token_hex(4)}"
        folder = as_path("folder", folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path = folder / name
            self._file = self.path.open("xb")
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
        self._events = events(
            lambda event: self.write({f"gibo/{name}": number for name, number in event.numbers.items()}, event.step)
        )
        self._record(_field(3, b"brain.Event:2"))

    def __call__(self, result: Result) -> None:
        """Write what has come since the last call."""
        self._events(result)

    def write(self, curves: Mapping[str, float], step: int) -> None:
        """Write a point of each curve, by its name; what a float of 32 bits cannot hold is left out."""
        step = natural("step", step)
        numbers = {
            instance("curves", tag, str, "names"): as_number(f"curves: {tag!r}", value)
            for tag, value in instance("curves", curves, Mapping, "numbers by name").items()
        }
        values = [
            _field(1, _field(1, tag.encode("utf-8", "backslashreplace")) + _key(2, 5) + struct.pack("<f", value))
            for tag, value in numbers.items()
            if abs(value) <= LARGEST
        ]
        if values:
            self._record(_key(2, 0) + _varint(step) + _field(5, b"".join(values)))

    def close(self) -> None:
        """Close the file; what was written is there before, too."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _record(self, fields: bytes) -> None:
        event = _key(1, 1) + struct.pack("<d", time.time()) + fields
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))
        self._file.flush()


# -- protocol buffers -------------------------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    parts = []
    while number > 127:
        parts.append(number % 128 | 128)
        number //= 128
    return bytes([*parts, number])


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _field(number: int, content: bytes) -> bytes:
    """A field with a length: text or a message."""
    return _key(number, 2) + _varint(len(content)) + content


# -- checksums --------------------------------------------------------------------------------------------------------


def _table() -> list[int]:
    """CRC-32C of each byte; the polynomial is 0x1EDC6F41, its bits reversed."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # noqa: PLW2901
        table.append(byte)
    return table


TABLE = _table()


def crc32c(content: bytes) -> int:
    """The CRC-32C (Castagnoli) of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _checksum(content: bytes) -> bytes:
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)
