"""Records and algebraic data types: random programs, values in and out, stores, limits, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import elastalog
from elastalog import Branch
from elastalog.analysis.program import Base
from elastalog.analysis.values import NIL, Record
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.relations.words import Dictionary
from tests.engine.judging import facts_of
from tests.refusals import refused

TYPES = """
.type Pair = [x: number, name: symbol]
.type List = [head: number, tail: List]
.type Shape = Circle {r: float} | Box {a: unsigned, inside: List} | None_ {}
.decl pair(p: Pair)
.decl list(l: List)
.decl shape(s: Shape)
"""


def test_python_values_go_in_and_come_out() -> None:
    shapes = [(Branch("Circle", 1.5),), (Branch("Box", 2**63, (1, (2, None))),), (Branch("None_"),)]
    with elastalog.open(
        TYPES, facts={"pair": [((1, "a"),), (None,)], "list": [((1, (2, None)),)], "shape": shapes}
    ) as db:
        assert set(db["pair"]) == {((1, "a"),), (None,)}
        assert set(db["list"]) == {((1, (2, None)),)}
        assert set(db["shape"]) == set(shapes)
        assert ((1, "a"),) in db["pair"]
        assert ((1, "b"),) not in db["pair"]
        assert (Branch("None_"),) in db["shape"]
        assert str(Branch("Box", 1, (1, None))) == "$Box(1, [1, nil])"
        db.apply({"pair": [("[7, x y]",), ({"x": 8, "name": "z"},)]})
        assert {((7, "x y"),), ((8, "z"),)} <= set(db["pair"])


def test_arrow_has_structs_and_the_text_of_recursive_types() -> None:
    with elastalog.open(TYPES, facts={"pair": [((1, "a"),), (None,)], "list": [((1, (2, None)),)]}) as db:
        table = db["pair"].to_arrow()
        assert table.schema.field("p").type == pa.struct([("x", pa.int64()), ("name", pa.string())])
        assert sorted(table["p"].to_pylist(), key=str) == [None, {"x": 1, "name": "a"}]
        assert db["list"].to_arrow()["l"].to_pylist() == ["[1, [2, nil]]"]
        with elastalog.open(TYPES, facts={"pair": table, "list": db["list"].to_arrow()}) as other:
            assert facts_of(other) == facts_of(db)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_files_are_read_as_they_are_written(suffix: str, tmp_path: Path) -> None:
    directives = "".join(
        f'.{kind} {name}(filename="{name}.{suffix}")\n'
        for name in ("pair", "list", "shape")
        for kind in ("input", "output")
    )
    facts = {
        "pair": [((1, 'a, "b"]'),), ((2, "nil"),), ((3, ""),), (None,)],
        "list": [((1, (2, None)),)],
        "shape": [(Branch("Circle", 0.1),), (Branch("Box", 1, None),), (Branch("None_"),)],
    }
    from elastalog.pipeline.files.write import write_output

    with elastalog.open(TYPES, facts=facts) as db:
        program = elastalog.Program.parse(TYPES + directives)
        for name in db:
            write_output(program.checked.relations[name], db[name].to_arrow(), tmp_path)
        with elastalog.open(program, facts=tmp_path) as read:
            assert facts_of(read) == facts_of(db)


def test_a_store_keeps_records(tmp_path: Path) -> None:
    text = TYPES + "list([x + 1, l]) :- list(l), l = [x, _], x < 4.\n"
    with elastalog.open(text, store=tmp_path / "db", facts={"list": [((1, None),)]}) as db:
        db.apply({"pair": [((1, "a"),)]})
        kept = facts_of(db)
    with elastalog.open(store=tmp_path / "db") as db:
        assert facts_of(db) == kept
        db.apply({}, {"list": [((1, None),)]})
        assert set(db["list"]) == set()


@pytest.mark.parametrize(
    ("relation", "value"),
    [
        ("pair", (1, 2)), ("pair", (1, "a", 2)), ("pair", 5), ("pair", Branch("Circle", 1.0)), ("pair", "[1, a"),
        ("list", (1, 2)), ("shape", None), ("shape", Branch("Circle")), ("shape", Branch("Box", -1, None)),
        ("shape", Branch("Other")), ("pair", (True, "a")), ("pair", {"x": 1}),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_a_located_fault(relation: str, value: object) -> None:
    with elastalog.open(TYPES) as db, refused("E0502", told=f"`{relation}`"):
        db.apply({relation: [(value,)]})


def test_unbounded_construction_is_stopped_by_a_limit_that_names_the_rule() -> None:
    text = ".type L = [n: number, l: L]\n.decl l(l: L)\nl(nil).\nl([1, x]) :- l(x).\n"
    with pytest.raises(ElastalogError) as raised:
        elastalog.open(text, limits=elastalog.Limits(time=0.5))
    assert "rule 1 builds values in recursion" in str(raised.value)


def test_words_are_equal_when_the_parts_are_whatever_the_order_of_their_making() -> None:
    dictionary = Dictionary()
    one = Record((1, Record((2, NIL), (Base.NUMBER, Base.RECORD))), (Base.NUMBER, Base.RECORD))
    word = dictionary.encode_value(Base.RECORD, one)
    assert dictionary.encode_value(Base.RECORD, one) == word
    assert dictionary.decode_value(Base.RECORD, word) == one
    number, unsigned = (Record((1,), (base,)) for base in (Base.NUMBER, Base.UNSIGNED))
    assert dictionary.encode_value(Base.RECORD, number) != dictionary.encode_value(Base.RECORD, unsigned)
    assert dictionary.find_value(Base.RECORD, Record((5,), (Base.NUMBER,))) is None
    negative = Record((-7, "x"), (Base.NUMBER, Base.SYMBOL))
    assert dictionary.decode_value(Base.RECORD, dictionary.encode_value(Base.RECORD, negative)) == negative


def test_a_long_list_is_no_deep_recursion() -> None:
    rules = "l(0, nil).\nl(n + 1, [n, x]) :- l(n, x), n < 1500.\n"
    text = ".type L = [n: number, l: L]\n.decl l(n: number, l: L)\n.decl last(l: L)\nlast(x) :- l(1500, x).\n" + rules
    with elastalog.open(text) as db:
        assert len(db["l"]) == 1501
        assert len(db["last"].to_arrow()) == 1
        ((found,),) = db["last"]
        for n in reversed(range(1500)):
            assert found[0] == n
            found = found[1]
        assert found is None


def test_whole_floats_in_the_text_of_records_are_floats(tmp_path: Path) -> None:
    program = ".type Box = Full {v: float}\n.type Pair = [a: float, b: Pair]\n.decl r(x: Box, y: Pair)\n"
    values = (1e16, -1e16, 2.0**53 + 2, 1e15, 1e22, 123456789012345678.0)
    rows = {(Branch("Full", value), (value, (value, None))) for value in values}
    with elastalog.open(program, {"r": list(rows)}) as db:
        table = db["r"].to_arrow()
        with elastalog.open(program, {"r": table}) as back:
            assert set(back["r"]) == rows
    (tmp_path / "r.facts").write_text("$Full(10000000000000000)\t[10000000000000000, nil]\n", encoding="utf-8")
    with elastalog.open(f"{program}.input r\n", tmp_path) as db:
        assert list(db["r"]) == [(Branch("Full", 1e16), (1e16, None))]
