"""Repairs over explicit facts of random programs against brute force: what is suggested removes all faults, and
`minimum` is never wrong. And programs by hand in which rules negate, fold and supersede."""

from __future__ import annotations

import json
import time
from itertools import combinations
from math import comb
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.settings import SETTINGS
from tests.debugging.brute_force import Element, Explicit, Fault, Faults, applied, facts_of_state, shows
from tests.engine.judging import facts_of, levels_of
from tests.forcing import forced
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.reference.cases import parse_accepted
from tests.refusals import refused

POSITIVE = Features(negation=False, aggregates=False)
NEGATION = Features(aggregates=False, arithmetic=False)
MOST_TRIED = 300
"""Sets of a size that are tried; of larger sizes, and beyond, none are."""


def chosen_faults(tree: Any, explicit: Explicit, choice: Random, candidates: list[Fault]) -> Faults | None:
    """Facts that hold, as unwanted, and facts that some candidates would bring about, as missing."""
    now = facts_of_state(tree, explicit)
    derived = sorted((fact for fact in now if fact[1] not in explicit.get(fact[0], set())), key=repr)
    later = facts_of_state(tree, applied(explicit, [("+", fact) for fact in candidates]))
    lacking = sorted(later - now - set(candidates), key=repr)
    kind = choice.choice(["unwanted", "missing", "both"])
    unwanted = choice.sample(derived, min(len(derived), choice.randint(1, 2))) if kind != "missing" else []
    missing = choice.sample(lacking, min(len(lacking), 1)) if kind != "unwanted" else []
    return Faults(unwanted, missing) if unwanted or missing else None


def mended(tree: Any, explicit: Explicit, changes: list[Element], faults: Faults) -> bool:
    return not shows(tree, applied(explicit, changes), faults)[1]


def every_change(explicit: Explicit, candidates: list[Fault], faults: Faults) -> list[Element]:
    """All that may be done: deletions where something is unwanted, insertions of candidates."""
    gone: list[Element] = [
        ("-", (name, fact)) for name in sorted(explicit) for fact in sorted(explicit[name], key=repr)
    ]
    return [*(gone if faults.unwanted else []), *(("+", fact) for fact in candidates)]


def repair(seed: int, features: Features, strategy: str = "elastic") -> str | None:
    """Repairs one case; says what kind of faults it had, None if there was nothing to do."""
    program, steps = seeded_case(seed, features)
    choice = Random(seed)
    tree, explicit = parse_accepted(program.text), program.explicit
    candidates = [
        (name, fact)
        for step in steps
        for name, facts in step.inserted.items()
        for fact in facts
        if fact not in explicit.get(name, set())
    ][:4]
    faults = chosen_faults(tree, explicit, choice, candidates)
    if faults is None:
        return None
    changes = every_change(explicit, candidates, faults)
    with elastalog.open(program.text, facts=program.facts, strategy=strategy) as db:
        state = facts_of(db), levels_of(db) if strategy == "elastic" else None
        try:
            found = db.suggest(faults.unwanted, faults.missing, over="facts", candidates=candidates, time_limit=60)
        except ElastalogError as error:
            (diagnostic,) = error.diagnostics
            assert diagnostic.code in {"E0712", "E0713", "E0714"}
            found = None
        assert state == (facts_of(db), levels_of(db) if strategy == "elastic" else None)
    size = len(changes) + 1
    if found is not None:
        assert found.verified
        done: list[Element] = [("-" if sign == "+" else "+", (f.relation, f.values)) for sign, f in found.elements]
        assert set(done) <= set(changes)
        assert mended(tree, explicit, done, faults)
        assert found.bound == len(done) if found.minimum else found.bound < len(done)
        size = int(found.bound)
    for smaller in range(size):
        if comb(len(changes), smaller) > MOST_TRIED:
            break
        for part in combinations(changes, smaller):
            assert not mended(tree, explicit, list(part), faults), (part, faults)
    if found is not None and not found.minimum:
        return "not proven"
    return "none" if found is None else "both" if faults.unwanted and faults.missing else "one"


