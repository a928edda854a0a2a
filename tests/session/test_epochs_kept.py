"""Which updates are epochs, how many of them are remembered, and what opening a store again does."""

from __future__ import annotations

import os
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.session import history as history_of_sessions
from elastalog.storage.store import Store
from tests.closures import REACH as PROGRAM
from tests.commands import run
from tests.refusals import refused
from tests.storage.scripted import write_snapshot


def test_the_second_time_the_store_is_opened_and_a_warning_says_that_facts_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n")

    def again() -> elastalog.Session:
        return elastalog.open(tmp_path / "reach.dl", facts=tmp_path / "facts", store=tmp_path / "reach.store")

    with again() as db:
        db.apply({"edge": [(2, 3)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again().close()
    assert run("query", tmp_path / "reach.store", "path(2, X)", "-F", tmp_path / "facts").stderr == ""
    (tmp_path / "facts" / "edge.facts").write_text("7\t8\n")
    os.utime(tmp_path / "facts" / "edge.facts", (time.time() + 10,) * 2)
    with pytest.warns(
        UserWarning, match=r"at epoch 2, so `edge\.facts`, edited since, was not read again: .* with `db\.apply"
    ) as warned:
        db = again()
    with db:
        assert sorted(db["edge"]) == [(1, 2), (2, 3)]
        assert db.epoch == 2
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elastalog.open(tmp_path / "reach.dl", facts={}, store=tmp_path / "reach.store").close()
        elastalog.open(store=tmp_path / "reach.store").close()
    given: tuple[Any, ...] = ([(1, 2)], tmp_path / "facts" / "edge.facts")
    for rows, said in zip(
        given, ("`facts` were not read: leave them out, and add", "`edge.facts`, edited"), strict=True
    ):
        with pytest.warns(UserWarning, match=f"so {said}"):
            elastalog.open(tmp_path / "reach.dl", facts={"edge": rows}, store=tmp_path / "reach.store").close()
    asked = run("query", tmp_path / "reach.store", "path(2, X)", "-F", tmp_path / "facts")
    assert (asked.stdout, asked.stderr.count("has its own facts, so -F was not read")) == ("3\n", 1)
    assert run("query", tmp_path / "reach.store", "path(2, X)").stderr == ""
    applied = run("debug", tmp_path / "reach.store", "--unwanted", "path(2, 3)", "--apply", "-F", tmp_path / "facts")
    assert (applied.exit_code, applied.stderr.count("has its own facts, so -F was not read")) == (0, 1)


def test_an_input_that_was_edited_since_the_store_was_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "one.dl").write_text(".decl one(x: number)\n.input one\n")
    (tmp_path / "one.facts").write_text("1\n")

    def again() -> elastalog.Session:
        return elastalog.open(tmp_path / "one.dl", store=tmp_path / "one.store")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again().close()
        again().close()
    os.utime(tmp_path / "one.facts", (time.time() + 10,) * 2)
    with pytest.warns(
        UserWarning, match=r"so `one\.facts`, edited since, was not read again: .* with `db\.apply"
    ) as told:
        again().close()
    assert told[0].filename == __file__


@pytest.mark.parametrize(("facts", "retention"), [({"edge": [(1, 2)]}, None), (None, 5)])
def test_a_reader_of_a_store_has_neither_facts_nor_retention(tmp_path: Path, facts: Any, retention: int | None) -> None:
    elastalog.open(PROGRAM, {"edge": []}, store=tmp_path / "store").close()
    with refused("E0612"):
        elastalog.open(facts=facts, store=elastalog.Store(tmp_path / "store", retention, read_only=True))


def test_an_update_that_changes_nothing_is_no_epoch() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db:
        assert db.apply({"edge": [(1, 2)]}, {"edge": [(5, 6)]}).impact == 0
        db.apply({"edge": [(3, 4)]}, {"edge": [(3, 4)]})  # insertion wins
        assert db.epoch == 2
        with db.update() as update:
            update.insert("edge", [(1, 2)])
            update.delete("edge", [(1, 2)])
        assert (db.epoch, update.stats.epoch, update.stats.is_unchanged) == (2, 2, True)
        assert [entry.epoch for entry in db.log()] == [1, 2]
        db.apply()
        assert db.epoch == 2


def test_making_a_derived_fact_explicit_is_an_epoch() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db:
        assert db.apply({"path": [(1, 2)]}).impact == 0
        assert db.epoch == 2
        db.apply({"path": [(1, 2)]})
        assert db.epoch == 2
        db.apply({}, {"edge": [(1, 2)]})
        assert list(db["path"]) == [(1, 2)]


def test_heartbeats_are_epochs() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, store=elastalog.Store(heartbeats=True)) as db:
        db.apply()
        db.apply({"edge": [(1, 2)]})
        assert db.epoch == 3


def test_a_batch_that_changed_nothing_is_remembered(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, store=store) as db:
        db.apply({"edge": [(1, 2)]}, source="crawler", batch="monday")
        assert db.engine.is_applied("crawler", "monday")
        assert db.epoch == 1
        # What another process finds, before this one ends in order.
        assert ("crawler", "monday") in Store.open(store, read_only=True).batches
        db.apply({"edge": [(2, 3)]}, source="crawler", batch="tuesday")
        db.apply({"edge": [(2, 3)]}, source="crawler", batch=7)
    with elastalog.open(store=store) as db:
        assert db.epoch == 2
        for batch in ("monday", "tuesday", 7):
            assert db.engine.is_applied("crawler", batch)
        with db.update("crawler", "monday") as update:
            update.insert("edge", [(1, 2)])
        assert update.stats.is_repeated
        db.apply({"edge": [(3, 4)]})
        assert db.epoch == 3
        assert db.verify().is_exact


def test_a_batch_noted_while_a_snapshot_is_written_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, store=path) as db:
        db.apply({"edge": [(2, 3)]})
        store = db._history.store
        coming = store.begin_snapshot(db._dictionary)
        db.apply({"edge": [(2, 3)]}, source="crawler", batch="late")
        coming.run()
        store.finish_snapshot()
        assert store.manifest.snapshots[-1].epoch == 2
    with elastalog.open(store=path) as db:
        assert db.engine.is_applied("crawler", "late")


