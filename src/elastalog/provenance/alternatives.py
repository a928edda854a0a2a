"""Enumerates distinct proofs of a fact in the order of their heights, none of which repeats a fact on a path.

The neighbourhood of the fact is collected once, with the least height of every fact in it. Then, for one height after
the other, the trees of exactly that height are enumerated; derivations that are too high, even with the lowest proofs
of their facts, are left out beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached
from elastalog.provenance.metrics import HEIGHT, Best, best_values
from elastalog.provenance.proof import AggregatePremise, Condition, Premise, Proof
from elastalog.provenance.ranks import Neighbourhood
from elastalog.provenance.reading import AggregateUse, Item, Reading, WordFact

MOST_HEIGHT = 150
"""Proofs beyond this height are enumerated no further."""
MOST_TRIED = 1_000_000
"""Partial proofs that are tried before giving up."""


class Alternatives:
    """The proofs of the facts of one neighbourhood. `premise_of` proves an aggregate, of which one proof is enough."""

    def __init__(
        self, around: Neighbourhood, reading: Reading, premise_of: Callable[[AggregateUse], AggregatePremise]
    ) -> None:
        self._around = around
        self._reading = reading
        self._premise_of = premise_of
        self._best: Best = best_values(around.hypergraph(HEIGHT), HEIGHT, reading.look)
        self._ordered: dict[int, list[int]] = {}
        self._tried = 0
        self._is_cut = False

    def of(self, fact: WordFact) -> Iterator[Proof]:
        """Every proof, lowest first."""
        root = self._around.numbers[fact]
        height = self._best.values[root]
        self._is_cut = True
        while self._is_cut:
            if height > MOST_HEIGHT:
                raise _too_many(f"the next proof is higher than {MOST_HEIGHT}")
            self._is_cut = False
            for proof in self._up_to(root, height, frozenset()):
                if proof.height == height:
                    yield proof
            height += 1

    def _up_to(self, fact: int, most: int, path: frozenset[int]) -> Iterator[Proof]:
        """The proofs up to a height that use no fact of the path. Notes in `_is_cut` when a higher one may exist."""
        self._tried += 1
        if self._tried > MOST_TRIED:
            raise _too_many(f"more than {MOST_TRIED:,} partial proofs were tried")
        self._reading.look()
        around = self._around
        shown = self._reading.fact(around.facts[fact])
        if fact in around.explicit:
            yield Proof(shown, None, (), True, 0)
            return
        other = around.superseded_by(around.facts[fact])
        by = None if other is None else self._reading.fact(other)
        inner = path | {fact}
        for derivation in self._derivations(fact):
            bodies = around.bodies[derivation]
            if any(body in inner for body in bodies):
                continue
            if HEIGHT.derived([self._best.values[body] for body in around.counted(derivation)]) > most:
                self._is_cut = True
                continue
            step = around.step(derivation)
            items: list[Item] = list(step.bodies)
            if step.closure is None:
                assert step.clause is not None
                items = self._reading.items(step.clause, around.facts[fact], step.bodies)
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
            return self._best.values[self._around.numbers[item.hidden]]
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


def _too_many(reason: str) -> LimitReached:
    advice = "ask for fewer proofs, or for `db.derivations(fact)`, which lists one level"
    return LimitReached([Diagnostic("E0705", f"the enumeration of proofs was given up: {reason}", help=advice)])
