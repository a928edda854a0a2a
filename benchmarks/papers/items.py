"""The tables and figures of the papers, by name: `elastic.table3` is the function `table3` of `elastic`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from benchmarks.papers.printed import TABLES
from benchmarks.papers.tables import Figures, Table


@dataclass(frozen=True, slots=True)
class Settings:
    """`is_quick`: at reduced sizes."""

    is_quick: bool
    data: Path | None

    @property
    def mode(self) -> str:
        return "quick" if self.is_quick else "full"


Measure: TypeAlias = Callable[[Settings], Figures]


@dataclass(frozen=True, slots=True)
class Item:
    """A table or figure. `measure` is None if nothing here can be measured, for the reason that `why` gives.
    `folders`: parts of the data folder that it cannot do without."""

    name: str
    title: str
    measure: Measure | None
    folders: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        return self.name.partition(".")[0]

    @property
    def why(self) -> str:
        """Why ours is not as printed."""
        return reasons()[self.name]

    @property
    def printed(self) -> tuple[Table, ...]:
        return TABLES.get(self.name, ())

    def is_available(self, data: Path | None) -> bool:
        return all(data is not None and (data / folder).is_dir() for folder in self.folders)


PAPERS: Mapping[str, str] = {
    "elastic": "Towards Elastic Incrementalization for Datalog (PPDP 2021)",
    "dredc": "Optimised Maintenance of Datalog Materialisations (AAAI 2018)",
    "marking": "Backward/Forward with Marking for Update Streams (DL 2025)",
    "provenance": "Provenance, Incremental Evaluation, and Debugging in Datalog (thesis, 2022): provenance",
    "debugging": "Provenance, Incremental Evaluation, and Debugging in Datalog (thesis, 2022): debugging",
    "counting": "Incremental evaluation with counts in Soufflé (a short note)",
}


@cache
def reasons() -> Mapping[str, str]:
    """The sections of `why.md`, by their headings."""
    _, *sections = (Path(__file__).parent / "why.md").read_text(encoding="utf-8").split("\n## ")
    return {name: text.strip() for name, _, text in (section.partition("\n") for section in sections)}


ITEMS: dict[str, Item] = {}


def reproduces(title: str, *folders: str) -> Callable[[Measure], Measure]:
    """Registers a function under the names of its module and its own."""

    def register(measure: Measure) -> Measure:
        name = f"{measure.__module__.rpartition('.')[2]}.{measure.__name__}"
        ITEMS[name] = Item(name, title, measure, folders)
        return measure

    return register


def leaves_out(name: str, title: str) -> None:
    """Registers a table or figure that cannot be measured here."""
    ITEMS[name] = Item(name, title, None)
