"""What is refused, and with which codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError


@contextmanager
def refused(*codes: str, match: str | None = None) -> Iterator[pytest.ExceptionInfo[ElastalogError]]:
    """In the block an error comes that says just this: a diagnostic of each of these codes, in their order."""
    with pytest.raises(ElastalogError, match=match) as raised:
        yield raised
    assert [found.code for found in raised.value.diagnostics] == [*codes]
