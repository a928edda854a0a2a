"""Questions to a program that is not kept: only what the answer needs is derived."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from elastalog.analysis.query import Query, check_query, parameter_values
from elastalog.diagnostics.arguments import require_text
from elastalog.late import dataclass
from elastalog.planning.demand import with_demand
from elastalog.planning.needed_groups import may_await_groups
from elastalog.program import Program, as_program
from elastalog.relations.facts import Relation
from elastalog.session.initial_facts import Rows
from elastalog.session.opening import open, takes_options  # noqa: A004  # its public name
from elastalog.session.session import Session


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the program that derives its answers and what they need, and nothing else."""

    query: Query
    program: Program

    def answers(self, session: Session) -> Relation:
        """The answers, from a session of the program, which is not needed any more."""
        return session._reader.answers_in(self.query)


def question(program: Program, text: str, parameters: Mapping[str, object]) -> Question:
    """A query about a program. Raises ElastalogError if it is none."""
    require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
    checked = program.checked
    query = check_query(text, program.tree, checked, parameter_values(parameters))
    own = next(stratum for stratum in query.program.strata if query.name in stratum.relations)
    together = replace(
        checked,
        relations={**checked.relations, query.name: query.program.relations[query.name]},
        rules=(*checked.rules, *query.program.rules),
        strata=(*checked.strata, replace(own, number=len(checked.strata))),
    )
    return Question(query, replace(program, checked=with_demand(together, (query.name,))))


@takes_options
def query(
    program: str | os.PathLike[str] | Program,
    facts: str | os.PathLike[str] | Mapping[str, Rows] | None,
    text: str,
    *,
    parameters: Mapping[str, object] | None = None,
    **options: Any,
) -> Relation:
    """The answers to a query, `path(1, X)` or literals as in the body of a rule, over a program and facts. Only what
    they need is read and derived: of `path`, what starts at 1. `parameters` are the values of `?name` in the query,
    and the other options are those of `elastalog.open`.

    Whoever asks more than once over the same facts is better off with a session, `elastalog.open`, and its `query`."""
    asked = question(as_program(program), text, parameters or {})
    strategy = "elastic" if may_await_groups(asked.program.checked) else "recompute"
    with open(asked.program, facts, **{"strategy": strategy, **options}) as session:
        return asked.answers(session)
