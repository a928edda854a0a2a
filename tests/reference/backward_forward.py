"""Backward/forward checking a fact at a time, over ground derivations: the judge of the set-at-a-time form.

`FactAtATime` is B/F for one stratum after another (positive programs). `Stream` is B/F with marks for update streams,
one rule application a step, with the counters of the paper: what applied a rule, not what was looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Fact = tuple[str, tuple[Any, ...]]
Derivation = tuple[Fact, tuple[Fact, ...]]


def closure(explicit: Iterable[Fact], derivations: list[Derivation]) -> set[Fact]:
    """All facts that follow."""
    known, grew = set(explicit), True
    while grew:
        new = {head for head, body in derivations if known.issuperset(body)} - known
        known, grew = known | new, bool(new)
    return known


@dataclass(slots=True)
class FactAtATime:
    """`components` are the relations of the strata in order, `derivations` all that can fire before or after any
    update."""

    components: list[set[str]]
    derivations: list[Derivation]
    explicit: set[Fact]
    facts: set[Fact] = field(init=False)
    proved: set[Fact] = field(init=False)
    checked: set[Fact] = field(init=False)
    delayed: set[Fact] = field(init=False)
    deleted: set[Fact] = field(init=False)

    def __post_init__(self) -> None:
        self.facts = closure(self.explicit, self.derivations)

    def update(self, gone: set[Fact], come: set[Fact]) -> set[Fact]:
        """Applies a normalised update; returns D, the facts deleted."""
        self.deleted, kept = set(), self.explicit - gone
        for component in self.components:
            self.delete(component, {f for f in gone if f[0] in component}, kept)
        self.explicit = kept | come
        self.facts = closure((self.facts - self.deleted) | come, self.derivations)
        return self.deleted

    def delete(self, component: set[str], given: set[Fact], kept: set[Fact]) -> None:
        self.checked, self.proved, self.delayed = set(), set(), set()
        mine = [d for d in self.derivations if d[0][0] in component and self.facts.issuperset(d[1])]
        waiting = given | {head for head, body in mine if self.deleted.intersection(body)}
        while True:
            found: set[Fact] = set()
            for fact in sorted(waiting - self.deleted):
                self.check(fact, component, mine, kept, found)
                if fact not in self.proved:
                    found.add(fact)
            if not found:
                return
            waiting = {head for head, body in mine if found.intersection(body) and not self.deleted.intersection(body)}
            self.deleted |= found

    def check(self, fact: Fact, component: set[str], mine: list[Derivation], kept: set[Fact], found: set[Fact]) -> None:
        if fact in self.checked or self.saturate(fact, component, mine, kept):
            return
        gone = self.deleted | found
        for head, body in mine:
            if head == fact and not gone.intersection(body):
                for other in body:
                    if other[0] in component:
                        self.check(other, component, mine, kept, found)
                        if fact in self.proved:
                            return

    def saturate(self, fact: Fact, component: set[str], mine: list[Derivation], kept: set[Fact]) -> bool:
        self.checked.add(fact)
        lower = self.facts - self.deleted
        has_support = fact in kept or any(
            head == fact and lower.issuperset(body) and not any(b[0] in component for b in body) for head, body in mine
        )
        if fact not in self.delayed and not has_support:
            return False
        new = {fact}
        while True:
            delta = (new & self.checked) - self.proved
            self.delayed |= new - self.checked
            if not delta:
                return True
            self.proved |= delta
            usable = self.proved | {f for f in lower if f[0] not in component}
            new = {head for head, body in mine if usable.issuperset(body) and delta.intersection(body)}


@dataclass(slots=True)
class StreamCounters:
    deletions: int = 0
    backward: int = 0
    forward: int = 0
    insertions: int = 0
    marked_explicit: int = 0
    marked_implicit: int = 0


@dataclass(slots=True)
class Stream:
    """B/F with marks (algorithm 8.1). `kind`: `none`, `eager` or `linked`."""

    derivations: list[Derivation]
    explicit: set[Fact]
    kind: str = "none"
    facts: set[Fact] = field(init=False)
    waiting: list[Fact] = field(default_factory=list)
    support: dict[Fact, tuple[Fact, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.facts = set(self.explicit)
        self.insert(set(), StreamCounters())

    def update(self, gone: set[Fact], come: set[Fact], ahead: set[Fact]) -> StreamCounters:
        """Applies U1; `ahead` are the facts that U2 deletes."""
        counters = StreamCounters()
        marked = (self.facts | come) & ahead if self.kind != "none" else set()
        newly: set[Fact] = set()
        deleted, checked, proved, delayed = set(gone), set[Fact](), set[Fact](), set[Fact]()
        waiting, self.waiting = [f for f in self.waiting if f in self.facts], []
        valid = [d for d in self.derivations if self.facts.issuperset(d[1])]
        while True:
            step = next((d for d in valid if proved.issuperset(d[1]) and d[0] not in proved | delayed), None)
            if step is not None:
                head, body = step
                counters.forward += 1
                self.support[head] = body
                if marked.intersection(body):
                    newly.add(head)
                if head in waiting:
                    waiting.remove(head)
                    checked.add(head)
                    proved.add(head)
                elif head in checked:
                    proved.add(head)
                else:
                    delayed.add(head)
            elif waiting:
                fact = waiting[-1]
                if (fact in self.explicit and fact not in gone) or fact in delayed:
                    waiting.pop()
                    checked.add(fact)
                    proved.add(fact)
                    continue
                known = checked.union(waiting)
                found = next(
                    (b for h, b in valid if h == fact and not deleted.intersection(b) and not known.issuperset(b)), None
                )
                if found is None:
                    checked.add(waiting.pop())
                else:
                    counters.backward += 1
                    waiting.extend(f for f in found if f not in known)
            elif heads := [h for h, b in valid if deleted.intersection(b) and h not in checked]:
                counters.deletions += 1
                waiting.append(heads[0])
            elif checked - proved - deleted:
                deleted |= checked - proved
            else:
                break
        self.explicit = (self.explicit - gone) | come
        self.facts = (self.facts - deleted) | come
        newly |= self.insert(marked, counters)
        if self.kind == "linked":
            newly = {f for f, body in self.support.items() if f in self.facts and marked.intersection(body)}
        implicit = {fact for fact in newly if fact in self.facts and fact not in self.explicit}
        counters.marked_explicit, counters.marked_implicit = len(marked & self.facts), len(implicit)
        self.waiting = sorted(implicit)
        return counters

    def insert(self, marked: set[Fact], counters: StreamCounters) -> set[Fact]:
        newly: set[Fact] = set()
        while step := next(
            (d for d in self.derivations if self.facts.issuperset(d[1]) and d[0] not in self.facts), None
        ):
            head, body = step
            counters.insertions += 1
            self.facts.add(head)
            self.support[head] = body
            if marked.intersection(body):
                newly.add(head)
        return newly
