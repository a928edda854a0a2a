"""The data source `elastalog`: what Spark reads is what the store holds, at every epoch, and what it writes is applied
once. Readers and writers are mostly used here as Spark uses them, without Spark."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog
import elastalog.spark
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.spark import stored_rows
from tests.object_store import Bucket
from tests.refusals import refused
from tests.spark.conftest import environment_of_children
from tests.storage.scripted import write_snapshot

pytest.importorskip("pyspark")

PROGRAM = """
.type pair = [x: number, s: symbol]
.decl kinds(n: number, u: unsigned, f: float, s: symbol)
.decl made(p: pair)
.decl some()
made([n, s]) :- kinds(n, _, _, s).
some() :- kinds(_, _, _, _).
"""
A, B = (-(2**63), 2**64 - 1, math.pi, "x"), (0, 0, -math.inf, "")
C, D = (2**30, 2**30, 1.0, "ä\u2028ö"), (-7, 7, 2.5, "z")
EPOCHS = {1: {A, B}, 2: {B, C}, 3: {A, C, D}}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    with elastalog.open(PROGRAM, facts={"kinds": [A, B]}, store=root) as db:
        db.apply({"kinds": [C]}, {"kinds": [A]})
        db.apply({"kinds": [A, D]}, {"kinds": [B]})
    return root


def source(store: Path, relation: str = "kinds", **options: Any) -> Any:
    given = {"store": str(store), "relation": relation, **{name: str(value) for name, value in options.items()}}
    return elastalog.spark.ElastalogSource(given)


def rows(batches: Iterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [
        tuple(int(v) if type(v).__name__ == "Decimal" else v for v in row.values())
        for batch in batches
        for row in batch.to_pylist()
    ]


def read(given: Any) -> list[tuple[Any, ...]]:
    reader = given.reader(given.schema())
    return [row for partition in reader.partitions() for row in rows(reader.read(partition))]


def code(given: Any) -> str:
    with pytest.raises(ElastalogError) as raised:
        read(given)
    return raised.value.diagnostics[0].code


# --- reading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_the_shares_of_an_epoch_are_its_facts_each_once(store: Path, partitions: int) -> None:
    for epoch, expected in EPOCHS.items():
        found = read(source(store, epoch=epoch, partitions=partitions))
        assert sorted(found) == sorted(expected)
    assert sorted(read(source(store, partitions=partitions))) == sorted(EPOCHS[3])


def test_records_are_texts_and_a_relation_without_columns_has_one(store: Path) -> None:
    assert sorted(read(source(store, "made", epoch=1))) == [(f"[{-(2**63)}, x]",), ('[0, ""]',)]
    assert read(source(store, "some")) == [(True,)]


def test_columns_and_annotations(store: Path) -> None:
    assert set(read(source(store, columns="s, n"))) == {(fact[3], fact[0]) for fact in EPOCHS[3]}
    found = source(store, "some", annotations="true", columns="@level,@count")
    assert read(found) == [(1, 3)]


def test_a_snapshot_that_comes_between_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with elastalog.open(PROGRAM, facts={"kinds": [A, B]}, store=elastalog.Store(root, retention=1)) as db:
        db.apply({"kinds": [C]}, {"kinds": [A]})
        given = source(root, partitions=2)
        reader = given.reader(given.schema())
        partitions = reader.partitions()
        write_snapshot(db)
        db.apply({"kinds": [D]})
        assert sorted(row for p in partitions for row in rows(reader.read(p))) == sorted(EPOCHS[2])
        write_snapshot(db)
        db.apply({"kinds": [A]})
        write_snapshot(db)
        with pytest.raises(ElastalogError) as raised:
            rows(reader.read(partitions[0]))
    assert raised.value.diagnostics[0].code == "E0872"


def test_a_share_takes_its_rows_from_several_row_groups(tmp_path: Path) -> None:
    words = {name: pa.array(range(10), pa.int32()) for name in ("0", "@level", "@count")}
    parquet.write_table(pa.table(words), tmp_path / "facts.parquet", row_group_size=3)
    found = [part.words[:, 0].tolist() for part in stored_rows._row_groups(tmp_path / "facts.parquet", 1, 2, 7)]
    assert found == [[2], [3, 4, 5], [6]]


def test_a_damaged_file_is_found_before_it_is_read(store: Path) -> None:
    for path in (store / "facts").iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert code(source(store)) == "E0805"


def test_an_equivalence_that_is_kept_as_classes_is_refused(tmp_path: Path) -> None:
    program = ".decl same(x: number, y: number) eqrel\n.decl given(x: number, y: number)\nsame(x, y) :- given(x, y).\n"
    elastalog.open(program, {"given": [(1, 2)]}, store=tmp_path / "store").close()
    assert code(source(tmp_path / "store", "same")) == "E0662"
    assert read(source(tmp_path / "store", "given")) == [(1, 2)]


@pytest.mark.parametrize(
    ("options", "expected", "told"),
    [
        ({"relation": "kind"}, "E0606", "did you mean `kinds`?"),
        ({"epoch": 9}, "E0813", "epochs 1 to 3"),
        ({"store": "nowhere"}, "E0801", "no such folder"),
        ({"epcoh": 1}, "E0870", "did you mean `epoch`?"),
        ({"epoch": "last"}, "E0870", "a whole number from 1 on"),
        ({"epoch": 0}, "E0870", "a whole number from 1 on"),
        ({"columns": "n,m"}, "E0870", "no column `m`"),
        ({"annotations": "yes"}, "E0870", "true or false"),
        ({"relation": ""}, "E0870", "needs the option `relation`"),
        ({"changes": "true"}, "E0870", "spark.readStream"),
        ({"changes": "true", "annotations": "true"}, "E0870", "changes have no annotations"),
    ],
)
def test_what_is_wrong_with_options_is_told(store: Path, options: dict[str, Any], expected: str, told: str) -> None:
    given = elastalog.spark.ElastalogSource(
        {"store": str(store), "relation": "kinds", **{name: str(value) for name, value in options.items()}}
    )
    with refused(expected) as raised:
        read(given)
    assert told in str(raised.value)


def test_a_schema_of_the_user_must_be_one_of_the_relation(store: Path) -> None:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    given = source(store)
    assert given.reader(StructType([StructField("n", LongType())])) is not None
    with pytest.raises(ElastalogError, match="no column `n` of type string"):
        given.reader(StructType([StructField("n", StringType())]))


# --- filters -------------------------------------------------------------------------------------------------------


def test_filters_are_taken_where_they_mean_the_same(store: Path) -> None:
    filters = pytest.importorskip("pyspark.sql.datasource")
    if not hasattr(filters, "EqualTo"):
        pytest.skip("this pyspark hands no filters to Python data sources")
    n, u, f, s = (("n",), ("u",), ("f",), ("s",))
    cases = [
        (filters.EqualTo(n, -7), {D}),
        (filters.Not(filters.EqualTo(n, -7)), {A, C}),
        (filters.GreaterThan(n, -7), {C}),
        (filters.LessThanOrEqual(n, -7), {A, D}),
        (filters.In(s, ("x", "z", "?")), {A, D}),
        (filters.StringStartsWith(s, "ä"), {C}),
        (filters.StringEndsWith(s, "ö"), {C}),
        (filters.StringContains(s, "\u2028"), {C}),
        (filters.LessThan(s, "z"), {A}),  # by bytes: ä is behind z
        (filters.IsNull(s), set()),
        (filters.IsNotNull(f), {A, C, D}),
    ]
    for condition, expected in cases:
        given = source(store)
        reader = given.reader(given.schema())
        assert list(reader.pushFilters([condition])) == []
        found = [row for partition in reader.partitions() for row in rows(reader.read(partition))]
        assert sorted(found) == sorted(expected), condition
    left = [filters.EqualTo(f, 1.0), filters.EqualTo(u, 7), filters.EqualTo(n, "7"), filters.EqualTo(("n", "x"), 1)]
    given = source(store)
    assert list(given.reader(given.schema()).pushFilters(left)) == left


# --- changes -------------------------------------------------------------------------------------------------------


def changes(store: Path, start: dict[str, Any], end: dict[str, Any], **options: Any) -> set[tuple[Any, ...]]:
    given = source(store, changes="true", columns="n", **options)
    assert given.schema().fieldNames() == ["op", "n", "epoch"]
    reader = given.streamReader(given.schema())
    return {row for partition in reader.partitions(start, end) for row in rows(reader.read(partition))}


def test_the_changes_of_epochs_are_told_as_often_as_they_are_asked_for(store: Path) -> None:
    given = source(store, changes="true")
    reader = given.streamReader(given.schema())
    first, last = reader.initialOffset(), reader.latestOffset()
    assert (first["epoch"], last["epoch"]) == (0, 3)
    a, b, c, d = (fact[0] for fact in (A, B, C, D))
    one, two = {**first, "epoch": 1}, {**first, "epoch": 2}
    second, third = {("-", a, 2), ("+", c, 2)}, {("-", b, 3), ("+", a, 3), ("+", d, 3)}
    assert changes(store, first, one) == {("+", a, 1), ("+", b, 1)}
    assert changes(store, first, last, partitions=2) == {("+", a, 3), ("+", c, 3), ("+", d, 3)}
    assert changes(store, one, two) == second
    assert changes(store, two, last) == third
    assert changes(store, one, last) == second | third
    with elastalog.open(store=store) as db:
        db.apply({"kinds": [B]})
        assert reader.latestOffset() == {**last, "epoch": 4}
        assert changes(store, last, reader.latestOffset()) == {("+", b, 4)}
    begun_at_two = source(store, changes="true", epoch=2)
    assert begun_at_two.streamReader(begun_at_two.schema()).initialOffset() == two


def test_a_stream_is_of_one_store(store: Path, tmp_path: Path) -> None:
    given = source(store, changes="true")
    start = given.streamReader(given.schema()).latestOffset()
    with elastalog.open(PROGRAM, facts={"kinds": [A]}, store=tmp_path / "other") as db:
        for fact in (B, C, D):
            db.apply({"kinds": [fact]})
    with refused("E0873"):
        changes(tmp_path / "other", start, {**start, "epoch": 4})


def test_a_stream_that_has_fallen_behind_is_told(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with elastalog.open(PROGRAM, facts={"kinds": [A]}, store=elastalog.Store(root, retention=1)) as db:
        given = source(root, changes="true")
        start = given.streamReader(given.schema()).latestOffset()
        for fact in (B, C, D):
            db.apply({"kinds": [fact]})
            write_snapshot(db)
        with pytest.raises(ElastalogError) as raised:
            changes(root, start, {**start, "epoch": 4})
    assert raised.value.diagnostics[0].code == "E0813"


def test_a_stream_says_that_it_wants_changes(store: Path) -> None:
    given = source(store)
    with pytest.raises(ElastalogError, match="a stream tells changes"):
        given.streamReader(given.schema())


def test_columns_that_a_feed_has_itself_are_not_mixed_up(tmp_path: Path) -> None:
    with elastalog.open(".decl done(op: symbol, n: number)\n", facts={"done": [("x", 1)]}, store=tmp_path / "store"):
        pass
    with pytest.raises(ElastalogError, match="column `op` of its own"):
        source(tmp_path / "store", "done", changes="true").schema()
    named = source(tmp_path / "store", "done", changes="true", columns="n")
    assert named.schema().fieldNames() == ["op", "n", "epoch"]


# --- writing -------------------------------------------------------------------------------------------------------

ROWS = pa.table({"op": ["+", "-"], "s": ["w", "z"], "n": [5, -7], "f": [0.5, 2.5], "u": [9, 7]})


def write(store: Path, *tables: pa.Table, overwrite: bool = False, **options: Any) -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(name, StringType()) for name in tables[0].column_names])
    given = elastalog.spark.ElastalogSource({"store": str(store), **options})
    writer = given.writer(schema, overwrite)
    writer.commit([None, *(writer.write(iter(table.to_batches())) for table in tables)])


def test_rows_of_all_tasks_are_one_update_and_a_batch_is_applied_once(store: Path) -> None:
    for _ in range(2):
        write(store, ROWS[:1], ROWS[1:], ROWS[:0], relation="kinds", source="job", batch="7")
    with elastalog.open(store=elastalog.Store(store, read_only=True)) as db:
        assert set(db["kinds"]) == {A, C, (5, 9, 0.5, "w")}
        assert [(entry.epoch, entry.source, entry.batch) for entry in db.log()][3:] == [(4, "job", "7")]


def test_rows_may_say_which_relation_they_are_about(store: Path) -> None:
    table = pa.table({"op": ["-"], "relation": ["kinds"], "a1": ["-7"], "a2": ["7"], "a3": ["2.5"], "a4": ["z"]})
    write(store, table)
    assert set(read(source(store))) == {A, C}


def test_nothing_is_no_epoch(store: Path) -> None:
    write(store, ROWS[:0], relation="kinds")
    assert source(store).schema() is not None
    with elastalog.open(store=elastalog.Store(store, read_only=True)) as db:
        assert db.epoch == 3


@pytest.mark.parametrize(
    ("table", "options", "expected"),
    [
        (ROWS, {"overwrite": True, "relation": "kinds"}, "E0871"),
        (ROWS, {}, "E0870"),
        (ROWS.drop_columns(["op"]), {"relation": "kinds"}, "E0870"),
        (ROWS, {"relation": "kinds", "source": "job"}, "E0870"),
        (ROWS, {"relation": "kinds", "epoch": "3"}, "E0870"),
        (ROWS, {"relation": "kind"}, "E0606"),
        (ROWS.drop_columns(["f"]), {"relation": "kinds"}, "E0518"),
        (ROWS.set_column(0, "op", [["+", "*"]]), {"relation": "kinds"}, "E0522"),
    ],
)
def test_what_cannot_be_applied_is_refused_whole(
    store: Path, table: pa.Table, options: dict[str, Any], expected: str
) -> None:
    with refused(expected):
        write(store, table, **options)
    assert set(read(source(store))) == EPOCHS[3]


def test_a_store_that_is_being_written_says_so(store: Path) -> None:
    with elastalog.open(store=store), refused("E0804"):
        write(store, ROWS, relation="kinds")


WRITE = """
import os, sys
import elastalog.session.opening, elastalog.evaluation.stored, elastalog.storage.store
import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType
from elastalog.spark import ElastalogSource

