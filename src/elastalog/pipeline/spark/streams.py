"""Update streams."""

from __future__ import annotations


class StreamHandle: ...


def apply_updates(): ...
def change_feed(): ...
