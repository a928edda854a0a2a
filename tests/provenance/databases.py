"""Sessions over the programs of the papers, and what the checker needs to know of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import elastalog
from elastalog.analysis.values import sort_key
from elastalog.provenance.check import Verdict, check_proof
from elastalog.provenance.ground import Run, no_ordinal
from elastalog.provenance.proof import Proof
from tests.reference.cases import PROGRAMS


def open_case(name: str, **options: Any) -> elastalog.Session:
    folder = PROGRAMS / name
    return elastalog.open(folder / "program.dl", facts=folder / "facts", **options)


def facts_of(db: elastalog.Session) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(db[name]) for name in db}


def require_proofs(
    db: elastalog.Session,
    explicit: dict[str, set[tuple[Any, ...]]],
    *relations: str,
    most: int | None = None,
    functors: Mapping[str, Any] | None = None,
) -> None:
    """Every fact, of all relations unless they are given, of each the first so many, has a proof that the checker
    accepts."""
    facts, run = facts_of(db), Run(no_ordinal, functors or {})
    for name in relations or db:
        for values in sorted(facts[name], key=sort_key)[:most]:
            found = check_proof(db.explain((name, values)), db.program.checked, explicit, facts, run)
            assert found.accepted, found.reason


def verdict(proof: Proof, db: elastalog.Session, explicit: dict[str, set[tuple[Any, ...]]]) -> Verdict:
    return check_proof(proof, db.program.checked, explicit, facts_of(db))