def write(batch):
    rows = pa.table({"op": ["+"], "n": [int(batch)], "u": [1], "f": [0.5], "s": [f"batch {batch}"]})
    options = {"store": sys.argv[1], "relation": "kinds", "source": "job", "batch": batch}
    schema = StructType([StructField(n, StringType()) for n in rows.column_names])
    writer = ElastalogSource(options).writer(schema, False)
    message = writer.write(iter(rows.to_batches()))
    print(os.getpid(), flush=True)
    writer.commit([message])

for line in sys.stdin:
    child = os.fork()
    if not child:
        write(line.strip())
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Writes every batch that it is told in a process of its own, which says who it is when it begins to commit, and how
that process ended. A process that has all modules already costs a hundredth of one that begins with none."""


@pytest.mark.slow
@pytest.mark.parametrize(("batches", "least"), [(3, 3), pytest.param(60, 100, marks=pytest.mark.long)])
def test_a_driver_that_is_killed_at_any_moment_and_begins_again_applies_a_batch_once(
    store: Path, batches: int, least: int
) -> None:
    """What is killed are processes that do what Spark's driver does in the end. The change feed is the witness."""
    random = Random(5)
    endings = []
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment_of_children(),
    ) as process:  # fmt: skip
        for batch in range(1, batches + 1):
            for most in (0.01, 0.03, 0.1, None):
                print(batch, file=process.stdin, flush=True)
                writer = int(process.stdout.readline())
                if most is not None:
                    time.sleep(random.uniform(0, most))
                    with suppress(ProcessLookupError):
                        os.kill(writer, signal.SIGKILL)
                endings.append(int(process.stdout.readline()))
        process.stdin.close()
    assert set(endings) <= {0, -signal.SIGKILL}
    assert endings.count(-signal.SIGKILL) >= least
    given = source(store, changes="true", columns="n", epoch=3)
    reader = given.streamReader(given.schema())
    parts = reader.partitions(reader.initialOffset(), reader.latestOffset())
    assert [row for part in parts for row in rows(reader.read(part))] == [
        ("+", n, n + 3) for n in range(1, batches + 1)
    ]