@pytest.mark.parametrize(("features", "first"), [(POSITIVE, 0), (NEGATION, 1000), (Features(), 2000)])
def test_seeded(features: Features, first: int) -> None:
    kinds = [repair(seed, features) for seed in range(first, first + 8)]
    assert kinds.count("one") >= 2


@pytest.mark.parametrize("strategy", ["recompute", "dred", "bfc"])
def test_seeded_under_other_strategies(strategy: str) -> None:
    kinds = [repair(seed, NEGATION, strategy) for seed in range(3000, 3005)]
    assert "one" in kinds


@pytest.mark.long
@pytest.mark.parametrize(("features", "first"), [(POSITIVE, 10_000), (NEGATION, 20_000), (Features(), 30_000)])
def test_many_seeded(features: Features, first: int) -> None:
    for seed in range(first, first + 8):
        repair(seed, features)


@pytest.mark.parametrize(
    ("features", "first"), [(Features(symbols=False), 4000), (Features(symbols=False, subsumptions=True), 5000)]
)
@pytest.mark.parametrize("over", ["facts", "update"])
@pytest.mark.usefixtures("impatient")
def test_seeded_patterns(features: Features, first: int, over: str) -> None:
    """Whether anything fits afterwards is judged by evaluating anew."""
    mended_ones, refusals = 0, set[str]()
    for seed in range(first, first + 10):
        program, _ = seeded_case(seed, features)
        tree, explicit = parse_accepted(program.text), program.explicit
        now = facts_of_state(tree, explicit)
        derived = sorted((fact for fact in now if fact[1] and fact[1] not in explicit.get(fact[0], set())), key=repr)
        if not derived:
            continue
        name, values = Random(seed).choice(derived)
        pattern = f"{name}({', '.join([*map(str, values[:-1]), '_'])})"
        later = over == "update"
        with elastalog.open(program.text, facts={} if later else program.facts) as db:
            if later:
                db.apply(program.facts)
            try:
                found = db.suggest(unwanted=[pattern], over=over, time_limit=4)
            except ElastalogError as error:
                refusals.add(error.diagnostics[0].code)
                continue
            done: list[Element] = [("-" if sign == "+" else "+", (f.relation, f.values)) for sign, f in found.elements]
            left = facts_of_state(tree, applied(explicit, done))
            assert not [one for one in left if one[0] == name and one[1][:-1] == values[:-1]], (seed, pattern)
            mended_ones += 1
    assert mended_ones >= 2
    assert refusals <= {"E0714", "E1002", "E1004", "E1006"}


# --- by hand --------------------------------------------------------------------------------------------------------

