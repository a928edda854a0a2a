"""What is to be known about a name, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from elastalog.analysis.functors import FUNCTORS
from elastalog.diagnostics.source import Source
from elastalog.editing.occurrences import Occurrence
from elastalog.editing.places import offset_in
from elastalog.editing.reading import Reading
from elastalog.editing.rooms import Kind, Symbol
from elastalog.editing.variable_types import variable_type
from elastalog.syntax import tree
from elastalog.syntax.keywords import DIRECTIVES
from elastalog.syntax.printer import print_item
from elastalog.syntax.tokens import DIRECTIVE, KEYWORD, tokenize

ABOUT_DIRECTIVES: Final[Mapping[str, str]] = {
    "decl": "declares a relation: `.decl edge(from: number, to: number)`",
    "type": "declares a type: `.type Node <: symbol`, a union, a record `[a: number]`, or branches `A {} | B {x: T}`",
    "number_type": "declares a subtype of `number`",
    "symbol_type": "declares a subtype of `symbol`",
    "input": 'reads facts of a relation: `.input edge(IO=file, filename="edges.csv")`',
    "output": "writes the facts of a relation",
    "printsize": "prints how many facts a relation has",
    "limitsize": "stops a recursion when a relation has so many facts: `.limitsize path(n=1000)`",
    "plan": "orders the atoms of the rule before it: `.plan 0:(2,1)`",
    "strict": "asks for the atoms of the rule before it in the order written: a hint",
    "pragma": 'an option of the program: `.pragma "arithmetic" "wrap"`',
    "functor": "declares a functor that you implement: `.functor f(x: number): symbol`, called `@f(x)`",
    "comp": "declares a component: `.comp C<T> : Base { … }`",
    "init": "makes an instance of a component: `.init i = C<number>`; its relations are `i.r`",
    "lattice": "says how values of a type improve: `.lattice D<> { Lub -> @lub(_, _) }`, for columns `v: D<>`",
    "override": "drops the inherited rules of an `overridable` relation",
}


def hover(reading: Reading, file: str, offset: int, counts: Mapping[str, int] | None = None) -> str | None:
    """About the name at a place, or about a word of the language; None where there is neither. `counts`: how many facts
    relations have, by their whole names, where that is known."""
    found = reading.at(file, offset)
    if found is None:
        return _about_word(reading, file, offset)
    parts = [f"```elastalog\n{_declaration(reading, found)}\n```", *_remarks(reading, found.symbol)]
    if found.symbol.kind is Kind.RELATION:
        parts += _numbers(reading, found.symbol, counts or {})
    return "\n\n".join(parts)


def _declaration(reading: Reading, found: Occurrence) -> str:
    symbol = found.symbol
    match symbol.item:
        case tree.RelationDeclaration() | tree.TypeDeclaration() | tree.FunctorDeclaration() | tree.Init():
            return print_item(symbol.item)
        case tree.Component() if symbol.kind is Kind.COMPONENT:
            return print_item(tree.Component(
                symbol.item.name, symbol.item.parameters, symbol.item.bases, (), symbol.item.name_span, symbol.item.span
            )).replace("{\n}", "{ … }")  # fmt: skip
        case tree.Component():
            return f"{symbol.name}: a parameter of {symbol.item.name}"
        case tree.BranchDeclaration():
            fields = ", ".join(f"{each.name}: {each.type_name}" for each in symbol.item.fields)
            return f"${symbol.name} {{{fields}}}"
        case _:
            known = variable_type(reading, found)
            return f"{symbol.name}: {known}" if known else symbol.name


def _remarks(reading: Reading, symbol: Symbol) -> Iterator[str]:
    """The comment above a declaration."""
    if symbol.kind is Kind.VARIABLE or symbol.item is None:
        return
    origin = reading.source.origin(symbol.span)
    text = _comment_above(origin.source, origin.span.start)
    if text:
        yield text


def _comment_above(source: Source, offset: int) -> str:
    line = source.locate(offset)[0] - 1
    found: list[str] = []
    while line >= source.first_line:
        text = source.line(line).strip()
        if not text.startswith(("//", "/*", "*")) and not text.endswith("*/"):
            break
        found.append(text.removeprefix("/**").removeprefix("/*").removesuffix("*/").lstrip("/* ").rstrip())
        if text.startswith("/*"):
            break
        line -= 1
    return "\n".join(reversed(found)).strip()


def _numbers(reading: Reading, symbol: Symbol, counts: Mapping[str, int]) -> Iterator[str]:
    """How many rules a relation has, and how many facts where that is known: of each of its instances."""
    if reading.program is None:
        return
    names = [
        item.name
        for item in reading.program.tree.items
        if type(item) is tree.RelationDeclaration and item.name_span == symbol.span
    ]
    heads = [rule.head.relation for rule in reading.program.checked.rules]
    for name in names[:10]:
        rules = heads.count(name)
        text = f"`{name}`: {rules} rule{'' if rules == 1 else 's'}"
        if name in counts:
            text += f", {counts[name]:,} fact{'' if counts[name] == 1 else 's'}"
        yield text
    if len(names) > 10:
        yield f"… and {len(names) - 10} more instances"


def _about_word(reading: Reading, file: str, offset: int) -> str | None:
    at = offset_in(reading.source, file, offset)
    if at is None:
        return None
    tokens, _ = tokenize(reading.source)
    behind = [*tokens.texts[1:], ""]
    for text, after, kind, start, end in zip(
        tokens.texts, behind, tokens.kinds, tokens.starts, tokens.ends, strict=True
    ):
        if start <= at <= end and kind == DIRECTIVE and text[1:] in DIRECTIVES:
            return f"`{text}` {ABOUT_DIRECTIVES[text[1:]]}"
        if start <= at <= end and text in FUNCTORS and (kind == KEYWORD or after == "("):
            lines = "\n".join(FUNCTORS[text].signatures)
            return f"```\n{lines}\n```"
        if start > at:
            return None
    return None
