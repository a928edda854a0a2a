from __future__ import annotations

import json
from html.parser import HTMLParser

import elastalog
from elastalog.provenance.proof import Proof

TEXT = """
.decl tag(x: symbol)
.decl shown(x: symbol)
.decl hidden(x: symbol)
shown(x) :- tag(x), !hidden(x), x != "a".
"""
NASTY = '<b>"&`#\\\n|'


def nasty_proof() -> Proof:
    return elastalog.open(TEXT, facts={"tag": [(NASTY,)]}).explain(("shown", (NASTY,)))


def test_a_tree() -> None:
    proof = elastalog.open(TEXT, facts={"tag": [("b",)]}).explain('shown("b")')
    assert proof.to_tree() == 'shown("b")  (R1)\n├─ tag("b")\n├─ !hidden("b")\n└─ "b" != "a"'


def test_json_is_a_table_of_nodes() -> None:
    shown = json.loads(nasty_proof().to_json())
    assert shown["height"] == 1
    assert [node["kind"] for node in shown["nodes"]] == ["fact", "fact", "negation", "constraint"]
    assert shown["nodes"][0]["values"] == [NASTY]
    assert shown["nodes"][0]["children"] == [1, 2, 3]
    assert shown["nodes"][1]["explicit"] is True


def test_values_that_json_does_not_have() -> None:
    text = ".decl a(x: float)\n.decl b(x: float)\nb(x / y) :- a(x), a(y)."
    db = elastalog.open(text, facts={"a": [(float("inf"),)]})
    (values,) = db["b"]
    nodes = json.loads(db.explain(("b", values)).to_json())["nodes"]
    assert nodes[0]["values"] == ["nan"]
    assert nodes[1]["values"] == ["inf"]


def test_dot_quotes_what_it_must() -> None:
    lines = nasty_proof().to_dot().splitlines()
    assert (lines[0], lines[-1]) == ("digraph proof {", "}")
    label = r'n1 [label="tag(\"<b>\\\"&`#\\\\\\n|\")"'
    assert lines[2].strip().startswith(label)
    assert '  n1 -> n0 [label="R1"];' in lines


def test_mermaid_has_entities_for_what_it_must_not_see() -> None:
    lines = nasty_proof().to_mermaid().splitlines()
    assert lines[0] == "flowchart TD"
    assert lines[2] == r'  n1["tag(#quot;#lt;b#gt;\#quot;&#96;#35;\\\n|#quot;)"]'
    assert '  n1 -->|"R1"| n0' in lines


def test_html_is_escaped_and_balanced() -> None:
    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.seen: set[str] = set()
            self.texts: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.open.append(tag)
            self.seen.add(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

        def handle_data(self, data: str) -> None:
            self.texts.append(data)

    reader = Reader()
    reader.feed(nasty_proof()._repr_html_())
    assert reader.open == []
    assert reader.seen == {"div", "details", "summary", "code", "small"}
    assert any("<b>" in text for text in reader.texts)


def test_text_that_is_too_wide_becomes_a_tree() -> None:
    long = "x" * 100
    proof = elastalog.open(TEXT, facts={"tag": [(long,)]}).explain(("shown", (long,)))
    assert str(proof).startswith(f'shown("{long}")  (R1)\n├─ ')
    assert "-----" in proof.to_text()


def test_a_rule_without_premises() -> None:
    proof = elastalog.open(".decl p(x: number)\np(2 + 3).").explain("p(5)")
    assert proof.height == 1
    assert proof.to_text() == "----(R1)\np(5)"
