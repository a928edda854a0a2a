from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Comment, Error, Keyword, Name, Number, String

from elastalog.syntax.highlight import DatalogLexer
from tests.syntax.test_fuzz import PROGRAM

LEXER = DatalogLexer(stripnl=False, ensurenl=False)


def kinds(text: str) -> dict[str, object]:
    return {part: kind for kind, part in LEXER.get_tokens(text)}


def test_names_of_the_lexer() -> None:
    assert DatalogLexer.name == "Elastalog"
    assert DatalogLexer.aliases == ["elastalog", "datalog-souffle"]
    assert DatalogLexer.filenames == ["*.dl"]


def test_each_kind_of_token() -> None:
    found = kinds(
        '.decl p(x: number) btree // c\np(x) :- q(y), z = count : { r(_) }, "s\\n" = cat(y, 0x1f), 1.5 < 7u, true.'
    )
    assert found[".decl"] is Keyword.Declaration
    assert found["number"] is Keyword.Type
    assert found["btree"] is Keyword.Pseudo
    assert found["// c"] is Comment.Single
    assert found["q"] is Name.Function
    assert found["y"] is Name.Variable
    assert found["count"] is Name.Builtin
    assert found["s"] is String.Double
    assert found["\\n"] is String.Escape
    assert found["0x1f"] is Number.Hex
    assert found["1.5"] is Number.Float
    assert found["7u"] is Number.Integer
    assert found["true"] is Keyword.Constant


def test_a_valid_program_has_no_error_tokens() -> None:
    assert [part for kind, part in LEXER.get_tokens(PROGRAM) if kind is Error] == []


@given(st.text().map(lambda text: text.replace("\r", "")))
def test_no_character_is_lost(text: str) -> None:
    assert "".join(part for _, part in LEXER.get_tokens(text)) == text.removeprefix("\ufeff")
