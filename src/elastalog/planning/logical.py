"""The logical form of a program: rules as conjunctions of three kinds of goals, apart from how recursion is controlled.

Some constructs of the language have been rewritten into plain rules over hidden relations (their names start with `@`,
which no program can write), so that every strategy and backend handles them without knowing:

- a negated atom with wildcards, `!edge(x, _)`, negates a projection: `@edge/0(x) :- edge(x, _)`;
- an aggregate collects its members in a relation, an `AggregateRule` folds each group to one fact, and the rule joins
  with that. The 0 of an empty count or sum comes from a second clause of the rule; where the rule has several counts
  and sums, from the fold, which is then told which groups there are, so that the clauses do not multiply;
- `n = autoinc()` reads the number of the derivation, by the values of the rule's variables, from a relation that an
  `AggregateRule` keeps;
- explicit facts of a relation with subsumption, or a column that improves, may be dominated like all others: they are
  those of `@given.r`, and a clause without a rule hands them on;
- an equivalence that is kept as classes (see `equivalences`) holds the pairs that generate it, an `EquivalenceRule`
  makes its classes of them, and an atom of it is two of these: `@classes.same(x, r), @classes.same(y, r)`.

A relation without attributes is stored with one column that always holds 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from elastalog.analysis.program import Apply, Base, CheckedProgram, Comparison, Constant, Literal, Rule
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax.keywords import AUTOINC
from elastalog.syntax.tree import nodes_of

Term: TypeAlias = str | Constant | None
"""An argument of an atom: a variable's name, a constant, or None where any value will do."""


HIDDEN = "@"
"""What the names of hidden relations start with, in stores too."""


GIVEN = HIDDEN + "given."
"""What the name of a hidden relation starts with that has the explicit facts of a relation whose facts compete."""

GUARD = HIDDEN + "rule."
"""What the name of a hidden relation starts with that says whether a rule is in force."""

LINKS = HIDDEN + "links."
"""What the name of a hidden relation starts with whose facts are the links of a rule (see `ranked`)."""


def classes_of(equivalence: str) -> str:
    """The hidden relation of the members of an equivalence, each with its representative."""
    return f"{HIDDEN}classes.{equivalence}"


def guard_of(rule: int) -> str:
    """The hidden relation that says whether a guarded rule is in force: it holds one fact, (0), or none."""
    return f"{GUARD}{rule}"


def renumbered(relation: str, old: int, new: int) -> str:
    """The name of a rule's hidden relation after the rule has been renumbered."""
    kind, dot, rest = relation.partition(f".{old}.")
    return f"{kind}.{new}.{rest}" if dot else relation


def is_hidden_name(relation: str) -> bool:
    """Whether we made a relation, judged by its name, for programs that may be gone; otherwise `StoredRelation`
    knows."""
    return relation.startswith(HIDDEN)


MADE = "(made for negations and aggregates)"
"""The name shown for hidden relations."""


def shown_names(relations: Iterable[str]) -> str:
    """The names of relations as they are shown."""
    return ", ".join(name for name in relations if not is_hidden_name(name)) or MADE


@dataclass(frozen=True, slots=True)
class Scan:
    """A positive atom. Its position among the scans of a clause identifies it in derivations."""

    relation: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A negated atom; every term is a variable or a constant."""

    relation: str
    terms: tuple[str | Constant, ...]


Test: TypeAlias = Comparison
"""With operator `=` and one side an unbound variable it binds that variable."""

Goal: TypeAlias = Scan | Absent | Test


@dataclass(frozen=True, slots=True)
class Origin:
    """The written body that a clause stands for: that of a rule, or, by number, one that an aggregate ranges over.
    `scans`: for each literal, the position of the scan that reads its fact; None for negations, comparisons, and
    aggregates over nothing."""

    literals: tuple[Literal, ...]
    scans: tuple[int | None, ...]
    body: int = 0


@dataclass(frozen=True, slots=True)
class Clause:
    """`head :- goals`. `rule` is the checked rule it comes from, None for hidden relations that serve a rule; `origin`
    is None where these only say which values there are. `recursive_goals`: the scans that read a relation of the head's
    own stratum. `wraps`: its integers are taken modulo 2^64."""

    number: int
    head: str
    head_terms: tuple[str | Constant, ...]
    goals: tuple[Goal, ...]
    recursive_goals: tuple[int, ...]
    rule: Rule | None
    origin: Origin | None = field(default=None, compare=False)
    wraps: bool = False
    scans: tuple[Scan, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scans", tuple([goal for goal in self.goals if isinstance(goal, Scan)]))

    @property
    def is_handing_on(self) -> bool:
        """Whether it only passes explicit facts on to their relation: such a clause gives no derivations."""
        return self.rule is None and not is_hidden_name(self.head)

    @property
    def is_recursive(self) -> bool:
        return bool(self.recursive_goals)

    @property
    def applications(self) -> Iterator[Apply]:
        """Every application of a functor."""
        return nodes_of(Apply, self.goals)


@dataclass(frozen=True, slots=True)
class AggregateRule:
    """Folds the facts of `members` to one fact `relation(groups..., result)` a group. `target` is the column folded,
    None for count; `bases` are those of the target and of the result. `is_total`: every group of the relation `domain`
    has a fact, 0 if it has no members; without groups there is no domain, and always a fact. `span`: where it stands in
    the `rule`."""

    relation: str
    members: str
    groups: int
    operator: str
    target: int | None
    target_base: Base
    result_base: Base
    rule: Rule
    span: Span
    is_total: bool = False
    domain: str | None = None

    @property
    def is_numbering(self) -> bool:
        """Whether it numbers its members instead of folding them."""
        return self.operator == AUTOINC

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.members,) if self.domain is None else (self.members, self.domain)


@dataclass(frozen=True, slots=True)
class EquivalenceRule:
    """Makes the classes of the least equivalence that holds the facts of `pairs`: one fact `relation(member,
    representative)` a member. The representative of a class is one of its members."""

    relation: str
    pairs: str


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A relation as it is stored: the base type of every column. `is_hidden`: made by us, not declared. `is_flat`: its
    facts only say which values to consider, so they count as level 0 where they are read. `rule`: the number of the
    rule that a hidden relation was made for, None where rules share it. `choices`: the keys, by columns, of which at
    most one fact has each value. `classes`: the hidden relation with the classes of an equivalence; what is stored of
    the relation itself are the pairs that generate it. `needed`: the hidden relation of the facts that this one, which
    is given from outside, must have in the end (see `needed_groups`)."""

    name: str
    bases: tuple[Base, ...]
    is_hidden: bool
    is_flat: bool = False
    rule: int | None = None
    choices: tuple[tuple[int, ...], ...] = ()
    classes: str | None = None
    needed: str | None = None
    given: str | None = None
    """The hidden relation that has its explicit facts, where they may be dominated."""

    @property
    def width(self) -> int:
        return len(self.bases)


