"""A position among tokens: looking ahead, expecting, reporting, and finding the place to continue after an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from elastalog.diagnostics.diagnostic import Diagnostic, Label, finding
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.keywords import read_string
from elastalog.syntax.tokens import DIRECTIVE, END, KEYWORD, MOST_ERRORS, NAME, STRING, Tokens, crop

BY_PLACE = "arguments go by their place, without names: `path(1, X)`, with `_` for those that may be any"
"""What is said where an argument is named."""
MOST_NESTED = 100
"""How deep expressions and bodies may nest; it bounds the recursion of every later stage too."""

_T = TypeVar("_T")
_OPERATOR_HABITS = {"&": "band", "|": "bor", "<<": "bshl", ">>": "bshr", "&&": "land", "||": "lor", "mod": "%"}
_CUT = "a relation is a set: order and cut where its facts are read, in Python as `db.query(…).sort().head(3)`"
_CASES = "every literal is a condition, without a word before it; for `else` write a second rule, with the opposite"
WORD_HABITS = {
    "order": _CUT,
    "limit": _CUT,
    "group": "group with an aggregate: `total(x, n) :- item(x, _), n = count : { item(x, _) }.`",
    **dict.fromkeys(("if", "case", "when"), _CASES),
}
"""What is written instead of words of other languages."""

_ELEMENT = re.compile(r'[\w"]')
_SURROGATE = re.compile("[\\ud800-\\udfff]")


# Half the time of `Span(start, end)`, for the places that make most of the spans.
new_span = tuple.__new__


class UnreadableItemError(Exception):
    """The item at hand cannot be read further; the reason has been reported."""


class TooManyFindingsError(Exception):
    """There are too many errors to go on."""


class Cursor:
    """Reads the tokens of one source from left to right. `position` is the index of the token to be read next."""

    __slots__ = (
        "annotated",
        "closings",
        "components",
        "depth",
        "diagnostics",
        "ends",
        "kinds",
        "matched_to",
        "operators",
        "position",
        "source",
        "starts",
        "texts",
    )

    def __init__(self, source: Source, tokens: Tokens) -> None:
        self.source = source
        self.texts = tokens.texts
        self.kinds = tokens.kinds
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.position = 0
        self.depth = 0
        self.components = 0  # how many are open
        self.operators = 0
        self.diagnostics: list[Diagnostic] = []
        self.annotated: list[Span] = []  # the annotations of items
        self.closings: dict[int, int] = {}  # brackets matched so far, and up to which token
        self.matched_to = 0

    # --- places ---

    def span_from(self, first: int) -> Span:
        """The span from the token `first` to the last token read."""
        return new_span(Span, (self.starts[first], self.ends[self.position - 1]))

    def written(self, first: int, end: int) -> str:
        """The text from the token `first` up to the one before `end`."""
        return self.source.text[self.starts[first] : self.ends[end - 1]]

    def span_of(self, index: int) -> Span:
        """The span of a token. The end of the file is shown right after the last token."""
        if self.kinds[index] == END and index > 0:
            return Span(self.ends[index - 1], self.ends[index - 1])
        return new_span(Span, (self.starts[index], self.ends[index]))

    def follows_open_string(self, index: int) -> bool:
        """Whether the token before is a string that was not closed on its line."""
        if index == 0 or self.kinds[index - 1] != STRING:
            return False
        written = self.source.text[self.starts[index - 1] : self.ends[index - 1]]
        return written[0] == '"' and (len(written) == 1 or written[-1] != '"')

    def describe(self, index: int) -> str:
        """A token in the form that messages show."""
        if self.kinds[index] == END:
            return "the end of the file"
        return f"`{crop(self.texts[index])}`"

    def is_first_on_line(self, index: int) -> bool:
        """Whether a line break lies between the token and the one before it."""
        return index == 0 or "\n" in self.source.text[self.ends[index - 1] : self.starts[index]]

    def skip_percent_comment(self) -> None:
        """Reports a `%`, which starts a comment in other languages, and skips the rest of its line."""
        index = self.position
        end = self.source.text.find("\n", self.starts[index])
        end = len(self.source.text) if end < 0 else end
        while self.kinds[self.position] != END and self.starts[self.position] < end:
            self.position += 1
        self.report("E0115", self.span_of(index), told="`%` does not start a comment", meant="//")

    # --- reporting ---

    def report(self, key: str, *places: Span | Label, **values: Any) -> None:
        """Records a finding (see `finding`) and continues; stops the parser if there are too many."""
        self.diagnostics.append(finding(key, *places, source=self.source, **values))
        if len(self.diagnostics) > MOST_ERRORS:
            raise TooManyFindingsError

    def failure(self, key: str, *places: Span | Label, **values: Any) -> UnreadableItemError:
        """Records an error and returns the exception that abandons the item at hand."""
        self.report(key, *places, **values)
        return UnreadableItemError()

    def unexpected(
        self, expected: str, *, where: str = "", more: tuple[Label, ...] = (), advice: str | None = None
    ) -> UnreadableItemError:
        """The error that the token at hand is not what the grammar asks for."""
        if self.follows_open_string(self.position):
            return UnreadableItemError()  # the string took in what is missing here, and has been reported
        return self.failure(
            "E0110", self.span_of(self.position), *more, expected=f"{expected}{' ' + where if where else ''}",
            wanted=expected, found=self.describe(self.position), advice=advice,
        )  # fmt: skip

    # --- reading ---

    def expect(self, text: str, where: str, *, advice: str | None = None) -> None:
        if self.texts[self.position] != text:
            raise self.unexpected(f"`{text}`", where=where, advice=advice)
        self.position += 1

    def expect_close(self, text: str, opened: int, where: str) -> None:
        """Like `expect`, for a closing bracket. A label shows the bracket that it would close."""
        if self.texts[self.position] != text:
            opening = (Label(self.span_of(opened), "opened here", False),)
            is_named = self.texts[self.position] == "=" and "an argument" in where
            advice = BY_PLACE if is_named else self.operator_meant(opened - 1)
            if advice is None and "`,`" in where and _ELEMENT.match(self.texts[self.position]):
                advice = f"write a comma before {self.describe(self.position)}"
            raise self.unexpected(f"`{text}`", where=where, advice=advice, more=opening)
        self.position += 1

    def operator_meant(self, *before: int) -> str | None:
        """What to write instead of an operator or word of another language that stands here, right before, or at one of
        the given places."""
        index = self.position
        for at in (index, index - 1, *before):
            if (habit := WORD_HABITS.get(self.texts[at].lower())) is not None:
                return habit
        is_double = self.texts[index] in ("<", ">") and self.texts[index] == self.texts[index + 1]
        meant = _OPERATOR_HABITS.get(self.texts[index] * (1 + is_double))
        return meant and f"write `{meant}`"

    def skip_if(self, text: str) -> bool:
        if self.texts[self.position] == text:
            self.position += 1
            return True
        return False

    def goes_on(self, closing: str) -> bool:
        """Whether a `,` and another element follow an element of a list."""
        if not self.skip_if(","):
            return False
        if self.texts[self.position] != closing:
            return True
        self.report("E0129", self.span_of(self.position - 1), closing=closing)
        return False

    def listed(self, closing: str, opened: int, where: str, read: Callable[[], _T]) -> tuple[_T, ...]:
        """Elements separated by commas, up to the bracket that closes the one at `opened`."""
        found: list[_T] = []
        while self.texts[self.position] != closing:
            found.append(read())
            if not self.goes_on(closing):
                break
        self.expect_close(closing, opened, f"or `,` {where}")
        return tuple(found)

    def separated(self, separator: str, read: Callable[[], _T]) -> list[_T]:
        """One element or more, with separators between them."""
        found = [read()]
        while self.skip_if(separator):
            found.append(read())
        return found

    def name(self, what: str, *, allow_reserved: bool = False) -> int:
        """Reads a name and gives its index."""
        index = self.position
        kind = self.kinds[index]
        if kind != NAME and not (allow_reserved and kind == KEYWORD):
            if kind == KEYWORD:
                raise self.reserved(index, what)
            raise self.unexpected(what)
        self.position = index + 1
        return index

    def qualified_name(self, what: str) -> tuple[str, Span]:
        """`name`, or `instance.name` for something inside an instance of a component."""
        first = self.name(what)
        if self.texts[first + 1] != "." or not self.is_qualified(first):
            return self.texts[first], new_span(Span, (self.starts[first], self.ends[first]))
        while self.is_qualified(self.position - 1):
            self.position += 2
        return "".join(self.texts[first : self.position]), self.span_from(first)

    def is_qualified(self, index: int) -> bool:
        """Whether a name is followed by `.name` without spaces."""
        return (
            self.texts[index + 1] == "."
            and self.kinds[index + 2] == NAME
            and self.ends[index] == self.starts[index + 1]
            and self.ends[index + 1] == self.starts[index + 2]
        )

    def reserved(self, index: int, what: str) -> UnreadableItemError:
        return self.failure("E0113", self.span_of(index), word=self.texts[index], what=what)

    def string_value(self, index: int) -> str:
        """The value of a string token."""
        start = self.starts[index]

        def report_unknown(first: int, end: int) -> None:
            self.report("E0106", Span(start + first, start + end), escape=self.source.text[start + first : start + end])

        text = self.texts[index]
        if not text.isascii() and (half := _SURROGATE.search(text)) is not None:
            self.report("E0101.surrogate", Span(start + half.start(), start + half.end()), code_point=ord(half[0]))
            text = _SURROGATE.sub("\ufffd", text)
        return read_string(text, report_unknown)

    def expect_string(self, what: str, *, advice: str | None = None) -> str:
        index = self.position
        if self.kinds[index] != STRING:
            raise self.unexpected(what, advice=advice)
        self.position = index + 1
        return self.string_value(index)

    # --- annotations ---

    def is_annotation(self, index: int) -> bool:
        """Whether `@[…]` begins at a token."""
        return self.texts[index] == "@" and self.texts[index + 1] == "["

    def annotations(self, what: str) -> None:
        """Reads the `@[…]` before the item that they annotate. They mean nothing to the program."""
        first = self.position
        while self.is_annotation(self.position):
            opened = self.position + 1
            self.position = opened
            self.skip_annotation()
            if self.texts[self.position - 1] != "]":
                self.expect_close("]", opened, "after an annotation")
        if self.position > first and (self.texts[self.position] == "}" or self.kinds[self.position] == END):
            raise self.unexpected(what, where="after an annotation")

    def inner_annotations(self) -> None:
        """Reads the `@![…]` at the start of what they annotate."""
        while self.texts[self.position] == "@" and self.texts[self.position + 1] == "!":
            self.position += 2
            opened = self.position
            self.expect("[", "after `@!`", advice='an annotation is written `@![doc = "text"]`')
            self.position = opened
            self.skip_annotation()

    # --- nesting ---

    def enter(self, index: int) -> None:
        """Goes one level deeper, at the token `index`. The depth starts at 0 with each item."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.too_deep(self.span_of(index))

    def too_deep(self, span: Span) -> UnreadableItemError:
        return self.failure("E0116", span, most=MOST_NESTED)

    # --- going on after an error ---

    def skip_item(self) -> None:
        """Skips to the place after the next `.`, or to what starts a new item: a directive, a name at the start of a
        line that is followed by `(` and does not continue a list, or a `}` at the start of a line that ends a
        component."""
        texts, kinds = self.texts, self.kinds
        position = self.position
        while kinds[position] != END:
            text = texts[position]
            if text == ".":
                self.position = position + 1
                return
            if kinds[position] == DIRECTIVE or self._starts_clause(position):
                break
            if text == "}" and self.components and self.is_first_on_line(position):
                break
            position += 1
        self.position = position

    def _starts_clause(self, index: int) -> bool:
        start = self.starts[index]
        return (
            self.kinds[index] == NAME
            and self.texts[index + 1] == "("
            and (start == 0 or self.source.text[start - 1] == "\n")
            and index > 0
            and self.texts[index - 1] not in (",", ";", ":-", "!", "(", "{", "&&", "||")
        )

    def skip_annotation(self) -> None:
        """Skips from a `[` to the place after the `]` that closes it, or to the end of the file."""
        depth = 0
        while self.kinds[self.position] != END:
            text = self.texts[self.position]
            self.position += 1
            depth += (text == "[") - (text == "]")
            if text == "]" and depth == 0:
                return
