"""What a backend keeps by relation or by stratum, under the names and numbers of another program."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

from elastalog.planning.logical import LogicalProgram

T = TypeVar("T")


def rename(kept: dict[str, T], renamed: Mapping[str, str], names: Container[str]) -> None:
    """What is kept by relation: some have other names, and those that are not among `names` go."""
    moved = {new: kept[old] for old, new in renamed.items() if old in kept}
    for name in [name for name in kept if name in renamed or name not in names]:
        del kept[name]
    kept.update(moved)


def renumber(kept: dict[int, T], before: LogicalProgram, after: LogicalProgram) -> dict[int, T]:
    """What is kept by stratum: that of strata which have the same relations under both programs."""
    numbers = {stratum.relations: stratum.number for stratum in after.strata}
    return {
        numbers[stratum.relations]: kept[stratum.number]
        for stratum in before.strata
        if stratum.number in kept and stratum.relations in numbers
    }
