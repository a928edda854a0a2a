"""Updates of random ontologies, on any engine: they leave what loading the result gives, and proofs are right."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from elastalog import rdf
from elastalog.provenance.check import check_proof
from elastalog.rdf.loading import all_triples
from elastalog.rdf.sparql import _text
from elastalog.rdf.vocabulary import Names
from tests.rdf.judges import RandomOntology


def closure(db: Any) -> set[tuple[str, str, str]]:
    """Without blank nodes, whose labels change from file to file."""
    return {triple for triple in all_triples(db, Names.in_program(db)) if "_:" not in "".join(triple)}


def stays_right(seed: int, folder: Path, **options: Any) -> None:
    """Three patches; options as for `rdf.load`. What they are compared with is evaluated in this process."""
    made = RandomOntology(5000 + seed, has_keys=seed % 2 == 0)
    path = folder / "o.nt"
    path.write_text(made.graph.serialize(format="nt"))
    draw = random.Random(seed)
    with rdf.load(path, equality=True, **options) as db:
        names = Names.in_program(db)
        for _ in range(3):
            given = [" ".join(t) for t in all_triples(db, names, explicit=True) if "/www.w3.org/" not in t[1]]
            lines = [f"- {line} ." for line in draw.sample(given, min(2, len(given)))]
            lines += [f"+ {' '.join(map(_text, made.fact()))} ." for _ in range(2)]
            rdf.apply(db, "\n".join(lines) + "\n")
            then = "".join(f"{' '.join(t)} .\n" for t in all_triples(db, Names.in_program(db), explicit=True))
            (folder / "then.nt").write_text(then)
            with rdf.load(folder / "then.nt", equality=True) as fresh:
                assert closure(db) == closure(fresh)
        explicit = {name: set(db.explicit(name)) for name in db}
        everything = {name: set(db[name]) for name in db}
        for name in db:
            for values in sorted(everything[name])[:2]:
                assert check_proof(db.explain((name, values)), db.program.checked, explicit, everything)
