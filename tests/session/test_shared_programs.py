"""Sessions that share a program, and decisions from threads, coroutines and other processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.backends.kernel.bootstrap.first_epoch import FirstEpoch
from elastalog.backends.kernel.levels.scheduler import UpdateScheduler
from tests.interrupting import calls_of

POLICY = """
.decl member(user: symbol, role: symbol)
.decl inherits(role: symbol, other: symbol)
.decl grant(role: symbol, doc: symbol)
.decl role(user: symbol, role: symbol)
.decl ok(user: symbol, doc: symbol)
role(u, r) :- member(u, r).
role(u, s) :- role(u, r), inherits(r, s).
ok(u, d) :- role(u, r), grant(r, d).
ok(u, "home") :- member(u, _).
"""


def facts(tenant: str, users: int = 5) -> dict[str, list[tuple[str, str]]]:
    return {
        "member": [(f"{tenant}{i}", "staff") for i in range(users)],
        "inherits": [("staff", "all")],
        "grant": [("all", f"{tenant} plan")],
    }


def test_a_program_is_compiled_once_and_sessions_of_it_share_what_is_made() -> None:
    program = elastalog.Program.parse(POLICY)
    assert program.compile() is program
    with elastalog.open(program, facts("a")) as first, elastalog.open(program, facts("b")) as second:
        assert first._backend.program is second._backend.program
        assert set(first["ok"]) == {(f"a{i}", doc) for i in range(5) for doc in ("a plan", "home")}
        assert set(second["ok"]) == {(f"b{i}", doc) for i in range(5) for doc in ("b plan", "home")}


def test_the_second_opening_calls_far_fewer_functions_than_the_first() -> None:
    def opened(program: Any) -> None:
        elastalog.open(program, facts("a")).close()

    opened(POLICY)
    program = elastalog.Program.parse(POLICY)
    first = calls_of(lambda: opened(program))
    second = calls_of(lambda: opened(program))
    assert second < first
    assert second <= 700


CLOSURE = """
.decl edge, path, far(x: number, y: number)
.decl named(x: number, name: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
far(x, y) :- path(x, y), !edge(x, y), x != y.
named(x, "lone") :- edge(x, _), !path(x, x).
named(0, "found") :- named(_, "lone").
"""


@pytest.mark.parametrize("nodes", [3, 12, 90])
def test_the_first_epoch_of_a_later_session_is_that_of_one_that_shares_nothing(
    nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one compiled call, unless a stratum gets large: all pairs of 90 nodes are found in rounds."""
    program, random, calls = elastalog.Program.parse(CLOSURE), Random(nodes), []
    run = FirstEpoch.run
    monkeypatch.setattr(FirstEpoch, "run", lambda self, *given: calls.append(found := run(self, *given)) or found)
    for number in range(4):
        # Of the first session nothing gets large.
        edges = [(node, (node + 1) % nodes if number or nodes < 90 else 500 + node) for node in range(nodes)]
        edges += {(random.randrange(nodes), random.randrange(1000, 1004)) for _ in range(nodes)}
        db, alone = elastalog.open(program, {"edge": edges}), elastalog.open(CLOSURE, {"edge": edges})
        assert len(calls) == number
        for _ in range(3):
            for name in db:
                assert _annotated(db[name]) == _annotated(alone[name])
            gone = [edges.pop(random.randrange(len(edges)))]
            db.apply({}, {"edge": gone})
            alone.apply({}, {"edge": gone})
    assert [len(found) for found in calls] == [1 if nodes == 90 else 3] * 3
    ours, theirs = (session._backend.profile().clauses for session in (db, alone))
    assert [(cost.clause.number, cost.derivations) for cost in ours] == [
        (c.clause.number, c.derivations) for c in theirs
    ]


def _annotated(relation: elastalog.Relation) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in relation.to_arrow(annotations=True).to_pylist())


def test_ids_of_constants_are_those_of_each_session() -> None:
    program = elastalog.Program.parse(POLICY)
    for users in (5, 6, 4, 7):
        db = elastalog.open(program, facts("a", users))
        assert set(db["ok"]) == {(f"a{i}", doc) for i in range(users) for doc in ("a plan", "home")}
        db.apply({"member": [("guest", "other")]})
        assert ("guest", "home") in db["ok"]


def test_sessions_of_one_program_go_their_own_ways() -> None:
    program = elastalog.Program.parse(POLICY).compile()
    with elastalog.open(program, facts("a")) as first, elastalog.open(program, facts("a")) as second:
        first.apply({"member": [("guest", "staff")]}, {"member": [("a0", "staff")]})
        second.change_rules('ok(u, "bar") :- member(u, _).')
        second.apply({"member": [("late", "staff")]})
        assert (("guest", "a plan") in first["ok"], ("a0", "home") in first["ok"]) == (True, False)
        assert (("guest", "a plan") in second["ok"], ("a0", "bar") in second["ok"]) == (False, True)
        assert ("late", "bar") in second["ok"]
        assert first.verify().is_exact
        assert second.verify().is_exact


