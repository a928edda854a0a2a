"""Why a fact does not hold: instantiations of rules that would derive it, and where each of them fails."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, Literal, Protocol

from elastalog.analysis.pattern import Free, Pattern
from elastalog.analysis.program import Atom, Expression, Rule, Value, Variable, Wildcard, names_of
from elastalog.diagnostics.arguments import require_whole, stays_here
from elastalog.diagnostics.diagnostic import error
from elastalog.late import dataclass
from elastalog.provenance.fact import Fact
from elastalog.provenance.ground import NoValue, Unbound, value_of
from elastalog.provenance.proof import Proof, Rendered

Status = Literal["holds", "fails", "open"]
_MARKS: dict[Status, str] = {"holds": "✓", "fails": "X", "open": "?"}


class AbsenceSource(Protocol):
    """Where explanations of further facts come from."""

    def explain(self, fact: Fact) -> Proof: ...
    def explain_absence(self, fact: Fact | str) -> Absence: ...


@dataclass(frozen=True, slots=True)
class LiteralStatus:
    """One literal of an instantiated rule. `kind`: atom, negation, constraint, aggregate, or head for a computed
    argument of the head. Free variables keep their names: an atom that has some fails if no fact fits it, a constraint
    is open. `fact`: that of a ground atom, negated or not. `because`: why it fails, down to the depth asked for."""

    kind: str
    text: str
    status: Status
    fact: Fact | None = None
    because: Absence | Proof | None = None

    @property
    def _nearest(self) -> Instantiation | None:
        """The nearest derivation of its fact, if that is absent."""
        if not isinstance(self.because, Absence) or isinstance(self.because, PatternAbsence):
            return None
        return next(iter(self.because.instantiations), None)

    @property
    def children(self) -> tuple[Instantiation | LiteralStatus | Proof, ...]:
        if self._nearest is not None:
            return self._nearest.literals
        return (self.because,) if isinstance(self.because, Proof) else getattr(self.because, "instantiations", ())

    @property
    def how(self) -> str:
        """How the nearest derivation of its fact would lead to it: `R2`."""
        return "" if self._nearest is None else self._nearest.how

    @property
    def shape(self) -> Status:
        return self.status

    @property
    def label(self) -> str:
        return f"{self.text} {self.mark}"

    @property
    def can_expand(self) -> bool:
        """Whether it fails, and is an atom or about a single fact."""
        return self.status == "fails" and (self.fact is not None or self.kind == "atom")

    @property
    def mark(self) -> str:
        """✓ holds, X fails, ? open."""
        return _MARKS[self.status]


@dataclass(frozen=True, slots=True)
class Instantiation:
    """A rule with values for its variables, except for those that are `free`, and the status of each literal of its
    body. `conclusion`: what it would derive; a variable in it stands for any value. `drawbacks`, most important first:
    whether not all that it lacks are facts that held not long ago; how many values of these facts come from equations
    and occur nowhere; how many are negative: solving an equation finds lengths that no road has."""

    shape: ClassVar[str] = "member"

    rule: Rule
    bindings: Mapping[str, Value]
    literals: tuple[LiteralStatus, ...]
    free: tuple[str, ...]
    conclusion: str
    drawbacks: tuple[int, int, int] = (0, 0, 0)

    @property
    def children(self) -> tuple[LiteralStatus, ...]:
        return self.literals

    @property
    def label(self) -> str:
        return self.conclusion

    @property
    def how(self) -> str:
        return f"R{self.rule.number_in_relation}"

    @property
    def failing(self) -> tuple[LiteralStatus, ...]:
        """The literals that fail."""
        return tuple(literal for literal in self.literals if literal.status == "fails")

    @property
    def present(self) -> int:
        """How many facts it needs are there."""
        return sum(literal.kind == "atom" and literal.status == "holds" for literal in self.literals)

    @property
    def related(self) -> int:
        """How many of these say something about what it would derive."""
        asked = set(names_of(*self.rule.head.arguments))
        body = zip(self.rule.body, self.literals, strict=False)
        there = (atom for atom, one in body if isinstance(atom, Atom) and one.status == "holds")
        return sum(not asked.isdisjoint(names_of(*atom.arguments)) for atom in there)

    @property
    def implausible(self) -> int:
        """The number of negative values that come from equations."""
        return self.drawbacks[2]

    def pattern(self, atom: Atom) -> Pattern:
        """The facts that fit an atom of the rule, as far as its values are known."""

        def term(argument: Expression | Wildcard) -> Value | Free:
            if not isinstance(argument, Wildcard):
                with suppress(NoValue, Unbound):
                    return value_of(argument, self.bindings)
            name = argument.name if isinstance(argument, Variable) else ""
            is_repeated = sum(isinstance(one, Variable) and one.name == name for one in atom.arguments) > 1
            return Free(name if is_repeated else None)

        return Pattern(atom.relation, tuple(map(term, atom.arguments)))

    @property
    def rank(self) -> tuple[object, ...]:
        """Nearest first: fewest failing literals, fewest drawbacks, most facts present and most of them related, fewest
        free variables."""
        texts, number = tuple(literal.text for literal in self.literals), self.rule.number
        return len(self.failing), self.drawbacks, -self.present, -self.related, len(self.free), number, texts


@dataclass(frozen=True, slots=True, repr=False)
class Absence(Rendered):
    """Why `fact` does not hold: the nearest failing instantiations, ranked, and the rules that could never derive it,
    with the reason. `is_exhaustive`: the search was not cut short, so nothing nearer exists. `notes`: what else keeps
    the fact away, such as a fact that was chosen, or that supersedes it, or classes that are apart. `further`: the
    first literal whose own reasons are not shown, if any is."""

    fact: Fact
    instantiations: tuple[Instantiation, ...]
    impossible: tuple[tuple[Rule, str], ...]
    is_exhaustive: bool
    source: AbsenceSource | None = None
    notes: tuple[str, ...] = ()
    is_given: bool = False
    """Whether it is an explicit fact, which others keep away."""
    further: str = ""
    more_rules: int = 0
    """Rules that might give the fact, too, whose instantiations are left out: of a reason below another."""
    more: int = 0
    """Further instantiations that were found, and are left out."""

    __reduce__ = stays_here("why a fact is absent", "hand on its text, or what `to_json` makes")

    @property
    def subject(self) -> str:
        """What is asked about, as it is written."""
        return str(self.fact)

    shape: ClassVar[str] = "fails"
    how: ClassVar[str] = ""

    @property
    def children(self) -> tuple[Instantiation, ...]:
        return self.instantiations

    @property
    def label(self) -> str:
        return self.subject

    @property
    def headline(self) -> str:
        """One line that says what follows."""
        if self.is_given:
            return f"{self.fact} does not hold, although it is given{':' if self.instantiations else ''}"
        if any(not found.failing for found in self.instantiations):
            return f"{self.fact} does not hold, although a rule gives it:"
        if self.instantiations:
            return f"{self.fact} does not hold; nearest derivations that fail:"
        if self.impossible:
            return f"{self.fact} does not hold; no rule could derive it:"
        return (
            f"{self.fact} does not hold: it is not an explicit fact, and there are no rules for `{self.fact.relation}`"
        )

    def expand(self, instantiation: int = 0, literal: int | None = None) -> Absence | Proof:
        """Goes down into a failing literal, by default the first that is about a single fact, or else an atom: explains
        why the fact of an atom is absent, or why the fact of a negation holds. Positions count from 0."""
        for position in (instantiation, 0 if literal is None else literal):
            require_whole("a position is a number", position, "give it counted from 0")
        if not 0 <= instantiation < len(self.instantiations):
            raise error("E0706", reason=f"there is no instantiation {instantiation}")
        literals = self.instantiations[instantiation].literals
        if literal is None:
            failing = [(found.fact is None, i) for i, found in enumerate(literals) if found.can_expand]
            if not failing:
                raise error("E0706", reason="no failing literal is about a single fact")
            literal = min(failing)[1]
        if not 0 <= literal < len(literals):
            raise error("E0706", reason=f"there is no literal {literal}")
        chosen = literals[literal]
        if self.source is not None and chosen.fact is None and chosen.can_expand:
            return self.source.explain_absence(chosen.text)
        if chosen.fact is None or self.source is None:
            raise error("E0706", reason=f"`{chosen.text}` is not about a single fact")
        is_present = (chosen.status == "holds") == (chosen.kind == "atom")
        return self.source.explain(chosen.fact) if is_present else self.source.explain_absence(chosen.fact)

    def __str__(self) -> str:
        """Text; a tree if reasons of reasons are shown, or the text is wide."""
        is_deep = any(literal.because for each in self.instantiations for literal in each.literals)
        return self.to_tree() if is_deep else self._made("text", "render_narrow")

    @property
    def title(self) -> str:
        return f"Why {self.subject} does not hold"


@dataclass(frozen=True, slots=True, repr=False)
class PatternAbsence(Absence):
    """Why no more facts than the `present` ones fit a `pattern`, such as `path(1, X)`: the nearest failing
    instantiations that would derive another one. `fact` has nil in the open places. `read`: the other relations that
    the rules read."""

    pattern: str = ""
    present: int = 0
    read: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return self.pattern

    @property
    def headline(self) -> str:
        another = "another" if self.present else "one"
        fit = "no fact fits" if not self.present else "1 fact fits" if self.present == 1 else f"{self.present:,} fit"
        if self.instantiations:
            return f"{self.pattern}: {fit}; what comes nearest to deriving {another}:"
        if self.impossible and not self.read:
            return f"{self.pattern}: {fit}; no rule could derive {another}:"
        needed = " or ".join(f"`{name}`" for name in self.read)
        when = f"takes other facts of {needed}" if needed else "holds only if it is given"
        return f"{self.pattern}: {fit}; no rule comes near to deriving {another}, which {when}"
