"""Equivalences that take part in their own recursion, as classes, under every strategy."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel.bootstrap.merging import Merging
from elastalog.planning.equivalences import kept_as_classes
from elastalog.planning.listing import list_plans
from elastalog.planning.lower import lower
from elastalog.planning.order import NoStatistics
from elastalog.program import Program
from tests.commands import run
from tests.engine.judging import facts_of, follow, followed
from tests.generators.construction import Features, GeneratedProgram
from tests.generators.seeded import seeded_case, seeded_program
from tests.provenance.databases import verdict
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.refusals import refused

CONGRUENT = """
.decl edge(x: number, y: number)
.input edge
.decl next(x: number, y: number)
.input next
.decl same(x: number, y: number) eqrel
.input same
same(x, y) :- edge(x, y).
same(x, y) :- same(a, b), next(a, x), next(b, y).
"""
PROGRAMS = {
    "congruence": CONGRUENT,
    "through another relation": CONGRUENT + "edge(x, y) :- same(x, z), next(z, y), next(y, z).\n",
    "wildcards and constants": CONGRUENT
    + "same(x, 0) :- same(x, _), next(x, x).\nsame(x, y) :- same(1, x), edge(y, _).\n",
    "two of them": CONGRUENT
    + ".decl other(x: number, y: number) eqrel\nother(x, y) :- same(x, y), x < y.\n"
    + "same(x, y) :- other(x, y), next(y, x).\n",
    "read above": CONGRUENT
    + ".decl apart(x: number, y: number)\napart(x, y) :- next(x, y), !same(x, y).\n"
    + ".decl size(x: number, n: number)\nsize(x, n) :- edge(x, _), n = count : { same(x, _) }.\n",
}
RANDOM = Features(equivalences=True)
Facts = dict[str, set[tuple[int, int]]]


def some(random: Random, most: int) -> set[tuple[int, int]]:
    return {(random.randrange(9), random.randrange(9)) for _ in range(random.randrange(most))}


STRATEGIES = ("elastic", "recompute", "dred", "dredc", "bf", "bfc", "dense")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_that_the_judge_says_after_every_update(name: str, strategy: str) -> None:
    for seed in range(2):
        random = Random(seed)
        explicit: Facts = {"edge": some(random, 5), "next": some(random, 9), "same": some(random, 3)}
        with followed(PROGRAMS[name], explicit, strategy=strategy, jobs=1 + seed) as session:
            assert "same" in session.db._backend.program.merged
            for _ in range(3):
                session.apply(*({name: some(random, most) for name in explicit} for most in (3, 30)))
                session.prove("same", most=3)


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dred"])
def test_a_large_class_is_a_row_a_member(strategy: str) -> None:
    many = 500
    chain = [(i, i + 2) for i in range(many)]
    with elastalog.open(CONGRUENT, {"edge": [(0, 1), (1, 2)], "next": chain}, strategy=strategy) as db:
        for deleted in ((), [(many // 2, many // 2 + 2)]):
            changes = db.apply(deleted={"next": deleted})
            assert (len(changes["same"].deleted) if "same" in changes else 0) == (many + 2) ** 2 - len(db["same"])
            stored = db._backend.profile().bytes
            assert sum(size for name, size in stored.items() if "same" in name) < 300 * many


def test_a_change_in_one_class_is_no_change_of_another() -> None:
    text = CONGRUENT + ".decl big(x: number)\nbig(x) :- same(x, 100).\n"
    with elastalog.open(text, {"edge": [(i, 100) for i in range(100)]}) as db:
        db.apply({"edge": [(200, 201), (201, 202)]})
        changes = db.apply(deleted={"edge": [(200, 201)]})
        assert {name: len(found.deleted) for name, found in changes.items()} == {"edge": 1, "same": 5}


def test_counting_names_the_recursion() -> None:
    with refused("E0901", match="`same` uses `same`"):
        elastalog.open(CONGRUENT, {"edge": [(0, 1)]}, strategy="counting")


def test_who_keeps_global_levels_keeps_all_pairs_and_the_plan_says_so() -> None:
    with elastalog.open(CONGRUENT, {"edge": [(1, 2)]}, levels="global") as db:
        assert not db._backend.program.merged
    checked = Program.parse(CONGRUENT).checked
    merged = lower(checked, equivalences=kept_as_classes(checked, can_merge=True))
    plans = "\n".join(list_plans(merged, NoStatistics()))
    assert "classes of same are formed in every round; an update forms those anew that it concerns" in plans
    assert "all pairs of same are kept" not in plans


@pytest.mark.parametrize("more", [".limitsize edge(n=5)", "edge(x, a) <= edge(x, b) :- b < a."])
def test_what_depends_on_an_order_keeps_all_pairs(more: str) -> None:
    text = PROGRAMS["through another relation"] + more
    assert not kept_as_classes(Program.parse(text).checked, can_merge=True)


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "bf"])
@pytest.mark.parametrize("metric", ["height", "size"])
def test_proofs_are_chains_of_pairs_that_were_there_before(strategy: str, metric: str) -> None:
    explicit: Facts = {"edge": {(1, 2), (2, 3)}, "next": {(1, 5), (3, 6)}, "same": {(7, 7)}}
    with elastalog.open(CONGRUENT, explicit, strategy=strategy, metric=metric) as db:
        for fact in db["same"]:
            assert verdict(db.explain(("same", fact)), db, explicit)
        assert "same(1, 3)" in str(db.explain("same(6, 5)"))
        db.apply(deleted={"edge": [(2, 3)]})
        assert "same(5, 6)" not in str(list(db["same"]))
        assert "edge" in str(db.why_not("same(5, 6)"))
        explicit["edge"] = {(1, 2)}
        assert verdict(db.explain("same(2, 1)"), db, explicit)


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dred"])
def test_no_proof_of_a_pair_of_equals_rests_on_itself(strategy: str) -> None:
    """In the round in which the class of 0 grows, the last rule finds (0, 0) again."""
    text = """.decl start(x: number)
        .decl is_on()
        .decl same(x: number, y: number) eqrel
        is_on() :- start(_).
        same(x + 1, x) :- (same(_, x) ; start(x)), x < 5.
        same(x, y) :- same(x, y), is_on()."""
    explicit: Facts = {"start": {(0,), (2,), (4,)}}
    with elastalog.open(text, explicit, strategy=strategy) as db:
        for fact in db["same"]:
            assert verdict(db.explain(("same", fact)), db, explicit)


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dredc"])
def test_a_store_continues_with_classes(tmp_path: Path, strategy: str) -> None:
    facts = {"edge": [(1, 2)], "next": [(1, 5), (2, 6), (6, 8)]}
    with elastalog.open(CONGRUENT, facts, strategy=strategy, store=tmp_path / "s") as db:
        db.apply({"next": [(5, 9)]})
        known = facts_of(db)
    with elastalog.open(store=tmp_path / "s") as db:
        assert db._backend.program.merged == {"same"}
        assert facts_of(db) == known
        assert verdict(
            db.explain("same(5, 6)"), db, {"edge": {(1, 2)}, "next": {*facts["next"], (5, 9)}, "same": set()}
        )
        db.apply(deleted={"edge": [(1, 2)]})
        assert not db["same"]
        assert db.verify().is_exact


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dred", "dense"])
def test_classes_stay_classes_when_rules_change(strategy: str) -> None:
    facts = {"edge": [(1, 2)], "next": [(1, 5), (2, 6), (6, 8)]}
    with elastalog.open(CONGRUENT, facts, strategy=strategy) as db:
        rule = "same(x, y) :- same(x, _), next(x, y), x > 5."
        tree = parse_accepted(CONGRUENT + rule)
        db.change_rules(rule)
        assert db._backend.program.merged == {"same"}
        assert set(db["same"]) == evaluate(tree, facts)["same"]
        assert (6, 8) in db["same"]
        db.apply(deleted={"next": [(2, 6)]})
        facts["next"].remove((2, 6))
        assert set(db["same"]) == evaluate(tree, facts)["same"]
        db.change_rules(removed=[rule])
        assert set(db["same"]) == evaluate(parse_accepted(CONGRUENT), facts)["same"]
        assert db.verify().is_exact


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_pairs_are_written_out_when_the_recursion_goes_or_comes(strategy: str) -> None:
    facts = {"edge": [(1, 2)], "next": [(1, 5), (2, 6), (6, 8)]}
    recursion = CONGRUENT.splitlines()[-1]
    with elastalog.open(CONGRUENT, facts, strategy=strategy) as db:
        db.change_rules(removed=[recursion])
        assert set(db["same"]) == {(1, 1), (1, 2), (2, 1), (2, 2)}
        db.change_rules(recursion)
        assert set(db["same"]) == evaluate(parse_accepted(CONGRUENT), facts)["same"]
        assert db.verify().is_exact


def is_merged(program: GeneratedProgram) -> bool:
    checked = Program.parse(program.text).checked
    return kept_as_classes(checked, can_merge=True) != kept_as_classes(checked)


def test_random_programs_have_equivalences_in_recursion() -> None:
    assert sum(is_merged(seeded_program(seed, RANDOM)) for seed in range(60)) > 5


@pytest.mark.parametrize("seeds", [range(12), [500], pytest.param(range(12, 600), marks=pytest.mark.long)])
def test_random_programs_with_equivalences_in_recursion(seeds: range | list[int]) -> None:
    for seed in seeds:
        program, updates = seeded_case(seed, RANDOM, most_updates=2)
        for strategy in ("elastic", "bfc") if is_merged(program) else ():
            follow(program, updates, strategy=strategy, is_annotated=strategy == "elastic")


def test_the_command_line_runs_it_as_classes(tmp_path: Path) -> None:

    program = tmp_path / "p.dl"
    program.write_text(CONGRUENT.replace(".input same\n", "") + ".printsize same\n")
    (tmp_path / "edge.facts").write_text("0\t1\n1\t2\n")
    (tmp_path / "next.facts").write_text("".join(f"{i}\t{i + 2}\n" for i in range(300)))
    result = run("run", program, "-F", tmp_path, "-D", tmp_path)
    assert result.exit_code == 0, result.output
    assert str(302**2) in result.output
    shown = run("show", program, "--stage", "plan")
    assert "classes of same are formed in every round" in shown.output


def test_classes_grow_and_tell_who_has_moved() -> None:
    merging = Merging()
    assert merging.join(np.array([[1, 2], [2, 1], [4, 4]], np.int32)).tolist() == [[1, 2], [4, 4]]
    assert merging.moved()[:, 0].tolist() == [1, 2, 4]
    assert not len(merging.moved())
    assert not len(merging.join(np.array([[2, 1], [4, 4]], np.int32)))
    assert merging.join(np.array([[4, 2]], np.int32)).tolist() == [[4, 2]]
    assert not len(merging.join(np.array([[4, 4]], np.int32)))  # it has moved, and was there before
    assert merging.moved().tolist() == [[4, 2]]  # the smaller class goes over to the larger
    assert merging.rows().tolist() == [[1, 1], [2, 1], [4, 1]]
    assert len({representative for _, representative in merging.rows().tolist()}) == 1
