"""Whatever ends an update before its time, the next one finds everything as it was."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel.levels import scheduler
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.store import postings, transaction
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import STAMPS
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.rows import distinct_in_order
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.evaluation import needed_groups
from elastalog.evaluation.changes import Update
from elastalog.evaluation.costs import Budget
from elastalog.evaluation.epochs import Trial
from elastalog.evaluation.rewriting import evaluate_anew
from elastalog.jit.building import all_operators
from elastalog.session import Session
from tests.engine.judging import is_as_anew, levels_of, state_of
from tests.interrupting import interrupted_at

PROGRAM = """
.decl edge, path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
.decl total(x: number, y: number)
total(x + y, y) :- path(x, y), x < y, x * y % 5 != 2.
.decl apart(x: number, y: number)
apart(x, y) :- edge(x, _), edge(_, y), !path(x, y).
"""
STRATEGIES = ("elastic", "dense", "dred", "dredc", "bf")


def edges() -> list[tuple[int, int]]:
    return sorted({(int(x), int(y)) for x, y in np.random.default_rng(4).integers(0, 25, (45, 2))})


class CtrlC:
    """Lets operators run to their end, and then interrupts after one of them, as Python does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.run = 0
        for operator in all_operators():
            # A commit cannot be interrupted, a rollback neither.
            if operator.function.__name__ not in ("commit", "commit_all", "rollback", "take_back"):
                operator.load()
                monkeypatch.setattr(operator, "code", self._counting(operator.code))

    def _counting(self, code: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any) -> Any:
            result = code(*arguments)
            self.run += 1
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return result

        return count


