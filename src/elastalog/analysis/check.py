"""The passes that turn what was written into what it means, in order. The last pass numbers the rules, assigns them to
strata, and reports what can only be seen in a whole program. `flatten` runs before: it expands components and inline
relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from elastalog.analysis.check_grounded import check_grounded
from elastalog.analysis.declare_relations import declare_relations
from elastalog.analysis.declare_types import declare_functors, declare_types
from elastalog.analysis.draft import Draft, TypedRule
from elastalog.analysis.findings import Findings
from elastalog.analysis.infer_types import infer_types
from elastalog.analysis.listing import show_literal
from elastalog.analysis.program import (
    Aggregation,
    Atom,
    CheckedProgram,
    Negation,
    Rule,
    Stratum,
    literals_in,
    numbered_variable,
)
from elastalog.analysis.resolve_names import resolve_names
from elastalog.analysis.stratify import stratify
from elastalog.analysis.subsumptions import MARK, is_of_pairs, with_lattices, with_pairs
from elastalog.analysis.take_apart import take_apart
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.quota import look
from elastalog.syntax import tree
from elastalog.syntax.parser import without_collection
from elastalog.syntax.tree import Clause, Component, Init, Override, RelationDeclaration, Tree

_NO_PLAN: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType({})


def number_rules(draft: Draft, findings: Findings) -> Draft:
    """Assemble the checked program."""
    component_of = {name: index for index, component in enumerate(draft.components) for name in component}
    rules: list[Rule] = []
    rules_of: list[list[Rule]] = [[] for _ in draft.components]
    count_of: dict[str, int] = {}
    subsumptions: list[Rule] = []
    recursive: set[int] = set()
    for typed in draft.typed_rules:
        head = typed.head.relation
        if is_of_pairs(head):
            in_relation = count_of[head] = count_of.get(head, 0) + 1
            subsumptions.append(_subsumption(typed, in_relation, component_of, draft, findings))
            continue
        number = len(rules) + 1
        stratum = component_of[head]
        in_relation = count_of[head] = count_of.get(head, 0) + 1
        recursive_atoms = 0
        may_number = False
        for literal in typed.body:
            if type(literal) is Atom:
                if component_of[literal.relation] == stratum:
                    recursive_atoms += 1
            elif type(literal) is not Negation:
                may_number = True
        written = typed.written
        findings.instance = written.instance
        if may_number:
            _check_numbering(typed, recursive_atoms > 0, findings)
        plan = _NO_PLAN if written.plan is None else _plan(written.plan, recursive_atoms, draft.is_strict, findings)
        rule = Rule(
            number, in_relation, typed.head, typed.body, recursive_atoms > 0, plan, written.span, draft.tree.source
        )
        rules.append(rule)
        rules_of[stratum].append(rule)
        if recursive_atoms:
            recursive.add(stratum)
    strata = tuple(
        [
            Stratum(number, tuple([n for n in component if not is_of_pairs(n)]), tuple(own), number in recursive)
            for number, (component, own) in enumerate(zip(draft.components, rules_of, strict=True))
        ]
    )
    program = CheckedProgram(
        draft.tree.source,
        MappingProxyType({name: own for name, own in draft.relations.items() if not is_of_pairs(name)}),
        tuple(rules),
        draft.facts,
        strata,
        draft.pragmas,
        draft.structures,
        draft.functors,
        tuple(subsumptions),
    )
    _warn_about_empty_relations(draft, count_of, strata, findings)
    return replace(draft, program=program)


def _check_numbering(typed: TypedRule, is_recursive: bool, findings: Findings) -> None:
    """Reports derivation numbers in places where the derivation would depend on its own number."""
    for literal in typed.body:
        if is_recursive and numbered_variable(literal) is not None:
            findings.error("E0260", literal.span)
        for inner in literals_in(*literal.bodies) if type(literal) is Aggregation else ():
            if numbered_variable(inner) is not None:
                findings.error("E0261", inner.span)


def _subsumption(
    typed: TypedRule, number: int, component_of: Mapping[str, int], draft: Draft, findings: Findings
) -> Rule:
    """The rule of pairs for a subsumption. Apart from its two facts, it may only read relations that are already
    complete or that only grow: if a relation loses facts or chooses among them, the result would depend on the order of
    evaluation."""
    own = component_of[typed.head.relation]
    base = typed.head.relation.removesuffix(MARK)
    _check_numbering(typed, True, findings)
    heads = [show_literal(literal) for literal in typed.body if type(literal) is Atom and literal.relation == base][:2]
    for literal in typed.body:
        atom = literal.atom if type(literal) is Negation else literal
        if type(atom) is not Atom or component_of[atom.relation] != own or show_literal(atom) in heads:
            continue
        if atom is literal and atom.relation + MARK not in component_of and not draft.relations[atom.relation].choices:
            continue
        findings.error("E0248", literal.span, relation=atom.relation)
    return Rule(0, number, typed.head, typed.body, False, _NO_PLAN, typed.written.span, findings.source)


def _plan(plan: tree.Plan, recursive: int, is_strict: bool, findings: Findings) -> Mapping[int, tuple[int, ...]]:
    """The orders for the versions that a rule has. In a component, orders for other versions are harmless: whether an
    atom is recursive may depend on the arguments of the instance."""
    versions = max(1, recursive)
    for version, _ in plan.versions:
        if version >= versions:
            (findings.error if is_strict and findings.instance is None else findings.warning)(
                "E0218.version", plan.span, version=version, recursive=recursive, last=versions - 1 or None
            )
            break
    return MappingProxyType({version: order for version, order in plan.versions if version < versions})


def _warn_about_empty_relations(
    draft: Draft, count_of: Mapping[str, int], strata: Iterable[Stratum], findings: Findings
) -> None:
    """Warns of relations that are read but never get a fact, usually because of a forgotten `.input`, and of recursions
    that no rule can start."""
    given = {fact.relation for fact in draft.facts}
    given |= {n for n, relation in draft.relations.items() if any(d.kind == "input" for d in relation.directives)}
    for name, relation in draft.relations.items():
        if not (name in given or name in count_of or is_of_pairs(name)):
            findings.instance = draft.declarations[name].instance
            findings.warning("E0223", relation.span, name=name)
    for stratum in strata:
        if stratum.rules and all(rule.is_recursive for rule in stratum.rules) and given.isdisjoint(stratum.relations):
            name, names = stratum.relations[0], ", ".join(map(quoted, stratum.relations))
            findings.instance = draft.declarations[name].instance
            findings.warning("E0223.circle", draft.relations[name].span, name=name, names=names)


Pass: TypeAlias = Callable[[Draft, Findings], Draft]

_DECLARED: Final[frozenset[Pass]] = frozenset((declare_types, declare_relations))
_BEFORE_THE_LAST: Final[tuple[tuple[Pass, frozenset[Pass]], ...]] = (
    (with_lattices, frozenset()),
    (with_pairs, frozenset()),
    (declare_types, frozenset()),
    (declare_functors, frozenset((declare_types,))),
    (declare_relations, frozenset()),
    (resolve_names, frozenset()),
    (take_apart, frozenset()),
    (infer_types, _DECLARED),
    (check_grounded, _DECLARED),
    (stratify, _DECLARED),
)
PASSES: Final = (*_BEFORE_THE_LAST, (number_rules, frozenset(run for run, _ in _BEFORE_THE_LAST)))
"""Every pass with those that must have found no error before it runs. The others leave clauses at fault out, so that
the passes after them speak about the sound ones."""


def check(tree: Tree, *, is_strict: bool = True) -> tuple[CheckedProgram | None, tuple[Diagnostic, ...]]:
    """The checked program, or None if there are errors, and all diagnostics in the order of their places. The program
    must be flat: without components and inline relations."""
    draft, failed, diagnostics = _run(Draft(tree, is_strict), len(PASSES))
    return (None if failed else draft.program), tuple(diagnostics)


def check_types(tree: Tree, is_strict: bool) -> tuple[Diagnostic, ...]:
    """What is wrong with the names and types of a program whose variables need not be grounded."""
    last = [run for run, _ in PASSES].index(infer_types)
    return tuple(_run(Draft(tree, is_strict), last + 1)[2])


def _run(draft: Draft, passes: int) -> tuple[Draft, set[Pass], list[Diagnostic]]:
    """Runs the first `passes` passes."""
    diagnostics: list[Diagnostic] = []
    failed: set[Pass] = set()
    with without_collection():
        for run, needed in PASSES[:passes]:
            look()
            if failed.isdisjoint(needed):
                findings = Findings(draft.tree.source)
                draft = run(draft, findings)
                diagnostics.extend(findings.diagnostics)
                if any(diagnostic.severity == "error" for diagnostic in findings.diagnostics):
                    failed.add(run)
    # What is declared besides, for `min` and `max`, has the same mistakes.
    return draft, failed, sorted(dict.fromkeys(diagnostics), key=place)


def place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    """Sorts diagnostics by where they point."""
    first = next((label.span for label in diagnostic.labels if label.primary), None)
    return (first.start, first.end, diagnostic.code) if first is not None else (0, 0, diagnostic.code)


def flatten(program: Tree, *, is_strict: bool = True) -> tuple[Tree, tuple[Diagnostic, ...]]:
    """The flat program (the same object if it was flat already), and what is wrong with it. Names, numbers of arguments
    and types of inline relations are checked before these disappear; groundedness is checked later."""
    if any(type(item) in (Component, Init, Override) for item in program.items):
        from elastalog.analysis.instantiate import instantiate  # most programs have neither

        program, found = instantiate(program, is_strict=is_strict)
        if found:
            return program, found
    if not any(type(item) is RelationDeclaration and item.is_inline for item in program.items):
        return program, ()
    # A plan orders the atoms that there are once these are replaced.
    items = tuple([replace(item, plan=None) if type(item) is Clause else item for item in program.items])
    found = check_types(replace(program, items=items), is_strict)
    found = tuple(fault for fault in found if fault.severity == "error")
    if found:
        return program, found
    from elastalog.analysis.inline import inline

    return inline(program)