PATHS = """
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""


def test_unwanted_and_missing_facts_are_mended_together() -> None:
    with elastalog.open(PATHS, {"edge": [(1, 2), (2, 3), (3, 4)]}) as db:
        # Cutting 2 -> 3 and going round it takes two changes; cutting 1 -> 2 would need further ones.
        found = db.suggest(
            unwanted=["path(1, 3)"], missing=["path(1, 9)"], candidates=["edge(2, 9)", "edge(3, 9)"], over="facts"
        )
        assert str(found) == (
            "change 2 explicit facts (verified, minimum):\n  delete edge(2, 3)\n  insert edge(2, 9)\n"
            "side effects: 1 fact appears, 3 facts disappear: +path(2, 9), -path(1, 4), -path(2, 3), -path(2, 4)"
        )
        found.apply()
        assert ((1, 3) in db["path"], (1, 9) in db["path"]) == (False, True)


def test_what_goes_against_each_other_is_said() -> None:
    message = "no changes of explicit facts make path(1, 2) absent and path(1, 9) present"
    with elastalog.open(PATHS, {"edge": [(1, 2), (2, 3)]}) as db, refused("E0713", message=message):
        db.suggest(unwanted=["path(1, 2)"], missing=["path(1, 9)"], candidates=["edge(2, 9)"], over="facts")


def test_a_fact_that_no_deletion_removes_is_said_to_be_one() -> None:
    with elastalog.open(PATHS + "path(7, 8) :- 1 < 2.", {"edge": [(1, 2)]}) as db:
        with refused("E0714", notes=("deletions do not change that",)):
            db.suggest(unwanted=["path(7, 8)"])
        with refused("E0714", told="these must stay: edge(1, 2)"):
            db.suggest(unwanted=["path(1, 2)"], rejected=["+edge(1, 2)"])


def test_what_follows_from_absence_goes_by_an_insertion() -> None:
    with elastalog.open(".decl e(x: number)\n.decl n(x: number)\nn(c) :- c = count : { e(_) }.") as db:
        with refused("E0714", told="give `candidates` (as an option: `--candidate`) to insert"):
            db.suggest(unwanted=["n(0)"], over="facts")
        found = db.suggest(unwanted=["n(0)"], over="facts", candidates=["e(1)"])
        assert [str(element) for element in found.elements] == ["-e(1)"]


def test_a_derived_fact_is_neither_rejected_nor_weighed() -> None:
    with elastalog.open(PATHS, {"edge": [(1, 2)]}) as db, refused("E0715"):
        db.suggest(unwanted=["path(1, 2)"], weights={"path(1, 2)": 2})


def test_over_facts_any_sign_does_and_patterns_stand_for_many() -> None:
    """An explicit fact can only be deleted, an absent one only inserted: a sign says nothing."""
    with elastalog.open(PATHS, {"edge": [(1, 2), (2, 3), (1, 3)]}) as db:
        for written in ("edge(1, 2)", "+edge(1, 2)", "-edge(1, 2)", "edge(_, 2)"):
            found = db.suggest(unwanted=["path(1, 3)"], rejected=[written])
            assert list(map(str, found.delete)) == ["edge(1, 3)", "edge(2, 3)"]
            assert list(map(str, found.rejected)) == ["+edge(1, 2)"]
        found = db.suggest(unwanted=["path(1, 3)"], weights={"edge(1, _)": 1, "-edge(2, 3)": 9})
        assert list(map(str, found.delete)) == ["edge(1, 2)", "edge(1, 3)"]
        other = db.suggest(missing=["path(2, 9)"], candidates=["edge(2, 9)", "edge(3, 9)"], rejected=["+edge(2, _)"])
        assert list(map(str, other.insert)) == ["edge(3, 9)"]
        for rejected, code in (("edge(7)", "E0607"), ("path(1, 3)", "E0715"), ("edge(_, _)", "E0714")):
            with refused(code):
                db.suggest(unwanted=["path(1, 3)"], rejected=[rejected])


def test_side_effects_are_those_of_the_output() -> None:
    ends = PATHS + ".decl end(x: number)\n.output end\nend(y) :- path(_, y), !path(y, _)."
    with elastalog.open(ends, {"edge": [(1, 2), (2, 3), (8, 9)]}) as db:
        found = db.suggest(unwanted=["end(3)"])
        assert str(found.side_effects) == "side effects in the output: 1 fact appears: +end(2)"
        assert json.loads(found.to_json())["side_effects"]["first"] == [{"sign": "+", "fact": "end(2)"}]
        assert str(db.suggest(unwanted=["end(9)"]).side_effects) == "side effects in the output: none"


def test_of_repairs_of_one_size_that_with_the_fewest_side_effects_is_suggested() -> None:
    program = """
    .decl member(who: symbol, team: symbol)
    .decl grant(team: symbol, what: symbol)
    .decl may(who: symbol, what: symbol)
    may(w, x) :- member(w, t), grant(t, x).
    """
    facts = {"member": [("ann", "ops"), ("bob", "ops"), ("eve", "ops"), ("eve", "all")], "grant": [("ops", "key")]}
    with elastalog.open(program, facts) as db:
        for over in (None, "facts"):
            found = db.suggest(unwanted=['may("eve", "key")'], over=over)
            assert list(map(str, found.delete)) == ['member("eve", "ops")']
            assert (found.minimum, found.rejected) == (True, ())
        found = db.suggest(missing=['may("ann", "book")'])
        assert list(map(str, found.insert)) == ['grant("ops", "book")']
        assert str(found.side_effects).startswith("side effects: 2 facts appear: ")
        db.apply({"grant": [("all", "book")]})
        found = db.suggest(missing=['may("ann", "book")'])
        assert list(map(str, found.insert)) == ['member("ann", "all")']


def test_facts_like_those_that_are_there_are_suggested_first() -> None:
    program = """
    .decl member, in(who: symbol, team: symbol)
    in(w, t) :- member(w, t).
    in(w, t) :- member(w, u), in(u, t).
    """
    members = [("ada", "admins"), ("admins", "staff"), ("bob", "staff"), ("eve", "staff")]
    with elastalog.open(program, {"member": members}) as db:
        found = db.suggest(missing=['in("eve", "admins")'])
        assert list(map(str, found.insert)) == ['member("eve", "admins")'], "nobody is a member of ada"


def test_a_deletion_that_lets_a_negation_hold_is_no_repair() -> None:
    """Deleting `known(2)` takes `trusted(2)` away, but then `alarm(2)` follows by the second rule."""
    program = """
    .decl known, seen(x: number)
    .input known, seen
    .decl alarm(x: number)
    alarm(x) :- known(x), seen(x).
    alarm(x) :- seen(x), !known(x).
    """
    with elastalog.open(program, {"known": [(2,)], "seen": [(2,)]}) as db:
        found = db.suggest(unwanted=["alarm(2)"])
        assert ([str(e) for e in found.elements], found.minimum) == (["+seen(2)"], True)


def test_what_a_negation_hides_may_be_uncovered() -> None:
    """The fault needs the absence of `blocked(1)`, which two exceptions keep absent; one deletion less than cutting all
    three ways to the fault."""
    program = """
    .decl way(x: number, by: number)
    .input way
    .decl excepted(x: number)
    .input excepted
    .decl blocked(x: number)
    blocked(x) :- way(x, _), !excepted(x).
    .decl bad(x: number)
    bad(x) :- way(x, _), !blocked(x).
    """
    with elastalog.open(program, {"way": [(1, 1), (1, 2), (1, 3)], "excepted": [(1,), (2,)]}) as db:
        found = db.suggest(unwanted=["bad(1)"])
        assert ([str(e) for e in found.elements], found.minimum) == (["+excepted(1)"], True)


@pytest.mark.parametrize(("most", "size"), [(3, 1), (2, 2)])
def test_members_of_an_aggregate_are_taken_away(most: int, size: int) -> None:
    program = f"""
    .decl call(x: number)
    .input call
    .decl busy(n: number)
    busy(n) :- n = count : {{ call(_) }}, n > {most}.
    .decl alarm()
    alarm() :- busy(_).
    """
    with elastalog.open(program, {"call": [(i,) for i in range(most + size)]}) as db:
        found = db.suggest(unwanted=["alarm()"])
        assert (len(found.elements), found.minimum) == (size, True)


CHEAPEST = """
.decl way(x: number, cost: number)
.input way
.decl best(x: number, cost: number)
best(x, c) :- way(x, c).
best(x, c) <= best(x, d) :- d < c.
.decl reached(x: number)
reached(x) :- best(x, _).
"""


def test_subsumption_is_not_taken_for_monotone() -> None:
    """Deleting the cheapest way only uncovers the next one."""
    with elastalog.open(CHEAPEST, {"way": [(1, 5), (1, 3), (1, 9)]}) as db:
        found = db.suggest(unwanted=["reached(1)"])
        assert (len(found.elements), found.verified) == (3, True)
        one = db.suggest(unwanted=["best(1, 3)"])
        assert ([str(e) for e in one.elements], one.minimum) == (["+way(1, 3)"], True)


def test_updates_with_subsumption_are_not_taken_for_monotone() -> None:
    with elastalog.open(CHEAPEST, {}) as db:
        db.apply({"way": [(1, 5), (1, 3), (1, 9)]})
        assert len(db.suggest(unwanted=["reached(1)"]).elements) == 3
        assert len(db.localise(unwanted=["reached(1)"]).elements) == 1


def disjoint_ways(edges: set[tuple[int, int]], start: int, end: int) -> int:
    """As many ways without a common edge as there are: by Menger's theorem the fewest edges that cut all (Ford and
    Fulkerson's algorithm)."""
    left = dict.fromkeys(edges, 1) | {(b, a): 0 for a, b in edges if (b, a) not in edges}
    ways = 0
    while True:
        came_from: dict[int, int] = {start: start}
        pending = [start]
        for here in pending:
            for (a, b), free in left.items():
                if a == here and free and b not in came_from:
                    came_from[b] = a
                    pending.append(b)
        if end not in came_from:
            return ways
        ways += 1
        here = end
        while here != start:
            before = came_from[here]
            left[before, here] -= 1
            left[here, before] += 1
            here = before