def test_a_store_at_an_address_is_read_followed_and_written(bucket: Bucket) -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    address: Any = bucket.address("store")
    with elastalog.open(PROGRAM, facts={"kinds": [A, B]}, store=address) as db:
        db.apply({"kinds": [C]}, {"kinds": [A]})
    assert set(read(source(address, columns="n"))) == {(B[0],), (C[0],)}
    assert set(read(source(address, columns="n", epoch=1))) == {(A[0],), (B[0],)}
    given = source(address, changes="true", columns="n", epoch=1)
    reader = given.streamReader(given.schema())
    start, middle = reader.initialOffset(), reader.latestOffset()
    sent = pa.table({"op": ["-"], "n": [B[0]], "u": [str(B[1])], "f": [B[2]], "s": [B[3]]})
    for _ in range(2):  # the second time it is known
        writing = source(address, source="job", batch="1")
        writer = writing.writer(StructType([StructField(n, StringType()) for n in sent.column_names]), False)
        writer.commit([writer.write(iter(sent.to_batches()))])
    end = reader.latestOffset()
    told = [
        [row for part in reader.partitions(*between) for row in rows(reader.read(part))]
        for between in ((start, middle), (middle, end))
    ]
    assert sorted(told[0]) == [("+", C[0], 2), ("-", A[0], 2)]
    assert told[1] == [("-", B[0], 3)]


