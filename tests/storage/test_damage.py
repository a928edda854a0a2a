"""Files that are not what was written: a diagnostic that names the file, never a wrong answer."""

# ruff: noqa: PT017 - many attempts, most of which fail
from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.relations.words import Dictionary
from elastalog.storage.administration import check_files
from elastalog.storage.errors import StoreDamaged
from elastalog.storage.filesystem import FileSystem
from elastalog.storage.manifest import Options, read_manifest, write_manifest
from elastalog.storage.store import Store
from tests.refusals import refused
from tests.storage.expecting import EXPECTED
from tests.storage.scripted import LAST, files_of, lived, state_of

SMALL = """.decl edge(x: number, y: symbol)
.decl node(y: symbol)
node(y) :- edge(_, y)."""

Content = dict[str, Any]


def small_store(path: Path) -> Path:
    """Two relations, a snapshot and two epochs in the journal."""
    session = elastalog.open(SMALL, facts={"edge": [(1, "a"), (2**40, "b")]})
    session._history.keep_in(path, Options())
    session.apply({"edge": [(3, "c")]})
    session.apply({"edge": [(-(2**50), "a")]}, {"edge": [(1, "a")]})
    session.close()
    return path


def content_of(path: Path) -> Content:
    """Everything that an opened store would answer from."""
    store = Store.open(path)
    try:
        state = store.state()
        dictionary = Dictionary()
        state.fill(dictionary)
        content: Content = {
            "epoch": store.epoch,
            "program": store.state().program_text(),
            "options": store.manifest.options,
            "layout": store.manifest.layout,
            "symbols": dictionary.symbols.strings_from(0),
            "patterns": dictionary.wide.patterns_from(0).tolist(),
        }
        for name in store.manifest.layout:
            facts, changes = state.relation(name)
            content[name] = [
                [array.tolist() for array in arrays]
                for arrays in (
                    [facts.words, np.asarray(facts.level), np.asarray(facts.count)],
                    *([change.words, change.was, change.level, change.count] for change in changes),
                )
            ]
        return content
    finally:
        store.close()


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
def test_every_flipped_bit_is_noticed_or_harmless(folder: Path, step: int) -> None:
    store = small_store(folder / "store")
    content, files = content_of(store), files_of(store)
    assert {name.split("-")[0].split("/")[0] for name in files} == {
        "CURRENT", "FORMAT", "program.dl", "manifest", "journal", "facts", "dictionary",
    }  # fmt: skip
    noticed = 0
    for name, data in files.items():
        path = store / name
        for position in range(0, len(data), step):
            flipped = bytearray(data)
            flipped[position] ^= 1 << (position % 8)
            path.write_bytes(flipped)
            try:
                found = content_of(store)
            except elastalog.ElastalogError as error:
                noticed += 1
                locations = {d.location for d in error.diagnostics}
                # A pointer that names a manifest that is not there is reported by that name.
                expected = {str(path)} if name != "CURRENT" else {str(path), str(store / "manifest-1.json")}
                assert locations <= expected or "manifest-" in str(locations), (name, position, locations)
            else:
                assert found == content, (name, position)
            path.write_bytes(data)
        assert files_of(store) == files, "a damaged store must be left as it is"
    assert noticed == sum(len(range(0, len(data), step)) for data in files.values()), "every byte matters"


