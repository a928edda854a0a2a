"""Pass: the strata, and no relation that depends on its own negation or on an aggregate over itself."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final

from elastalog.analysis.dependencies import Use, Uses, collect_dependencies, components, in_order
from elastalog.analysis.draft import Draft, Outcome
from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.analysis.lattices import keeping_best
from elastalog.diagnostics.diagnostic import Label
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree
from elastalog.syntax.printer import print_clause

_MOST_REPORTS_PER_COMPONENT: Final = 5
_MOST_LABELS: Final = 30


def stratify(draft: Draft) -> Outcome:
    """Order the components of relations; report every cycle through a negation or an aggregate."""
    findings = Findings(draft.tree.source)
    dependencies = collect_dependencies(draft.relations, draft.typed_rules)
    ordered = in_order(components(dependencies.uses), dependencies.uses)
    component_of = {name: index for index, component in enumerate(ordered) for name in component}
    reported: dict[int, set[Span]] = {}
    for use in dependencies.strict_uses:
        component = component_of[use.head]
        if component_of[use.body] != component:
            continue
        shown = reported.setdefault(component, set())
        if use.span in shown or len(shown) >= _MOST_REPORTS_PER_COMPONENT:
            continue
        shown.add(use.span)
        steps = _shortest_path(use.body, use.head, dependencies.uses, set(ordered[component]))
        _report(use, steps, _improving(use, draft), findings)
    return replace(draft, components=tuple(ordered)), findings.diagnostics


def _shortest_path(start: str, end: str, uses: Uses, members: set[str]) -> list[tuple[str, str, Span]]:
    """The uses that lead from one relation of a component to another, as few as possible."""
    came_from: dict[str, tuple[str, Span]] = {}
    pending = deque([start])
    while pending and end not in came_from and start != end:
        name = pending.popleft()
        for used, span in uses[name].items():
            if used in members and used not in came_from and used != start:
                came_from[used] = (name, span)
                pending.append(used)
    steps: list[tuple[str, str, Span]] = []
    while end != start:
        name, span = came_from[end]
        steps.append((name, end, span))
        end = name
    return steps[::-1]


def _improving(use: Use, draft: Draft) -> str | None:
    """What a rule with a least or greatest value of its own recursion can be written as: the values themselves, and a
    column that keeps the best."""
    rules = [c for c, _ in draft.clauses if c.span.start <= use.span.start < c.span.end and len(c.heads) == 1]
    for literal in rules[0].body if use.manner == "aggregate" and rules else ():
        result, aggregate = (literal.left, literal.right) if type(literal) is tree.Comparison else (None, None)
        if not isinstance(result, tree.Variable) or not isinstance(aggregate, tree.Aggregate):
            continue
        head = rules[0].heads[0]
        places = [
            i for i, term in enumerate(head.arguments) if isinstance(term, tree.Variable) and term.name == result.name
        ]
        if aggregate.operator not in ("min", "max") or aggregate.target is None or len(places) != 1:
            continue
        arguments = [aggregate.target if i in places else term for i, term in enumerate(head.arguments)]
        body = (*[other for other in rules[0].body if other is not literal], *aggregate.body)
        rule = replace(rules[0], heads=(replace(head, arguments=tuple(arguments)),), body=body, plan=None)
        columns = [(attribute.name, attribute.type_name) for attribute in draft.relations[head.relation].attributes]
        declared = keeping_best(head.relation, columns, places[0], aggregate.operator)
        return f"{declared}` and `{print_clause(rule)}"
    return None


def _report(use: Use, steps: list[tuple[str, str, Span]], instead: str | None, findings: Findings) -> None:
    labels: list[Label] = [
        secondary(span, f"{quoted(user)} uses {quoted(used)} here") for user, used, span in steps[:_MOST_LABELS]
    ]
    head, body = quoted(use.head), quoted(use.body)
    if use.manner == "negation":
        findings.error(
            "E0412",
            f"relation {body} depends on its own negation",
            primary(use.span, f"{head} uses the negation of {body} here"),
            *labels,
            note="a negated relation must be complete before it is read",
            advice=f"split the rule so that {head} negates a relation outside this cycle",
        )
    else:
        findings.error(
            "E0413",
            f"relation {body} depends on an aggregate over itself",
            primary(use.span, f"{head} aggregates over {body} here"),
            *labels,
            note="an aggregated relation must be complete before it is read",
            advice=f"split the rule so that {head} aggregates over a relation outside this cycle"
            if instead is None
            else f"derive all values, in a column that keeps the best: `{instead}`",
        )
