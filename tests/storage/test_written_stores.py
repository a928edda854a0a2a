"""Stores that earlier versions of the project have written open, at every epoch, and go on.

`written/` holds a store for every strategy that could be stored, with the facts of each of its epochs (and their
annotations under `elastic`) in a file beside it. They are never written anew: a change of format adds others.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import elastalog
from tests.refusals import refused

WRITTEN = Path(__file__).parent / "written"
NAMES = sorted(path.name for path in WRITTEN.iterdir() if path.is_dir())


def _facts(db: Any, annotations: bool) -> dict[str, list[list[Any]]]:
    tables = {name: db[name].to_arrow(annotations=annotations).to_pylist() for name in db}
    return {name: sorted(([*row.values()] for row in rows), key=repr) for name, rows in tables.items()}


@pytest.fixture
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN / request.param, tmp_path / request.param))


@pytest.mark.parametrize("copied", NAMES, indirect=True)
def test_every_epoch_is_there(copied: Path) -> None:
    expected = json.loads((WRITTEN / f"{copied.name}.json").read_text())
    for epoch, facts in expected.items():
        with elastalog.open(store=elastalog.Store(copied, at=int(epoch))) as db:
            assert _facts(db, copied.name.startswith("elastic")) == facts


@pytest.mark.parametrize("copied", NAMES, indirect=True)
def test_it_goes_on(copied: Path) -> None:
    with elastalog.open(store=copied) as db:
        assert db.epoch == 5
        assert db.apply(inserted={"edge": [("x", "y", 1.0)]}, source="feed", batch=2).impact == 0
        changes = db.apply(deleted={"wide": [(-5, 7)]}, inserted={"edge": [("e", "ada", 0.5)]})
        assert sorted(changes["twice"].deleted) == [(-10,), (-5,)]
        assert ("böb", "ada") in db["path"]
        assert db.explain(("path", ("e", "böb"))).height >= 1
        again = elastalog.open(db.program, facts={n: list(db.explicit(n)) for n in db})
        assert _facts(again, False) == _facts(db, False)
    with elastalog.open(store=elastalog.Store(copied, read_only=True)) as db:
        assert db.epoch == 6


# --- what 1.x promises to read: everything that a store has to write down, two snapshots and a journal --------------

KEPT = Path(__file__).parent / "kept"


def _shown(value: Any) -> Any:
    if isinstance(value, elastalog.Branch):
        return str(value)
    return [_shown(each) for each in value] if isinstance(value, tuple) else value


def _plain(db: Any) -> dict[str, list[Any]]:
    return {name: sorted((_shown(row) for row in db[name]), key=repr) for name in db}


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT / "whole", tmp_path / "whole"))


def test_format_1_is_what_it_was(whole: Path) -> None:
    assert (whole / "FORMAT").read_bytes() == b"elastalog store 1\n"
    manifest = json.loads((whole / "manifest-2.json").read_text())
    assert [snapshot["epoch"] for snapshot in manifest["snapshots"]] == [1, 5]
    expected = json.loads((KEPT / "whole.json").read_text())
    for epoch, facts in expected.items():
        with elastalog.open(store=elastalog.Store(whole, at=int(epoch))) as db:
            assert _plain(db) == facts


def test_a_kept_store_goes_on(whole: Path) -> None:
    with elastalog.open(store=whole) as db:
        assert (db.epoch, db.verify().is_exact) == (7, True)
        assert db.apply({"wide": [(1, 1)]}, source="feed", batch=4).impact == 0  # applied before
        db.apply({"at": [("c\td", ("Köln", -1))]}, {"edge": [("ada", "c\td", 0.5)]})
        assert ("c\td", "ada") in db["same"]
        assert ("c\td", 3.75) in db["dist"]
        assert ("c\td",) not in db["near"]
        assert db.verify().is_exact
    with elastalog.open(store=elastalog.Store(whole, read_only=True)) as db:
        assert db.epoch == 8


def test_a_newer_format_is_refused_with_advice(whole: Path) -> None:
    (whole / "FORMAT").write_bytes(b"elastalog store 2\n")
    with refused("E0803") as caught:
        elastalog.open(store=whole)
    (found,) = caught.value.diagnostics
    assert found.help == "open it with the version that wrote it or a later one: `pip install --upgrade elastalog`"
