"""The basket of Repair: facts that somebody has marked as wrong or as missing, shared by all windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Side: TypeAlias = Literal["wrong", "missing"]


@dataclass(frozen=True, slots=True)
class Faults:
    """Facts as the language writes them, in the order in which they were marked."""

    wrong: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.wrong) + len(self.missing)

    def side(self, side: Side) -> tuple[str, ...]:
        """Those of one side."""
        return self.wrong if side == "wrong" else self.missing

    def with_(self, side: Side, *facts: str) -> Faults:
        """With more facts on a side."""
        return replace(self, **{side: tuple(dict.fromkeys((*self.side(side), *facts)))})

    def without(self, fact: str) -> Faults:
        """Without a fact."""
        return Faults(tuple(f for f in self.wrong if f != fact), tuple(f for f in self.missing if f != fact))
