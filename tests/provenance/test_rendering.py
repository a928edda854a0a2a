from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import elastalog
from elastalog.provenance.proof import Proof
from tests.commands import run
from tests.provenance.databases import open_case

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


SHARED = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl both(x: number)
.decl total(n: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y),  // a step
              path(y, z).
both(x) :- path(x, 3), path(x, 3).
total(n) :- n = count : { edge(_, _) }.
"""


def shared() -> elastalog.Session:
    return elastalog.open(SHARED, facts={"edge": [(1, 2), (2, 3), (5, 6), (6, 7), (7, 8)]})


def test_a_rule_tells_its_text_and_its_line() -> None:
    proof = shared().explain("path(1, 3)")
    assert proof.rule.text == "path(x, z) :- edge(x, y), path(y, z)."
    assert (proof.rule.line, proof.rule.place) == (7, "<text>:7")
    assert str(proof).splitlines()[-2:] == [
        "R1: path(x, y) :- edge(x, y).  (<text>:6)",
        "R2: path(x, z) :- edge(x, y), path(y, z).  (<text>:7)",
    ]
    assert json.loads(proof.to_json())["rules"][1]["text"] == proof.rule.text


def test_equal_sub_proofs_are_shown_once() -> None:
    proof = shared().explain("both(1)")
    assert proof.to_tree() == (
        "both(1)  (R1)\n"
        "├─ path(1, 3)  (R2)\n"
        "│  ├─ edge(1, 2)\n"
        "│  └─ path(2, 3)  (R1)\n"
        "│     └─ edge(2, 3)\n"
        "└─ path(1, 3)  (R2, as above)"
    )
    assert proof.to_html().count("edge(2, 3)") == 1


def test_of_an_aggregate_the_first_members_are_shown() -> None:
    proof = shared().explain("total(5)")
    lines = proof.to_tree().splitlines()
    assert lines[1] == "└─ count : { edge(_, _) } = 5  (5 members)"
    assert lines[-1] == "   └─ … 2 more"
    assert str(proof).startswith(proof.to_tree())
    assert "<details><summary><code>count" in proof.to_html()


def test_a_page_is_whole_and_a_piece_is_not() -> None:
    db = shared()
    for shown in (db.explain("path(1, 3)"), db.why_not("path(3, 1)")):
        page, piece = shown.to_html(page=True), shown.to_html()
        assert shown._repr_html_() == piece
        assert piece in page
        assert "<html" not in piece
        assert page.startswith("<!DOCTYPE html>")
        for part in ('<meta charset="utf-8">', "@media print", "</html>", "<details", "&lt;text&gt;:7"):
            assert part in page
    assert "<title>Why path(1, 3) holds</title>" in db.explain("path(1, 3)").to_html(page=True)
    assert "<title>Why path(3, 1) does not hold</title>" in page


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(SHARED + "edge(1, 2).\n", encoding="utf-8")
    arguments = ["explain", str(tmp_path / "p.dl"), "path(1, 2)", "--format", "html", "-F", str(tmp_path)]
    result = run(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith("<!DOCTYPE html>")
    assert "p.dl:6" in result.stdout


def test_branches_records_and_nil_have_a_json_form() -> None:
    program = """
    .type Tree = Leaf { x: number } | Node { l: Tree, r: Tree }
    .type List = [head: number, tail: List]
    .decl kept(t: Tree, l: List)
    kept($Node($Leaf(1), $Leaf(2)), [1, nil]).
    .decl copy(t: Tree, l: List)
    copy(t, l) :- kept(t, l).
    """
    with elastalog.open(program) as db:
        shown = json.loads(db.explain("copy($Node($Leaf(1), $Leaf(2)), [1, nil])").to_json())
    assert shown["fact"]["values"] == ["$Node($Leaf(1), $Leaf(2))", [1, None]]


def test_rules_of_several_relations_have_different_names_in_the_legend() -> None:
    text = ".decl a(x: number)\n.decl b(x: number)\n.decl c(x: number)\na(1).\nb(x) :- a(x).\nc(x) :- b(x).\n"
    with elastalog.open(text) as db:
        assert str(db.explain("c(1)")).endswith("b.R1: b(x) :- a(x).  (<text>:5)\nc.R1: c(x) :- b(x).  (<text>:6)")


# --- the transcripts of the thesis, chapter 4: the same proofs, laid out by us ----------------------------------------


ALIAS = """\
                               new("ins", "L3")
                               ----------------(R1)
assign("userSession", "ins")   vpt("ins", "L3")           new("ins", "L3")
---------------------------------------------------(R2)   ----------------(R1)
             vpt("userSession", "L3")                     vpt("ins", "L3")       "userSession" != "ins"   "L3" != "nullptr"
---------------------------------------------------------------------------------------------------------------------------(R1)
                                                alias("userSession", "ins")"""  # noqa: E501

PATH = """\
                edg("b", "c")   edg("c", "d")   !edg("b", "d")   "b" != "d"
                -----------------------------------------------------------(R1)
