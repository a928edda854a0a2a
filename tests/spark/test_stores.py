"""Stores on Spark: a relation read from the store's own files is the one that a session shows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import elastalog
import elastalog.spark
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.storage.errors import StoreDamaged
from tests.commands import run
from tests.engine.judging import levels_of
from tests.refusals import refused
from tests.spark.test_results import nothing_fetched
from tests.storage.scripted import write_snapshot

KINDS = """
.decl kinds(n: number, u: unsigned, f: float, s: symbol)
.decl name(s: symbol, t: symbol)
.decl nothing(s: symbol, f: float)
.decl some()
name(s, cat(s, "!")) :- kinds(_, _, _, s).
some() :- kinds(_, _, _, _).
"""
ROWS = [(-(2**63), 2**64 - 1, math.pi, "x"), (0, 0, -math.inf, ""), (2**30, 2**30, 1.0, "ä\u2028ö"), (-7, 7, 2.5, "z")]


def facts(frame: Any) -> set[tuple[Any, ...]]:
    return {tuple(int(v) if type(v).__name__ == "Decimal" else v for v in row) for row in frame.collect()}


def test_every_type_is_decoded_at_every_epoch(spark: Any, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with elastalog.open(KINDS, facts={"kinds": ROWS[:2]}, store=store) as db:
        db.apply({"kinds": ROWS[2:3]}, {"kinds": ROWS[:1]})
        db.apply({"kinds": [ROWS[0], ROWS[3]]}, {"kinds": ROWS[1:2]})
    expected = {1: {*ROWS[:2]}, 2: {*ROWS[1:3]}, 3: {ROWS[2], ROWS[0], ROWS[3]}}
    for epoch, rows in expected.items():
        found = elastalog.spark.read_relation(spark, store, "kinds", epoch=epoch)
        assert found.dtypes == [("n", "bigint"), ("u", "decimal(20,0)"), ("f", "double"), ("s", "string")]
        assert facts(found) == rows
    assert facts(elastalog.spark.read_relation(spark, store, "name")) == {
        ("ä\u2028ö", "ä\u2028ö!"),
        ("x", "x!"),
        ("z", "z!"),
    }
    assert facts(elastalog.spark.read_relation(spark, store, "some")) == {(True,)}
    assert elastalog.spark.read_relation(spark, store, "nothing").count() == 0


REACH = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
CHAIN = [(f"n{i}", f"n{i + 1}") for i in range(30)]


def test_annotations_are_those_of_the_session(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(REACH, facts={"edge": CHAIN}, store=tmp_path / "store") as db:
        # A shorter way, and a cycle gone before it was seen: levels and counts change, and facts come and go.
        db.apply({"edge": [("n3", "n9"), ("n20", "n0")]})
        db.apply(deleted={"edge": [("n20", "n0"), ("n12", "n13")]})
        wanted = {tuple(row.values()) for row in db["path"].to_arrow(annotations=True).to_pylist()}
    frame = elastalog.spark.read_relation(spark, tmp_path / "store", "path", annotations=True)
    assert frame.columns == ["x", "y", "@level", "@count"]
    assert facts(frame) == wanted


def test_a_frame_keeps_its_epoch_while_a_writer_goes_on(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(REACH, facts={"edge": CHAIN[:2]}, store=elastalog.Store(tmp_path / "store", retention=1)) as db:
        frame = elastalog.spark.read_relation(spark, tmp_path / "store", "path")
        db.apply({"edge": CHAIN[2:5]})
        write_snapshot(db)
        db.apply({"edge": CHAIN[5:]})
        write_snapshot(db)
    assert facts(frame) == {("n0", "n1"), ("n1", "n2"), ("n0", "n2")}
    with pytest.raises(ElastalogError, match="epoch 1"):
        elastalog.spark.read_relation(spark, tmp_path / "store", "path", epoch=1)


def test_rules_that_changed_in_between(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(REACH, facts={"edge": CHAIN[:2]}, store=tmp_path / "store") as db:
        db.change_rules(".decl end(x: symbol)\nend(y) :- edge(_, y), !edge(y, _).", ["path(x, y) :- edge(x, y)."])
        db.apply({"edge": CHAIN[2:3]})
    assert facts(elastalog.spark.read_relation(spark, tmp_path / "store", "end")) == {("n3",)}
    assert facts(elastalog.spark.read_relation(spark, tmp_path / "store", "end", epoch=2)) == {("n2",)}
    assert elastalog.spark.read_relation(spark, tmp_path / "store", "path").count() == 0
    assert elastalog.spark.read_relation(spark, tmp_path / "store", "path", epoch=1).count() == 3
    with pytest.raises(ElastalogError, match="no relation `end`"):
        elastalog.spark.read_relation(spark, tmp_path / "store", "end", epoch=1)


def test_what_is_not_in_the_store_or_damaged_is_refused(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(REACH, facts={"edge": CHAIN}, store=tmp_path / "store"):
        pass
    with refused(match="no relation `pth`", help="did you mean `path`?"):
        elastalog.spark.read_relation(spark, tmp_path / "store", "pth")
    with pytest.raises(ElastalogError, match="is not a store"):
        elastalog.spark.read_relation(spark, tmp_path, "path")
    file = next((tmp_path / "store" / "facts").glob("*path*"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoreDamaged, match="checksum"):
        elastalog.spark.read_relation(spark, tmp_path / "store", "path")


# --- written by tasks ----------------------------------------------------------------------------------------------

DOUBLING = REACH.replace("edge(y, z)", "path(y, z)")


@pytest.mark.parametrize(("program", "levels"), [(REACH, "local"), (REACH, "global"), (DOUBLING, "local")])
def test_a_store_written_by_tasks_is_a_store(spark: Any, tmp_path: Path, program: str, levels: str) -> None:
    store = tmp_path / "store"
    frame = spark.createDataFrame(CHAIN, "x string, y string")
    # The driver does not need what the tasks have.
    options: Any = {"store": store, "levels": levels, "engine": "spark", "spark": spark}
    with nothing_fetched(), elastalog.open(program, {"edge": frame}, **options) as db:
        elsewhere = db._backend.capabilities.elsewhere
        assert elsewhere is not None
        assert elsewhere.files("path") is not None
    verified = run("verify", store, "--recompute")
    assert verified.exit_code == 0, verified.output
    with elastalog.open(store=store) as db, elastalog.open(program, facts={"edge": CHAIN}, levels=levels) as local:
        assert levels_of(db) == levels_of(local)
        # It goes on as any other does.
        assert db.apply({"edge": [("n30", "n31")]}).impact == local.apply({"edge": [("n30", "n31")]}).impact
        assert levels_of(db) == levels_of(local)
    assert elastalog.spark.read_relation(spark, store, "path").count() == 31 * 32 // 2


def test_what_tasks_leave_behind_is_collected(spark: Any, tmp_path: Path) -> None:
    elastalog.spark.init_store(spark, tmp_path / "store", REACH, {"edge": CHAIN})
    facts_folder = tmp_path / "store" / "facts"
    known = set(facts_folder.iterdir())
    (file,) = (path for path in known if "path" in path.name)
    left = file.with_name(file.name.replace("-1.parquet", ".0a1b2c3d-1.parquet"))
    left.write_bytes(b"PAR1")
    with elastalog.open(store=tmp_path / "store"):
        assert set(facts_folder.iterdir()) == known


def test_a_store_is_not_made_over_another(spark: Any, tmp_path: Path) -> None:
    elastalog.spark.init_store(spark, tmp_path / "store", REACH, {"edge": CHAIN})
    with refused("E0802"):
        elastalog.spark.init_store(spark, tmp_path / "store", REACH, {"edge": []})
