"""What a backend does: hold relations, bring strata to their fixpoint, and maintain them through updates.

A backend is a place for facts: this process, tasks of Spark, a device. All that stands above knows this protocol only;
what not every backend can do is asked of its `capabilities`. A backend may use another, and hand on to it what it does
not do itself: it evaluates a stratum where that is best, gives the facts with their annotations to a kernel, and leaves
updates to that.

An update is a transaction. `begin` takes the explicit changes; then, stratum by stratum from below, the strategy that
directs the update has each stratum that it reaches maintained, refolded or rebuilt; `commit` or `rollback` ends it.
Until then the previous epoch is intact. All facts are words (see `relations.words`); a relation is a matrix, one row a
fact.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum
from elastalog.relations.facts import FactWords, listed_rows
from elastalog.relations.pairs import Pairs, Rows

if TYPE_CHECKING:
    from elastalog.backends.sets import SetMaintenance

Matrix: TypeAlias = npt.NDArray[np.int32]
Vector: TypeAlias = npt.NDArray[Any]
T = TypeVar("T")
S = TypeVar("S")


GONE = -1
"""The level of an absent fact, outside a backend."""


@dataclass(frozen=True, slots=True)
class StateChanges:
    """Facts of one relation whose annotation an update has changed: the level before, and level and count now. GONE:
    absent."""

    words: Matrix
    was: Vector
    level: Vector
    count: Vector

    def __len__(self) -> int:
        return len(self.words)

    @staticmethod
    def joined(changes: Sequence[StateChanges], width: int) -> StateChanges:
        """Changes of facts of some width, in their order: of a fact that is in several, what the last say holds."""
        nothing = np.empty(0, np.int32)
        return StateChanges(
            np.concatenate([np.empty((0, width), np.int32), *(each.words for each in changes)]),
            np.concatenate([nothing, *(each.was for each in changes)]),
            np.concatenate([nothing, *(each.level for each in changes)]),
            np.concatenate([nothing, *(each.count for each in changes)]),
        )

    def taken(self, rows: Any) -> StateChanges:
        """Some of them: by numbers of rows, or whether each is wanted."""
        return StateChanges(self.words[rows], self.was[rows], self.level[rows], self.count[rows])

    def are_heard(self, is_global: bool) -> Vector:
        """Which of them strata above must hear of: facts that came or went; with global levels, all facts whose level
        changed."""
        heard: Vector = (self.was == GONE) != (self.level == GONE)
        if is_global:
            heard |= self.was != self.level
        return heard


@dataclass(frozen=True, slots=True)
class ClauseDerivations:
    """Derivations by one clause: for each, which of the facts asked for is its head (`heads`), and the fact it uses for
    each scan of the clause, in order (`bodies`, rows in parallel)."""

    clause: Clause
    heads: Vector
    bodies: tuple[FactWords, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """How the update under way reaches a stratum. `changes`: how many explicit facts of it and facts that it reads have
    changed. `must_rebuild`: it cannot be maintained, since its rules changed, or a `.limitsize` may have to cut it
    short."""

    changes: int
    must_rebuild: bool


DRIVEN: Final = 6
"""Numbers that a backend notes of each stratum that it has driven through."""


Driven: TypeAlias = "tuple[Sequence[LogicalStratum], array[int], int, float]"
"""What the backend has done to bring strata to their new fixpoints (see `Small`): all strata, what was counted of
those, which `costs_of` takes apart, and the effort and the seconds that it took. To take it apart at once, or to make
more than a tuple, would be a large part of a small update."""


def costs_of(done: Driven) -> list[list[int]]:
    """For each stratum that was driven through, its place among all, how many changes reached it, derivations, rows,
    effort and touched facts, as a `Watch` counts them."""
    found: list[list[int]] = np.frombuffer(done[1], np.int64).reshape(-1, DRIVEN).tolist()
    return found


@dataclass(slots=True)
class Small:
    """What a backend may do without being told stratum by stratum: maintain those that are not `asked` about, by
    number, as long as that takes at most `derivations` derivations each. If it takes more, the caller is asked, and
    `maintain` goes on from there. What it does without being told it adds to `done`."""

    derivations: int
    asked: Collection[int] = ()
    done: list[Driven] = field(default_factory=list)


class Maintenance(Protocol):
    """The delta-driven update of one stratum, or of a share of it, under way."""

    def update(self) -> None:
        """Brings it to its new fixpoint. Losses go first, to their end: the old derivations through deleted facts and
        what changed below are taken away, and heads left without any are lost in their turn. Then the lost facts are
        looked for in what is left. Then the derivations through what came are offered to their heads, which settle in
        the order of their levels."""


Procedure: TypeAlias = "Callable[[Maintenance], T] | Callable[[SetMaintenance], T]"
"""What a strategy does to a stratum under maintenance: of the second kind where it maintains sets."""


class UpdateChanges(Protocol):
    """What the update under way has changed so far, and which strata it reaches."""

    def explicit(self) -> tuple[Mapping[str, Matrix], Mapping[str, Matrix]]:
        """The explicit facts that it deletes and inserts, normalised: the very mapping that was given where all of it
        does something."""

    def facts(self, with_hidden: bool = False) -> ChangedWords:
        """The facts that it has inserted and deleted; those of hidden relations only `with_hidden`."""

    def came(self, relation: str) -> Matrix:
        """The facts that it has inserted into a relation, which may be hidden."""

    def size(self, relation: str) -> int:
        """About how many facts are stored of a relation now, which it has reached already (see `Backend.stored`)."""

    def levels(self, relation: str) -> tuple[int, int]:
        """About how many facts of a relation are explicit, and the sum of their levels, 0 where these are not known, or
        are those of lower strata too."""

    def reached(self, stratum: LogicalStratum) -> Reach | None:
        """How it reaches a stratum. None: neither an explicit fact of it nor a relation that it reads has changed."""

    def must_rebuild(self, stratum: LogicalStratum) -> bool:
        """Whether it is to evaluate a stratum anew if it reaches it: see `Reach`."""

    def affected(self, small: Small | None = None) -> Iterable[tuple[LogicalStratum, Reach]]:
        """The strata that it reaches, and how, each after those that it reads. The caller brings each to its new
        fixpoint before it asks for the next: what has changed in it decides which others follow. Those that are `small`
        the backend may do instead."""


class States(Protocol):
    """What a store keeps of relations: their facts, each with level and count, hidden relations included."""

    def of(self, relation: str) -> FactWords:
        """All facts of a relation, outside an update."""

    def changed(self) -> dict[str, StateChanges]:
        """What the update under way has changed, by relation."""

    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to given facts, after changes in their order, instead of a bootstrap."""