@pytest.mark.parametrize("seed", range(4))
def test_cuts_are_as_small_as_there_are_disjoint_ways(seed: int) -> None:
    choice = Random(seed)
    edges = {pair for pair in ((choice.randrange(40), choice.randrange(40)) for _ in range(160)) if pair[0] != pair[1]}
    with elastalog.open(PATHS, {"edge": sorted(edges)}) as db:
        for start, end in choice.sample([pair for pair in sorted(db["path"]) if pair[0] != pair[1]], 3):
            found = db.suggest(unwanted=[("path", (start, end))])
            assert (found.minimum, len(found.elements)) == (True, disjoint_ways(edges, start, end))


def test_without_time_there_is_an_answer_that_is_not_called_minimum() -> None:
    choice = Random(1)
    edges = {pair for pair in ((choice.randrange(40), choice.randrange(40)) for _ in range(160)) if pair[0] != pair[1]}
    with elastalog.open(PATHS, {"edge": sorted(edges)}) as db:
        pairs = [pair for pair in sorted(db["path"]) if pair[0] != pair[1]]
        pair = next(pair for pair in pairs if disjoint_ways(edges, *pair) >= 3)
        found = db.suggest(unwanted=[("path", pair)], time_limit=0)
        assert found.verified
        assert not found.minimum
        assert found.why_not_proven == "time ran out"
        found.apply()
        assert pair not in db["path"]


