"""Limits as users write them: `2G` of memory, `30s` of time. The functions are callbacks of options."""

from __future__ import annotations

import re
from typing import Final, Literal

import click

_UNITS_OF_MEMORY: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS_OF_TIME: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_MEMORY: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)
_TIME: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(ms|s|min|m|h|)")


def memory_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of bytes, with a unit of 1024 (`512M`, `2G`, `1.5GiB`) or without."""
    if value is None:
        return None
    found = _MEMORY.fullmatch(value.strip())
    size = int(float(found[1]) * _UNITS_OF_MEMORY[found[2].lower()]) if found else 0
    if size <= 0:
        raise click.BadParameter(f"'{value}' is not an amount of memory: write it as 512M or 2G.", ctx, param)
    return size


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A number of seconds, with a unit (`500ms`, `30s`, `5m`, `2h`) or without."""
    if value is None:
        return None
    found = _TIME.fullmatch(value.strip())
    seconds = float(found[1]) * _UNITS_OF_TIME[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"'{value}' is not a time: write it as 30s, 5m or 2h.", ctx, param)
    return seconds


def update_budget(ctx: click.Context, param: click.Parameter, value: str) -> float | Literal["auto"] | None:
    """`auto`, a fraction of a bootstrap, or `none` for updates without limit."""
    if value.lower() == "none":
        return None
    if value.lower() == "auto":
        return "auto"
    try:
        budget = float(value)
    except ValueError:
        budget = -1.0
    if not 0 <= budget < float("inf"):
        raise click.BadParameter(f"'{value}' is not a budget: write auto, a fraction such as 0.2, or none.", ctx, param)
    return budget