def test_the_first_update_of_a_second_session_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    program = elastalog.Program.parse(POLICY.replace('ok(u, "home") :- member(u, _).', ""))
    update = {"member": [("guest", "staff")]}
    with elastalog.open(program, facts("a")) as first, elastalog.open(program, facts("b")) as second:
        first.apply(update)
        monkeypatch.setattr("elastalog.backends.kernel.levels.plan.plan_from_goal", None)
        second.apply(update)
        second.apply(deleted=update)
        assert set(second["ok"]) == {(f"b{i}", "b plan") for i in range(5)}
        assert ("guest", "a plan") in first["ok"]
        assert first.verify().is_exact
        assert second.verify().is_exact


def test_what_sessions_share_has_no_ids_of_texts() -> None:
    program = elastalog.Program.parse(POLICY + 'ok(u, "desk") :- role(u, "all"), member(u, _).')
    for tenant, users in (("a", 4), ("b", 5)):  # "all", "desk" and "home" get other ids, and sizes are alike
        with elastalog.open(program, facts(tenant, users)) as db:
            db.apply({"member": [("guest", "staff")]}, {"inherits": [("staff", "all")]})
            assert {doc for user, doc in db["ok"] if user == "guest"} == {"home"}
            db.apply({"inherits": [("staff", "all")]})
            assert {doc for user, doc in db["ok"] if user == "guest"} == {"home", "desk", f"{tenant} plan"}


def test_a_program_with_functors_and_one_with_inputs_can_be_compiled() -> None:
    program = elastalog.Program.parse(".functor f(x: number): number\n.decl a(x: number)\n.input a\na(@f(1)).\n")
    program.compile()
    with elastalog.open(program, {"a": [(5,)]}, functors={"f": lambda x: x + 1}) as db:
        assert set(db["a"]) == {(2,), (5,)}


def test_other_sessions_are_laid_out_once_only(monkeypatch: pytest.MonkeyPatch) -> None:
    program = elastalog.Program.parse(POLICY)
    first, second = elastalog.open(program, facts("a")), elastalog.open(program, facts("b"))
    for db in (first, second) * 2:
        db.apply({"member": [("guest", "staff")]})
        db.apply(deleted={"member": [("guest", "staff")]})
    laid_out: list[int] = []
    lay_out = UpdateScheduler._lay_out

    def noted(scheduler: UpdateScheduler, place: int) -> None:
        laid_out.append(place)
        lay_out(scheduler, place)

    monkeypatch.setattr(UpdateScheduler, "_lay_out", noted)
    for i in range(200):  # its arrays grow, and move
        first.apply({"member": [(f"new {i}", "staff")]})
    assert laid_out
    laid_out.clear()
    second.apply({"member": [("guest", "staff")]})
    assert not laid_out
    assert second.verify().is_exact


# --- threads, coroutines, processes --------------------------------------------------------------------------------


def test_threads_decide_beside_updates_and_see_whole_epochs() -> None:
    """`ok` holds of both documents or of none in every epoch."""
    program = elastalog.Program.parse(POLICY)
    both = {"grant": [("all", "left"), ("all", "right")]}
    with elastalog.open(program, facts("a")) as db:
        ok = db.prepare("ok(?user, ?doc)")
        docs = ["left", "right"]
        is_over = threading.Event()

        def decide() -> int:
            number = 0
            while not is_over.is_set() or not number:
                assert ok("a1", "home")
                assert len(set(ok.many("a1", docs).tolist())) == 1
                decision = ok("a1", "left", explain=True)
                assert decision.holds is isinstance(decision.reason, elastalog.Proof)
                number += 1
            return number

        with ThreadPoolExecutor(4) as pool:
            deciding = [pool.submit(decide) for _ in range(4)]
            for _ in range(50):
                db.apply(both)
                db.apply(deleted=both)
            is_over.set()
            assert all(one.result() for one in deciding)
        assert not ok("a1", "left")
        assert db.verify().is_exact


def test_coroutines_decide_while_a_thread_updates() -> None:
    async def serve(db: elastalog.Session) -> int:
        ok, allowed = db.prepare("ok(?user, ?doc)"), 0
        for i in range(20):
            update = asyncio.to_thread(db.apply, {"member": [(f"user {i}", "staff")]})
            decided = asyncio.gather(*(asyncio.to_thread(ok, "a1", "a plan") for _ in range(5)))
            await update
            assert all(await decided)
            allowed += ok(f"user {i}", "a plan")
        return allowed

    with elastalog.open(POLICY, facts("a")) as db:
        assert asyncio.run(serve(db)) == 20


POOL = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import elastalog

PROGRAM = elastalog.Program.load(Path(__file__).parent / "policy.dl").compile()


def decide(tenant):
    facts = {"member": [(tenant, "staff")], "inherits": [("staff", "all")], "grant": [("all", "plan")]}
    with elastalog.open(PROGRAM, facts) as db:
        ok = db.prepare("ok(?user, ?doc)")
        before = ok("guest", "plan")
        db.apply({"member": [("guest", "staff")]})
        return before, ok("guest", "plan"), ok(tenant, "home")


if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(sys.argv[1])) as pool:
        print(set(pool.map(decide, "abcdef")))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_open_compiled_programs(method: str, tmp_path: Path) -> None:
    (tmp_path / "policy.dl").write_text(POLICY)
    (tmp_path / "pool.py").write_text(POOL)
    command = [sys.executable, str(tmp_path / "pool.py"), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.strip(), done.returncode) == ("{(False, True, True)}", 0), done.stderr
