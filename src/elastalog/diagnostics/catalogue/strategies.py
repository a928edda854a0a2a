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
        "global levels that cannot be kept",
        "With `levels = global` every fact has the height of its lowest proof. Only `elastic` maintains these"
        " numbers; the other strategies keep other things about facts. A recursion that `.limitsize` may cut short does"
        " not find the lowest proofs either.",
        'elastalog.open("reach.dl", strategy="dred", levels="global")',
        'elastalog.open("reach.dl", strategy="elastic", levels="global")',
    ),
    Entry(
        "E0903",
        "marks that the strategy does not make",
        "Marks prepare for the update after the next one. `dred`, `bf` and `bfc` make eager marks, on facts that the"
        " present update derives or proves, and linked marks, on any fact that rests on something that will be deleted."
        " The other strategies make none.",
        "elastalog stream reach.dl -F facts --updates updates --strategy elastic --marks linked",
        "elastalog stream reach.dl -F facts --updates updates --strategy bfc --marks linked",
    ),
    Entry(
        "E0904",
        "bad table of updates",
        "A stream in one file is a table whose rows are changes: `step` says to which update a row belongs, `op` is"
        " `+` or `-`. A column `relation` names the relation, and `a1`, `a2`, … hold the values; without it, the file"
        " is named after the relation, and the columns after its attributes.",
        "op,x,y\n+,1,2",
        "step,op,relation,a1,a2\n1,+,edge,1,2",
    ),
    Entry(
        "E0905",
        "facts that compete, with global levels",
        "A relation with a `choice-domain`, with subsumption or with a column that improves is evaluated in rounds of "
        "its own, or in the order of values, of which global levels know nothing.",
        'elastalog.open("tree.dl", levels="global")',
        'elastalog.open("tree.dl", levels="local")',
    ),
)
