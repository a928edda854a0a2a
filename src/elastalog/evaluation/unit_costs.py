"""What is counted, in derivations of a bootstrap as they usually are. Measured: `benchmarks.fit_costs` fits it.

A derivation of an update costs about two of them, since facts are found, not appended; how many exactly depends on how
many facts it touches. Where facts are lost the same costs more.
"""

from __future__ import annotations

from typing import Final

WEIGHT: Final = 2.0
"""What a derivation of an update costs, as long as nothing is known."""

_OF_UPDATED, _OF_TOUCHED = 1.0, 1.8
"""The same for the derivation alone, and for every fact that is touched."""

_LEAST_TOUCHED = 0.01
"""Facts for every derivation of an update, whatever was learnt."""

OF_LOSS: Final = 1.35
"""How much more the same costs where facts are lost."""

OF_FACT: Final = 0.8
"""What it costs to compare a fact that was there with those of a bootstrap, and to index it again."""

_OF_DERIVATION, _OF_ROW, _OF_ROUND = 0.25, 0.29, 1_800.0
"""What bootstraps cost for every derivation, every row that joins look up or make, and every round."""

_LEAST_ROWS = 1.5
"""Rows that are counted for every derivation, though it is only copied."""

_USUAL_ROWS, _OF_ROW_IN_VAIN = 4.0, 0.12
"""What rows cost beyond so many for every derivation: they are looked at one after the other, and lead nowhere."""

_MOST_OF_LOSSES, _MOST_OF_GAINS = (1.8, 0.6), (1.05, 0.42)
"""What updates usually enumerate at most, in terms of a bootstrap's derivations or of its rows, whichever is more: what
is lost, and looked for again; what is gained."""


def bootstrap_cost(derivations: int, rows: int, rounds: int) -> float:
    """What a bootstrap has cost, from what was counted; nothing but derivations where it was evaluated elsewhere. What
    it costs to begin it, and to compare, is left aside."""
    if not rounds:
        return float(derivations)
    usual = min(max(rows, _LEAST_ROWS * derivations), _USUAL_ROWS * derivations)
    in_vain = max(rows - usual, 0.0)
    return _OF_DERIVATION * derivations + _OF_ROW * usual + _OF_ROW_IN_VAIN * in_vain + _OF_ROUND * rounds


def weight_of(derivations: int, touched: int) -> float:
    """What each of the derivations of an update has cost that touched so many facts."""
    return _OF_UPDATED + _OF_TOUCHED * min(touched / derivations, 1.0)


def share_touched(weight: float) -> float:
    """How many facts updates have touched for each of their derivations, if that weighed so much."""
    return max((weight - _OF_UPDATED) / _OF_TOUCHED, _LEAST_TOUCHED)


def most_of_update(derivations: int, rows: int, *, is_loss: bool) -> float:
    """The derivations that an update usually takes at most, where a bootstrap takes so many, and rows."""
    of_derivations, of_rows = _MOST_OF_LOSSES if is_loss else _MOST_OF_GAINS
    return max(of_derivations * derivations, of_rows * rows)
