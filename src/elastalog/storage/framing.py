"""Frames of a journal: each says how long it is and carries a checksum that continues the one before.

    frame: b"ELOG"  length of the payload (u32)  CRC-32 of those eight bytes (u32)  payload  SHA-256 (32 bytes)

Numbers are little-endian. The SHA-256 is taken over that of the frame before and the payload as stored, so a frame
cannot be moved, left out, or come from elsewhere unnoticed. Payloads longer than a page are compressed with zlib;
that also keeps pages of zeros out of them, which is how a page that was never written is recognised after a power
failure.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from hashlib import sha256

from elastalog.late import dataclass

MAGIC = b"ELOG"
START = b"\0" * 32
"""The checksum that the first frame of a file continues."""

_PAGE = 4096
_HEAD = struct.Struct("<4sII")
_DIGEST = 32
_PLAIN, _PACKED = b"\0", b"\1"


class FrameDamaged(Exception):
    """A frame that is not what was written, and no unfinished write either."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Frame:
    """A payload, the checksum to continue with, and where the next frame starts."""

    payload: bytes
    digest: bytes
    end: int


def frame(payload: bytes, digest: bytes) -> tuple[bytes, bytes]:
    """The bytes of a frame after one with a checksum, and its own checksum."""
    stored = _PACKED + zlib.compress(payload, 1) if len(payload) > _PAGE // 2 else _PLAIN + payload
    head = MAGIC + struct.pack("<I", len(stored))
    own = sha256(digest + stored).digest()
    return head + struct.pack("<I", zlib.crc32(head)) + stored + own, own


def read_frames(data: bytes) -> Iterator[Frame]:
    """The frames of a file, up to its end or to an unfinished write. Raises FrameDamaged for anything else."""
    digest, offset = START, 0
    while offset + _HEAD.size <= len(data):
        magic, length, check = _HEAD.unpack_from(data, offset)
        if magic != MAGIC or check != zlib.crc32(data[offset : offset + 8]):
            if _has_unwritten_page(data, offset, offset + _HEAD.size) and not _has_record(data, offset):
                return
            raise FrameDamaged(offset, f"no record starts at byte {offset}")
        end = offset + _HEAD.size + length + _DIGEST
        if end > len(data):
            return
        stored = data[offset + _HEAD.size : end - _DIGEST]
        digest = sha256(digest + stored).digest()
        if digest != data[end - _DIGEST : end]:
            if end == len(data) and _has_unwritten_page(data, offset, end):
                return
            raise FrameDamaged(offset, f"the checksum of the record at byte {offset} does not match")
        payload = zlib.decompress(stored[1:]) if stored[:1] == _PACKED else stored[1:]
        yield Frame(payload, digest, end)
        offset = end


def _has_record(data: bytes, start: int) -> bool:
    """Whether a record seems to start behind some byte. Then what is there was on the disk before it, and is damaged:
    an unfinished write is the last."""
    while (start := data.find(MAGIC, start + 1)) >= 0:
        if start + _HEAD.size <= len(data):
            _, _, check = _HEAD.unpack_from(data, start)
            if check == zlib.crc32(data[start : start + 8]):
                return True
    return False


def _has_unwritten_page(data: bytes, start: int, end: int) -> bool:
    """Whether the part of some page within a range is all zeros."""
    while start < end:
        stop = min(end, (start // _PAGE + 1) * _PAGE)
        if not any(data[start:stop]):
            return True
        start = stop
    return False
