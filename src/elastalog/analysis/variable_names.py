"""Names of variables that no program can write: those of wildcards, `_@1`, of variables renamed so that each scope has
its own, `x@1`, of variables for what an expression builds or takes apart, `@r1`, for the values of an aggregate or a
range in an expression, `count@1`, `range@2`, and for a value that another variable must have, `x@=1`."""

from __future__ import annotations

from elastalog.syntax.keywords import AGGREGATES


def wildcard_name(number: int) -> str:
    """The variable that a wildcard of a positive atom becomes."""
    return f"_@{number}"


def fresh_name(stem: str, number: int) -> str:
    """A variable like another, of a scope of its own."""
    return f"{stem}@{number}"


def made_name(number: int) -> str:
    """The variable that stands for what an expression builds or takes apart."""
    return f"@r{number}"


def is_made_name(name: str) -> bool:
    """Whether a variable stands for what an expression builds or takes apart."""
    return name.startswith("@r")


def equal_name(stem: str, number: int) -> str:
    """A variable that must have the value of another."""
    return f"{stem}@={number}"


def is_implied_name(name: str) -> bool:
    """Whether the value of a variable follows from what is written: that of an aggregate in an expression, of what is
    built or taken apart, of what another variable must have. A range has several."""
    return name.startswith("@") or "@=" in name or written_name(name) in AGGREGATES


def is_wildcard_name(name: str) -> bool:
    """Whether a variable was written as `_`."""
    return name.startswith("_@")


def is_written(name: str) -> bool:
    """Whether a variable has the name that the user gave it, in the rule's own scope."""
    return "@" not in name


def written_name(name: str) -> str:
    """The name of a variable as the user wrote it."""
    return name.partition("@")[0]
