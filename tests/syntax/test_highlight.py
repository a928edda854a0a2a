from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Comment, Error, Keyword, Name, Number, String

from elastalog.syntax.highlight import DatalogLexer
from tests.syntax.test_fuzz import PROGRAM

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted({*ROOT.glob("examples/**/*.dl"), *ROOT.glob("tests/programs/**/*.dl")})
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


def test_the_rest_of_the_language() -> None:
    found = kinds(
        '#include "a.dl"\n#define N \\\n 3\n.comp C<T> : B<T> { .init inner = D .override hidden }\n'
        ".type Tree = Leaf {} | Fork {l: number}\n.functor weigh(x: number): number stateful\n"
        ".decl s(x: number) choice-domain x\n"
        's($Node, @heavy(1)) :- inside.far(as(y, number)), z <= 3. .pragma "arithmetic" "wrap"\n.once'
    )
    assert found["#include"] is Comment.Preproc
    assert found['"a.dl"'] is Comment.PreprocFile
    assert found["#define N \\\n 3"] is Comment.Preproc
    assert found[".comp"] is found[".override"] is found[".pragma"] is Keyword.Declaration
    assert found["C"] is found["inner"] is found["Tree"] is Name.Class
    assert found["Fork"] is found["Node"] is Name.Constant
    assert found["weigh"] is found["heavy"] is Name.Function.Magic
    assert found["choice-domain"] is found["stateful"] is Keyword.Pseudo
    assert found["inside"] is Name.Namespace
    assert found["far"] is Name.Function
    assert found["as"] is Keyword
    assert found[".once"] is Comment.Preproc


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_program_of_the_repository_has_no_error_tokens(path: Path) -> None:
    assert [part for kind, part in LEXER.get_tokens(path.read_text(encoding="utf-8")) if kind is Error] == []


def test_a_valid_program_has_no_error_tokens() -> None:
    assert [part for kind, part in LEXER.get_tokens(PROGRAM) if kind is Error] == []


@given(st.text().map(lambda text: text.replace("\r", "")))
def test_no_character_is_lost(text: str) -> None:
    assert "".join(part for _, part in LEXER.get_tokens(text)) == text.removeprefix("\ufeff")
