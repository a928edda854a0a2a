"""What runs inside a task when a stratum is maintained; of one that decomposes, the kernel's own maintenance, on one
share.

A task reads the state of its share before the update and the changes of lower relations, has a procedure of the
strategy bring the share to its new fixpoint, and writes what has changed. It leaves what it has read as it was.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import Homes
from elastalog.backends.protocol import Matrix, Procedure, StateChanges
from elastalog.backends.spark.groups import groups_concerned, only_groups
from elastalog.backends.spark.results import ChangesWritten, Failed, Fault, Result, StateWritten, ValuesMade, Worked
from elastalog.backends.spark.task import StratumSpec, values_made
from elastalog.backends.spark.word_files import WordFile, read_changes, together, write_changes, write_words
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.folders.addresses import inside
from elastalog.folders.files import put
from elastalog.planning.decompose import with_copies
from elastalog.relations.facts import FactWords

if TYPE_CHECKING:
    from elastalog.backends.kernel.backend import KernelBackend

OVER_BUDGET = "over-budget"
"""The file by which a task that has spent the budget tells the driver at once."""


def nothing_more(maintenance: Any) -> None:
    """The procedure where nothing is left to a strategy: aggregates are folded again in one way only."""


@dataclass(frozen=True, slots=True)
class UpdateSpec:
    """The work of all tasks that maintain a stratum. All files of `stratum` are in the state before the update; those
    `below` are the changes of lower relations. What the `procedure` of a strategy returns is brought to the driver.
    `budget`: how many derivations are allowed."""

    stratum: StratumSpec
    below: Mapping[str, tuple[WordFile, ...]]
    procedure: Procedure[Any]
    budget: int | None


def update_share(spec: UpdateSpec, share: int) -> Iterator[Result]:
    """Maintains one share of a stratum that decomposes."""
    from elastalog.backends.kernel.backend import KernelBackend

    base, watch = spec.stratum, Watch()
    dictionary = base.values.dictionary()
    program = with_copies(base.program, base.plan, base.clauses_of(share, dictionary))
    kernel = KernelBackend(program, dictionary, annotation=base.annotation, watch=watch)
    own = frozenset(base.plan.stratum.relations)
    held = {copy.name: base.facts(copy, share) for copy in base.plan.copies}
    explicit = {copy.name: base.explicit_changes(copy, share) for copy in base.plan.copies if copy.relation in own}
    below = {
        copy.name: together(
            read_changes(spec.below[copy.relation], base.width(copy), base.routings[copy.name], share), base.width(copy)
        )
        for copy in base.plan.copies
        if copy.relation in spec.below
    }
    # A share that is to be written anew is needed whole.
    is_worn = any(base.files[name].is_worn_in(base.owners(name), share) for name in own)
    if not is_worn:
        changed = {name: np.concatenate(sides) for name, sides in explicit.items()}
        groups = groups_concerned(base.plan, held, below, changed, dictionary)
        if groups is not None:
            shared = ((copy.name, copy.column) for copy in base.plan.copies if copy.column is not None)
            held |= {name: only_groups(held[name], column, groups) for name, column in shared}
    for name, found in held.items():
        kernel.states.restore(name, *found)
    kernel.begin(
        {name: gone for name, (gone, _) in explicit.items()}, {name: come for name, (_, come) in explicit.items()}
    )
    for name, changes in below.items():
        kernel.receive(name, changes)
    watch.allow(spec.budget)

    def written() -> Iterator[Result]:
        for name, changes in kernel.states.changed().items():
            if name in own:
                yield from owned_changes(spec, share, name, changes, kernel.held.relations[name])

    made = partial(values_made, base, share, dictionary)
    yield from with_outcome(spec, share, watch, made, lambda: _perform(kernel, spec), written)


def with_outcome(
    spec: UpdateSpec,
    share: int,
    watch: Watch,
    made: Callable[[], ValuesMade | Failed | None],
    perform: Callable[[], Any],
    written: Callable[[], Iterator[Result]],
    give_up: Callable[[], None] = lambda: None,
) -> Iterator[Result]:
    """What the procedure of a strategy returns, and what it has made and changed; or why it could not."""
    try:
        outcome = perform()
    except BudgetExceeded:
        put(inside(spec.stratum.folder, OVER_BUDGET))
        give_up()
        yield Failed(share, Fault.OVER_BUDGET)
        return
    new_values = made()
    if new_values is not None:
        yield new_values
    if not isinstance(new_values, Failed):
        yield Worked(share, watch.derivations, pickle.dumps(outcome))
        yield from written()


def _perform(kernel: KernelBackend, spec: UpdateSpec) -> Any:
    stratum = kernel.program.strata[0]
    if stratum.aggregate is None:
        (outcome,) = kernel.maintain(stratum, spec.procedure, is_portable=True)
        return outcome
    if kernel.changes.reached(stratum) is not None:
        kernel.refold(stratum)
    return None


def owned_changes(
    spec: UpdateSpec,
    share: int,
    name: str,
    changes: StateChanges,
    relation: KernelRelation,
    outward: Callable[[Matrix], Matrix] = lambda words: words,
) -> Iterator[Result]:
    """Writes what has changed in a relation, and its whole state if the changes of this share have become many.
    `outward`: the words of the relation as they are written."""
    base, folder = spec.stratum, spec.stratum.folder
    if not len(changes):
        return
    heard = int(changes.are_heard(base.annotation.is_global).sum())
    yield ChangesWritten(share, name, write_changes(folder, name, changes, base.annotation), heard)
    if base.files[name].is_worn_in(base.owners(name), share):
        transaction.commit(Homes({name: relation}), ())
        rows = relation.present_rows()
        words = outward(relation.rows[rows])
        is_mine = base.owners(name).shares_of(words) == share
        state = FactWords(words[is_mine], relation.level[rows[is_mine]], relation.count[rows[is_mine]])
        yield StateWritten(share, name, write_words(folder, name, state, base.annotation))
