"""What an editor shows about a program: the declaration, type and numbers of a name; all names of a file as an outline;
and their colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from elastalog.analysis.functors import FUNCTORS
from elastalog.analysis.program import variables_in
from elastalog.diagnostics.messages import counted
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.reading import Occurrence, Reading
from elastalog.editing.scopes import (
    DECLARED,
    Kind,
    Named,
    Place,
    Scope,
    Symbol,
    detail_of,
    file_of,
    offset_in,
    place_of,
    verbatim_place,
)
from elastalog.syntax import tree
from elastalog.syntax.keywords import DIRECTIVES
from elastalog.syntax.printer import print_item
from elastalog.syntax.tokens import DIRECTIVE, KEYWORD, tokenize
from elastalog.syntax.tree import Clause, Item, Subsumption

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
    """A description of the name, or of the word of the language, at a place; None if there is neither. `counts`: the
    number of facts of each relation, by full name, where it is known."""
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
            return print_item(replace(symbol.item, items=())).replace("{\n}", "{ … }")
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
    """The number of rules of a relation, and of its facts if known, for each of its instances."""
    if reading.program is None:
        return
    names = [
        item.name
        for item in reading.program.tree.items
        if type(item) is tree.RelationDeclaration and item.name_span == symbol.span
    ]
    heads = [rule.head.relation for rule in reading.program.checked.rules]
    for name in names[:10]:
        facts = f", {counted(counts[name], 'fact')}" if name in counts else ""
        yield f"`{name}`: {counted(heads.count(name), 'rule')}{facts}"
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


def variable_type(reading: Reading, found: Occurrence) -> str | None:
    """The declared type of the first column, in the body or else in a head, that the variable stands in; otherwise the
    type that the checker inferred."""
    if found.clause is None:
        return None
    scope = scope_at(reading.top, found.clause.span.start)
    for atom in _atoms(found.clause):
        symbol = scope.find(Kind.RELATION, atom.relation)
        if symbol is None or not isinstance(symbol.item, tree.RelationDeclaration):
            continue
        for term, attribute in zip(atom.arguments, symbol.item.attributes, strict=False):
            if isinstance(term, tree.Variable) and term.name == found.symbol.name:
                return attribute.type_name
    return _checked_type(reading, found)


def scope_at(scope: Scope, offset: int) -> Scope:
    """The innermost component around a place of the program's text."""
    for inner in scope.nested.values():
        if inner.component.span.start <= offset < inner.component.span.end:
            return scope_at(inner, offset)
    return scope


def _atoms(clause: Clause | Subsumption) -> Iterator[tree.Atom]:
    yield from tree.nodes_of(tree.Atom, clause.body)
    yield from clause.heads if isinstance(clause, Clause) else (clause.dominated, clause.dominating)


def _checked_type(reading: Reading, found: Occurrence) -> str | None:
    if reading.program is None or found.clause is None:
        return None
    for rule in reading.program.checked.rules:
        if found.clause.span.start <= rule.span.start and rule.span.end <= found.clause.span.end:
            for variable in variables_in((rule.head, *rule.body), is_deep=True):
                if variable.name.partition("@")[0] == found.symbol.name:
                    return variable.base.value
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """A declaration in a file: `span` covers all of it, `name_span` its name. `detail`: columns, or a base type."""

    kind: Kind
    name: str
    detail: str
    span: Span
    name_span: Span
    inner: tuple[Entry, ...] = ()


def outline(reading: Reading, file: str) -> tuple[Entry, ...]:
    """The declarations of a file in order, those of components inside them."""
    return tuple(_entries(reading, file, reading.tree.items))


def _entries(reading: Reading, file: str, items: tuple[Item, ...]) -> Iterator[Entry]:
    for item in items:
        if not isinstance(item, Named):
            continue
        whole, name = place_of(reading.source, item.span), place_of(reading.source, item.name_span)
        if whole.file == file == name.file:
            # An editor insists on a name that lies within the whole, which a macro may break.
            covering = Span(min(whole.span.start, name.span.start), max(whole.span.end, name.span.end))
            inner = tuple(_entries(reading, file, item.items)) if isinstance(item, tree.Component) else ()
            yield Entry(DECLARED[type(item)], item.name, detail_of(item), covering, name.span, inner)


def coloured(reading: Reading, file: str) -> tuple[tuple[Place, Kind], ...]:
    """Every name in a file with its kind, in order, except for names that a macro writes."""
    if not reading.source.pieces and file_of(reading.source) != file:
        return ()
    found = {
        place: each.symbol.kind
        for each in reading.occurrences
        if (place := verbatim_place(reading.source, each.span)) is not None and place.file == file
    }
    return tuple(sorted(found.items(), key=lambda entry: entry[0].span))
