"""Places that are not on this machine: `s3://`, `gs://`, `abfs://`, `hdfs://`."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+://")
_SECRET = re.compile(r"(?i)(?<=[?&;,(\s])([\w.]*(?:password|passwd|pwd|secret|token)\w*=)[^&;,)\s`]+")
_USER = re.compile(r"(//[^/?#@:\s]*:)[^/?#@\s]*(?=@)")
_ORACLE = re.compile(r"(jdbc:oracle:\w+:[^/@:\s]+/)[^@\s]+(?=@)")


def is_address(place: object) -> bool:
    """Whether a place is an address, not a path on this machine."""
    return isinstance(place, str) and _ADDRESS.match(place) is not None


def without_secrets(text: str) -> str:
    """An address, or a text in which one stands, with `***` for passwords."""
    return _ORACLE.sub(r"\1***", _USER.sub(r"\1***", _SECRET.sub(r"\1***", text)))


def inside(folder: str, name: str) -> str:
    """The location of a file, or folder, in a folder. What an address asks for behind `?` stays behind."""
    path, mark, query = folder.partition("?") if is_address(folder) else (folder, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{query}"


def name_in(location: str) -> str:
    """The last part of a location: the name of the file."""
    path = location.partition("?")[0] if is_address(location) else location
    return path.rstrip("/").rpartition("/")[2]
