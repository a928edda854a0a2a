"""Facts in and out through Spark: every source gives the facts that were written, and bad rows are located."""

from __future__ import annotations

import gzip
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

import elastalog
import elastalog.spark
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.folders.addresses import without_secrets
from elastalog.pipeline.files.format import Format
from elastalog.pipeline.spark import sources
from elastalog.pipeline.spark.frames import absolute, reading
from elastalog.relations.schema import Column, Schema
from tests.commands import run
from tests.refusals import refused

PROGRAM = """
.decl item(id: number, name: symbol)
.decl named(name: symbol)
.input item
named(n) :- item(_, n).
"""
ROWS = [(1, "one"), (-2, ""), (3, "three words"), (2**40, "ä\u2028ö")]
PAIRS = ".decl pair(a: number, A: number)\n.input pair\n"
KINDS = ".decl kinds(n: number, u: unsigned, f: float, s: symbol)\n"


def items(source: Any, spark: Any, **options: Any) -> set[tuple[Any, ...]]:
    with elastalog.open(PROGRAM, facts={"item": source}, spark=spark, **options) as db:
        return set(db["item"])


def as_text(rows: list[tuple[int, str]]) -> str:
    return "".join(f"{number}\t{name}\n" for number, name in rows)


def test_a_data_frame(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS, "id bigint, name string")
    assert items(frame, spark) == set(ROWS)
    # In another order the columns go by name.
    assert items(frame.select("name", "id"), spark) == set(ROWS)


@pytest.mark.parametrize("is_folder", [False, True])
def test_text_files(spark: Any, tmp_path: Path, is_folder: bool) -> None:
    if is_folder:
        (tmp_path / "item").mkdir()
        (tmp_path / "item" / "part-0").write_text(as_text(ROWS[:2]), encoding="utf-8")
        (tmp_path / "item" / "part-1").write_text(as_text(ROWS[2:]), encoding="utf-8")
        path = tmp_path / "item"
    else:
        path = tmp_path / "item.facts.gz"
        path.write_bytes(gzip.compress(as_text(ROWS).encode()))
    assert items(elastalog.spark.facts(str(path)), spark) == set(ROWS)


def test_numbers_in_unusual_forms_mean_what_they_mean_without_spark(spark: Any, tmp_path: Path) -> None:
    text = "0x1f\ta\n 7\tb\n+8\tc\n0b101\td\n-9223372036854775808\te\n12\tf\r\n"
    (tmp_path / "item.facts").write_bytes(text.encode())
    expected = {(31, "a"), (7, "b"), (8, "c"), (5, "d"), (-(2**63), "e"), (12, "f")}
    assert items(elastalog.spark.facts(str(tmp_path / "item.facts")), spark) == expected
    with elastalog.open(PROGRAM, facts=tmp_path) as local:
        assert set(local["item"]) == expected


def test_attributes_that_differ_in_capitals_only(spark: Any, tmp_path: Path) -> None:
    """To Spark they have one name."""
    (tmp_path / "pair.facts").write_text("1\t2\n3\t4\n")
    with elastalog.open(PAIRS, facts=tmp_path, engine="spark", spark=spark) as db:
        assert set(db["pair"]) == {(1, 2), (3, 4)}


