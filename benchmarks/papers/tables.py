"""Tables, plots and named values: what a paper prints, and what is measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Cell: TypeAlias = "str | int | float | None"
"""None: there is no such figure."""


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Plot:
    """Points by series; both axes are logarithmic unless `is_linear`, which x is then. `kind`: `lines`, `points` that
    are not joined, or `steps`, which gives how often each whole number occurs."""

    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[Sequence[float]]]
    kind: str = "lines"
    is_linear: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """`values` are what the rules of the claims speak of."""

    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()
    values: Mapping[str, float] = field(default_factory=dict)