class Shifts(Protocol):
    """Going from one epoch to another by writing annotations and nothing else, for trials. Where a backend has them, a
    state is levels and counts in its memory, and its commits need not be kept from Ctrl-C: they happen, and leave no
    update under way, or do not. What a shift is, is the backend's business."""

    @property
    def is_under_way(self) -> bool:
        """Whether there is an update that has been begun, and neither committed nor rolled back."""

    def back(self, most: int | None = None, instead_of: Any | None = None) -> Any | None:
        """What `make` will need to go back, and forth again, once the update under way is committed; it cannot be made
        if that has touched more than `most` facts. None where a relation was evaluated anew. `instead_of`: one made
        with the same `most` that is not needed any more."""

    def can_make(self, shift: Any) -> bool:
        """Whether a shift can still be made."""

    def make(self, shift: Any) -> None:
        """Goes from the state before a committed update to the one after it, or back, outside an update."""

    def touched(self, shift: Any) -> Mapping[str, Matrix] | None:
        """The facts that are not the same on both sides, those with other derivations at their level among them, and
        perhaps some that are. None if the shift cannot be made any more."""

    def depart(self) -> None:
        """From now on, until `arrive`, a shift stays possible."""

    def arrive(self) -> None:
        """See `depart`."""

    def pretend(self, relation: str, absent: Matrix | None, present: Matrix | None) -> None:
        """Strata above a finished relation are told that some facts are absent and others present, during an update
        that will be taken back."""


class Equivalences(Protocol):
    """Equivalences that are kept as classes, outside an update."""

    def pairs(self, relation: str) -> Pairs | None:
        """The facts of a relation that is kept so, not written out; None for any other."""

    def chain(self, relation: str, pair: Sequence[int]) -> Matrix | None:
        """How a pair follows: the shortest chain of stored pairs, each taken either way, among those that give it its
        level. None if the pair is stored itself, or the relation is not kept so."""

    def levels_of_chains(self, relation: str, pairs: Matrix) -> Vector:
        """For each of some pairs of a relation kept as classes, the least, over all chains of stored pairs, of the
        highest level in the chain. Where levels are kept."""


