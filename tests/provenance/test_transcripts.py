"""The transcripts of the thesis, chapter 4: the same proofs, laid out by us."""

from __future__ import annotations

import pytest

from tests.provenance.databases import open_case

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
             vpt("userSession", "L4")"""

SETTINGS = [("elastic", "local"), ("elastic", "global"), ("recompute", "local")]


@pytest.mark.parametrize(("strategy", "levels"), SETTINGS)
def test_why_two_variables_are_aliases(strategy: str, levels: str) -> None:
    proof = open_case("pointer_analysis_thesis", strategy=strategy, levels=levels).explain(
        'alias("userSession", "ins")'
    )
    assert proof.to_text() == ALIAS
    assert proof.height == 3
    assert proof.rule is not None
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
    assert said["local"] == f"{PATH}\n\nheight 2, the least within each stratum\n\n{rules}"
    assert said["global"] == f"{PATH}\n\nheight 2, the least height of all proofs\n\n{rules}"


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
