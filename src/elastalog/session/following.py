"""A twin: a second session of the same epoch in this process, which is read while the first is updated, and follows.

Twins share program and dictionary, so that an update made of words for one is an update of the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.rows import are_in
from elastalog.backends.watch import memory_as_limit
from elastalog.evaluation.stored import keeps_all, unmoved
from elastalog.session.history import History
from elastalog.storage.store import Store

if TYPE_CHECKING:
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.evaluation.update import Update
    from elastalog.session.materialisation import Materialisation


def twin_of(now: Materialisation, history: History) -> tuple[Materialisation, History]:
    """The present epoch once more, and a past of its own to ask about. Under the lock of the first."""
    other = now.another(now.program, now.dictionary)
    if keeps_all(now.epochs.strategy):
        for name in now.backend.program.relations:
            other.backend.states.restore(name, now.backend.states.of(name).copied(), ())
        other.epochs.number = now.epoch
        _learn_alike(now, other)
    else:
        other.bootstrap({name: now.explicit_words(name) for name in now.schemas})
        other.epochs.number = now.epoch
    if history.store is None:
        past = History(other)
        past.records.extend(history.records)
        return other, past
    with unmoved(history.store.root):
        return other, History(other, Store.open(history.store.root, read_only=True, until=now.epoch))


def follow(now: Materialisation, history: History, update: Update, record: EpochRecord) -> bool:
    """Does once more what an epoch of the first did: `record` is what that made of the update. Returns whether it came
    to the same: numbers of `autoinc` and choices may depend on the order in which facts are found."""
    alike = record.update or update
    with memory_as_limit():
        made = now.epochs.apply(replace(alike, rules=update.rules, source=None, batch=None))
    if update.rules is not None:
        now.follow(update.rules.after)
    if history.store is None:
        history.add(record, update)
    return _are_alike(made.changes, record.changes)


def _are_alike(changes: ChangedWords, others: ChangedWords) -> bool:
    nothing = np.empty((0, 1), np.int32)
    for name in {*changes, *others}:
        for side, other in zip(changes.get(name, (nothing,) * 2), others.get(name, (nothing,) * 2), strict=True):
            if len(side) != len(other):
                return False
            # Pairs of an equivalence depend on no order.
            are_rows = isinstance(side, np.ndarray) and isinstance(other, np.ndarray)
            if are_rows and len(side) and not are_in(np.asarray(side), np.asarray(other)).all():
                return False
    return True


def _learn_alike(now: Materialisation, other: Materialisation) -> None:
    """What updates cost is known to both."""
    known, new = now.epochs.strategy.costs, other.epochs.strategy.costs
    if known is not None and new is not None:
        new.become(known)
