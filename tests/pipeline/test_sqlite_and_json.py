"""`IO=sqlite` and `IO=json`: what is written is read again, what SQLite and JSON make themselves is read too; a
folder of Parquet files stands for one file."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import elastalog
from elastalog.cli.main import cli
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files.policy import BadRows
from elastalog.pipeline.files.read import read_input
from elastalog.program import Program
from tests.pipeline.schemas import EDGE
from tests.pipeline.test_read import relation
from tests.refusals import refused

KINDS = """
.decl r(n: number, u: unsigned, f: float, s: symbol)
r(-3, 18446744073709551615, 1.5, "ä\\"\\n,\\t"). r(0, 0, -0.25, "").
.decl done()
done().
"""
OUT = KINDS + ".output r(IO={io}, {name}) .output done(IO={io}, {name})\n"
IN = KINDS.split("r(-3")[0] + ".decl done()\n.input r(IO={io}, {name}) .input done(IO={io}, {name})\n"
EXPECTED = {(-3, 2**64 - 1, 1.5, 'ä"\n,\t'), (0, 0, -0.25, "")}


def run(folder: Path, text: str) -> str:
    program = folder / "program.dl"
    program.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli, ["run", str(program), "-F", str(folder), "-D", str(folder)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", ['dbname="all.db"', 'filename="all.db"', 'headers="false"'])
def test_a_round_trip_through_sqlite(tmp_path: Path, name: str) -> None:
    run(tmp_path, OUT.format(io="sqlite", name=name))
    with elastalog.open(IN.format(io="sqlite", name=name), tmp_path) as db:
        assert set(db["r"]) == EXPECTED
        assert set(db["done"]) == {()}
    run(tmp_path, OUT.format(io="sqlite", name=name))  # replaces the tables


@pytest.mark.parametrize("form", ["list", "object"])
def test_a_round_trip_through_json(tmp_path: Path, form: str) -> None:
    run(tmp_path, OUT.format(io="jsonfile", name=f"format={form}"))
    written = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert all(isinstance(fact, list if form == "list" else dict) for fact in written)
    with elastalog.open(IN.format(io="jsonfile", name=f"format={form}"), tmp_path) as db:
        assert set(db["r"]) == EXPECTED
        assert set(db["done"]) == {()}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "base.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE edges (Y INTEGER, X INTEGER)")
        made.executemany("INSERT INTO edges VALUES (?, ?)", [(2, 1), (3, 2)])
        made.execute("CREATE VIEW steps AS SELECT X AS a, Y AS b FROM edges")
        made.execute("CREATE TABLE odd (x INTEGER, z INTEGER)")
        made.execute("CREATE TABLE texts (x, y)")
        made.executemany("INSERT INTO texts VALUES (?, ?)", [(1, 2), ("one", 2)])
    made.close()
    return path


def edges(database: Path, table: str) -> set[object]:
    text = f'.decl edge(x: number, y: number)\n.input edge(IO=sqlite, dbname="base.db", name="{table}")\n'
    with elastalog.open(text, database.parent) as db:
        return set(db["edge"])


def test_columns_go_by_name_if_any_has_one(database: Path) -> None:
    assert edges(database, "edges") == {(1, 2), (2, 3)}


def test_columns_go_by_position_if_none_has_a_name(database: Path) -> None:
    assert edges(database, "steps") == {(1, 2), (2, 3)}


@pytest.mark.parametrize(
    ("table", "code", "message"),
    [
        ("odd", "E0518", "table `odd` has no column `y` of relation `edge`"),
        ("edgs", "E0510", "has no table or view `edgs`"),
        ("texts", "E0502", ""),
    ],
)
def test_what_does_not_fit_is_reported(database: Path, table: str, code: str, message: str) -> None:
    with refused(code, told=message):
        edges(database, table)


@pytest.mark.parametrize(
    ("content", "code"), [("{}", "E0515"), ("[[1]", "E0515"), ("[[1]]", "E0501"), ('[["a", 1]]', "E0502")]
)
def test_json_that_is_no_list_of_facts_is_reported(tmp_path: Path, content: str, code: str) -> None:
    (tmp_path / "edge.json").write_text(content)
    with refused(code):
        elastalog.open(".decl edge(x: number, y: number)\n.input edge(IO=json)\n", tmp_path)


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "base.db").write_text("no database, but long enough to look at" * 100)
    with refused("E0515"):
        edges(tmp_path / "base.db", "edges")


def test_databases_of_a_program_that_is_opened_again_stay_below_the_folder(tmp_path: Path) -> None:
    program = Program.reopen('.decl e(x: number)\n.input e(IO=sqlite, dbname="../base.db")\n', "p.dl")
    with refused("E0512"):
        elastalog.open(program, tmp_path)


def test_the_size_of_a_relation_is_printed(tmp_path: Path) -> None:
    output = run(tmp_path, ".decl p(x: number)\np(1). p(2).\n.output p(IO=stdoutprintsize)\n")
    assert output == "p\t2\n"


RECORDS = """
.type List = [n: number, rest: List]
.type Shape = Circle { r: float } | Named { s: symbol, in: Shape } | Dot {}
.decl r(l: List, s: Shape)
"""


@pytest.mark.parametrize("io", ["sqlite", "jsonfile"])
def test_a_round_trip_of_records_and_branches(tmp_path: Path, io: str) -> None:
    facts = 'r([1, [2, nil]], $Named("a", $Circle(1.5))). r(nil, $Dot).\n'
    run(tmp_path, f"{RECORDS}{facts}.output r(IO={io})\n")
    with elastalog.open(f"{RECORDS}.input r(IO={io})\n", tmp_path) as db, elastalog.open(RECORDS + facts) as written:
        assert set(db["r"]) == set(written["r"])
        assert len(db["r"]) == 2


@pytest.mark.parametrize(
    ("form", "wanted"),
    [("list", [[[1, [2, None]], "$Dot"]]), ("object", [{"l": {"n": 1, "rest": {"n": 2, "rest": None}}, "s": "$Dot"}])],
)
def test_records_in_json_are_arrays_or_objects_and_json_alone_is_printed(
    tmp_path: Path, form: str, wanted: object
) -> None:
    told = run(tmp_path, f"{RECORDS}r([1, [2, nil]], $Dot).\n.output r(IO=json, format={form})\n")
    assert json.loads(told) == wanted


def test_floats_that_json_cannot_write_are_texts_in_records_too(tmp_path: Path) -> None:
    program = ".type Pair = [f: float, s: symbol]\n.decl r(f: float, p: Pair)\n"
    (tmp_path / "r.json").write_text('[["-Infinity", ["Infinity", "Infinity"]], ["inf", [0.5, "nan"]]]')
    with elastalog.open(f"{program}.input r(IO=json)\n", tmp_path) as db:
        assert set(db["r"]) == {(-math.inf, (math.inf, "Infinity")), (math.inf, (0.5, "nan"))}


def test_a_list_that_rules_made_is_written_however_long_it_is(tmp_path: Path) -> None:
    text = ".decl l(n: number, x: List)\nl(0, nil).\nl(n + 1, [n, x]) :- l(n, x), n < 900.\n.output l"
    run(tmp_path, f"{RECORDS}{text}\n.output l(IO=jsonfile)\n")
    assert max(line.count("[") for line in (tmp_path / "l.csv").read_text().splitlines()) == 900
    assert len(json.loads((tmp_path / "l.json").read_text())) == 901


def test_records_in_sqlite_are_the_texts_that_are_printed(tmp_path: Path) -> None:
    run(tmp_path, RECORDS + "r([1, [2, nil]], $Dot).\n.output r(IO=sqlite)\n")
    with sqlite3.connect(tmp_path / "r.sqlite") as database:
        assert database.execute("SELECT * FROM r").fetchall() == [("[1, [2, nil]]", "$Dot")]


ROWS = pa.table({"x": [1, 2, 3], "y": ["a", "b b", "ü/="]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "edge.parquet"
    made.mkdir()
    return made


def found(folder: Path) -> list[tuple[int, str]]:
    table = read_input(relation(EDGE, {}), folder.parent).table
    return list(zip(*table.to_pydict().values(), strict=True))


def code(folder: Path) -> tuple[str, str | None]:
    with pytest.raises(ElastalogError) as error:
        found(folder)
    return error.value.diagnostics[0].code, error.value.diagnostics[0].location


def test_parts_are_one_relation_whatever_the_order_of_their_columns(folder: Path) -> None:
    pq.write_table(ROWS, folder / "part-2.parquet")
    pq.write_table(pa.table({"Y": ["z"], "x": pa.array([9], pa.int16())}), folder / "part-10.parquet")
    pq.write_table(ROWS.slice(0, 0), folder / "part-11.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-1.parquet").write_bytes(b"unfinished")
    (folder / ".part-2.parquet.crc").write_bytes(b"crc")
    assert found(folder) == [(1, "a"), (2, "b b"), (3, "ü/="), (9, "z")]
    with elastalog.open(".decl edge(x: number, y: symbol)\n.input edge", folder.parent) as db:
        assert len(db["edge"]) == 4
        assert db.reports[0].files == (str(folder),)


@pytest.mark.parametrize("column", ["x", "y"])
def test_names_of_folders_tell_a_column(folder: Path, column: str) -> None:
    parts = ds.partitioning(pa.schema([ROWS.schema.field(column)]), flavor="hive")
    ds.write_dataset(ROWS, folder, format="parquet", partitioning=parts, existing_data_behavior="delete_matching")
    assert not list(folder.glob("*.parquet"))
    assert sorted(found(folder)) == [(1, "a"), (2, "b b"), (3, "ü/=")]


def test_a_folder_without_a_value_is_a_missing_value(folder: Path) -> None:
    part = folder / "x=__HIVE_DEFAULT_PARTITION__" / "0.parquet"
    part.parent.mkdir()
    pq.write_table(ROWS.select(["y"]), part)
    assert code(folder) == ("E0504", f"{part}:1")


def test_a_folder_whose_value_is_of_another_type_is_refused(folder: Path) -> None:
    part = folder / "x=one" / "0.parquet"
    part.parent.mkdir()
    pq.write_table(ROWS.select(["y"]), part)
    assert code(folder) == ("E0502", str(part))


def test_bad_rows_are_told_with_their_part(folder: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS, folder / "0.parquet")
    pq.write_table(pa.table({"x": [4, None], "y": ["d", "e"]}), folder / "1.parquet")
    assert code(folder) == ("E0504", f"{folder / '1.parquet'}:2")
    read = read_input(relation(EDGE, {}), tmp_path, BadRows("skip"))
    assert (read.table.num_rows, read.report.bad) == (4, 1)


def test_a_part_without_a_column_is_refused(folder: Path) -> None:
    pq.write_table(ROWS, folder / "0.parquet")
    pq.write_table(ROWS.select(["y"]), folder / "1.parquet")
    assert code(folder) == ("E0518", str(folder / "1.parquet"))


def test_a_folder_without_parts_is_refused(folder: Path) -> None:
    (folder / "_SUCCESS").touch()
    assert code(folder) == ("E0515", str(folder))


def test_no_link_leads_out(folder: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "secret.parquet")
    (folder / "0.parquet").symlink_to(tmp_path / "secret.parquet")
    assert code(folder)[0] == "E0512"


def test_a_program_may_name_the_folder(folder: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS, folder / "0.parquet")
    folder.rename(tmp_path / "links.parquet")
    read = read_input(relation(EDGE, {"filename": "links.parquet"}), tmp_path)
    assert read.table.num_rows == 3