def test_memory_holds_a_bounded_past() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, store=elastalog.Store(retention=3)) as db:
        for i in range(10):
            db.apply({"edge": [(i, i + 100)]})
        assert [entry.epoch for entry in db.log()] == [8, 9, 10, 11]
        with refused("E0813"):
            db.engine.changed_rules(1, 11)
        assert db.blame("edge(9, 109)").epoch == 11


def test_the_last_epoch_is_remembered_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_of_sessions, "MOST_FACTS", 10)
    with elastalog.open(PROGRAM, {"edge": []}) as db:
        for i in range(5):
            db.apply({"edge": [(i, -i - 1)]})
        assert len(db.log()) == 4  # of three facts each: one explicit, and that and a derived one changed
        db.apply({"edge": [(i, i + 1000) for i in range(100, 200)]})
        assert [entry.epoch for entry in db.log()] == [4, 5, 6, 7]


@pytest.mark.slow
def test_memory_stays_flat_over_updates_of_the_same_facts() -> None:
    with elastalog.open(PROGRAM, {"edge": [(i, i + 1) for i in range(5)]}, store=elastalog.Store(retention=10)) as db:

        def round_trip(times: int) -> None:
            for _ in range(times):
                db.apply({}, {"edge": [(2, 3)]})
                db.apply({"edge": [(2, 3)]})

        round_trip(500)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            round_trip(1500)
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert grown < 100_000  # it was some 3 KB an update


def test_retention_of_a_store_that_is_there_is_set(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, store=path) as db:
        for i in range(4):
            db.apply({"edge": [(i, i + 10)]})
            write_snapshot(db)
        assert db.log()[0].epoch == 1
    with elastalog.open(store=elastalog.Store(path, retention=2)) as db:
        assert db.log()[0].epoch == 3
        assert db.at(3)["edge"] is not None
        db.apply({"edge": [(50, 51)]})
    with elastalog.open(store=path) as db:
        assert db._history.store.manifest.options.retention == 2
        assert (50, 51) in db["edge"]
        assert db.verify().is_exact
