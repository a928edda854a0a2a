"""Examples with answers found by hand: the thesis's, and those on which the printed procedures go wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import elastalog
from elastalog.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"
Rows = Mapping[str, Sequence[tuple[object, ...]]]


def nullary(*names: str) -> dict[str, list[tuple[()]]]:
    return {name: [()] for name in names}


def declared(rules: str, *names: str) -> str:
    return "".join(f".decl {name}()\n" for name in names) + rules + "\n"


def texts(answer: object) -> list[str]:
    return [str(element) for element in answer.elements]


def updated(program: str, before: Rows, inserted: Rows, deleted: Rows) -> Session:
    db = elastalog.open(program, facts=dict(before))
    db.apply(dict(inserted), dict(deleted))
    return db


@pytest.fixture
def thesis() -> Session:
    db = elastalog.open(EXAMPLES / "pointer_analysis_thesis.dl")
    db.apply({"assign": [("upgradedSession", "userSession")], "load": [("userSession", "admin", "session")]})
    return db


def test_the_example_of_the_thesis(thesis: Session) -> None:
    fault = 'alias("userSession", "sec")'
    culprit = ["+", ("load", ("userSession", "admin", "session"))]
    suggestion = thesis.suggest(unwanted=[fault])
    localisation = thesis.localise(unwanted=[fault])
    assert [list(element) for element in suggestion.elements] == [culprit]
    assert [list(element) for element in localisation.elements] == [culprit]
    assert suggestion.verified
    assert suggestion.minimum
    assert suggestion.bound == 1
    assert suggestion.epochs == (1, 2)
    assert suggestion.update_size == 2
    (proof,) = suggestion.proofs
    assert str(proof.fact) == fault
    assert 'load("userSession", "admin", "session")' in str(proof)
    assert str(suggestion) == (
        "undo 1 of 2 elements of epoch 2 (verified, minimum):\n"
        '  delete load("userSession", "admin", "session")\n'
        'side effects in the output: 5 facts disappear: -vpt("upgradedSession", "L2"), -vpt("userSession", "L2"),'
        ' -alias("sec", "upgradedSession"), -alias("sec", "userSession"), …\n'
        "to see them all: `db.preview(deleted=suggestion.delete)`"
    )  # fmt: skip


def test_a_suggestion_can_be_applied(thesis: Session) -> None:
    fault = ("alias", ("userSession", "sec"))
    changes = thesis.suggest(unwanted=[fault]).apply()
    assert thesis.epoch == 3
    assert fault[1] not in thesis["alias"]
    assert fault[1] in set(changes["alias"].deleted)


def test_smallest_although_a_fact_of_both_epochs_rests_on_an_insertion() -> None:
    """With the facts of the earlier epoch taken for granted, three removals would be suggested instead of one."""
    program = declared("u() :- a(). u() :- b(). f() :- u(), c(_).", *"uabf") + ".decl c(x: number)\n"
    with updated(program, nullary("a"), {**nullary("b"), "c": [(1,), (2,), (3,)]}, nullary("a")) as db:
        suggestion = db.suggest(unwanted=["f()"])
        assert texts(suggestion) == ["+b()"]
        assert suggestion.minimum


def test_parts_for_unwanted_and_for_missing_facts_interact() -> None:
    program = declared("u() :- a(). u() :- b(). f() :- b(). t() :- u(), c().", *"uabcft")
    with updated(program, nullary("a", "c"), nullary("b"), nullary("a", "c")) as db:
        suggestion = db.suggest(unwanted=["f()"], missing=["t()"])
        assert texts(suggestion) == ["-a()", "+b()", "-c()"]
        assert suggestion.minimum


def test_undoing_one_insertion_can_make_another_rule_fire() -> None:
    program = declared("f() :- b(). f() :- a(), !v(). v() :- b().", *"abvf")
    with updated(program, {}, nullary("a", "b"), {}) as db:
        suggestion = db.suggest(unwanted=["f()"])
        assert texts(suggestion) == ["+a()", "+b()"]
        assert suggestion.minimum


def test_a_localisation_of_a_mixture_must_show_all_faults_at_once() -> None:
    program = declared("u() :- a(). u() :- b(). f() :- u(), c(). m() :- a().", *"uabcfm")
    with updated(program, nullary("a"), nullary("b", "c"), nullary("a")) as db:
        localisation = db.localise(unwanted=["f()"], missing=["m()"])
        assert texts(localisation) == ["-a()", "+b()", "+c()"]
        assert localisation.minimum


def test_facts_that_support_each_other_in_a_circle_do_not_come_back() -> None:
    program = declared("p() :- q(). q() :- p(). p() :- a(). p() :- b().", *"pqab")
    with updated(program, nullary("a", "b"), {}, nullary("a", "b")) as db:
        suggestion = db.suggest(missing=["q()"])
        assert len(suggestion.elements) == 1
        assert suggestion.minimum


def test_many_alternatives_are_cut_at_their_narrowest_place() -> None:
    """Five stages, each with its own number of alternatives: the derivation graph is needed to see the narrowest."""
    stages = [4, 3, 2, 3, 4]
    names = [f"s{i}" for i in range(6)]
    rules = "s0(). " + " ".join(f"s{i + 1}() :- s{i}(), e{i}(_)." for i in range(5))
    program = declared("", *names) + "".join(f".decl e{i}(x: number)\n" for i in range(5)) + rules
    with updated(program, {}, {f"e{i}": [(k,) for k in range(n)] for i, n in enumerate(stages)}, {}) as db:
        suggestion = db.suggest(unwanted=["s5()"])
        assert texts(suggestion) == ["+e2(0)", "+e2(1)"]
        assert suggestion.minimum
        localisation = db.localise(unwanted=["s5()"])
        assert [element[:3] for element in texts(localisation)] == ["+e0", "+e1", "+e2", "+e3", "+e4"]


def test_an_aggregate_that_changes() -> None:
    program = """
    .decl e(x: number)
    .decl n(k: number)
    .decl many()
    n(k) :- k = count : { e(_) }.
    many() :- n(k), k > 2.
    """
    with updated(program, {"e": [(1,), (2,)]}, {"e": [(3,), (4,)]}, {"e": [(1,)]}) as db:
        suggestion = db.suggest(unwanted=["many()"])
        assert len(suggestion.elements) == 1
        assert suggestion.minimum
        localisation = db.localise(unwanted=["n(3)"], missing=["n(2)"])
        assert len(localisation.elements) == 1
        assert localisation.minimum


# --- the page of debugging prints what it says ------------------------------------------------------------------------


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "find-what-broke-it.md"


def test_the_page_prints_what_it_says() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    printed = StringIO()
    known: dict[str, object] = {}
    with redirect_stdout(printed):
        for block in blocks:
            exec(block, known)
    expected = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("# ")]
    assert printed.getvalue().splitlines() == expected
