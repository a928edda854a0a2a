"""What a service refuses, as diagnostics."""

from __future__ import annotations

from collections.abc import Iterable

from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.diagnostics.nearest import did_you_mean


class Busy(LimitReached):
    """More is asked at once than the service answers; later it may."""


class Closed(ElastalogError):
    """The service has ended."""


def wrong_page(reason: str) -> ElastalogError:
    advice = "`offset` is 0 or more, `limit` within the limits of the service; `-` before a column of `order` turns it"
    return ElastalogError.of("E0920", f"no such page: {reason}", advice)


def unknown_column(relation: str, column: str, columns: Iterable[str]) -> ElastalogError:
    known = list(columns)
    advice = did_you_mean(column, known) or f"it has {', '.join(f'`{name}`' for name in known)}"
    return ElastalogError.of("E0920", f"`{relation}` has no column `{column}` to order by", advice)


def too_slow(seconds: float) -> LimitReached:
    told = f"the question was not answered within {seconds:g} s, and is cancelled"
    return LimitReached.of("E0921", told, "ask for less, or start the service with a longer limit")


def too_many_questions(number: int) -> Busy:
    told = f"{number} questions wait already"
    return Busy.of("E0922", told, "ask again in a moment")


def too_many_listeners(number: int) -> Busy:
    told = f"{number} listeners follow the changes already"
    return Busy.of("E0922", told, "end one of them, or ask for the changes by long poll")


def not_after(wanted: int, now: int) -> ElastalogError:
    told = f"the update was to come after epoch {wanted}, and the last one is {now}"
    return ElastalogError.of("E0938", told, "see what changed since, and ask again")


def closed() -> Closed:
    return Closed.of("E0936", "the service has ended", "start it again")
