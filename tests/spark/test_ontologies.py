"""Ontologies on Spark: what tasks derive and keep is what this process does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elastalog import rdf
from tests.rdf.test_loading import FAMILY
from tests.rdf.updates import closure, stays_right


@pytest.mark.parametrize("seed", range(4))
def test_tasks_keep_random_ontologies_right(seed: int, tmp_path: Path, near: Any) -> None:
    stays_right(10 + seed, tmp_path, engine="spark", spark=near)
    assert near.ran


def test_an_ontology_on_spark(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "family.ttl"
    path.write_text(FAMILY)
    options = {"engine": "spark", "spark": spark}
    with rdf.load(path, **options, store=tmp_path / "there") as there, rdf.load(path) as here:
        for db in (there, here):
            rdf.apply(db, "+ <http://example.org/cid> <http://example.org/mother> <http://example.org/bob> .\n")
        assert closure(there) == closure(here)
        assert rdf.inconsistencies(there) == ["cax-dw: ex:bob, ex:Man, ex:Woman"]
        assert rdf.explain(there, "ex:ann ex:ancestor ex:old") == rdf.explain(here, "ex:ann ex:ancestor ex:old")
        asked = "SELECT ?x WHERE { ex:ann ex:ancestor ?x } ORDER BY ?x"
        assert list(there.sparql(asked)) == list(here.sparql(asked))
        assert len(rdf.suggest(there, time_limit=120).elements) == 1
        assert {row.x for row in there["Man"].to_spark(spark).collect()} == {"<http://example.org/bob>"}
