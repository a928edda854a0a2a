"""Terms: constants, variables, functors, operators and aggregates."""

from __future__ import annotations

import re
from abc import abstractmethod
from math import isinf

from elastalog.diagnostics.source import Span
from elastalog.syntax.cursor import MOST_NESTED, Cursor, UnreadableItemError, new_span
from elastalog.syntax.keywords import (
    AGGREGATES,
    FUNCTORS,
    PRECEDENCE,
    PREFIX_PRECEDENCE,
    PREFIXES,
    SMALLEST_NUMBER,
    read_integer,
)
from elastalog.syntax.tokens import FLOAT, INTEGER, KEYWORD, NAME, STRING, WILDCARD, crop
from elastalog.syntax.tree import Aggregate, Atom, Body, Call, Cast, Float, Integer, String, Term, Variable, Wildcard

_ATOM = r"[A-Za-z]\w*\([^(){}]*\)"
_MORE = rf"(?:\s*,\s*(?:{_ATOM}|[^(){{}},.]+))*"
_ELSEWHERE = re.compile(
    r"\s*(?P<opened>[({]\s*)?(?P<distinct>distinct\s+)?(?P<target>[^:(){},.]*?)\s*(?:\)\s*)?(?:[:,]\s*)?(?P<braced>\{\s*)?"
    rf"(?P<body>{_ATOM}(?(opened){_MORE}|(?(braced){_MORE})))(?!\s*[:\w])"
)
"""What follows the word in aggregates of other languages: `(y : q(y))`, `(y, q(y))`, `{ q(y) }`, ` distinct y : …`."""

_OPERAND_HABITS = {
    **dict.fromkeys(("!", "~", "\\+"), "negation applies to atoms of a body, not to terms"),
    **dict.fromkeys(("&", "&&"), "bitwise and is `band`, logical and is `land`; literals are separated by `,`"),
    **dict.fromkeys(("|", "||"), "bitwise or is `bor`, logical or is `lor`; alternatives are separated by `;`"),
}


def _shape(word: str, target: str, body: str) -> str:
    """How an aggregate is written."""
    return f"{word}{'' if word == 'count' else f' {target}'} : {{ {body} }}"


