"""What `change_rules` takes and refuses, and that nothing of how it works can be seen."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import elastalog
from elastalog.analysis.listing import list_program
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.changes import RuleTexts
from elastalog.program import rule_texts
from elastalog.session import Session
from tests.provenance.databases import verdict
from tests.refusals import refused

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)   // reachability
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).  // the step
.decl degree(x: number, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
"""
FACTS = {"edge": [(1, 2), (2, 3), (3, 4)]}


FAR = """
.type Node <: number
.decl far(x: Node)
far(9).
far(y) :- path(1, y), !edge(1, y).
"""


@pytest.fixture
def db() -> Session:
    return elastalog.open(PROGRAM, FACTS)


def codes(raised: Any) -> list[str]:
    return [found.code for found in raised.value.diagnostics]


def test_rules_are_appended_and_cut_out(db: Session) -> None:
    changes = db.change_rules("path(x, x) :- edge(x, _).", [2])
    assert sorted(changes["path"].inserted) == [(1, 1), (2, 2), (3, 3)]
    assert sorted(changes["path"].deleted) == [(1, 3), (1, 4), (2, 4)]
    assert db.epoch == 2
    assert db.program.tree.source.text == PROGRAM.replace("path(x, z) :- path(x, y), edge(y, z).  ", "  ") + (
        "path(x, x) :- edge(x, _).\n"
    )
    assert rule_texts(db.program)[1] == "degree(x, n) :- edge(x, _), n = count : { edge(x, _) }."


def test_a_rule_alone_in_its_line_takes_the_line_along(db: Session) -> None:
    db.change_rules(removed=["path(x,y):-edge(x,y)"])
    assert "reachability\npath(x, z)" in db.program.tree.source.text


def test_part_of_a_clause(db: Session) -> None:
    db.change_rules("path(x, y), edge(y, x) :- edge(x, y), x > 1 ; path(y, x), x < 0.")
    assert rule_texts(db.program)[3:] == (
        "path(x, y) :- edge(x, y), x > 1.",
        "path(x, y) :- path(y, x), x < 0.",
        "edge(y, x) :- edge(x, y), x > 1.",
        "edge(y, x) :- path(y, x), x < 0.",
    )
    db.change_rules(removed=[4, "edge(y, x) :- path(y, x), x < 0."])
    assert rule_texts(db.program)[3:] == ("path(x, y) :- path(y, x), x < 0.", "edge(y, x) :- edge(x, y), x > 1.")
    db.change_rules("path(x, y), edge(y, x) :- edge(x, y), x > 1.")
    assert rule_texts(db.program)[3:] == (
        "path(x, y) :- path(y, x), x < 0.",
        "edge(y, x) :- edge(x, y), x > 1.",
        "path(x, y) :- edge(x, y), x > 1.",
    )


def test_a_rule_that_is_there_is_not_added_again(db: Session) -> None:
    program = db.program
    assert db.change_rules("path(x,y) :- edge(x,y).").impact == 0
    assert (db.epoch, db.program) == (1, program)


def test_a_rule_both_added_and_removed_ends_up_present(db: Session) -> None:
    assert db.change_rules("path(x,y) :- edge(x,y).", [1]).impact == 0
    assert db.change_rules("path(x, x) :- edge(x, _).", [1]).impact > 0


def test_of_a_rule_that_is_there_twice_one_is_removed() -> None:
    db = elastalog.open(PROGRAM + "path(x, y) :- edge(x, y).\n", FACTS)
    assert db["path"].to_arrow(annotations=True).to_pydict()["@count"][0] == 2
    db.change_rules(removed=["path(x, y) :- edge(x, y)."])
    assert db["path"].to_arrow(annotations=True).to_pydict()["@count"][0] == 1
    assert len(rule_texts(db.program)) == 3


