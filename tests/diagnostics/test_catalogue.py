from __future__ import annotations

import re
from pathlib import Path

import pytest
from click import Context

import elastalog.diagnostics
import elastalog.spark
from elastalog.cli.main import cli
from elastalog.diagnostics.catalogue import CATALOGUE, Entry, read_group
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.messages import FOLDER
from elastalog.diagnostics.source import Source
from elastalog.program import read_program_text
from elastalog.program.preprocessing import Preprocessing, preprocess
from elastalog.syntax.parser import parse

PACKAGE = Path(elastalog.diagnostics.__file__).parents[1]
SYNTAX = read_group("syntax")


def codes_in_use() -> set[str]:
    """Codes written in the package."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        found.update(re.findall(r'"(E\d{4})(?:\.\w+)?"', path.read_text(encoding="utf-8")))
    return found


def test_every_code_in_use_is_in_the_catalogue_and_every_entry_is_used() -> None:
    assert codes_in_use() == set(CATALOGUE)


def test_every_entry_teaches() -> None:
    for code, entry in CATALOGUE.items():
        assert code == entry.code
        assert re.fullmatch(r"E\d{4}", code)
        assert all((entry.title, entry.explanation, entry.example, entry.fix))
        assert entry.title[0].islower()
        assert entry.explanation.endswith(".")
        assert entry.example != entry.fix


def test_what_examples_call_is_there() -> None:
    for entry in CATALOGUE.values():
        for text in (entry.example, entry.fix):
            for module, name in re.findall(r"\belastalog\.(spark\.)?(\w+)\(", text):
                assert hasattr(elastalog.spark if module else elastalog, name), (entry.code, name)
            for name in re.findall(r"^(?:sudo )?elastalog ([a-z-]+)", text, re.MULTILINE):
                assert name in cli.list_commands(Context(cli)), (entry.code, name)
            for name in re.findall(r"\bdb\.(\w+)\(", text):
                assert hasattr(elastalog.Session, name), (entry.code, name)


def test_codes_belong_to_their_stage() -> None:
    assert all(entry.code.startswith("E01") for entry in SYNTAX)


@pytest.mark.parametrize("entry", SYNTAX, ids=lambda entry: entry.code)
def test_the_examples_of_syntax_errors_have_the_error_and_the_fixes_have_none(entry: Entry) -> None:
    if entry.code not in ("E0116", "E0117", "E0127"):  # too long to read, or several files
        assert entry.code in codes(Source("example.dl", entry.example))
    assert codes(Source("fix.dl", entry.fix)) == set()


def codes(source: Source) -> set[str]:
    try:
        whole = preprocess(source, Preprocessing(), read_program_text)
    except ElastalogError as error:
        return {found.code for found in error.diagnostics}
    return {found.code for found in parse(whole)[1]}


def test_no_code_is_given_twice() -> None:
    codes = [entry.code for path in FOLDER.glob("*.md") for entry in read_group(path.stem)]
    assert sorted(codes) == list(CATALOGUE)
