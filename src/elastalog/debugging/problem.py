"""What a search is about: goals, the switches that may be flipped, and the state around which others are tried.

The elements of an update are the only switches there are. Without an update, every explicit fact may be deleted, and
candidates inserted: far too many to list. A fact becomes a switch when a proof is met that rests on it; the others are
referred to by relation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field, replace

from elastalog.backends.protocol import Backend, Matrix
from elastalog.debugging.connections import ConnectingProofs
from elastalog.debugging.dependencies import Dependencies, indifferent, turned
from elastalog.debugging.investigation import Case, limits_for
from elastalog.debugging.sandbox import Goals, Sandbox, Seconds, Switch, WordSet, are_present
from elastalog.provenance.reading import WordFact
from elastalog.provenance.steps import Steps
from elastalog.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Concern:
    """What can turn a fact from how it is in one state: switches, and explicit facts of relations, if deleted."""

    switches: frozenset[int] = frozenset()
    relations: frozenset[str] = frozenset()

    def __or__(self, other: Concern) -> Concern:
        return Concern(self.switches | other.switches, self.relations | other.relations)

    def __bool__(self) -> bool:
        return bool(self.switches or self.relations)


@dataclass(frozen=True, slots=True)
class Condition:
    """Something must differ from the state in which exactly the switches in `flipped` are flipped: at least one switch
    of the concern, or a further explicit fact of its relations, which must be deleted."""

    concern: Concern
    flipped: frozenset[int]


NOTHING = Concern()


@dataclass(eq=False)
class Switches:
    """Switches: those `given` first; `known` are all so far, and `weights` their weights, 1 unless a fact has its own.
    `explicit`: the facts, by relation, that become switches when they are met, except for those in `kept`."""

    given: InitVar[Iterable[Switch]]
    _weights: Mapping[WordFact, float]
    explicit: Mapping[str, Matrix] = field(default_factory=dict)
    _kept: frozenset[WordFact] = frozenset()

    def __post_init__(self, given: Iterable[Switch]) -> None:
        self.known: list[Switch] = []
        self.weights: list[float] = []
        self._open = set(self.explicit)
        self._numbers: dict[WordFact, int] = {}
        self._of_relation: dict[str, list[int]] = {}
        self.least_weight = min((1.0, *self._weights.values()))
        """The least that a fact weighs that is not a switch yet."""
        for switch in given:
            self._add(switch)
        self.number_given = len(self.known)

    def _add(self, switch: Switch) -> int:
        number = self._numbers[switch.fact] = len(self.known)
        self.known.append(switch)
        self.weights.append(self._weights.get(switch.fact, 1.0))
        if not switch.adds:
            self._of_relation.setdefault(switch.fact[0], []).append(number)
        return number

    def number(self, fact: WordFact) -> int | None:
        """The switch of a fact that is explicit in a state that was tried; None if it must stay, as must groups that
        evaluation handles, which no user gave."""
        known = self._numbers.get(fact)
        if known is not None or fact in self._kept or fact[0] not in self.explicit:
            return known
        return self._add(Switch(fact, adds=False))

    def are_open(self, relations: Iterable[str]) -> frozenset[str]:
        """Which of some relations may have explicit facts that are not switches yet."""
        return frozenset(self._open.intersection(relations))

    def close(self, relations: Iterable[str]) -> bool:
        """Makes all facts of relations switches, where they are not too many. Returns whether any were."""
        small = [
            name for name in sorted(self.are_open(relations)) if len(self.explicit[name]) <= SETTINGS.few_switched_facts
        ]
        for name in small:
            for row in self.explicit[name].tolist():
                self.number((name, tuple(row)))
        self._open.difference_update(small)
        return bool(small)

    def deletions(self, relations: Iterable[str]) -> list[int]:
        """The switches so far that delete facts of some relations."""
        return [number for name in relations for number in self._of_relation.get(name, ())]

    def concern(self, signs: Dependencies, relation: str, sought: int, flipped: frozenset[int]) -> Concern:
        """What could bring about facts of a relation (POSITIVE), take them away (NEGATIVE), or either, if turned."""
        own = signs[relation]
        switches = set[int]()
        for number in (*range(self.number_given), *(i for i in flipped if i >= self.number_given)):
            switch = self.known[number]
            has_come = not switch.is_on(number in flipped)
            if turned(own.get(switch.fact[0], 0), has_come=has_come) & sought:
                switches.add(number)
        relations = frozenset(
            name for name, sign in own.items() if turned(sign, has_come=False) & sought and name in self.explicit
        )
        return Concern(frozenset(switches), relations)


# --- problems ---------------------------------------------------------------------------------------------------------


def seconds_a_trial(allowed: float, backend: Backend) -> float:
    """The time for a state in a search that may take some seconds: several states may have no end, and with few facts
    one that ends takes no longer, but for strata in other places, where a job costs what it costs."""
    facts = sum(map(backend.stored, backend.program.relations))
    jobs = sum(part.seconds for part in backend.profile().elsewhere)
    share = min(SETTINGS.state_share * allowed, SETTINGS.state_seconds_a_fact * facts)
    return max(share, SETTINGS.state_seconds + jobs)


@dataclass(kw_only=True)
class Problem:
    """The question which `switches` to flip so that goals are reached, within some seconds from now. `signs`: how
    relations depend on those of the switches. `base_steps` gives the steps of proofs in the base. `corners`: see
    `Corners`; new ones are added. `in_full`: states are tried in the whole program."""

    case: Case
    goals: Goals
    switches: Switches
    signs: Dependencies
    base_steps: Callable[[], Steps]
    corners: dict[str, WordSet | None]
    seconds: Seconds
    seconds_allowed: float
    in_full: bool = False

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds_allowed
        self.deadline = self.end - self.seconds_allowed * SETTINGS.reserved_share
        self.limits = None if self.in_full else limits_for(self.case, (name for name, _ in self.goals.all))
        epochs = self.case.epochs
        longest = seconds_a_trial(self.seconds_allowed, epochs.backend)
        self.would_try_longer = longest < seconds_a_trial(math.inf, epochs.backend)
        """Whether a state would have more time if the search had."""
        self.sandbox = Sandbox(epochs, self.switches.known, self.seconds, longest)

        self.connecting = ConnectingProofs(self.case, self.goals)
        self.indifferent = self._indifferent()

    def _indifferent(self) -> frozenset[str]:
        """The relations of which only the keys matter here: a pattern asks for any value."""
        case, goals = self.case, self.goals
        below = case.parts.below(name for name, _ in goals.all)
        strata = [stratum for stratum in case.parts.program.strata if stratum.number in below]
        columns = {name: at for stratum in strata if stratum.ranked for name, at in stratum.ranked.columns.items()}
        patterns = [one for one in goals.patterns if one.relation in columns and one.is_open_at(columns[one.relation])]

        def is_exact(fact: WordFact) -> bool:
            values = case.reading.fact(fact).values
            return not any(one.relation == fact[0] and one.fits(values) for one in patterns)

        exact = {name for name, _ in goals.present} | {
            fact[0] for fact in goals.absent if fact[0] in columns and is_exact(fact)
        }
        return indifferent(strata, exact)

    def unmet(self) -> tuple[list[WordFact], list[WordFact]]:
        """The goals that the state which is being tried misses. Other facts that fit a pattern there are goals from now
        on."""
        goals, reading = self.goals, self.case.reading
        if goals.patterns:
            fitting = (
                (one.relation, tuple(row)) for one in goals.patterns for row in reading.words_fitting(one).tolist()
            )
            goals = self.goals = replace(goals, absent=tuple(dict.fromkeys((*goals.absent, *fitting))))
        return goals.unmet(are_present(self.sandbox.backend, goals.all))
