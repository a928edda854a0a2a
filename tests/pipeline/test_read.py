"""Reading fact files: formats and places."""

from __future__ import annotations

import gzip
import io
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files import text
from elastalog.pipeline.files.format import Format
from elastalog.pipeline.files.parquet import read_parquet_table
from elastalog.pipeline.files.policy import BadRows
from elastalog.pipeline.files.read import read_input
from elastalog.pipeline.files.text import _read_exactly, _read_fast
from elastalog.relations.schema import Column, Schema
from elastalog.relations.symbols import Symbols
from elastalog.settings import SETTINGS
from tests.pipeline.reading import read_facts
from tests.pipeline.schemas import EDGE, FLAG, NAME, PAIR, one, relation
from tests.refusals import refused


def rows(schema: Schema, tmp_path, content: bytes, name: str = "r.facts", **parameters: str) -> list[tuple]:
    path = tmp_path / name
    path.write_bytes(content)
    table = read_facts(schema, path, parameters).table
    assert table.schema == schema.arrow()
    return [tuple(row.values()) for row in table.to_pylist()]


# --- text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, SETTINGS.bytes_of_a_block])
@pytest.mark.parametrize(
    ("parameters", "content", "expected"),
    [
        ({}, "\ufeffa\nb\n", ["a", "b"]),
        ({}, "\ufeff\ufeffa\nb\n", ["\ufeffa", "b"]),
        ({}, "a\n\ufeffa\n", ["a", "\ufeffa"]),
        ({"headers": "true"}, "s\n\ufeffa\na\n", ["\ufeffa", "a"]),
        ({"headers": "true"}, "\ufeffs\n\ufeffa\n\ufeffb\n", ["\ufeffa", "\ufeffb"]),
        ({"headers": "true", "rfc4180": "true"}, 's\n\ufeffa\n"\ufeffb"\n', ["\ufeffa", "\ufeffb"]),
        ({"rfc4180": "true"}, '"\ufeffa"\nb\n', ["\ufeffa", "b"]),
        ({"columns": "0"}, "\ufeff\ufeffa\n", ["\ufeffa"]),
    ],
)
def test_a_byte_order_mark_is_one_at_the_beginning_of_a_file_alone(
    tmp_path, monkeypatch, parameters, content, expected, size
):
    monkeypatch.setattr(SETTINGS, "bytes_of_a_block", size)
    monkeypatch.setattr(text, "PIECE", size)
    assert rows(NAME, tmp_path, content.encode(), **parameters) == [(value,) for value in expected]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"1\t2\n3\t4\n", [(1, 2), (3, 4)]),
        (b"1\t2\n3\t4", [(1, 2), (3, 4)]),
        (b"1\t2\r\n3\t4\r\n", [(1, 2), (3, 4)]),
        (b"1\t2\r\n3\t4\n", [(1, 2), (3, 4)]),
        (b"\xef\xbb\xbf1\t2\n", [(1, 2)]),
        (b" 1\t+2\n-3 \t-0x1f\n0b101\t0XfF\n007\t-0b1\n", [(1, 2), (-3, -31), (5, 255), (7, -1)]),
        (b"-9223372036854775808\t9223372036854775807\n", [(-(2**63), 2**63 - 1)]),
    ],
)
def test_tab_separated_numbers(tmp_path, content, expected):
    assert rows(PAIR, tmp_path, content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"\n", [""]),
        (b'"quoted"\n', ['"quoted"']),
        (b" blanks \n", [" blanks "]),
        (b"null\nNA\nnan\n", ["null", "NA", "nan"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\rb\r\n", ["a\rb"]),
        (b"nul\0byte\n", ["nul\0byte"]),
        ("é😀\n".encode(), ["é😀"]),
        (b"x" * 9_000_000 + b"\n", ["x" * 9_000_000]),
    ],
)
def test_symbols_are_taken_as_they_are(tmp_path, content, expected):
    assert rows(NAME, tmp_path, content) == [(text,) for text in expected]