def test_a_rule_that_is_there_twice_is_two_elements() -> None:
    db = elastalog.open(PROGRAM + "path(x, y) :- edge(x, y).\n", FACTS)
    db.change_rules(removed=[1, 4])
    element = ("-", "path(x, y) :- edge(x, y).")
    assert db.localise(missing=["path(1, 2)"]).elements == [element, element]
    suggestion = db.suggest(missing=["path(1, 2)"])
    assert suggestion.elements == [element]
    suggestion.apply()
    assert (1, 2) in db["path"]


def test_rules_with_declarations_and_facts(db: Session) -> None:
    with db.update() as update:
        update.insert("edge", [(4, 1)])
        update.add_rules(FAR)
        update.insert("far", [(8,)])
    assert sorted(update.changes["far"].inserted) == [(1,), (3,), (4,), (8,), (9,)]
    assert update.stats.inserted == 3
    assert sorted(db["far"]) == [(1,), (3,), (4,), (8,), (9,)]
    db.apply(deleted={"far": [(9,)]})
    assert (9,) not in db["far"]


def test_an_update_that_is_dropped_changes_nothing(db: Session) -> None:
    program = db.program
    with suppress(RuntimeError), db.update() as update:
        update.remove_rules([1])
        raise RuntimeError
    assert (db.epoch, db.program, len(db["path"])) == (1, program, 6)


@pytest.mark.parametrize(
    ("added", "removed", "code"),
    [
        ("path(x :- edge(x, y).", [], "E0110"),
        ("path(x, y) :- edeg(x, y).", [], "E0204"),
        ('path(x, "a") :- edge(x, _).', [], "E0302"),
        ("path(x, y) :- edge(x, _).", [], "E0320"),
        (".decl edge(x: number)", [], "E0201"),
        ("", [4], "E0616"),
        ("", [0], "E0616"),
        ("", ["path(a, b) :- edge(a, b)."], "E0616"),
        ("", ["edge(1, 2)."], "E0616"),
        ("edge(x, y) :- path(x, y), !path(y, x).", [], "E0412"),
        ("edge(x, y) :- edge(y, x), 1 < count : { path(_, _) }.", [], "E0413"),
    ],
)
def test_what_is_refused_leaves_everything_as_it_was(db: Session, added: str, removed: list[Any], code: str) -> None:
    program = db.program
    with pytest.raises(ElastalogError) as raised:
        db.change_rules(added, removed)
    assert codes(raised) == [code]
    assert (db.epoch, db.program, len(db["path"])) == (1, program, 6)


def test_rules_may_be_given_one_by_one(db: Session) -> None:
    db.change_rules(added=["tip(x) :- edge(x, _).", ".decl tip(x: number)"])
    assert "tip" in db
    for wrong in (None, 3, [None]):
        with pytest.raises(TypeError, match="rules to add are program text"):
            db.change_rules(added=wrong)
    for unfit in (None, 1.5, [True], b"x"):
        with pytest.raises(TypeError, match="rules to remove are numbers or texts"):
            db.change_rules(removed=unfit)


def test_an_error_points_into_the_added_text(db: Session) -> None:
    with pytest.raises(ElastalogError) as raised:
        db.change_rules("path(x, x) :- edge(x, _).\npath(x, y) :- edeg(x, y).")
    (found,) = raised.value.diagnostics
    assert (found.source.name, found.source.locate(found.labels[0].span.start)) == ("<added rules>", (2, 15))


def test_old_and_new_rules_must_be_stratified_together() -> None:
    db = elastalog.open(
        ".decl a(x: number)\n.decl p(x: number)\n.decl q(x: number)\np(x) :- a(x), !q(x).", {"a": [(1,)]}
    )
    with pytest.raises(ElastalogError) as raised:
        db.change_rules("q(x) :- a(x), !p(x).", [1])
    assert codes(raised) == ["E0412"]
    assert "removed count too" in raised.value.diagnostics[0].notes[-1]
    assert list(db["p"]) == [(1,)]
    db.change_rules(removed=[1])
    db.change_rules("q(x) :- a(x), !p(x).")
    assert (list(db["p"]), list(db["q"])) == ([], [(1,)])


