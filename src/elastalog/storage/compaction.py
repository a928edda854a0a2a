"""The facts of a relation at an epoch, from an earlier snapshot and the changes since: what the next snapshot holds.

Only the changed facts are looked for, so this needs little more memory than the facts themselves; and it needs nothing
of the session that goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import GONE, StateChanges
from elastalog.relations.facts import FactWords


def merged(facts: FactWords, changes: Sequence[StateChanges]) -> FactWords:
    """The facts after changes in their order."""
    assert facts.level is not None
    assert facts.count is not None
    if not changes:
        return facts
    words = np.concatenate([change.words for change in changes])
    changed = KernelRelation("changed", words.shape[1], is_annotated=False)
    changed.load(words)
    level = np.empty(changed.used, np.int32)
    count = np.empty(changed.used, np.int32)
    # The last of several states of a fact stays: numpy assigns in order.
    rows = changed.find(words)
    level[rows] = np.concatenate([change.level for change in changes])
    count[rows] = np.concatenate([change.count for change in changes])
    is_there = level != GONE
    is_unchanged = changed.find(facts.words) < 0
    return FactWords(
        np.concatenate((facts.words[is_unchanged], changed.rows[: changed.used][is_there])),
        np.concatenate((facts.level[is_unchanged], level[is_there])),
        np.concatenate((facts.count[is_unchanged], count[is_there])),
    )
