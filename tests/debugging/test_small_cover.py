"""Easy 0/1 programs against all assignments."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from elastalog.debugging.zero_one import Clause, Contradiction, easy_cover


def least_weight(clauses: list[Clause], weights: list[float]) -> float | None:
    found = [
        sum(weight for weight, value in zip(weights, values, strict=True) if value)
        for values in product((False, True), repeat=len(weights))
        if all(any(values[variable] == value for variable, value in clause.items()) for clause in clauses)
    ]
    return min(found, default=None)


def random_clauses(choice: Random, variables: int) -> list[Clause]:
    return [
        {v: choice.random() < 0.8 for v in choice.sample(range(variables), choice.randint(1, 3))}
        for _ in range(choice.randint(1, 7))
    ]


def test_what_is_found_is_best() -> None:
    kinds = {"easy": 0, "hard": 0, "none": 0}
    for seed in range(600):
        choice = Random(seed)
        weights = [choice.choice((1.0, 1.0, 2.0, 2.5)) for _ in range(6)]
        clauses = random_clauses(choice, 6)
        least = least_weight(clauses, weights)
        try:
            found = easy_cover(clauses, weights)
        except Contradiction:
            assert least is None
            kinds["none"] += 1
            continue
        if found is None:
            kinds["hard"] += 1
            continue
        kinds["easy"] += 1
        assert found.weight == least
        for clause in clauses:
            assert any((variable in found.ones) == value for variable, value in clause.items())
    assert all(number > 10 for number in kinds.values())


def test_one_variable_for_several_clauses_is_seen() -> None:
    found = easy_cover([{0: True, 1: True}, {1: True, 2: True}], [1.0, 1.0, 1.0])
    assert found is not None
    assert found.ones == {1}


def test_what_a_choice_would_break_is_not_easy() -> None:
    assert easy_cover([{0: True, 1: True}, {0: False, 2: True}, {1: False, 2: True}], [1.0, 1.0, 1.0]) is None


def test_forced_both_ways_is_a_contradiction() -> None:
    with pytest.raises(Contradiction):
        easy_cover([{0: True}, {0: False, 1: True}, {1: False}], [1.0, 1.0])
