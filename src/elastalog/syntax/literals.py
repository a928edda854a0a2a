"""Literals and bodies: atoms, negation, comparisons, truth values, disjunction."""

from __future__ import annotations

import re

from elastalog.diagnostics.source import Span
from elastalog.syntax.cursor import WORD_HABITS
from elastalog.syntax.keywords import AGGREGATES, COMPARISONS, CONSTRAINTS, ENDS, PRECEDENCE
from elastalog.syntax.terms import TermParser
from elastalog.syntax.tokens import DIRECTIVE, END, KEYWORD, NAME, crop
from elastalog.syntax.tree import (
    Atom,
    Body,
    Call,
    Comparison,
    Disjunction,
    Literal,
    NegatedGroup,
    Negation,
    Term,
    Truth,
)

# What other languages write, and what it is here.
_COMPARISON_HABITS = {"==": "=", "=<": "<=", "=>": ">=", "<>": "!=", "\\=": "!=", ":=": "="}
_CONJUNCTION_HABITS = frozenset({"&&", "&", "and", "AND"})
_DISJUNCTION_HABITS = frozenset({"||", "|", "or", "OR"})
_NEGATION_HABITS = frozenset({"not", "NOT", "~", "\\+"})
_NO_NULL = "there is no null: write `!relation(x, _)` for a fact that is not there"
_SQL_HABITS = {
    "in": "write `({0} = {1}; {0} = {2})`, or keep the values in a relation",
    "not in": "write `{0} != {1}, {0} != {2}`",
    "like": 'write `match("a.*", {0})`, or `contains("a", {0})`',
    "between": "write `{1} <= {0}, {0} <= {2}`",
    "is": "write `{0} = …`",
    "is not": "write `{0} != …`",
    "is null": _NO_NULL,
    "is not null": _NO_NULL,
}


_FROM = re.compile(r"(?i)\bfrom\s+([a-z]\w*)")


