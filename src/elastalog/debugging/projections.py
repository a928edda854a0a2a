"""Derivations by clauses that only rearrange the columns of one fact, `head(x, y) :- body(y, _, x).`

Programs that read wide tables have many of them. Their derivations can be read off the facts of the body that vary; to
find them backwards would take an index for each.
"""

from __future__ import annotations

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import Matrix, Vector
from elastalog.planning.logical import Clause, LogicalProgram, Scan
from elastalog.relations.words import Dictionary


def is_projection(clause: Clause) -> bool:
    """Whether the one goal of a clause is an atom."""
    return len(clause.goals) == 1 and isinstance(clause.goals[0], Scan)


def project(clause: Clause, facts: Matrix, program: LogicalProgram, dictionary: Dictionary) -> tuple[Vector, Matrix]:
    """The facts that fit the atom of a projection, by their places, and the fact that each derives."""
    (scan,) = clause.scans
    fits = np.ones(len(facts), np.bool_)
    column_of: dict[str, int] = {}
    for column, (term, base) in enumerate(zip(scan.terms, program.relations[scan.relation].bases, strict=True)):
        if isinstance(term, Constant):
            word = dictionary.find_value(base, term.value)
            fits &= False if word is None else facts[:, column] == word
        elif term is not None:
            first = column_of.setdefault(term, column)
            if first != column:
                fits &= facts[:, first] == facts[:, column]
    matching = np.flatnonzero(fits)
    heads = np.empty((len(matching), len(clause.head_terms)), np.int32)
    for column, (term, base) in enumerate(zip(clause.head_terms, program.relations[clause.head].bases, strict=True)):
        if isinstance(term, Constant):
            word = dictionary.find_value(base, term.value)
            if word is None:
                return np.empty(0, np.int64), np.empty((0, len(clause.head_terms)), np.int32)
            heads[:, column] = word
        else:
            heads[:, column] = facts[matching, column_of[term]]
    return matching, heads
