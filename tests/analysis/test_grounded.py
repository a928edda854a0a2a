from __future__ import annotations

import pytest

import elastalog
from tests.analysis.checking import EDGES, accepted, check_text, labelled, only_error
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.tables import table


def test_ungrounded_variable_shows_every_use() -> None:
    error = only_error(EDGES + "path(x, y) :- edge(x, _), x < y.")
    assert (error.code, error.message) == ("E0320", "variable `y` is not grounded")
    assert labelled(error) == [("y", "its value is needed here", True), ("y", "and here", False)]


@pytest.mark.parametrize(("body", "variable"), table(__file__, "ungrounded"))
def test_ungrounded(body: str, variable: str) -> None:
    error = only_error(EDGES + f"path(x, y) :- {body}.")
    assert (error.code, error.message) == ("E0320", f"variable `{variable}` is not grounded")


@pytest.mark.parametrize("body", table(__file__, "grounded"))
def test_grounded(body: str) -> None:
    accepted(EDGES + f"path(x, y) :- {body}.")


def test_target_must_be_grounded_inside() -> None:
    error = only_error(EDGES + "path(x, n) :- edge(x, _), n = sum x : { edge(_, _) }.")
    assert error.code == "E0323"
    assert labelled(error) == [("x", "its value is needed here", True)]


def test_null_is_no_value() -> None:
    assert str(only_error(EDGES + "path(x, y) :- edge(x, y), y != NULL.").help).startswith("there is no null")


def test_every_alternative_must_ground() -> None:
    assert only_error(EDGES + "path(x, y) :- edge(x, _), (edge(x, y) ; x > 1).").code == "E0320"


@pytest.mark.parametrize(("rule", "where"), table(__file__, "wildcard where a value is needed"))
def test_wildcard_where_a_value_is_needed(rule: str, where: str) -> None:
    error = only_error(EDGES + rule)
    assert (error.code, error.message) == ("E0321", f"`_` has no value in {where}")


@pytest.mark.parametrize(
    ("rule", "advice"),
    [
        ("p([x, _]) :- edge(x, _).", "name a variable here and bind it in a positive atom"),
        ("path(x, x) :- edge(x, _), !p([x, _]).", "take the value apart in a rule of its own, and negate what that"),
        ("path(x, x) :- edge(x, _), !p([x, _]), p([_, _]).", "take the value apart in a rule of its own, and negate"),
    ],
)
def test_wildcard_in_a_record_that_is_built(rule: str, advice: str) -> None:
    error = only_error(EDGES + ".type P = [x: number, y: number]\n.decl p(r: P)\n.input p\n" + rule)
    assert (error.code, error.message) == ("E0321", "`_` has no value in a record that is built")
    assert error.help.startswith(advice)
    assert labelled(error) == [("_", "a value is needed here", True)]


def test_chain_of_equations_in_the_wrong_order_is_quick() -> None:
    chain = ", ".join(f"v{i} = v{i + 1} + 1" for i in range(255))
    program, _ = check_text(EDGES + f"path(v0, v255) :- {chain}, edge(v255, _).")
    assert program is not None


@pytest.mark.parametrize("rule", table(__file__, "wildcards ranges and aggregates mean what the judge says"))
def test_wildcards_ranges_and_aggregates_mean_what_the_judge_says(rule: str) -> None:
    """What each `_` and `range` stands for, the groups of aggregates, variables inside that are called alike, a result
    that has a value already."""
    facts = {"edge": {(1, 1), (1, 2), (2, 3), (3, 5), (4, 5)}}
    with elastalog.open(EDGES + rule, facts) as db:
        assert set(db["path"]) == evaluate(parse_accepted(EDGES + rule), facts)["path"] != set()
