"""Equivalence relations: `eqrel` stands for the three rules that close a relation."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from elastalog.diagnostics.source import Span
from elastalog.syntax.tree import Atom, Clause, Instance, Item, RelationDeclaration, Tree, Variable, Wildcard


def with_closures(tree: Tree) -> Tree:
    """The tree with the rules that `eqrel` stands for behind each declaration that has it; all of them stand where that
    word does. A relation that has not two attributes is left to the analysis to report."""
    if not any(_equivalence(item) is not None for item in tree.items):
        return tree
    return replace(tree, items=tuple(_closed(tree.items)))


def without_closures(tree: Tree) -> Tree:
    """The tree as it was before `with_closures`."""
    words = closing_words(tree)
    return replace(tree, items=tuple([item for item in tree.items if not is_closure(item, words)])) if words else tree


def closing_words(tree: Tree) -> frozenset[Span]:
    """Where `eqrel` stands."""
    return frozenset([span for item in tree.items if (span := _equivalence(item)) is not None])


def is_closure(item: Item, words: Collection[Span]) -> bool:
    """Whether an item is one of the rules that an `eqrel` at one of these places stands for."""
    return isinstance(item, Clause) and item.span in words


def _closed(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        yield item
        span = _equivalence(item)
        if span is not None and isinstance(item, RelationDeclaration) and len(item.attributes) == 2:
            x, y, z = (Variable(name, span) for name in ("x", "y", "z"))
            pair = _atom(item.name, x, y, span)
            made_for = item.instance
            yield _rule(_atom(item.name, x, x, span), (_atom(item.name, x, Wildcard(span), span),), span, made_for)
            yield _rule(_atom(item.name, y, x, span), (pair,), span, made_for)
            yield _rule(_atom(item.name, x, z, span), (pair, _atom(item.name, y, z, span)), span, made_for)


def _equivalence(item: Item) -> Span | None:
    if not isinstance(item, RelationDeclaration):
        return None
    return next((span for word, span in item.qualifiers if word == "eqrel"), None)


def _atom(relation: str, left: Variable, right: Variable | Wildcard, span: Span) -> Atom:
    return Atom(relation, (left, right), span, span)


def _rule(head: Atom, body: tuple[Atom, ...], span: Span, instance: Instance | None) -> Clause:
    return Clause((head,), body, None, span, instance)
