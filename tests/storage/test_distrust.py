"""What a store says of itself is looked at before it is believed."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import elastalog
from tests.storage.scripted import create, lived


def rewrite_manifest(path: Path, change: Any) -> None:
    """Changes the manifest, checksums and all, as someone would who means it."""
    name = (path / "CURRENT").read_text().split()[0]
    written = json.loads((path / name).read_bytes())
    change(written)
    data = json.dumps(written).encode()
    (path / name).write_bytes(data)
    (path / "CURRENT").write_text(f"{name} {sha256(data).hexdigest()}\n")


@pytest.mark.parametrize("name", ["../elsewhere.log", "/etc/hostname", "facts/../../x", "", "a\0b"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_manifest_that_names_files_outside_of_its_store_is_refused(folder: Path, name: str, read_only: bool) -> None:
    def change(written: Any) -> None:
        written["journals"][-1]["name"] = name

    path = lived(folder / "store")
    (folder / "elsewhere.log").write_bytes(b"precious")
    rewrite_manifest(path, change)
    with pytest.raises(elastalog.ElastalogError, match="outside of the store"):
        elastalog.open(store=elastalog.Store(path, read_only=read_only))
    assert (folder / "elsewhere.log").read_bytes() == b"precious"


def test_programs_and_facts_outside_are_refused_as_well(folder: Path) -> None:
    path = lived(folder / "store")
    rewrite_manifest(path, lambda written: written["program"].update(name="../../etc/passwd"))
    with pytest.raises(elastalog.ElastalogError, match="outside of the store"):
        elastalog.open(store=path)


def test_a_reader_says_that_a_journal_is_torn_and_leaves_it(folder: Path) -> None:
    with create(folder / "store", journal_epochs=1000) as session:
        journal = next((folder / "store").glob("journal-*.log"))
        begin = journal.stat().st_size
        session.apply({"edge": [(3, 4)]})
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[begin : begin + 30])
    torn = journal.read_bytes()
    with elastalog.open(store=elastalog.Store(folder / "store", read_only=True)) as reader:
        (found,) = reader.engine.recovery
        assert (found.code, found.severity, reader.epoch) == ("E0816", "warning", 2)
        assert found.message == "an unfinished write of 30 bytes is left out; the store is at epoch 2"
    assert journal.read_bytes() == torn
    with elastalog.open(store=folder / "store") as writer:
        assert [d.code for d in writer.engine.recovery] == ["E0816"]
    with elastalog.open(store=elastalog.Store(folder / "store", read_only=True)) as reader:
        assert reader.engine.recovery == ()


def test_a_write_in_progress_is_not_told_of(folder: Path) -> None:
    with create(folder / "store", journal_epochs=1000) as session:
        journal = next((folder / "store").glob("journal-*.log"))
        begin = journal.stat().st_size
        session.apply({"edge": [(3, 4)]})
        whole = journal.read_bytes()
        journal.write_bytes(whole + whole[begin : begin + 30])
        with elastalog.open(store=elastalog.Store(folder / "store", read_only=True)) as reader:
            assert reader.engine.recovery == ()
        journal.write_bytes(whole)


@pytest.mark.parametrize("read_only", [False, True])
def test_damage_to_the_first_program_is_noticed_after_rules_have_changed(folder: Path, read_only: bool) -> None:
    with create(folder / "store", journal_epochs=1000) as session:
        session.change_rules("lone(t) :- label(_, t), edge(7, 7).")
    path = folder / "store" / "program.dl"
    path.write_bytes(path.read_bytes().replace(b"path(x, z)", b"path(z, x)", 1))
    with pytest.raises(elastalog.ElastalogError, match=r"E0805.*program\.dl"):
        elastalog.open(store=elastalog.Store(folder / "store", read_only=read_only))