def test_unsigned_numbers_and_floats(tmp_path):
    assert rows(one(Base.UNSIGNED), tmp_path, b"0\n18446744073709551615\n0xffffffffffffffff\n") == [
        (0,),
        (2**64 - 1,),
        (2**64 - 1,),
    ]
    assert rows(one(Base.FLOAT), tmp_path, b"1\n-2.5\n.5\n1e-3\n+3.\ninf\n-Infinity\n") == [
        (1.0,),
        (-2.5,),
        (0.5,),
        (0.001,),
        (3.0,),
        (math.inf,),
        (-math.inf,),
    ]
    assert math.isnan(rows(one(Base.FLOAT), tmp_path, b"nan\n")[0][0])


def test_a_nullary_relation_has_lines_of_parentheses(tmp_path):
    assert rows(FLAG, tmp_path, b"()\n") == [()]
    assert rows(FLAG, tmp_path, b"") == []
    assert rows(FLAG, tmp_path, b"\n\n") == [(), ()]
    with refused(message="bad row for `flag`: a nullary relation has only the row `()`"):
        rows(FLAG, tmp_path, b"yes\n")


@pytest.mark.parametrize("delimiter", [",", ";", " ", "::", "→", "\\t"])
def test_delimiters(tmp_path, delimiter):
    separator = delimiter.replace("\\t", "\t")
    assert rows(EDGE, tmp_path, f"1{separator}a\n2{separator}b\n".encode(), delimiter=delimiter) == [(1, "a"), (2, "b")]


def test_headers_are_skipped_or_give_the_order(tmp_path):
    assert rows(EDGE, tmp_path, b"from\tto\n1\ta\n", headers="true") == [(1, "a")]
    assert rows(EDGE, tmp_path, b"x\ty\n", headers="true") == []
    assert rows(EDGE, tmp_path, b"x\ty", headers="true") == []
    assert rows(EDGE, tmp_path, b"y\tx\r\na\t1\r\n", headers="true") == [(1, "a")]
    assert rows(EDGE, tmp_path, b'"y","x"\n"a,b",1\n', headers="true", rfc4180="true") == [(1, "a,b")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"1,a\n2,b", [(1, "a"), (2, "b")]),
        (b'1,"a,b"\n2,"say ""no"""\r\n3,""\n4,\n', [(1, "a,b"), (2, 'say "no"'), (3, ""), (4, "")]),
        (b'"1","two\nlines"\n2,"cr\rlf\r\n"', [(1, "two\nlines"), (2, "cr\rlf\r\n")]),
        (b'1,in"side\n', [(1, 'in"side')]),
    ],
)
def test_rfc4180(tmp_path, content, expected):
    assert rows(EDGE, tmp_path, content, rfc4180="true") == expected


def test_gzip_by_suffix_and_by_parameter(tmp_path):
    packed = gzip.compress(b"1\ta\n", mtime=0)
    assert rows(EDGE, tmp_path, packed, "edge.facts.gz") == [(1, "a")]
    assert rows(EDGE, tmp_path, packed, "edge.facts", compress="true") == [(1, "a")]


@pytest.mark.parametrize("content", [b"1\ta\n", gzip.compress(b"1\ta\n", mtime=0)[:-6], b""])
def test_a_file_that_is_not_whole_gzip(tmp_path, content):
    if content:
        with refused("E0515"):
            rows(EDGE, tmp_path, content, "edge.facts.gz")
    else:
        assert rows(EDGE, tmp_path, content, "edge.facts.gz") == []


FIELDS = (
    st.text(st.sampled_from('01x-+.e "ab\r\0é'), max_size=6)
    | st.integers(-(2**64), 2**65).map(str)
    | st.floats().map(str)
    | st.sampled_from(["", '""', '"a"', '"1"', '"a\nb"', '"a\tb"', '"a""b"', '"a"b', '"\r"', '"""'])
)


