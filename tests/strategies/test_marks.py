"""What marks may and may not do (their results are compared with the reference elsewhere)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.backends.sets import Facts, SetMaintenance, size
from elastalog.evaluation.strategies import STRATEGIES, dred
from elastalog.evaluation.strategies.look_ahead import LEAST_SAVING, Marking, Marks, MarksChoice
from tests.closures import CLOSURE
from tests.closures import RIGHT_CLOSURE as PATHS
from tests.engine.judging import follow, followed
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update
from tests.strategies.running import contents, pending

POSITIVE = Features(negation=False, aggregates=False)
SEEDS = range(10)


def of_inputs(update: Update, inputs: tuple[str, ...]) -> Update:
    """Only the changes of relations without rules."""
    return Update(
        {name: facts for name, facts in update.deleted.items() if name in inputs},
        {name: facts for name, facts in update.inserted.items() if name in inputs},
    )


def test_dred_over_deletes_the_same_facts_with_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    marked: list[int] = []
    original = dred.over_delete

    def over_delete(stratum: SetMaintenance, known: Facts, counters: Any) -> Facts:
        deleted = original(stratum, known, counters)
        sizes.append(size(deleted))
        marked.append(size(known))
        return deleted

    monkeypatch.setattr(dred, "over_delete", over_delete)
    used = 0
    for seed in (*SEEDS, 36):
        program, updates = seeded_case(seed, POSITIVE, 6)
        runs = []
        for is_announced in (False, True):
            sizes.clear()
            with elastalog.open(program.text, program.facts, strategy="dred") as db:
                prepared = [pending(db, of_inputs(update, program.inputs)) for update in updates]
                for number, update in enumerate(prepared):
                    if is_announced and number + 1 < len(prepared):
                        db.engine.announce(prepared[number + 1], "eager")
                    update.commit()
                runs.append((list(sizes), contents(db, program.schemas)))
        assert runs[0] == runs[1], seed
        used += sum(marked)
    assert used, "no case had marks"


@pytest.mark.parametrize("strategy", ["dred", "bf", "bfc"])
@pytest.mark.parametrize("marks", ["eager", "linked"])
def test_an_announced_update_need_not_come(strategy: str, marks: str) -> None:
    for seed in SEEDS:
        program, updates = seeded_case(seed, most_updates=6)
        with followed(program.text, program.facts, explicit=program.explicit, strategy=strategy) as session:
            for number, update in enumerate(updates):
                other = updates[(number * 3 + seed) % len(updates)]
                session.db.engine.announce(pending(session.db, other), marks)
                session.apply(update.inserted, update.deleted)


@pytest.mark.parametrize("strategy", ["bf", "bfc", "dred"])
def test_any_facts_may_be_marked(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every fact that the last update touched, of whatever kind, had been marked."""

    def everything(self: Marking, stratum: SetMaintenance) -> Facts:
        relations = stratum._relations
        rows = {
            name: relations[name].present_rows()[::2].copy() for name in stratum.own if not relations[name].touched_used
        }
        return stratum.facts_of_rows(rows)

    monkeypatch.setattr(Marking, "candidates", everything)
    for seed in SEEDS:
        follow(*seeded_case(seed), strategy=strategy, is_annotated=False)


ONE_WAY = (
    PATHS
    + """
.decl one_way(x: number, y: number)
one_way(x, y) :- path(x, y), !edge(y, x).
"""
)


def stream_of(
    strategy: str, marks: str, updates: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]]
) -> tuple[set[Any], list[dict[str, int]]]:
    """The paths after a stream of deletions and insertions, and what every update counted."""
    with elastalog.open(PATHS, {"edge": [(1, 2), (2, 3), (3, 4)]}, strategy=strategy) as db:
        prepared = []
        for deleted, inserted in updates:
            update = db.update()
            update.delete("edge", deleted)
            update.insert("edge", inserted)
            prepared.append(update)
        counted = []
        for number, update in enumerate(prepared):
            if number + 1 < len(prepared):
                db.engine.announce(prepared[number + 1], marks)
            update.commit()
            counted.append(update.stats.work.counters.as_dict())
        return set(db["path"]), counted


def test_dred_marks_what_will_certainly_be_back() -> None:
    """path(1, 2) rests on edge(1, 2) alone, which comes back. path(1, 3) and path(1, 4) also use path facts, which are
    implicit and might have gone."""
    paths, (first, second) = stream_of("dred", "eager", [([(1, 2)], []), ([], [(1, 2)])])
    assert (first["over_deletions"], first["marked_positive"]) == (3, 1)
    # path(1, 2) is inserted with edge(1, 2); path(1, 3) and path(1, 4) by rules.
    assert second["insertions"] == 2
    assert paths == {(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)}


