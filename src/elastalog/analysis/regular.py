r"""Regular expressions of `match` and `capture`: those of ECMAScript that are matched in time linear in the text.

The engine is RE2, which never backtracks: no expression and no text, whoever wrote them, can keep an evaluation busy
for ever. What it cannot do in linear time, back references and looking around, is refused. `.` is any character but the
end of a line; `\d`, `\w` and `\s` mean ASCII, as in Soufflé; a repetition counts up to 1000.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

Matches = Callable[[str], bool]
"""Whether the whole of a text matches."""

# What ECMAScript writes in another way than RE2; a pair of backslashes is looked at first, and left as it is.
_OTHERWISE = re.compile(r"\\(?:\\|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|c([A-Za-z])|(0)(?![0-9])|([^\x00-\x7f]))")
_REFUSED = (
    (re.compile(r"\(\?<?[=!]"), "looking ahead or behind takes more than linear time"),
    (re.compile(r"\\(?:[1-9]|k<)"), "a back reference takes more than linear time"),
)


class NotRegular(ValueError):
    """A text is no regular expression of this kind; the message says why."""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Matches:
    """Raises NotRegular."""
    compiled = _compiled(pattern, False)
    # As bytes: for texts the engine reckons where in the text each match lies, which takes three times as long.
    return lambda text: compiled.fullmatch(text.encode()) is not None


def groups_of(pattern: str, text: str) -> tuple[str | None, ...] | None:
    """The whole text and what every group matched, None for a group that did not; None if the text does not match.
    Raises NotRegular."""
    found = _compiled(pattern, True).fullmatch(text)
    return None if found is None else (found.group(), *found.groups())


@lru_cache(maxsize=1024)
def _compiled(pattern: str, captures: bool) -> Any:
    engine, options = _engine(captures)
    try:
        return engine.compile(_OTHERWISE.sub(_as_engine_writes, pattern), options)
    except engine.error as fault:
        raise NotRegular(_reason(pattern, fault)) from None
    except UnicodeEncodeError:
        raise NotRegular("it is no text") from None


def _reason(pattern: str, fault: Exception) -> str:
    for found, reason in _REFUSED:
        if found.search(pattern.replace("\\\\", "")):
            return reason
    told = fault.args[0] if fault.args else str(fault)
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)


def _as_engine_writes(found: re.Match[str]) -> str:
    braced, code, control, zero, other = found.groups()
    if braced or code:
        return rf"\x{{{braced or code}}}"
    if control:
        return rf"\x{ord(control.upper()) - 64:02x}"
    if zero:
        return r"\x00"
    return other or found[0]


@cache
def _engine(captures: bool) -> tuple[Any, Any]:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    return re2, options
