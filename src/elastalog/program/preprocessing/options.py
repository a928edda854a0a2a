"""What a user says about preprocessing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from elastalog.diagnostics.arguments import require_path, wrong_kind
from elastalog.late import dataclass


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """`include`: folders searched for included files. `macros`: names with their texts, defined beforehand. `is_on`:
    whether lines that begin with `#` are obeyed; `.include` and `.once` always are."""

    include: tuple[str, ...] = ()
    macros: tuple[tuple[str, str], ...] = ()
    is_on: bool = True


def preprocessing(
    include: Iterable[str | os.PathLike[str]] = (), macros: Mapping[str, object] | None = None, is_on: bool = True
) -> Preprocessing:
    """The options from what Python gives. Raises ElastalogError when it is of the wrong kind."""
    if isinstance(include, str | os.PathLike):
        raise wrong_kind("`include` is a list of folders", include, "give a list, as in `include=[path]`")
    folders = list(include)
    for folder in folders:
        require_path("a folder to search is named by its path", folder, "give a text or a `Path`")
    if macros is not None and not isinstance(macros, Mapping):
        raise wrong_kind("`macros` maps names to texts", macros, 'give a mapping, as in `macros={"SIZE": 3}`')
    named = tuple((str(name), _text(value)) for name, value in (macros or {}).items())
    return Preprocessing(tuple(os.fspath(folder) for folder in folders), named, is_on)


def _text(value: object) -> str:
    """The text of a macro: a flag is 1 when true and empty when None, as with `-M NAME`."""
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)
