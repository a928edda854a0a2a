"""`elastalog whynot`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.explanations import form_options, give_explanation, rendered, value_from
from elastalog.cli.options import verbosity_options
from elastalog.cli.preprocessor_options import program_argument
from elastalog.cli.session_options import SessionOptions, announcing, session_options
from elastalog.cli.store_options import at_option, opened_at
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

if TYPE_CHECKING:
    from elastalog.analysis.program import Value
    from elastalog.session import Session


@click.command()
@program_argument
@click.argument("fact")
@session_options
@at_option
@click.option("--limit", type=click.IntRange(1), default=5, show_default=True, metavar="N", help="Derivations to show.")
@click.option("--rule", type=click.IntRange(1), metavar="N", help="Only this rule of the fact's relation.")
@click.option(
    "--bind", multiple=True, metavar="NAME=VALUE", help="A value for a variable of the rule; may be repeated."
)
@form_options
@verbosity_options
def whynot(
    program: str,
    fact: str,
    at: int | None,
    limit: int,
    rule: int | None,
    bind: tuple[str, ...],
    form: str,
    output: str | None,
    verbosity: Verbosity,
    **options: Any,
) -> None:
    """Show why FACT does not hold in PROGRAM or a store: the derivations that fail nearest to success.

    FACT may be a pattern, as path(1, X): then why no other fact fits it.

    Every literal is marked: ✓ it holds, X it fails, ? it depends on variables that nothing binds.

    \b
    Examples:
      elastalog whynot reach.dl -F facts 'path(4, 1)'
      elastalog whynot reach.dl -F facts 'path(4, 1)' --rule 2 --bind y=3
      elastalog whynot reach.dl -F facts 'path(4, X)'
      elastalog whynot reach.store 'path(4, 1)' --at 17
    """
    diagnostics = "json" if form == "json" else "text"
    with exit_codes(diagnostics, verbosity), announcing(verbosity):
        with opened_at(program, at, SessionOptions(**options), diagnostics, verbosity) as session:
            bindings = _bindings(session, fact, bind)
            text = rendered(session.why_not(fact, limit, rule=rule, bindings=bindings), form)
        give_explanation(text, output)


def _bindings(session: Session, fact: str, given: tuple[str, ...]) -> dict[str, Value]:
    """Values by variable; the types are those of the variables in the rules of the fact's relation."""
    from elastalog.analysis.pattern import parse_pattern
    from elastalog.provenance.explain import variables_of_rule

    relation = parse_pattern(fact, session.program.checked).relation
    rules = [rule for rule in session.program.checked.rules if rule.head.relation == relation]
    known = {name: base for rule in rules for name, base in variables_of_rule(rule).items()}
    found: dict[str, Value] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or name.strip() not in known:
            advice = "write NAME=VALUE with one of " + ", ".join(known)
            raise ElastalogError([Diagnostic("E0711", f"`{text[:40]}` gives no variable a value", help=advice)])
        found[name.strip()] = value_from(value, known[name.strip()], name.strip())
    return found