edg("a", "b")                         path2("b", "d")                             !edg("a", "d")   "a" != "d"
-------------------------------------------------------------------------------------------------------------(R2)
                                               path2("a", "d")"""

ABSENT = """\
vpt("userSession", "L4") does not hold; nearest derivations that fail:

assign("userSession", "ins") ✓   vpt("ins", "L4") X
---------------------------------------------------(R2)
             vpt("userSession", "L4")

To see why vpt("ins", "L4") does not hold, ask with a greater `depth` (as an option: `--depth`, in the shell: \
`setdepth`)."""

SETTINGS = [("elastic", "local"), ("elastic", "global"), ("recompute", "local")]


@pytest.mark.parametrize(("strategy", "levels"), SETTINGS)
def test_why_two_variables_are_aliases(strategy: str, levels: str) -> None:
    proof = open_case("pointer_analysis_thesis", strategy=strategy, levels=levels).explain(
        'alias("userSession", "ins")'
    )
    assert proof.to_text() == ALIAS
    assert proof.height == 3
    assert (proof.rule.number, proof.rule.number_in_relation) == (4, 1)


@pytest.mark.parametrize(("strategy", "levels"), SETTINGS)
def test_why_there_is_a_path_of_two(strategy: str, levels: str) -> None:
    proof = open_case("path2", strategy=strategy, levels=levels).explain('path2("a", "d")')
    assert proof.to_text() == PATH
    assert proof.height == 2


def test_the_proof_says_in_which_sense_it_is_the_best() -> None:
    said = {levels: str(open_case("path2", levels=levels).explain('path2("a", "d")')) for levels in ("local", "global")}
    rules = (
        "R1: path2(X, Z) :- edg(X, Y), edg(Y, Z), !edg(X, Z), X != Z.  (program.dl:6)\n"
        "R2: path2(X, Z) :- edg(X, Y), path2(Y, Z), !edg(X, Z), X != Z.  (program.dl:7)"
    )
    assert said["local"] == f"{PATH}\n\nheight 2, each recursive part as low as possible\n\n{rules}"
    assert said["global"] == f"{PATH}\n\nheight 2, the lowest of all its proofs\n\n{rules}"


def test_a_given_fact_of_a_relation_with_rules_is_said_to_be_given() -> None:
    program = ".decl e(x: number)\n.decl p(x: number)\np(x + 1) :- p(x), e(x).\np(1). e(1)."
    with elastalog.open(program) as db:
        assert db.explain("p(2)").to_text() == "p(1) [given]   e(1)\n-------------------(R1)\n       p(2)"
        assert str(db.explain("p(1)")) == "p(1) [given]\n\nan explicit fact: it was given, and needs no rule"


def test_the_guided_explanation_of_an_absent_fact() -> None:
    db = open_case("pointer_analysis_thesis")
    assert str(db.why_not('vpt("userSession", "L4")', rule=2, bindings={"Var2": "ins"})) == ABSENT


def test_the_automatic_explanation_finds_the_instantiation_of_the_thesis_first() -> None:
    absence = open_case("pointer_analysis_thesis").why_not('vpt("userSession", "L4")')
    marked = [[(literal.text, literal.mark) for literal in found.literals] for found in absence.instantiations]
    assert marked[0] == [('assign("userSession", "ins")', "✓"), ('vpt("ins", "L4")', "X")]
    assert marked[1] == [('new("userSession", "L4")', "X")]
    assert {found.rule.number_in_relation for found in absence.instantiations} == {1, 2, 3}
    assert absence.is_exhaustive


def test_the_other_example_of_the_thesis() -> None:
    db = open_case("pointer_analysis_thesis")
    (found,) = db.why_not('vpt("sec", "L3")', rule=2, bindings={"Var2": "ins"}).instantiations
    assert [(literal.text, literal.status) for literal in found.literals] == [
        ('assign("sec", "ins")', "fails"),
        ('vpt("ins", "L3")', "holds"),
    ]


def test_every_form_for_people_says_that_a_search_was_cut_short() -> None:
    absence = open_case("pointer_analysis_thesis").why_not('vpt("userSession", "L4")')
    told = "The search was cut short: there may be nearer ones."
    for form in ("to_text", "to_tree", "to_html"):
        assert told not in getattr(absence, form)()
        assert told in getattr(replace(absence, is_exhaustive=False), form)()


def test_alternatives_of_one_rule_show_their_own_in_the_legend() -> None:
    program = ".decl a(x: number)\n.decl b(x: number)\n.decl c(x: number)\na(1). b(2).\nc(x) :- (a(x); b(x)).\n"
    program += ".decl d(x: number, y: number)\nd(x, y) :- c(x), c(y), x < y."
    with elastalog.open(program) as db:
        assert "c.R1: c(x) :- a(x).  " in str(db.explain("d(1, 2)"))
        assert "c.R2: c(x) :- b(x).  " in str(db.explain("d(1, 2)"))
        assert "R2: c(x) :- (a(x); b(x)).  " in str(db.explain("c(2)"))
