"""From one program to another, as a change of rules: what has to be removed and added, and which facts of the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from elastalog.analysis.program import Relation, Value
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
    changed = [name for name in new if name in old and _is_otherwise(new[name], old[name])]
    if changed:
        raise ElastalogError([finding("E0820", name=name) for name in changed])
    gone = {print_item(i) for i in _subsumptions(before)} - {print_item(i) for i in _subsumptions(after)}
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
    old_facts, new_facts = (
        {(fact.relation, fact.values) for fact in program.checked.facts} for program in (before, after)
    )
    return ProgramDifference(
        declarations,
        tuple((new_rules - old_rules).elements()),
        tuple(text for text in map(print_item, _facts_in(after)) if text not in written),
        tuple((old_rules - new_rules).elements()),
        _by_relation(old_facts - new_facts),
    )


def _is_otherwise(new: Relation, old: Relation) -> bool:
    return new.attributes != old.attributes or new.choices != old.choices


def _subsumptions(program: Program) -> Iterator[Subsumption]:
    return (item for item in program.tree.items if isinstance(item, Subsumption))


def _facts_in(program: Program) -> Iterator[Clause]:
    return (item for item in program.tree.items if isinstance(item, Clause) and not item.body)


def _by_relation(facts: set[tuple[str, tuple[Value, ...]]]) -> Facts:
    found: Facts = {}
    for relation, values in sorted(facts, key=repr):
        found.setdefault(relation, []).append(values)
    return found
