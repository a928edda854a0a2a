"""Errors of explanations."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

PROVENANCE: tuple[Entry, ...] = (
    Entry(
        "E0701",
        "proof of a fact that does not hold",
        "Only facts that hold have proofs. For a fact that is absent there is the opposite question: which derivations"
        " of it fail, and where.",
        'db.explain("path(4, 1)")',
        'db.why_not("path(4, 1)")',
    ),
    Entry(
        "E0702",
        "absence of a fact that holds",
        "Why a fact does not hold can only be explained if it does not. For a fact that holds, ask for its proof.",
        'db.why_not("path(1, 4)")',
        'db.explain("path(1, 4)")',
    ),
    Entry(
        "E0703",
        "no fact at this place of a proof",
        "A path leads from the root of a proof to a node: for every level the position of a child, counted from 0. It"
        " must end at a fact. Constraints, negations and aggregates have no proof of their own.",
        "proof.expand((0, 17))",
        "proof.expand((0, 1))",
    ),
    Entry(
        "E0704",
        "too many derivations around a fact",
        "To find a proof that does not run in a circle every fact needs a rank. The elastic strategy maintains ranks,"
        " by height. Other strategies and other metrics compute them for the fact asked for, from all derivations"
        " that its proofs could use; here these were too many.",
        'elastalog.open("program.dl", facts="facts", strategy="recompute").explain("path(1, 4)")',
        'elastalog.open("program.dl", facts="facts", strategy="elastic").explain("path(1, 4)")',
    ),
    Entry(
        "E0705",
        "too many proofs to enumerate",
        "The number of different proofs of a fact can grow exponentially with their height. The enumeration goes from"
        " low to high proofs and was given up where the next one was too far away.",
        'list(db.proofs("path(1, 1000)", limit=100))',
        'list(db.proofs("path(1, 1000)", limit=1))',
    ),
    Entry(
        "E0706",
        "nothing to go down into",
        "An explanation of absence can be continued at a literal that is about one fact: an atom, negated or not, whose"
        " arguments all have values. Constraints and literals with free variables can not be continued.",
        'db.why_not("path(4, 1)").expand(0, 17)',
        'db.why_not("path(4, 1)").expand()',
    ),
    Entry(
        "E0707",
        "not a metric of proofs",
        "A metric gives every fact one value, that of its best proof. This is right only if values are natural numbers,"
        " if the value of a derivation never falls when that of a body fact grows, and if it is above the values of all"
        " its body facts. `height` (one above the highest) and `size` (one more than the sum) are such metrics; pairs"
        " of height and size, the height first, are not.",
        'check_metric(Metric("lowest", 0, lambda values: min(values, default=0)))',
        'check_metric(Metric("height", 0, lambda values: 1 + max(values, default=0)))',
    ),
    Entry(
        "E0708",
        "not a depth",
        "The depth is the number of levels of a proof that are shown: 0 shows the fact alone.",
        'db.explain("path(1, 4)", depth=-1)',
        'db.explain("path(1, 4)", depth=4)',
    ),
    Entry(
        "E0709",
        "explanation of an earlier epoch",
        "An explanation belongs to the epoch in which it was made. What it shows stays; further levels would have to be"
        " found among facts that have changed since.",
        'proof = db.explain("path(1, 4)", depth=1)\ndb.apply(deleted={"edge": [(1, 2)]})\nproof.expand()',
        'proof = db.explain("path(1, 4)", depth=1)\nproof = proof.expand()\ndb.apply(deleted={"edge": [(1, 2)]})',
    ),
    Entry(
        "E0710",
        "unknown rule",
        "Rules are counted from 1 among the rules of their relation, in the order written; several heads and"
        " alternatives count as several rules.",
        'db.why_not("path(4, 1)", rule=7)',
        'db.why_not("path(4, 1)", rule=2)',
    ),
    Entry(
        "E0711",
        "wrong value for a variable of a rule",
        "Values can be given to the variables of the chosen rule, by name, each of the variable's type. Variables"
        " inside aggregates have no single value.",
        'db.why_not("path(4, 1)", rule=2, bindings={"w": 3})',
        'db.why_not("path(4, 1)", rule=2, bindings={"y": 3})',
    ),
    Entry(
        "E0712",
        "a missing fact that no candidate brings about",
        "Without an update to undo, a missing fact is mended by inserting explicit facts, or deleting those that rules"
        " negate. Which ones come into question is given as `candidates`, or found by asking why it does not hold: the"
        " nearest failing derivations, and those of what they lack. Values that no fact has are not invented.",
        "db.suggest(missing=['path(1, 9)'], candidates=['edge(7, 8)'])",
        "db.suggest(missing=['path(1, 9)'], candidates=['edge(4, 9)', 'edge(7, 8)'])",
    ),
    Entry(
        "E0713",
        "unwanted and missing facts that no changes of facts mend together",
        "Without an update to undo, unwanted facts are mended by deleting explicit facts, missing ones by inserting"
        " candidates, or deleting what rules negate. What removes the unwanted ones may be what the missing ones rest"
        " on, whichever candidates are taken.",
        "db.suggest(unwanted=['path(1, 2)'], missing=['path(1, 9)'], candidates=['edge(2, 9)'], over='facts')",
        "db.suggest(unwanted=['path(1, 2)'], missing=['path(1, 9)'], candidates=['edge(1, 9)'], over='facts')",
    ),
    Entry(
        "E0714",
        "an unwanted fact that no deletion removes",
        "Without an update to undo, an unwanted fact is mended by deleting explicit facts. One that follows from rules"
        " alone, from facts that must stay, or from facts that are absent (a negation, a count of nothing), is not"
        " mended so: the fault is in the rules, too much was rejected, or `candidates` to insert are needed.",
        "db.suggest(unwanted=['path(1, 2)'], rejected=['+edge(1, 2)'], over='facts')",
        "db.suggest(unwanted=['path(1, 2)'], over='facts')",
    ),
    Entry(
        "E0715",
        "no change of an explicit fact",
        "Where facts are looked at, and not an update, what is rejected or weighed are explicit facts, which may be"
        " deleted (`+edge(1, 2)`: it is there), and candidates, which may be inserted (`-edge(1, 2)`: it is not).",
        "db.suggest(unwanted=['path(1, 2)'], weights={'+path(1, 2)': 3}, over='facts')  # it is derived",
        "db.suggest(unwanted=['path(1, 2)'], weights={'+edge(1, 2)': 3}, over='facts')",
    ),
)