def test_an_overflow_is_rolled_back(db: Session) -> None:
    program, state = db.program, {name: sorted(db[name]) for name in db}
    with pytest.raises(ElastalogError) as raised:
        db.change_rules("degree(x, y * 9223372036854775807) :- path(x, y).", [3])
    assert codes(raised) == ["E0601"]
    assert (db.epoch, db.program, {name: sorted(db[name]) for name in db}) == (1, program, state)
    assert db.verify().is_exact
    db.apply({"edge": [(2, 9)]})
    assert db.verify().is_exact


def test_counting_refuses_recursion() -> None:
    db = elastalog.open(PROGRAM.replace("path(x, z) :- path(x, y), edge(y, z).", ""), FACTS, strategy="counting")
    with pytest.raises(ElastalogError) as raised:
        db.change_rules("path(x, z) :- path(x, y), edge(y, z).")
    assert codes(raised) == ["E0901"]
    assert len(db["path"]) == 3
    db.change_rules("path(x, x) :- edge(x, _).")
    assert len(db["path"]) == 6


def test_untouched_strata_are_not_evaluated() -> None:
    text = "".join(f".decl r{i}(x: number)\nr{i}(x) :- r{i - 1}(x).\n" for i in range(1, 9))
    db = elastalog.open(".decl r0(x: number)\n" + text, {"r0": [(i,) for i in range(1000)]})
    with db.update() as update:
        update.add_rules("r5(x) :- r0(y), x = y + 999, x < 1001.")
    work = {stratum.relations: stratum.derivations for stratum in update.stats.work.strata}
    assert set(work) == {(f"r{i}",) for i in range(5, 9)}
    assert max(work.values()) <= 2
    assert sorted(update.changes["r8"].inserted) == [(1000,)]


def test_proofs_after_a_change_are_accepted(db: Session) -> None:
    db.change_rules("path(x, x) :- edge(x, _).\npath(x, z) :- path(x, y), path(y, z).", [2])
    explicit = {name: set(db.explicit(name)) for name in db}
    for name in ("path", "degree"):
        for fact in db[name]:
            for proof in (db.explain((name, fact)), *db.proofs((name, fact), 3)):
                assert verdict(proof, db, explicit)
                assert "@rule" not in f"{proof}{proof.to_json()}{proof.to_dot()}"
    assert db.explain("path(1, 4)").rule is not None
    assert "(R3)" in str(db.why_not("path(4, 1)"))


def test_nothing_of_it_is_seen(db: Session) -> None:
    db.change_rules("path(x, x) :- edge(x, _).", [2])
    shown = [*list_program(db.program.checked), *db, str(db.why_not("path(1, 4)")), repr(db.statistics())]
    shown += [repr(entry) for entry in db.log()]
    shown += [repr(forecast) for forecast in db.forecast({"edge": [(7, 8)]})]
    shown += list(db._backend.held.relations)
    assert not [line for line in shown if "@rule" in line]
    numbers = {rule.number: rule.text for rule in db.statistics().rules if rule.number is not None}
    assert numbers[2] == "degree(x, n) :- edge(x, _), n = count : { edge(x, _) }."


