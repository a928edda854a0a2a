"""What data engineers hand over, in sessions of their own: threads, paths, options, values that Spark has and others
have not, frames that fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog
import elastalog.spark as es
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.closures import CLOSURE as REACH
from tests.refusals import refused

EDGES = "x bigint, y bigint"


@pytest.fixture
def own(spark: Any) -> Iterator[Any]:
    """A Spark session of the user, with views and settings of its own; afterwards the other one is the running one."""
    yield spark.newSession()
    make_active(spark)


def make_active(spark: Any) -> None:
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
    type(spark)._activeSession = spark


def in_a_thread(work: Callable[[], Any]) -> Any:
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    thread.join()
    return done[0]


def codes(work: Callable[[], Any]) -> list[str]:
    with pytest.raises(ElastalogError) as raised:
        work()
    return [found.code for found in raised.value.diagnostics]


# --- sessions ------------------------------------------------------------------------------------------------------


def test_another_thread_finds_the_running_session_as_it_is(spark: Any, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"x": [2], "y": [3]}), tmp_path / "more.parquet")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        assert in_a_thread(es.session) is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    with elastalog.open(REACH, facts={"edge": [(1, 2)]}) as db:
        asyncio.run(asyncio.to_thread(db.apply, {"edge": es.parquet(tmp_path / "more.parquet")}))
        assert in_a_thread(lambda: db["path"].to_spark().count()) == 3
        assert in_a_thread(lambda: es.bad_rows(db).count()) == 0


@pytest.mark.parametrize("bad_rows", ["fail", "skip"])
def test_sources_of_an_update_are_read_by_the_session_given(spark: Any, own: Any, bad_rows: Any) -> None:
    own.createDataFrame([(1, 2), (2, 3)], EDGES).createOrReplaceTempView("edges_of_a_user")
    make_active(spark)
    with elastalog.open(REACH, spark=own, engine="local", bad_rows=bad_rows) as db:
        assert db.apply({"edge": es.table("edges_of_a_user")}).impact == 5


def test_a_session_that_has_been_stopped_is_told(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.createDataFrame([(2, 3)], EDGES)
    with elastalog.open(REACH, facts={"edge": [(1, 2)]}, engine="spark", spark=spark) as db:
        with monkeypatch.context() as stopped:
            stopped.setattr(spark.sparkContext, "_jsc", None)
            for work in (
                lambda: elastalog.open(REACH, engine="spark", spark=spark),
                lambda: elastalog.open(REACH, spark=spark),
                lambda: db.apply({"edge": [(2, 3)]}),
                lambda: db.apply({"edge": frame}),
                lambda: db.apply({"edge": es.table("edges")}),
                lambda: db["path"].to_spark(spark=spark),
            ):
                assert codes(work) == ["E1109"]
        assert db.epoch == 1
        assert db.apply({"edge": frame}).impact == 3


# --- places and options --------------------------------------------------------------------------------------------


def test_paths_and_truth_values(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "edge.csv").write_text("y,x\n2,1\n")
    with elastalog.open(REACH, facts={"edge": es.csv(tmp_path / "edge.csv", headers=True)}, spark=spark) as db:
        assert list(db["path"]) == [(1, 2)]


def test_slips_in_a_source_are_told() -> None:
    with pytest.raises(ElastalogError, match=r"`header` is not a known parameter[^?]*did you mean `headers`\?"):
        es.csv("edge.csv", header="true")
    assert codes(lambda: es.parquet(None)) == ["E0617"]


# --- values --------------------------------------------------------------------------------------------------------


def test_whole_decimals_are_of_the_type_declared(spark: Any) -> None:
    program = ".decl e(a: symbol, b: float, c: unsigned)\n"
    frame = spark.range(1).selectExpr(*(f"CAST(7 AS decimal(10,0)) AS {name}" for name in "abc"))
    with elastalog.open(program, facts={"e": frame}, spark=spark) as db:
        assert list(db["e"]) == [("7", 7.0, 7)]


def test_whole_decimals_of_a_stream_are_of_the_type_declared(spark: Any, tmp_path: Path) -> None:
    columns = {"op": pa.array(["+"]), **{name: pa.array([7], pa.decimal128(5, 0)) for name in ("a", "b", "step")}}
    parquet.write_table(pa.table(columns), tmp_path / "1.parquet")
    schema = "op string, a decimal(5,0), b decimal(5,0), step decimal(5,0)"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path))
    options: dict[str, Any] = {"relation": "e", "step": "step", "checkpoint": tmp_path / "c", "available_now": True}
    with elastalog.open(".decl e(a: symbol, b: unsigned)") as db, es.apply_updates(stream, db, **options) as handle:
        assert handle.wait(60)
        assert list(db["e"]) == [("7", 7)]


# --- what cannot be read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("CAST(raise_error('of mine') AS bigint)", r"cannot evaluate the DataFrame of `edge`: USER_RAISED.*of mine"),
        ("INTERVAL 3 MONTHS", "UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION"),
    ],
)
def test_a_frame_that_cannot_be_evaluated_is_told(spark: Any, column: str, told: str) -> None:
    frame = spark.range(1).selectExpr(f"{column} AS x", "id AS y")
    with elastalog.open(REACH, facts={"edge": [(1, 2)]}, spark=spark) as db:
        with refused("E1105", match=f"(?s){told}"):
            db.apply({"edge": frame})
        assert db.epoch == 1


@pytest.mark.filterwarnings("ignore:Cannot infer the eval type")
def test_the_error_of_a_users_function_is_told(spark: Any) -> None:
    from pyspark.sql.functions import udf

    def fail(_: Any) -> Any:
        raise ValueError("not this one")

    frame = spark.range(1).select(udf(fail, "bigint")("id").alias("x"), "id")
    with pytest.raises(ElastalogError, match="ValueError: not this one"):
        elastalog.open(REACH, facts={"edge": frame.toDF("x", "y")}, spark=spark)


@pytest.mark.filterwarnings("ignore")  # what pandas and Spark have to say about each other
def test_a_frame_with_the_interface_of_pandas(spark: Any) -> None:
    frame = spark.createDataFrame([(2, 1)], "y bigint, x bigint").pandas_api()
    with elastalog.open(REACH, facts={"edge": frame}, spark=spark) as db:
        assert list(db["path"]) == [(1, 2)]


def test_a_frame_without_columns_has_rows(spark: Any) -> None:
    facts = {"on": spark.range(1).select(), "off": spark.range(0).select()}
    with elastalog.open(".decl on()\n.decl off()\n", facts=facts, spark=spark) as db:
        assert (list(db["on"]), list(db["off"])) == ([()], [])


def test_slips_about_streams_are_told(spark: Any, tmp_path: Path) -> None:
    assert codes(lambda: es.change_feed(spark, tmp_path / "nothing", "path")) == ["E1105"]
    stream = spark.readStream.schema(f"op string, {EDGES}").parquet(str(tmp_path))
    with elastalog.open(REACH) as db, pytest.raises(ElastalogError, match="`interval` cannot be 'often'"):
        es.apply_updates(stream, db, relation="edge", checkpoint=tmp_path / "c", interval="often")


def test_a_stream_is_no_frame_of_facts(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.schema(EDGES).parquet(str(tmp_path))
    with pytest.raises(ElastalogError, match="the DataFrame of `edge` is a stream"):
        elastalog.open(REACH, facts={"edge": stream}, spark=spark)
