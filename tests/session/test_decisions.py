"""Prepared decisions: one atom without variables, asked with values; with reasons, in batches, beside updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import elastalog
from tests.interrupting import calls_of
from tests.refusals import refused

POLICY = """
.decl member(user: symbol, role: symbol)
.decl grant(role: symbol, doc: symbol)
.decl denied, ok(user: symbol, doc: symbol)
ok(u, d) :- member(u, r), grant(r, d), !denied(u, d).
"""
FACTS = {
    "member": [("ann", "staff"), ("bob", "staff"), ("eve", "guest")],
    "grant": [("staff", "plan")],
    "denied": [("bob", "plan")],
}


@pytest.fixture
def db() -> Any:
    with elastalog.open(POLICY, FACTS) as db:
        yield db


def test_a_decision_is_true_or_false(db: elastalog.Session) -> None:
    ok = db.prepare("ok(?user, ?doc)")
    assert isinstance(ok, elastalog.PreparedDecision)
    assert ok("ann", "plan") is True
    assert ok(doc="plan", user="bob") is False
    assert ok("ann", doc="plan") is True
    assert ok("nobody", "plan") is False, "a text that no fact has"


def test_a_decision_sees_the_latest_epoch_and_the_latest_rules(db: elastalog.Session) -> None:
    ok = db.prepare("ok(?user, ?doc)")
    db.apply({"member": [("eve", "staff")]})
    assert ok("eve", "plan")
    db.apply(deleted={"member": [("eve", "staff")]})
    assert not ok("eve", "plan")
    db.change_rules('ok(u, "plan") :- member(u, "guest").')
    assert ok("eve", "plan")


def test_a_decision_may_have_constants_and_a_parameter_twice(db: elastalog.Session) -> None:
    plan = db.prepare('ok(?user, "plan")')
    assert (plan("ann"), plan("eve")) == (True, False)
    db.apply({"grant": [("staff", "ann")]})
    assert db.prepare("ok(?x, ?x)")("ann")
    assert db.prepare('ok("ann", "plan")')()


def test_a_reason_comes_with_the_decision(db: elastalog.Session) -> None:
    ok = db.prepare("ok(?user, ?doc)")
    yes, no = ok("ann", "plan", explain=True), ok("bob", "plan", explain=True)
    assert (bool(yes), yes.holds, yes.fact) == (True, True, ("ok", ("ann", "plan")))
    assert str(yes) == str(db.explain('ok("ann", "plan")'))
    assert (bool(no), no.fact) == (False, ("ok", ("bob", "plan")))
    assert str(no.reason) == str(db.why_not('ok("bob", "plan")'))
    assert 'denied("bob", "plan")' in str(no)


@pytest.mark.parametrize("made", [list, np.array, pa.array])
def test_many_decisions_are_an_array(db: elastalog.Session, made: Any) -> None:
    ok = db.prepare("ok(?user, ?doc)")
    users = ["ann", "bob", "eve", "nobody", "ann"]
    assert ok.many(made(users), "plan").tolist() == [True, False, False, False, True]
    assert ok.many(user=made(["ann", "ann"]), doc=made(["plan", "none"])).tolist() == [True, False]
    assert ok.many([], "plan").tolist() == []
    assert ok.many("ann", "plan").tolist() == [True]


def test_many_decisions_need_lists_of_one_length(db: elastalog.Session) -> None:
    with pytest.raises(TypeError, match="equally many"):
        db.prepare("ok(?user, ?doc)").many(["ann", "bob"], ["plan"])


def test_numbers_records_and_relations_without_columns() -> None:
    program = """
.type Pair = [a: number, b: number]
.decl seen(n: number, big: unsigned, x: float, p: Pair)
.decl is_open()
is_open().
"""
    row = (-5, 2**63, 0.5, (1, 2))
    with elastalog.open(program, {"seen": [row]}) as db:
        seen = db.prepare("seen(?n, ?big, ?x, ?p)")
        assert seen(*row)
        assert seen(np.int64(-5), *row[1:])
        assert not seen(-5, 2**63 + 1, 0.5, (1, 2))
        assert not seen(-5, 2**63, 0.5, (2, 1))
        assert seen.many(*([value, value] for value in row)).tolist() == [True, True]
        assert db.prepare("is_open()")() is True


@pytest.mark.parametrize(
    ("values", "named", "code"),
    [
        (("ann",), {}, "E0619"),
        (("ann", "plan"), {"role": "x"}, "E0619"),
        (("ann", "plan", "more"), {}, "E0617"),
        (("ann",), {"user": "bob", "doc": "plan"}, "E0617"),
        ((True, "plan"), {}, "E0617"),
        (("ann", "\ud800"), {}, "E0617"),
    ],
)
def test_wrong_values_are_errors(db: elastalog.Session, values: Any, named: Any, code: str) -> None:
    ok = db.prepare("ok(?user, ?doc)")
    with refused(code):
        ok(*values, **named)


def test_a_value_of_another_type_is_the_error_that_a_query_gives(db: elastalog.Session) -> None:
    with pytest.raises(elastalog.ElastalogError) as asked:
        db.query("ok(?user, X)", user=5)
    with refused(asked.value.diagnostics[0].code):
        db.prepare("ok(?user, ?doc)")(5, "plan")


def test_a_parameter_may_be_part_of_a_term() -> None:
    with elastalog.open(".decl n(x: number)\nn(3).") as db:
        assert len(db.query("n(?x + 1)", x=2)) == 1
        assert set(db.prepare("n(?x + Y), Y = 1")(2)) == {(1,)}


@pytest.mark.parametrize("strategy", ["elastic", "dred", "bfc", "counting", "recompute", "dense"])
def test_decisions_under_every_strategy(strategy: str) -> None:
    with elastalog.open(POLICY, FACTS, strategy=strategy) as db:
        ok = db.prepare("ok(?user, ?doc)")
        assert ok.many(["ann", "bob", "eve"], "plan").tolist() == [True, False, False]
        db.apply(deleted={"denied": [("bob", "plan")], "member": [("ann", "staff")]})
        assert ok.many(["ann", "bob", "eve"], "plan").tolist() == [False, True, False]


def test_a_decision_takes_few_calls_of_python(db: elastalog.Session) -> None:
    ok, relation = db.prepare("ok(?user, ?doc)"), db["ok"]
    for ask, most in ((lambda: ok("ann", "plan"), 12), (lambda: ("ann", "plan") in relation, 11)):
        ask()
        assert calls_of(ask) <= most
