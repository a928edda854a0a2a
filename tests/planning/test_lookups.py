"""After which stratum nobody looks facts of a relation up that are known as a whole."""

from __future__ import annotations

from elastalog.planning.goals import last_lookups
from elastalog.planning.lower import lower
from elastalog.program import Program

DECLARATIONS = """
.decl a(x: number, y: number)
.decl b(x: number, y: number)
.decl c(x: number, y: number)
.decl d(x: number, y: number)
"""


def last_of(rules: str) -> dict[str, tuple[str, ...]]:
    """By relation, the relations of the last stratum that may look up its facts."""
    program = lower(Program.parse(DECLARATIONS + rules).checked)
    relations = {stratum.number: stratum.relations for stratum in program.strata}
    return {name: relations[number] for number, names in last_lookups(program).items() for name in names}


def test_a_relation_with_a_column_of_its_own_is_never_looked_up() -> None:
    last = last_of("b(x, z) :- a(x, y), c(y, z).\nd(x, y) :- b(x, y).")
    assert last == {"a": ("a",), "b": ("b",), "c": ("c",), "d": ("d",)}


def test_negations_constants_and_goals_whose_variables_stand_elsewhere() -> None:
    assert last_of("d(x, y) :- a(x, y), !b(x, y).") == {"a": ("d",), "b": ("d",), "c": ("c",), "d": ("d",)}
    assert last_of("d(x, y) :- a(x, y), b(1, 2).")["b"] == ("d",)
    assert last_of("d(x, y) :- a(x, y), c(x, _).")["c"] == ("c",)
    assert last_of("d(x, y) :- a(x, z), c(x, y), y < z.")["a"] == ("d",)


def test_the_last_of_several_strata_counts() -> None:
    last = last_of("b(x, y) :- a(x, y), c(x, y).\nd(x, y) :- b(x, z), a(z, y), c(x, y).")
    assert last["a"] == ("d",)
    assert last["c"] == ("d",)
    assert last["b"] == ("d",)
