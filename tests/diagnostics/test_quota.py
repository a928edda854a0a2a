"""What is large is asked for before it is made, in blocks that have a limit of memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.diagnostics.quota import LEAST, ask, resident_bytes
from elastalog.relations.wide import WideTable

FAR = 1 << 50


def nearly_used_up() -> Watch:
    """A limit of which less is left than is worth asking for."""
    return Watch(memory=resident_bytes() + LEAST // 2)


def test_only_the_block_has_a_limit() -> None:
    ask(200 << 20)
    with Watch(memory=resident_bytes() + (100 << 20)).within(None):
        ask(50 << 20)
        with pytest.raises(LimitReached) as raised:
            ask(200 << 20)
        assert [found.code for found in raised.value.diagnostics] == ["E0604"]
        with Watch().within(5.0):  # another session, which has that of every process
            ask(200 << 20)
        with pytest.raises(LimitReached):
            ask(200 << 20)
    ask(200 << 20)
    with pytest.raises(LimitReached):
        ask(FAR)


def test_little_is_not_asked_for() -> None:
    with nearly_used_up().within(None):
        ask(LEAST - 1)
        with pytest.raises(LimitReached):
            ask(LEAST)


def test_a_wide_table_that_may_not_grow_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    table = WideTable()
    known = np.arange(2**40, 2**40 + 1000)
    ids = table.intern(known)
    more = np.arange(2**41, 2**41 + 200_000)
    with monkeypatch.context() as patch, Watch(memory=FAR + LEAST // 2).within(None):
        patch.setattr(quota, "resident_bytes", lambda: FAR)
        with pytest.raises(LimitReached):
            table.intern(more)
    assert len(table) == 1000
    assert table.find_all(known).tolist() == ids.tolist()
    assert set(table.find_all(more).tolist()) == {-1}
    assert len(set(table.intern(more).tolist())) == 200_000


def test_a_wide_table_doubles_its_slots() -> None:
    table = WideTable()
    sizes = []
    for first in range(2**40, 2**40 + 40_000, 500):
        table.intern(np.arange(first, first + 500))
        sizes.append(len(table._slots))
        assert 2 * len(table) <= sizes[-1] <= 4 * len(table) + 4
    assert max(after / before for before, after in pairwise(sizes)) == 2


def test_a_relation_that_may_not_grow_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    relation = KernelRelation("r", 1, is_annotated=True)
    relation.load(np.arange(1000, dtype=np.int32).reshape(-1, 1))
    monkeypatch.setattr(quota, "resident_bytes", lambda: FAR)
    with Watch(memory=FAR + LEAST // 2).within(None), pytest.raises(LimitReached):
        relation.reserve(1_000_000)
    assert relation.find(np.array([[7], [2000]], np.int32)).tolist() == [7, -1]
    assert relation.used == 1000
