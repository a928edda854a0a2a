"""Limits as users write them: `2G` of memory, `30s` of time."""

from __future__ import annotations

import re
from typing import Any, Final

import click

_UNITS_OF_MEMORY: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS_OF_TIME: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_MEMORY: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)
_TIME: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(ms|s|min|m|h|)")


class MemorySize(click.ParamType):
    """A number of bytes, with a unit of 1024 (`512M`, `2G`, `1.5GiB`) or without."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _MEMORY.fullmatch(str(value).strip())
        size = int(float(found[1]) * _UNITS_OF_MEMORY[found[2].lower()]) if found else 0
        if size <= 0:
            self.fail(f"'{value}' is not an amount of memory: write it as 512M or 2G.", param, ctx)
        return size


class Duration(click.ParamType):
    """A number of seconds, with a unit (`500ms`, `30s`, `5m`, `2h`) or without."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = _TIME.fullmatch(str(value).strip())
        seconds = float(found[1]) * _UNITS_OF_TIME[found[2]] if found else 0.0
        if seconds <= 0:
            self.fail(f"'{value}' is not a time: write it as 30s, 5m or 2h.", param, ctx)
        return seconds


class Budget(click.ParamType):
    """A fraction of a bootstrap, or `none` for updates without limit."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value is None or str(value).lower() == "none":
            return None
        try:
            budget = float(value)
        except ValueError:
            budget = -1.0
        if not 0 <= budget < float("inf"):
            self.fail(f"'{value}' is not a budget: write a fraction such as 0.2, or none.", param, ctx)
        return budget