class LiteralParser(TermParser):
    """Reads the bodies of rules and aggregates."""

    __slots__ = ()

    def body(self) -> Body:
        """Reads conjunctions separated by `;`, up to a token that cannot continue them."""
        first = self.position
        alternatives: list[Body] = []
        literals: list[Literal] = []
        texts = self.texts
        while True:
            self.literal(literals)
            text = texts[self.position]
            if text in _CONJUNCTION_HABITS or text in _DISJUNCTION_HABITS:
                text = self.read_habit()
            if text == ",":
                self.position += 1
            elif text == ";" and self.kinds[self.position + 1] not in (DIRECTIVE, END):
                self.position += 1
                alternatives.append(tuple(literals))
                literals = []
            elif not alternatives:
                return tuple(literals)
            else:
                alternatives.append(tuple(literals))
                return (Disjunction(tuple(alternatives), self.span_from(first)),)

    def read_habit(self) -> str:
        """Reports `&&` and similar words, and returns what they stand for."""
        index = self.position
        written = self.texts[index]
        if self.kinds[index] == NAME and (self.is_first_on_line(index) or self.texts[index + 1] in ("(", ".", ":-")):
            return written  # more likely the name of a relation after a missing `.`
        meant = "," if written in _CONJUNCTION_HABITS else ";"
        told = "literals are separated by commas" if meant == "," else "alternatives are separated by semicolons"
        self.report_habit(index, f"{told}, not `{written}`", meant)
        return meant

    def report_habit(self, index: int, told: str, meant: str) -> None:
        self.report("E0115", self.span_of(index), told=told, meant=meant)

    def braced_body(self) -> Body:
        opened = self.position
        self.position += 1
        self.enter(opened)
        if self.texts[self.position] == "}":
            raise self.failure("E0121.empty", Span(self.starts[opened], self.ends[self.position]))
        body = self.body()
        self.expect_close("}", opened, "or `,` after a literal")
        self.depth -= 1
        return body

    def literal(self, into: list[Literal]) -> None:
        """Reads one literal. A group without alternatives adds its literals to the conjunction."""
        if self.texts[self.position] == "%":
            self.skip_percent_comment()
        index = self.position
        kind = self.kinds[index]
        text = self.texts[index]
        if kind == NAME:
            into.append(self.named_literal(index, text))
            return
        if text == "!" or text in _NEGATION_HABITS:
            if text != "!":
                self.report_habit(index, f"negation is written `!`, not `{text}`", "!")
            into.append(self.negated(index))
            return
        elif text == "(":
            if self.is_group(index):
                self.group(into)
                return
        elif kind == KEYWORD:
            if text in CONSTRAINTS:
                into.append(self.constraint())
                return
            if text in ("true", "false"):
                self.position = index + 1
                into.append(Truth(text == "true", self.span_of(index)))
                return
        elif text in (".", ",", ";", ")", "}", ":-") or kind == END:
            before = self.describe(index - 1)
            raise self.unexpected("a literal", where=f"after {before}", advice=self.help_for_missing_literal(index))
        into.append(self.comparison(self.term()))

    def named_literal(self, index: int, text: str) -> Literal:
        """Reads a literal that begins with a name."""
        follow = self.texts[index + 1]
        if text in _NEGATION_HABITS:
            # A relation may be called `not`; but no argument of it is an atom.
            is_around_atom = follow == "(" and self.kinds[index + 2] == NAME and self.texts[index + 3] == "("
            if is_around_atom or self.kinds[index + 1] == NAME:
                self.report_habit(index, f"negation is written `!`, not `{text}`", "!")
                return self.negated(index)
        if follow == "(":
            if text in ENDS and not self.is_declared(text):
                return self.constraint()
            atom = self.atom()
            after = self.texts[self.position]
            if after == "," or after == "." or not self.continues_term(after):
                return atom
            call = Call(atom.relation, atom.arguments, atom.relation_span, atom.span)
            return self.comparison(self.operators_after(call))
        if follow == "." and self.is_qualified(index):
            return self.qualified_atom()
        return self.comparison(self.term()) if self.continues_term(follow) else self.bare_atom()

    def help_for_missing_literal(self, index: int) -> str | None:
        before = self.texts[index - 1]
        if before in (",", ";"):
            return f"remove the `{before}`, or write the literal that should follow"
        if before == ":-" and self.texts[index] == ".":
            return "a fact is written without `:-`"
        return None

    def continues_term(self, text: str) -> bool:
        """Whether a token after a name makes the name a term of a comparison."""
        return text in COMPARISONS or text in PRECEDENCE or text in _COMPARISON_HABITS

    def comparison(self, left: Term) -> Comparison:
        index = self.position
        operator = self.texts[index]
        if operator not in COMPARISONS:
            if operator not in _COMPARISON_HABITS:
                is_sql = self.source.text[left.span.start :][:7].lower() == "select "
                advice = self.selected(left.span.start) if is_sql else None
                raise self.failure(
                    "E0110.comparison", self.span_of(index), left.span, found=self.describe(index), advice=advice
                )
            operator = _COMPARISON_HABITS[operator]
            self.report_habit(index, f"`{self.texts[index]}` is not a comparison", operator)
        self.position = index + 1
        right = self.term()
        follow = self.texts[self.position]
        if follow in COMPARISONS or follow in _COMPARISON_HABITS:
            raise self.failure("E0110.chain", self.span_of(self.position), self.span_of(index))
        return Comparison(operator, left, right, self.span_of(index), Span(left.span.start, right.span.end))

    def constraint(self) -> Comparison:
        """`match(pattern, text)`, `contains(part, text)` and the like"""
        index = self.position
        word = self.texts[index]
        if self.texts[index + 1] != "(":
            raise self.reserved(index, "a literal")
        arguments = self.arguments()
        span = self.span_from(index)
        if len(arguments) != 2:
            raise self.failure(
                "E0124", span, word=word, given=len(arguments), first="pattern" if word == "match" else "part"
            )
        return Comparison(word, arguments[0], arguments[1], self.span_of(index), span)

    def negated(self, first: int) -> Negation | NegatedGroup:
        """Reads what follows a `!`, or a word of another language for it, at `first`."""
        index = self.position = first + 1
        if (
            self.kinds[index] == NAME and self.texts[index + 1] == "(" and self.texts[index] not in ENDS
        ):  # nearly always
            atom = self.atom()
            after = self.texts[self.position]
            if after == "," or after == "." or not self.continues_term(after):
                return Negation(atom, self.span_from(first))
            self.position = index
        self.enter(first)
        literals: list[Literal] = []
        self.literal(literals)
        self.depth -= 1
        span = self.span_from(first)
        match literals:
            case [Atom() as atom]:
                return Negation(atom, span)
            case _:
                return NegatedGroup(tuple(literals), span)

    def is_declared(self, name: str) -> bool:
        """Whether the text declares a relation of that name."""
        index = -1
        while name in (later := self.texts[index + 1 :]):
            index += 1 + later.index(name)
            first = index
            while self.texts[first - 1] == ",":
                first -= 2
            if self.texts[first - 1] == ".decl":
                return True
        return False

    def selected(self, start: int) -> str:
        """Advice on how to write an SQL query, with the name of its relation."""
        named = _FROM.search(self.source.text, start)
        name = crop(named[1]) if named else "edge"
        return f"ask for the facts that fit a pattern, with a variable for each column: `{name}(x, y)`"

    def bare_atom(self) -> Atom:
        """Reads a name where an atom should be, as an atom without arguments."""
        index = self.position
        name = self.texts[index]
        span = self.span_of(index)
        self.position = index + 1
        small = name.lower()
        if small in WORD_HABITS and self.texts[index + 1] not in (",", ".", ";", ":-"):
            raise self.failure("E0110.operator", span, word=name, advice=WORD_HABITS[small])
        if small in AGGREGATES:
            raise self.failure("E0110.literal", span, name=name, small=small)
        if small == "select":
            raise self.failure("E0110.operator", span, word=name, advice=self.selected(span.start))
        for end in (index + 4, index + 3, index + 2):
            word = " ".join(self.texts[index + 1 : end])
            if (habit := _SQL_HABITS.get(word.lower())) is not None:
                opened, first, comma, second = [*self.texts[end : end + 4], *[""] * 4][:4]
                values = (first, second) if (opened, comma) == ("(", ",") else ('"a"', '"b"')
                if word.lower() == "between":
                    values = (opened, comma) if first.lower() == "and" else ("1", "5")
                advice = habit.format(*map(crop, (name, *values)))
                raise self.failure("E0110.operator", self.span_of(index + 1), word=word, advice=advice)
        self.report("E0114", span, name=crop(name), meant=small if small in ("true", "false") else f"{crop(name)}()")
        return Atom(name, (), span, span)

    # --- groups ---

    def group(self, into: list[Literal]) -> None:
        opened = self.position
        self.enter(opened)
        self.position = opened + 1
        into.extend(self.body())
        self.expect_close(")", opened, "or `,` after a literal")
        self.depth -= 1

    def is_group(self, opened: int) -> bool:
        """Whether a `(` at the start of a literal opens a group. If an operator follows the closing bracket, it opens a
        term."""
        closing = self.closing_bracket(opened)
        return closing is None or not self.continues_term(self.texts[closing + 1])

    def closing_bracket(self, opened: int) -> int | None:
        """The index of the `)` that closes a `(`. All brackets of the clause are matched at once: matching each one
        alone would take quadratic time if they nest."""
        closings = self.closings
        if opened >= self.matched_to:
            closings.clear()
            stack: list[int] = []
            texts, index = self.texts, opened
            while (text := texts[index]) and text != ".":
                if text == "(":
                    stack.append(index)
                elif text == ")" and stack:
                    closings[stack.pop()] = index
                index += 1
            self.matched_to = index
        return closings.get(opened)
