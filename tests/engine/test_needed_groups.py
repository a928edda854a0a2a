"""Aggregates that test variables which only the recursion of their rule gives values."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.settings import SETTINGS
from tests.commands import run
from tests.engine.judging import facts_of, followed, judge
from tests.forcing import forced
from tests.provenance.databases import require_proofs
from tests.reference.cases import parse_accepted

HEADER = """
.decl item, chosen(x: number)
.input item, chosen
"""
RULES = {
    "a count": "chosen(x + 1) :- chosen(x), x < 6, n = count : { item(y), y < x }, n > 0, n < 3.",
    "a sum under negation": "chosen(n % 7) :- chosen(x), n = sum y : { item(y), !item(x), y != x }.",
    "a least value": "chosen(y) :- chosen(x), y = min z : { item(z), z > x }.",
    "several": """.decl seen(x: number, y: number)
seen(x, 0) :- chosen(x).
seen((n + m) % 5, k) :- seen(x, y), n = count : { item(z), z < x }, m = sum z : { item(z), z > y },
  k = count : { item(x), item(z), z != y }.""",
    "of each other": "chosen(m) :- chosen(x), n = count : { item(y), y < x }, m = min y : { item(y), y > n }.",
    "nested": """chosen(n) :- chosen(x), n = count : { item(y), 1 < count : { item(z), z > x, z != y } }.
chosen(n) :- chosen(x), w = x + 1, n = sum y : { item(y), v = w + y, 2 = count : { item(z), z < v } }, n < 9.""",
    "over many lists of variables": """.decl row(a: number, b: number, c: number, d: number, e: number)
row(x, 0, 1, 2, 3) :- chosen(x).
row(m, n, k, n + 1, l + 1) :- row(a, b, c, d, e), m = count : { item(a) }, n = count : { item(b), item(_) },
  k = sum y : { item(c), item(y) }, l = count : { item(d) }, 0 <= count : { item(e) }.""",
    "through two relations": """.decl other(x: number, y: number)