@pytest.mark.parametrize(("strategy", "budget"), [*((strategy, None) for strategy in STRATEGIES), ("elastic", "auto")])
def test_ctrl_c_after_any_operator(strategy: str, budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    present, coming, going = edges()[:25], edges()[25:], edges()[:4]
    more, less = [(3, 9), (9, 4)], [(4, 3)]
    change: dict[str, Any] = {"inserted": {"edge": coming, "path": more}, "deleted": {"edge": going, "path": less}}
    inverse: dict[str, Any] = {"inserted": change["deleted"], "deleted": change["inserted"]}
    options: Mapping[str, Any] = {"budget": budget} if strategy == "elastic" else {}
    with elastalog.open(
        PROGRAM, facts={"edge": present, "path": less}, strategy=strategy, engine="local", **options
    ) as db:
        before = state_of(db)
        db.apply(**change)
        after = state_of(db)
        db.apply(**inverse)
        assert state_of(db) == before
        ctrl_c = CtrlC(monkeypatch)
        db.apply(**change)
        number = ctrl_c.run
        db.apply(**inverse)
        interrupted = 0
        for place in range(1, number, max(number // 40, 1)):
            ctrl_c.left = place
            try:
                db.apply(**change)
            except KeyboardInterrupt:
                interrupted += 1
                assert state_of(db) == before, place
                db.apply(**change)
            ctrl_c.left = -1
            assert state_of(db) == after, place
            db.apply(**inverse)
            assert state_of(db) == before, place
        assert interrupted > 10


@pytest.mark.parametrize("strategy", ["dred", "dredc", "bfc"])
def test_ctrl_c_when_a_machine_has_maintained_sets(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has touched is known without being told."""

    def interrupted(machine_run: MachineRun) -> None:
        raise KeyboardInterrupt

    program = """
    .decl e(x: number, y: number)
    .decl r, first(x: number)
    r(x) :- first(x).
    r(y) :- r(x), e(x, y).
    """
    chain = [(i, i + 1) for i in range(100)]
    with elastalog.open(program, facts={"e": chain, "first": [(0,)]}, strategy=strategy, engine="local") as db:
        for deleted, inserted in (({"e": chain[2:3]}, {}), ({}, {"e": chain[2:3]})):
            before = set(db["r"])
            with monkeypatch.context() as patched:
                patched.setattr(MachineRun, "_count", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    db.apply(deleted=deleted, inserted=inserted)
            assert set(db["r"]) == before
            db.apply(deleted=deleted, inserted=inserted)
            assert set(db["r"]) == {(i,) for i in range(3 if deleted else 101)}


def test_no_memory_in_a_rollback(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(index: Index, *arguments: Any) -> None:
        raise MemoryError

    with elastalog.open(PROGRAM, facts={"edge": edges()[:25]}, budget=None, engine="local") as db:
        before = levels_of(db)
        changes: dict[str, Any] = {"inserted": {"edge": edges()[25:]}, "deleted": {"edge": edges()[:4]}}
        with monkeypatch.context() as patched:
            patched.setattr(Index, "extend", no_memory)
            with pytest.raises(LimitReached, match="no more memory"):
                db.apply(**changes)
        assert levels_of(db) == before
        db.apply(**changes)
        is_as_anew(db, PROGRAM, {"edge": edges()[4:]}, engine="local")


@pytest.mark.parametrize("budget", [None, "auto"])
@pytest.mark.parametrize("moment", ["touch", "add_rows", "address_of"])
def test_ctrl_c_while_a_drive_is_given_explicit_facts(
    moment: str, budget: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Explicit facts of a stratum with rules change: how far its relations go, compiled code tells them."""
    explicit = [(3, 9), (9, 4)]
    changes: dict[str, Any] = {"inserted": {"edge": edges()[25:], "path": explicit}, "deleted": {"edge": edges()[:4]}}
    usual = getattr(scheduler, moment)

    def interrupt(*arguments: Any) -> Any:
        usual(*arguments)
        monkeypatch.setattr(scheduler, moment, usual)
        raise KeyboardInterrupt

    with elastalog.open(PROGRAM, facts={"edge": edges()[:25]}, budget=budget, engine="local") as db:
        before = levels_of(db)
        for _ in range(2):
            monkeypatch.setattr(scheduler, moment, interrupt)
            with pytest.raises(KeyboardInterrupt):
                db.apply(**changes)
            assert levels_of(db) == before
        db.apply(**changes)
        is_as_anew(db, PROGRAM, {"edge": edges()[4:], "path": explicit}, engine="local")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_facts_that_a_failed_update_derived_are_joined_when_they_come(strategy: str) -> None:
    program = """
    .decl e, p(x: number, y: number)
    p(x, y) :- e(x, y).
    p(x, z) :- p(x, y), p(y, z).
    p(x, y * 4000000000 * 4000000000) :- e(x, y), x = 7.
    """
    with elastalog.open(program, facts={"e": [(100, 101)]}, strategy=strategy, engine="local") as db:
        # The index of p is made before the update that fails.
        db.apply(inserted={"e": [(50, 51)]})
        with pytest.raises(elastalog.ElastalogError, match="E0601"):
            db.apply(inserted={"e": [(1, 2), (2, 3), (7, 8)]})
        db.apply(inserted={"p": [(1, 2), (2, 3)]})
        assert set(db["p"]) == {(1, 2), (2, 3), (1, 3), (50, 51), (100, 101)}


def test_an_interrupted_index_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    relation = KernelRelation("r", 2, is_annotated=True)
    relation.load(np.array([(1, 2), (1, 3), (4, 5)], np.int32))
    append = postings.append

    def interrupted(*arguments: Any) -> int:
        append(*arguments)
        raise KeyboardInterrupt

    relation.index((1,))
    relation.load(np.array([(4, 6)], np.int32))
    with monkeypatch.context() as patches:
        patches.setattr(postings, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            relation.index((0,))
        with pytest.raises(KeyboardInterrupt):
            relation.extend_indexes()
    for columns in ((0,), (1,)):
        made = relation.index(columns)
        assert made.done == 4
        assert int(made.slots[:, postings.LENGTH].sum()) == 4


@pytest.mark.parametrize("moment", ["MachineRun", "addressof"])
def test_ctrl_c_while_a_stratum_is_laid_out(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it may be written then: the next update writes all of it."""
    program = ".decl e, p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z)."
    usual = getattr(scheduler, moment)

    def interrupt(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(scheduler, moment, usual)
        raise KeyboardInterrupt

    with elastalog.open(program, facts={"e": [(i, i + 1) for i in range(5)]}, engine="local") as db:
        for _ in range(2):  # what was laid out before counts as little as what never was
            maintenance = db._backend.updates.maintenance
            for kind in db._backend.evaluation.kinds.values():
                kind.forget()
            maintenance.scheduler._record.stamp = -1
            monkeypatch.setattr(scheduler, moment, interrupt)
            STAMPS.take()
            with pytest.raises(KeyboardInterrupt):
                db.apply({"e": [(5, 6)]})
            assert set(db["p"]) == {(x, y) for x in range(6) for y in range(x + 1, 6)}
            db.apply({"e": [(5, 6)]})
            assert set(db["p"]) == {(x, y) for x in range(7) for y in range(x + 1, 7)}
            db.apply(deleted={"e": [(5, 6)]})


@pytest.mark.slow
def test_ctrl_c_wherever_python_looks_for_it() -> None:
    counted = PROGRAM + ".decl n(x: number, c: number)\nn(x, c) :- edge(x, _), c = count : { path(x, _) }."
    first, more = edges()[:20], [(n, n * 7 % 23) for n in range(25, 40)]
    updates = (({"edge": more}, {"edge": first[3:9]}), ({"edge": first[3:6]}, {"edge": more[:10]}))

    def opened() -> Session:
        db = elastalog.open(counted, facts={"edge": first})
        db.apply({"edge": [(0, 13)]})
        return db

    with opened() as db:
        states = [levels_of(db)]
        for update in updates:
            db.apply(*update)
            states.append(levels_of(db))
    with opened() as db, interrupted_at() as places:
        db.apply(*updates[0])
    for place in range(1, places.passed, places.passed // 30):
        with opened() as db:
            with suppress(KeyboardInterrupt), interrupted_at(place):
                db.apply(*updates[0])
            assert levels_of(db) == states[db.epoch - 2], place
            if db.epoch == 2:
                db.apply(*updates[0])
            db.apply(*updates[1])
            assert levels_of(db) == states[2], place


def test_a_commit_that_ctrl_c_is_not_kept_from_has_happened_or_not() -> None:
    """That of a small update, wherever Python looks for Ctrl-C: the state, its number and the log are of one epoch."""
    program = ".decl e, p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z)."
    without, with_it = {(1, 2)}, {(1, 2), (2, 3), (1, 3)}

    def opened() -> Session:
        db = elastalog.open(program, {"e": [(1, 2)]}, engine="local")
        db.apply({"e": [(2, 3)]})
        db.apply(deleted={"e": [(2, 3)]})
        return db

    with opened() as db, interrupted_at() as places:
        db.apply({"e": [(2, 3)]})
    epochs = set()
    for place in range(1, places.passed):
        with opened() as db:
            with suppress(KeyboardInterrupt), interrupted_at(place):
                db.apply({"e": [(2, 3)]})
            epochs.add(db.epoch)
            assert set(db["p"]) == (with_it if db.epoch == 4 else without), place
            assert db.log()[-1].epoch == db.epoch, place
            db.apply(deleted={"e": [(2, 3)]})
            assert set(db["p"]) == without, place
            db.apply({"e": [(2, 3)]})
            assert set(db["p"]) == with_it, place
    assert epochs == {3, 4}


class Interrupted(KernelRelation):
    """A relation that Ctrl-C keeps from being told how far it goes, the next time."""

    __slots__ = ("is_next",)

    @property
    def used(self) -> int:
        return self.descriptor.used

    @used.setter
    def used(self, rows: int) -> None:
        self._look()
        self.descriptor.used = rows

    @property
    def touched_used(self) -> int:
        return self.descriptor.touched_used

    @touched_used.setter
    def touched_used(self, entries: int) -> None:
        self._look()
        self.descriptor.touched_used = entries

    def _look(self) -> None:
        if getattr(self, "is_next", False):
            self.is_next = False
            raise KeyboardInterrupt


def test_ctrl_c_when_a_relation_is_told_how_far_it_goes() -> None:
    """Operators note themselves what they have done: there is no moment between, in which Ctrl-C would be heard."""
    relation = Interrupted("r", 1, is_annotated=True)
    relation.load(np.array([[1], [2]], np.int32))
    relation.is_next = True
    transaction.add_rows(relation, np.array([[3], [4]], np.int32))
    assert relation.used == 4
    assert transaction.add_rows(relation, np.array([[5], [3]], np.int32)).tolist() == [4, 2]
    relation.is_next = True
    transaction.touch(relation, np.array([0, 3], np.int32))
    relation.is_next = False
    assert relation.touched_used == 2
    transaction.rollback(relation)
    assert relation.present_rows().tolist() == [0, 1]


def test_ctrl_c_when_changes_need_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise compiled code would write to where the memory was that they had before."""
    place = transaction.address_of

    def interrupted(array: Any) -> int:
        monkeypatch.setattr(transaction, "address_of", place)
        raise KeyboardInterrupt

    with elastalog.open(PROGRAM, facts={"edge": edges()}) as db:
        db.apply({"edge": [(30, 31)]})
        monkeypatch.setattr(transaction, "address_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            db.apply({"edge": [(n, n + 1) for n in range(31, 90)]})
        held = db._backend.held.homes
        assert held._words_at == place(np.asarray(held._listing))


def test_ctrl_c_is_no_mistake_of_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy compares rows in Python, and makes a TypeError of it: nothing that updates do may ask it to."""

    def interrupted(*types: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("numpy._core._internal._promote_fields", interrupted)
    text = ".decl e(x: number, y: number)\n.decl n(x: number, c: number)\nn(x, c) :- e(x, _), c = count : { e(x, _) }."
    with elastalog.open(text, facts={"e": [(1, 2), (1, 3), (2, 3)]}) as db:
        db.apply({"e": [(2, 4), (3, 1)]}, {"e": [(1, 2)]})
        assert set(db["n"]) == {(1, 1), (2, 2), (3, 1)}


def test_distinct_rows_are_those_of_numpy() -> None:
    for width in (0, 1, 3):
        words = np.random.default_rng(width).integers(-2, 3, (40, width)).astype(np.int32)
        first, place = distinct_in_order(words)
        if width:
            _, wanted, of = np.unique(words, axis=0, return_index=True, return_inverse=True)
            assert (first.tolist(), place.tolist()) == (wanted.tolist(), of.reshape(-1).tolist())
        else:
            assert (first.tolist(), set(place.tolist())) == ([0], {0})


@pytest.mark.parametrize("kind", [Workspace, Vectors])
def test_ctrl_c_while_records_get_their_arrays(kind: type[Workspace | Vectors]) -> None:
    """NumPy asks Python what a class of records is made of, and took any error in that for "unknown": an array of
    objects, which compiled code wrote beyond, and whose words were taken for addresses when it was freed."""
    for place in range(1, 200):
        made = None
        with suppress(KeyboardInterrupt), interrupted_at(place) as places:
            made = kind()
        arrays = [] if made is None else [made._nodes] if isinstance(made, Workspace) else [made.nodes, made.log]
        assert all(array.dtype != object for array in arrays)
    assert places.passed < place  # there are no others


@pytest.mark.parametrize("within", ["borrowed program", "first epoch", "trial"])
def test_ctrl_c_in_a_rollback_waits_for_its_end(within: str) -> None:
    """Half a rollback would be no epoch at all, and nothing says later that it was only half."""
    ended: list[bool] = []

    class Failing:
        """A backend whose updates fail as soon as they have begun."""

        program = SimpleNamespace(needed={"handled": "needed"})
        is_complete = True

        def facts(self, relation: str) -> Any:
            return SimpleNamespace(words=np.zeros((1, 1), np.int32))

        def begin(self, *_: object) -> None:
            raise ArithmeticError

        def rollback(self) -> None:
            signal.raise_signal(signal.SIGINT)
            ended.append(True)

    backend: Any = Failing()
    strategy: Any = SimpleNamespace(bootstrap=lambda backend: None)
    begin = {
        "borrowed program": lambda: evaluate_anew(backend, strategy, frozenset()),
        "first epoch": lambda: needed_groups.bootstrap(backend, strategy),
        "trial": lambda: Trial(backend, strategy, Update({}, {})).__enter__(),
    }[within]
    with pytest.raises(KeyboardInterrupt):
        begin()
    assert ended
