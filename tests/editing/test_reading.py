"""Readings of programs, whole and half-written; places in files and in the program; the extension for VS Code is
well-formed, and its grammar knows the words of the language: all of them, no others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastalog.diagnostics.source import Source
from elastalog.editing.complete import complete
from elastalog.editing.hover import coloured, hover, outline
from elastalog.editing.repairs import repairs
from elastalog.editing.scopes import Kind, offset, position
from elastalog.syntax.keywords import AGGREGATES, CONSTRAINTS, DIRECTIVES, FUNCTORS, QUALIFIERS
from tests.editing.marked import Files

PROGRAM = """.type Node <: symbol
.type Tree = Leaf {} | Fork {left: Tree, right: Tree}
.functor weigh(x: symbol): number
.comp Graph<T> {
    .decl edge(from: T, to: T)
    .decl path(from: T, to: T) overridable
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
}
.comp Weighted<T> : Graph<T> {
    .override path
    path(x, y) :- edge(x, y), x != y.
}
.init roads = Graph<Node>
.init rails = Weighted<Node>
.input roads.edge
.decl heavy(node: Node, weight: number, shape: Tree)
heavy(n, @weigh(n), $Fork($Leaf, $Leaf)) :- roads.path(n, _), m = count : { rails.edge(n, _) }, m > 1.
.output heavy
"""


def test_a_sound_program_is_read_whole() -> None:
    reading = Files(main=PROGRAM).reading()
    assert [found.message for found in reading.diagnostics if found.severity == "error"] == []
    assert reading.program is not None
    kinds = {each.symbol.kind for each in reading.occurrences}
    assert kinds == set(Kind)


def test_every_name_is_where_it_says(tmp_path: Path) -> None:
    reading = Files(main=PROGRAM).reading()
    for each in reading.occurrences:
        assert reading.source.text[slice(*each.span)] == each.symbol.name


def test_a_missing_file_is_a_finding() -> None:
    reading = Files(main='#include "gone.dl"\n.decl p(x: number)\np(1).').reading()
    assert [found.code for found in reading.diagnostics] == ["E0125"]
    assert reading.program is None
    assert [entry.name for entry in outline(reading, reading.file)] == ["p"]


def test_a_file_that_cannot_be_read_is_a_finding() -> None:
    reading = Files().reading("none")
    assert [found.code for found in reading.diagnostics] == ["E0230"]
    assert reading.occurrences == ()


def test_findings_of_planning_are_among_them() -> None:
    text = (
        ".decl e(x: number, y: number)\n.input e\n.decl p(x: number)\n"
        "p(x) :- e(x, _).\np(y) :- p(x), y = sum z : { e(x, z) }, y < 5.\n.output p\n"
    )
    assert Files(main=text).reading().program is not None


def _asked_everywhere(text: str) -> None:
    files = Files(main=text)
    reading = files.reading()
    source = Source(reading.file, text)
    for at in range(0, len(text) + 1, 3):
        hover(reading, reading.file, at)
        complete(reading, source, at)
    outline(reading, reading.file)
    coloured(reading, reading.file)
    for found in reading.diagnostics:
        repairs(reading, found)


@pytest.mark.parametrize("cut", range(0, len(PROGRAM), 37))
def test_half_a_program_is_no_fault_of_ours(cut: int) -> None:
    _asked_everywhere(PROGRAM[:cut])
    _asked_everywhere(PROGRAM[cut:])


@given(
    st.lists(st.sampled_from([*PROGRAM.split(" "), ".", "(", "{", "}", '"', "$", "@", "/*", "\n#if 1\n"])).map(" ".join)
)
def test_any_text_can_be_asked_about(text: str) -> None:
    _asked_everywhere(text[:200].replace("^", ""))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@given(text=st.text(alphabet="aä\U0001f600\n\f\u2028 x"), data=st.data())
def test_positions_come_back(encoding: str, text: str, data: st.DataObject) -> None:
    source = Source("x.dl", text)
    at = data.draw(st.integers(0, len(text)))
    assert offset(source, *position(source, at, encoding), encoding) == at


def test_columns_are_counted_as_editors_do() -> None:
    source = Source("x.dl", 'a\np("ä😀", x)\n')
    at = source.text.index("x)")
    assert position(source, at, "utf-16") == (1, 9)
    assert position(source, at, "utf-8") == (1, 12)
    assert position(source, at, "utf-32") == (1, 8)
    assert offset(source, 99, 0) == len(source.text)
    assert offset(source, 0, 99) == 1


def test_the_files_of_a_program_are_known() -> None:
    files = Files(main='.include "types.dl"\n.decl p(x: T)\n', types=".type T <: number\n")
    assert {os.path.basename(file) for file in files.reading().files} == {"main.dl", "types.dl"}


HERE = Path(__file__).resolve().parents[2] / "editors" / "vscode"


def read(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def words(scope: str) -> set[str]:
    """The words of the group in the pattern that gives a scope."""
    pattern = next(
        rule["match"] for rule in read("syntaxes/elastalog.tmLanguage.json")["patterns"] if rule.get("name") == scope
    )
    group = re.search(r"\(\?:([A-Za-z_|-]+)\)", pattern)
    return set(group[1].split("|"))


def test_files_that_the_extension_names_are_there() -> None:
    package = read("package.json")
    contributed = package["contributes"]
    named = [package["main"], contributed["grammars"][0]["path"], contributed["languages"][0]["configuration"]]
    assert all((HERE / name).is_file() for name in named)
    assert contributed["grammars"][0]["scopeName"] == read("syntaxes/elastalog.tmLanguage.json")["scopeName"]
    assert read("language-configuration.json")["comments"]["lineComment"] == "//"


def test_the_grammar_knows_the_words_of_the_language() -> None:
    assert words("keyword.declaration.elastalog") == set(DIRECTIVES)
    assert words("support.function.elastalog") == FUNCTORS | AGGREGATES | CONSTRAINTS
    assert words("storage.modifier.elastalog") == {*QUALIFIERS, "choice-domain", "stateful"}
    assert words("constant.language.elastalog") == {"true", "false", "nil"}


def test_every_pattern_is_a_regular_expression() -> None:
    grammar = read("syntaxes/elastalog.tmLanguage.json")
    rules = [*grammar["patterns"], *grammar["repository"]["comments"]["patterns"]]
    patterns = [rule[key] for rule in rules for key in ("match", "begin", "end") if key in rule]
    assert len(patterns) > 15
    for pattern in patterns:
        re.compile(pattern)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_extension_is_javascript() -> None:
    checked = subprocess.run(["node", "--check", HERE / "extension.js"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