# --- on Spark ------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(spark: Any) -> Any:
    assert elastalog.spark.session() is spark
    return spark


@pytest.mark.slow
def test_spark_reads_an_epoch_and_asks_in_sql(session: Any, store: Path) -> None:
    reader = session.read.format("elastalog").option("store", store).option("relation", "kinds")
    frame = reader.option("partitions", 2).load()
    assert frame.dtypes == [("n", "bigint"), ("u", "decimal(20,0)"), ("f", "double"), ("s", "string")]
    with elastalog.open(store=store) as db:  # the frame stays at its epoch
        db.apply({"kinds": [B]})
    frame.createOrReplaceTempView("kinds_of_a_test")
    found = session.sql("SELECT s, n FROM kinds_of_a_test WHERE n < 0 OR s = 'w' ORDER BY n").collect()
    assert [tuple(row) for row in found] == [("x", A[0]), ("z", -7)]
    assert frame.rdd.getNumPartitions() == 2
    # The alternatives above are left to Spark; these filters are pushed.
    assert [row.n for row in frame.where("s = 'z' AND f > 2").collect()] == [-7]
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=r"error\[E0813\]: there is no epoch 9: the store keeps epochs 1 to 4"):
        reader.option("epoch", 9).load()


@pytest.mark.slow
def test_spark_writes_an_update_and_follows_the_changes(session: Any, store: Path, tmp_path: Path) -> None:
    stream = (
        session.readStream.format("elastalog")
        .option("relation", "kinds")
        .option("changes", "true")
        .option("columns", "s,u")
        .option("epoch", 3)
        .load(str(store))
    )

    def told() -> set[tuple[Any, ...]]:
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "told"))
        )
        assert query.awaitTermination(120)
        return {
            (row.op, row.s, int(row.u), row.epoch) for row in session.read.parquet(str(tmp_path / "told")).collect()
        }

    for batch in ("1", "2"):
        sent = [("+", 5, 9, 0.5, "w"), ("-", -7, 7, 2.5, "z")] if batch == "1" else [("-", 5, 9, 0.5, "w")]
        frame = session.createDataFrame(sent, "op string, n bigint, u bigint, f double, s string")
        writer = frame.write.format("elastalog").mode("append").option("relation", "kinds")
        writer.option("source", "job").option("batch", batch).save(str(store))
        if batch == "1":
            assert told() == {("+", "w", 9, 4), ("-", "z", 7, 4)}
    assert told() == {("+", "w", 9, 4), ("-", "z", 7, 4), ("-", "w", 9, 5)}
    assert session.read.parquet(str(tmp_path / "told")).count() == 3  # each once