class Replay(Protocol):
    """A stratum with subsumption as it was round by round, the facts that have left it included."""

    def level(self, relation: str, row: tuple[int, ...]) -> int:
        """The round in which a fact came."""

    def superseded_by(self, relation: str, row: tuple[int, ...]) -> tuple[int, ...] | None:
        """A fact that dominated another when it left; None for one that has not."""

    def derivations(self, relation: str, words: Matrix) -> list[ClauseDerivations]:
        """The derivations of some facts, also from those that have left."""


class Replays(Protocol):
    """Strata with subsumption are evaluated again for proofs of what rests on superseded facts."""

    def replay(self, stratum: LogicalStratum) -> Replay | None:
        """Evaluates a stratum again, beside what is held of it, outside an update. None if what is held rests on
        nothing else: its facts have ranks."""


class FactFile(Protocol):
    """A Parquet file of words: columns `0`, `1`, …, `@level` and `@count`."""

    @property
    def path(self) -> str: ...
    @property
    def rows(self) -> int: ...


class FactFiles(Protocol):
    """The facts of `base` files, after the changes in `changes` files, in their order."""

    @property
    def base(self) -> Sequence[FactFile]: ...
    @property
    def changes(self) -> Sequence[FactFile]: ...


class Elsewhere(Protocol):
    """Facts that are not in this process, but in files that other processes see too. `folder`: where these are."""

    @property
    def folder(self) -> str: ...

    def load(self, relation: str, files: FactFiles) -> None:
        """Before the first bootstrap: the explicit facts of a relation are those of files in the folder, to which there
        is no other reference."""

    def files(self, relation: str, with_levels: bool = False) -> FactFiles | None:
        """The files of a relation, which they hold whole. None if it is in this process, or if levels are asked for and
        its files have other annotations."""

    def each(self, function: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """What a function of a module makes of every item, called where the files are, at the same time."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do beyond what all can. None: it cannot."""

    shifts: Shifts | None = None
    elsewhere: Elsewhere | None = None
    equivalences: Equivalences | None = None
    replays: Replays | None = None


class Backend(Protocol):
    """A program, its facts, and what follows from them."""

    @property
    def program(self) -> LogicalProgram: ...
    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def watch(self) -> Watch: ...
    @property
    def is_complete(self) -> bool:
        """Whether no `.limitsize` has cut an evaluation short."""

    # --- facts, outside an update ----------------------------------------------------------------------------------

    def load(self, facts: dict[str, Matrix]) -> None:
        """Adds explicit facts of some relations before the first bootstrap. They are taken out of the dict, so
        that they are not kept twice."""

    def size(self, relation: str) -> int:
        """The number of facts."""

    def stored(self, relation: str) -> int:
        """The number of facts, outside an update, but for pairs of an equivalence that need not be written out."""

    def facts(self, relation: str) -> FactWords:
        """All facts of a relation, with levels and counts where they have them."""

    def select(self, relation: str, columns: tuple[int, ...], key: Vector) -> FactWords:
        """The facts with given words in some columns; of an equivalence that is kept as classes without levels."""

    def contains(self, relation: str, words: Matrix) -> Vector:
        """Which of some facts are present."""

    def is_explicit(self, relation: str, words: Matrix) -> Vector:
        """Which of some facts are explicit."""

    def profile(self) -> Profile:
        """What rules and relations cost."""

    # --- derivations, outside an update ----------------------------------------------------------------------------

    def derivations(
        self, relation: str, words: Matrix, is_sought: Callable[[Clause], bool] | None = None
    ) -> list[ClauseDerivations]:
        """The derivations of some facts, which need not be present, in the present epoch, by the clauses sought."""

    # --- evaluation ------------------------------------------------------------------------------------------------

    def reprogram(
        self, program: LogicalProgram, renamed: Mapping[str, str], guards: Mapping[str, bool] | None = None
    ) -> None:
        """Goes over to another program, outside an update. Facts stay; some hidden relations may have other names,
        relations that the other program does not have go, and those it has in addition are empty, but for `guards` that
        hold their fact."""

    def bootstrap(self, stratum: LogicalStratum) -> int:
        """Brings a stratum, whose relations hold their explicit facts, to its fixpoint. Returns the derivations
        enumerated."""

    def prepare(self, stratum: LogicalStratum) -> None:
        """Plans updates of a stratum, and makes what they will need."""

    def maintain(self, stratum: LogicalStratum, procedure: Procedure[T], *, is_portable: bool) -> list[T]:
        """Has a procedure bring a stratum to its new fixpoint; those above see the net change. Returns what it
        returned: once, or once for every share of the facts if it `is_portable`, a function of a module that may be
        called where the facts are. Raises BudgetExceeded when the budget is spent, and then the stratum is as
        before."""

    def refold(self, stratum: LogicalStratum) -> None:
        """Maintains an aggregate, or the classes of an equivalence: folds the groups with changed members again, forms
        the classes with changed pairs anew, and only those."""

    def rebuild(self, stratum: LogicalStratum) -> int:
        """Evaluates a stratum anew from its new explicit facts. Returns the derivations enumerated. The facts that are
        not as they were are counted as touched, if the backend happens to find them."""

    # --- transaction -----------------------------------------------------------------------------------------------

    def begin(
        self, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix], anew: frozenset[str] = frozenset()
    ) -> None:
        """Starts an update. It is normalised against the explicit facts: insertion wins, deleting what is not explicit
        and inserting what is are no changes. `anew`: relations that cannot be maintained, and must be evaluated
        anew."""

    @property
    def changes(self) -> UpdateChanges: ...
    @property
    def states(self) -> States: ...

    def commit(self) -> None:
        """Ends the update: its state becomes that of the new epoch."""

    def rollback(self) -> None:
        """Ends the update: everything is as it was. Also where none is under way."""


