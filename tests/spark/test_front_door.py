"""What the page about Spark shows first works with the program of the README, and lets go of its store."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog
import elastalog.spark
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.refusals import refused

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.search(r"^```prolog\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    elastalog.open(PROGRAM, {"edge": [(1, 2)]}, store=tmp_path / "reach.store").close()
    return tmp_path / "reach.store"


def put(folder: Path, columns: dict[str, list[Any]]) -> None:
    folder.mkdir(exist_ok=True)
    parquet.write_table(pa.table(columns), folder / "1.parquet")


def test_the_streaming_example_of_the_page_runs(
    spark: Any, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/how-to/run-on-spark.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(db = elastalog.open\(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reach.dl").write_text(PROGRAM)
    put(tmp_path / "incoming", {"op": ["+", "-"], "to": [3, 2], "from": [2, 1]})
    once = example.replace('changes="feed"', 'changes="feed", available_now=True')
    once = once.replace('facts="facts/", ', "")  # the store is there
    once = once.replace('"incoming/"', repr(str(tmp_path / "incoming")))  # Java has the folder that it was started in
    names: dict[str, Any] = {"elastalog": elastalog, "es": elastalog.spark, "spark": spark}
    exec(once, names)
    with names["db"] as db:
        assert sorted(db["path"]) == [(2, 3)]


def test_columns_go_by_name_whatever_their_case_or_by_position(spark: Any, tmp_path: Path, store: Path) -> None:
    for number, (names, expected) in enumerate(((("To", "FROM"), (3, 7)), (("a", "b"), (7, 3)))):
        put(tmp_path / f"in{number}", {"op": ["+"], names[0]: [7], names[1]: [3]})
        schema = f"op string, {names[0]} bigint, {names[1]} bigint"
        stream = spark.readStream.schema(schema).parquet(str(tmp_path / f"in{number}"))
        with elastalog.spark.apply_updates(
            stream, store, relation="edge", checkpoint=tmp_path / f"c{number}", available_now=True
        ) as handle:
            assert handle.wait(60)
        with elastalog.open(store=store) as db:
            assert expected in db["edge"]


def test_one_known_name_requires_them_all(spark: Any, tmp_path: Path, store: Path) -> None:
    put(tmp_path / "in", {"op": ["+"], "to": [7], "src": [3]})
    stream = spark.readStream.schema("op string, to bigint, src bigint").parquet(str(tmp_path / "in"))
    with refused(message="the stream has no column `from` of relation `edge`"):
        elastalog.spark.apply_updates(stream, store, relation="edge", checkpoint=tmp_path / "c")
    elastalog.open(store=store).close()  # and nothing holds it


def test_a_frame_goes_by_name(spark: Any) -> None:
    frame = spark.createDataFrame([(2, 1)], "to bigint, FROM bigint")
    with elastalog.open(PROGRAM, {"edge": frame}) as db:
        assert list(db["edge"]) == [(1, 2)]
    with refused("E0518"):
        elastalog.open(PROGRAM, {"edge": spark.createDataFrame([(2, 1)], "to bigint, src bigint")})


def test_a_session_of_spark_connect_runs_no_tasks(caplog: pytest.LogCaptureFixture) -> None:
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session", "conf": {}})()
    text = ".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).\n"
    with refused("E1120"):
        elastalog.open(text, {"a": [(1,)]}, engine="spark", spark=remote)
    with caplog.at_level(logging.INFO, "elastalog.placement"):
        db = elastalog.open(text, {"a": [(1,)]}, spark=remote)
    assert set(db["b"]) == {(1,)}
    assert "since Spark Connect runs no tasks of ours" in caplog.text


def test_a_stream_that_has_ended_lets_go_of_its_store(spark: Any, tmp_path: Path, store: Path) -> None:
    put(tmp_path / "in", {"op": ["+"], "from": [2], "to": [3]})
    stream = spark.readStream.schema("op string, from bigint, to bigint").parquet(str(tmp_path / "in"))

    def start(checkpoint: str, **options: Any) -> elastalog.spark.StreamHandle:
        return elastalog.spark.apply_updates(
            stream, store, relation="edge", checkpoint=tmp_path / checkpoint, **options
        )

    assert start("a", available_now=True).wait(60)
    with elastalog.open(store=store) as db:
        assert (1, 3) in db["path"]
    handle = start("b")
    with pytest.raises(ElastalogError):
        elastalog.open(store=store)
    handle.close()
    handle.close()
    elastalog.open(store=store).close()
    with start("c"):
        pass
    elastalog.open(store=store).close()
