"""Places that are not on this machine: `s3://`, `gs://`, `abfs://`, `hdfs://`. How they are read: `remote`."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(place: object) -> bool:
    """Whether a place is an address, not a path on this machine."""
    return isinstance(place, str) and _ADDRESS.match(place) is not None
