"""Which strata fall apart, by which arguments, and what is said about the others."""

from __future__ import annotations

from elastalog.planning.decompose import SharePlan, decomposition_report, share_plan
from elastalog.planning.lower import lower
from elastalog.program import Program

E = ".decl e(x: number, y: number)\n"
P = E + ".decl p(x: number, y: number)\np(x, y) :- e(x, y).\n"


def plan_of(text: str, relation: str = "p") -> SharePlan:
    program = lower(Program.parse(text).checked)
    return next(share_plan(stratum, program) for stratum in program.strata if relation in stratum.relations)


def test_right_linear_closure_keeps_the_first_argument() -> None:
    plan = plan_of(P + "p(x, z) :- p(x, y), e(y, z).\n")
    assert plan.arguments == {"p": 0}
    # The first rule needs the edges of its share, the second all of them.
    assert {copy.name for copy in plan.copies} == {"p", "e@0", "e"}


def test_left_linear_closure_keeps_the_second() -> None:
    assert plan_of(P + "p(x, z) :- e(x, y), p(y, z).\n").arguments == {"p": 1}


def test_closure_by_doubling_keeps_none() -> None:
    plan = plan_of(P + "p(x, z) :- p(x, y), p(y, z).\n")
    assert plan.arguments is None
    assert plan.obstacle == "rule 2 keeps no argument: no variable of its head stands in all its recursive atoms"
    # Shared by the variable in the middle, it needs a copy by each column and none that is whole.
    assert [shared.pivot for shared in plan.clauses][1] == "y"
    assert {copy.name for copy in plan.copies if copy.relation == "p"} == {"p@0", "p@1"}


def test_rules_that_keep_different_arguments() -> None:
    plan = plan_of(P + "p(x, z) :- p(x, y), e(y, z).\np(x, z) :- e(x, y), p(y, z).\n")
    assert plan.arguments is None
    assert plan.obstacle.endswith("rule 2 keeps `x`; rule 3 keeps `z`")


def test_an_argument_that_moves_is_not_kept() -> None:
    assert plan_of(P + "p(y, x) :- p(x, y).\n").arguments is None


def test_relations_that_recur_together_may_keep_different_columns() -> None:
    text = P + ".decl q(x: number, y: number)\nq(y, x) :- p(x, y).\np(x, z) :- q(y, x), e(y, z).\n"
    assert plan_of(text).arguments == {"p": 0, "q": 1}


def test_a_recursion_of_two_atoms_that_agree() -> None:
    assert plan_of(P + "p(x, z) :- p(x, y), p(x, z), e(y, z).\n").arguments == {"p": 0}


def test_a_constant_is_one_tasks_affair() -> None:
    plan = plan_of(P + "p(7, y) :- e(y, 1).\np(x, z) :- p(x, y), e(y, z).\n")
    assert plan.arguments == {"p": 0}
    constant = plan.clauses[1].pivot
    assert not isinstance(constant, str)
    assert constant.value == 7


def test_a_computed_argument_is_no_pivot() -> None:
    text = ".decl a(x: number)\n.decl b(x: number)\nb(x + 1) :- a(x).\n"
    plan = plan_of(text, "b")
    assert plan.arguments is None
    assert plan.obstacle == "rule 1 computes every argument of its head"


def test_negated_atoms_are_shared_like_others() -> None:
    text = E + ".decl p(x: number)\np(x) :- e(x, _), !e(x, x).\n"
    assert {copy.name for copy in plan_of(text).copies} == {"p", "e@0"}


def test_the_report() -> None:
    program = Program.parse(P + "p(x, z) :- p(x, y), e(y, z).\n")
    assert list(decomposition_report(program.checked)) == [
        "stratum 1: p (recursive)",
        "    decomposes by argument 1 of p: each task reaches the fixpoint of its share alone",
        "    e is shared by its argument 1",
        "    every task holds all of e",
    ]


def test_an_aggregate_is_shared_by_its_first_group() -> None:
    text = E + ".decl n(x: number, k: number)\nn(x, k) :- e(x, _), k = count : { e(x, _) }.\n"
    program = lower(Program.parse(text).checked)
    stratum = next(stratum for stratum in program.strata if stratum.aggregate is not None)
    plan = share_plan(stratum, program)
    assert plan.decomposes
    assert {(copy.relation, copy.column) for copy in plan.copies} == {
        (stratum.relations[0], 0),
        (stratum.aggregate.members if stratum.aggregate else "", 0),
    }
    report = list(decomposition_report(Program.parse(text).checked))
    assert any(line.endswith("each task folds its groups") for line in report)


def test_an_aggregate_without_groups_is_folded_by_one_task() -> None:
    text = E + ".decl n(k: number)\nn(k) :- k = count : { e(_, _) }.\n"
    program = lower(Program.parse(text).checked)
    plan = share_plan(next(stratum for stratum in program.strata if stratum.aggregate is not None), program)
    assert plan.is_for_one
    assert {copy.column for copy in plan.copies} == {None}
    report = list(decomposition_report(Program.parse(text).checked))
    assert "    one task does it: an aggregate without groups" in report


CHOSEN = E + ".decl p(x: number, y: number) choice-domain {}\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"


def test_a_choice_domain_decomposes_by_what_all_its_keys_have_in_common() -> None:
    assert plan_of(CHOSEN.format("x")).arguments == {"p": 0}
    assert plan_of(CHOSEN.format("x, (x, y)")).arguments == {"p": 0}
    for keys in ("y", "x, y"):
        plan = plan_of(CHOSEN.format(keys))
        assert plan.is_for_one
        assert plan.obstacle == "a choice domain compares facts wherever they are"


def test_what_is_counted_or_compared_wherever_it_is_is_for_one_task() -> None:
    closure = P + "p(x, z) :- p(x, y), e(y, z).\n"
    report = list(decomposition_report(Program.parse(closure + ".limitsize p(n=9)\n").checked))
    assert report[1] == "    one task does it: a `.limitsize` counts the facts of a relation wherever they are"
    report = list(decomposition_report(Program.parse(closure + "p(x, y) <= p(x, z) :- z < y.\n").checked))
    assert report[1] == "    one task does it: subsumption compares facts wherever they are"
    # Without recursion there is nothing to cut short.
    assert plan_of(P + ".limitsize p(n=9)\n").arguments == {"p": 0}


def test_whoever_numbers_facts_looks_at_all_numbers() -> None:
    text = P + ".decl n(x: number, k: number)\n.decl m(k: number)\nn(x, $) :- e(x, _).\nm($) :- p(_, _).\n"
    program = lower(Program.parse(text).checked)
    one, other = (stratum for stratum in program.strata if stratum.aggregate is not None)
    plan = share_plan(one, program)
    assert plan.is_for_one
    assert [(stratum.number, stratum.reads) for stratum in plan.beside] == [(other.number, frozenset())]
    assert set(other.relations) < {copy.name for copy in plan.copies}
