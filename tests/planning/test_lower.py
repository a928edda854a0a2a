"""How negation with wildcards and aggregates become plain rules over hidden relations."""

from __future__ import annotations

import pytest

from elastalog.analysis.listing import show_literal
from elastalog.diagnostics.catalogue import CATALOGUE
from elastalog.planning.logical import Absent, LogicalProgram, Scan, guard_of
from elastalog.planning.lower import lower
from elastalog.program import Program
from tests.commands import run
from tests.refusals import refused

RECURSIVE_GROUP = """
.decl e(x: number, y: number)
.decl p(n: number, w: number)
p(n, w) :- e(w, 1), p(w, x), n = sum k : { e(k, k), !e(2, x) }.
"""


def lowered(text: str) -> LogicalProgram:
    return lower(Program.parse(text).checked)


def test_one_projection_serves_every_rule() -> None:
    text = (
        ".decl e(x: number, y: number)\n.decl p, q(x: number)\np(x) :- e(x, x), !e(x, _).\nq(x) :- e(x, 1), !e(x, _)."
    )
    assert sum(name.startswith("@") for name in lowered(text).relations) == 1


def test_a_group_that_only_recursion_binds_is_handled_as_it_is_needed() -> None:
    program = lowered(RECURSIVE_GROUP)
    assert dict(program.needed) == {"@handled.1.x": "@needed.1.x"}
    strata = {stratum.relations[0]: stratum for stratum in program.strata}
    assert strata["@handled.1.x"].number < strata["p"].number < strata["@needed.1.x"].number
    assert all(Scan("@handled.1.x", ("x",)) in clause.goals for clause in strata["p"].clauses)
    (needing,) = strata["@needed.1.x"].clauses
    assert needing.goals == (Scan("p", ("w", "x")),)


def test_a_group_that_only_judged_facts_bind_is_refused_with_its_place() -> None:
    text = CATALOGUE["E0602"].example
    with refused("E0602") as caught:
        lowered(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "the aggregate only tests `x`, and only the facts that are judged bind it"
    assert [(text[label.span.start : label.span.end], label.primary) for label in diagnostic.labels] == [
        ("count : { item(y), y < x }", True),
        ("chosen(x)", False),
    ]
    assert diagnostic.notes
    assert diagnostic.help == "bind `x` inside the aggregate's braces with an atom, or by an atom of another relation"


def test_check_refuses_it_too(tmp_path: pytest.TempPathFactory) -> None:
    path = tmp_path / "p.dl"
    path.write_text(CATALOGUE["E0602"].example)
    result = run("check", path)
    assert result.exit_code == 1
    assert "E0602" in result.stderr


def origins(text: str) -> list[tuple[str, tuple[str, ...], tuple[int | None, ...], int]]:
    """Of every clause that stands for something written: its head, literals, where their facts are, and which body."""
    return [
        (clause.head, tuple(map(show_literal, clause.origin.literals)), clause.origin.scans, clause.origin.body)
        for stratum in lowered(text).strata
        for clause in stratum.clauses
        if clause.origin is not None
    ]


def test_a_clause_says_which_scan_reads_each_literal() -> None:
    text = ".decl e(x: number, y: number)\n.decl p(x: number)\np(x) :- x > 1, e(x, y), !e(y, _), e(y + 1, x)."
    assert origins(text) == [("p", ("x > 1", "e(x, y)", "!e(y, _)", "e((y + 1), x)"), (None, 0, None, 1), 0)]


def test_an_aggregate_over_nothing_is_read_nowhere() -> None:
    text = ".decl e(x: number, y: number)\n.decl p(x: number, n: number)\np(x, n) :- n = count : { e(x, _) }, e(x, _)."
    found = [(head, scans) for head, _, scans, _ in origins(text) if head == "p"]
    assert found == [("p", (0, 1)), ("p", (None, 0))]


def test_members_say_which_body_they_come_from_and_count_their_groups() -> None:
    text = (
        ".decl e(x: number, y: number)\n.decl p(x: number, n: number)\n"
        "p(x, n) :- e(x, _), n = max y : { e(x, y); e(y, _), y < x }."
    )
    assert [entry[2:] for entry in origins(text) if entry[0] != "p"] == [((0,), 0), ((1, None), 1)]


def test_the_guard_of_a_rule_stands_for_nothing_written() -> None:
    program = Program.parse(".decl e(x: number)\n.decl p(x: number)\np(x) :- e(x), x > 0.").checked
    (clause,) = (c for stratum in lower(program, frozenset({1})).strata for c in stratum.clauses)
    assert [scan.relation for scan in clause.scans] == ["e", guard_of(1)]
    assert clause.origin.scans == (0, None)


NESTED = """
.decl e(x: number, y: number)
.decl p(x: number, n: number)
p(x, n) :- e(x, z), p(z, _), n = count : { e(_, y), 0 < count : { e(y, w), w > z, BOUND } }.
"""


def test_a_nested_aggregate_tests_what_any_body_around_it_binds() -> None:
    domains = [name for name in lowered(NESTED.replace("BOUND", "w > y")).relations if name.startswith("@groups")]
    assert domains == ["@groups.1.z"]


def test_a_nested_aggregate_is_handled_for_what_the_recursion_around_both_needs() -> None:
    text = NESTED.replace("e(x, z), ", "").replace("p(x, n) :-", "p(z, n) :-").replace("BOUND", "w > y")
    (handled,) = lowered(text).needed
    assert handled.startswith("@handled.1.z")


COUNTS = """
.decl e(x: number, y: number)
.decl p(x: number, n: number)
p(x, n + m + k) :- e(x, y), n = count : { e(y, _) }, m = sum z : { e(x, z), z > y }, k = count : { e(n, _) }.
"""


def test_several_counts_are_one_clause_over_folds_of_every_group() -> None:
    program = lowered(COUNTS)
    (clause,) = program.strata[-1].clauses
    assert not any(isinstance(goal, Absent) for goal in clause.goals)
    folds = [stratum.aggregate for stratum in program.strata if stratum.aggregate is not None]
    assert [(fold.operator, fold.is_total, fold.domain) for fold in folds] == [
        ("count", True, "@groups.1.y"),
        ("sum", True, "@groups.1.x,y"),
        ("count", True, "@groups.1.n"),
    ]


def test_counts_over_what_only_recursion_gives_are_two_clauses_however_many_they_are() -> None:
    counts = ", ".join(f"n{i} = count : {{ e(x, {i}) }}" for i in range(12))
    program = lowered(f".decl e(x: number, y: number)\n.decl p(x: number)\np(n0) :- p(x), {counts}.")
    found, default = program.strata[-1].clauses
    assert sum(isinstance(goal, Absent) for goal in default.goals) == 1
    assert len(found.scans) == 13


def test_counts_over_many_values_of_a_recursion_are_one_clause() -> None:
    names = [f"x{i}" for i in range(9)]
    program = lowered(
        f".decl e(x: number)\n.decl p({', '.join(f'{n}: number' for n in names)})\n"
        f"p({', '.join(f'n{i}' for i in range(9))}) :- p({', '.join(names)}), "
        + ", ".join(f"n{i} = count : {{ e(x{i}) }}" for i in range(9))
        + "."
    )
    (stratum,) = (stratum for stratum in program.strata if stratum.relations == ("p",))
    assert len(stratum.clauses) == 1
    assert len(program.needed) == 9


def test_counts_over_too_many_values_of_judged_facts_are_refused() -> None:
    with refused("E0228"):
        lowered(CATALOGUE["E0228"].example)
    lowered(CATALOGUE["E0228"].fix)
