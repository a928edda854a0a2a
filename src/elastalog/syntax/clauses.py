"""Clauses: facts and rules, with their plans."""

from __future__ import annotations

from dataclasses import is_dataclass, replace

from elastalog.diagnostics.source import Span
from elastalog.syntax.cursor import MOST_NESTED, UnreadableItemError
from elastalog.syntax.keywords import AGGREGATES, DIRECTIVES
from elastalog.syntax.literals import LiteralParser
from elastalog.syntax.tokens import DIRECTIVE, END, INTEGER, KEYWORD, NAME
from elastalog.syntax.tree import Atom, Body, Clause, Item, Negation, Plan, Subsumption, parts_of

_ARROW_HABITS = frozenset({":=", "=>", "<-", "->", ":", "if"})
_HEAD_HABITS = {
    "!": "a rule can only derive facts; negation belongs into bodies",
    ":-": "a rule starts with its head, as in `path(x, y) :- edge(x, y).`",
    "--": "comments begin with `//`",
}


class ClauseParser(LiteralParser):
    """Reads facts and rules."""

    __slots__ = ()

    def clause(self, into: list[Item]) -> None:
        """Reads one clause."""
        first = self.position
        heads = [self.head()]
        texts = self.texts
        body: Body = ()
        while True:
            text = texts[self.position]
            if text == ".":
                break
            if text == ":-":
                self.position += 1
                self.inner_annotations()
                body = self.body()
                break
            if text == ",":
                self.position += 1
                self.annotations("a head")
                heads.append(self.head())
            elif text == "<=":
                if len(heads) == 1:
                    self.subsumption(first, heads[0], into)
                    return
                raise self.after_head()
            elif self.is_arrow_habit():
                body = self.body()
                break
            elif text == ";" or self.ends_without_dot():
                break
            else:
                raise self.after_head()
        self.end()
        clause = Clause(tuple(heads), body, None, self.span_from(first))
        if self.operators > MOST_NESTED:
            self.check_depth(clause)
        if texts[self.position] in (".plan", ".strict") and body:
            clause = replace(clause, plan=self.plan())
        into.append(clause)

    def head(self) -> Atom:
        index = self.position
        kind = self.kinds[index]
        if kind == NAME:
            follow = self.texts[index + 1]
            if follow == "(":
                return self.atom()
            if follow == "." and self.is_qualified(index):
                return self.qualified_atom()
            if follow in (".", ",", ":-"):
                return self.bare_atom()
            name, found = self.describe(index)[1:-1], self.describe(index + 1)
            advice = f"directives begin with a period: `.{name}`" if name in DIRECTIVES else None
            if name.lower() == "select":
                advice = "write a rule: `SELECT x FROM edge` is `answer(x) :- edge(x, _).`"
            raise self.failure("E0110.name", self.span_of(index + 1), name=name, found=found, advice=advice)
        if kind == KEYWORD:
            raise self.reserved(index, "the name of a relation")
        text = self.texts[index]
        raise self.unexpected(
            "an atom", advice=_HEAD_HABITS.get("--" if self.texts[index + 1] == text == "-" else text)
        )

    # --- what goes wrong around a head ---

    def is_arrow_habit(self) -> bool:
        """Reads what other languages write instead of `:-`, and reports it."""
        index = self.position
        text = self.texts[index]
        length = 1
        if text + self.texts[index + 1] in ("<-", "->", ":-") and self.ends[index] == self.starts[index + 1]:
            text += self.texts[index + 1]
            length = 2
        if text == "if" and (self.is_first_on_line(index) or self.texts[index + 1] == "("):
            return False  # more likely the name of a relation after a missing `.`
        if text not in _ARROW_HABITS and not (text == "=" and self.texts[index + 2] == "("):
            return False
        self.position += length
        span = self.span_from(index)
        self.report("E0115", span, told=f"`{text}` does not start a body", meant=":-")
        return True

    def after_head(self) -> UnreadableItemError:
        index = self.position
        advice = None
        if self.kinds[index] == NAME or self.texts[index] == "!":
            advice = "if this is a rule, write `:-` between head and body; if it is a fact, end it with `.`"
        return self.unexpected("`:-`, `,` or `.`", where="after a head", advice=advice)

    def ends_without_dot(self) -> bool:
        """Whether the token at hand starts something new, so that only a `.` is missing before it."""
        index = self.position
        if self.components and self.texts[index] == "}":
            return True
        return self.kinds[index] in (DIRECTIVE, END) or (
            self.kinds[index] == NAME and self.texts[index + 1] == "(" and self.is_first_on_line(index)
        )

    def end(self) -> None:
        """Reads the `.`. If only that is missing, it is reported; anything else is an error."""
        if self.skip_if("."):
            return
        index = self.position
        if self.texts[index] == ";":
            self.report_habit(index, "a clause ends in `.`, not `;`", ".")
            self.position += 1
            return
        end = self.ends[index - 1]
        if not self.ends_without_dot():
            if self.texts[index] == ")":
                raise self.failure("E0119", self.span_of(index))
            before = self.texts[index - 1].lower()
            advice = self.operator_meant()
            if self.texts[index] == ":":
                advice = "the aggregates are `count`, `sum`, `min`, `max` and `mean`: `n = count : { ... }`"
                if before in AGGREGATES:
                    advice = f"aggregates are written in lower case: `{before} : {{ ... }}`"
            if before in ("avg", "average"):
                advice = "the average is written `mean x : { … }`"
            if self.texts[index] == ":-":
                advice = "if a rule starts here, the one before it must end in `.`, not in `,` or `;`"
            raise self.unexpected("`,`, `;` or `.`", where="after a literal", advice=advice)
        self.report("E0111", Span(end - 1, end), following=self.describe(index) if self.kinds[index] != END else None)

    def subsumption(self, first: int, dominated: Atom, into: list[Item]) -> None:
        """Reads a subsumption from the `<=` between its two heads."""
        self.position += 1
        dominating = self.head()
        self.expect(":-", "after the second head of a subsumption", advice="write `R(x, a) <= R(x, b) :- b < a.`")
        self.inner_annotations()
        body = self.body()
        self.end()
        into.append(Subsumption(dominated, dominating, body, self.span_from(first)))
        if self.texts[self.position] in (".plan", ".strict"):
            self.plan()

    # --- plans ---

    def plan(self) -> Plan:
        """`.plan 0:(2,1), 1:(1,2)` or `.strict`"""
        first = self.position
        self.position += 1
        if self.texts[first] == ".strict":
            return Plan((), self.span_from(first))
        versions = self.separated(",", self.plan_version)
        return Plan(tuple(versions), self.span_from(first))

    def plan_version(self) -> tuple[int, tuple[int, ...]]:
        """`0:(2,1)`"""
        if self.texts[self.position] == "(":
            raise self.unexpected("the number of a version", advice="write for example `.plan 0:(2,1)`")
        version = self.plan_number("the number of a version")
        self.expect(":", "after the number of a version")
        opened = self.position
        self.expect("(", "before the order of a version")
        return version, self.listed(
            ")", opened, "in the order of a version", lambda: self.plan_number("the number of an atom")
        )

    def plan_number(self, what: str) -> int:
        index = self.position
        if self.kinds[index] != INTEGER:
            raise self.unexpected(what)
        self.position = index + 1
        return self.integer(index, 1, index).value

    # --- depth ---

    def check_depth(self, clause: Clause) -> None:
        """Checks how deep a clause nests. Chains of operators nest without brackets: `a + b + c` is `(a + b) + c`."""
        pending: list[tuple[int, object]] = [(0, (*clause.heads, *clause.body))]
        while pending:
            depth, node = pending.pop()
            if depth > MOST_NESTED and is_dataclass(node):
                raise self.too_deep(clause.span)
            is_level = not isinstance(node, Negation)  # with its atom it is one
            pending.extend((depth + (is_level and is_dataclass(part)), part) for part in parts_of(node))
