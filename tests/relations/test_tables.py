"""Facts in and out: every kind of rows, and every way in which they can be wrong."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import elastalog
from elastalog.analysis.program import Attribute, Base, Relation
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Span
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import to_table, to_words
from elastalog.relations.words import Dictionary
from tests.refusals import refused

EDGE = Schema("edge", (Column("x", Base.NUMBER), Column("y", Base.SYMBOL)))
PAIR = Schema("pair", (Column("x", Base.NUMBER), Column("y", Base.NUMBER)))
MIXED = Schema(
    "mixed", (Column("n", Base.NUMBER), Column("u", Base.UNSIGNED), Column("f", Base.FLOAT), Column("s", Base.SYMBOL))
)
FLOAT = Schema("f", (Column("f", Base.FLOAT),))
FLAG = Schema("flag", ())
ROWS = [(1, "a"), (2**40, "b"), (1, "a")]
TABLE = pa.table({"x": [1, 2**40, 1], "y": ["a", "b", "a"]})


class StreamOnly:
    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


class ArrayOnly:
    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


KINDS = {
    "list of tuples": lambda: ROWS,
    "list of lists": lambda: [list(row) for row in ROWS],
    "generator": lambda: iter(ROWS),
    "numpy integers in tuples": lambda: [(np.int32(1), "a"), (np.int64(2**40), np.str_("b")), (np.uint8(1), "a")],
    "table": lambda: TABLE,
    "chunked table": lambda: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "record batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "struct array": lambda: TABLE.to_struct_array().combine_chunks(),
    "columns in another order": lambda: TABLE.select(["y", "x"]),
    "columns of other names": lambda: TABLE.rename_columns(["source", "target"]),
    "large strings": lambda: TABLE.cast(pa.schema([("x", pa.uint64()), ("y", pa.large_string())])),
    "dictionary-encoded": lambda: pa.table({"x": TABLE["x"].dictionary_encode(), "y": TABLE["y"].dictionary_encode()}),
    "pandas": TABLE.to_pandas,
    "pandas nullable": lambda: TABLE.to_pandas().convert_dtypes(),
    "pandas category": lambda: TABLE.to_pandas().astype({"y": "category"}),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars lazy": lambda: pl.from_arrow(TABLE).lazy(),
    "polars objects": lambda: pl.from_arrow(TABLE).with_columns(pl.Series("y", TABLE["y"].to_pylist(), pl.Object)),
    "polars categorical": lambda: pl.from_arrow(TABLE).with_columns(pl.col("y").cast(pl.Categorical)),
    "polars enum": lambda: pl.from_arrow(TABLE).with_columns(pl.col("y").cast(pl.Enum(["a", "b", "c"]))),
    "duckdb": lambda: duckdb.sql("select * from (values (1, 'a'), (1099511627776, 'b'), (1, 'a')) t(x, y)"),
    "stream protocol": StreamOnly,
    "array protocol": ArrayOnly,
    "object array": lambda: np.array(ROWS, dtype=object),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_rows_gives_the_same_words(kind):
    words = to_words(EDGE, KINDS[kind](), Dictionary())
    assert words.tolist() == [[1, 0], [2**30, 1], [1, 0]]
    assert words.dtype == np.int32
    assert words.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_integer_arrays_of_any_width_are_rows(dtype):
    rows = np.array([[1, 2], [3, 4]], dtype)
    assert to_words(PAIR, rows, Dictionary()).tolist() == [[1, 2], [3, 4]]
    assert to_words(PAIR, np.asfortranarray(rows), Dictionary()).tolist() == [[1, 2], [3, 4]]


def test_every_base_type_comes_back_from_a_table():
    dictionary = Dictionary()
    rows = [(-(2**63), 2**64 - 1, math.inf, "😀"), (2**63 - 1, 0, 3, ""), (0, 2**63, math.nan, "a\tb")]
    table = to_table(MIXED, to_words(MIXED, rows, dictionary), dictionary)
    assert table.schema == MIXED.arrow()
    assert table.schema.types == [pa.int64(), pa.uint64(), pa.float64(), pa.string()]
    back = [tuple(row.values()) for row in table.to_pylist()]
    assert back[:2] == rows[:2]
    assert math.isnan(back[2][2])
    assert to_words(MIXED, table, dictionary).tolist() == to_words(MIXED, rows, dictionary).tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, "Float64", "object"])
def test_nan_in_a_column_of_pandas_is_a_missing_value(dtype):
    frame = pd.DataFrame({"f": pd.Series([1.0, None, 0.5], dtype=dtype)})
    mixed = frame.assign(g=[1, "x", None])
    with pytest.raises(ElastalogError, match=r"E0504.*row 2 given for `f`: `f` is null"):
        to_words(FLOAT, frame, Dictionary())
    with pytest.raises(ElastalogError, match=r"E0504.*\n.*\n.*\n.*1 more row is bad") as refused:
        to_words(Schema("f", (*FLOAT.columns, Column("g", Base.SYMBOL))), mixed.iloc[1:], Dictionary())
    assert "row 1 given for `f`: `f` is null" in str(refused.value)


@pytest.mark.parametrize(
    "rows",
    [
        [(1.0,), (math.nan,)],
        np.array([[1.0], [math.nan]]),
        pa.table({"f": [1.0, math.nan]}),
        pl.DataFrame({"f": [1.0, math.nan]}),
    ],
)
def test_nan_that_is_not_of_pandas_is_a_value(rows):
    dictionary = Dictionary()
    words = to_words(FLOAT, rows, dictionary)
    assert math.isnan(dictionary.decode_value(Base.FLOAT, int(words[1, 0])))
    assert to_words(FLOAT, to_table(FLOAT, words, dictionary), dictionary).tolist() == words.tolist()
    with pytest.raises(ElastalogError, match="E0504"):  # pandas has no other way to say that a float is missing
        to_words(FLOAT, to_table(FLOAT, words, dictionary).to_pandas(), dictionary)


def test_annotations_follow_the_columns():
    dictionary = Dictionary()
    words = to_words(EDGE, ROWS, dictionary)
    table = to_table(EDGE, words, dictionary, {"@level": np.array([0, 1, 2], np.int32)})
    assert table.column_names == ["x", "y", "@level"]
    assert table["@level"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_nullary_relation_keeps_its_number_of_rows(count):
    dictionary = Dictionary()
    words = to_words(FLAG, [()] * count, dictionary)
    assert words.shape == (count, 0)
    table = to_table(FLAG, words, dictionary)
    assert table.num_rows == count
    assert to_words(FLAG, table, dictionary).shape == (count, 0)


@pytest.mark.parametrize(
    "rows",
    [[], TABLE.slice(0, 0), *(pd.DataFrame({"x": [], "y": []}, dtype=kind) for kind in (object, float)), iter(())],
)
def test_no_rows_are_no_facts(rows):
    assert to_words(EDGE, rows, Dictionary()).shape == (0, 2)


def test_the_schema_of_a_checked_relation():
    span = Span(0, 0)
    attributes = (Attribute("x", "Node", Base.NUMBER), Attribute("y", "symbol", Base.SYMBOL))
    schema = Schema.of(Relation("edge", attributes, (), (), span))
    assert schema == EDGE
    assert str(schema) == "edge(x: number, y: symbol)"
    assert (schema.arity, schema.names) == (2, ("x", "y"))


NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffb")]
)

BAD = {
    "too few values": ([(1, "a"), (2,)], "E0501", "row 2: 1 value for 2 columns"),
    "too many values": ([(1, "a", 2)], "E0501", "row 1: 3 values for 2 columns"),
    "too few columns": (TABLE.select(["x"]), "E0518", "the table has no column `y` of relation `edge`"),
    "float for number": ([(1, "a"), (2.0, "b")], "E0502", "row 2: `x` is declared as number, but given as float `2.0`"),
    "bool for number": ([(True, "a")], "E0502", "row 1: `x` is declared as number, but given as bool `True`"),
    "text for number": ([("1", "a")], "E0502", "row 1: `x` is declared as number, but given as str `'1'`"),
    "number for symbol": ([(1, 2)], "E0502", "row 1: `y` is declared as symbol, but given as int `2`"),
    "bytes for symbol": ([(1, b"a")], "E0502", "row 1: `y` is declared as symbol, but given as bytes `b'a'`"),
    "too large": ([(1, "a"), (2**63, "b")], "E0503", "row 2: `9223372036854775808` does not fit number `x`"),
    "null": ([(1, None)], "E0504", "row 1: `y` is null"),
    "lone surrogate": ([(1, "\ud800")], "E0505", "row 1: `y` holds a lone surrogate"),
    "not UTF-8": (pa.table({"x": [1, 2, 3], "y": NOT_UTF8}), "E0505", "row 2: `y` is not UTF-8"),
    "row of text": (["ab"], "E0502", "row 1: `'ab'` is str, not a tuple"),
    "row of a number": ([(1, "a"), 5], "E0502", "row 2: `5` is int, not a tuple"),
    "no rows at all": (5, "E0502", "facts of `edge` are given as rows, not as int"),
    "text": ("edge", "E0502", "facts of `edge` are given as rows, not as str"),
    "one dimension": (np.array([1, 2]), "E0502", "facts of `edge` are given as rows, not as ndarray with 1 dimensions"),
    "arrow floats": (
        pa.table({"x": [1.5], "y": ["a"]}),
        "E0502",
        "column `x` of `edge` is declared as number, but holds floats",
    ),
    "arrow binary": (
        pa.table({"x": [1], "y": [b"a"]}),
        "E0502",
        "column `y` of `edge` is declared as symbol, but holds bytes",
    ),
    "arrow null": (pa.table({"x": [1, None], "y": ["a", "b"]}), "E0504", "row 2: `x` is null"),
    "arrow all null": (pa.table({"x": [1], "y": [None]}), "E0504", "row 1: `y` is null"),
    "null in a dictionary": (
        pa.table({"x": [1], "y": pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None], pa.string()))}),
        "E0504",
        "row 1: `y` is null",
    ),
    "arrow too large": (
        pa.table({"x": pa.array([1, 2**63], pa.uint64()), "y": ["a", "b"]}),
        "E0503",
        "row 2: `9223372036854775808` does not fit number `x`",
    ),
    "pandas missing": (pd.DataFrame({"x": [1, 2], "y": ["a", None]}), "E0504", "row 2: `y` is null"),
    "pandas missing number": (pd.DataFrame({"x": [1, None], "y": ["a", "b"]}), "E0504", "row 2: `x` is null"),
    "pandas mixed": (
        pd.DataFrame({"x": [1, 2], "y": ["a", 3]}),
        "E0502",
        "row 2: `y` is declared as symbol, but given as int `3`",
    ),
    "pandas too large for Arrow": (
        pd.DataFrame({"y": ["a"], "x": [2**70]}),
        "E0503",
        "row 1: `1180591620717411303424` does not fit number `x`",
    ),
    "pandas unknown to Arrow": (
        pd.DataFrame({"x": [1 + 2j], "y": ["a"]}),
        "E0502",
        "row 1: `x` is declared as number, but given as complex `(1+2j)`",
    ),
    "pandas lone surrogate": (
        pd.DataFrame({"x": [1, 2], "y": ["a", "\ud800"]}),
        "E0505",
        "row 2: `y` holds a lone surrogate",
    ),
    "NumPy masked": (np.ma.array([[1, 2]], mask=[[True, False]]), "E0504", "row 1: `x` is null"),
    "polars unknown to Arrow": (
        pl.DataFrame({"y": ["a"], "x": [2**70]}),
        "E0503",
        "row 1: `1180591620717411303424` does not fit number `x`",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named(case):
    rows, code, message = BAD[case]
    message = re.sub(r"^(row \d):", r"\1 given for `edge`:", message)
    dictionary = Dictionary()
    with pytest.raises(ElastalogError) as error:
        to_words(EDGE, rows, dictionary)
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == (code, message)
    assert diagnostic.help


def test_large_unsigned_values_in_a_column_of_objects():
    frame = pd.DataFrame({"s": ["a"], "f": [1.5], "n": [1], "u": [2**64 - 1]}, dtype=object)
    dictionary = Dictionary()
    assert to_table(MIXED, to_words(MIXED, frame, dictionary), dictionary).to_pylist() == [
        {"n": 1, "u": 2**64 - 1, "f": 1.5, "s": "a"}
    ]


def test_one_row_in_the_place_of_all():
    with pytest.raises(ElastalogError, match=r"give a list of tuples, one for each fact: `\[\(1, 2\), \(2, 3\)\]`"):
        to_words(PAIR, (1, 2), Dictionary())


@pytest.mark.parametrize(
    ("schema", "row", "example"),
    [
        ("user(name: symbol)", "ann", "`[('ann',), …]`"),
        ("user(name: symbol)", 3, '`[("a",), …]`'),
        ("user(name: symbol, age: number)", "ann", '`[("a", 2), ("b", 3)]`, or `[("a", 2)]` for a single one'),
    ],
)
def test_what_is_no_row_is_told_how_rows_look(schema, row, example):
    with elastalog.open(f".decl {schema}") as db, pytest.raises(ElastalogError) as refused:
        db.apply({"user": [row]})
    assert f"one for each fact: {example}" in str(refused.value)


def test_the_other_bad_rows_are_counted():
    with refused(location="edge, row 2", notes=("declared as edge(x: number, y: symbol)", "2 more rows are bad")):
        to_words(EDGE, [(1, "a"), (None, "b"), (2, 3), ("c", "d")], Dictionary())


@pytest.mark.parametrize(
    ("base", "value", "code"),
    [
        (Base.UNSIGNED, -1, "E0503"),
        (Base.UNSIGNED, 2**64, "E0503"),
        (Base.FLOAT, 2**53 + 1, "E0503"),
        (Base.FLOAT, True, "E0502"),
        (Base.FLOAT, "1", "E0502"),
        (Base.FLOAT, Fraction(1, 3), "E0502"),
    ],
)
def test_values_that_the_type_cannot_hold(base, value, code):
    with refused(code):
        to_words(Schema("r", (Column("x", base),)), [(value,)], Dictionary())


@pytest.mark.parametrize(
    ("base", "array", "code"),
    [
        (Base.UNSIGNED, pa.array([1, -1]), "E0503"),
        (Base.FLOAT, pa.array([1, 2**53 + 1]), "E0503"),
        (Base.FLOAT, pa.array([1, -(2**53) - 1]), "E0503"),
        (Base.FLOAT, pa.array([1, 2**63], pa.uint64()), "E0503"),
    ],
)
def test_columns_that_the_type_cannot_hold(base, array, code):
    with refused(code, location="r, row 2"):
        to_words(Schema("r", (Column("x", base),)), pa.table({"x": array}), Dictionary())


@pytest.mark.parametrize("frame", [pd.DataFrame(), pl.DataFrame(), pl.DataFrame().lazy()])
@pytest.mark.parametrize("schema", [EDGE, MIXED])
def test_an_empty_frame_holds_no_facts(frame, schema):
    assert to_words(schema, frame, Dictionary()).shape == (0, schema.arity)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([(1, "a")]), pd.Series([[1, "a"]]), pd.Series([{"b": "a", "a": 1}]), pd.Series(['[1, "a"]']),
        pl.Series([{"a": 1, "b": "a"}]), pl.Series([(1, "a")], dtype=pl.Object),
        pl.Series([{"b": "a", "a": 1}], dtype=pl.Object), pl.Series(['[1, "a"]']),
    ],
)  # fmt: skip
def test_records_in_frames_are_taken_in_every_way_that_rows_have(values):
    program = ".type R = [a: number, b: symbol]\n.decl r(id: number, v: R)"
    frame = (pd if isinstance(values, pd.Series) else pl).DataFrame({"id": [1], "v": values})
    with elastalog.open(program, {"r": frame}) as db:
        assert list(db["r"]) == [(1, (1, "a"))]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([[1]]), "lists"), (pa.array([[1]], pa.list_(pa.int64(), 1)), "lists"),
        (pa.array([{"a": 1}]), "records"), (pa.array([b"a"], pa.binary(1)), "bytes"),
        (pa.array([1], pa.duration("s")), "durations"), (pa.array([b"a"], pa.large_binary()), "bytes"),
    ],
)  # fmt: skip
def test_what_a_column_holds_is_said_in_words(column, kind):
    with pytest.raises(ElastalogError, match=f"column `y` of `edge` is declared as symbol, but holds {kind}"):
        to_words(EDGE, pa.table({"x": [1], "y": column}), Dictionary())
