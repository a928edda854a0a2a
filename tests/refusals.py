"""What is refused: with which codes, and in which words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError


@contextmanager
def refused(
    *codes: str, match: str | None = None, told: str | tuple[str, ...] = (), **fields: object
) -> Iterator[pytest.ExceptionInfo[ElastalogError]]:
    """In the block an error comes that says just this: a diagnostic of each of these codes, in their order, or just one
    if none is named. The first has these fields, and these texts in its message, its notes, or its help."""
    with pytest.raises(ElastalogError, match=match) as raised:
        yield raised
    found = raised.value.diagnostics
    first = found[0]
    assert [one.code for one in found] == [*(codes or (first.code,))]
    assert {name: getattr(first, name) for name in fields} == fields
    words = "\n".join((first.message, *first.notes, first.help or ""))
    for text in (told,) if isinstance(told, str) else told:
        assert text in words