def test_groups_that_evaluation_handles_are_nobodys_to_delete() -> None:
    program = """
    .decl item(x: number, y: number)
    .decl sum_below(x: number, n: number)
    sum_below(0, 0).
    sum_below(x + 1, n) :- sum_below(x, _), x < 5, n = sum y : { item(z, y), z <= x }.
    """
    with elastalog.open(program, facts={"item": [(0, 1), (1, 2), (2, 3)]}) as db:
        found = db.suggest(unwanted=["sum_below(3, 6)"], over="facts")
        assert len(found.elements) == 1
        assert found.minimum
        found.apply()
        assert (3, 6) not in db["sum_below"]


STEPPING = """
.decl start, step, at(x: number)
at(x) :- start(x).
at(x + y) :- at(x), step(y), x < 100.
"""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_a_state_in_which_rules_have_no_end_is_given_up(strategy: str) -> None:
    with elastalog.open(STEPPING, facts={"start": [(1,), (5,)], "step": [(50,)]}, strategy=strategy) as db:
        before = facts_of(db)
        began = time.monotonic()
        found = db.suggest(missing=["at(2)"], candidates=["step(-3)", "start(2)"], time_limit=4.0)
        assert time.monotonic() - began < 7.5  # a graph, and states, without end do not add up
        assert [str(element) for element in found.elements] == ["-start(2)"]
        with refused("E1006", told=("states that took too long were left out", "bound the rules")):
            db.suggest(missing=["at(2)"], candidates=["step(-3)"], time_limit=4.0)
        assert facts_of(db) == before
        assert db.verify().is_exact