@dataclass(frozen=True, slots=True)
class ClauseCost:
    """What a clause cost in the last evaluation of its stratum from the start, in this process."""

    stratum: int
    clause: Clause
    derivations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StratumElsewhere:
    """The last evaluation of a stratum from the start in another place than this process. `transfer`: the seconds in
    which facts went there and came back, among `seconds`. `bytes`: by relation, what its facts took there; `peak`: the
    most that was in use."""

    stratum: int
    place: str
    seconds: float
    transfer: float
    rounds: int
    derivations: int
    bytes: Mapping[str, int]
    peak: int


NO_OTHER_PLACE = "no GPU or cluster is available, or none was asked for"
"""Why everything is evaluated in this process."""

BEGUN_HERE = "begun here; a GPU goes on with what takes long"
"""Why strata are that a GPU might evaluate."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a stratum is evaluated from the start, `kernel`, `gpu` or `spark`, and why there: what the log says in one
    line."""

    stratum: int
    relations: tuple[str, ...]
    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What things cost: clauses in the order of evaluation, by relation the memory of this process that its facts,
    annotations and indexes take, strata that were evaluated elsewhere, and where each is."""

    clauses: tuple[ClauseCost, ...]
    bytes: Mapping[str, int]
    elsewhere: tuple[StratumElsewhere, ...] = ()
    places: tuple[Placed, ...] = ()


ChangedWords: TypeAlias = Mapping[str, tuple[Rows, Rows]]
"""By relation: the facts inserted, and the facts deleted."""


LISTED: Final = 6
"""Words that are listed of each relation."""


class ListedChanges(Mapping[str, tuple[Rows, Rows]]):
    """The changes of several relations in a row of words, split by relation when they are looked at, which is seldom.
    First where what is listed of relations ends; then, for each, its place among `names`, how many words a fact has,
    where those inserted begin and how many they are, and the same of those deleted; then facts. `impact`: how many
    facts were inserted or deleted."""

    def __init__(self, words: array[int] | memoryview, names: Sequence[str], impact: int) -> None:
        self.words = words
        self.names = names
        self.impact = impact

    def placed(self) -> Iterator[tuple[int, ...]]:
        """What is listed of each relation."""
        words = self.words
        return zip(*[iter(words[1 : words[0]])] * LISTED)  # noqa: B905  # as many of each

    @cached_property
    def _sides(self) -> dict[str, tuple[Rows, Rows]]:
        words, names = self.words, self.names
        return {
            names[number]: (listed_rows(words, first, came, width), listed_rows(words, later, went, width))
            for number, width, first, came, later, went in self.placed()
        }

    def __getitem__(self, relation: str) -> tuple[Rows, Rows]:
        return self._sides[relation]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sides)

    def __len__(self) -> int:
        return len(self._sides)


def impact_of(changes: ChangedWords) -> int:
    """How many facts came or went."""
    if type(changes) is ListedChanges:  # quicker to ask than an abstract class
        return changes.impact
    return sum([len(inserted) + len(deleted) for inserted, deleted in changes.values()])
