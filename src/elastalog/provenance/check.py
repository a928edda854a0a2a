"""The independent checker of proofs. It knows the checked program and the facts, and nothing of how proofs are found.

A proof is accepted if every step in it is an instantiation of a rule, to the letter: the head is the conclusion, each
atom of the body is the fact of its child, each constraint holds; explicit facts are explicit; heights are as stated;
and no fact stands below itself. That a fact is *absent* (negation), or that an aggregate has no *further* members,
cannot be seen from a proof: only for these the checker consults a set of all facts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any, assert_never

from elastalog.analysis.program import (
    Aggregation,
    Atom,
    CheckedProgram,
    Comparison,
    Expression,
    Literal,
    Negation,
    Value,
)
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.values import private_value
from elastalog.late import dataclass
from elastalog.provenance.fact import Bindings, Fact
from elastalog.provenance.ground import Ordinal, Unbound, compare, fold, holds, is_numbering, no_ordinal, same
from elastalog.provenance.joins import (
    Pattern,
    are_met,
    assignment_of,
    candidates,
    dominating,
    is_matched,
    match_atom,
    members_of,
    show,
    solve,
)
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Premise, Proof, fold_tree, nodes_of

Facts = Mapping[str, Collection[tuple[Value, ...]]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` says why a proof is not accepted. `unexpanded`: facts where the proof ends without proving them; a
    proof with some is accepted as far as it goes."""

    accepted: bool
    reason: str | None = None
    unexpanded: int = 0

    def __bool__(self) -> bool:
        return self.accepted


def check_proof(
    proof: Proof,
    program: CheckedProgram,
    explicit_facts: Facts,
    all_facts: Facts,
    ordinal: Ordinal = no_ordinal,
) -> Verdict:
    """Accepts or rejects a proof. `all_facts` is consulted only about absent facts. `ordinal` gives the numbers of
    symbols, which only the run knows; without it, proofs that use `ord` are rejected."""
    explicit_facts, all_facts = (_with_nil(program, facts) for facts in (explicit_facts, all_facts))
    checker = _Checker(program, explicit_facts, _Oracle(all_facts), ordinal)
    unexpanded = 0
    try:
        for node in nodes_of(proof):
            if isinstance(node, Proof):
                checker.check(node)
                unexpanded += not node.is_expanded
        _check_heights(proof)
        _check_paths(proof)
    except _Rejected as rejected:
        return Verdict(False, str(rejected), unexpanded)
    return Verdict(True, None, unexpanded)


def _with_nil(program: CheckedProgram, facts: Facts) -> Facts:
    """Facts as users have them, in which nil is `None`, as proofs have them; with one NaN."""
    with_records = {
        relation.name for relation in program.relations.values() if any(a.structures for a in relation.attributes)
    }
    return {
        name: {_with_one_nan(map(private_value, values) if name in with_records else values) for values in known}
        for name, known in facts.items()
    }


