"""Epochs of programs in which recursion says for which groups aggregates are needed (see `planning.needed_groups`).

The relations of handled groups are explicit facts that no user gave. A first epoch is evaluated without any, and then
updated with the groups that turn out to be needed, until all are handled. An update that needs further groups is taken
back and begun again with these: whatever it had derived was right, but not all. If that does not end soon, since one
group leads to the next, they are found first: the update is committed, and updated with the groups needed, as in a
first epoch; then all of it is taken back by its inverse, since what is kept for a state does not depend on the way
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np

from elastalog.backends.protocol import Backend, Matrix
from elastalog.backends.rows import are_in
from elastalog.diagnostics.interrupts import uninterrupted
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.evaluation.strategies.protocol import Work
from elastalog.evaluation.transactions import go_back, transaction
from elastalog.settings import SETTINGS


def bootstrap(backend: Backend, strategy: Strategy) -> Work:
    """Evaluates every stratum from the explicit facts. Derivations are numbered in their order, as if all groups had
    been handled from the start: numbers that were given before some were are given again."""
    work = strategy.bootstrap(backend)
    pairs = backend.program.needed
    missing = {handled: backend.facts(needed).words for handled, needed in pairs.items()}
    anew: frozenset[str] = frozenset()
    while anew or any(map(len, missing.values())):
        with transaction(backend, {}, missing, anew):
            more = strategy.update(backend)
            missing = _missing(backend, pairs)
        _add(work, more)
        anew = frozenset() if anew or any(map(len, missing.values())) else _without_numbers(backend)
    return work


def _without_numbers(backend: Backend) -> frozenset[str]:
    """Has the backend forget the numbers of derivations; the relations that must be evaluated anew therefore."""
    program = backend.program
    numbers = {rule.relation for stratum in program.strata if (rule := stratum.numbering) is not None}
    if numbers:
        above = set(numbers)
        for stratum in program.strata:
            if not above.isdisjoint((*stratum.relations, *stratum.reads)):
                above.update(stratum.relations)
        kept = {name: stored for name, stored in program.relations.items() if name not in numbers}
        strata = tuple(stratum for stratum in program.strata if above.isdisjoint(stratum.relations))
        backend.reprogram(replace(program, relations=kept, strata=strata), {})
        backend.reprogram(program, {})
        return frozenset(above)
    return frozenset()


def update(backend: Backend, strategy: Strategy, anew: frozenset[str] = frozenset()) -> Work:
    """Brings every stratum that the update under way affects to its new fixpoint. `anew`: what it was begun with."""
    pairs = backend.program.needed
    if not pairs:
        return strategy.update(backend)
    idle = {handled: words for handled, needed in pairs.items() if len(words := _idle(backend, handled, needed))}
    if idle:
        _begin_again(backend, idle, {}, anew)
    can_explore = not anew and not _has_memory(backend)
    for attempt in count(1):
        work = strategy.update(backend)
        missing = _missing(backend, pairs)
        if not any(map(len, missing.values())):
            break
        strategy.marking.forget()  # the marks of this attempt are for the update after it
        if attempt >= SETTINGS.group_attempts and can_explore and backend.is_complete:
            _explore(backend, strategy, missing)
            can_explore = False
        else:
            _begin_again(backend, {}, missing, anew)
    return work


def _explore(backend: Backend, strategy: Strategy, missing: dict[str, Matrix]) -> None:
    """Finds the groups that the update under way needs by making it, and begins it again with these."""
    gone, come = backend.changes.explicit()
    found = dict(come)
    is_in_force = False
    try:
        with uninterrupted():
            backend.commit()
            is_in_force = True
        while any(map(len, missing.values())):
            with transaction(backend, {}, missing):
                strategy.update(backend)
                _extend(found, missing)  # before the commit: to take back what did not come changes nothing
                missing = _missing(backend, backend.program.needed)
    finally:
        with uninterrupted():
            if is_in_force:
                go_back(backend, gone, found, partial(strategy.update, backend))
    backend.begin(gone, found)


def _has_memory(backend: Backend) -> bool:
    """Whether a state depends on the way there: by numbers of derivations, or where a limit has cut it short."""
    return bool(backend.program.limits) or any(stratum.numbering is not None for stratum in backend.program.strata)


def _begin_again(
    backend: Backend, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix], anew: frozenset[str]
) -> None:
    """Begins the update under way from the start, with more groups that are handled, or fewer."""
    gone, come = map(dict, backend.changes.explicit())
    _extend(gone, deleted)
    _extend(come, inserted)
    with uninterrupted():
        backend.rollback()
    backend.begin(gone, come, anew)


def _extend(known: dict[str, Matrix], more: Mapping[str, Matrix]) -> None:
    for name, words in more.items():
        known[name] = np.concatenate((known[name], words)) if name in known else words


def _missing(backend: Backend, pairs: Mapping[str, str]) -> dict[str, Matrix]:
    """The groups that the update under way needs and that are not handled, by relation of handled groups."""
    gone, come = backend.changes.explicit()
    found = {}
    for handled, needed in pairs.items():
        words = backend.changes.came(needed)
        if len(words):
            is_handled = backend.contains(handled, words)
            if handled in gone:
                is_handled &= ~are_in(words, gone[handled])
            if handled in come:
                is_handled |= are_in(words, come[handled])
            found[handled] = words[~is_handled]
    return found


def _idle(backend: Backend, handled: str, needed: str) -> Matrix:
    """The groups that are handled but not needed, if they are many."""
    words = backend.facts(handled).words
    if len(words) <= 2 * backend.size(needed) + SETTINGS.most_idle_groups:
        return words[:0]
    return words[~backend.contains(needed, words)]


def _add(work: Work, more: Work) -> None:
    """What a stratum has cost in addition."""
    strata = {stratum.stratum: stratum for stratum in work.strata}
    for stratum in more.strata:
        strata[stratum.stratum].derivations += stratum.derivations
        strata[stratum.stratum].seconds += stratum.seconds