def test_csv_with_header_quotes_and_line_ends_in_fields(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "item.csv"
    path.write_text('name,id\n"two\nlines",1\n"a ""quote""",2\nplain,3\n', encoding="utf-8")
    found = items(elastalog.spark.csv(str(path), headers="true"), spark)
    assert found == {(1, "two\nlines"), (2, 'a "quote"'), (3, "plain")}


def test_json_lines(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "item.jsonl"
    path.write_text('{"id": 1, "name": "one"}\n[-2, ""]\n', encoding="utf-8")
    assert items(elastalog.spark.json(str(path)), spark) == {(1, "one"), (-2, "")}


MARKED = ".decl text(s: symbol)\n.input text"


@pytest.mark.parametrize(
    ("parameters", "content", "expected"),
    [
        ("", "\ufeff\ufeffa\nb\n\ufeffc\n", {"\ufeffa", "b", "\ufeffc"}),
        ("(headers=true)", "s\n\ufeffa\nb\n", {"\ufeffa", "b"}),
        ("(rfc4180=true, headers=true)", '\ufeffs\n"\ufeffa"\n\ufeffb\n', {"\ufeffa", "\ufeffb"}),
    ],
)
def test_a_byte_order_mark_is_one_at_the_beginning_of_a_file_alone(
    spark: Any, tmp_path: Path, parameters: str, content: str, expected: set[str]
) -> None:
    (tmp_path / "text.facts").write_text(content, encoding="utf-8")
    with elastalog.open(f"{MARKED}{parameters}\n", tmp_path, spark=spark) as db:
        assert {text for (text,) in db["text"]} == expected


@pytest.mark.parametrize(
    ("value", "code"), [("1e400", "E0503"), ("7" * 5000, "E0503"), ('1, "x": 2', "E0518"), ("Infinity", None)]
)
@pytest.mark.parametrize("name", ["r.json", "r.jsonl"])
def test_numbers_of_json_that_nothing_can_hold_are_bad_rows(
    spark: Any, tmp_path: Path, name: str, value: str, code: str | None
) -> None:
    text = f'{{"x": 1.5}}{{}}{{"x": {value}}}'
    (tmp_path / "r.json").write_text("[" + text.replace("{}", ",") + "]")
    (tmp_path / "r.jsonl").write_text(text.replace("{}", "\n"))
    told = "IO=json" if name == "r.json" else f'filename="{name}"'
    program = f".decl r(x: float)\n.input r({told})\n"
    if code is None:
        with elastalog.open(program, tmp_path, spark=spark) as db:
            assert set(db["r"]) == {(1.5,), (math.inf,)}
        return
    with pytest.raises(ElastalogError) as raised:
        elastalog.open(program, tmp_path, spark=spark)
    place = f"{tmp_path / name}, element 2" if name == "r.json" else f"{tmp_path / name}:2"
    assert [(found.code, found.location) for found in raised.value.diagnostics] == [(code, place)]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columnar_files(spark: Any, tmp_path: Path, kind: str) -> None:
    table = pa.table({"id": [row[0] for row in ROWS], "name": [row[1] for row in ROWS]})
    path = tmp_path / f"item.{kind}"
    (parquet if kind == "parquet" else orc).write_table(table, path)
    source = elastalog.spark.parquet(str(path)) if kind == "parquet" else elastalog.spark.orc(str(path))
    assert items(source, spark) == set(ROWS)


def test_a_table_and_a_database(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS[:3], "id bigint, name string")
    frame.createOrReplaceTempView("items_of_a_test")
    assert items(elastalog.spark.table("items_of_a_test"), spark) == set(ROWS[:3])
    # Derby comes with Spark.
    url = f"jdbc:derby:{tmp_path / 'base'};create=true"
    with elastalog.open(PROGRAM, facts={"item": frame}, spark=spark) as db:
        options = {"dbtable": "items", "createTableColumnTypes": "name varchar(100)"}
        elastalog.spark.write(db, "item", "jdbc", url, options=options)
    assert items(elastalog.spark.jdbc(url, "items"), spark) == set(ROWS[:3])


TEXTS = [(1, " blank "), (2, ""), (3, 'a "quote", a comma'), (4, "back\\slash"), (5, "two\nlines"), (6, "ä\u2028\tö")]


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_files_that_are_written_mean_the_same_when_they_are_read(spark: Any, tmp_path: Path, kind: str) -> None:
    with elastalog.open(PROGRAM, facts={"item": TEXTS}, spark=spark) as db:
        elastalog.spark.write(db, "item", kind, str(tmp_path / "item"))
        with refused("E1111", match="PATH_ALREADY_EXISTS"):
            elastalog.spark.write(db, "item", kind, str(tmp_path / "item"))
        elastalog.spark.write(db, "item", kind, str(tmp_path / "item"), mode="overwrite")
    assert items(getattr(elastalog.spark, kind)(str(tmp_path / "item")), spark) == set(TEXTS)


def test_a_table_that_is_written_means_the_same_when_it_is_read(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(PROGRAM, facts={"item": TEXTS}, spark=spark) as db:
        elastalog.spark.write(db, "item", "table", "written_by_a_test", options={"path": str(tmp_path / "table")})
    assert items(elastalog.spark.table("written_by_a_test"), spark) == set(TEXTS)
    spark.sql("DROP TABLE written_by_a_test")


def test_every_type_goes_there_and_back(spark: Any, tmp_path: Path) -> None:
    rows = [(-(2**63), 2**64 - 1, math.pi, "x"), (0, 0, -math.inf, "")]
    with elastalog.open(KINDS, facts={"kinds": rows}) as db:
        frame = db["kinds"].to_spark(spark=spark)
        frame.write.parquet(str(tmp_path / "kinds"))
    back = elastalog.spark.parquet(str(tmp_path / "kinds"))
    with elastalog.open(KINDS, facts={"kinds": back}, spark=spark) as db:
        assert set(db["kinds"]) == set(rows)


def test_a_folder_of_facts_is_read_by_spark(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(ROWS, "id bigint, name string").write.parquet(str(tmp_path / "item.parquet"))
    with elastalog.open(PROGRAM, facts=tmp_path, engine="spark", spark=spark) as db:
        assert set(db["named"]) == {(name,) for _, name in ROWS}


@pytest.mark.parametrize("kind", ["orc", "csv", "json"])
def test_folders_of_part_files_stand_for_one_file(spark: Any, tmp_path: Path, kind: str) -> None:
    with elastalog.open(PAIRS, facts={"pair": [(1, 2), (3, 4)]}, spark=spark) as db:
        frame = db["pair"].to_spark(spark=spark).toDF("x", "y")
    suffix = {"json": "jsonl"}.get(kind, kind)
    frame.write.format(kind).options(sep="\t").save(str(tmp_path / f"pair.{suffix}"))
    program = ".decl pair(x: number, y: number)\n.input pair\n"
    with elastalog.open(program, facts=tmp_path, engine="spark", spark=spark) as db:
        assert set(db["pair"]) == {(1, 2), (3, 4)}
    (tmp_path / "pair.facts").write_text("5\t6\n")  # it goes before any other, as without Spark
    with elastalog.open(program, facts=tmp_path, engine="spark", spark=spark) as db:
        assert set(db["pair"]) == {(5, 6)}


def test_names_of_folders_are_texts_where_a_symbol_is_declared(spark: Any, tmp_path: Path) -> None:
    rows = {(1, "007"), (2, "2024-1-2")}
    frame = spark.createDataFrame(sorted(rows), "id bigint, name string")
    frame.where("id = 1").write.partitionBy("name").parquet(str(tmp_path / "numbers" / "item.parquet"))
    frame.write.partitionBy("name").parquet(str(tmp_path / "texts" / "item.parquet"))
    for engine in ("local", "spark"):
        for folder, wanted in (("numbers", {(1, "007")}), ("texts", rows)):
            with elastalog.open(PROGRAM, facts=tmp_path / folder, engine=engine, spark=spark) as db:
                assert set(db["item"]) == wanted


def test_times_mean_the_same_to_both_engines(spark: Any, tmp_path: Path) -> None:
    """Spark writes 96 bits for one, which other readers take for a time without a zone, of nanoseconds."""
    times = ("2024-02-29T12:30:01.000005Z", "9999-12-31T23:59:59.000000Z")
    frame = spark.createDataFrame([(time,) for time in times], "t string").selectExpr("CAST(t AS timestamp) AS t")
    frame.coalesce(1).write.parquet(str(tmp_path / "at.parquet"))
    for engine in ("local", "spark"):
        with elastalog.open(".decl at(t: symbol)\n.input at\n", facts=tmp_path, engine=engine) as db:
            assert set(db["at"]) == {(time,) for time in times}


def test_annotations_become_columns(spark: Any) -> None:
    with elastalog.open(PROGRAM, facts={"item": [(1, "a"), (2, "a")]}) as db:
        rows = db["named"].to_spark(annotations=True, spark=spark).collect()
    assert [row.asDict() for row in rows] == [{"name": "a", "@level": 1, "@count": 2}]


# --- bad rows ------------------------------------------------------------------------------------------------------

BAD = "1\tx\ntwo\ty\n3\n4\tz\tw\n99999999999999999999\tq\n6\t\n"
BAD_LINES = {2: "E0502", 3: "E0501", 4: "E0501", 5: "E0503"}


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    (tmp_path / "item").mkdir()
    (tmp_path / "item" / "a.facts").write_text("10\tgood\n", encoding="utf-8")
    (tmp_path / "item" / "b.facts").write_text(BAD, encoding="utf-8")
    return tmp_path


def test_bad_rows_of_text_are_named_by_file_and_line(spark: Any, bad: Path) -> None:
    with pytest.raises(ElastalogError) as raised:
        items(elastalog.spark.facts(str(bad / "item")), spark)
    file = bad / "item" / "b.facts"
    assert {d.location: d.code for d in raised.value.diagnostics} == {f"{file}:{n}": c for n, c in BAD_LINES.items()}


def test_lines_are_numbered_in_files_that_are_read_in_blocks(spark: Any, tmp_path: Path) -> None:
    """Blocks of equal size come first, of whatever file they are."""
    for name in "ab":
        (tmp_path / f"{name}.facts").write_text("".join(f"{i}\t{i}\n" for i in range(10, 50)) + f"{name}\t1\n")
    blocks = {"spark.sql.files.maxPartitionBytes": "64", "spark.sql.files.openCostInBytes": "1"}
    before = {name: spark.conf.get(name) for name in blocks}
    try:
        for name, value in blocks.items():
            spark.conf.set(name, value)
        with pytest.raises(ElastalogError) as raised:
            elastalog.open(PAIRS, facts={"pair": elastalog.spark.facts(str(tmp_path))}, spark=spark)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert [d.location for d in raised.value.diagnostics] == [f"{tmp_path}/{name}.facts:41" for name in "ab"]


def test_bad_rows_can_be_set_aside(spark: Any, bad: Path) -> None:
    source = elastalog.spark.facts(str(bad / "item"))
    with elastalog.open(
        PROGRAM, facts={"item": source}, spark=spark, bad_rows=elastalog.BadRows("quarantine", folder=bad)
    ) as db:
        assert set(db["item"]) == {(10, "good"), (1, "x"), (6, "")}
        rows = elastalog.spark.bad_rows(db).orderBy("line").collect()
    assert [(row.relation, row.line, row.code) for row in rows] == [("item", n, c) for n, c in BAD_LINES.items()]
    assert rows[0].reason == "`two` is not a number (`id`)"


def test_bad_rows_can_be_skipped_up_to_a_bound(spark: Any, bad: Path) -> None:
    source = elastalog.spark.facts(str(bad / "item"))
    assert len(items(source, spark, bad_rows=elastalog.BadRows("skip", 4))) == 3
    with pytest.raises(LimitReached, match="more bad rows \\(4\\)"):
        items(source, spark, bad_rows=elastalog.BadRows("skip", 3))


def test_bad_rows_of_parquet_are_named_by_file_and_row(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "item").mkdir()
    parquet.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "item" / "a.parquet")
    parquet.write_table(pa.table({"id": [1, None, 3], "name": ["a", "b", None]}), tmp_path / "item" / "b.parquet")
    with pytest.raises(ElastalogError) as raised:
        items(elastalog.spark.parquet(str(tmp_path / "item")), spark)
    file = tmp_path / "item" / "b.parquet"
    assert {d.location: d.code for d in raised.value.diagnostics} == {f"{file}:2": "E0504", f"{file}:3": "E0504"}


def test_blocks_of_files_may_come_in_any_order_and_together() -> None:
    """Without Spark: what a task yields, and what the driver makes of it."""
    schema = Schema("item", (Column("id", Base.NUMBER), Column("name", Base.SYMBOL)))
    fields = pa.schema([("c0", pa.int64()), ("c1", pa.string()), *sources._TOLD])
    mark = b"\xef\xbb\xbf"
    blocks = [
        ("b", 90, [b"5\tu", b"x\tv"]), ("a", 0, [mark + b"1\tp", b"2"]), ("b", 0, [mark + b"3\tq", b"4\tr", b"y\tr"]),
        ("a", 50, [mark + b"6\tw", b"7\tz\r"]),
    ]  # fmt: skip
    lines = [(line, file, block) for file, block, given in blocks for line in given]
    given = pa.record_batch(list(zip(*lines, strict=True)), schema=pa.schema(
        [("line", pa.binary()), ("file", pa.string()), ("block", pa.int64())]
    ))  # fmt: skip
    read = partial(sources._read_lines, Format())
    found = sources._read_in_task(schema, read, fields, iter([given[:4], given[4:4], given[4:]]))
    rows = pa.Table.from_batches(list(found)).to_pylist()
    facts = {(row["c0"], row["c1"]) for row in rows if row["@told"] is None}
    assert facts == {(1, "p"), (3, "q"), (4, "r"), (5, "u"), (7, "z")}
    bad = sources._located([json.loads(row["@told"]) for row in rows if row["@told"] is not None])
    assert [(row.file, row.line, row.fault.code) for row in bad] == [
        ("a", 2, "E0501"), ("a", 3, "E0502"), ("b", 3, "E0502"), ("b", 5, "E0502"),
    ]  # fmt: skip


def test_text_that_is_not_utf8_is_a_bad_row(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "item.facts").write_bytes(b"1\tok\n2\t\xff\n")
    with pytest.raises(ElastalogError) as raised:
        items(elastalog.spark.facts(str(tmp_path / "item.facts")), spark)
    assert [(d.code, d.location) for d in raised.value.diagnostics] == [("E0505", f"{tmp_path / 'item.facts'}:2")]


def test_a_missing_column_is_no_column_of_nulls(spark: Any, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [1, 2]}), tmp_path / "item.parquet")
    with refused("E0518", match="no column `name`"):
        items(elastalog.spark.parquet(str(tmp_path / "item.parquet")), spark)


def test_other_columns_are_left_out(spark: Any) -> None:
    frame = spark.createDataFrame([("x", 1.5, 7)], "NAME string, weight double, id bigint")
    with pytest.warns(UserWarning, match="`weight`"):
        assert items(frame, spark) == {(7, "x")}


def test_a_source_that_is_not_there(spark: Any, tmp_path: Path) -> None:
    with refused("E1105", match="PATH_NOT_FOUND"):
        items(elastalog.spark.parquet(str(tmp_path / "nothing.parquet")), spark)


def test_a_database_that_has_no_such_table(spark: Any, tmp_path: Path) -> None:
    url = f"jdbc:derby:{tmp_path / 'base'};create=true"
    with refused("E1105", match="ITEMS"):
        items(elastalog.spark.jdbc(url, "items"), spark)


def test_a_password_is_not_told(spark: Any, tmp_path: Path) -> None:
    url = f"jdbc:derby:{tmp_path / 'nowhere'};user=ann;password=hunter2"
    with elastalog.open(PROGRAM, facts={"item": ROWS}, spark=spark) as db:
        with pytest.raises(ElastalogError) as unwritten:
            elastalog.spark.write(db, "item", "jdbc", url, options={"dbtable": "items"})
        with pytest.raises(ElastalogError) as unread:
            items(elastalog.spark.jdbc(url, "items"), spark)
    for raised in (unread, unwritten):
        (told,) = raised.value.diagnostics
        assert "hunter2" not in repr(told)
        assert "user=ann;password=***" in told.message


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("jdbc:postgresql://host/base?user=ann&password=a+b%20c&ssl=true", "base?user=ann&password=***&ssl=true"),
        ("jdbc:mysql://ann:secret@host:3306/base", "jdbc:mysql://ann:***@host:3306/base"),
        ("jdbc:oracle:thin:ann/secret@//host:1521/base", "jdbc:oracle:thin:ann/***@//host:1521/base"),
        ("jdbc:sqlserver://host:1433;user=ann;Password=x;y=z", "user=ann;Password=***;y=z"),
        ("no login for user=ann password=secret here", "user=ann password=*** here"),
        ("s3a://bucket/a@b:c/d", "s3a://bucket/a@b:c/d"),
        ("/data/password=1/x", "/data/password=1/x"),
    ],
)
def test_secrets_are_masked(text: str, wanted: str) -> None:
    assert without_secrets(text).endswith(wanted)