def test_a_flipped_bit_never_changes_the_answers_of_a_session(folder: Path) -> None:
    store = small_store(folder / "store")
    with elastalog.open(store=store) as session:
        answers = state_of(session)
    for name, data in files_of(store).items():
        for position in range(0, len(data), 211):
            flipped = bytearray(data)
            flipped[position] ^= 0x10
            (store / name).write_bytes(flipped)
            try:
                with elastalog.open(store=elastalog.Store(store, read_only=True)) as session:
                    assert state_of(session) == answers
            except elastalog.ElastalogError as error:
                assert str(error).startswith("error[E08")
            assert any(d.severity == "error" for d in check_files(store)[0])
            (store / name).write_bytes(data)
    assert check_files(store)[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_every_truncation_of_the_journal_gives_the_last_whole_epoch(folder: Path, step: int) -> None:
    store = lived(folder / "store", journal_epochs=100)
    expected = EXPECTED
    journal = store / "journal-1.log"
    data = journal.read_bytes()
    epochs: list[int] = []
    for length in range(len(data), -1, -step):
        journal.write_bytes(data[:length])
        try:
            opened = Store.open(store)
        except StoreDamaged as error:
            # Without its first frame a file is no journal: it was flushed before anything referred to it.
            assert str(journal) in str(error)
            epochs.append(0)
            continue
        opened.close()
        kept = journal.stat().st_size
        if kept < length:
            (warning,) = opened.discarded
            assert (warning.code, warning.severity, warning.location) == ("E0816", "warning", str(journal))
            assert f"{length - kept:,} bytes" in warning.message
        else:
            assert opened.discarded == []
        if opened.epoch not in epochs:
            with elastalog.open(store=store) as session:
                assert session.epoch == opened.epoch
                assert state_of(session) == expected[opened.epoch]
        epochs.append(opened.epoch)
    assert sorted(set(epochs)) == list(range(LAST + 1))
    assert epochs == sorted(epochs, reverse=True)


def test_a_journal_with_a_page_that_was_never_written_ends_before_it(folder: Path) -> None:
    path = folder / "store"
    with elastalog.open(SMALL, store=path) as session:
        session.apply({"edge": [(1, "a")]})
        session.apply({"edge": [(number, f"symbol {number * 7919 % 5000}") for number in range(5000)]})
    journal = path / "journal-1.log"
    data = journal.read_bytes()
    assert len(data) > 3 * 4096
    for page in range(1, len(data) // 4096):
        journal.write_bytes(data[: page * 4096] + bytes(4096) + data[(page + 1) * 4096 :])
        with elastalog.open(store=elastalog.Store(path, read_only=True)) as session:
            assert session.epoch == 2
    journal.write_bytes(data[:9000] + bytes([data[9000] ^ 1]) + data[9001:])
    with pytest.raises(StoreDamaged, match=r"journal-1\.log` is damaged: the checksum of the record .* after epoch 2"):
        elastalog.open(store=path)
    with elastalog.open(store=elastalog.Store(path, at=2)) as session:
        assert list(session["node"]) == [("a",)]


def test_every_missing_file_is_named(folder: Path) -> None:
    store = lived(folder / "store")
    manifest = read_manifest(store)
    latest = [
        *manifest.snapshots[-1].relations.values(),
        *(part.file for part in (*manifest.symbols, *manifest.patterns)),
    ]
    needed = {manifest.name, manifest.program.name, manifest.journals[-1].name, *(file.name for file in latest)}
    for name, data in files_of(store).items():
        (store / name).unlink()
        found, _ = check_files(store)
        if name in ("FORMAT", "CURRENT"):
            assert [d.code for d in found] == ["E0801" if name == "FORMAT" else "E0806"]
        else:
            assert [(d.code, d.location) for d in found] == [("E0806", str(store / name))]
            if name in needed:  # those of earlier epochs are not needed to open it
                with pytest.raises(elastalog.ElastalogError, match=r"E080[16]"):
                    elastalog.open(store=store)
        (store / name).write_bytes(data)
    assert check_files(store)[0] == []


def test_every_pair_of_swapped_files_is_noticed(folder: Path) -> None:
    store = lived(folder / "store")
    files = files_of(store)
    names = sorted(files)
    for first, second in pairwise(names):
        if files[first] == files[second]:
            continue
        (store / first).write_bytes(files[second])
        (store / second).write_bytes(files[first])
        found, _ = check_files(store)
        assert any(d.severity == "error" for d in found), (first, second)
        (store / first).write_bytes(files[first])
        (store / second).write_bytes(files[second])


def test_a_journal_of_another_store_is_refused(folder: Path) -> None:
    here, there = small_store(folder / "here"), small_store(folder / "there")
    shutil.copy(there / "journal-1.log", here / "journal-1.log")
    with pytest.raises(StoreDamaged, match="not the journal of this store after epoch 1"):
        elastalog.open(store=here)


def test_a_newer_format_is_refused_and_left_alone(folder: Path) -> None:
    store = small_store(folder / "store")
    (store / "FORMAT").write_text("elastalog store 2\n")
    files = files_of(store)
    with refused("E0803", message="the store has format 2, this version of Elastalog knows formats up to 1"):
        elastalog.open(store=store)
    assert files_of(store) == files


def test_a_changed_program_is_damage_and_another_program_is_refused(folder: Path) -> None:
    store = small_store(folder / "store")
    with pytest.raises(elastalog.ElastalogError, match="E0810"):
        elastalog.open(SMALL + "\nnode(y) :- edge(1, y).", store=store)
    with elastalog.open(SMALL, store=store) as session:
        assert session.epoch == 3
    (store / "program.dl").write_text(SMALL + "\n")
    with pytest.raises(StoreDamaged, match=r"program\.dl` is damaged"):
        elastalog.open(store=store)


def with_layout(store: Path, rename: Callable[[str], str]) -> None:
    """Has a store tell that its relations were called otherwise when it was written."""
    manifest = read_manifest(store)
    layout = {rename(name): bases for name, bases in manifest.layout.items()}
    snapshots = tuple(
        replace(snapshot, relations={rename(name): file for name, file in snapshot.relations.items()})
        for snapshot in manifest.snapshots
    )
    changed = replace(manifest, layout=layout, snapshots=snapshots)
    (store / "CURRENT").write_bytes(write_manifest(FileSystem(), store, changed))


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_a_store_whose_hidden_relations_are_others_is_evaluated_anew(folder: Path, strategy: str) -> None:
    text = ".decl edge(x: number, y: number)\n.decl many(n: number)\nmany(n) :- n = count : { edge(_, _) }."
    facts = {"edge": [(1, 2), (2, 3)]}
    path = folder / "store"
    with elastalog.open(text, facts=facts, store=path, strategy=strategy) as db:
        before = {name: db[name].to_arrow(annotations=strategy == "elastic").to_pylist() for name in db}
    with_layout(path, lambda name: name.replace("@count", "@counted"))
    for _ in range(2):
        with elastalog.open(store=elastalog.Store(path, read_only=True)) as db:
            assert {name: db[name].to_arrow(annotations=strategy == "elastic").to_pylist() for name in db} == before
    with elastalog.open(store=path) as db:
        db.apply({"edge": [(3, 4)]})
        assert list(db["many"]) == [(3,)]
        db.change_rules(added="many(0) :- edge(1, 2).")
    with elastalog.open(store=path) as db:
        assert sorted(db["many"]) == [(0,), (3,)]
        db.apply(deleted={"edge": [(2, 3)]})
        assert sorted(db["many"]) == [(0,), (2,)]
        assert list(db.at(1)["many"]) == [(2,)]


def test_it_takes_a_change_of_rules_as_its_first_epoch(folder: Path) -> None:
    text = ".decl edge(x: number, y: number)\n.decl many(n: number)\nmany(n) :- n = count : { edge(_, _) }."
    path = folder / "store"
    elastalog.open(text, facts={"edge": [(1, 2), (2, 3)]}, store=path).close()
    with_layout(path, lambda name: name.replace("@count", "@counted"))
    with elastalog.open(store=path) as db:
        db.change_rules(added="many(n + 5) :- n = count : { edge(1, _) }.")
    with elastalog.open(store=path) as db:
        db.apply({"edge": [(1, 4)]})
        assert sorted(db["many"]) == [(3,), (7,)]


def test_a_store_of_other_relations_is_refused(folder: Path) -> None:
    store = small_store(folder / "store")
    with_layout(store, lambda name: name + "s")
    with pytest.raises(elastalog.ElastalogError, match="E0812"):
        elastalog.open(store=store)


def test_what_is_no_store_is_refused(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "file").write_text("x")
    for path in (folder / "empty", folder / "file", folder / "nowhere"):
        with pytest.raises(elastalog.ElastalogError, match="E0801"):
            elastalog.open(store=path)
