"""Facts that compete: subsumptions, and columns that keep one value.

A subsumption becomes a rule of a hidden relation: `R(x, a) <= R(x, b) :- b < a.` gives the pairs of facts of which the
first is dominated, `R<=(x, a, x, b) :- R(x, a), R(x, b), b < a.` Names, types and groundedness are judged as those of
any rule; then the rules are taken out of the program again and belong to their relation.

A column that improves becomes a subsumption: `.decl far(x: symbol, km: min number)` keeps the least `km` of every `x`,

    far(x, a) <= far(x, b) :- b < a.

Of a lattice that `.lattice D<> { Lub -> @lub(_, _) }` declares, two values may have a join that is neither: a rule
derives it, and what lies below another value leaves,

    v(x, @lub(a, b)) :- v(x, a), v(x, b).
    v(x, a) <= v(x, b) :- @lub(a, b) = b, a != b.

A variable that several columns `D<>` of a body share is the meet of their values, `Glb`, unless that is `Bottom`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from elastalog.analysis.declare_types import types_below
from elastalog.analysis.draft import Draft
from elastalog.analysis.findings import Findings
from elastalog.analysis.program import EQUIVALENCE
from elastalog.analysis.variables import equal_name, wildcard_name
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree
from elastalog.syntax.keywords import LATTICE_OPERATORS, NOT

MARK = "<="
"""The end of the name of a relation of pairs, which no program can write."""
_FAR: Final = 1_000_000


def is_of_pairs(relation: str) -> bool:
    """Whether a relation holds the pairs of a subsumption."""
    return relation.endswith(MARK)


def with_pairs(draft: Draft, findings: Findings) -> Draft:
    """Pass: replaces every subsumption by a relation of pairs and a rule for it."""
    subsumptions = [item for item in draft.tree.items if isinstance(item, tree.Subsumption)]
    if not subsumptions:
        return draft
    declared = {item.name: item for item in draft.tree.items if isinstance(item, tree.RelationDeclaration)}
    items: list[tree.Item] = [item for item in draft.tree.items if not isinstance(item, tree.Subsumption)]
    pairs: set[str] = set()
    for item in subsumptions:
        findings.instance = item.instance
        one, other = item.dominated, item.dominating
        if one.relation != other.relation:
            findings.error("E0247", other.span, one.span, one=one.relation, other=other.relation)
            continue
        one, other = _with_names(one, 1), _with_names(other, 2)
        declaration = declared.get(one.relation)
        name = one.relation + MARK
        if name not in pairs and declaration is not None:
            pairs.add(name)
            items.append(_of_pairs(declaration, name))
        if declaration is None:
            items.append(
                tree.Clause((one,), (other, *item.body), None, item.span, item.instance)
            )  # the name is reported
        else:
            head = replace(one, relation=name, arguments=(*one.arguments, *other.arguments), span=item.span)
            items.append(tree.Clause((head,), (one, other, *item.body), None, item.span, item.instance))
    rewritten = tree.Tree(draft.tree.source, tuple(items))
    return replace(draft, tree=rewritten)


def _with_names(head: tree.Atom, side: int) -> tree.Atom:
    """A head in which wildcards are variables of their own, since their values belong to the pair."""
    arguments = tuple(
        [
            tree.Variable(wildcard_name(side * _FAR + place), term.span) if isinstance(term, tree.Wildcard) else term
            for place, term in enumerate(head.arguments)
        ]
    )
    return replace(head, arguments=arguments)


def _of_pairs(declaration: tree.RelationDeclaration, name: str) -> tree.RelationDeclaration:
    attributes = tuple(
        tree.Attribute(f"{attribute.name}{side}", attribute.type_name, attribute.name_span, attribute.type_span)
        for side in ("", "'")
        for attribute in declaration.attributes
    )
    return tree.RelationDeclaration(name, attributes, (), declaration.name_span, declaration.span, declaration.instance)


_Columns: TypeAlias = Mapping[str, Mapping[int, tree.Lattice]]
"""By relation, the columns `D<>`, each with its lattice."""


def keeping_best(relation: str, columns: Iterable[tuple[str, str]], place: int, best: str) -> str:
    """A declaration that makes a relation keep the least (`min`) or greatest (`max`) value of a column. `columns`:
    their names and types."""
    listed = [f"{name}: {f'{best} ' if i == place else ''}{kind}" for i, (name, kind) in enumerate(columns)]
    return f".decl {relation}({', '.join(listed)})"


def with_lattices(draft: Draft, findings: Findings) -> Draft:
    """Pass: replaces every improving column by what it stands for."""
    improving = [item for item in draft.tree.items if type(item) is tree.RelationDeclaration and item.improves]
    declared = [item for item in draft.tree.items if type(item) is tree.Lattice]
    if not improving and not declared:
        return draft
    lattices = _declared(declared, findings)
    subsumed = {item.dominated.relation: item for item in draft.tree.items if type(item) is tree.Subsumption}
    floats = types_below(draft.tree, ["float"])
    columns: dict[str, dict[int, tree.Lattice]] = {}
    made: list[tree.Item] = []
    for item in improving:
        findings.instance = item.instance
        if not _may_improve(item, subsumed.get(item.name), lattices, findings):
            continue
        own = {
            place: lattices[attribute.type_name]
            for place, attribute in enumerate(item.attributes)
            if attribute.improves == "<>"
        }
        columns[item.name] = own
        made += _meaning(item, own, floats)
    items = [_with_meets(item, columns, findings) for item in draft.tree.items if type(item) is not tree.Lattice]
    return replace(draft, tree=tree.Tree(draft.tree.source, (*items, *made)))


# --- declarations ----------------------------------------------------------------------------------------------------


def _declared(items: list[tree.Lattice], findings: Findings) -> dict[str, tree.Lattice]:
    """The lattices by type. Those with errors are reported and left out."""
    found: dict[str, tree.Lattice] = {}
    for item in items:
        findings.instance = item.instance
        if item.type_name in found:
            findings.declared_twice(
                "E0263", f"lattice {quoted(item.type_name + '<>')}", item.type_span, found[item.type_name].type_span
            )
            continue
        found[item.type_name] = item
        names = [name for name, _, _ in item.operators]
        for place, (name, term, span) in enumerate(item.operators):
            operands = [type(t) for t in term.arguments] if type(term) is tree.Call else []
            if name not in LATTICE_OPERATORS:
                findings.error("E0263.operator", span, name=name, operators=", ".join(LATTICE_OPERATORS))
            elif name in names[:place]:
                findings.error("E0263.twice", span, name=name)
            elif name in ("Lub", "Glb", "Leq") and operands != [tree.Wildcard, tree.Wildcard]:
                findings.error("E0263.functor", span, name=name, small=name.lower())
        if "Lub" not in names:
            findings.error("E0263.join", item.type_span, lattice=item.type_name + "<>")
    return {} if findings.diagnostics else found


def _may_improve(
    item: tree.RelationDeclaration,
    subsumption: tree.Subsumption | None,
    lattices: Mapping[str, tree.Lattice],
    findings: Findings,
) -> bool:
    """Whether a relation may have its improving columns; if not, that is reported."""
    first = next(attribute for attribute in item.attributes if attribute.improves)
    others = [("`eqrel`", span)] if (span := item.qualifier(EQUIVALENCE)) is not None else []
    others += [("a choice domain", span) for key in item.choices for _, span in key]
    if subsumption is not None:
        others.append(("a subsumption", subsumption.span))
    for what, span in others[:1]:
        findings.error("E0264.both", first.type_span, span, name=item.name, what=what)
    unknown = [a for a in item.attributes if a.improves == "<>" and a.type_name not in lattices]
    for attribute in unknown if lattices or not findings.diagnostics else ():
        findings.error("E0263.unknown", attribute.type_span, lattice=tree.written_type(attribute))
    return not others and not unknown


# --- what is kept ----------------------------------------------------------------------------------------------------


def _meaning(
    item: tree.RelationDeclaration, lattices: Mapping[int, tree.Lattice], floats: set[str]
) -> Iterator[tree.Item]:
    """The rule and the subsumptions that the improving columns of a relation stand for."""
    places = [place for place, attribute in enumerate(item.attributes) if attribute.improves]
    span = Span(item.attributes[places[0]].name_span.start, item.attributes[places[-1]].type_span.end)
    one, other = (_fact(item, side, span) for side in ("a", "b"))
    body: list[tree.Literal] = []
    joined = list(one.arguments)
    for place in places:
        attribute, a, b = item.attributes[place], one.arguments[place], other.arguments[place]
        if attribute.improves != "<>":
            joined[place] = tree.Call(attribute.improves, (a, b), span, span)
            if len(places) == 1:
                body.append(tree.Comparison("<" if attribute.improves == "min" else ">", b, a, span, span))
                continue
        else:
            joined[place] = _applied(lattices[place].operator("Lub"), a, b, span)
        leq = lattices[place].operator("Leq") if place in lattices else None
        if leq is not None:
            body.append(tree.Comparison("!=", _applied(leq, a, b, span), tree.Integer(0, False, span), span, span))
        else:
            body.append(tree.Comparison("=", joined[place], b, span, span))
    if len(places) == 1 and not lattices:
        yield tree.Subsumption(one, other, tuple(body), span, item.instance)
        if item.attributes[places[0]].type_name in floats:  # NaN is worse than any number
            a, b = one.arguments[places[0]], other.arguments[places[0]]
            is_number = tree.Comparison("<=", b, b, span, span)
            yield tree.Subsumption(
                one, other, (tree.Comparison(NOT + "<=", a, a, span, span), is_number), span, item.instance
            )
        return
    differ = [tree.Comparison("!=", one.arguments[place], other.arguments[place], span, span) for place in places]
    apart: tree.Literal = differ[0] if len(differ) == 1 else tree.Disjunction(tuple((test,) for test in differ), span)
    yield tree.Subsumption(one, other, (*body, apart), span, item.instance)
    yield tree.Clause((replace(one, arguments=tuple(joined)),), (one, other, apart), None, span, item.instance)


def _fact(item: tree.RelationDeclaration, side: str, span: Span) -> tree.Atom:
    """An atom of a relation, with the same variables on both sides for the columns that facts share, and different ones
    for those that improve."""
    arguments = tuple(
        tree.Variable(f"{side}{place}" if attribute.improves else f"k{place}", span)
        for place, attribute in enumerate(item.attributes)
    )
    return tree.Atom(item.name, arguments, span, span)


def _applied(operator: tree.Term | None, left: tree.Term, right: tree.Term, span: Span) -> tree.Term:
    assert isinstance(operator, tree.Call)
    return replace(operator, arguments=(left, right), span=span)


# --- what bodies have in common --------------------------------------------------------------------------------------


def _with_meets(item: tree.Item, columns: _Columns, findings: Findings) -> tree.Item:
    """A clause in which a variable shared by several columns `D<>` stands for the meet of their values."""
    if type(item) is not tree.Clause:
        return item
    findings.instance = item.instance
    body = _met(item.body, columns, findings)
    return item if body is item.body else replace(item, body=body)


def _met(body: tree.Body, columns: _Columns, findings: Findings) -> tree.Body:
    uses: dict[str, list[tuple[int, int]]] = {}
    for place, literal in enumerate(body):
        if type(literal) is tree.Atom:
            for column in columns.get(literal.relation, ()):
                term = literal.arguments[column] if column < len(literal.arguments) else None
                if type(term) is tree.Variable:
                    uses.setdefault(term.name, []).append((place, column))
    literals = [
        replace(x, alternatives=tuple(_met(alternative, columns, findings) for alternative in x.alternatives))
        if type(x) is tree.Disjunction
        else x
        for x in body
    ]
    more: list[tree.Literal] = []
    for name, found in uses.items():
        if len(found) > 1:
            more += _meet(name, found, literals, columns, findings)
    return (*literals, *more) if more or any(type(x) is tree.Disjunction for x in body) else body


def _meet(
    name: str, found: list[tuple[int, int]], literals: list[tree.Literal], columns: _Columns, findings: Findings
) -> Iterator[tree.Literal]:
    """Literals that make a variable the meet of several values, each of which gets a variable of its own."""
    first = literals[found[0][0]]
    assert isinstance(first, tree.Atom)
    lattice = columns[first.relation][found[0][1]]
    operator, bottom = lattice.operator("Glb"), lattice.operator("Bottom")
    span = first.arguments[found[0][1]].span
    if operator is None:
        findings.error("E0263.meet", span, lattice.span, name=name, lattice=lattice.type_name + "<>")
        return
    values: list[tree.Term] = []
    for number, (place, column) in enumerate(found):
        atom = literals[place]
        assert isinstance(atom, tree.Atom)
        own = tree.Variable(equal_name(name, number), atom.arguments[column].span)
        arguments = (*atom.arguments[:column], own, *atom.arguments[column + 1 :])
        literals[place] = replace(atom, arguments=arguments)
        values.append(own)
    met = values[0]
    for value in values[1:]:
        met = _applied(operator, met, value, span)
    yield tree.Comparison("=", tree.Variable(name, span), met, span, span)
    if bottom is not None:
        yield tree.Comparison("!=", tree.Variable(name, span), bottom, span, span)