def test_addresses_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("dbfs:/x", "hdfs:/x", "s3a://bucket/x", "abfss://a@b.net/x", "file:/x", "file:///x"):
        assert absolute(address) == address
    for path in ("x", "x/y:z", "C:/x", "a b:/c"):
        assert absolute(path) == str(tmp_path / path)
    assert absolute("/x") == "/x"


def test_what_spark_refuses_without_a_word_is_told(spark: Any) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(ElastalogError, match="cannot read a stream from `x`") as raised, reading("a stream", "x"):
        raise AnalysisException("")
    assert raised.value.diagnostics[0].notes == ()


@pytest.mark.parametrize("parameters", ['columns="1:0"', 'columns="1:0", rfc4180=true, delimiter="\\t"'])
def test_chosen_columns_of_text(spark: Any, tmp_path: Path, parameters: str) -> None:
    """Two columns in the other order, each fit for either: a parameter left out of account would not be noticed."""
    (tmp_path / "edge.facts").write_text("1\t2\n3\t4\n", encoding="utf-8")
    program = f".decl edge(x: number, y: number)\n.input edge({parameters})\n"
    with elastalog.open(program, facts=tmp_path, engine="spark", spark=spark) as db:
        assert set(db["edge"]) == {(2, 1), (4, 3)}