def test_positive_marks_are_passed_on() -> None:
    """Each of path(3, 4), path(2, 4) and path(1, 4) follows from an edge that is there or comes back, and the one
    before it."""
    _, (first, second) = stream_of("dred", "eager", [([(3, 4)], []), ([], [(3, 4)])])
    assert (first["over_deletions"], first["marked_positive"]) == (3, 3)
    assert second["insertions"] == 0


def test_what_the_next_update_questions_is_not_certain() -> None:
    """As before, but edge(2, 3) goes when edge(3, 4) comes back: path(2, 4) and path(1, 4) do not."""
    paths, (first, second) = stream_of("dred", "eager", [([(3, 4)], []), ([(2, 3)], [(3, 4)])])
    assert (first["marked_explicit"], first["marked_positive"]) == (1, 1)
    assert second["insertions"] == 0
    assert paths == {(1, 2), (3, 4)}


def test_a_fact_that_is_found_again_loses_its_positive_mark() -> None:
    updates = [([], [(1, 3)]), ([(1, 2)], []), ([], [(1, 2)])]
    _, (_, second, third) = stream_of("dred", "eager", updates)
    # path(1, 3) and path(1, 4) are over-deleted with edge(1, 2) and found again by edge(1, 3).
    assert (second["over_deletions"], second["rederivations"], second["marked_positive"]) == (3, 2, 1)
    assert third["insertions"] == 0


@pytest.mark.parametrize("comes", [[], [(9, 9)], [(1, 2), (2, 9)]])
def test_positive_marks_wait_for_the_update_that_was_announced(comes: list[tuple[int, int]]) -> None:
    """The update that follows inserts less than was announced, or deletes more."""
    for more_deleted in ([], [(2, 3)]):
        with (
            elastalog.open(ONE_WAY, {"edge": [(1, 2), (2, 3), (3, 4)]}, strategy="dred") as db,
            elastalog.open(ONE_WAY, {"edge": [(1, 2), (2, 3), (3, 4)]}, strategy="recompute") as plain,
        ):
            announced = db.update()
            announced.insert("edge", [(1, 2)])
            db.engine.announce(announced)
            for session in (db, plain):
                session.apply(deleted={"edge": [(1, 2)]})
                session.apply(inserted={"edge": comes}, deleted={"edge": more_deleted})
            assert contents(db, db.schemas) == contents(plain, plain.schemas)


@pytest.mark.parametrize("strategy", ["dred", "bf", "bfc"])
def test_linked_marks_spare_the_search_for_consequences(strategy: str) -> None:
    updates: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = [([], [(4, 5)]), ([(1, 2)], [])]
    with_marks, (first, second) = stream_of(strategy, "linked", updates)
    plain, (_, without_marks) = stream_of(strategy, "none", updates)
    assert with_marks == plain
    # path(1, 2), path(1, 3), path(1, 4) and path(1, 5) each have a derivation with edge(1, 2).
    assert (first["marked_explicit"], first["marked_implicit"]) == (1, 4)
    name = "over_deletions" if strategy == "dred" else "deletions"
    assert (without_marks[name], second[name]) == (4, 0)
    assert second["derivations"] < without_marks["derivations"]


@pytest.mark.parametrize("strategy", ["bf", "bfc", "dred"])
@pytest.mark.parametrize("marks", ["eager", "linked"])
def test_a_failed_update_leaves_marks_as_they_were(strategy: str, marks: str) -> None:
    """An update is announced, another fails on the way, then the announced one comes."""
    program = ONE_WAY + ".decl most(y: number)\n.decl total(z: number)\ntotal(x + y) :- path(x, 5), most(y).\n"
    facts = {"edge": [(1, 2), (2, 3)], "most": [(2**63 - 1,)]}
    with elastalog.open(program, facts, strategy=strategy) as db:
        following = db.update()
        following.delete("edge", [(2, 3)])
        db.engine.announce(following, marks)
        db.apply(inserted={"edge": [(3, 4)]})
        with pytest.raises(elastalog.ElastalogError):
            db.apply(inserted={"edge": [(4, 5)]})
        following.commit()
        assert set(db["path"]) == {(1, 2), (3, 4)}
        assert set(db["one_way"]) == {(1, 2), (3, 4)}


