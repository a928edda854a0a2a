"""What runs inside a task when a stratum is maintained; of one that decomposes, the kernel's own maintenance, on one
share.

A task reads the state of its share before the update and the changes of lower relations, has a procedure of the
strategy bring the share to its new fixpoint, and writes what has changed. It leaves what it has read as it was.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import StateChanges
from elastalog.backends.sets import Support
from elastalog.backends.spark.groups import groups_concerned, only_groups
from elastalog.backends.spark.states import are_heard
from elastalog.backends.spark.task import CHANGES, STATE, Result, StratumSpec, values_made
from elastalog.backends.spark.word_files import WordFile, read_changes, together, write_changes, write_words
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.planning.decompose import with_copies
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from elastalog.backends.kernel.backend import KernelBackend

OVER_BUDGET = "over-budget"
"""The fault of a task that has spent the budget, and the file by which it tells the driver at once."""

Procedure = Callable[[Any], Any]
"""What a strategy does to the maintenance of a stratum; what it returns is brought to the driver."""


def nothing_more(maintenance: Any) -> None:
    """The procedure where nothing is left to a strategy: aggregates are folded again in one way only."""


@dataclass(frozen=True, slots=True)
class UpdateSpec:
    """The work of all tasks that maintain a stratum. All inputs of `stratum` are in the state before the update; `news`
    are the changes of lower relations. `budget`: how many derivations are allowed."""

    stratum: StratumSpec
    news: Mapping[str, tuple[WordFile, ...]]
    procedure: Procedure
    budget: int | None


def update_share(spec: UpdateSpec, share: int) -> Iterator[Result]:
    """Maintains one share of a stratum that decomposes."""
    from elastalog.backends.kernel.backend import KernelBackend

    base, watch = spec.stratum, Watch()
    dictionary = base.values.dictionary()
    program = with_copies(base.program, base.plan, base.clauses_of(share, dictionary))
    backend = KernelBackend(
        program, dictionary, is_annotated=True, is_global=base.is_global, support=base.support, watch=watch
    )
    own = frozenset(base.plan.stratum.relations)
    held = {copy.name: base.facts(copy, share) for copy in base.plan.copies}
    explicit = {copy.name: base.explicit_changes(copy, share) for copy in base.plan.copies if copy.relation in own}
    news = {
        copy.name: together(
            read_changes(spec.news[copy.relation], base.width(copy), base.routings[copy.name], share), base.width(copy)
        )
        for copy in base.plan.copies
        if copy.relation in spec.news
    }
    # A share that is to be written anew is needed whole.
    is_worn = any(base.inputs[name].is_worn_in(base.teller(name), share) for name in own)
    if not is_worn:
        changed = {name: np.concatenate(sides) for name, sides in explicit.items()}
        groups = groups_concerned(base.plan, held, news, changed, dictionary)
        if groups is not None:
            shared = ((copy.name, copy.column) for copy in base.plan.copies if copy.column is not None)
            held |= {name: only_groups(held[name], column, groups) for name, column in shared}
    for name, found in held.items():
        backend.restore(name, *found)
    backend.begin(
        {name: gone for name, (gone, _) in explicit.items()}, {name: come for name, (_, come) in explicit.items()}
    )
    for name, changes in news.items():
        backend.receive(name, changes)
    watch.allow(spec.budget)

    def written() -> Iterator[Result]:
        for name, changes in backend.state_changes().items():
            if name in own:
                yield from told_changes(spec, share, name, changes, backend.relations[name])

    yield from with_outcome(spec, share, watch, dictionary, lambda: _perform(backend, spec), written)


def with_outcome(
    spec: UpdateSpec,
    share: int,
    watch: Watch,
    dictionary: Dictionary,
    perform: Callable[[], Any],
    written: Callable[[], Iterator[Result]],
    give_up: Callable[[], None] = lambda: None,
) -> Iterator[Result]:
    """What the procedure of a strategy returns, and what it has changed; or why it could not."""
    try:
        outcome = perform()
    except BudgetExceeded:
        (Path(spec.stratum.folder) / OVER_BUDGET).touch()
        give_up()
        yield Result.failed(share, OVER_BUDGET, watch.derivations)
        return
    new_values = values_made(spec.stratum, share, dictionary, 0)
    if new_values is not None:
        yield new_values
        if new_values.fault is not None:
            return
    yield Result(share, "", "", "", 0, 0, 0, 0, watch.derivations, None, pickle.dumps(outcome))
    yield from written()


def _perform(backend: KernelBackend, spec: UpdateSpec) -> Any:
    stratum = backend.program.strata[0]
    if stratum.aggregate is not None:
        if backend.is_affected(stratum):
            backend.refold(stratum)
        return spec.procedure(None)
    if spec.stratum.support is Support.LEVELS:
        maintenance = backend.maintain(stratum)
        outcome = spec.procedure(maintenance)
        backend.finish(maintenance)
    else:
        sets = backend.maintain_sets(stratum)
        outcome = spec.procedure(sets)
        backend.finish_sets(sets)
    return outcome


def told_changes(
    spec: UpdateSpec, share: int, name: str, changes: StateChanges, relation: KernelRelation
) -> Iterator[Result]:
    """Writes what has changed in a relation, and its whole state if the changes of this share have become many."""
    base, folder = spec.stratum, Path(spec.stratum.folder)
    if not len(changes):
        return
    heard = int(are_heard(changes, base.is_global).sum())
    yield Result.of(share, CHANGES, name, write_changes(folder, name, changes, base.support), 0, heard)
    if base.inputs[name].is_worn_in(base.teller(name), share):
        transaction.commit(relation, is_new=False)
        rows = relation.present_rows()
        mine = rows[base.teller(name).shares_of(relation.rows[rows]) == share]
        state = FactWords(relation.rows[mine], relation.level[mine], relation.count[mine])
        yield Result.of(share, STATE, name, write_words(folder, name, state, base.support), 0)