@pytest.mark.usefixtures("impatient")
def test_more_time_is_advised_only_where_it_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = ".decl stop, resting()\nresting() :- !stop(), !step(-3), at(1).\n"
    program = stopping + STEPPING.replace("x < 100", "x < 100, !stop()")
    with elastalog.open(program, facts={"start": [(1,)], "step": [(-3,)], "stop": [()]}) as db:
        db.apply(deleted={"step": [(-3,)], "stop": [()]})
        told = ("states that took too long were left out", "these must stay: -stop()", "bound the rules", "reject less")
        with refused("E1006", told=told):
            db.suggest(unwanted=["resting()"], rejected=["-stop()"], time_limit=4.0)
        monkeypatch.setattr(SETTINGS, "state_seconds_a_fact", 1.0)
        with refused("E1006", told=("time ran out", "allow more time")):
            db.suggest(unwanted=["resting()"], rejected=["-stop()"], time_limit=4.0)


def test_that_the_state_before_an_update_takes_too_long_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "state_seconds_a_fact", 0.0)
    monkeypatch.setattr(SETTINGS, "state_seconds", 0.0)
    program = """
    .decl edge, path(x: number, y: number)
    .decl cut()
    cut() :- !path(1, 100).
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    """
    with elastalog.open(program, facts={"edge": [(n, n + 1) for n in range(1, 100)]}) as db:
        db.apply(deleted={"edge": [(50, 51)]})
        with forced(work_between_checks=1), refused("E1006", told="states that took too long were left out"):
            db.suggest(unwanted=["cut()"])


def test_a_limit_of_the_user_is_no_state_to_give_up() -> None:
    with elastalog.open(STEPPING, facts={"start": [(1,)], "step": [(50,)]}) as db:
        with pytest.raises(LimitReached), db.engine.within(0.5):
            db.suggest(missing=["at(-2)"], candidates=["step(-3)"])
        assert db.verify().is_exact


WHICHEVER = """
.decl a, b(x: number)
.decl late(x: number, y: number)
late(x, 1) :- a(x), b(x).
late(x, 2) :- a(x), !b(x).
"""


def test_nothing_fits_a_pattern_afterwards() -> None:
    """Not only the facts that fit it now: others may come in their place."""
    with elastalog.open(WHICHEVER, facts={"a": [(1,)]}) as db:
        db.apply({"b": [(1,)]})
        with refused("E1006"):
            db.suggest(unwanted=["late(1, _)"])
        with pytest.raises(ElastalogError):
            db.suggest(unwanted=["late(1, _)"], over="facts", rejected=["+a(1)"])
        found = db.suggest(unwanted=["late(1, _)"], over="facts")
        assert (found.minimum, found.delete) == (True, (("a", (1,)),))
        found.apply()
        assert not db["late"]
    total = ".decl cost(x: symbol, n: number)\n.decl total(x: symbol, n: number)\n"
    total += "total(x, n) :- cost(x, _), n = sum y : { cost(x, y) }.\n"
    with elastalog.open(total, facts={"cost": [("tea", 3), ("tea", 40)]}) as db:
        found = db.suggest(unwanted=['total("tea", _)'])
        assert len(found.delete) == 2
        assert found.minimum


def test_whatever_fits_a_negation_may_be_deleted() -> None:
    program = ".decl order(i: number)\n.decl sent(i: number, on: symbol)\n.decl waiting(i: number)\n"
    program += "waiting(i) :- order(i), !sent(i, _).\n"
    with elastalog.open(program, facts={"order": [(5,)], "sent": [(5, "Monday"), (5, "Tuesday"), (6, "Monday")]}) as db:
        found = db.suggest(missing=["waiting(5)"])
        assert set(found.delete) == {("sent", (5, "Monday")), ("sent", (5, "Tuesday"))}


