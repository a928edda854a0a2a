"""Checks of the arguments of public calls."""

from __future__ import annotations

import errno
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping
from operator import index
from typing import Any, NoReturn

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.nearest import did_you_mean


class WrongArgument(ElastalogError, TypeError):
    """An argument of a call is of the wrong kind."""


class MissingPackage(ElastalogError, ImportError):
    """A package that a call needs is not installed."""


def require_package(name: str, extra: str | None = None) -> Any:
    """An optional package. Raises MissingPackage, with how to install it: alone, or with an extra."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise MissingPackage.of(
            "E0623", name=name, advice=f"pip install {name}" if extra is None else f'pip install "elastalog[{extra}]"'
        ) from None


def wrong_kind(what: str, given: object, advice: str) -> WrongArgument:
    """The error that says what an argument must be (`what`, as in `an epoch is a number`), what was given instead, and
    what to do."""
    kind = type(given).__name__
    try:
        shown = reprlib.repr(given)
    except ValueError:  # Python refuses to write very long integers
        shown = "a number of many digits"
    told = shown if given is None or kind in shown else f"{shown} ({kind})"
    if "\n" in shown:  # such as a data frame
        told = f"a {kind}"
    return WrongArgument.of("E0617", what=what, told=told, advice=advice)


def stays_here(what: str, advice: str) -> Callable[[object], NoReturn]:
    """A `__reduce__` for objects that belong to a session: they can neither be copied nor passed to another process,
    and the error says what can."""

    def refuse(_: object) -> NoReturn:
        raise WrongArgument.of("E0617.refuse", what=what, advice=advice)

    return refuse


def require_text(what: str, given: object, advice: str) -> None:
    """Raises WrongArgument unless an argument is a text."""
    if not isinstance(given, str):
        raise wrong_kind(what, given, advice)


def require_path(what: str, given: object, advice: str) -> None:
    """Raises WrongArgument unless an argument is a path: a text, or a `Path`."""
    if not isinstance(given, str) and not (isinstance(given, os.PathLike) and isinstance(os.fspath(given), str)):
        raise wrong_kind(what, given, advice)


def require_place(what: str, given: object, advice: str) -> None:
    """Raises WrongArgument unless an argument is an address, or a path that a file can have."""
    require_path(what, given, advice)
    path: str = os.fspath(given)  # type: ignore[call-overload]
    try:
        if "://" not in path:
            os.lstat(path)
    except (ValueError, OSError) as error:
        if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
            raise WrongArgument.of("E0617.require_place", what=what, path=reprlib.repr(path), advice=advice) from None


def require_mapping(what: str, given: object, advice: str) -> None:
    """Raises WrongArgument unless an argument is None or a mapping."""
    if given is not None and type(given) is not dict and not isinstance(given, Mapping):  # the usual kind sooner
        raise wrong_kind(what, given, advice)


def listed(what: str, given: Any, advice: str, one: tuple[type, ...] = (str,)) -> tuple[Any, ...]:
    """One or several things as a tuple; a value of a type in `one` is a single thing. Raises WrongArgument for other
    values."""
    if isinstance(given, one):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise wrong_kind(what, given, advice)
    return tuple(given)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are none."""
    try:
        index(value)  # type: ignore[arg-type]
    except TypeError:  # as for arrays, though they have the method
        return False
    return not isinstance(value, bool)


def require_whole(what: str, given: object, advice: str) -> None:
    """Raises WrongArgument unless an argument is a whole number."""
    if not is_whole(given):
        raise wrong_kind(what, given, advice)


def require_number(
    option: str, value: object, least: float, *, whole: bool = False, or_none: bool = True, usual: str = "None"
) -> None:
    """Raises ElastalogError unless an option is a number that is not below `least`, or None if `or_none`. `usual`: how
    the default is written."""
    is_number = is_whole(value) if whole else isinstance(value, int | float) and not isinstance(value, bool)
    if (value is None and or_none) or (is_number and value >= least):  # type: ignore[operator]
        return
    kind, rest = "whole number" if whole else "number", f", or {usual}" if or_none else ""
    raise error("E0612.require_number", option=option, value=value, kind=kind, least=least, rest=rest)


def require_one_of(option: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raises ElastalogError unless an option has one of the allowed values."""
    if value not in allowed:
        close = did_you_mean(value, allowed) if isinstance(value, str) else None
        raise error(
            "E0612.require_one_of",
            value=value,
            option=option,
            advice=close or "one of " + ", ".join(f"`{name}`" for name in allowed),
        )
