"""Builds proofs: steps for a whole frontier of facts at a time, then the tree from below. Nothing recurses, so a proof
may be as deep as memory allows.

Distinct proofs of a fact are enumerated in the order of their heights; none repeats a fact on a path. The neighbourhood
of the fact is collected once, with the least height of every fact in it. Then the trees of exactly one height after the
other are enumerated. Derivations that are too high even with the lowest proofs of their facts are left out beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from elastalog.diagnostics.diagnostic import InternalError, LimitReached, finding
from elastalog.planning.logical import Clause
from elastalog.provenance.fact import Fact
from elastalog.provenance.metrics import HEIGHT
from elastalog.provenance.proof import (
    BY_RANKS,
    LEAST_BY_STRATUM,
    AggregatePremise,
    Condition,
    Member,
    Premise,
    Proof,
    ProofSource,
    height_over,
)
from elastalog.provenance.ranks import Neighbourhood
from elastalog.provenance.reading import AggregateUse, Item, Reading, WordFact
from elastalog.provenance.steps import EXPLICIT, MOST_MEMBERS, AnnotatedSteps, Step, Steps

_MOST_KEPT = 10_000
"""Facts of which it is kept for the next epoch how they are proved."""


@dataclass(slots=True)
class Assembly:
    """Makes proofs from steps. `claim` says in which sense the steps are the best ones. `chosen_among`: the number of
    facts that competed for the keys of a fact; None if it did not compete."""

    _reading: Reading
    _steps: Steps
    _claim: str
    _source: ProofSource | None
    _chosen_among: Callable[[Fact], int | None]
    _items: dict[WordFact, list[Item]] = field(default_factory=dict)
    _whole: dict[tuple[WordFact, int | None], Proof] = field(default_factory=dict)
    """Proofs that go down to explicit facts: many facts rest on the same ones."""
    _earlier: dict[tuple[WordFact, int | None], Proof] = field(default_factory=dict)
    """Proofs of earlier epochs."""

    def prove(self, root: WordFact, depth: int | None) -> Proof:
        """The proof of a present fact, to a depth: 0 leaves it unexpanded, None goes down to explicit facts."""
        if depth is None:
            if (root, None) in self._whole:
                return self._whole[root, None]
            if (root, None) in self._earlier and self._renew(root):
                return self._whole[root, None]
        self.find_steps([root], depth)
        return self.build(root, depth)

    def after(
        self, touched: Collection[WordFact], source: ProofSource, chosen_among: Callable[[Fact], int | None]
    ) -> Assembly | None:
        """An assembly for a later epoch alone, which keeps what is known of facts that no update has touched since.
        None where proofs rest on more than the derivations of their facts."""
        steps, reading = self._steps, self._reading
        is_simple = not (reading.aggregates or reading.equivalences or reading.rivalled or reading.given)
        if not is_simple or not isinstance(steps, AnnotatedSteps) or len(steps.known) > _MOST_KEPT:
            return None
        steps.forget(touched)
        for fact in touched:
            self._items.pop(fact, None)
        self._earlier.update(self._whole)
        return Assembly(reading, steps, self._claim, source, chosen_among, self._items, {}, self._earlier)

    def _renew(self, root: WordFact) -> bool:
        """Whether no fact of an earlier proof has been touched since: then it is one of this epoch."""
        whole, pending = self._whole, [root]
        while pending:
            fact = pending[-1]
            before, items = self._earlier.get((fact, None)), self._items.get(fact)
            if before is None or items is None:
                return False
            children: list[Premise] = []
            for item in items:
                if isinstance(item, Condition):
                    children.append(item)
                elif isinstance(item, AggregateUse):
                    return False
                elif (found := whole.get((item, None))) is not None:
                    children.append(found)
                else:
                    pending.append(item)
            if len(children) == len(items):
                # A child may have been touched, and proved anew for another fact.
                height = height_over(children) if children and not self._steps.height(fact) else before.height
                whole[fact, None] = Proof(
                    before.fact, before.rule, tuple(children), True, height, before.claim, self._source
                )
                pending.pop()
        return True

    def by_step(self, root: WordFact, step: Step) -> Proof:
        """The derivation of a fact by a given step, its premises not expanded."""
        items = _premises(self._reading, root, step)
        children = tuple(self._child(item, self._unexpanded, {}, is_shown=False) for item in items)
        return Proof(self._reading.fact(root), step.rule, children, True, height_over(children), "", self._source)

    def aggregate(self, use: AggregateUse) -> AggregatePremise:
        """An aggregate with the best proofs of its members."""
        proofs = {fact: self.prove(fact, None) for fact in list(self._facts_in([use]))}
        premise = self._child(use, proofs.__getitem__, {}, is_shown=True)
        assert isinstance(premise, AggregatePremise)
        return premise

    # --- steps -----------------------------------------------------------------------------------------------------

    def _goes_on(self, fact: WordFact) -> bool:
        """Whether a fact that a proof uses is proved, too."""
        return True

    def find_steps(self, roots: Iterable[WordFact], depth: int | None) -> None:
        frontier = list(dict.fromkeys(roots))
        met = set(frontier)
        while frontier and depth != 0:
            self._steps.find(frontier)
            following = [used for fact in frontier for used in self._facts_in(self._items_of(fact))]
            frontier = []
            for fact in following:
                if fact not in met:
                    met.add(fact)
                    if self._goes_on(fact):
                        frontier.append(fact)
            depth = None if depth is None else depth - 1

    def _items_of(self, fact: WordFact) -> list[Item]:
        items = self._items.get(fact)
        if items is None:
            items = self._items[fact] = _premises(self._reading, fact, self._steps.known[fact])
        return items

    def _members(self, hidden: WordFact) -> list[WordFact]:
        """The members of an aggregate that are shown, with their steps found."""
        self._steps.find([hidden])
        members = list(self._steps.known[hidden].bodies[:MOST_MEMBERS])
        self._steps.find(members)
        return members

    def _facts_in(self, items: Iterable[Item]) -> Iterator[WordFact]:
        """The facts among premises, and among those of the members of aggregates."""
        for item in items:
            if isinstance(item, tuple):
                yield item
            elif isinstance(item, AggregateUse) and item.hidden is not None:
                for member in self._members(item.hidden):
                    yield from self._facts_in(self._items_of(member))

    # --- trees -----------------------------------------------------------------------------------------------------

    def build(self, root: WordFact, depth: int | None) -> Proof:
        done: dict[tuple[WordFact, int | None], Proof] = self._whole if depth is None else {}
        begun: set[tuple[WordFact, int | None]] = set()
        pending = [(root, depth, False)]
        while pending:
            fact, left, is_ready = pending.pop()
            if (fact, left) in done:
                continue
            step = self._steps.known.get(fact)
            if left == 0 or step is None:
                done[fact, left] = self._unexpanded(fact)
                continue
            below = None if left is None else left - 1
            if not is_ready:
                if (fact, left) in begun:
                    raise InternalError("provenance", f"the proof of {self._reading.fact(fact)} rests on itself")
                begun.add((fact, left))
                pending.append((fact, left, True))
                used_facts = self._facts_in(self._items_of(fact))
                pending.extend((used, below, False) for used in used_facts if (used, below) not in done)
                continue
            shared: dict[WordFact, AggregatePremise] = {}
            ready = {used: done[used, below] for used in self._facts_in(self._items_of(fact))}
            children = tuple(
                [self._child(item, ready.__getitem__, shared, is_shown=True) for item in self._items_of(fact)]
            )
            done[fact, left] = self._proof(fact, step, children)
        return done[root, depth]

    def _child(
        self,
        item: Item,
        proof_of: Callable[[WordFact], Proof],
        shared: dict[WordFact, AggregatePremise],
        is_shown: bool,
    ) -> Premise:
        match item:
            case tuple():
                return proof_of(item)
            case Condition():
                return item
            case AggregateUse(hidden=None):
                return AggregatePremise(item.text, item.result, 0, ())
            case AggregateUse(hidden=tuple(hidden)):
                if hidden not in shared:
                    self._steps.find([hidden])
                    number = self._steps.known[hidden].number
                    members = (
                        tuple(self._member(m, proof_of, shared) for m in self._members(hidden)) if is_shown else ()
                    )
                    shared[hidden] = AggregatePremise(item.text, item.result, number, members)
                return shared[hidden]
            case _:
                raise AssertionError(item)

    def _member(
        self, member: WordFact, proof_of: Callable[[WordFact], Proof], shared: dict[WordFact, AggregatePremise]
    ) -> Member:
        # Aggregates are nested as deep as the program's text, so this recursion is shallow.
        children = tuple(self._child(item, proof_of, shared, is_shown=True) for item in self._items_of(member))
        return Member(self._reading.body_of(_clause(self._steps.known[member])), children)

    def _proof(self, fact: WordFact, step: Step, children: tuple[Premise, ...]) -> Proof:
        height = 0 if step.is_explicit else self._steps.height(fact)
        if height is None:
            height = height_over(children)
        shown = self._reading.fact(fact)
        chosen = self._chosen_among(shown) if step.rule is not None else None
        is_given = step.is_explicit and fact[0] in self._reading.derived
        by, claim = self._superseded_by(fact), self._claim
        if claim == BY_RANKS and fact[0] not in self._reading.ranked:
            below = (child for child in children if not isinstance(child, Condition))
            if all(isinstance(child, Proof) and child.claim != BY_RANKS for child in below):
                claim = LEAST_BY_STRATUM
        return Proof(shown, step.rule, children, True, height, claim, self._source, by, chosen, is_given)

    def _superseded_by(self, fact: WordFact) -> Fact | None:
        other = self._steps.superseded.by(fact)
        return None if other is None else self._reading.fact(other)

    def _unexpanded(self, fact: WordFact) -> Proof:
        if self._steps.is_explicit(fact):
            return self._proof(fact, EXPLICIT, ())
        height = self._steps.height(fact)
        by = self._superseded_by(fact)
        return Proof(self._reading.fact(fact), None, (), False, height, self._claim, self._source, by)


def _premises(reading: Reading, fact: WordFact, step: Step) -> list[Item]:
    """The premises of a step."""
    if step.is_explicit or step.closure is not None:
        return list(step.bodies)
    return reading.items(_clause(step), fact, step.bodies)


def _clause(step: Step) -> Clause:
    assert step.clause is not None
    return step.clause


# --- distinct proofs -------------------------------------------------------------------------------------------------


MOST_HEIGHT = 150
"""Proofs beyond this height are enumerated no further."""
MOST_TRIED = 1_000_000
"""Partial proofs that are tried before giving up."""


@dataclass
class Alternatives:
    """The proofs of the facts of one neighbourhood. `_premise_of` proves an aggregate, of which one proof is enough."""

    _around: Neighbourhood
    _reading: Reading
    _premise_of: Callable[[AggregateUse], AggregatePremise]

    def __post_init__(self) -> None:
        self._best = self._around.best_values(HEIGHT)
        self._ordered: dict[int, list[int]] = {}
        self._tried = 0
        self._is_cut = False

    def of(self, fact: WordFact) -> Iterator[Proof]:
        """Every proof, lowest first."""
        root = self._around.numbers[fact]
        height = self._best[root]
        self._is_cut = True
        while self._is_cut:
            if height > MOST_HEIGHT:
                raise LimitReached([finding("E0705", reason=f"the next proof is higher than {MOST_HEIGHT}")])
            self._is_cut = False
            for proof in self._up_to(root, height, frozenset()):
                if proof.height == height:
                    yield proof
            height += 1

    def _up_to(self, fact: int, most: int, path: frozenset[int]) -> Iterator[Proof]:
        """The proofs up to a height that use no fact of the path. Notes in `_is_cut` when a higher one may exist."""
        self._tried += 1
        if self._tried > MOST_TRIED:
            raise LimitReached([finding("E0705", reason=f"more than {MOST_TRIED:,} partial proofs were tried")])
        self._reading.look()
        around = self._around
        shown = self._reading.fact(around.facts[fact])
        if fact in around.explicit:
            yield Proof(shown, None, (), True, 0, is_given=shown.relation in self._reading.derived)
            return
        other = around.superseded_by(around.facts[fact])
        by = None if other is None else self._reading.fact(other)
        inner = path | {fact}
        for derivation in self._derivations(fact):
            bodies = around.bodies[derivation]
            if any(body in inner for body in bodies):
                continue
            if HEIGHT.derived([self._best[body] for body in around.counted(derivation)]) > most:
                self._is_cut = True
                continue
            step = around.step(derivation)
            items = _premises(self._reading, around.facts[fact], step)
            choices = [_Choices(self._choices(item, most - 1, inner)) for item in items]
            for children in _product(choices) if all(choices) else ():
                heights = [self._height(item, child) for item, child in zip(items, children, strict=True)]
                yield Proof(shown, step.rule, children, True, HEIGHT.derived(heights), superseded_by=by)

    def _derivations(self, fact: int) -> list[int]:
        """The derivations of a fact, in order."""
        known = self._ordered.get(fact)
        if known is None:
            known = self._ordered[fact] = sorted(self._around.of_head.get(fact, ()), key=self._around.sort_key)
        return known

    def _height(self, item: Item, child: Premise) -> int:
        if isinstance(item, AggregateUse) and item.hidden is not None:
            return self._best[self._around.numbers[item.hidden]]
        return (child.height or 0) if isinstance(child, Proof) else 0

    def _choices(self, item: Item, most: int, path: frozenset[int]) -> Iterator[Premise]:
        """What may stand for an item of a derivation."""
        if isinstance(item, Condition):
            return iter((item,))
        if isinstance(item, AggregateUse):
            return iter((self._premise_of(item),))
        return self._up_to(self._around.numbers[item], most, path)


class _Choices:
    """Premises that are looked for once, when they are first asked for. False if there is none."""

    def __init__(self, found: Iterator[Premise]) -> None:
        self._found = found
        self._known: list[Premise] = []

    def __iter__(self) -> Iterator[Premise]:
        for place in count():
            if place == len(self._known) and not self._look():
                return
            yield self._known[place]

    def __bool__(self) -> bool:
        return bool(self._known) or self._look()

    def _look(self) -> bool:
        """Whether there is one more."""
        for premise in self._found:
            self._known.append(premise)
            return True
        return False


def _product(choices: Sequence[Iterable[Premise]]) -> Iterator[tuple[Premise, ...]]:
    """All combinations, the last choice changing fastest."""
    if not choices:
        yield ()
        return
    for choice in choices[0]:
        for rest in _product(choices[1:]):
            yield (choice, *rest)