@pytest.mark.parametrize("strategy", ["dred", "bf", "bfc"])
@pytest.mark.parametrize("marks", ["eager", "linked"])
def test_an_explicit_fact_whose_derivation_goes_and_comes_back_stays(strategy: str, marks: str) -> None:
    """`p(2, 3)` is given, and derived from `e(3, 2)`, which goes, and is announced to come back."""
    text = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(y, x) :- e(x, y).\n"
    with elastalog.open(text, {"e": [(3, 2), (4, 2)], "p": [(2, 3)]}, strategy=strategy) as db:
        back = db.update()
        back.insert("e", [(3, 2), (4, 2)])
        db.engine.announce(back, marks)
        db.apply(deleted={"e": [(3, 2), (4, 2)]})
        assert set(db["p"]) == {(2, 3)}
        back.commit()
        assert set(db["p"]) == {(2, 3), (2, 4)}
        db.apply(deleted={"e": [(3, 2), (4, 2)], "p": [(2, 3)]})
        assert not set(db["p"])


@pytest.mark.parametrize("strategy", ["dred", "bf", "bfc"])
@pytest.mark.parametrize("marks", ["eager", "linked"])
def test_a_stratum_evaluated_anew_does_not_see_what_will_come_back(strategy: str, marks: str) -> None:
    """`e(3)` goes, and is announced to come back; `q`, which has a limit, is evaluated anew after `p` is maintained."""
    text = ".decl e(x: number)\n.decl p(x: number)\n.decl q(x: number)\n.limitsize q(n=1000)\n"
    text += "p(x) :- e(x).\nq(x) :- e(x).\nq(x + 1) :- q(x), p(x).\n"
    with elastalog.open(text, {"e": [(3,), (5,)]}, strategy=strategy) as db:
        back = db.update()
        back.insert("e", [(3,)])
        db.engine.announce(back, marks)
        db.apply(deleted={"e": [(3,)]})
        assert set(db["q"]) == {(5,), (6,)}
        back.commit()
        assert set(db["q"]) == {(3,), (4,), (5,), (6,)}


# --- look-ahead that decides by itself where it pays ------------------------------------------------------------------


def played(number: int, plain: int, marked: int) -> list[Marks]:
    """The choices for so many updates of ten facts that take so many derivations, without marks and with them."""
    choice, chosen = MarksChoice(), [Marks.NONE]
    for _ in range(number):
        chosen.append(choice.next())
        is_marked, is_looking = (marks is Marks.LINKED for marks in chosen[-2:])
        choice.observe(10, marked if is_marked else plain, is_marked=is_marked, is_looking=is_looking)
    return chosen[1:]


def test_updates_that_marks_cannot_make_cheaper_by_enough_are_left_alone() -> None:
    assert set(played(1000, 2 * LEAST_SAVING - 10, 0)) == {Marks.NONE}


def test_where_marks_save_much_they_are_made() -> None:
    chosen = played(1000, 20_000, 15_000)
    assert chosen.count(Marks.LINKED) > 950
    assert chosen[-50:].count(Marks.LINKED) >= 47


@pytest.mark.parametrize("marked", [20_000 - LEAST_SAVING // 2, 20_000, 30_000])
def test_where_they_save_nothing_few_updates_try_them(marked: int) -> None:
    chosen = played(1000, 20_000, marked)
    assert 0 < chosen.count(Marks.LINKED) <= 1000 // 28


def test_what_was_learnt_is_put_to_the_test_again() -> None:
    choice, last = MarksChoice(), Marks.NONE
    found = []
    for number in range(2000):
        marks = choice.next()
        cheap = number > 600  # from now on updates are cheap without marks
        effort = 3_000 if cheap else 12_000 if last is Marks.LINKED else 20_000
        choice.observe(10, effort, is_marked=last is Marks.LINKED, is_looking=marks is Marks.LINKED)
        last = marks
        found.append(choice.usual)
    assert found[500] is Marks.LINKED
    assert found[-1] is Marks.NONE


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "counting"])
def test_results_do_not_depend_on_it(strategy: str) -> None:
    random = Random(3)
    every = [(x, y) for x in range(40) for y in range(x + 1, min(x + 4, 40))]
    edges = set(every)
    updates: list[Update] = []
    for _ in range(24):
        some = set(random.sample(every, 4))
        updates.append(Update({"edge": sorted(some & edges)}, {"edge": sorted(some - edges)}))
        edges ^= some
    with elastalog.open(CLOSURE, {"edge": every}, strategy=strategy) as db:
        for update, upcoming in zip(updates, [*updates[1:], None], strict=True):
            if upcoming is not None:
                db.engine.announce(pending(db, upcoming), "auto")
            db.apply(update.inserted, update.deleted)
        with elastalog.open(CLOSURE, {"edge": sorted(edges)}) as fresh:
            assert set(db["path"]) == set(fresh["path"])