@pytest.mark.parametrize(
    ("strategy", "marks"), [("dred", "eager"), ("bf", "eager"), ("bf", "linked"), ("bfc", "linked")]
)
def test_marks_across_a_change(strategy: str, marks: str) -> None:
    db = elastalog.open(PROGRAM, FACTS, strategy=strategy)
    steps: list[Any] = [
        ({"edge": [(4, 1)]}, {}, "", []),
        ({}, {"edge": [(2, 3)]}, "path(x, y) :- path(y, x).", []),
        ({}, {"edge": [(4, 1)]}, "", ["path(x, z) :- path(x, y), edge(y, z)."]),
        ({"edge": [(2, 3)]}, {"edge": [(1, 2)]}, "", []),
    ]
    for number, (inserted, deleted, added, removed) in enumerate(steps):
        if number + 1 < len(steps):
            following = db.update()
            for name, rows in steps[number + 1][1].items():
                following.delete(name, rows)
            db.engine.announce(following, marks)
        with db.update() as update:
            for name, rows in deleted.items():
                update.delete(name, rows)
            for name, rows in inserted.items():
                update.insert(name, rows)
            if added:
                update.add_rules(added)
            update.remove_rules(removed)
        fresh = elastalog.open(db.program, {"edge": list(db.explicit("edge"))}, strategy=strategy)
        assert {name: set(db[name]) for name in db} == {name: set(fresh[name]) for name in fresh}


def test_a_plan_goes_and_comes_back_with_its_rule() -> None:
    text = PROGRAM + "path(x, z) :- path(x, y), path(y, z).\n.plan 0:(2, 1), 1:(1, 2)\n.output path\n"
    db = elastalog.open(text, FACTS)
    db.change_rules(removed=["path(x, z) :- path(x, y), path(y, z).", 2])
    assert ".plan" not in db.program.tree.source.text
    suggestion = db.suggest(missing=["path(1, 3)"], rejected=["-path(x, z) :- path(x, y), edge(y, z)."])
    assert suggestion.elements == [("-", "path(x, z) :- path(x, y), path(y, z).")]
    suggestion.apply()
    assert db.program.tree.source.text.endswith("path(x, z) :- path(x, y), path(y, z).\n.plan 0:(2, 1), 1:(1, 2)\n")


def test_rules_between_epochs(db: Session) -> None:
    rule = "path(x, x) :- edge(x, _)."
    db.change_rules(rule, [2])
    db.change_rules("", [rule, 1])
    assert db.engine.changed_rules(1, 3) == RuleTexts(
        ("path(x, z) :- path(x, y), edge(y, z).", "path(x, y) :- edge(x, y).")
    )
    assert db.engine.changed_rules(2, 1) == RuleTexts((rule,), ("path(x, z) :- path(x, y), edge(y, z).",))


def test_rules_that_were_never_in_force_together_cannot_be_debugged_together() -> None:
    text = ".decl a(x: number)\n.decl p(x: number)\n.decl q(x: number)\np(x) :- a(x), !q(x)."
    db = elastalog.open(text, {"a": [(1,)]})
    db.change_rules(removed=[1])
    db.change_rules("q(x) :- a(x), !p(x).")
    assert [str(e) for e in db.suggest(unwanted=["q(1)"]).elements] == ["+q(x) :- a(x), !p(x)."]
    with refused(help="ask about epochs closer to each other"):
        db.suggest(unwanted=["q(1)"], epochs=(1, 3))
    assert (list(db["p"]), list(db["q"]), db.epoch) == ([], [(1,)], 3)


@pytest.mark.parametrize("reading", ['!same("a", _)', '0 = count : { same("a", _) }', '!same("a", "a")'])
@pytest.mark.parametrize("recursion", ["added", "removed"])
def test_an_equivalence_that_begins_or_ends_to_read_itself_is_told_to_all_that_read_it(
    reading: str, recursion: str
) -> None:
    own, given = "same(x, y) :- same(x, y), item(_).", 'same("a", "a") :- item(_).'
    text = f"""
.decl item(x: number)
.decl same(x: symbol, y: symbol) eqrel
same("b", "c") :- item(_).
{given}
.decl without(x: symbol)
without("b") :- {reading}.
"""
    db = elastalog.open(text + (own if recursion == "removed" else ""), {"item": [(1,)]})
    assert not db["without"]
    db.change_rules(own if recursion == "added" else "", [given, *([own] if recursion == "removed" else [])])
    assert list(db["without"]) == [("b",)]
    assert db.verify().is_exact
