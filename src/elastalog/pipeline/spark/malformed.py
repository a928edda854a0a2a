"""What is wrong with a stream of updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORM = (
    "a stream of updates has a column `op` of `+` and `-`, and the columns of the relation; or a column"
    " `relation` and the values in `a1`, `a2`, …"
)


def malformed(message: str, stream: DataFrame | None = None, advice: str = _FORM) -> ElastalogError:
    """The stream, or a micro-batch of it, is not as updates are written."""
    notes = () if stream is None else (f"its columns are {', '.join(stream.columns)}",)
    return ElastalogError([Diagnostic("E1108", message, notes=notes, help=advice)])
