"""An overflow is an error where a fact would follow from it: not for rows that the rest of the rule drops."""

from __future__ import annotations

import pytest

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from tests.tables import table

MOST = 2**63 - 1
DECLARATIONS = """
.decl q, r(x: number)
.decl s(x: number, y: number)
.decl p(x: number)
"""
FACTS = {"q": [(1,), (MOST,)], "r": [(MOST,)], "s": [(1, 7)]}


@pytest.mark.parametrize("rule", table(__file__, "rows that are dropped do not overflow"))
def test_rows_that_are_dropped_do_not_overflow(rule: str) -> None:
    with elastalog.open(DECLARATIONS + rule, FACTS) as db:
        assert len(db["p"]) == 1
        db.apply({"q": [(-4,), (9,)], "r": [(-4,), (9,)]}, {"s": [(1, 7)]})
        assert db.verify().is_exact


def test_rows_that_are_not_dropped_do() -> None:
    with pytest.raises(elastalog.ElastalogError, match="E0601"):
        elastalog.open(DECLARATIONS + "p(x + 1) :- q(x).", FACTS)
    with elastalog.open(DECLARATIONS + "p(x + 1) :- q(x), !r(x).", FACTS) as db:
        with pytest.raises(elastalog.ElastalogError, match="E0601"):
            db.apply(deleted={"r": [(MOST,)]})
        assert (db.epoch, list(db["p"])) == (1, [(2,)])


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "counting"])
def test_looking_for_other_derivations_does_not_overflow(strategy: str) -> None:
    """Whether p(2) and p(4) still follow is found from them backwards, where the fact of `q` is not known at first."""
    rules = "p(x + 1) :- q(x), !r(x).\np(x) :- p(x), r(x).\n"
    facts = {**FACTS, "q": [(x,) for x in (1, 5, 9, MOST, MOST - 1)], "r": [(MOST,), (MOST - 1,)], "p": [(2,), (4,)]}
    with elastalog.open(DECLARATIONS + rules, facts, strategy=strategy) as db:
        assert sorted(db["p"]) == [(2,), (4,), (6,), (10,)]
        db.apply(deleted={"p": [(2,), (4,)]})
        assert sorted(db["p"]) == [(2,), (6,), (10,)]
        assert [str(derivation.children[0].fact) for derivation in db.derivations("p(2)")] == ["q(1)"]
        assert db.explain("p(10)").height == 1


def test_the_aggregate_that_overflows_is_shown() -> None:
    """Of two that are alike but for their members, the first was shown."""
    rule = "p(a + b) :- a = sum x : { r(x), x < 5 }, b = sum y : { q(y), y > 0 }."
    with pytest.raises(elastalog.ElastalogError) as raised:
        elastalog.open(DECLARATIONS + rule, {**FACTS, "r": [(3,)]})
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.source is not None
    assert diagnostic.source.text[diagnostic.labels[0].span.start :].startswith("sum y")
