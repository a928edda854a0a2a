"""Regular expressions mean the same to all versions of Python that we run on."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from elastalog.program import macros

LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)


def parts_of(node: Any) -> Iterator[tuple[Any, Any]]:
    """The operations of a parsed pattern, also those inside of others."""
    if isinstance(node, _parser.SubPattern):
        for operation, given in node:
            yield operation, given
            yield from parts_of(given)
    elif isinstance(node, tuple | list):
        for part in node:
            yield from parts_of(part)


def patterns() -> dict[str, re.Pattern[Any]]:
    found = {"a use of a macro": macros._first_of(["one", "two"])}
    for name in ("cli.main", "pipeline.files.read"):  # which import nearly all others
        import_module(f"elastalog.{name}")
    for name, module in [*sys.modules.items()]:
        if name.startswith("elastalog."):
            found |= {f"{name}.{own}": value for own, value in vars(module).items() if isinstance(value, re.Pattern)}
    return found


def test_no_possessive_group_looks_ahead() -> None:
    """Before Python 3.11.5 such a group goes on behind what the look has seen: no line was preprocessed there."""
    known = patterns()
    assert len(known) > 20
    for name, pattern in known.items():
        for operation, given in parts_of(_parser.parse(pattern.pattern, pattern.flags)):
            if operation is _constants.POSSESSIVE_REPEAT:
                assert not any(inside in LOOKS for inside, _ in parts_of(given)), name
