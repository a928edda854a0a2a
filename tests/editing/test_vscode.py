"""The extension for VS Code is well-formed, and its grammar knows the words of the language: all of them, no others."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elastalog.syntax.keywords import AGGREGATES, CONSTRAINTS, DIRECTIVES, FUNCTORS, QUALIFIERS

HERE = Path(__file__).resolve().parents[2] / "editors" / "vscode"


def read(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def words(scope: str) -> set[str]:
    """The words of the group in the pattern that gives a scope."""
    pattern = next(
        rule["match"] for rule in read("syntaxes/elastalog.tmLanguage.json")["patterns"] if rule.get("name") == scope
    )
    group = re.search(r"\(\?:([A-Za-z_|-]+)\)", pattern)
    assert group is not None
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