other(x, n) :- chosen(x), n = count : { item(y), y <= x }.
chosen((x + n) % 6) :- other(x, n), item(k), 0 = count : { item(y), y = x + k }.
.decl above(x: number)
above(x) :- item(x), !chosen(x).""",
}
PROGRAMS = {name: f"{HEADER}{rules}\n" for name, rules in RULES.items()}
CHOSEN = PROGRAMS["a count"]
GIVEN = {"item": {(1,), (2,), (4,)}, "chosen": {(2,)}}
WAYS = [*((name, "local") for name in STRATEGIES if name != "counting"), ("elastic", "global")]


def some(random: Random, most: int) -> dict[str, set[tuple[int]]]:
    return {name: {(random.randrange(7),) for _ in range(random.randrange(most))} for name in GIVEN}


def test_values_are_needed_one_after_the_other() -> None:
    db = elastalog.open(CHOSEN, GIVEN)
    assert sorted(db["chosen"]) == [(2,), (3,), (4,), (5,)]  # 1, 2 and 2 items are less than 2, 3 and 4
    assert db["chosen"].to_arrow(annotations=True)["@level"].to_pylist() == [0, 1, 2, 3]
    changes = db.apply(deleted={"item": [(1,)]})
    assert sorted(changes["chosen"].deleted) == [(3,), (4,), (5,)]
    changes = db.apply({"item": [(0,)]})
    assert sorted(changes["chosen"].inserted) == [(3,), (4,), (5,)]
    assert set(changes) == {"item", "chosen"}


@pytest.mark.parametrize(("strategy", "kind"), WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_epoch_is_what_the_judges_say(name: str, strategy: str, kind: Any) -> None:
    random = Random(name + strategy)
    with (
        forced(group_attempts=random.choice((1, 2))),
        followed(PROGRAMS[name], GIVEN, strategy=strategy, levels=kind) as session,
    ):
        for _ in range(5):
            session.apply(*(some(random, 3) for _ in range(2)))


@pytest.mark.parametrize("strategy", ["dred", "bf", "bfc"])
def test_updates_that_know_of_the_next_one(strategy: str) -> None:
    random = Random(strategy)
    steps = [[some(random, 4) for _ in range(2)] for _ in range(8)]
    with followed(CHOSEN, GIVEN, strategy=strategy) as session:
        for i, (inserted, deleted) in enumerate(steps[:-1]):
            coming = session.db.update()
            for name, facts in steps[i + 1][1].items():
                coming.delete(name, facts)
            session.db.engine.announce(coming, ("eager", "linked")[i % 2])
            session.apply(inserted, deleted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_fact_has_a_proof_that_the_checker_accepts(name: str) -> None:
    explicit = {"item": {(1,), (2,), (4,)}, "chosen": {(2,), (0,)}}
    require_proofs(elastalog.open(PROGRAMS[name], explicit), explicit)


def test_a_proof_shows_the_members() -> None:
    db = elastalog.open(CHOSEN, facts={"item": [(1,), (2,)], "chosen": [(2,)]})
    text = str(db.explain("chosen(3)"))
    assert "count" in text
    assert "item(1)" in text
    assert "handled" not in text


def test_why_not_tells_the_value_that_an_aggregate_has() -> None:
    db = elastalog.open(CHOSEN, facts={"item": [(0,), (1,), (2,)], "chosen": [(2,)]})
    assert sorted(db["chosen"]) == [(2,), (3,)]
    text = str(db.why_not("chosen(4)"))
    assert "3 < 3" in text
    assert "handled" not in text
    assert "chosen(5)" in str(db.why_not("chosen(6)"))


def test_faults_are_found_and_mended() -> None:
    db = elastalog.open(CHOSEN, facts={"item": [(3,)], "chosen": [(2,)]})
    db.apply({"item": [(1,), (6,)]})
    assert sorted(db["chosen"]) == [(2,), (3,), (4,), (5,), (6,)]
    suggestion = db.suggest(unwanted=["chosen(6)"])
    assert "item(1)" in str(suggestion)
    assert "item(6)" not in str(suggestion)


def test_a_preview_changes_nothing() -> None:
    db = elastalog.open(CHOSEN, facts={"item": [(9,)], "chosen": [(2,)]})
    assert sorted(db.preview({"item": [(1,)]})["chosen"].inserted) == [(3,), (4,), (5,), (6,)]
    assert sorted(db["chosen"]) == [(2,)]
    assert db.epoch == 1


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "bf"])
def test_a_store_goes_on_from_it(strategy: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with elastalog.open(CHOSEN, GIVEN, store=store, strategy=strategy) as db:
        db.apply({"item": [(9,)]}, {"item": [(2,)]})
        known = facts_of(db)
    with elastalog.open(store=store) as db:
        assert facts_of(db) == known
        db.apply({"item": [(2,)]}, {"item": [(1,)]})
        explicit = {"item": {(2,), (4,), (9,)}, "chosen": {(2,)}}
        judge(db, parse_accepted(CHOSEN), explicit, is_annotated=strategy == "elastic")
        assert db.verify().is_exact


def test_rules_come_and_go() -> None:
    head, rule = CHOSEN.strip().rsplit("\n", 1)
    db = elastalog.open(head + "\nchosen(x) :- chosen(x), item(x).", facts={"item": [(1,), (2,)], "chosen": [(2,)]})
    db.change_rules(rule)
    assert sorted(db["chosen"]) == [(2,), (3,), (4,), (5,), (6,)]
    db.apply({"item": [(0,)]})
    assert sorted(db["chosen"]) == [(2,), (3,)]
    db.change_rules(removed="chosen(x) :- chosen(x), item(x).")
    db.apply(deleted={"item": [(0,)]})
    assert sorted(db["chosen"]) == [(2,), (3,), (4,), (5,), (6,)]
    db.change_rules(removed=rule)
    assert sorted(db["chosen"]) == [(2,)]


def test_groups_that_nobody_needs_any_longer_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "most_idle_groups", 0)
    db = elastalog.open(CHOSEN, facts={"item": [(1,)], "chosen": [(2,)]})
    (handled,) = db._backend.program.needed
    assert db._backend.size(handled) == 4
    db.apply(deleted={"chosen": [(2,)]})
    db.apply({"item": [(3,)]})
    assert db._backend.size(handled) == 0


CHAIN = """
.decl item(k: number, w: number)
.input item
.decl total(n: number, s: number)
.input total
total(n + 1, s) :- total(n, _), n < 30, s = sum w : { item(k, w), k <= n }.
.decl bomb(x: number)
.input bomb
.decl burst(x: number)
burst(x + 9223372036854775807) :- bomb(x), total(x, _).
"""


def totals(items: list[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(0, 0)} | {(n + 1, sum(w for k, w in items if k <= n)) for n in range(30)}


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dense", "dredc", "bfc"])
def test_an_update_that_needs_a_long_chain_of_groups_looks_for_them_first(strategy: str) -> None:
    items = [(k, k) for k in range(0, 40, 3)]
    db = elastalog.open(CHAIN, facts={"item": items}, strategy=strategy)
    changes = db.apply({"total": [(0, 0)]})
    assert set(changes["total"].inserted) == set(db["total"]) == totals(items)
    assert set(changes) == {"total"}
    db.apply({"item": [(1, 5)]}, {"total": [(0, 0)]})
    assert not db["total"]
    db.apply({"total": [(0, 0)]})
    assert set(db["total"]) == totals([*items, (1, 5)])
    assert db.verify().is_exact


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "bf"])
def test_what_fails_on_the_way_there_is_taken_back(strategy: str) -> None:
    items = [(k, k) for k in range(0, 40, 3)]
    db = elastalog.open(CHAIN, facts={"item": items, "bomb": [(20,)]}, strategy=strategy)
    with pytest.raises(ElastalogError, match="E0601"):
        db.apply({"total": [(0, 0)], "item": [(1, 1)]})
    assert db.epoch == 1
    assert not db["total"]
    assert sorted(db["item"]) == items
    db.apply({"total": [(0, 0)]}, {"bomb": [(20,)]})
    assert set(db["total"]) == totals(items)
    assert db.verify().is_exact


SUBSUMED = """
.decl item(x: number)
.input item
.decl step(x: number, y: number, w: number)
.input step
.decl far(x: number, d: number)
far(1, 0).
far(y, d + w + n) :- far(x, d), step(x, y, w), n = count : { item(k), k < d }.
far(x, d) <= far(x, c) :- c < d.
"""


def test_beside_subsumption() -> None:
    random = Random(7)
    for _ in range(8):
        facts: dict[str, set[tuple[Any, ...]]] = {
            "item": {(random.randrange(6),) for _ in range(3)},
            "step": {(random.randrange(1, 6), random.randrange(1, 6), random.randrange(1, 5)) for _ in range(8)},
        }
        with followed(SUBSUMED, facts, explicit={**facts, "far": {(1, 0)}}, is_annotated=False) as session:
            come, go = (random.randrange(1, 6), random.randrange(1, 6), 1), next(iter(facts["step"]))
            session.apply({"step": [come], "item": [(0,)]}, {"step": [go]})


def test_values_without_end_meet_the_limits() -> None:
    with pytest.raises(LimitReached):
        elastalog.open(
            CHOSEN.replace("x < 6, ", ""), facts={"item": [(1,)], "chosen": [(2,)]}, limits=elastalog.Limits(time=1)
        )


def test_the_command_line_evaluates_and_asks(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(CHOSEN + ".output chosen\n")
    (tmp_path / "item.facts").write_text("1\n")
    (tmp_path / "chosen.facts").write_text("2\n")
    result = run("run", program, "-F", tmp_path, "-D", tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "chosen.csv").read_text().split() == ["2", "3", "4", "5", "6"]
    result = run("query", program, "-F", tmp_path, "chosen(x), x > 4")
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.split() if line.isdigit()] == ["5", "6"]
    result = run("show", "--stage", "plan", program)
    assert "evaluation goes on until all of it is in @handled.1.x" in result.stdout