# --- on the command line -------------------------------------------------------------------------------------------


def written(spark: Any, folder: Path, form: str) -> str:
    """Facts under a folder in some form; gives the parameters of `.input` that describe them."""
    frame = spark.createDataFrame(TEXTS, "id bigint, name string")
    match form:
        case "parquet" | "orc":
            frame.write.format(form).save(str(folder / f"item.{form}"))
        case "csv":
            text = "".join(f'"{name.replace(chr(34), chr(34) * 2)}",{number}\n' for number, name in TEXTS)
            (folder / "item.csv").write_text("name,id\n" + text, encoding="utf-8")
            return '(filename="item.csv", rfc4180=true, headers=true)'
        case "json":
            frame.coalesce(1).toPandas().to_json(folder / "item.jsonl", orient="records", lines=True)
    return ""


@pytest.mark.parametrize("form", ["parquet", "orc", "csv", "json"])
def test_the_command_reads_a_folder_through_spark(spark: Any, tmp_path: Path, form: str) -> None:
    parameters = written(spark, tmp_path, form)
    program = PROGRAM.replace(".input item", f".input item{parameters}") + '.output named(filename="named.jsonl")\n'
    (tmp_path / "names.dl").write_text(program, encoding="utf-8")
    command = ["run", str(tmp_path / "names.dl"), "-F", str(tmp_path), "--engine", "spark", "-D", str(tmp_path / "out")]
    done = run(*command)
    assert done.exit_code == 0, done.output
    rows = (tmp_path / "out" / "named.jsonl").read_bytes().splitlines()
    assert {json.loads(row)["name"] for row in rows} == {name for _, name in TEXTS}


def test_the_driver_reads_triples_and_tasks_derive_from_them(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text("@prefix : <http://e/> . :a :p :b . :b :p :c .")
    program = """.decl triple(s: symbol, p: symbol, o: symbol)
.input triple(IO=rdf, filename="d.ttl")
.decl reach(s: symbol, o: symbol)
reach(s, o) :- triple(s, "<http://e/p>", o).
reach(s, o) :- reach(s, x), triple(x, "<http://e/p>", o).
"""
    with elastalog.open(program, tmp_path, engine="spark", spark=spark) as db:
        assert ("<http://e/a>", "<http://e/c>") in db["reach"]
        assert len(db["reach"]) == 3