@pytest.mark.usefixtures("impatient")
def test_candidates_like_the_facts_that_are_there_come_first() -> None:
    """Each of the others is a road of less than no length, with which the rules have no end."""
    program = ".decl road(a: symbol, b: symbol, km: number)\n.decl far(a: symbol, b: symbol, km: number)\n"
    program += "far(a, a, 0) :- road(a, _, _).\nfar(a, c, d + k) :- far(a, b, d), road(b, c, k).\n"
    program += "far(a, b, l) <= far(a, b, s) :- s < l.\n"
    towns = [f"town {number}" for number in range(12)]
    roads = [(one, other, 30) for one, other in zip(towns, towns[1:] + towns[:1], strict=True)]
    with elastalog.open(program, facts={"road": roads}) as db:
        began = time.monotonic()
        found = db.suggest(missing=['far("town 9", "town 3", 29)'])
        assert found.insert == (("road", ("town 9", "town 3", 29)),)
        assert time.monotonic() - began < 30  # of 60 that it may take


def test_weights_count_among_all_candidates() -> None:
    """Not only among those that are tried first."""
    program = ".decl a(x: number, y: number)\n.decl p(x: number)\np(x) :- a(x, y), y < 30.\n"
    program += "".join(f".decl b{i}(x: number)\np(x) :- b{i}(x).\n" for i in range(12))
    with elastalog.open(program, facts={"a": [(2, 40)]}) as db:
        found = db.suggest(missing=["p(1)"], weights={"-b11(1)": 0.5})
        assert found.insert == (("b11", (1,)),)


@pytest.mark.parametrize("seconds", [0, 0.5])
def test_nothing_fits_a_pattern_however_little_time_there_is(seconds: float) -> None:
    program = ".decl a(x: number)\n.decl top(x: number)\ntop(n) :- n = max x : { a(x) }.\n.input a\n"
    with elastalog.open(program, facts={"a": [(i,) for i in range(40)]}) as db:
        found = db.suggest(unwanted=["top(_)"], over="facts", time_limit=seconds)
        assert len(found.delete) == 40


ROADS = """
.decl road(from: number, to: number, km: number)
.decl distance(to: number, km: min number)
distance(0, 0).
distance(y, d + k) :- distance(x, d), road(x, y, k).
"""
NEAR = ROADS + ".decl near(x: number)\nnear(x) :- distance(x, d), d < 100.\n"


def roads_without(facts: list[tuple[int, int, int]], found: elastalog.Suggestion) -> set[tuple[int, int]]:
    """What the roads that a repair leaves lead to, evaluated anew."""
    gone = {fact.values for fact in found.delete}
    assert gone <= {*facts}
    with elastalog.open(ROADS, {"road": [fact for fact in facts if fact not in gone]}) as db:
        return set(db["distance"])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("comes_later", [False, True])
def test_no_value_fits_a_pattern_over_least_values(seed: int, comes_later: bool) -> None:
    """Not even one that is only uncovered where the least is gone."""
    choice = Random(seed)
    pairs = {(choice.randrange(9), choice.randrange(9)) for _ in range(60)}
    facts = [(x, y, choice.randint(1, 9)) for x, y in sorted(pairs) if x != y]
    ways = disjoint_ways({(x, y) for x, y, _ in facts}, 0, 8)
    assert ways > 2
    with elastalog.open(ROADS, {"road": [] if comes_later else facts}) as db:
        if comes_later:
            db.apply({"road": facts})
        found = db.suggest(unwanted=["distance(8, _)"], time_limit=20)
        assert (len(found.elements), found.minimum) == (ways, True)
        assert 8 not in {to for to, _ in roads_without(facts, found)}
        found.apply()
        assert not db.query("distance(8, X)")


@pytest.mark.parametrize("unwanted", [["distance(9, _)", "distance(1, 1)"], ["near(9)"], ["distance(9, _)", "near(9)"]])
def test_where_values_are_looked_at_nothing_fits_either(unwanted: list[str]) -> None:
    """What is left over of the time is no reason to suggest less."""
    facts = [fact for n in range(1, 6) for fact in ((0, n, n), (n, 9, n))]
    for seconds in (0.3, 1.0):
        with elastalog.open(NEAR, {"road": facts}) as db:
            began = time.monotonic()
            found = db.suggest(unwanted=unwanted, over="facts", time_limit=seconds)
            assert time.monotonic() - began < 1.2 * seconds + 3
            left = roads_without(facts, found)
            assert 9 not in {to for to, _ in left}
            assert (1, 1) not in left or "distance(1, 1)" not in unwanted


