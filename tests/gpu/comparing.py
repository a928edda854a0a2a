"""Sessions on two engines, which are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import elastalog
from tests.engine.judging import state_of
from tests.generators.seeded import seeded_case


def compare_random(seeds: Iterable[int], engine: str, strategy: str, **options: Any) -> None:
    """Random programs and updates, beside a session of the kernel alone."""
    for seed in seeds:
        program, updates = seeded_case(seed)
        both = [
            elastalog.open(program.text, facts=program.facts, engine=each, strategy=strategy, **options)
            for each in ("local", engine)
        ]
        for update in [None, *updates]:
            if update is not None:
                for db in both:
                    db.apply(inserted=update.inserted, deleted=update.deleted)
            here, there = (state_of(db) for db in both)
            assert here == there, (seed, update)
