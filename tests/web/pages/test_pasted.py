"""What somebody pastes is read as lines or as JSON, with the types that its values have; colours can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the pages need the extra `web`")

import elastalog
from elastalog.analysis.program import Base
from elastalog.relations.schema import Column, Schema
from elastalog.web.pages.markup import prose
from elastalog.web.pages.program import read_pasted
from tests.tables import table

CSS = Path(elastalog.__file__).parent / "web" / "pages" / "assets" / "workbench.css"


@pytest.mark.parametrize(
    ("text", "declared", "rows"),
    [
        ("caller,calls\nweb,3\ncart,4", ".decl r(caller: symbol, calls: number)", [("web", 3), ("cart", 4)]),
        ("web,cart\ncart,prices\n", ".decl r(c1: symbol, c2: symbol)", [("web", "cart"), ("cart", "prices")]),
        ("a\t1.5\nb\t2\n", ".decl r(c1: symbol, c2: float)", [("a", 1.5), ("b", 2.0)]),
        ('1;"x;y"\n2;z', ".decl r(c1: number, c2: symbol)", [(1, "x;y"), (2, "z")]),
        ("007\n008", ".decl r(c1: symbol)", [("007",), ("008",)]),
        ('[{"a b": 1, "min": "x"}]', ".decl r(a_b: number, min_: symbol)", [(1, "x")]),
        ('{"a": 1}\n{"a": 2}\n', ".decl r(a: number)", [(1,), (2,)]),
        ('[["x", true], ["y", 2]]', ".decl r(c1: symbol, c2: symbol)", [("x", "true"), ("y", "2")]),
        (f"{1 << 64}\n1", ".decl r(c1: float)", [(float(1 << 64),), (1.0,)]),
    ],
)
def test_facts_are_read_as_they_are_pasted(text: str, declared: str, rows: list[tuple[object, ...]]) -> None:
    found = read_pasted(text)
    assert found.declaration("r") == declared
    assert list(found.rows) == rows
    with elastalog.open(declared, facts={"r": rows}) as db:
        assert len(db["r"]) == len(rows)


def test_the_user_says_whether_there_is_a_header() -> None:
    assert read_pasted("a,b\nc,d", True).rows == (("c", "d"),)
    assert read_pasted("a,b\n1,2", False).rows == (("a", "b"), ("1", "2"))


def test_where_all_are_texts_the_user_says_it_or_the_declaration_or_the_facts() -> None:
    text = "caller,callee\nweb,cart\ncart,prices"  # as the empty field shows it
    with pytest.raises(elastalog.ElastalogError, match=r"E0956\]: the first line, `caller, callee`, may be a fact"):
        read_pasted(text)
    assert read_pasted(text, True).columns == ("caller", "callee")
    assert read_pasted(text, None, ("Callee", "caller")).rows == (("web", "cart"), ("cart", "prices"))
    assert len(read_pasted(text, None, ("c1", "c2")).rows) == 3
    assert read_pasted("web,cart").rows == (("web", "cart"),)


@pytest.mark.parametrize("text", ["callee,caller\ncart,web", '[{"callee": "cart", "caller": "web"}]'])
def test_named_columns_are_never_swapped(text: str) -> None:
    calls = Schema("calls", (Column("caller", Base.SYMBOL), Column("callee", Base.SYMBOL)))
    assert read_pasted(text, None, calls.names).in_order_of(calls) == [("web", "cart")]
    assert read_pasted("web,cart\ncart,prices", None, calls.names).in_order_of(calls)[0] == ("web", "cart")


@pytest.mark.parametrize(("text", "why"), table(__file__, "what cannot be read says why"))
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(elastalog.ElastalogError) as caught:
        read_pasted(text, False)
    assert why in str(caught.value)
    assert caught.value.diagnostics[0].code == "E0956"


def test_backticks_are_code_and_everything_else_is_escaped() -> None:
    assert prose("no `a<b>` in <c>") == "no <code>a&lt;b&gt;</code> in &lt;c&gt;"
    assert prose("one ` alone") == "one ` alone"


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_ink_can_be_read_on_every_ground() -> None:
    text = CSS.read_text(encoding="utf-8")
    light, dark = (text.partition(f"\n{start} {{")[2].partition("\n}")[0] for start in (":root", "body.body--dark"))
    first: dict[str, str] = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    second = {**first, **dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark))}
    for colours in (first, second):
        inks = ("ink", "ink-soft", "ink-faint", "accent", "plus", "minus", "amber")
        pairs = [(ink, ground) for ink in inks for ground in ("paper", "surface", "sunken", "accent-soft")]
        pairs += [(ink, f"{ink}-soft") for ink in ("plus", "minus", "amber")] + [("accent-ink", "accent")]
        weak = [(*pair, round(_contrast(*(colours[name] for name in pair)), 2)) for pair in pairs]
        assert [found for found in weak if found[2] < 4.5] == []