@given(
    lines=st.lists(st.lists(FIELDS, max_size=3), max_size=5),
    base=st.sampled_from(list(Base)),
    arity=st.sampled_from([1, 2]),
    end=st.sampled_from(["\n", "\r\n"]),
    is_rfc4180=st.booleans(),
)
@settings(max_examples=300)
def test_the_fast_way_never_reads_anything_but_the_exact_way(lines, base, arity, end, is_rfc4180):
    data = end.join("\t".join(line) for line in lines).encode()
    form = Format(is_rfc4180=is_rfc4180)
    schema = Schema("r", (Column("a", base), Column("b", Base.SYMBOL))[:arity])
    fast = _read_fast(schema, data, form) if data else None
    if fast is not None:
        exact, bad = _read_exactly(schema, data, "r.facts", form, 1)
        assert not bad
        assert repr(fast.to_pylist()) == repr(exact.to_pylist())


def test_an_empty_line_is_no_row_of_empty_symbols(tmp_path):
    schema = Schema("r", (Column("a", Base.SYMBOL), Column("b", Base.SYMBOL)))
    for content in (b"\n", b"a\tb\n\n", b"\r\na\tb\r\n", b"a\tb\r\n\r\n"):
        with refused(message="bad row for `r`: a blank line is no row"):
            rows(schema, tmp_path, content)


def test_bad_rows_in_a_file_of_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(SETTINGS, "bytes_of_a_block", 50)
    lines = [f"{i}\t{i + 1}" for i in range(200)]
    for i in (0, 77, 199):
        lines[i] = f"bad{i}"
    path = tmp_path / "pair.facts"
    path.write_text("\n".join(lines))
    read = read_facts(PAIR, path, {}, BadRows("skip"))
    assert [row.location for row in read.report.first_bad] == [f"{path}:{line}" for line in (1, 78, 200)]
    assert read.table["x"].to_pylist() == [i for i in range(200) if i not in (0, 77, 199)]


def test_good_files_are_read_the_fast_way():
    assert _read_fast(PAIR, b"1\t2\n", Format()) is not None
    assert _read_fast(EDGE, b"1\ta\r\n", Format()) is not None
    assert _read_fast(EDGE, b"0x10\ta\n", Format()) is not None
    assert _read_fast(EDGE, b'1,"a ""b"", c"\n', Format(delimiter=",", is_rfc4180=True)) is not None
    assert _read_fast(EDGE, b"1,a\n", Format(delimiter=",", is_rfc4180=True)) is not None


# --- json lines and parquet ----------------------------------------------------------------------------------------


def test_json_lines_by_name_and_by_position(tmp_path):
    content = b'{"y": "a", "x": 1}\r\n\n[-9223372036854775808, "\\ud83d\\ude00"]'
    assert rows(EDGE, tmp_path, content, "edge.jsonl") == [(1, "a"), (-(2**63), "😀")]
    assert rows(EDGE, tmp_path, gzip.compress(content), "edge.ndjson.gz") == [(1, "a"), (-(2**63), "😀")]
    assert rows(one(Base.FLOAT), tmp_path, b'[1]\n["Infinity"]\n', "r.jsonl") == [(1.0,), (math.inf,)]
    assert rows(FLAG, tmp_path, b"[]\n{}\n", "flag.jsonl") == [(), ()]


def test_parquet_by_position_and_by_name(tmp_path):
    table = pa.table({"y": pa.array(["a", "b"]).dictionary_encode(), "x": pa.array([1, 2], pa.int8())})
    pq.write_table(table, tmp_path / "edge.parquet")
    read = read_facts(EDGE, tmp_path / "edge.parquet")
    assert read.table.schema == EDGE.arrow()
    assert read.table.to_pydict() == {"x": [1, 2], "y": ["a", "b"]}


@pytest.mark.parametrize("row_group", [7, 100_000])
def test_a_dictionary_of_a_parquet_file_is_taken_over(tmp_path, row_group):
    names = [f"n{(i * i) % 97}" for i in range(20_000)]
    table = pa.table({"x": range(20_000), "y": names})
    pq.write_table(table, tmp_path / "edge.parquet", row_group_size=max(row_group, 5000))
    read = read_facts(EDGE, tmp_path / "edge.parquet")
    assert pa.types.is_dictionary(read.table.schema.field("y").type)
    assert read.table.to_pydict() == table.to_pydict()
    symbols, plain = Symbols(), Symbols()
    words = symbols.encode(read.table.column("y"))
    assert symbols.texts(words) == names
    # Ids are those that the texts one by one would have got.
    assert words.tolist() == plain.encode(table.column("y")).tolist()


