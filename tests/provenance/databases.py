"""Sessions over the programs of the papers, and what the checker needs to know of a session."""

from __future__ import annotations

from typing import Any

import elastalog
from elastalog.provenance.check import Verdict, check_proof
from elastalog.provenance.proof import Proof
from tests.reference.cases import PROGRAMS

EDGES = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""


def open_case(name: str, **options: Any) -> elastalog.Session:
    folder = PROGRAMS / name
    return elastalog.open(folder / "program.dl", facts=folder / "facts", **options)


def facts_of(db: elastalog.Session) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(db[name]) for name in db}


def verdict(proof: Proof, db: elastalog.Session, explicit: dict[str, set[tuple[Any, ...]]]) -> Verdict:
    return check_proof(proof, db.program.checked, explicit, facts_of(db))
