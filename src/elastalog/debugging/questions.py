"""What users write in questions: faults, elements of updates, weights; checked, and as the backend holds them. And what
can be wrong with a question."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from elastalog.backends.protocol import Backend
from elastalog.debugging.history import RuleElements
from elastalog.debugging.sandbox import are_present
from elastalog.diagnostics.arguments import listed, require_mapping
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.program import single_rule
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading, WordFact

MOST_FACTS = 1_000
"""Facts as written that are remembered within an epoch."""

_FAULTS = 'write facts as in the language, `["path(1, 4)"]`, or as pairs, `[("path", (1, 4))]`'
_ELEMENTS = 'write elements as in a diff file: `["+edge(1, 2)"]`'

Written: TypeAlias = str | tuple[str, Any]
"""A fact as text or as relation and values; an element in the same ways, with `+` or `-` before it, or alone."""

ReadFact: TypeAlias = Callable[[Any], tuple[str, tuple[Any, ...]]]

Sides: TypeAlias = tuple[tuple[Fact, ...], tuple[Fact, ...]]
"""Unwanted facts and missing ones."""

Came: TypeAlias = Callable[[WordFact], bool | None]
"""Whether a fact that may be an element came or went; None if it is none."""

Refuse: TypeAlias = Callable[[str], ElastalogError]
"""The error that something is no element."""


class Asking:
    """`read_fact` checks facts as the user writes them. The same ones are often asked about again: they are remembered
    until `forget`. `rules`: those that are among the elements."""

    def __init__(self, backend: Backend, reading: Reading, read_fact: ReadFact, rules: RuleElements | None) -> None:
        self._backend = backend
        self._reading = reading
        self._read_fact = read_fact
        self._rules = rules
        self._facts: dict[Any, Fact] = {}
        self._word_facts: dict[Fact, WordFact] = {}

    def forget(self) -> None:
        self._facts.clear()
        self._word_facts.clear()

    # --- facts -----------------------------------------------------------------------------------------------------

    def sides(self, unwanted: Sequence[Written], missing: Sequence[Written]) -> Sides:
        """Faults, each once."""
        unwanted_facts, missing_facts = (
            tuple(dict.fromkeys(map(self.fact, facts_in(f"{name} facts are given in a list", side))))
            for name, side in (("unwanted", unwanted), ("missing", missing))
        )
        if not unwanted_facts and not missing_facts:
            raise no_faults()
        for fact in unwanted_facts:
            if fact in missing_facts:
                raise both_ways(fact)
        return unwanted_facts, missing_facts

    def fact(self, written: Written) -> Fact:
        self._reading.look()
        try:
            # 1, 1.0 and True are equal, but not all of them are values of a column.
            key = written if isinstance(written, str) else (*written, tuple(map(type, written[1])))
            found = self._facts.get(key)
        except (TypeError, IndexError, KeyError):
            return Fact(*self._read_fact(written))  # no fact at all, as this will say, or one with values in a list
        if found is None:
            if len(self._facts) >= MOST_FACTS:
                self.forget()
            found = self._facts[key] = Fact(*self._read_fact(written))
        return found

    def words(self, facts: Iterable[Fact]) -> tuple[WordFact, ...]:
        """The words of those facts whose values all occur somewhere."""
        found = map(self.word_fact, facts)
        return tuple(words for words in found if words is not None)

    def word_fact(self, fact: Fact) -> WordFact | None:
        """The words of a fact, None if a value occurs in no fact at all."""
        found = self._word_facts.get(fact)
        if found is None:
            found = self._reading.words(fact)
            if found is not None:
                self._word_facts[fact] = found
        return found

    def hold(self, facts: Iterable[Fact]) -> list[bool]:
        """Which facts hold in the present state."""
        known = [self.word_fact(fact) for fact in facts]
        present = iter(are_present(self._backend, [words for words in known if words is not None]))
        return [words is not None and next(present) for words in known]

    # --- elements --------------------------------------------------------------------------------------------------

    def rejected(self, given: Sequence[Written], came: Came, refuse: Refuse) -> tuple[WordFact, ...]:
        """Elements that stay applied, each once."""
        elements = listed("rejected elements are given in a list", given, _ELEMENTS)
        return tuple(dict.fromkeys(self._element(element, came, refuse) for element in elements))

    def weights(self, given: Mapping[Any, Any], came: Came, refuse: Refuse) -> dict[WordFact, float]:
        require_mapping("weights are numbers by element", given, 'give a mapping, as `{"+edge(1, 2)": 2}`')
        found = {}
        for element, weight in given.items():
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not is_number or not 0 < weight < math.inf:
                raise bad_weight(element, weight)
            found[self._element(element, came, refuse)] = float(weight)
        return found

    def _element(self, written: Written, came: Came, refuse: Refuse) -> WordFact:
        """The fact of an element, for a rule its guard. An update does only one thing to a fact, so the sign can be
        left out."""
        sign: str | None = None
        if isinstance(written, str):
            text = written.strip()
            if text[:1] in ("+", "-"):
                sign, written = text[0], text[1:]
        elif _is_signed(written):
            sign, written = written
        if isinstance(written, str) and ":-" in written:
            # Also as in diff files: `-rule: path(x, y) :- edge(x, y).`
            fact: Fact | str = single_rule(re.sub(r"^\s*rule\s*:(?!-)", "", written))
            words = None if self._rules is None else self._rules.fact_of(str(fact))
        else:
            fact = self.fact(written)
            words = self._reading.words(fact)
        has_come = None if words is None else came(words)
        if words is None or has_come is None or (sign is not None and has_come != (sign == "+")):
            raise refuse(f"{sign or ''}{fact}")
        return words


def _is_signed(written: Any) -> bool:
    return isinstance(written, tuple | list) and len(written) == 2 and written[0] in ("+", "-")


def facts_in(told: str, given: Any) -> tuple[Any, ...]:
    """Faults as given: a fact alone, in either way to write it, or several. A fact alone is a tuple that begins with
    the bare name of a relation; a list, or a tuple that begins with a fact, holds several."""
    match given:
        case (str() as name, tuple() | list()) if isinstance(given, tuple) and "(" not in name:
            return (given,)
    return listed(told, given, _FAULTS)


# --- what can be wrong -----------------------------------------------------------------------------------------------


def _error(code: str, message: str, *, advice: str, notes: tuple[str, ...] = ()) -> ElastalogError:
    return ElastalogError([Diagnostic(code, message, notes=notes, help=advice)])


def not_a_fault(fact: Fact, is_unwanted: bool, epoch: int) -> ElastalogError:
    """The fact is as it should be."""
    said, held = ("unwanted", "does not hold") if is_unwanted else ("missing", "holds")
    advice = "`why_not` says why it does not hold" if is_unwanted else "`explain` says why it holds"
    return _error("E1001", f"{fact} is not {said} in epoch {epoch}: it {held} there", advice=advice)


def nothing_fits(pattern: str, epoch: int) -> ElastalogError:
    return _error(
        "E1001", f"{pattern} is not unwanted in epoch {epoch}: no fact fits it",
        advice="`query` shows the facts that there are",
    )  # fmt: skip


def older_fault(fact: Fact, is_unwanted: bool, first: int, last: int) -> ElastalogError:
    """The fault was there before the update."""
    was = "held already" if is_unwanted else "did not hold either"
    return _error(
        "E1002",
        f"{fact} {was} in epoch {first}",
        advice="search all given facts (`over=\"facts\"`, `--over facts`), or let `blame` find the epoch and give it",
        notes=(f"what changed between the epochs {first} and {last} cannot be the reason",),
    )  # fmt: skip


def no_faults() -> ElastalogError:
    return _error("E1003", "no faults were given", advice="name facts that are unwanted, or missing")


def both_ways(fact: Fact) -> ElastalogError:
    return _error("E1003", f"{fact} is given as unwanted and as missing", advice="give it once")


def no_such_epochs(first: int, last: int, oldest: int, now: int) -> ElastalogError:
    if now <= oldest:
        message, advice = "there is no update to look for faults in", "apply one; the first epoch is taken as given"
    else:
        message = f"there is no update from epoch {first} to epoch {last}"
        advice = f"give two epochs from {oldest} to {now}, the earlier one first"
    return _error("E1004", message, advice=advice)


def not_in_update(element: str, first: int, last: int) -> ElastalogError:
    return _error(
        "E1005", f"{element} is not part of the update from epoch {first} to epoch {last}",
        advice="only what the update did can be undone or rejected",
    )  # fmt: skip


def nothing_left(rejected: Iterable[object], is_proven: bool) -> ElastalogError:
    named = ", ".join(map(str, rejected))
    if is_proven:
        message = f"no part of the update can be undone to remove all faults, if {named} must stay"
        advice = "reject less, or look for the fault in the rules"
    else:
        message = f"no suggestion without {named} was found in the time given"
        advice = "allow more time, or reject less"
    return _error("E1006", message, advice=advice)


def numbered_anew(facts: Iterable[Fact]) -> ElastalogError:
    """A derivation that comes again has another number than it had."""
    return _error(
        "E1010", f"{', '.join(map(str, facts))} rests on numbers of `autoinc()`, which no update brings again",
        advice="ask about facts that have no such number; `blame` names the update",
        notes=("a derivation that comes back gets a new number",),
    )  # fmt: skip


def gone_on(made_for: int, now: int) -> ElastalogError:
    return _error(
        "E1007", f"the suggestion was made for epoch {made_for}, and the session is at epoch {now}",
        advice="ask for a new suggestion",
    )  # fmt: skip


def never_held(fact: Fact, oldest: int) -> ElastalogError:
    since = "" if oldest <= 1 else f" since epoch {oldest}, as far back as is known"
    return _error("E1008", f"{fact} does not hold, and never did{since}", advice="`why_not` says what it lacks")


def not_explicit(element: str) -> ElastalogError:
    return _error(
        "E0715", f"{element} is no change of an explicit fact that could be made here",
        advice="reject or weigh explicit facts as `+edge(1, 2)`, candidates to insert as `-edge(1, 2)`",
    )  # fmt: skip


def not_repaired(
    unwanted: Sequence[Fact], missing: Sequence[Fact], rejected: Sequence[Fact], is_proven: bool
) -> ElastalogError:
    """No change of explicit facts removes all faults, or none was found in time."""
    named = " and ".join(
        ", ".join(map(str, facts)) + said for facts, said in ((unwanted, " absent"), (missing, " present")) if facts
    )
    if not is_proven:
        return _error(
            "E1006",
            f"no changes of explicit facts that make {named} were found in the time given",
            advice="allow more time",
        )
    code = "E0713" if unwanted and missing else "E0714" if unwanted else "E0712"
    notes = (f"these must stay: {', '.join(map(str, rejected))}",) if rejected else ()
    if unwanted and missing:
        reason = "whatever deletions remove the one, and candidates bring about the other, does not go together"
        advice = "give other `candidates`, or ask about the unwanted and the missing facts one after the other"
    else:
        reason = "it follows from rules and from facts that must stay" if rejected else "deletions do not change that"
        advice = f"{'reject less, ' if rejected else ''}give `candidates` to insert, or look for the fault in the rules"
    return _error(code, f"no changes of explicit facts make {named}", advice=advice, notes=(reason, *notes))


def no_candidates(missing: Iterable[Fact], candidates: Sequence[object], are_found: bool) -> ElastalogError:
    named = ", ".join(map(str, missing))
    if are_found:
        message = f"why-not finds no facts that would bring {named} about"
    else:
        message = f"{named} would not hold with all candidates taken"
    advice = "give `candidates`: facts that might be inserted" if are_found else "give other candidates"
    shown = ", ".join(map(str, candidates[:5])) + (" …" if len(candidates) > 5 else "")
    notes = (f"tried: {shown}",) if candidates else ()
    return _error("E0712", message, advice=f"{advice}; `why_not` says what is lacking", notes=notes)


def bad_weight(element: object, weight: object) -> ElastalogError:
    return _error("E1009", f"{weight!r} is no weight for {element}", advice="give a number above 0")
