"""A program as single rules: its clauses taken apart and printed, with one head and one conjunction each.

They are numbered like the rules of the checked program. Two rules are the same if they are printed the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from elastalog.analysis.draft import is_constructor, negated_literal
from elastalog.analysis.findings import Findings
from elastalog.analysis.negation import alternatives_of
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.source import NOWHERE, Source, Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.printer import print_clause


@dataclass(frozen=True, slots=True)
class SingleRule:
    """`text`: the rule on one line, with its plan on the next if it has one. `alone`: the same rule as a clause of its
    own. `clause`: the clause it was written in, which has `head` among its heads."""

    text: str
    alone: tree.Clause
    clause: tree.Clause
    head: tree.Atom

    @property
    def shown(self) -> str:
        return shown_rule(self.text)


def shown_rule(text: str) -> str:
    """The text of a rule without its plan, which does not change what it means."""
    return text.partition("\n")[0]


def single_rules(items: Iterable[tree.Item], source: Source, judged: frozenset[str] = frozenset()) -> list[SingleRule]:
    """The rules of a tree without errors, in the order of their numbers. Facts of the relations in `judged` are rules,
    too."""
    return [rule for item in items if isinstance(item, tree.Clause) for rule in _of_clause(item, source, judged)]


def judged_in(items: Iterable[tree.Item]) -> frozenset[str]:
    """The relations for which a tree declares a choice domain, a subsumption or an improving column. Their facts in the
    text are candidates: rules without a body."""
    found = set()
    for item in items:
        if isinstance(item, tree.Subsumption):
            found.add(item.dominated.relation)
        elif isinstance(item, tree.RelationDeclaration) and (item.choices or item.improves):
            found.add(item.name)
    return frozenset(found)


def facts_beside(clause: tree.Clause, own: Sequence[SingleRule]) -> list[str]:
    """The facts that a clause states besides its rules: `q(2)` in `p(1 + 1), q(2).`"""
    if clause.body:
        return []
    rules = {id(rule.head) for rule in own}
    return [print_clause(replace(clause, heads=(head,))) for head in clause.heads if id(head) not in rules]


def _is_computed(term: tree.Term) -> bool:
    match term:
        case tree.Call():
            if is_constructor(term.functor):
                return any(map(_is_computed, term.arguments))
            return negated_literal(term) is None
        case tree.Cast():
            return isinstance(term.term, tree.String) or _is_computed(term.term)
        case _:
            return isinstance(term, tree.Aggregate)


def _of_clause(clause: tree.Clause, source: Source, judged: frozenset[str]) -> list[SingleRule]:
    found = []
    alternatives = alternatives_of(clause.body, len(clause.heads), clause.span, Findings(source))
    for head in clause.heads:
        if not (clause.body or head.relation in judged or any(map(_is_computed, head.arguments))):
            continue
        for alternative in alternatives:
            if not any(isinstance(literal, tree.Truth) and not literal.value for literal in alternative):
                body = tuple(alternative) or (tree.Truth(True, NOWHERE),)
                alone = replace(clause, heads=(head,), body=body)
                found.append(SingleRule(print_clause(alone), alone, clause, head))
    return found


def span_of(clause: tree.Clause) -> Span:
    """The place of a clause, including its plan."""
    return clause.span if clause.plan is None else Span(clause.span.start, clause.plan.span.end)


ADDED = "<added rules>"
"""What stands for the file name."""


@dataclass(frozen=True, slots=True)
class AddedText:
    """A text, and the offset at which it begins in the program that it has been added to."""

    text: str
    offset: int

    @contextmanager
    def placing(self) -> Iterator[None]:
        """A block in which errors about the added text point into that text."""
        try:
            yield
        except ElastalogError as error:
            raise type(error)([self.placed(found) for found in error.diagnostics]) from None

    def placed(self, found: Diagnostic) -> Diagnostic:
        """A diagnostic about the added text, with places in that text; what it says of the rest of the program is
        quoted in notes."""
        if found.source is None or found.source.name == ADDED:
            return found
        own: list[Label] = []
        quoted: list[str] = []
        for label in found.labels:
            start, end = label.span.start - self.offset, label.span.end - self.offset
            if start >= 0 and end <= len(self.text):
                own.append(replace(label, span=Span(start, end)))
            else:
                line = found.source.line(found.source.locate(label.span.start)[0]).strip()
                quoted.append(f"{label.text or 'see also'}: `{line[:200]}`")
        if not any(label.primary for label in own):
            return found
        return replace(found, source=Source(ADDED, self.text), labels=tuple(own), notes=(*quoted, *found.notes))
