"""Earlier epochs: the log, what changed, what was there; batches that are applied once; how far back it goes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.storage.entries import COMPARED, Batches, BatchNote, LogEntry
from elastalog.storage.manifest import Options, read_manifest
from tests.closures import CLOSURE as REACH
from tests.storage.expecting import EXPECTED, require_kept
from tests.storage.scripted import LAST, create, go_on, lived, state_of


@pytest.mark.parametrize("journal_epochs", [1, 2, 100])
def test_every_epoch_can_be_read_again(folder: Path, journal_epochs: int) -> None:
    store = lived(folder / "store", journal_epochs=journal_epochs, retention=100)
    with elastalog.open(store=store) as session:
        for epoch in range(LAST, 0, -1):
            earlier = session.at(epoch)
            assert (earlier.epoch, state_of(earlier)) == (epoch, EXPECTED[epoch])
            require_kept(elastalog.Store(store, at=epoch), epoch)
        with pytest.raises(elastalog.ElastalogError, match="E0814"):
            session.at(1).apply({"edge": [(1, 1)]})
        for epoch in (0, LAST + 1, -1):
            with pytest.raises(elastalog.ElastalogError, match="the store keeps epochs 1 to 6"):
                session.at(epoch)
        assert state_of(session) == EXPECTED[LAST]


def test_earlier_epochs_go_when_the_retention_is_reached(folder: Path) -> None:
    store = lived(folder / "store", journal_epochs=1, retention=2)
    with elastalog.open(store=store) as session:
        assert [entry.epoch for entry in session.log()] == [4, 5, 6]
        for epoch in (4, 5, 6):
            assert state_of(session.at(epoch)) == EXPECTED[epoch]
        with pytest.raises(elastalog.ElastalogError, match="E0813"):
            session.at(3)
    kept = {path.name for path in store.iterdir()}
    assert kept == {
        "CURRENT", "FORMAT", "LOCK", "program.dl", "facts", "dictionary", "manifest-6.json",
        "journal-4.log", "journal-5.log", "journal-6.log",
    }  # fmt: skip


def test_snapshots_are_thinned_out_and_every_epoch_stays(folder: Path) -> None:
    session = elastalog.open(REACH, facts={"edge": [(1, 2)]})
    session._history.keep_in(folder / "store", Options(journal_epochs=1))
    states = {1: state_of(session)}
    for number in range(2, 31):
        session.apply({"edge": [(number, number + 1)]}, {"edge": [(number - 1, number)]} if number % 3 else {})
        states[session.epoch] = state_of(session)
    manifest = read_manifest(folder / "store")
    assert len(manifest.snapshots) == 8
    assert (manifest.snapshots[0].epoch, manifest.snapshots[-1].epoch) == (1, 30)
    for epoch, state in states.items():
        assert state_of(session.at(epoch)) == state
    session.close()


def test_the_log_tells_what_each_epoch_was(folder: Path) -> None:
    store = lived(folder / "store", retention=100)
    with elastalog.open(store=elastalog.Store(store, read_only=True)) as session:
        log = session.log()
    assert [(entry.epoch, entry.source, entry.batch) for entry in log] == [
        (1, None, None), *((number, "script", number) for number in range(2, 7)),
    ]  # fmt: skip
    # Counted by hand from the script: deletions, insertions, and what was named in vain.
    assert [(entry.deleted, entry.inserted, entry.ignored) for entry in log[1:]] == [
        (0, 3, 0), (1, 0, 0), (1, 2, 0), (2, 2, 0), (0, 2, 1),
    ]  # fmt: skip
    for before, entry in pairwise(log):
        old = {(name, fact[:-2]) for name, facts in EXPECTED[before.epoch].items() for fact in facts}
        new = {(name, fact[:-2]) for name, facts in EXPECTED[entry.epoch].items() for fact in facts}
        assert entry.impact == len(old ^ new)
        assert entry.time >= before.time


def test_the_log_is_the_same_with_and_without_a_store(folder: Path) -> None:
    logs = []
    for options in ({}, {"store": folder / "store"}):
        with elastalog.open(REACH, facts={"edge": [(1, 2), (2, 3)]}, **options) as session:
            session.apply({"edge": [(3, 4)]}, source="s", batch=1)
            session.apply({}, {"edge": [(1, 2)]})
            logs.append(session.log())
    told = [[(e.epoch, e.source, e.batch, e.deleted, e.inserted, e.impact, e.derivations) for e in log] for log in logs]
    assert told[0] == told[1]
    # By hand: 2 edges and 3 paths; an edge and 3 paths; an edge and the 3 paths from 1.
    assert [entry.impact for entry in logs[0]] == [5, 4, 4]
    for before, entry in pairwise(logs[0]):
        assert before.time <= entry.time


def test_differences_between_any_two_epochs(folder: Path) -> None:
    store = lived(folder / "store", retention=100)
    with elastalog.open(store=store) as session:
        for first in range(1, LAST + 1):
            for last in range(1, LAST + 1):
                found = session.diff(first, last)
                for name in session:
                    old = {fact[:-2]: fact[-2] for fact in EXPECTED[first][name]}
                    new = {fact[:-2]: fact[-2] for fact in EXPECTED[last][name]}
                    moved = {(*fact, old[fact], new[fact]) for fact in old.keys() & new if old[fact] != new[fact]}
                    if name not in found:
                        assert old == new
                        continue
                    assert set(found[name].inserted) == new.keys() - old.keys()
                    assert set(found[name].deleted) == old.keys() - new.keys()
                    assert set(zip(*found[name].moved.to_pydict().values(), strict=True)) == moved
                assert {name: each.moved for name, each in found.items()} == {name: found[name].moved for name in found}


def test_the_turns_of_a_fact(folder: Path) -> None:
    with elastalog.open(REACH, facts={"edge": [(1, 2), (2, 3)]}, store=folder / "store") as session:
        session.apply({"edge": [(1, 3)]})
        session.apply({}, {"edge": [(2, 3)]})
        session.apply({}, {"edge": [(1, 3)]})
        turns = [(turn.epoch, turn.what, turn.was, turn.level) for turn in session.history("path(1, 3)")]
        assert turns == [(1, "appeared", -1, 2), (2, "moved", 2, 1), (4, "disappeared", 1, -1)]
        assert [(turn.epoch, turn.what) for turn in session.history(("path", (2, 3)))] == [
            (1, "appeared"),
            (3, "disappeared"),
        ]
        assert session.history("path(7, 7)") == ()


def test_a_question_adds_nothing_to_the_dictionary(folder: Path) -> None:
    with create(folder / "store") as session:
        known = len(session._dictionary.symbols), len(session._dictionary.wide)
        for fact in ('lone("unheard of")', ("lone", ("unheard of",)), ("label", (10**17, "unheard of"))):
            session.why_not(fact)
            assert session.history(fact) == ()
            with pytest.raises(elastalog.ElastalogError, match="E1008"):
                session.blame(fact)
        assert (len(session._dictionary.symbols), len(session._dictionary.wide)) == known


def test_questions_of_a_reader_are_about_the_files_of_now(folder: Path) -> None:
    """The writer goes on, and removes files that were there when the reader was opened."""
    with create(folder / "store", journal_epochs=1, retention=2) as writer:
        writer.apply({"edge": [(3, 4)]})
        writer.apply({"edge": [(4, 5)]})
        with elastalog.open(store=elastalog.Store(folder / "store", read_only=True)) as reader, writer.at(3) as earlier:
            for session in (reader, earlier):
                found = session.suggest(unwanted=["path(4, 5)"])
                assert [str(element) for element in found.elements] == ["+edge(4, 5)"]
                assert session.blame("path(3, 4)").epoch == 2
            writer.apply({"edge": [(5, 6)]})
            for session in (reader, earlier):
                assert session.blame("path(4, 5)").epoch == 3
                assert session.blame("path(3, 4)").localisation is None  # it was there before the oldest epoch
            writer.apply({"edge": [(6, 7)]})
            for session in (reader, earlier):
                with pytest.raises(elastalog.ElastalogError, match="E1004"):
                    session.suggest(unwanted=["path(4, 5)"])
            writer.apply({"edge": [(7, 8)]})
            for session in (reader, earlier):
                for ask in (session.suggest, session.localise, session.blame):
                    with pytest.raises(elastalog.ElastalogError, match="there is no epoch 3"):
                        ask("path(4, 5)")


def test_a_session_without_a_store_has_no_earlier_epochs() -> None:
    session = elastalog.open(REACH)
    for ask in (lambda: session.at(1), lambda: session.diff(1, 1), lambda: session.history("path(1, 2)")):
        with pytest.raises(elastalog.ElastalogError, match="E0815"):
            ask()


@pytest.mark.parametrize("journal_epochs", [1, 100])
def test_an_earlier_epoch_has_the_past_up_to_it(folder: Path, journal_epochs: int) -> None:
    store = lived(folder / "store", journal_epochs=journal_epochs, retention=100)
    with elastalog.open(store=store) as session:
        for epoch in range(1, LAST + 1):
            with session.at(epoch) as past, elastalog.open(store=elastalog.Store(store, at=epoch)) as direct:
                for earlier in (past, direct):
                    assert [entry.epoch for entry in earlier.log()] == list(range(1, epoch + 1))
                    assert state_of(earlier.at(1)) == EXPECTED[1]
                    told = f"there is no epoch {epoch + 1} here: this session looks at epochs 1 to {epoch} of"
                    if epoch == LAST:
                        told = f"the store keeps epochs 1 to {LAST}\n.*\n.*is still to come"
                    with pytest.raises(elastalog.ElastalogError, match=told):
                        earlier.at(epoch + 1)
                    with pytest.raises(elastalog.ElastalogError, match=told):
                        earlier.engine.changed_rules(1, epoch + 1)
        with pytest.raises(elastalog.ElastalogError, match="the store keeps epochs 1 to 6\n"):
            elastalog.open(store=elastalog.Store(store, at=LAST + 1))
        session.apply({"edge": [(70, 71)]})  # closing the others has not closed this one
        assert session.epoch == LAST + 1


def test_rules_between_epochs_that_there_are_not(folder: Path) -> None:
    for options, who in (({}, "the session has had epochs 1 to 2"), ({"store": folder / "s"}, "the store keeps")):
        with elastalog.open(REACH, **options) as session:
            session.change_rules(removed=2)
            assert session.engine.changed_rules(1, 2).removed == ("path(x, z) :- path(x, y), edge(y, z).",)
            for first, last, wrong in ((1, 99, 99), (0, 2, 0), (99, 1, 99)):
                with pytest.raises(elastalog.ElastalogError) as raised:
                    session.engine.changed_rules(first, last)
                (found,) = raised.value.diagnostics
                assert (found.code, found.message.partition(":")[0]) == ("E0813", f"there is no epoch {wrong}")
                assert who in found.message
                assert found.help


def test_a_batch_is_applied_once_even_by_another_process(folder: Path) -> None:
    with create(folder / "store") as session:
        session.apply({"edge": [(3, 4)]}, source="a", batch=7)
    for _ in range(3):  # the third time the batch is in a snapshot
        with elastalog.open(store=folder / "store") as session:
            epoch, before = session.epoch, state_of(session)
            update = session.update("a", "7")
            update.insert("edge", [(3, 4)])
            assert update.commit().impact == 0
            assert update.stats.is_repeated
            assert (session.epoch, state_of(session)) == (epoch, before)
            session.apply({"edge": [(epoch, epoch)]}, source="b", batch=7 + epoch)
            assert session.epoch == epoch + 1


def test_a_batch_is_applied_once_without_a_store_too() -> None:
    session = elastalog.open(REACH)
    for _ in range(2):
        session.apply({"edge": [(1, 2)]}, source="a", batch=1)
    assert session.epoch == 2


def test_a_batch_whose_commit_failed_can_be_applied_again() -> None:
    session = elastalog.open(
        ".decl a(x: number)\n.decl b(x: number)\nb(x * 4611686018427387904) :- a(x).", facts={"a": [(1,)]}
    )
    with pytest.raises(elastalog.ElastalogError):
        session.apply({"a": [(2,)]}, source="s", batch=1)
    session.apply({"a": [(-1,)]}, source="s", batch=1)
    assert session.epoch == 2


@pytest.mark.parametrize(
    ("clock", "year"), [(253402300800.0, 9999), (1e300, 9999), (-62135596801.0, 1), (float("nan"), 1)]
)
def test_a_clock_beyond_the_calendar_leaves_the_log_readable(folder: Path, clock: float, year: int) -> None:
    with elastalog.open(REACH, store=folder / "store") as session:
        entry = replace(session.log()[0], timestamp=clock)
    assert LogEntry.read(json.loads(json.dumps(entry.written()))).time.year == year


def test_a_batch_stands_for_one_update_of_its_source() -> None:
    batches = Batches()
    batches.add("a", "K", "0" * 32)
    batches.add("a", "old")  # as earlier versions have it
    for known in (batches, Batches(json.loads(json.dumps(batches.written())))):
        assert ("a", "K") in known
        assert ("b", "K") not in known
        for source, batch, digest in (
            ("a", "K", "0"),
            ("b", "K", "1"),
            ("a", "old", "2"),
            ("a", 7, "1"),
            ("a", "K", ""),
        ):
            known.refuse_other(source, batch, digest * 32 or None)
        with pytest.raises(ElastalogError, match="the key `K` has been used for another update of this source"):
            known.refuse_other("a", "K", "1" * 32)


def test_only_the_latest_batches_of_a_source_are_compared() -> None:
    batches = Batches()
    for number in range(1, COMPARED + 2):
        batches.add("a", number, f"{number:032x}")
    assert batches.written()["a"]["ranges"] == [[1, COMPARED + 1]]
    assert len(batches.written()["a"]["keys"]) == COMPARED
    batches.refuse_other("a", 1, "f" * 32)
    for number in (2, COMPARED + 1):
        with pytest.raises(ElastalogError, match="E0932"):
            batches.refuse_other("a", number, "f" * 32)


@pytest.mark.parametrize("key", ["K", "17", "12 step 3"])
def test_a_batch_is_read_with_its_digest(key: str) -> None:
    digest = "0" * 32
    kept = Batches({"a": {"ranges": [], "others": ["old"], "keys": {key: digest}}})
    assert ("a", key) in kept
    with pytest.raises(ElastalogError, match="E0932"):
        kept.refuse_other("a", key, "1" * 32)
    for note in (BatchNote("a", key), BatchNote("a", key, digest)):
        assert BatchNote.decode(note.encode()) == note
    entry = LogEntry(2, 0.0, "a", key, 0, 1, 0, 1, 0.0, (), digest=digest)
    assert LogEntry.read(json.loads(json.dumps(entry.written()))) == entry


@pytest.mark.parametrize("kept", [False, True])
def test_another_update_under_a_used_batch_is_refused(folder: Path, kept: bool) -> None:
    program = ".decl edge(x: number, y: symbol)\n.input edge\n.decl b(x: number)\n"
    first = {"edge": [(1, "a"), (2, "b")]}
    where = {"store": folder / "store"} if kept else {}
    db = elastalog.open(program, {"edge": [(9, "z")]}, **where)  # type: ignore[arg-type]
    assert db.apply(first, {"edge": [(9, "z")]}, source="s", batch=7).impact == 3
    db.apply(deleted={"edge": [(77, "unknown")]}, source="s", batch="nothing")
    db.change_rules("b(x) :- edge(x, _).", source="s", batch="rules")
    db.upgrade(program + "b(x) :- edge(x, _).\nb(0).\n", source="s", batch="program")
    if kept:
        db.close()
        db = elastalog.open(store=folder / "store")
    with db:
        db.apply({"edge": [(3, "another"), (77, "text")]})  # ids that the unknown text might have had
        before = {name: set(db[name]) for name in ("edge", "b")}
        again = db.apply(
            {"edge": [[2, "b"], [1, "a"], [1, "a"]]} if not kept else first, {"edge": [(9, "z")]}, source="s", batch="7"
        )
        assert again.is_repeated
        assert db.apply(deleted={"edge": [(77, "unknown")]}, source="s", batch="nothing").is_repeated
        assert db.change_rules("b(x) :- edge(x, _).\n", source="s", batch="rules").is_repeated
        assert db.upgrade(program + "b(x) :- edge(x, _).\nb(0).\n", source="s", batch="program").is_repeated
        for other in (
            lambda: db.apply(first, source="s", batch=7),
            lambda: db.apply({"edge": [(9, "z")]}, first, source="s", batch=7),
            lambda: db.apply(deleted={"edge": [(77, "text")]}, source="s", batch="nothing"),
            lambda: db.change_rules(removed="b(x) :- edge(x, _).", source="s", batch="rules"),
            lambda: db.upgrade(program, source="s", batch="program"),
        ):
            with pytest.raises(ElastalogError, match="E0932"):
                other()
        assert {name: set(db[name]) for name in ("edge", "b")} == before
        assert not db.apply(first, source="another", batch=7).is_repeated


def test_batches_in_any_order_are_remembered_and_kept_small() -> None:
    batches = Batches()
    for number in [5, 3, 4, 10, 8, 9, 1]:
        assert ("s", str(number)) not in batches
        batches.add("s", str(number))
    for other in ["x", "07", "-1", "1e3", "9" * 30]:
        batches.add("s", other)
    batches.add(None, "2")
    batches.add("s", None)
    again = Batches(batches.written())
    assert batches.written() == again.written()
    assert again.written()["s"] == {
        "ranges": [[1, 1], [3, 5], [8, 10]],
        "others": ["9" * 30, "x"],
        "names": {"**": [[7, 7]], "-*": [[1, 1]], "1e*": [[3, 3]]},
    }
    for known in ["5", "3", "4", "10", "1", "x", "07", "-1"]:
        assert ("s", known) in again
    for unknown in ["2", "7", "11", "0", "y", "007"]:
        assert ("s", unknown) not in again
    assert (None, "2") in again
    assert ("s", None) not in again
    for number in range(10_000):
        again.add("s", str(number))
    assert again.written()["s"]["ranges"] == [[0, 9999]]


def test_batches_whose_names_differ_in_a_number_are_kept_small() -> None:
    batches = Batches()
    for number in range(1, 1200):
        for name in (f"{number}.diff", f"day-{number:04}.csv", f"7-{number}-edge.csv", f"{number}*"):
            assert ("s", name) not in batches
            batches.add("s", name)
    again = Batches(batches.written())
    assert again.written()["s"]["names"] == {
        "*.diff": [[1, 1199]],
        "7-*-edge.csv": [[1, 1199]],
        "day-****.csv": [[1, 999]],
        "day-*.csv": [[1000, 1199]],
    }
    assert len(again.written()["s"]["others"]) == 1199  # what could be misread is kept as it is
    for known in ("1.diff", "1199.diff", "day-0999.csv", "day-1000.csv", "7-12-edge.csv", "8*"):
        assert ("s", known) in again
    for unknown in ("0.diff", "1200.diff", "01.diff", "day-1.csv", "day-999.csv", "day-00999.csv", "12-7-edge.csv"):
        assert ("s", unknown) not in again
    # As they were written before there were ranges of names.
    assert ("s", "3.diff") in Batches({"s": {"ranges": [], "others": ["3.diff"]}})


def test_of_parts_only_those_of_the_latest_batch_are_kept() -> None:
    batches = Batches()
    for number in range(100):
        for part in ("step 3", "step -1", "file /lake/edge/part-0 1.parquet"):
            assert ("s", f"{number} {part}") not in batches
            batches.add("s", f"{number} {part}")
    again = Batches(batches.written())
    assert again.written() == {
        "s": {"ranges": [], "others": [], "parts": [99, ["file /lake/edge/part-0 1.parquet", "step -1", "step 3"]]}
    }
    for known in ("99 step 3", "99 step -1", "98 step 3", "0 file x"):
        assert ("s", known) in again
    for unknown in ("99 step 4", "100 step 3", "099 step 3", "99", "99 steps"):
        assert ("s", unknown) not in again
    assert ("t", "0 step 3") not in again


def test_opening_goes_on_learning_where_it_stopped(folder: Path) -> None:
    with create(folder / "store") as session:
        go_on(session)
        learnt = session._epochs.strategy.costs.learnt()
    with elastalog.open(store=folder / "store") as session:
        assert session._epochs.strategy.costs.learnt() == learnt
