"""Errors of debugging: questions about what an update broke."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

DEBUGGING: tuple[Entry, ...] = (
    Entry(
        "E1001",
        "a fault that is none",
        "Unwanted facts must hold, and missing facts must not hold, in the later of the two epochs. Otherwise there is"
        " nothing to mend.",
        "db.suggest(unwanted=['path(9, 9)'])  # path(9, 9) does not hold",
        "db.why_not('path(9, 9)')",
    ),
    Entry(
        "E1002",
        "a fault that is older than the update",
        "Localisations and suggestions are parts of an update. A fact that held before the update too did not come from"
        " it, and undoing it would not remove the fact. `blame` finds the epoch in which the fact appeared or"
        " disappeared; in the first epoch, only the facts and the rules themselves can be wrong.",
        "db.suggest(unwanted=['path(1, 2)'])  # it held in the epoch before",
        "db.suggest(unwanted=['path(1, 2)'], epochs=(3, 4))",
    ),
    Entry(
        "E1003",
        "no faults, or contradictory ones",
        "A question needs at least one fault: a fact that is unwanted or one that is missing. The same fact cannot be"
        " both.",
        "db.suggest()",
        "db.suggest(unwanted=['path(1, 4)'])",
    ),
    Entry(
        "E1004",
        "no update between these epochs",
        "An update leads from one epoch to a later one. Sessions and stores remember as many epochs as their"
        " retention says; the first epoch is the bootstrap and has no update.",
        "db.suggest(unwanted=['path(1, 4)'], epochs=(4, 4))",
        "db.suggest(unwanted=['path(1, 4)'], epochs=(3, 4))",
    ),
    Entry(
        "E1005",
        "an element that is not part of the update",
        "Elements are the explicit facts that an update really inserted (`+`) or deleted (`-`). Deleting what was not"
        " there, or inserting what was, is no change. Over several epochs only the net change counts.",
        "db.suggest(unwanted=['path(1, 4)'], rejected=['+edge(7, 8)'])  # the update did not insert edge(7, 8)",
        "db.suggest(unwanted=['path(1, 4)'], rejected=['+edge(3, 4)'])",
    ),
    Entry(
        "E1006",
        "no suggestion is left",
        "Rejected elements stay applied. If the others can be undone as one likes and the faults are still there, no"
        " suggestion is left. The message says whether that is certain or whether the time was over; states in which"
        " rules come to no end are given up after a quarter of it.",
        "db.suggest(unwanted=['path(1, 4)'], rejected=['+edge(3, 4)'])  # the only culprit",
        "db.suggest(unwanted=['path(1, 4)'])",
    ),
    Entry(
        "E1007",
        "a suggestion for another epoch",
        "A suggestion was tried in the epoch that it was made for. After further updates it may be wrong, so it is not"
        " applied.",
        "db.apply(deleted={'edge': [(1, 2)]}); suggestion.apply()",
        "suggestion.apply()",
    ),
    Entry(
        "E1008",
        "blame for a fact that never held",
        "`blame` names the epoch in which a fact last appeared or disappeared. This fact does not hold and has not held"
        " in any epoch that is remembered, so no update is to blame for it.",
        "db.blame('path(9, 9)')  # nothing leads to 9",
        "db.why_not('path(9, 9)')",
    ),
    Entry(
        "E1009",
        "a weight that is no number above 0",
        "Weights say how dear it is to undo an element: the suggestion with the least sum is sought. An element without"
        " a weight has weight 1. To forbid an element, reject it.",
        "db.suggest(unwanted=['path(1, 4)'], weights={'+edge(3, 4)': -1})",
        "db.suggest(unwanted=['path(1, 4)'], weights={'+edge(3, 4)': 5})",
    ),
    Entry(
        "E1010",
        "a fact with a number that does not come again",
        "`autoinc()` numbers derivations. One that goes and comes back gets a new number, above all in use, so that"
        " undoing an update does not bring a fact back that rests on the number it had.",
        "db.suggest(missing=['id(\"b\", 1)'])  # id(x, autoinc()) :- e(x, _).",
        'db.suggest(missing=[\'e("b", "c")\'])',
    ),
)
