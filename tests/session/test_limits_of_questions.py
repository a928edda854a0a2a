"""Questions to a session obey its `timeout`, and a limit for a block; what was stopped leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import elastalog
from elastalog import Session
from elastalog.cli.main import cli
from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import LimitReached
from tests.closures import CLOSURE as PROGRAM

LENGTH = 60
QUESTIONS: dict[str, Callable[[Session], Any]] = {
    "explain": lambda db: str(db.explain(f"path(0, {LENGTH})")),
    "derivations": lambda db: [str(one) for one in db.derivations(f"path(0, {LENGTH})")],
    "proofs": lambda db: [str(one) for one in db.proofs(f"path(0, {LENGTH})", 3)],
    "absence": lambda db: str(db.why_not("path(5, 1)")),
    "uses": lambda db: sorted(db.uses("edge(3, 4)")),
    "all uses": lambda db: sorted(db.uses("edge(3, 4)", all=True)),
    "preview": lambda db: db.preview(deleted={"edge": [(3, 4)]}).impact,
    "query": lambda db: sorted(db.query("path(X, Y), Y - X > 55")),
    "localise": lambda db: str(db.localise(unwanted=[f"path(0, {LENGTH})"])),
    "suggest": lambda db: str(db.suggest(unwanted=[f"path(0, {LENGTH})"])),
    "suggest over facts": lambda db: len(db.suggest(unwanted=[f"path(0, {LENGTH})"], over="facts").elements),
    "blame": lambda db: str(db.blame(f"path(0, {LENGTH})")),
}


def opened(**options: Any) -> Session:
    db = elastalog.open(PROGRAM, {"edge": [(i, i + 1) for i in range(LENGTH - 1)]}, **options)
    db.apply({"edge": [(LENGTH - 1, LENGTH)]})
    return db


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
@pytest.mark.parametrize("what", QUESTIONS)
def test_a_question_is_stopped_and_can_be_asked_again(what: str, strategy: str) -> None:
    ask = QUESTIONS[what]
    expected = ask(opened(strategy=strategy))
    db = opened(strategy=strategy)
    facts = sorted(db["path"])
    with db.engine.within(1e-9), pytest.raises(LimitReached, match="E0603"):
        ask(db)
    assert sorted(db["path"]) == facts
    assert ask(db) == expected  # nothing half found was kept, and no time is left over


def test_every_call_has_the_timeout_of_the_session() -> None:
    db = opened()
    proof = db.explain(f"path(0, {LENGTH})", 1)
    db._materialisation.timeout = 1e-9
    with pytest.raises(LimitReached, match="E0603"):
        db.explain(f"path(0, {LENGTH})")
    with pytest.raises(LimitReached, match="E0603"):
        proof.expand()  # also what is looked for later
    db._materialisation.timeout = 60
    found = db.explain(f"path(0, {LENGTH})")
    assert found.height == LENGTH


def test_limits_are_within_each_other() -> None:
    db = opened()
    with db.engine.within(60), db.engine.within(1e-9), pytest.raises(LimitReached):
        db.explain(f"path(0, {LENGTH})")
    with db.engine.within(1e-9), db.engine.within(60), pytest.raises(LimitReached):
        db.explain(f"path(0, {LENGTH})")
    with db.engine.within(60):
        assert db.explain(f"path(0, {LENGTH})").height == LENGTH


def test_an_update_after_a_stopped_question_is_an_epoch() -> None:
    db = opened()
    with db.engine.within(1e-9), pytest.raises(LimitReached):
        db.preview(deleted={"edge": [(3, 4)]})
    assert len(db.apply(deleted={"edge": [(3, 4)]})["path"].deleted) == 4 * (LENGTH - 3)
    assert db.verify().is_exact


SLOW = """
.decl gate, a(x: number)
a(x) :- x = range(0, 200).
.functor wait(x: number): number
.decl slow(x: number)
slow(x) :- gate(x), a(y), @wait(x + y) = 1.
"""
FUNCTORS = "import time\ndef wait(x):\n    time.sleep(0.2)\n    return 1\n"


@pytest.mark.parametrize("asked", [["explain", "a(3)"], ["whynot", "slow(5)"], ["debug", "--missing", "slow(5)"]])
def test_commands_end_at_their_timeout(tmp_path: Path, asked: list[str]) -> None:
    (tmp_path / "slow.dl").write_text(SLOW)
    (tmp_path / "slow.py").write_text(FUNCTORS)
    command, *rest = asked
    is_slow = command != "explain"  # two hundred naps are forty seconds
    limit = "1s" if is_slow else "20s"
    given = [command, str(tmp_path / "slow.dl"), *rest, "--functors", str(tmp_path / "slow.py"), "--timeout", limit]
    ended = CliRunner().invoke(cli, given)
    assert (ended.exit_code, "E0603" in ended.output) == ((3, True) if is_slow else (0, False)), ended.output


ASKED_TOO_MUCH: dict[str, Callable[[Session], Any]] = {
    "query": lambda db: db.query("edge(a, b), edge(c, d), edge(e, f), edge(g, h)"),
    "preview": lambda db: db.preview(added="path(x + 1, y) :- path(x, y)."),
    "suggest": lambda db: db.suggest(unwanted=["path(_, _)"], over="facts"),
}


@pytest.mark.parametrize("what", ASKED_TOO_MUCH)
def test_a_question_that_allocates_too_much_is_stopped(what: str) -> None:
    db = opened()
    facts = sorted(db["path"])
    with db.engine.within(memory=500_000), pytest.raises(LimitReached) as reached:
        ASKED_TOO_MUCH[what](db)
    found = reached.value.diagnostics[0]
    assert found.code == "E0663"
    assert found.source is not None
    assert sorted(db["path"]) == facts
    with db.engine.within(60, memory=500_000):
        assert len(db.query("edge(a, b), edge(b, c)")) == LENGTH - 1
    assert db.verify().is_exact


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_question_that_is_in_the_way_says_so_whatever_it_does(what: str) -> None:
    """Who asked can tell it from a limit, and ask elsewhere."""
    ask = QUESTIONS[what]
    db = opened()
    expected = ask(opened())
    with quota.Quota() as own:
        own.stop()
        with pytest.raises(quota.Stopped, match="E0939"):
            ask(db)
    assert ask(db) == expected


def test_a_question_that_gets_in_the_way_while_it_is_evaluated_says_so() -> None:
    with quota.Quota() as own:

        def stop(_: int) -> int:
            own.stop()
            return 1

        program = PROGRAM + ".functor stop(x: number): number\n"
        db = elastalog.open(program, {"edge": [(i, i + 1) for i in range(9)]}, functors={"stop": stop})
        with pytest.raises(quota.Stopped, match="E0939"):
            db.query("edge(x, y), @stop(x) = u, edge(y, z), @stop(z) = u")


def test_memory_of_a_block_counts_for_the_blocks_around_it() -> None:
    with quota.within(None, 1000) as outer:
        with quota.within(None, 800):
            quota.take(700)
            quota.take(-200)
            with pytest.raises(LimitReached, match="E0663"):
                quota.take(400)  # which is not allocated, and counts for nobody
        quota.take(450)
        with pytest.raises(LimitReached, match="E0663"):
            quota.take(100)
        with quota.lifted():
            quota.take(10_000)
        outer.stop()
        with quota.within(5.0), pytest.raises(quota.Stopped, match="E0939"):
            quota.look()
        outer.stop(False)
        quota.look()


# --- a limit of time holds while a program is read, checked and planned, too ------------------------------------------


PAIRS = ".decl e(x: number, y: number)\n"
MANY_RULES = PAIRS + "".join(f"e({n}, {n + 1}) :- e({n + 1}, {n}).\n" for n in range(5_000))
MACROS = "#define A0 x\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(25)) + PAIRS + "e(A25, 1).\n"
ALIKE = "".join(f".decl relation{n}(x: number)\n" for n in range(1_000)) + "".join(
    f"relatiom{n}(1).\n" for n in range(1_000)
)


@pytest.mark.parametrize("text", [MANY_RULES, MACROS, ALIKE], ids=["rules", "macros", "names"])
def test_a_program_that_takes_long_ends_at_the_limit(text: str) -> None:
    began = time.process_time()
    with pytest.raises(LimitReached) as caught:
        elastalog.open(text, limits=elastalog.Limits(time=0.05))
    assert caught.value.diagnostics[0].code == "E0603"
    assert time.process_time() - began < 1.0


def test_planning_obeys_the_limit() -> None:
    program = elastalog.Program.parse(MANY_RULES)
    with pytest.raises(LimitReached):
        elastalog.open(program, limits=elastalog.Limits(time=0.01))


def test_an_update_that_has_to_plan_obeys_the_limit() -> None:
    with elastalog.open(PAIRS, {"e": [(1, 2)]}) as db:
        with pytest.raises(LimitReached), db.engine.within(0.01):
            db.change_rules(MANY_RULES.removeprefix(PAIRS))
        assert set(db["e"]) == {(1, 2)}
        db.apply({"e": [(3, 4)]})
        assert set(db["e"]) == {(1, 2), (3, 4)}


def test_blocks_end_no_later_than_those_around_them() -> None:
    with quota.within(-1.0):
        with quota.within(60.0), pytest.raises(LimitReached):
            quota.look()
        with quota.lifted():
            quota.look()
        assert quota.time_left(60.0) < 0
    quota.look()
    assert quota.time_left(60.0) == 60.0


@pytest.mark.parametrize("limit", [{"time": 1e-9}, {"memory": 2 << 20}], ids=str)
def test_the_help_names_the_argument_that_sets_the_limit(limit: dict[str, Any]) -> None:
    (name,) = limit
    with pytest.raises(LimitReached) as caught:
        elastalog.open(MANY_RULES, {"e": [(1, 2)]}, limits=elastalog.Limits(**limit))
    assert f"in Python `limits=Limits({name}=…)`" in (caught.value.diagnostics[0].help or "")