Part: TypeAlias = int | Constant
"""A column of the relation that links are made of, or a value."""


@dataclass(frozen=True, slots=True)
class Link:
    """Facts of `made_of` are links from `sources`, one or two, each with its key, to `target`, or give the value to the
    target where there are none. None: of every node of the source a link, whose parts are columns of its key; or one
    value, that holds always. `weights`: what is added, with signs; `floors`: what the value is at least, or at most.
    `is_sum`: the values of two sources are added; otherwise the worse one counts."""

    made_of: str | None
    sources: tuple[tuple[str, tuple[Part, ...]], ...]
    target: str
    target_key: tuple[Part, ...]
    weights: tuple[tuple[int, Part], ...]
    floors: tuple[Part, ...]
    is_sum: bool


@dataclass(frozen=True, slots=True)
class Ranked:
    """`columns`: by relation the column of the value; `contexts` those that are only handed on."""

    is_least: bool
    base: Base
    columns: Mapping[str, int]
    contexts: tuple[int, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class LogicalStratum:
    """Relations evaluated together. Either clauses, or one rule that folds a relation: an aggregate, or the classes of
    an equivalence."""

    number: int
    relations: tuple[str, ...]
    clauses: tuple[Clause, ...]
    aggregate: AggregateRule | None
    is_recursive: bool
    dominance: tuple[Clause, ...] = ()
    """Clauses whose heads are pairs of facts of a relation, of which the first is dominated by the second."""
    equivalence: EquivalenceRule | None = None
    merges: tuple[EquivalenceRule, ...] = ()
    """Equivalences that its clauses derive and read, and whose classes are among its relations."""
    ranked: Ranked | None = None
    """How it is evaluated in the order of values, where it is."""
    why_in_rounds: str = ""
    """Why it is not, where it has subsumption."""
    reads: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """The relations of lower strata whose changes concern this one."""

    def __post_init__(self) -> None:
        goals = [goal for clause in (*self.clauses, *self.dominance) for goal in clause.goals]
        names = {goal.relation for goal in goals if not isinstance(goal, Test)}
        if self.aggregate is not None:
            names.update(self.aggregate.reads)
        if self.equivalence is not None:
            names.add(self.equivalence.pairs)
        if self.ranked is not None:
            names.update(link.made_of for link in self.ranked.links if link.made_of is not None)
        object.__setattr__(self, "reads", frozenset(names.difference(self.relations)))

    @property
    def is_folded(self) -> bool:
        """Whether its relation is made from another relation as a whole, not by clauses."""
        return self.aggregate is not None or self.equivalence is not None

    @property
    def numbering(self) -> AggregateRule | None:
        """The rule that numbers derivations in this stratum, if there is one."""
        return self.aggregate if self.aggregate is not None and self.aggregate.is_numbering else None


@dataclass(frozen=True, slots=True)
class LogicalProgram:
    checked: CheckedProgram
    relations: Mapping[str, StoredRelation]
    strata: tuple[LogicalStratum, ...]
    needed: Mapping[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The relations of handled groups, each with that of the groups that are needed."""
    given: Mapping[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The relations whose explicit facts are in others, each with that one."""
    classes: Mapping[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The equivalences that are kept as classes, each with the relation of these."""
    merged: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """The equivalences whose classes are formed in their own recursion."""
    limits: Mapping[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By relation with a `.limitsize`, how many facts it allows."""
    plans: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What backends have planned and can use again, here and in other sessions of the program."""

    def __post_init__(self) -> None:
        for name in ("needed", "given", "classes"):  # every update, or opening, asks
            found = {key: other for key, held in self.relations.items() if (other := getattr(held, name)) is not None}
            object.__setattr__(self, name, found)
        merged = frozenset(rule.pairs for stratum in self.strata for rule in stratum.merges)
        object.__setattr__(self, "merged", merged)
        directives = ((name, each) for name, held in self.checked.relations.items() for each in held.directives)
        limits = {name: int(each.parameters["n"]) for name, each in directives if each.kind == "limitsize"}
        object.__setattr__(self, "limits", limits)

    @property
    def flat(self) -> frozenset[str]:
        """The relations whose facts count as level 0."""
        return frozenset(name for name, relation in self.relations.items() if relation.is_flat)

    @property
    def equivalences(self) -> frozenset[str]:
        """The relations that are kept as classes."""
        return frozenset(self.classes)

    def is_limited(self, stratum: LogicalStratum) -> bool:
        """Whether a `.limitsize` may cut a stratum short."""
        return stratum.is_recursive and not self.limits.keys().isdisjoint(stratum.relations)
