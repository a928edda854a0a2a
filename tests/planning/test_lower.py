"""How negation with wildcards and aggregates become plain rules over hidden relations."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from elastalog.cli.main import cli
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.planning.logical import Absent, LogicalProgram, Scan
from elastalog.planning.lower import lower
from elastalog.program import Program

RECURSIVE_GROUP = """
.decl e(x: number, y: number)
.decl p(n: number, w: number)
p(n, w) :- e(w, 1), p(w, x), n = sum k : { e(k, k), !e(2, x) }.
"""


def lowered(text: str) -> LogicalProgram:
    return lower(Program.parse(text).checked)


def test_a_negated_wildcard_negates_a_projection() -> None:
    program = lowered(".decl e(x: number, y: number)\n.decl p(x: number)\np(x) :- e(x, _), !e(_, x).")
    clause = program.strata[-1].clauses[0]
    assert clause.goals == (Scan("e", ("x", "_@1")), Absent("@e/1", ("x",)))
    assert program.relations["@e/1"].is_hidden
    hidden = next(s for s in program.strata if s.relations == ("@e/1",))
    assert hidden.clauses[0].goals == (Scan("e", (None, "x1")),)
    assert hidden.number < program.strata[-1].number


def test_one_projection_serves_every_rule() -> None:
    text = (
        ".decl e(x: number, y: number)\n.decl p, q(x: number)\np(x) :- e(x, x), !e(x, _).\nq(x) :- e(x, 1), !e(x, _)."
    )
    assert sum(name.startswith("@") for name in lowered(text).relations) == 1


def test_a_count_has_a_version_for_the_empty_group() -> None:
    program = lowered(
        ".decl e(x: number, y: number)\n.decl p(x: number, n: number)\np(x, n) :- e(x, _), n = count : { e(_, x) }."
    )
    found, default = program.strata[-1].clauses
    assert any(isinstance(goal, Scan) and goal.relation.startswith("@count") for goal in found.goals)
    assert any(isinstance(goal, Absent) for goal in default.goals)


def test_a_maximum_has_no_default() -> None:
    program = lowered(".decl e(x: number, y: number)\n.decl p(n: number)\np(n) :- n = max x : { e(x, _) }.")
    assert len(program.strata[-1].clauses) == 1


def test_a_nullary_relation_has_one_column() -> None:
    program = lowered(".decl e(x: number)\n.decl p()\np() :- e(_).")
    assert program.relations["p"].width == 1


def test_a_group_that_only_recursion_binds_is_refused_with_its_place() -> None:
    with pytest.raises(ElastalogError) as caught:
        lowered(RECURSIVE_GROUP)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0602"
    assert diagnostic.message == "the aggregate only tests `x`, and the rule binds it only by recursion"
    assert [(RECURSIVE_GROUP[label.span.start : label.span.end], label.primary) for label in diagnostic.labels] == [
        ("sum k : { e(k, k), !e(2, x) }", True),
        ("p(w, x)", False),
    ]
    assert diagnostic.notes
    assert diagnostic.help == "bind `x` inside the aggregate's braces with an atom, or by an atom outside the recursion"


def test_check_refuses_it_too(tmp_path: pytest.TempPathFactory) -> None:
    path = tmp_path / "p.dl"  # type: ignore[operator]
    path.write_text(RECURSIVE_GROUP)
    result = CliRunner().invoke(cli, ["check", str(path)])
    assert result.exit_code == 1
    assert "E0602" in result.stderr
