"""The difference between two programs as a change of rules: what to remove and what to add, including facts of the
text."""

from __future__ import annotations

from collections import Counter

from elastalog.analysis.program import Value
from elastalog.diagnostics.diagnostic import ElastalogError, finding
from elastalog.late import dataclass
from elastalog.program.program import Program
from elastalog.program.rule_change import rule_texts
from elastalog.program.single_rules import shown_rule
from elastalog.syntax.printer import print_item
from elastalog.syntax.tree import Clause, Directive, Pragma, RelationDeclaration, Subsumption

Facts = dict[str, list[tuple[Value, ...]]]


@dataclass(frozen=True, slots=True)
class ProgramDifference:
    """`declarations`, `rules` and `facts` to add, as texts; rules to remove; facts that only the earlier text has."""

    declarations: tuple[str, ...]
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    removed: tuple[str, ...]
    deleted: Facts

    @property
    def added(self) -> str:
        """All that is to be added, as program text."""
        return "\n".join((*self.declarations, *self.rules, *self.facts))


def difference(before: Program, after: Program) -> ProgramDifference:
    """What leads from one program to another. Raises ElastalogError when a relation is declared in another way."""
    old, new = before.checked.relations, after.checked.relations
    changed = [
        n for n, r in new.items() if n in old and (r.attributes, r.choices) != (old[n].attributes, old[n].choices)
    ]
    if changed:
        raise ElastalogError([finding("E0820", name=name) for name in changed])
    old_items, new_items = (
        {print_item(item) for item in program.tree.items if isinstance(item, Subsumption)}
        for program in (before, after)
    )
    gone = old_items - new_items
    if gone:
        raise ElastalogError([finding("E0820.subsumption", subsumption=text) for text in sorted(gone)])
    old_rules, new_rules = (Counter(map(shown_rule, rule_texts(program))) for program in (before, after))
    written = {print_item(item) for item in before.tree.items}
    declarations = tuple(
        print_item(item)
        for item in after.tree.items
        if not isinstance(item, Clause | Directive | Pragma)
        and not (isinstance(item, RelationDeclaration) and item.name in old)
        and print_item(item) not in written
    )
    facts = (item for item in after.tree.items if isinstance(item, Clause) and not item.body)
    old_facts, new_facts = (
        {(fact.relation, fact.values) for fact in program.checked.facts} for program in (before, after)
    )
    deleted: Facts = {}
    for relation, values in sorted(old_facts - new_facts, key=repr):
        deleted.setdefault(relation, []).append(values)
    return ProgramDifference(
        declarations,
        tuple((new_rules - old_rules).elements()),
        tuple(text for text in map(print_item, facts) if text not in written),
        tuple((old_rules - new_rules).elements()),
        deleted,
    )
