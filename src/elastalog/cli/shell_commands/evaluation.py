"""Commands about how the program is evaluated: `stats`, `strategy`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from elastalog.cli.profile import latest_entry, profile_lines
from elastalog.cli.shell_commands.command import Command, Piece, require_nothing
from elastalog.cli.shell_commands.state import ShellState


def _stats(state: ShellState, arguments: Piece) -> None:
    require_nothing("stats", arguments)
    entry = latest_entry(state.session)
    state.say(
        f"epoch {entry.epoch}, strategy {state.strategy}: {entry.derivations:,} derivations"
        f" in {entry.seconds * 1000:.1f} ms"
    )
    for stratum in entry.strata:
        names = ", ".join(stratum.relations)
        state.say(f"  {names}: {stratum.how} ({stratum.why}), {stratum.derivations:,} derivations")
    state.say("")
    state.say_all(profile_lines(state.session.statistics()))


def _strategy(state: ShellState, arguments: Piece) -> None:
    from elastalog.diagnostics.nearest import did_you_mean
    from elastalog.evaluation.strategies import STRATEGIES

    if not arguments.text:
        state.say(state.strategy)
        return
    name = arguments.text
    if name not in STRATEGIES:
        advice = did_you_mean(name, STRATEGIES) or f"there are: {', '.join(STRATEGIES)}"
        raise arguments.error("E0652", f"there is no strategy `{name[:60]}`", advice=advice)
    program = state.session.program
    facts = {relation: list(state.session.explicit(relation)) for relation in state.session}
    # The facts in the program's text are among the explicit ones, unless they have been deleted since.
    without_facts = replace(program, checked=replace(program.checked, facts=()))
    session = state.reopen(without_facts, {relation: rows for relation, rows in facts.items() if rows}, name)
    state.session.close()
    state.session, state.strategy, state.changes = session, name, None
    if state.is_interactive:
        state.say(f"recomputed under {name}: epoch {session.epoch}")


COMMANDS: Final = (
    Command("stats", "stats", "show what the latest epoch, the rules and the relations cost", _stats),
    Command(
        "strategy",
        "strategy [NAME]",
        "recompute under another strategy, keeping the explicit facts; alone: show the present one",
        _strategy,
        completes="strategies",
    ),
)
