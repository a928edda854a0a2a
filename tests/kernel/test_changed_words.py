"""What an epoch has changed, and what it has done, are written down when somebody asks: they must be what they were."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

import elastalog
from elastalog.backends.protocol import ListedChanges, impact_of
from elastalog.settings import SETTINGS
from tests import closures

CLOSURE = f"""{closures.CLOSURE}.decl far(x: number, y: number, z: number)
far(x, y, z) :- path(x, y), path(y, z), x != z.
"""


def test_relations_are_told_apart() -> None:
    listed = [13, *(2, 2, 13, 1, 17, 1), *(0, 1, 19, 1, 20, 0)]
    facts = [1, 2, 9, 9, 3, 4, 7]
    changes = ListedChanges(array("i", [*listed, *facts]), ["b", "c", "a"], 3)
    assert changes.impact == impact_of(changes) == 3
    assert list(changes) == ["a", "b"]
    assert [side.tolist() for side in changes["a"]] == [[[1, 2]], [[3, 4]]]
    assert [side.tolist() for side in changes["b"]] == [[[7]], []]
    assert "c" not in changes


def test_impact_of_a_mapping_is_the_same() -> None:
    words = np.zeros((3, 2), np.int32)
    assert impact_of({"a": (words[:1], words), "b": (words[:0], words[:2])}) == 6


def test_what_was_not_looked_at_is_the_same_after_later_epochs() -> None:
    edges = [(i, i + 1) for i in range(6)]
    updates = [{"deleted": {"edge": [(2, 3)]}}, {"inserted": {"edge": [(2, 3), (6, 0)]}}, {"deleted": {"edge": edges}}]
    at_once, later = [], []
    with elastalog.open(CLOSURE, facts={"edge": edges}, engine="local") as db:
        for update in updates:
            with db.update() as made:
                for name, rows in update.get("deleted", {}).items():
                    made.delete(name, rows)
                for name, rows in update.get("inserted", {}).items():
                    made.insert(name, rows)
            at_once.append(_told(made.changes, made.stats))
    with elastalog.open(CLOSURE, facts={"edge": edges}, engine="local") as db:
        kept = []
        for update in updates:
            changes = db.apply(**update)
            kept.append((changes, db._epochs.last))
        later = [_told(changes, record) for changes, record in kept]
    assert at_once == later
    assert [number for *_, number in later] == [changes.impact for changes, _ in kept]
    closed = {(x, y) for x in range(7) for y in range(x + 1, 7)}
    without = {(x, y) for x, y in closed if not x <= 2 < y}
    assert at_once[0][0]["path"] == ([], sorted(closed - without))


@pytest.mark.parametrize("forced", [{"changed_words_kept": 4}, {"most_changed_words": 4}, {}])
def test_long_lists_tell_the_same(monkeypatch: pytest.MonkeyPatch, forced: dict[str, int]) -> None:
    found = []
    for settings in ({}, {"first_changed_words": 1, **forced}):
        for name, value in settings.items():
            monkeypatch.setattr(SETTINGS, name, value)
        with elastalog.open(CLOSURE, facts={"edge": [(i, i + 1) for i in range(6)]}, engine="local") as db:
            for deleted in ([(2, 3)], [(0, 1), (4, 5)]):
                changes = db.apply(deleted={"edge": deleted})
                record = db._epochs.last
                assert record is not None
                is_listed = type(record.changes) is ListedChanges
                assert is_listed is ("most_changed_words" not in settings)
                told = {name: (sorted(one.inserted), sorted(one.deleted)) for name, one in changes.items()}
                found.append((told, changes.impact))
    assert found[:2] == found[2:]


def _told(changes: elastalog.Changes, record: object) -> tuple[object, ...]:
    """All that is told of an epoch, but for times, and for costs, which are reckoned with what is known by now."""
    facts = {name: (sorted(found.inserted), sorted(found.deleted)) for name, found in changes.items()}
    work = [(one.stratum, one.relations, one.how, one.why, one.derivations) for one in record.work.strata]
    return facts, work, record.impact
