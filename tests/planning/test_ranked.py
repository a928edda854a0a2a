"""Strata that are evaluated in the order of values: what is recognised, and what is made for it."""

from __future__ import annotations

from elastalog.planning.logical import LINKS, LogicalProgram
from elastalog.planning.lower import lower
from elastalog.program import Program

TEXT = """
.decl edge(x: number, y: number, w: number)
.decl open(x: number)
.decl far(x: number, km: min number)
far(1, 0).
far(y, n + w) :- far(x, n), edge(x, y, w).
far(y, n + w) :- far(x, n), edge(x, y, w), open(y).
"""


def lowered(guarded: frozenset[int] = frozenset()) -> LogicalProgram:
    return lower(Program.parse(TEXT).checked, guarded)


def links_in(program: LogicalProgram) -> list[str]:
    return [name for name in program.relations if name.startswith(LINKS)]


def test_a_rule_with_a_longer_body_has_a_relation_of_its_links() -> None:
    program = lowered()
    (stratum,) = (stratum for stratum in program.strata if stratum.dominance)
    assert [link.made_of for link in stratum.ranked.links if link.sources] == ["edge", *links_in(program)]
    assert len(links_in(program)) == 1


def test_nothing_is_made_for_a_stratum_whose_rules_are_changing() -> None:
    program = lowered(frozenset((2,)))
    (stratum,) = (stratum for stratum in program.strata if stratum.dominance)
    assert (stratum.ranked, stratum.why_in_rounds) == (None, "its rules are changing")
    assert links_in(program) == []
