"""Types whose values are made of values: records and algebraic data types, as inference sees them.

Where other floors know only that a value is a record (`Base.RECORD`), inference must know which: the type says what
the parts of a pattern are. A *kind* is either one of the plain base types or a structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from elastalog.analysis.program import Base
from elastalog.late import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """A part: its name, and its type by the name that was declared."""

    name: str
    type_name: str


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A record type or an algebraic data type. `branches`: the fields by the constructor's functor, `[]` for the only
    one of a record, `$A` for a branch `A`."""

    name: str
    branches: Mapping[str, tuple[Field, ...]]

    @property
    def value(self) -> str:
        """Its name, as `Base` has one."""
        return self.name

    @property
    def is_record(self) -> bool:
        """Whether it is a record type, to which `nil` belongs."""
        return "[]" in self.branches

    @property
    def is_ordered(self) -> bool:
        """Whether `<` means something: the branches have no fields and go by their names."""
        return not any(self.branches.values())


Kind: TypeAlias = Base | Structure


def base_of(kind: Kind) -> Base:
    """What the floors below inference see of a kind."""
    return Base.RECORD if isinstance(kind, Structure) else kind


def is_constructor(functor: str) -> bool:
    """Whether a functor builds a value out of parts, or takes one apart."""
    return functor == "[]" or functor == "nil" or functor[0] == "$"
