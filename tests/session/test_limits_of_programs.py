"""A limit of time holds while a program is read, checked and planned, too."""

from __future__ import annotations

import time
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import LimitReached

PAIRS = ".decl e(x: number, y: number)\n"
MANY_RULES = PAIRS + "".join(f"e({n}, {n + 1}) :- e({n + 1}, {n}).\n" for n in range(5_000))
MACROS = "#define A0 x\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(25)) + PAIRS + "e(A25, 1).\n"
ALIKE = "".join(f".decl relation{n}(x: number)\n" for n in range(1_000)) + "".join(
    f"relatiom{n}(1).\n" for n in range(1_000)
)


@pytest.mark.parametrize("text", [MANY_RULES, MACROS, ALIKE], ids=["rules", "macros", "names"])
def test_a_program_that_takes_long_ends_at_the_limit(text: str) -> None:
    began = time.process_time()
    with pytest.raises(LimitReached) as caught:
        elastalog.open(text, limits=elastalog.Limits(time=0.05))
    assert caught.value.diagnostics[0].code == "E0603"
    assert time.process_time() - began < 1.0


def test_planning_obeys_the_limit() -> None:
    program = elastalog.Program.parse(MANY_RULES)
    with pytest.raises(LimitReached):
        elastalog.open(program, limits=elastalog.Limits(time=0.01))


def test_an_update_that_has_to_plan_obeys_the_limit() -> None:
    with elastalog.open(PAIRS, {"e": [(1, 2)]}) as db:
        with pytest.raises(LimitReached), db.engine.within(0.01):
            db.change_rules(MANY_RULES.removeprefix(PAIRS))
        assert set(db["e"]) == {(1, 2)}
        db.apply({"e": [(3, 4)]})
        assert set(db["e"]) == {(1, 2), (3, 4)}


def test_blocks_end_no_later_than_those_around_them() -> None:
    with quota.within(-1.0):
        with quota.within(60.0), pytest.raises(LimitReached):
            quota.look()
        with quota.lifted():
            quota.look()
        assert quota.time_left(60.0) < 0
    quota.look()
    assert quota.time_left(60.0) == 60.0


@pytest.mark.parametrize("limit", [{"time": 1e-9}, {"memory": 1}], ids=str)
def test_the_help_names_the_argument_that_sets_the_limit(limit: dict[str, Any]) -> None:
    (name,) = limit
    with pytest.raises(LimitReached) as caught:
        elastalog.open(MANY_RULES, {"e": [(1, 2)]}, limits=elastalog.Limits(**limit))
    assert f"in Python `limits=Limits({name}=…)`" in (caught.value.diagnostics[0].help or "")
