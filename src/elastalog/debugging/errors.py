"""What can be wrong with a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.provenance.fact import Fact


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
