"""Errors of changes of rules (E0616)."""

from __future__ import annotations

from collections.abc import Sequence

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.nearest import nearest


def no_number(number: int, rules: int) -> Diagnostic:
    """A number that none of so many rules has."""
    known = f"give a number from 1 to {rules}, as `elastalog show` lists them"
    return _fault(f"there is no rule {number} to remove", known if rules else "the program has no rules")


def no_rule(text: str, rules: Sequence[str]) -> Diagnostic:
    """A rule that is not among those of the program."""
    head = text.partition("(")[0].strip()
    close = nearest(text, rules) or next((rule for rule in rules if rule.partition("(")[0] == head), None)
    advice = f"did you mean `{close}`?" if close else "`elastalog show` lists the rules with their numbers"
    return _fault(f"there is no rule `{text[:200]}` to remove", advice)


def not_a_rule(text: str) -> Diagnostic:
    """A text that is no rule at all."""
    advice = "write the rule itself; only `removerule` and Python, as an `int`, take its number"
    if text.startswith("."):
        advice = "only rules can be removed; relations stay declared"
    return _fault(f"`{text[:200]}` is not the text of a rule", advice)


def not_one_rule(text: str) -> Diagnostic:
    """A text of none, or of several."""
    return _fault(f"`{text[:200]}` is not one rule", "give one rule at a time")


def a_subsumption(text: str) -> Diagnostic:
    """A subsumption to remove."""
    advice = "declare another relation, and write the rules that it shall have"
    note = "the facts that it has taken away would have to come back"
    return _fault(f"`{text[:200]}` is a subsumption, which cannot be removed", advice, note)


def a_closure(text: str) -> Diagnostic:
    """A rule to remove that nobody wrote."""
    advice = "declare another relation without `eqrel`, and write the rules that it shall have"
    return _fault(f"`{text}` is one of the rules that `eqrel` stands for", advice)


def _fault(message: str, advice: str, *notes: str) -> Diagnostic:
    return Diagnostic("E0616", message, notes=notes, help=advice)
