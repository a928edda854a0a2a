"""What a service refuses, as diagnostics."""

from __future__ import annotations

from collections.abc import Iterable

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached
from elastalog.diagnostics.nearest import did_you_mean


class Busy(LimitReached):
    """More is asked at once than the service answers; later it may."""


class Closed(ElastalogError):
    """The service has ended."""


def wrong_page(reason: str) -> ElastalogError:
    advice = "`offset` is 0 or more, `limit` within the limits of the service; `-` before a column of `order` turns it"
    return ElastalogError([Diagnostic("E0920", f"no such page: {reason}", help=advice)])


def unknown_column(relation: str, column: str, columns: Iterable[str]) -> ElastalogError:
    known = list(columns)
    advice = did_you_mean(column, known) or f"it has {', '.join(f'`{name}`' for name in known)}"
    return ElastalogError([Diagnostic("E0920", f"`{relation}` has no column `{column}` to order by", help=advice)])


def too_slow(seconds: float) -> LimitReached:
    told = f"the question was not answered within {seconds:g} s, and is cancelled"
    return LimitReached([Diagnostic("E0921", told, help="ask for less, or start the service with a longer limit")])


def too_many_questions(number: int) -> Busy:
    told = f"{number} questions wait already"
    return Busy([Diagnostic("E0922", told, help="ask again in a moment")])


def too_many_listeners(number: int) -> Busy:
    told = f"{number} listeners follow the changes already"
    return Busy([Diagnostic("E0922", told, help="end one of them, or ask for the changes by long poll")])


def not_after(wanted: int, now: int) -> ElastalogError:
    told = f"the update was to come after epoch {wanted}, and the last one is {now}"
    return ElastalogError([Diagnostic("E0938", told, help="see what changed since, and ask again")])


def closed() -> Closed:
    return Closed([Diagnostic("E0936", "the service has ended", help="start it again")])
