"""What Spark says about a source that it cannot read, as a diagnostic."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError


def absolute(place: str | os.PathLike[str]) -> str:
    """A path as Java understands it, whose working folder may be another; addresses as they are."""
    text = os.fspath(place)
    return text if "://" in text or text.startswith("file:") else os.path.abspath(text)


@contextmanager
def reading(kind: str, place: str) -> Iterator[None]:
    """Turns what Spark says about an unreadable source into a diagnostic."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        reason = error.getCondition() or type(error).__name__
        raise ElastalogError(
            [
                Diagnostic(
                    code="E1105",
                    message=f"Spark cannot read {kind} from `{place}`: {reason}",
                    notes=(str(error).splitlines()[0][:300],),
                    help="check the place, its format and your rights to it",
                    location=place,
                )
            ]
        ) from None
