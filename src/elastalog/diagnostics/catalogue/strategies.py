"""Codes of strategies and update streams."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

STRATEGIES: tuple[Entry, ...] = (
    Entry(
        "E0901",
        "recursive program for a strategy without recursion",
        "Strategy `counting` keeps one counter for every fact: how many derivations it has. Facts on a cycle of"
        " derivations support each other, so their counters would never reach 0. `dredc` and `bfc` keep such counters"
        " only where they are sound; `elastic` counts derivations by level.",
        'elastalog.open("reach.dl", strategy="counting")',
        'elastalog.open("reach.dl", strategy="dredc")',
    ),
    Entry(
        "E0902",
        "global levels with a strategy that does not keep them",
        "With `levels = global` every fact has the height of its lowest proof. Only `elastic` maintains these"
        " numbers; the other strategies keep other things about facts.",
        'elastalog.open("reach.dl", strategy="dred", levels="global")',
        'elastalog.open("reach.dl", strategy="elastic", levels="global")',
    ),
)
