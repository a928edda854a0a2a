"""What is counted, in derivations of a bootstrap as they usually are. Measured: `benchmarks.fit_costs` fits it.

An update takes about as much for every derivation, for every row that its joins look at and for every fact that it
touches: each of these steps waits for memory that the one before led to. A bootstrap goes through rows in their order,
which costs half as much.
"""

from __future__ import annotations

from typing import Final

WEIGHT: Final = 2.0
"""What a derivation's worth of effort costs in an update, as long as nothing is known."""

_OF_STEP = 0.37
"""What an update costs for every derivation, every row and every fact that is touched."""

LEAST_TOUCHED: Final = 0.01
"""Facts for every derivation of an update, whatever was learnt."""

OF_FACT: Final = 0.53
"""What it costs to compare a fact that was there with those of a bootstrap, and to index it again."""

_OF_DERIVATION, _OF_ROW, _OF_ROUND = 0.35, 0.21, 2_000.0
"""What bootstraps cost for every derivation, every row that joins look up or make, and every round."""

_LEAST_ROWS = 1.5
"""Rows that are counted for every derivation, though it is only copied."""

_USUAL_ROWS, _OF_ROW_IN_VAIN = 4.0, 0.11
"""What rows cost beyond so many for every derivation: they are looked at one after the other, and lead nowhere."""

_MOST_OF_LOSSES, _MOST_OF_GAINS = (1.8, 0.6), (1.05, 0.42)
"""What updates usually enumerate at most, in terms of a bootstrap's derivations or of its rows, whichever is more: what
is lost, and looked for again; what is gained."""


def bootstrap_cost(derivations: int, rows: int, rounds: int) -> float:
    """What a bootstrap has cost, from what was counted; nothing but derivations where it was evaluated elsewhere. What
    it costs to begin it, and to compare, is left aside."""
    return cost_of_facts(derivations, rows) + _OF_ROUND * rounds if rounds else float(derivations)


def cost_of_facts(derivations: int, rows: int) -> float:
    """The same without its rounds."""
    usual = min(max(rows, _LEAST_ROWS * derivations), _USUAL_ROWS * derivations)
    in_vain = max(rows - usual, 0.0)
    return _OF_DERIVATION * derivations + _OF_ROW * usual + _OF_ROW_IN_VAIN * in_vain


def weight_of(effort: int, steps: int, touched: int) -> float:
    """What an update has cost for its effort: so many derivations and rows in all, and facts that it touched."""
    return _OF_STEP * (max(steps, effort) + touched) / effort


def effort_of(steps: float, weight: float) -> float:
    """The derivations' worth of effort that so many steps are, facts touched among them, where one weighs so much."""
    return _OF_STEP * steps / weight


def most_of_update(derivations: int, rows: int, *, is_loss: bool) -> float:
    """The derivations that an update usually takes at most, where a bootstrap takes so many, and rows."""
    of_derivations, of_rows = _MOST_OF_LOSSES if is_loss else _MOST_OF_GAINS
    return max(of_derivations * derivations, of_rows * rows)
