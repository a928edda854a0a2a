"""Rows from sources of Spark that somebody made to do harm: each is a fact, or is located and left out."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

import elastalog
import elastalog.spark
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.spark.workplace import workplace
from tests.refusals import refused

PROGRAM = """
.decl item(id: number, name: symbol)
.decl named(name: symbol)
.input item
named(n) :- item(_, n).
"""
HARMFUL = [
    "=cmd|' /C calc'!A0",
    "\x1b[2J\x1b]0;x\x07",
    "\u202etxt.exe",
    "<script>alert(1)</script>",
    "a\x00b",
    "x\r\ny",
]
BAD_LINES = [
    '{"id": 1e400, "name": "a"}',
    '{"id": 99999999999999999999, "name": "a"}',
    '{"id": 1.5, "name": "a"}',
    '{"id": {"id": 1}, "name": "a"}',
    '{"id": "1; DROP TABLE item", "name": "a"}',
    '{"id": null, "name": "a"}',
    '{"name": "a"}',
    '{"id": 1, "id": 2',
    "[" * 2000,
    "[1]",
    "NaN",
]


def test_json_rows(spark: Any, tmp_path: Path) -> None:
    good = [json.dumps({"id": number, "name": text}) for number, text in enumerate(HARMFUL)]
    path = tmp_path / "item.jsonl"
    path.write_text("\n".join([*good, *BAD_LINES]) + "\n", encoding="utf-8")
    aside = elastalog.BadRows("quarantine", folder=tmp_path / "bad", most=100)
    with elastalog.open(PROGRAM, {"item": elastalog.spark.json(str(path))}, spark=spark, bad_rows=aside) as db:
        assert set(db["item"]) == set(enumerate(HARMFUL))
        (report,) = db.reports
        assert (report.loaded, report.bad) == (len(HARMFUL), len(BAD_LINES))
        for text in HARMFUL:
            shown = str(db.explain(("named", (text,)))) + str(db["named"]) + db["named"]._repr_html_()
            assert not set("\x1b\x07\x00\u202e") & set(shown)
            assert "<script>" not in db["named"]._repr_html_()
    found = [json.loads(line) for line in (tmp_path / "bad" / "item.bad.jsonl").read_text().splitlines()]
    assert [row["line"] for row in found] == list(range(len(HARMFUL) + 1, len(HARMFUL) + len(BAD_LINES) + 1))


def test_rows_of_a_data_base(spark: Any, tmp_path: Path) -> None:
    """Nothing where something must be, numbers of another kind, and columns named to be code."""
    url = f"jdbc:derby:{tmp_path / 'base'};create=true"
    rows = [(1, HARMFUL[0]), (None, "nothing"), (7, None), (8, HARMFUL[3])]
    frame = spark.createDataFrame(rows, "id bigint, name string")
    frame.write.format("jdbc").options(url=url, dbtable="items").save()
    source = {"item": elastalog.spark.jdbc(url, "items")}
    with pytest.raises(ElastalogError):
        elastalog.open(PROGRAM, source, spark=spark)
    aside = elastalog.BadRows("quarantine", folder=tmp_path / "bad")
    with elastalog.open(PROGRAM, source, spark=spark, bad_rows=aside) as db:
        assert set(db["item"]) == {(1, HARMFUL[0]), (8, HARMFUL[3])}
        (report,) = db.reports
        assert report.bad == 2
    for other in (
        frame.selectExpr("cast(id + 0.5 as decimal(30, 2)) id", "name"),
        frame.withColumnRenamed("name", 'n"; drop table items; -- \x1b[2J'),
    ):
        with pytest.raises(ElastalogError) as raised:
            elastalog.open(PROGRAM, {"item": other}, spark=spark, bad_rows=aside)
        assert raised.value.diagnostics[0].code in ("E0502", "E0518"), raised.value
        assert "\x1b" not in str(raised.value)


def test_two_drivers_cannot_write_one_store(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "diffs").mkdir()
    (tmp_path / "diffs" / "1.diff").write_text('+item(1, "a").\n', encoding="utf-8")
    with elastalog.open(PROGRAM, {}, store=tmp_path / "store") as db:
        with refused("E0804"):
            elastalog.spark.apply_diff_files(
                spark, tmp_path / "diffs", tmp_path / "store", available_now=True, checkpoint=tmp_path / "notes"
            )
        db.apply({"item": [(2, "b")]})
        assert (db.epoch, set(db["item"])) == (2, {(2, "b")})


def test_nobody_else_reads_what_tasks_keep(spark: Any) -> None:
    place = workplace(spark)
    mode = stat.S_IMODE(Path(str(place).removeprefix("file://")).stat().st_mode)
    assert mode == 0o700, oct(mode)
