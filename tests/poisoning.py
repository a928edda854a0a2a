"""Memory that nobody may look at any more, filled with what cannot be taken for facts: whoever still reads an array of
a relation or an index that was compacted, lengthened or dropped gets wrong rows at once, instead of now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from sys import getrefcount
from typing import Any

import numpy as np
import pytest

from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.relation import KernelRelation

_POISON = 0x5B5B5B5B
_OURS = 2
"""References to an array that nobody else has: ours, and that of the call which counts them."""
_OF_RELATION = ("rows", "level", "count", "touched", "_table")
_OF_INDEX = ("keys", "slots", "pool")


@contextmanager
def poisoned() -> Iterator[None]:
    """What relations and indexes leave behind is filled with a value that is no row."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("compact", "_lengthen", "reserve_touched", "take_table", "keep_indexes", "trim"):
            patch.setattr(KernelRelation, name, _leaving(getattr(KernelRelation, name)))
        for name in ("_pack", "make_room"):
            patch.setattr(Index, name, _leaving(getattr(Index, name)))
        yield


def _leaving(usual: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(usual)
    def call(owner: Any, *arguments: Any, **options: Any) -> Any:
        before = _arrays(owner)
        result = usual(owner, *arguments, **options)
        kept = {id(array) for array in _arrays(owner)} | {id(array.base) for array in _arrays(owner)}
        while before:
            array = before.pop()
            # Who refers to an array may look at it: what is left are those who have written down where it was.
            is_left = id(array) not in kept and getrefcount(array) == _OURS
            if is_left and array.flags.owndata and array.flags.writeable:
                array.fill(_POISON & np.iinfo(array.dtype).max)
        return result

    return call


def _arrays(owner: Any) -> list[np.ndarray[Any, Any]]:
    """Those that an object holds at present, its indexes included."""
    if isinstance(owner, Index):
        return [getattr(owner, name) for name in _OF_INDEX if len(getattr(owner, name)) > 1]
    own = [array for name in _OF_RELATION if (array := getattr(owner, name, None)) is not None and len(array)]
    indexes = getattr(owner, "_indexes", {})
    return own + [array for index in indexes.values() for array in _arrays(index)]
