"""What rules and relations cost: the profile behind `--stats`."""

from __future__ import annotations

from collections.abc import Container

from elastalog.analysis.listing import show_rule
from elastalog.backends.protocol import Backend, Placed, StratumElsewhere
from elastalog.diagnostics.display import html_table
from elastalog.late import dataclass
from elastalog.planning.logical import Clause


@dataclass(frozen=True, slots=True)
class RuleStatistics:
    """The cost of one rule in the last bootstrap of its stratum. `number` is None for a rule that we made, to serve a
    negation or an aggregate of the program."""

    number: int | None
    relation: str
    text: str
    stratum: int
    derivations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RelationStatistics:
    """How many facts a relation holds, and how much memory they take, with annotations and indexes."""

    name: str
    facts: int
    bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Statistics:
    """Rules in the order of evaluation, relations in the order of declaration; `hidden_bytes` is the memory of
    relations that we made. `elsewhere`: strata whose last bootstrap was not in this process; `places`: where strata
    with rules are evaluated from the start, and why."""

    rules: tuple[RuleStatistics, ...]
    relations: tuple[RelationStatistics, ...]
    hidden_bytes: int
    elsewhere: tuple[StratumElsewhere, ...] = ()
    places: tuple[Placed, ...] = ()

    @property
    def bytes(self) -> int:
        return self.hidden_bytes + sum(relation.bytes for relation in self.relations)

    def __repr__(self) -> str:
        costly = sorted(self.rules, key=lambda rule: -rule.seconds)[:10]
        lines = [f"  {r.seconds:.3f} s, {r.derivations:,} derivations: {r.text}" for r in costly]
        lines += [f"  {r.name}: {r.facts:,} facts, {r.bytes:,} bytes" for r in self.relations[:10]]
        return "\n".join([f"{len(self.rules)} rules, {len(self.relations)} relations, {self.bytes:,} bytes", *lines])

    def _repr_html_(self) -> str:
        rules = [
            (f"{r.seconds:.3f}", f"{r.derivations:,}", r.text) for r in sorted(self.rules, key=lambda r: -r.seconds)
        ]
        relations = [(r.name, f"{r.facts:,}", f"{r.bytes:,}") for r in self.relations]
        return html_table("rules", ("seconds", "derivations", "rule"), rules) + html_table(
            f"relations: {self.bytes:,} bytes", ("relation", "facts", "bytes"), relations
        )


def statistics_of(backend: Backend) -> Statistics:
    """The statistics of a backend, between updates."""
    rules: list[RuleStatistics] = []
    # Rules may have come, gone and got other numbers since they were last evaluated from the start.
    numbers = {show_rule(rule): rule.number for rule in backend.program.checked.rules}
    stored = backend.program.relations
    profile = backend.profile()
    for cost in profile.clauses:
        clause, text = cost.clause, _text(cost.clause, stored)
        if clause.rule is None or text in numbers:
            number = None if clause.rule is None else numbers[text]
            rules.append(RuleStatistics(number, clause.head, text, cost.stratum, cost.derivations, cost.seconds))
    relations = tuple(
        RelationStatistics(name, backend.size(name), profile.bytes[name]) for name in backend.program.checked.relations
    )
    hidden = sum(profile.bytes[name] for name, relation in stored.items() if relation.is_hidden)
    return Statistics(tuple(rules), relations, hidden, profile.elsewhere, profile.places)


def _text(clause: Clause, stored: Container[str]) -> str:
    if clause.rule is not None:
        return show_rule(clause.rule)
    read = ", ".join(dict.fromkeys(scan.relation for scan in clause.scans if scan.relation in stored))
    return f"{clause.head} from {read}" if read else clause.head
