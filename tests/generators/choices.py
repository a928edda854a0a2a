"""Where random decisions come from: hypothesis, which shrinks them, or a seed, which is fast.

The first option, the smallest number and "no" are the simplest choices: constructions are written so that these give
the simplest program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices(Protocol):
    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""


class SeededChoices:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


class DrawnChoices:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(integers(low, high))


@cache
def integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)  # building the strategy costs more than drawing from it


def chance(choices: Choices, percent: int) -> bool:
    return choices.integer(0, 99) >= 100 - percent


def pick(choices: Choices, options: Sequence[T]) -> T:
    return options[choices.integer(0, len(options) - 1)]


def several(choices: Choices, low: int, high: int, percent: int) -> Iterator[int]:
    """Counts from 0: `low` times, then as long as a chance says so, `high` times at most. A decision before each
    element, instead of one length before all, lets hypothesis delete elements."""
    for number in range(high):
        if number >= low and not chance(choices, percent):
            return
        yield number


def shuffled(choices: Choices, items: Sequence[T]) -> list[T]:
    left, result = list(items), []
    while left:
        result.append(left.pop(choices.integer(0, len(left) - 1)))
    return result