def _with_one_nan(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values of which NaN is always the same object, so that it is found again."""
    return tuple(math.nan if value != value else value for value in values)


class _Rejected(Exception):
    """The proof is wrong."""


class _Oracle:
    """All facts, looked up by any of their values."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[tuple[Value, ...], list[tuple[Value, ...]]]] = {}

    def __call__(self, relation: str, pattern: Pattern) -> Iterator[tuple[Value, ...]]:
        columns = tuple(i for i, value in enumerate(pattern) if value is not None)
        index = self._indexes.get((relation, columns))
        if index is None:
            index = self._indexes[relation, columns] = {}
            for values in self._facts.get(relation, ()):
                index.setdefault(tuple(values[i] for i in columns), []).append(values)
        return iter(index.get(_with_one_nan(value for value in pattern if value is not None), ()))


@dataclass(frozen=True, slots=True)
class _Checker:
    program: CheckedProgram
    explicit: Facts
    oracle: _Oracle
    ordinal: Ordinal

    def check(self, proof: Proof) -> None:
        """Checks one step. Raises _Rejected."""
        fact = proof.fact
        declared = self.program.relations.get(fact.relation)
        if declared is None or declared.arity != len(fact.values):
            raise _Rejected(f"{fact} is no fact of the program")
        self.check_rivals(proof)
        if not proof.is_expanded:
            if proof.rule is not None or proof.children:
                raise _Rejected(f"{fact} is said to be unexpanded, and is not")
            return
        if proof.rule is None:
            if proof.children or _with_one_nan(fact.values) not in self.explicit.get(fact.relation, ()):
                raise _Rejected(f"{fact} is not an explicit fact")
            return
        number = proof.rule.number
        if not 1 <= number <= len(self.program.rules) or self.program.rules[number - 1] != proof.rule:
            raise _Rejected(f"the rule of {fact} is no rule of the program")
        if proof.rule.is_closure and proof.rule.head.relation == fact.relation:
            _check_chain(proof)
            return
        bindings: dict[str, Value] = {}
        deferred: list[tuple[Expression, Value]] = []
        if proof.rule.head.relation != fact.relation or not match_atom(
            proof.rule.head, fact.values, bindings, deferred
        ):
            raise _Rejected(f"{fact} is not the head of rule {number}")
        self.check_body(f"{fact} by rule {number}", proof.rule.body, proof.children, bindings, deferred)

    def check_rivals(self, proof: Proof) -> None:
        """Checks what is said of facts that were chosen, superseded, or are neither."""
        fact, by = proof.fact, proof.superseded_by
        is_subsumed = any(r.head.relation == fact.relation + MARK for r in self.program.subsumptions)
        is_there = not is_subsumed or next(iter(self.oracle(fact.relation, fact.values)), None) is not None
        if by is not None:
            pairs = dominating(fact, self.program, self.oracle, self.ordinal, by)
            if is_there or by.relation != fact.relation or next(pairs, None) is None:
                raise _Rejected(f"{fact} is not superseded by {by}")
        elif not is_there:
            raise _Rejected(f"{fact} is not there, and is not said to be superseded")
        if proof.chosen_among is not None:
            found = candidates(fact, self.program, self.oracle, self.ordinal)
            if not self.program.relations[fact.relation].choices or found != proof.chosen_among:
                raise _Rejected(f"{fact} was chosen among {found}, not {proof.chosen_among}")

    def check_body(
        self,
        place: str,
        body: Sequence[Literal],
        children: Sequence[Premise],
        bindings: dict[str, Value],
        deferred: list[tuple[Expression, Value]],
    ) -> Bindings:
        """Checks that premises instantiate a body; returns the values of its variables."""
        if len(body) != len(children):
            raise _Rejected(f"{place}: {len(children)} premises for {len(body)} literals")
        for literal, child in zip(body, children, strict=True):
            match literal, child:
                case Atom(), Proof():
                    if child.fact.relation != literal.relation or len(child.fact.values) != len(literal.arguments):
                        raise _Rejected(f"{place}: {child.fact} is no instance of `{show(literal, {})}`")
                    if not match_atom(literal, child.fact.values, bindings, deferred):
                        raise _Rejected(f"{place}: {child.fact} does not fit `{show(literal, bindings)}`")
                case Aggregation(), AggregatePremise():
                    if not compare("=", bindings.setdefault(literal.result.name, child.result), child.result):
                        raise _Rejected(f"{place}: the result of {child.text} does not fit")
                case (Negation(), Condition(kind="negation")) | (Comparison(), Condition(kind="constraint")):
                    pass
                case _:
                    raise _Rejected(f"{place}: a premise is not of the kind of `{show(literal, {})}`")
        reason = f"{place}: a constraint does not hold"
        comparisons = [literal for literal in body if isinstance(literal, Comparison)]
        for extended in solve(comparisons, bindings, self.ordinal):
            try:
                self._check_instance(place, body, children, extended, deferred)
                return extended
            except _Rejected as rejected:
                reason = str(rejected)
            except Unbound as unbound:
                reason = f"{place}: variable {unbound} has no value"
        raise _Rejected(reason)

    def _check_instance(
        self,
        place: str,
        body: Sequence[Literal],
        children: Sequence[Premise],
        bindings: Bindings,
        deferred: list[tuple[Expression, Value]],
    ) -> None:
        if not are_met(deferred, bindings, self.ordinal):
            raise _Rejected(f"{place}: a computed argument has another value")
        for literal, child in zip(body, children, strict=True):
            text = show(literal, bindings)
            if isinstance(child, Condition | AggregatePremise) and child.text != text:
                raise _Rejected(f"{place}: it says `{child.text}` where the rule says `{text}`")
            match literal:
                case Atom():
                    pass
                case Comparison():
                    if not is_numbering(literal) and not holds(literal, bindings, self.ordinal):
                        raise _Rejected(f"{place}: `{text}` does not hold")
                case Negation():
                    if is_matched(literal.atom, bindings, self.oracle, self.ordinal):
                        raise _Rejected(f"{place}: `{text}` does not hold")
                case Aggregation():
                    assert isinstance(child, AggregatePremise)
                    self._check_aggregate(place, literal, child, bindings)
                case _:
                    assert_never(literal)

    def _check_aggregate(self, place: str, literal: Aggregation, child: AggregatePremise, bindings: Bindings) -> None:
        members = members_of(literal, bindings, self.oracle, self.ordinal)
        result = fold(literal.operator, list(members.values()), literal.result.base, self.ordinal)
        if result is None or not same(result, child.result):
            raise _Rejected(f"{place}: the aggregate is {result}, not {child.result}")
        if child.number != len(members) or len(child.members) > child.number:
            raise _Rejected(f"{place}: the aggregate has {len(members)} members, not {child.number}")
        seen = set()
        for member in child.members:
            if not 0 <= member.body < len(literal.bodies):
                raise _Rejected(f"{place}: the aggregate has no alternative {member.body}")
            groups = {group.name: bindings[group.name] for group in literal.groups}
            inside = self.check_body(place, literal.bodies[member.body], member.children, groups, [])
            found = assignment_of(inside, literal)
            if found not in members or found in seen:
                raise _Rejected(f"{place}: a member of the aggregate is wrong or listed twice")
            seen.add(found)


def _check_chain(proof: Proof) -> None:
    """Checks that pairs of an equivalence, each taken either way, lead from the left value of a pair to the right one.
    For the pair of a value with itself, one pair that has the value is enough."""
    fact = proof.fact
    left, right = fact.values
    links = [child.fact for child in proof.children if isinstance(child, Proof)]
    if not links or len(links) < len(proof.children) or any(link.relation != fact.relation for link in links):
        raise _Rejected(f"{fact} does not follow by a chain of facts of `{fact.relation}`")
    if compare("=", left, right) and len(links) == 1 and any(compare("=", left, value) for value in links[0].values):
        return
    # Both ends of the first link may be where it starts.
    reached = [left]
    for link in links:
        one, other = link.values
        reached = [b for a, b in ((one, other), (other, one)) if any(compare("=", a, value) for value in reached)]
    if not any(compare("=", right, value) for value in reached):
        raise _Rejected(f"{fact}: the chain of `{fact.relation}` does not lead from one value to the other")


def _check_heights(root: Proof) -> None:
    """Compares every height with that of the tree below, as far as that is there."""

    def height(node: Node, below: Sequence[tuple[int, bool]]) -> tuple[int, bool]:
        is_whole = all(whole for _, whole in below)
        highest = max((value for value, _ in below), default=0)
        match node:
            case Condition():
                return 0, True
            case Member():
                return highest + 1, is_whole
            case AggregatePremise():
                return (highest + 1 if node.number else 0), is_whole and node.is_complete
            case Proof():
                if not node.is_expanded:
                    return node.height or 0, False
                found = 0 if node.rule is None else highest + 1
                if node.height is not None and (node.height < found or (is_whole and node.height != found)):
                    raise _Rejected(f"{node.fact} is said to have height {node.height}, and has {found}")
                return found, is_whole
            case _:
                assert_never(node)

    fold_tree(root, height)


def _check_paths(root: Proof) -> None:
    """Checks that no fact stands below itself. As facts, the nodes form a graph; the paths are walked only if it has a
    cycle."""
    below: dict[Fact, set[Fact]] = {}
    for node in nodes_of(root):
        if isinstance(node, Proof):
            below.setdefault(node.fact, set()).update(proof.fact for proof in _proofs_below(node))
    with suppress(CycleError):
        TopologicalSorter(below).prepare()
        return
    path: set[Fact] = set()
    pending: list[tuple[Proof, bool]] = [(root, False)]
    while pending:
        proof, is_done = pending.pop()
        if is_done:
            path.discard(proof.fact)
            continue
        if proof.fact in path:
            raise _Rejected(f"{proof.fact} stands below itself")
        path.add(proof.fact)
        pending.append((proof, True))
        pending.extend((child, False) for child in _proofs_below(proof))


def _proofs_below(proof: Proof) -> Iterator[Proof]:
    pending: list[Node] = list(proof.children)
    while pending:
        node = pending.pop()
        if isinstance(node, Proof):
            yield node
        else:
            pending.extend(node.children)
