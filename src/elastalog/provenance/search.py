"""Puts proofs together: steps for a whole frontier of facts at a time, then the tree from below. Nothing recurses, so
a proof may be as deep as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import Clause
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Premise, Proof, ProofSource, height_over
from elastalog.provenance.reading import AggregateUse, Item, Reading, WordFact
from elastalog.provenance.steps import EXPLICIT, MOST_MEMBERS, Step, Steps


class Assembly:
    """Makes proofs from steps. `claim` says in which sense the steps are the best ones."""

    def __init__(
        self,
        reading: Reading,
        steps: Steps,
        claim: str,
        source: ProofSource | None,
        chosen_among: Callable[[Fact], int | None] = lambda _: None,
    ) -> None:
        """`chosen_among`: how many facts have competed for the keys of one; None for one that did not compete."""
        self._chosen_among = chosen_among
        self._reading = reading
        self._steps = steps
        self._claim = claim
        self._source = source
        self._items: dict[WordFact, list[Item]] = {}

    def prove(self, root: WordFact, depth: int | None) -> Proof:
        """The proof of a present fact, to a depth: 0 leaves it unexpanded, None goes down to explicit facts."""
        self._find_steps(root, depth)
        return self._build(root, depth)

    def by_step(self, root: WordFact, step: Step) -> Proof:
        """The derivation of a fact by a given step, its premises not expanded."""
        items = self._of_step(root, step)
        children = tuple(self._child(item, self._unexpanded, {}, is_shown=False) for item in items)
        return Proof(self._reading.fact(root), step.rule, children, True, height_over(children), "", self._source)

    def aggregate(self, use: AggregateUse) -> AggregatePremise:
        """An aggregate with the best proofs of its members."""
        facts = [] if use.hidden is None else list(self._facts_of_members(use.hidden))
        proofs = {fact: self.prove(fact, None) for fact in facts}
        premise = self._child(use, proofs.__getitem__, {}, is_shown=True)
        assert isinstance(premise, AggregatePremise)
        return premise

    # --- steps -----------------------------------------------------------------------------------------------------

    def _find_steps(self, root: WordFact, depth: int | None) -> None:
        frontier = [root]
        met = {root}
        while frontier and depth != 0:
            self._steps.find(frontier)
            following: list[WordFact] = []
            for fact in frontier:
                for item in self._items_of(fact):
                    if isinstance(item, tuple):
                        following.append(item)
                    elif isinstance(item, AggregateUse) and item.hidden is not None:
                        following.extend(self._facts_of_members(item.hidden))
            frontier = []
            for fact in following:
                if fact not in met:
                    met.add(fact)
                    frontier.append(fact)
            depth = None if depth is None else depth - 1

    def _items_of(self, fact: WordFact) -> list[Item]:
        items = self._items.get(fact)
        if items is None:
            items = self._items[fact] = self._of_step(fact, self._steps.known[fact])
        return items

    def _of_step(self, fact: WordFact, step: Step) -> list[Item]:
        """The premises of a step."""
        if step.is_explicit or step.closure is not None:
            return list(step.bodies)
        return self._reading.items(_clause(step), fact, step.bodies)

    def _members(self, hidden: WordFact) -> list[WordFact]:
        """The members of an aggregate that are shown, with their steps found."""
        self._steps.find([hidden])
        members = list(self._steps.known[hidden].bodies[:MOST_MEMBERS])
        self._steps.find(members)
        return members

    def _facts_of_members(self, hidden: WordFact) -> Iterable[WordFact]:
        pending = [hidden]
        while pending:
            for member in self._members(pending.pop()):
                for item in self._items_of(member):
                    if isinstance(item, tuple):
                        yield item
                    elif isinstance(item, AggregateUse) and item.hidden is not None:
                        pending.append(item.hidden)

    # --- trees -----------------------------------------------------------------------------------------------------

    def _build(self, root: WordFact, depth: int | None) -> Proof:
        done: dict[tuple[WordFact, int | None], Proof] = {}
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
                pending.extend((used, below, False) for used in self._facts_below(fact) if (used, below) not in done)
                continue
            shared: dict[WordFact, AggregatePremise] = {}
            ready = {used: done[used, below] for used in self._facts_below(fact)}
            children = tuple(
                [self._child(item, ready.__getitem__, shared, is_shown=True) for item in self._items_of(fact)]
            )
            done[fact, left] = self._proof(fact, step, children)
        return done[root, depth]

    def _facts_below(self, fact: WordFact) -> list[WordFact]:
        found: list[WordFact] = []
        for item in self._items_of(fact):
            if isinstance(item, tuple):
                found.append(item)
            elif isinstance(item, AggregateUse) and item.hidden is not None:
                found.extend(self._facts_of_members(item.hidden))
        return found

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
        return Proof(
            shown, step.rule, children, True, height, self._claim, self._source, self._superseded_by(fact), chosen
        )

    def is_superseded(self, fact: WordFact) -> bool:
        """Whether a fact has been met that does not hold any more."""
        return self._steps.superseded_by(fact) is not None

    def _superseded_by(self, fact: WordFact) -> Fact | None:
        other = self._steps.superseded_by(fact)
        return None if other is None else self._reading.fact(other)

    def _unexpanded(self, fact: WordFact) -> Proof:
        if self._steps.is_explicit(fact):
            return self._proof(fact, EXPLICIT, ())
        height = self._steps.height(fact)
        by = self._superseded_by(fact)
        return Proof(self._reading.fact(fact), None, (), False, height, self._claim, self._source, by)


def _clause(step: Step) -> Clause:
    assert step.clause is not None
    return step.clause