class TermParser(Cursor):
    """Reads terms by precedence climbing."""

    __slots__ = ()

    @abstractmethod
    def braced_body(self) -> Body:
        """`{ body }`"""

    def term(self, least: int = 1) -> Term:
        """A term whose operators bind at least as strongly as `least`."""
        return self.operators_after(self.operand(), least)

    def operators_after(self, left: Term, least: int = 1) -> Term:
        """Continues with the operators that follow an operand that has been read."""
        texts = self.texts
        while True:
            index = self.position
            functor = texts[index]
            precedence = PRECEDENCE.get(functor, 0)
            if precedence < least:
                return left
            self.position = index + 1
            self.operators += 1
            if functor == "^":
                self.enter(index)  # associates to the right, so that a chain nests
                right = self.term(precedence)
                self.depth -= 1
            else:
                right = self.term(precedence + 1)
            span = Span(left.span.start, right.span.end)
            left = Call(functor, (left, right), Span(self.starts[index], self.ends[index]), span)

    def operand(self) -> Term:
        index = self.position
        kind = self.kinds[index]
        if kind == NAME:
            if self.texts[index + 1] == "(":
                return self.call()
            self.position = index + 1
            return Variable(self.texts[index], new_span(Span, (self.starts[index], self.ends[index])))
        if kind == INTEGER:
            self.position = index + 1
            return self.integer(index, 1, index)
        if kind == STRING:
            self.position = index + 1
            return String(self.string_value(index), Span(self.starts[index], self.ends[index]))
        if kind == WILDCARD:
            self.position = index + 1
            return Wildcard(Span(self.starts[index], self.ends[index]))
        if kind == FLOAT:
            self.position = index + 1
            return self.float(index, 1, index)
        text = self.texts[index]
        if text == "(":
            return self.parenthesised()
        if text in PREFIXES:
            return self.prefixed()
        if kind == KEYWORD:
            return self.keyword()
        return self.other_operand()

    def parenthesised(self) -> Term:
        opened = self.position
        self.enter(opened)
        self.position = opened + 1
        inner = self.term()
        self.close_target(opened, "after a term")
        self.depth -= 1
        return inner

    def prefixed(self) -> Term:
        """Unary minus, `bnot`, `lnot`. A minus before a number belongs to it unless `^` takes the number first."""
        index = self.position
        word = self.texts[index]
        kind = self.kinds[index + 1]
        if word == "-" and kind in (INTEGER, FLOAT) and self.texts[index + 2] != "^":
            if kind == FLOAT:
                self.position = index + 2
                return self.float(index + 1, -1, index)
            if not self.texts[index + 1].endswith("u"):
                self.position = index + 2
                return self.integer(index + 1, -1, index)
        self.enter(index)
        self.operators += 1
        self.position = index + 1
        if word != "-" and self.texts[index + 1] == "(":
            operand = self.operators_after(self.parenthesised(), PREFIX_PRECEDENCE)
        else:
            operand = self.term(PREFIX_PRECEDENCE)
        self.depth -= 1
        return Call(PREFIXES[word], (operand,), self.span_of(index), self.span_from(index))

    def integer(self, index: int, sign: int, first: int) -> Integer:
        number = read_integer(self.texts[index])
        span = new_span(Span, (self.starts[first], self.ends[index]))
        if number is None or sign * number[0] < SMALLEST_NUMBER:
            self.report("E0105", span, number=crop(self.source.text[span.start : span.end]))
            return Integer(0, False, span)
        return Integer(sign * number[0], number[1], span)

    def float(self, index: int, sign: int, first: int) -> Float:
        value = sign * float(self.texts[index])
        span = Span(self.starts[first], self.ends[index])
        if isinf(value):
            self.report("E0105.float", span, number=crop(self.source.text[span.start : span.end]))
            value = 0.0
        return Float(value, span)

    def call(self) -> Call:
        """`functor(terms)`"""
        first = self.position
        functor = self.texts[first]
        name_span = self.span_of(first)
        arguments = self.arguments()
        return Call(functor, arguments, name_span, self.span_from(first))

    def atom(self) -> Atom:
        first = self.position
        arguments = self.arguments()
        start, ends = self.starts[first], self.ends
        name_span = new_span(Span, (start, ends[first]))
        return Atom(self.texts[first], arguments, name_span, new_span(Span, (start, ends[self.position - 1])))

    def qualified_atom(self) -> Atom:
        """`instance.relation(terms)`"""
        first = self.position
        name, name_span = self.qualified_name("the name of a relation")
        if self.texts[self.position] != "(":
            raise self.unexpected("`(`", where="after the name of a relation")
        self.position -= 1
        return Atom(name, self.arguments(), name_span, self.span_from(first))

    def arguments(self) -> tuple[Term, ...]:
        """Reads `(terms)`, starting at the name before it."""
        texts, kinds, starts, ends = self.texts, self.kinds, self.starts, self.ends
        opened = position = self.position + 1
        arguments: list[Term] = []
        if texts[position + 1] == ")":
            self.position = position + 2
            return ()
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.too_deep(self.span_of(position))
        while True:
            position += 1
            follow = texts[position + 1]
            kind = kinds[position]
            # Nearly all arguments are single tokens: the general way would cost as much again as everything else.
            is_single = follow == "," or follow == ")"
            if is_single and kind == NAME:
                arguments.append(Variable(texts[position], new_span(Span, (starts[position], ends[position]))))
                position += 1
            elif is_single and kind == WILDCARD:
                arguments.append(Wildcard(new_span(Span, (starts[position], ends[position]))))
                position += 1
            elif is_single and kind == INTEGER:
                arguments.append(self.integer(position, 1, position))
                position += 1
            else:
                self.position = position
                arguments.append(self.term())
                position = self.position
                follow = texts[position]
            if follow == ",":
                continue
            self.position = position + 1
            if follow == ")":
                self.depth -= 1
                return tuple(arguments)
            self.position = position
            self.expect_close(")", opened, "or `,` after an argument")

    def keyword(self) -> Term:
        index = self.position
        word = self.texts[index]
        follow = self.texts[index + 1]
        if word in AGGREGATES:
            return self.minimum_or_maximum() if word in FUNCTORS and follow == "(" else self.aggregate()
        if word in FUNCTORS:
            if follow == "(":
                return self.call()
            raise self.failure("E0113.functor", self.span_of(index), word=word)
        if word == "nil":
            self.position += 1
            return Call("nil", (), self.span_of(index), self.span_of(index))
        if word == "autoinc":
            return self.call()
        if word == "as":
            return self.cast()
        if word in ("true", "false"):
            raise self.failure("E0113.truth", self.span_of(index), word=word, number=int(word == "true"))
        raise self.reserved(index, "a term")

    def cast(self) -> Cast:
        """`as(term, type)`"""
        first = self.position
        self.position = opened = first + 1
        self.expect("(", "after `as`", advice="a cast is written `as(term, type)`")
        self.enter(opened)
        term = self.term()
        self.expect(",", "after the term of a cast", advice="a cast is written `as(term, type)`")
        type_name, type_span = self.qualified_name("a type")
        self.expect_close(")", opened, "after the type of a cast")
        self.depth -= 1
        return Cast(term, type_name, type_span, self.span_from(first))

    def minimum_or_maximum(self) -> Term:
        """`min(a, b)` is a functor, `min (a) : { body }` an aggregate."""
        index = self.position
        opened = index + 1
        self.enter(opened)
        self.position = index + 2
        first = self.term()
        if self.texts[self.position] != ",":
            self.close_target(opened, "or `,` after an argument")
            self.depth -= 1
            return self.aggregate_of(index, self.operators_after(first))
        self.position += 1
        arguments = (first, *self.separated(",", self.term))
        self.expect_close(")", opened, "or `,` after an argument")
        self.depth -= 1
        return Call(self.texts[index], arguments, self.span_of(index), self.span_from(index))

    def aggregate(self) -> Aggregate:
        index = self.position
        self.enter(index)
        self.position = index + 1
        follow = self.texts[index + 1]
        is_bare = self.texts[index] == "count" or follow in (",", ")")
        if not is_bare and follow in ("{", ":"):
            raise self.without_body(index)
        target = None if is_bare else self.term()
        aggregate = self.aggregate_of(index, target)
        self.depth -= 1
        return aggregate

    def aggregate_of(self, index: int, target: Term | None) -> Aggregate:
        """Reads an aggregate after its target: `: { body }` or `: atom`."""
        word = self.texts[index]
        shape = _shape(word, "x", "…")
        if not self.skip_if(":"):
            raise self.without_body(index, target)
        return Aggregate(
            word, target, self.aggregated(f"after `:` of `{word}`", f"write `{shape}`"), self.span_from(index)
        )

    def close_target(self, opened: int, where: str) -> None:
        """Reads the end of a parenthesis, whose contents may have been meant as an aggregate."""
        if self.texts[self.position] in (":", ",") and opened and self.texts[opened - 1] in AGGREGATES:
            raise self.without_body(opened - 1)
        self.expect_close(")", opened, where)

    def without_body(self, index: int, target: Term | None = None) -> UnreadableItemError:
        """The error for an aggregate that is not followed by `:` and a body. If it is in the form of another language,
        the help shows how to write it here, with its own words."""
        word, end = self.texts[index], self.ends[index]
        other = _ELSEWHERE.match(self.source.text, end, end + 300)
        if other is not None:
            body = other["body"]
            names = re.findall(r"[A-Za-z]\w*(?!\w|\()", body.partition("(")[2].partition(")")[0])
            aggregated = other["target"] or (names[-1] if names else "x")
            advice = f"write `{_shape(word, crop(aggregated), crop(body))}`"
            if word == "count" and (other["distinct"] or other["target"] not in ("", "*")):
                advice += f"; for the number of different `{crop(aggregated)}`, count the facts of a relation of these"
            return self.failure("E0121.form", self.span_of(index), word=word, advice=advice)
        advice = f'write `{_shape(word, "x", "…")}`; a variable needs another name, and a text is written `"{word}"`'
        if target is not None:
            written = self.source.text[target.span.start : target.span.end]
            advice = f"write `{_shape(word, crop(written), '…')}`"
            if word in ("min", "max"):
                best = "least" if word == "min" else "greatest"
                advice += f"; a column `{word} number` keeps the {best} of what rules derive, also in recursion"
        return self.failure("E0121", self.span_of(index), word=word, advice=advice)

    def user_aggregate(self) -> Aggregate:
        """`@@f x : start, { body }`, which folds by a user's functor"""
        index = self.position
        self.enter(index)
        self.position = index + 2
        name = self.name("the name of a functor")
        name_span = Span(self.starts[index], self.ends[name])
        target = self.term()
        advice = f"write `@@{self.texts[name]} x : start, {{ ... }}`"
        self.expect(":", "after the target of an aggregate", advice=advice)
        start = self.term()
        self.expect(",", "after the value that an aggregate starts with", advice=advice)
        body = self.aggregated("after `,`", advice)
        pair = Call("[]", (start, target), name_span, Span(target.span.start, start.span.end))
        self.depth -= 1
        return Aggregate(f"@{self.texts[name]}", pair, body, self.span_from(index))

    def aggregated(self, where: str, advice: str) -> Body:
        """What an aggregate ranges over: `{ body }` or an atom."""
        if self.texts[self.position] == "{":
            return self.braced_body()
        if self.kinds[self.position] == NAME and self.texts[self.position + 1] == "(":
            return (self.atom(),)
        if self.kinds[self.position] == NAME and self.is_qualified(self.position):
            return (self.qualified_atom(),)
        raise self.unexpected("`{`", where=where, advice=advice)

    # --- less common operands ---

    def other_operand(self) -> Term:
        index = self.position
        text = self.texts[index]
        if text == "[":
            return self.record()
        if text == "$":
            if self.kinds[index + 1] != NAME:
                self.position += 1
                return Call("autoinc", (), self.span_of(index), self.span_of(index))
            return self.branch()
        if text == "@" and self.texts[index + 1] == "@":
            return self.user_aggregate()
        if text == "@" and self.kinds[index + 1] == NAME:
            self.position += 1
            if self.texts[self.position + 1] != "(":
                self.position += 1
                raise self.unexpected("`(`", where="after the name of a functor", advice="write `@f(x)`")
            name_span = Span(self.starts[index], self.ends[index + 1])
            arguments = self.arguments()
            return Call(f"@{self.texts[index + 1]}", arguments, name_span, self.span_from(index))
        raise self.unexpected("a term", advice=_OPERAND_HABITS.get(text))

    def record(self) -> Call:
        """`[terms]`"""
        index = self.position
        self.enter(index)
        self.position += 1
        fields = self.listed("]", index, "after a field", self.term)
        self.depth -= 1
        return Call("[]", fields, self.span_of(index), self.span_from(index))

    def branch(self) -> Call:
        """`$A(terms)` or `$A`"""
        index = self.position
        self.position += 1
        name, name_span = self.qualified_name("a branch")
        self.position -= 1  # arguments are read from the name on
        if self.texts[self.position + 1] == "(":
            fields = self.arguments()
        else:
            self.position += 1
            fields = ()
        return Call(f"${name}", fields, Span(self.starts[index], name_span.end), self.span_from(index))
