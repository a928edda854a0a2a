"""Formats program text: items begin on a new line, blanks stand where they help, comments and line breaks inside items
stay. Tokens are never changed, so that the text keeps its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Final

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.syntax.keywords import PRECEDENCE
from elastalog.syntax.parser import parse
from elastalog.syntax.tokens import END, FLOAT, INTEGER, KEYWORD, NAME, STRING, WILDCARD, Tokens, tokenize
from elastalog.syntax.tree import Clause, Component, Item

_INDENT: Final = "    "
_REMARK: Final = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\\r?\n|\\)*", re.DOTALL | re.MULTILINE)
_DOTTED: Final = re.compile(r'^([ \t]*)\.(include[ \t]*"|once\b)', re.MULTILINE)
_MASKED: Final = re.compile(r"^([ \t]*)#\.(?=include|once)", re.MULTILINE)
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_OPERANDS: Final = frozenset((NAME, WILDCARD, INTEGER, FLOAT, STRING))
_SPACED: Final = frozenset((":-", "=", "!=", "<", "<=", ">", ">=", "<:", "|", *PRECEDENCE))
_TIGHT_IN_DIRECTIVES: Final = frozenset("<>-")


def format_program(source: Source) -> tuple[str, tuple[Diagnostic, ...]]:
    """The formatted text, and no diagnostics; or the text as it is, with the errors that prevent reading it. Lines for
    the preprocessor stay as they are."""
    # To the layout, `.include` and `.once` are lines for the preprocessor like those that begin with `#`.
    source = replace(source, text=_DOTTED.sub(r"\1#.\2", source.text), pieces=())
    tree, found = parse(source)
    faults = tuple(fault for fault in found if fault.severity == "error" and fault.code != "E0197")
    if faults:
        return _MASKED.sub(r"\1.", source.text), faults
    starts = dict(_starts(tree.items)) | {span.start: "Annotation" for span in tree.annotations}
    text = _Layout(source.text, tokenize(source)[0], starts).text()
    return _MASKED.sub(r"\1.", text), ()


def _starts(items: tuple[Item, ...]) -> Iterator[tuple[int, str]]:
    """Where items begin, and which kind each is."""
    for item in items:
        kind = type(item).__name__
        yield item.span.start, kind
        if type(item) is Clause and item.plan is not None:
            yield item.plan.span.start, "Plan"
        if type(item) is Component:
            yield from _starts(item.items)


@dataclass(slots=True, eq=False)
class _Layout:
    source: str
    tokens: Tokens
    starts: dict[int, str]
    lines: list[str] = field(default_factory=list)
    line: str = ""
    kind: str = ""
    components: int = 0  # how many are open
    brackets: int = 0  # how many are open in the item

    def text(self) -> str:
        tokens = self.tokens
        done = 1 if self.source.startswith("\ufeff") else 0
        for index, kind in enumerate(tokens.kinds):
            start = tokens.starts[index]
            self.between(index, self.source[done:start])
            if kind == END:
                break
            self.token(index)
            done = tokens.ends[index]
        self.end_line()
        return "\n".join(self.lines).rstrip("\n") + "\n" if self.lines else ""

    # --- between tokens --------------------------------------------------------------------------------------------

    def between(self, index: int, gap: str) -> None:
        """Handles comments, lines for the preprocessor and line breaks before a token."""
        is_new = self.is_item_start(index)
        position = 0
        for remark in _REMARK.finditer(gap):
            self.breaks(gap[position : remark.start()], is_new)
            self.remark(remark[0])
            position = remark.end()
        rest = gap[position:]
        self.breaks(rest, is_new)
        # A clause continues on the line of the one before it, as it was written: `p(1). p(2).`
        if is_new and not (self.kind == "Clause" and self.starts.get(self.tokens.starts[index]) == "Clause"):
            self.end_line()

    def breaks(self, space: str, is_new: bool) -> None:
        count = space.count("\n")
        if count:
            self.end_line()
            self.kind = "" if is_new else self.kind
        if count > 1 and is_new and self.lines and self.lines[-1]:
            self.lines.append("")

    def remark(self, text: str) -> None:
        if text.lstrip().startswith("#"):
            self.end_line()
            self.lines.append(text.strip())
            return
        if self.line:
            self.line += ("  " if text.startswith("//") else " ") + text.rstrip()
        else:
            self.line = self.indentation() + text.rstrip()
        if text.startswith("//"):
            self.end_line()

    def end_line(self) -> None:
        if self.line.strip():
            self.lines.append(self.line.rstrip())
        self.line = ""

    # --- tokens ----------------------------------------------------------------------------------------------------

    def is_item_start(self, index: int) -> bool:
        is_end_of_component = self.tokens.texts[index] == "}" and self.components > 0 and self.brackets == 0
        return self.tokens.starts[index] in self.starts or is_end_of_component or self.tokens.kinds[index] == END

    def token(self, index: int) -> None:
        start = self.tokens.starts[index]
        text = self.source[start : self.tokens.ends[index]]
        if text == "}" and self.components > 0 and self.brackets == 0:
            self.components -= 1
            self.line, self.kind = _INDENT * self.components + "}", ""
            self.end_line()
            return
        if start in self.starts:
            self.kind, self.brackets = self.starts[start], 0
            self.line = f"{self.line} {text}" if self.line.strip() else _INDENT * self.components + text
            return
        if text in _CLOSING:
            self.brackets -= 1
        if not self.line.strip():
            self.line = self.indentation() + text
        else:
            self.line += (" " if self.has_space(index) else "") + text
        if text == "{" and self.kind == "Component":
            self.components += 1
            self.kind = ""
        elif text in _OPENING:
            self.brackets += 1

    def indentation(self) -> str:
        """The indentation of a line inside an item, or of a comment before one."""
        return _INDENT * (self.components + (self.brackets + 1 if self.kind else 0))

    def has_space(self, index: int) -> bool:
        """Whether there is a blank before a token that does not begin a line."""
        texts, kinds = self.tokens.texts, self.tokens.kinds
        before, text = texts[index - 1], texts[index]
        if self.is_qualifying(index) or self.is_qualifying(index - 1):
            return False
        if text in (",", ";", ".", ")", "]") or before in ("(", "[", "$", "@") or (before == "!" and text != "!="):
            return False
        if before in (",", ";"):
            return True
        if self.kind == "Clause":
            return self.has_space_in_clause(index)
        if self.kind in ("Directive", "Plan") and (text in ("=", ":") or before in ("=", ":")):
            return False
        if self.kind in ("Component", "Init", "RelationDeclaration") and {before, text} & _TIGHT_IN_DIRECTIVES:
            return before == ">" and text not in _TIGHT_IN_DIRECTIVES
        if text == ":" and self.kind != "Component":
            return False
        if text == "}" or before == "{":
            return False
        return not (text == "(" and kinds[index - 1] in (NAME, KEYWORD) and before not in ("domain",))

    def has_space_in_clause(self, index: int) -> bool:
        texts, kinds = self.tokens.texts, self.tokens.kinds
        before, text = texts[index - 1], texts[index]
        if before == "-" and self.is_prefix(index - 1):
            return False
        if text == "(":
            return before in _SPACED or before == ":" or kinds[index - 1] not in (NAME, KEYWORD)
        return True

    def is_prefix(self, index: int) -> bool:
        """Whether a minus has no operand before it."""
        before = self.tokens.texts[index - 1]
        return self.tokens.kinds[index - 1] not in _OPERANDS and before not in _CLOSING

    def is_qualifying(self, index: int) -> bool:
        """Whether a token is the dot of `instance.relation`."""
        tokens = self.tokens
        return (
            0 < index < len(tokens.texts) - 1
            and tokens.texts[index] == "."
            and tokens.kinds[index - 1] == NAME
            and tokens.kinds[index + 1] in (NAME, KEYWORD)
            and tokens.ends[index - 1] == tokens.starts[index]
            and tokens.ends[index] == tokens.starts[index + 1]
            and tokens.starts[index + 1] not in self.starts
        )
