"""What operators list while they apply derivations: touched entries, by relation, in arrays that are used again."""

from __future__ import annotations

from elastalog.backends.kernel.store.bookkeeping import LISTED, TOUCHED_USED, room
from elastalog.backends.kernel.store.memory import NO_WORDS, Vector, state_vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.set_table import USED
from elastalog.backends.watch import Watch


class EntryLists:
    """One list a relation. `begin` makes room for what a block may bring and hands out the list with the state vector
    that operators work on; `finish` takes over what they did."""

    def __init__(self, watch: Watch) -> None:
        self.state: Vector = state_vector()
        self._watch = watch
        self._lists: dict[str, Vector] = {}
        self._listed: dict[str, int] = {}
        self._begun: KernelRelation | None = None

    def begin(self, relation: KernelRelation, used: int) -> tuple[Vector, Vector]:
        """The list of a relation and the state vector, with room for `used` more rows."""
        relation.is_settled = False
        relation.reserve_touched(used)
        listed = self._listed.get(relation.name, 0)
        array = room(self._lists.get(relation.name, NO_WORDS), listed + used)
        self._lists[relation.name] = array
        state = self.state
        state[USED] = relation.used
        state[TOUCHED_USED] = relation.touched_used
        state[LISTED] = listed
        self._begun = relation
        return array, state

    def finish(self, derivations: int) -> None:
        """The operator is done; so many derivations were applied."""
        self.keep()
        self._watch.derived(derivations)

    def keep(self) -> None:
        """Tells the relation how far it goes now, if an operator has begun, even one that Ctrl-C has kept from being
        finished: a rollback must know."""
        relation, state = self._begun, self.state
        if relation is not None:
            relation.used = int(state[USED])
            relation.touched_used = int(state[TOUCHED_USED])
            self._listed[relation.name] = int(state[LISTED])
            self._begun = None

    def take(self) -> dict[str, Vector]:
        """What has been listed, by relation, where anything was; the lists are empty again."""
        lists = {name: self._lists[name][:listed].copy() for name, listed in self._listed.items() if listed}
        self._listed.clear()
        return lists