def test_a_dictionary_that_is_hardly_used_is_not_taken_over(tmp_path):
    entries = pa.array([f"n{i}" for i in range(5000)])
    column = pa.DictionaryArray.from_arrays(pa.array([7] * 20_000, pa.int32()), entries)
    table, bad = read_parquet_table(
        EDGE, pa.table({"x": range(20_000), "y": column}), "edge.parquet", keeps_dictionaries=True
    )
    assert not bad
    assert table.schema == EDGE.arrow()
    assert set(table.column("y").to_pylist()) == {"n7"}


def test_several_inputs_of_a_relation_with_and_without_dictionaries(tmp_path):
    pq.write_table(pa.table({"x": range(3000), "y": ["a", "b", "c"] * 1000}), tmp_path / "one.parquet")
    (tmp_path / "two.facts").write_bytes(b"1\tz\n")
    declared = relation(EDGE, {"filename": "one.parquet"}, {"filename": "two.facts"})
    read = read_input(declared, tmp_path)
    assert read.table.schema == EDGE.arrow()
    assert read.table.num_rows == 3001
    assert read.table.column("y").to_pylist()[-2:] == ["c", "z"]


def test_a_parquet_file_that_is_none(tmp_path):
    (tmp_path / "edge.parquet").write_bytes(b"1\ta\n")
    with refused("E0515"):
        read_facts(EDGE, tmp_path / "edge.parquet")
    pq.write_table(pa.table({"x": ["1"], "y": ["a"]}), tmp_path / "edge.parquet")
    with pytest.raises(ElastalogError) as error:
        read_facts(EDGE, tmp_path / "edge.parquet")
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == (
        "E0502",
        "column `x` of `edge` is declared as number, but holds texts",
    )
    assert diagnostic.location == str(tmp_path / "edge.parquet")


# --- the inputs of a relation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".facts", ".csv", ".tsv", ".facts.gz", ".csv.gz", ".jsonl", ".parquet"])
def test_the_file_of_a_relation_is_found(tmp_path, suffix):
    path = tmp_path / f"edge{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table({"x": [1], "y": ["a"]}), path)
    else:
        content = b'[1, "a"]\n' if suffix == ".jsonl" else b"1\ta\n"
        path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    read = read_input(relation(EDGE, {}), tmp_path)
    assert read.table.to_pydict() == {"x": [1], "y": ["a"]}
    assert read.report.files == (str(path),)


def test_souffles_name_wins_and_others_must_be_alone(tmp_path):
    (tmp_path / "edge.csv").write_text("2\tb\n")
    (tmp_path / "edge.jsonl").write_text('[3, "c"]\n')
    with refused("E0511", message="several files could hold the facts of `edge`: edge.csv, edge.jsonl"):
        read_input(relation(EDGE, {}), tmp_path)
    (tmp_path / "edge.facts").write_text("1\ta\n")
    assert read_input(relation(EDGE, {}), tmp_path).table.to_pydict() == {"x": [1], "y": ["a"]}


def test_a_folder_with_the_name_of_the_file_is_told(tmp_path):
    (tmp_path / "edge.facts").mkdir()
    with pytest.raises(ElastalogError) as error:
        read_input(relation(EDGE, {}), tmp_path)
    assert error.value.diagnostics[0].notes[1] == "`edge.facts` is a folder, not a file"


@pytest.mark.parametrize(
    ("name", "directive"), [("edge.json", "IO=json"), ("edges.json", 'IO=json, filename="edges.json"')]
)
def test_a_list_of_facts_in_json_is_read_as_the_advice_says(tmp_path, name, directive):
    (tmp_path / name).write_text("[[1, 2]]")
    program = ".decl edge(x: number, y: number)\n.input edge"
    with pytest.raises(ElastalogError) as error:
        elastalog.open(program, tmp_path)
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.notes[1]) == ("E0510", f"there is a file `{name}`: is that the one?")
    assert diagnostic.help == f"read the list of facts in it: `.input edge({directive})`"
    with elastalog.open(f"{program}({directive})", tmp_path) as db:
        assert list(db["edge"]) == [(1, 2)]


