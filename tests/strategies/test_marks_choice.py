"""Look-ahead that decides by itself where it pays."""

from __future__ import annotations

from random import Random

import pytest

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.evaluation.strategies.look_ahead import LEAST_SAVING, Marks, MarksChoice
from tests.closures import CLOSURE


def played(number: int, plain: int, marked: int) -> list[Marks]:
    """The choices for so many updates of ten facts that take so many derivations, without marks and with them."""
    choice, chosen = MarksChoice(), [Marks.NONE]
    for _ in range(number):
        chosen.append(choice.next())
        is_marked, is_looking = (marks is Marks.LINKED for marks in chosen[-2:])
        choice.observe(10, marked if is_marked else plain, is_marked=is_marked, is_looking=is_looking)
    return chosen[1:]


def test_updates_that_marks_cannot_make_cheaper_by_enough_are_left_alone() -> None:
    assert set(played(1000, 2 * LEAST_SAVING - 10, 0)) == {Marks.NONE}


def test_where_marks_save_much_they_are_made() -> None:
    chosen = played(1000, 20_000, 15_000)
    assert chosen.count(Marks.LINKED) > 950
    assert chosen[-50:].count(Marks.LINKED) >= 47


@pytest.mark.parametrize("marked", [20_000 - LEAST_SAVING // 2, 20_000, 30_000])
def test_where_they_save_nothing_few_updates_try_them(marked: int) -> None:
    chosen = played(1000, 20_000, marked)
    assert 0 < chosen.count(Marks.LINKED) <= 1000 // 28


def test_what_was_learnt_is_put_to_the_test_again() -> None:
    choice, last = MarksChoice(), Marks.NONE
    found = []
    for number in range(2000):
        marks = choice.next()
        cheap = number > 600  # from now on updates are cheap without marks
        effort = 3_000 if cheap else 12_000 if last is Marks.LINKED else 20_000
        choice.observe(10, effort, is_marked=last is Marks.LINKED, is_looking=marks is Marks.LINKED)
        last = marks
        found.append(choice.usual)
    assert found[500] is Marks.LINKED
    assert found[-1] is Marks.NONE


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "counting"])
def test_results_do_not_depend_on_it(strategy: str) -> None:
    random = Random(3)
    every = [(x, y) for x in range(40) for y in range(x + 1, min(x + 4, 40))]
    edges = set(every)
    updates = []
    for _ in range(24):
        some = random.sample(every, 4)
        updates.append(([edge for edge in some if edge not in edges], [edge for edge in some if edge in edges]))
        edges = (edges | set(updates[-1][0])) - set(updates[-1][1])
    with elastalog.open(CLOSURE, {"edge": every}, strategy=strategy) as db:
        for number, (come, go) in enumerate(updates):
            if number + 1 < len(updates):
                upcoming = db.update()
                upcoming.insert("edge", updates[number + 1][0])
                upcoming.delete("edge", updates[number + 1][1])
                db.engine.announce(upcoming, "auto")
            db.apply({"edge": come}, {"edge": go})
        with elastalog.open(CLOSURE, {"edge": sorted(edges)}) as fresh:
            assert set(db["path"]) == set(fresh["path"])
