"""Bad rows of DataFrames and streams are handled by policy, as those of files and of Python are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog
import elastalog.spark
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.streams import read_changes
from elastalog.program import Program
from elastalog.relations.schema import schemas_of

PROGRAM = """
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
"""


def test_a_frame_of_an_update(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(2, 3), (4, None)], "from bigint, to bigint")
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, bad_rows=elastalog.BadRows("quarantine", folder=tmp_path)) as db:
        (report,) = db.apply({"edge": frame}).reports
        assert (report.loaded, report.bad, sorted(db["edge"])) == (1, 1, [(1, 2), (2, 3)])
        assert [json.loads(line)["code"] for line in (tmp_path / "edge.bad.jsonl").read_text().splitlines()] == [
            "E0504"
        ]
        with pytest.raises(ElastalogError):
            db.apply({"edge": frame}, bad_rows="fail")


@pytest.mark.parametrize("relation", ["edge", None])
def test_a_stream_of_rows(spark: Any, tmp_path: Path, relation: str | None) -> None:
    rows: dict[str, list[Any]] = {"op": ["+", "+", "?"], "from": [2, None, 5], "to": [3, 9, 6]}
    schema = "op string, from bigint, to bigint"
    if relation is None:
        rows = {"op": rows["op"], "relation": ["edge"] * 3, "a1": rows["from"], "a2": rows["to"]}
        schema = "op string, relation string, a1 bigint, a2 bigint"
    (tmp_path / "in").mkdir()
    parquet.write_table(pa.table(rows), tmp_path / "in" / "1.parquet")
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    with elastalog.open(
        PROGRAM, {"edge": [(1, 2)]}, bad_rows=elastalog.BadRows("quarantine", folder=tmp_path / "bad")
    ) as db:
        options: Any = {"relation": relation, "checkpoint": tmp_path / "c", "available_now": True}
        with elastalog.spark.apply_updates(stream, db, **options) as handle:
            assert handle.wait(120)
        assert sorted(db["edge"]) == [(1, 2), (2, 3)]
    found = [json.loads(line) for line in (tmp_path / "bad" / "edge.bad.jsonl").read_text().splitlines()]
    assert [(row["line"], row["code"]) for row in found] == [(2, "E0504"), (3, "E0522")]


def test_rows_of_several_relations() -> None:
    """Without Spark: the rows of a micro-batch, whose texts are values, too."""
    schemas = schemas_of(Program.parse(PROGRAM).checked)
    rows = pa.table(
        {
            "op": ["+", "-", "+", "+", None, "+"],
            "relation": ["edge", "edge", "edge", "edgy", "edge", "edge"],
            "a1": ["1", "2", "x", "4", "5", "6"],
            "a2": ["1", "2", "3", "4", "5", "6"],
        }
    )
    diff = read_changes(rows, schemas, None, "batch", keep_bad=True)
    assert diff.inserted["edge"].to_pylist() == [{"from": 1, "to": 1}, {"from": 6, "to": 6}]
    assert diff.deleted["edge"].to_pylist() == [{"from": 2, "to": 2}]
    assert {name: [(row.line, row.fault.code) for row in bad] for name, bad in diff.bad.items()} == {
        "edge": [(3, "E0502"), (5, "E0504")],
        "edgy": [(4, "E0521")],
    }
    with pytest.raises(ElastalogError):
        read_changes(rows, schemas, None, "batch")
