"""What an epoch that changes rules does to the program of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elastalog.late import dataclass


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """The program and the layout since that epoch. `renamed`: hidden relations that have other names since, by the name
    before; `fresh`: relations that there were none of before."""

    text: str
    layout: Mapping[str, tuple[str, ...]]
    renamed: Mapping[str, str]
    fresh: frozenset[str]

    def origin(self, name: str) -> str | None:
        """What a relation was called before; None if there was none."""
        if name in self.fresh:
            return None
        return next((old for old, new in self.renamed.items() if new == name), name)

    def written(self) -> dict[str, Any]:
        """As a JSON value."""
        return {
            "text": self.text, "layout": self.layout, "renamed": self.renamed, "fresh": sorted(self.fresh)
        }  # fmt: skip

    @staticmethod
    def read(written: Mapping[str, Any]) -> ProgramChange:
        """From a JSON value."""
        layout = {name: tuple(bases) for name, bases in written["layout"].items()}
        return ProgramChange(written["text"], layout, dict(written["renamed"]), frozenset(written["fresh"]))
