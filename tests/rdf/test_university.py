"""A department of LUBM, closed as owlrl closes it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import elastalog.rdf
from benchmarks.rdf.__main__ import SCHEMA, digest
from benchmarks.rdf.generate import universities
from elastalog.rdf.loading import all_triples
from elastalog.rdf.vocabulary import Names

BY_OWLRL = (11515, "e0f808275f90")
"""What `python -m benchmarks.rdf --one owlrl --data FILE` says of the file of the test."""


def test_a_department_is_closed_as_owlrl_closes_it_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "department.nt"
    lines = list(islice(universities(1), 8000))
    path.write_text("".join(lines))
    with elastalog.rdf.load(SCHEMA, path) as db:
        names = Names.in_program(db)
        assert digest(all_triples(db, names)) == BY_OWLRL
        for sign in "-+":
            elastalog.rdf.apply(db, "".join(f"{sign} {line}" for line in lines[::100]))
        assert digest(all_triples(db, names)) == BY_OWLRL
        assert not list(db["inconsistent"])


def test_the_same_seed_gives_the_same_universities() -> None:
    assert list(islice(universities(2, 7), 3000)) == list(islice(universities(2, 7), 3000))
    assert list(islice(universities(1, 7), 3000)) != list(islice(universities(1, 8), 3000))
