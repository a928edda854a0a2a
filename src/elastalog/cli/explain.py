"""`elastalog explain`"""

from __future__ import annotations

import json
from typing import Any

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.explanations import form_options, give_explanation, rendered
from elastalog.cli.options import verbosity_options
from elastalog.cli.preprocessor_options import program_argument
from elastalog.cli.session_options import SessionOptions, announcing, session_options
from elastalog.cli.store_options import at_option, opened_at


@click.command()
@program_argument
@click.argument("fact")
@session_options
@at_option
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Levels to show.  [default: all]")
@click.option(
    "--uses", type=click.Choice(["direct", "all"]), is_flag=False, flag_value="direct",
    help="Show what follows from the fact instead: in one step, or everything that would disappear with it.",
)  # fmt: skip
@form_options
@verbosity_options
def explain(
    program: str,
    fact: str,
    at: int | None,
    depth: int | None,
    uses: str | None,
    form: str,
    output: str | None,
    verbosity: Verbosity,
    **options: Any,
) -> None:
    """Show why FACT holds in PROGRAM or a store: its proof, down to explicit facts.

    With `--levels global` the proof has the least height of all, otherwise the least within each stratum.

    \b
    Examples:
      elastalog explain reach.dl -F facts 'path(1, 4)'
      elastalog explain reach.dl -F facts 'path(1, 4)' --depth 2 --format tree
      elastalog explain reach.dl -F facts 'path(1, 4)' --format dot --output proof.dot
      elastalog explain reach.store 'path(1, 4)' --at 17
      elastalog explain reach.dl -F facts 'edge(2, 3)' --uses all
    """
    diagnostics = "json" if form == "json" else "text"
    with exit_codes(diagnostics, verbosity), announcing(verbosity):
        with opened_at(program, at, SessionOptions(**options), diagnostics, verbosity) as session:
            if uses is not None:
                found = sorted(map(str, session.uses(fact, all=uses == "all")))
                text = json.dumps(found, ensure_ascii=False) if form == "json" else "\n".join(found)
            else:
                text = rendered(session.explain(fact, depth), form)
        give_explanation(text, output)
