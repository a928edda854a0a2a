"""The order of facts that depends on their values alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elastalog.analysis.program import Base
from elastalog.analysis.values import sort_key
from elastalog.relations.words import Dictionary


def order_of(row: Sequence[int], bases: tuple[Base, ...], dictionary: Dictionary) -> tuple[Any, ...]:
    """By what facts are ordered: their values, part by part, whatever their words."""
    return tuple(sort_key(dictionary.decode_value(base, word)) for base, word in zip(bases, row, strict=True))
