"""The messages in `errors/`, and the calls that name them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import error, finding
from elastalog.diagnostics.messages import counted, fields_in, messages, quoted
from elastalog.diagnostics.source import Label, Span

KEY = re.compile(r"E\d{4}(\.\w+)?")
GIVEN_TO_ALL = {"code", "severity", "source", "location"}


def calls() -> Iterator[tuple[list[str], set[str]]]:
    """The keys and the names of the values of every call that makes a diagnostic of a message."""
    for path in Path(elastalog.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and not any(isinstance(inner, ast.JoinedStr) for inner in call.args):
                first = [
                    part.value for arg in call.args[:2] for part in ast.walk(arg) if isinstance(part, ast.Constant)
                ]
                keys = [key for key in first if isinstance(key, str) and KEY.fullmatch(key) and key in messages()]
                names = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
                if keys and not names & {"help", "notes", "labels", "advice"} - fields_of(keys[0]):
                    yield keys, names


def fields_of(key: str) -> set[str]:
    message = messages()[key]
    texts = (message.text, *(text for _, text in message.labels), *message.notes, *message.helps)
    return set().union(*map(fields_in, texts))


def test_every_key_in_use_has_a_message_and_every_message_is_used() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(elastalog.__file__).parent.rglob("*.py")]
    used = {key for text in texts for key in re.findall(r'"(E\d{4}\.\w+)"', text)}
    assert used == {key for key in messages() if "." in key}


def test_every_value_given_is_one_that_a_message_names() -> None:
    unknown = [(keys, names - GIVEN_TO_ALL - set().union(*map(fields_of, keys))) for keys, names in calls()]
    assert [each for each in unknown if each[1]] == []


def test_labels_get_the_places_in_order_and_none_leaves_one_out() -> None:
    found = finding("E0312", Span(1, 2), None, Label(Span(5, 6), "more"), name="x", one="A", other="B")
    assert found.message == "`x` would be a `A` and a `B`"
    assert found.labels == (Label(Span(1, 2), "a `B` here"), Label(Span(5, 6), "more"))


def test_help_is_the_first_that_names_nothing_missing() -> None:
    assert finding("E0203", Span(0, 1), name="int", near=None, here="number").help == ("the type is called `number`")
    assert finding("E0203", Span(0, 1), name="T").help == "declare it, for example `.type T <: symbol`"


def test_a_message_without_a_value_that_it_must_have_is_refused() -> None:
    with pytest.raises(KeyError, match="name"):
        error("E0203", Span(0, 1))


def test_names_are_cut_and_things_counted() -> None:
    assert quoted("x" * 61) == "`" + "x" * 57 + "…`"
    assert (counted(1, "fact"), counted(2000, "fact")) == ("1 fact", "2,000 facts")