def test_a_missing_file_names_what_was_tried_and_the_nearest(tmp_path):
    (tmp_path / "edges.facts").write_text("")
    with pytest.raises(ElastalogError) as error:
        read_input(relation(EDGE, {}), tmp_path)
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("E0510", "no facts for input relation `edge`")
    assert diagnostic.notes[0].startswith(f"looked in `{tmp_path}` for edge.facts, edge.facts.gz, edge.csv,")
    assert diagnostic.notes[1] == "there is a file `edges.facts`: is that the one?"
    (tmp_path / "edges.facts").rename(tmp_path / "edge.bad.jsonl")  # what a quarantine has put there
    with pytest.raises(ElastalogError) as error:
        read_input(relation(EDGE, {}), tmp_path)
    assert len(error.value.diagnostics[0].notes) == 1
    for name, said in (("path.facts", []), ("edge.txt", ["there is a file `edge.txt`: is that the one?"])):
        for file in tmp_path.iterdir():
            file.unlink()
        (tmp_path / name).write_text("")
        with pytest.raises(ElastalogError) as error:
            read_input(relation(EDGE, {}), tmp_path)
        assert list(error.value.diagnostics[0].notes[1:]) == said
    with pytest.raises(ElastalogError) as error:
        read_input(relation(EDGE, {"filename": "other.csv"}), tmp_path / "none")
    assert error.value.diagnostics[0].notes == (
        f"looked in `{tmp_path / 'none'}` for other.csv",
        f"there is no folder `{tmp_path / 'none'}`",
    )


def test_several_inputs_are_united_with_one_report(tmp_path):
    (tmp_path / "a.csv").write_text("1,a\nbad\n")
    (tmp_path / "b.facts").write_text("2\tb\nworse\n")
    edge = relation(EDGE, {"filename": "a.csv", "delimiter": ","}, {"filename": "b.facts"})
    read = read_input(edge, tmp_path, BadRows("quarantine", folder=tmp_path))
    assert read.table.to_pydict() == {"x": [1, 2], "y": ["a", "b"]}
    assert (read.report.loaded, read.report.bad) == (2, 2)
    entries = [json.loads(line) for line in (tmp_path / "edge.bad.jsonl").read_text().splitlines()]
    assert [(entry["file"], entry["text"]) for entry in entries] == [
        (str(tmp_path / "a.csv"), "bad"),
        (str(tmp_path / "b.facts"), "worse"),
    ]


def test_several_inputs_of_a_nullary_relation(tmp_path):
    (tmp_path / "a").write_text("()\n")
    (tmp_path / "b").write_text("()\n()\n")
    assert read_input(relation(FLAG, {"filename": "a"}, {"filename": "b"}), tmp_path).table.num_rows == 3


def test_standard_input(tmp_path, monkeypatch):
    edge = relation(EDGE, {"IO": "stdin", "delimiter": ","})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1,a\n")))
    assert read_input(edge, tmp_path).table.to_pydict() == {"x": [1], "y": ["a"]}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1,a\nb\n")))
    with refused(location="<stdin>:2"):
        read_input(edge, tmp_path)


def test_a_relation_without_input_has_no_facts_to_read(tmp_path):
    read = read_input(relation(EDGE), tmp_path)
    assert (read.table.num_rows, read.table.schema, read.report.files) == (0, EDGE.arrow(), ())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"IO": "oracle"}, "parameter `IO` cannot be `oracle`"),
        ({"headers": "yes"}, "parameter `headers` cannot be `yes`"),
        ({"delimiter": ""}, "parameter `delimiter` cannot be ``"),
        ({"delimiter": '"'}, 'parameter `delimiter` cannot be `"`'),
    ],
)
def test_impossible_parameters(tmp_path, parameters, message):
    (tmp_path / "edge.facts").write_text("")
    with refused("E0514", message=message):
        read_input(relation(EDGE, parameters), tmp_path)