def as_table(rows: Any) -> pa.Table:
    return pa.table(dict(zip("xy", map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("form", [list, as_table, np.array])
def test_candidates_are_given_as_facts_are(form: Any) -> None:
    program = ".decl edge, path(x: number, y: number)\npath(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z)."
    with elastalog.open(program, {"edge": [(1, 2)]}) as db:
        found = db.suggest(missing=["path(1, 3)"], candidates={"edge": form([(2, 3), (7, 8)])}, over="facts")
        assert [str(fact) for fact in found.insert] == ["edge(2, 3)"]
        with refused("E0606"):
            db.suggest(missing=["path(1, 3)"], candidates={"egde": form([(2, 3)])}, over="facts")


LEAST = """
.decl road(from: symbol, to: symbol, km: number)
.decl distance(to: symbol, km: min number)
distance("Aachen", 0).
distance(y, d + k) :- distance(x, d), road(x, y, k).
"""
LEAST_OF_ALL = """
.decl road(from: symbol, to: symbol, km: number)
.decl distance(from: symbol, to: symbol, km: min number)
.decl start(p: symbol)
start(x) :- road(x, _, _).
distance(x, x, 0) :- start(x).
distance(x, z, d + k) :- distance(x, y, d), road(y, z, k).
"""
TOWNS = [("Aachen", "Bonn", 90), ("Bonn", "Celle", 380), ("Aachen", "Celle", 400)]


@pytest.mark.parametrize(
    ("program", "roads", "missing", "expected"),
    [
        (LEAST, TOWNS, ("Bonn", 20), ["-road(Aachen, Bonn, 20)"]),
        (LEAST, TOWNS, ("Bonn", 50), ["-road(Aachen, Bonn, 50)"]),
        (LEAST, TOWNS, ("Celle", 20), ["-road(Aachen, Celle, 20)"]),
        (LEAST, TOWNS, ("Bonn", 100), ["+road(Aachen, Bonn, 90)", "-road(Aachen, Bonn, 100)"]),
        (LEAST_OF_ALL, [*TOWNS, ("Celle", "Aachen", 50)], ("Aachen", "Celle", 60), ["-road(Aachen, Celle, 60)"]),
    ],
)
@pytest.mark.parametrize("over", [None, "facts"])
@pytest.mark.usefixtures("impatient")
def test_a_missing_least_value_is_brought_about(
    program: str, roads: list[tuple[str, str, int]], missing: tuple[Any, ...], expected: list[str], over: str | None
) -> None:
    """By a plain road, not by one of less than no length, with which other distances have no end."""
    with elastalog.open(program, {"road": roads}) as db:
        found = db.suggest(missing=[("distance", missing)], over=over)
        assert sorted(f"{element}".replace('"', "") for element in found.elements) == expected
        assert found.minimum == (len(expected) == 1)
    left = {*roads, *(fact.values for fact in found.insert)} - {fact.values for fact in found.delete}
    with elastalog.open(program, {"road": sorted(left)}) as anew:
        assert missing in anew["distance"]


def test_proofs_over_steps_that_lessen_least_values_are_found() -> None:
    """Levels are of no help there: what a fact comes from has a worse value than it has."""
    with elastalog.open(LEAST, {"road": TOWNS}) as db:
        found = db.suggest(missing=['distance("Bonn", 20)'], candidates=['road("Celle", "Bonn", -380)'])
        assert found.minimum
        (proof,) = found.proofs
        assert str(proof.fact) == 'distance("Bonn", 20)'


def test_a_value_that_was_tried_is_not_called_unmentioned() -> None:
    with elastalog.open(LEAST, {"road": TOWNS}) as db, pytest.raises(ElastalogError) as raised:
        db.suggest(missing=['distance("Bonn", 20)'], rejected=["road(_, _, _)"], over="facts", time_limit=2)
    told = str(raised.value)
    assert "tried: " not in told
    assert "no fact mentions" not in told
