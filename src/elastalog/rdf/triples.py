"""Triples instead of facts: proofs, absence and repairs, asked for and shown with prefixed names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.provenance.rendering.text import legend, render_absence_tree, render_tree
from elastalog.rdf.vocabulary import INCONSISTENT, TYPE, Names

if TYPE_CHECKING:
    from elastalog.database import Database
    from elastalog.debugging.answers import Suggestion

Triple = str | Sequence[str]
"""A triple as a text, `ex:ann a ex:Person`, or as three terms."""

_PARTS = re.compile(r'\s*("(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^(?:<[^<>]*>|[\w-]*:[\w.-]*))?|<[^<>]*>|[^\s"<>]+)')


def triple_of(given: Triple, names: Names) -> tuple[str, str, str]:
    """The terms of a triple, prefixes written out."""
    parts = _PARTS.findall(given.strip().removesuffix(".").rstrip()) if isinstance(given, str) else list(given)
    if len(parts) != 3:
        told = f"`{given}` is no triple: it has {len(parts)} terms"
        raise ElastalogError([Diagnostic("E0531", told, help="write `ex:ann a ex:Person`, or give three terms")])
    s, p, o = (TYPE if part == "a" and place == 1 else _term(part, names) for place, part in enumerate(parts))
    return s, p, o


def _term(text: str, names: Names) -> str:
    start, marks, kind = text.rpartition("^^")
    if marks and text[0] == '"':
        return f"{start}^^{names.expanded(kind)}"
    return names.expanded(text)


def explain(db: Database, triple: Triple, depth: int | None = None) -> str:
    """Why a triple holds: its proof, IRIs shortened by prefixes."""
    names = Names.in_program(db)
    proof = db.explain(names.fact(triple_of(triple, names)), depth)
    return names.shortened(f"{render_tree(proof)}\n\n{legend(proof)}")


def why_not(db: Database, triple: Triple, limit: int = 5) -> str:
    """Why a triple does not hold: what its derivations lack, IRIs shortened by prefixes."""
    names = Names.in_program(db)
    return names.shortened(render_absence_tree(db.why_not(names.fact(triple_of(triple, names)), limit)))


def inconsistencies(db: Database) -> list[str]:
    """What must not be, each with the rule of OWL 2 RL that says so, IRIs shortened by prefixes."""
    names = Names.in_program(db)
    told = []
    for rule, *terms in db[INCONSISTENT]:
        told.append(f"{rule}: {', '.join(names.short(term) for term in terms if term)}")
    return sorted(told)


def suggest(db: Any, **options: Any) -> Suggestion:
    """A smallest set of explicit facts whose deletion leaves no inconsistency; options as for `Session.suggest`."""
    suggestion: Suggestion = db.suggest(unwanted=[f"{INCONSISTENT}(_, _, _, _)"], over="facts", **options)
    return suggestion
