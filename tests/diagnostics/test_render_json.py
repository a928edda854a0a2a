from __future__ import annotations

import json

from elastalog.diagnostics.diagnostic import Diagnostic, Label, render_json
from elastalog.diagnostics.source import Source, Span


def test_an_empty_list() -> None:
    assert json.loads(render_json([])) == []


def test_every_field() -> None:
    source = Source("a.dl", "p(x) :-\n q(y).\n")
    labels = (Label(Span(9, 13), "here"), Label(Span(2, 10), "there", False))
    diagnostic = Diagnostic("E0110", "message", labels, ("one", "two"), "help", "warning", source)
    assert json.loads(render_json([diagnostic])) == [
        {
            "code": "E0110",
            "severity": "warning",
            "message": "message",
            "location": None,
            "labels": [
                {
                    "file": "a.dl",
                    "line": 2,
                    "column": 2,
                    "end_line": 2,
                    "end_column": 6,
                    "text": "here",
                    "primary": True,
                },
                {
                    "file": "a.dl",
                    "line": 1,
                    "column": 3,
                    "end_line": 2,
                    "end_column": 3,
                    "text": "there",
                    "primary": False,
                },
            ],
            "notes": ["one", "two"],
            "help": "help",
        }
    ]


def test_a_place_outside_program_texts() -> None:
    (entry,) = json.loads(render_json([Diagnostic("E0500", "bad row", location="edge.facts:17")]))
    assert (entry["location"], entry["labels"], entry["help"]) == ("edge.facts:17", [], None)


def test_lone_surrogates_do_not_break_the_output() -> None:
    render_json([Diagnostic("E0101", "\ud800")]).encode("utf-8")
