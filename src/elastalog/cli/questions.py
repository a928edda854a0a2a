"""Commands that ask: `elastalog query`, `explain`, `whynot` and `debug`."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from io import StringIO
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from elastalog.analysis.listing import json_value, show_value
from elastalog.analysis.pattern import parse_pattern
from elastalog.analysis.values import Base, sort_key
from elastalog.cli.exits import Console
from elastalog.cli.options import (
    Whole,
    click_option,
    duration,
    option,
    options_of,
    program_argument,
    report_options,
    verbosity_options,
)
from elastalog.cli.outputs import fit_for_terminal, write_text
from elastalog.cli.session_options import (
    SessionOptions,
    announcing,
    at_option,
    is_store,
    load_program,
    open_session,
    opened_at,
    opened_to_write,
    session_options,
    show_reports,
)
from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.messages import counted
from elastalog.folders.addresses import is_address
from elastalog.late import dataclass

if TYPE_CHECKING:
    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Answer
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.proof import Proof
    from elastalog.relations.facts import Relation
    from elastalog.session import Session

_RENDERERS: Final[Mapping[str, Callable[[Proof | Absence], str]]] = {
    "auto": str,
    **{form: methodcaller(f"to_{form}") for form in ("text", "tree", "json", "dot", "mermaid")},
    "html": methodcaller("to_html", page=True),
}
FORMS: Final = tuple(_RENDERERS)
"""The formats of explanations; `auto` is text where that is narrow enough, otherwise a tree."""

FORM: Final = option(
    "--format", type=click.Choice(FORMS), default="auto", show_default=True, help="Form of the explanation."
)
OUTPUT: Final = option("--output", metavar="FILE", help="Write the explanation to FILE.")


def rendered(shown: Proof | Absence, form: str) -> str:
    """An explanation in a format."""
    return _RENDERERS[form](shown)


def give_explanation(text: str, path: str | None) -> None:
    """Prints an explanation, or writes it to a file."""
    if path is None:
        click.echo(text)
    else:
        write_text(path, text)


def value_from(text: str, base: Base, name: str) -> Value:
    """The value of a variable, from text. Symbols may be quoted."""
    from elastalog.analysis.program import Base

    text = text.strip()
    try:
        match base:
            case Base.SYMBOL:
                is_quoted = len(text) >= 2 and text[0] == text[-1] == '"'
                return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if is_quoted else text
            case Base.FLOAT:
                return float(text)
            case Base.NUMBER | Base.UNSIGNED:
                return int(text.removesuffix("u") if base is Base.UNSIGNED else text)
            case Base.RECORD:
                raise ValueError(text)
    except ValueError:
        raise error("E0711", text=text[:40], value=base.value, name=name) from None


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?|nan|-?inf", re.ASCII)


@click.command()
@click.argument("program", type=click.Path(), metavar="PROGRAM|STORE")
@click.argument("query")
@click.option(
    "--param", "parameters", multiple=True, metavar="NAME=VALUE",
    help="Value of the parameter `?NAME`: a number, or any other text.",
)  # fmt: skip
@at_option
@session_options
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True,
    help="Format of the answers and, but for csv, of the diagnostics.",
)  # fmt: skip
@verbosity_options
def query(
    program: str,
    query: str,
    parameters: tuple[str, ...],
    at: int | str | None,
    console: Console,
    options: SessionOptions,
) -> None:
    """Answer a query over a program and its fact files, or over a store.

    For a program, only the facts that the answer needs are derived, and only the files that it depends on are read.

    A QUERY is a pattern, or literals as in the body of a rule. Prints one answer per line: the values of the variables
    in the order of first appearance, or of the arguments of a head, separated by tabs; with `--format json`, one object
    per line; with `--format csv`, below a line with the names. The answer to a query without variables is `yes` or
    `no`. A VALUE in double quotes is a text even if it is a number.

    \b
    Examples:
      elastalog query reach.store 'path(1, X)'
      elastalog query reach.store 'path(1, 4)' --at 17
      elastalog query reach.store 'path(X, Y)' --format csv > paths.csv
      elastalog query reach.dl -F facts 'path(?a, X), edge(X, Y), X > 10' --param a=1
      elastalog query reach.store 'far(X) :- path(1, X), !edge(1, X)'
    """
    values = dict(map(_parameter, parameters))
    with announcing(console):
        answers = _answers(program, query, values, at, options, console)
        names = answers.schema.names
        if not names:
            click.echo("yes" if len(answers) else "no")
            return
        if not len(answers):
            console.say("no answers")
        if console.form == "csv":
            text = StringIO()
            rows = ([v if isinstance(v, str) else show_value(v) for v in row] for row in sorted(answers, key=sort_key))
            csv.writer(text, lineterminator="\n").writerows([names, *rows])
            fit_for_terminal(sys.stdout.buffer).write(text.getvalue().encode())
            return
        for answer in sorted(answers, key=sort_key):
            if console.form == "json":
                click.echo(json.dumps(dict(zip(names, map(json_value, answer), strict=True)), ensure_ascii=False))
            else:
                click.echo("\t".join(map(show_value, answer)))


def _answers(
    program: str,
    query: str,
    values: dict[str, int | float | str],
    at: int | str | None,
    options: SessionOptions,
    console: Console,
) -> Relation:
    if "(" in program and not os.path.exists(program) and os.path.exists(query):
        raise click.UsageError(f"the program or store comes first: elastalog query {shlex.join([query, program])}")
    if is_address(program) or Path(program).is_dir() or at is not None:
        with opened_at(program, at, options, console) as session:
            return session.query(query, parameters=values)
    from elastalog.program import with_arithmetic
    from elastalog.session.opening import question

    loaded = with_arithmetic(load_program(program, console), options.arithmetic)
    asked = question(loaded, query, values)
    with open_session(asked.program, options, console) as session:
        return asked.answers(session)


def _parameter(written: str) -> tuple[str, int | float | str]:
    name, sign, value = written.partition("=")
    if not sign or not name:
        raise click.BadParameter(f"'{written}' is not NAME=VALUE", param_hint="--param")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return name, value[1:-1]
    if _INTEGER.fullmatch(value):
        return name, int(value)
    return name, float(value) if _FLOAT.fullmatch(value) else value


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """The options of a proof."""

    depth: int | None = option("--depth", type=Whole(0), metavar="N", help="Levels to show.  [default: all]")
    uses: str | None = option(
        "--uses", type=click.Choice(["direct", "all"]), is_flag=False, flag_value="direct",
        help="Show what follows from the fact instead: in one step, or everything that would disappear with it.",
    )  # fmt: skip
    output: str | None = OUTPUT


@click.command()
@program_argument
@click.argument("fact")
@session_options
@at_option
@options_of(ProofOptions, "wanted")
@click_option(FORM, "form")
@verbosity_options
def explain(
    program: str, fact: str, at: int | str | None, wanted: ProofOptions, options: SessionOptions, console: Console
) -> None:
    """Show why FACT holds in PROGRAM or a store: its proof, down to explicit facts.

    FACT may be a pattern that only one fact fits, such as path(1, _); if several do, the error names some.

    Each recursive part of the proof is as low as possible; with `--levels global` the proof as a whole is.

    \b
    Examples:
      elastalog explain reach.dl -F facts 'path(1, 4)'
      elastalog explain reach.dl -F facts 'path(1, 4)' --depth 2 --format tree
      elastalog explain reach.dl -F facts 'path(1, 4)' --format dot --output proof.dot
      elastalog explain reach.store 'path(1, 4)' --at 17
      elastalog explain reach.dl -F facts 'edge(2, 3)' --uses all
    """
    with announcing(console):
        with opened_at(program, at, options, console) as session:
            if wanted.uses is not None:
                found = sorted(map(str, session.uses(fact, all=wanted.uses == "all")))
                text = json.dumps(found, ensure_ascii=False) if console.form == "json" else "\n".join(found)
            else:
                text = rendered(session.explain(fact, wanted.depth), console.form)
        give_explanation(text, wanted.output)


@dataclass(frozen=True, slots=True)
class AbsenceOptions:
    """The options of an absence."""

    limit: int = option(
        "--limit", type=Whole(1), default=5, show_default=True, metavar="N", help="Derivations to show."
    )
    depth: int = option(
        "--depth", type=Whole(1), default=1, show_default=True, metavar="N", help="Levels of reasons to show."
    )
    rule: int | None = option("--rule", type=Whole(1), metavar="N", help="Only this rule of the fact's relation.")
    bind: tuple[str, ...] = option(
        "--bind", multiple=True, metavar="NAME=VALUE", help="A value for a variable of the rule; may be repeated."
    )
    output: str | None = OUTPUT


@click.command()
@program_argument
@click.argument("fact")
@session_options
@at_option
@options_of(AbsenceOptions, "wanted")
@click_option(FORM, "form")
@verbosity_options
def whynot(
    program: str, fact: str, at: int | str | None, wanted: AbsenceOptions, options: SessionOptions, console: Console
) -> None:
    """Show why FACT does not hold in PROGRAM or a store: the derivations that fail nearest to success.

    FACT may be a pattern such as path(1, X); the answer then says why no other fact fits it.

    Each literal is marked: ✓ holds, X fails, ? depends on variables that nothing binds.

    \b
    Examples:
      elastalog whynot reach.dl -F facts 'path(4, 1)'
      elastalog whynot reach.dl -F facts 'path(4, 1)' --rule 2 --bind y=3
      elastalog whynot reach.dl -F facts 'path(4, 1)' --depth 3
      elastalog whynot reach.dl -F facts 'path(4, X)'
      elastalog whynot reach.store 'path(4, 1)' --at 17
    """
    with announcing(console):
        with opened_at(program, at, options, console) as session:
            bindings = _bindings(session, fact, wanted.bind)
            found = session.why_not(fact, wanted.limit, rule=wanted.rule, bindings=bindings, depth=wanted.depth)
            text = rendered(found, console.form)
        give_explanation(text, wanted.output)


def _bindings(session: Session, fact: str, given: tuple[str, ...]) -> dict[str, Value]:
    """Values by variable; the types are those of the variables in the rules of the fact's relation."""
    from elastalog.provenance.explain import variables_of_rule

    relation = parse_pattern(fact, session.program.checked).relation
    rules = [rule for rule in session.program.checked.rules if rule.head.relation == relation]
    known = {name: base for rule in rules for name, base in variables_of_rule(rule).items()}
    found: dict[str, Value] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or name.strip() not in known:
            advice = "write NAME=VALUE with one of " + ", ".join(known)
            raise error("E0711.bindings", text=text[:40], advice=advice)
        found[name.strip()] = value_from(value, known[name.strip()], name.strip())
    return found


@dataclass(frozen=True, slots=True)
class Search:
    """The options that name faults, and where to look for their cause."""

    updates: tuple[str, ...] = option(
        "--update", multiple=True, type=click.Path(exists=True), metavar="FILE",
        help="Diff file that is applied after the facts, as an epoch; may be repeated. A store has its own updates.",
    )  # fmt: skip
    unwanted: tuple[str, ...] = option(
        "--unwanted", multiple=True, metavar="FACT", help="A fact that holds and should not; may be repeated."
    )
    missing: tuple[str, ...] = option(
        "--missing", multiple=True, metavar="FACT", help="A fact that should hold and does not; may be repeated."
    )
    reject: tuple[str, ...] = option(
        "--reject", multiple=True, metavar="ELEMENT",
        help="A fact or rule that must stay as it is, or a pattern, as edge(1, _); may be repeated.",
    )  # fmt: skip
    weights: tuple[str, ...] = option(
        "--weight", multiple=True, metavar="ELEMENT=N",
        help="How much changing a fact, or each that fits a pattern, counts; may be repeated.  [default: 1]",
    )  # fmt: skip
    over: str | None = option(
        "--over", type=click.Choice(["update", "facts"]),
        help="Undo part of an update, or change any explicit facts.  [default: the update, if the faults came with it]",
    )  # fmt: skip
    candidates: tuple[str, ...] = option(
        "--candidate", multiple=True, metavar="FACT",
        help="A fact, or a pattern such as edge(1,_), that may be inserted (-edge(1,2): deleted) for the missing ones;"
        " may be repeated."
        "  [default: what why-not finds]",
    )  # fmt: skip
    localise: bool = option("--localise", is_flag=True, help="Show what causes the faults instead of what to undo.")
    blame: str | None = option(
        "--blame", metavar="FACT", help="Show in which epoch a fact last appeared or disappeared, and why."
    )
    epochs: tuple[int, int] | None = option(
        "--epochs", nargs=2, type=Whole(1), metavar="A B",
        help="Between these epochs.  [default: the last update]",
    )  # fmt: skip
    time_limit: float = option(
        "--time-limit", metavar="TIME", default="60s", show_default=True, callback=duration, help="Time for the search."
    )
    applies: bool = option("--apply", is_flag=True, help="Apply the repair to the store, as a new epoch.")
    proofs: bool = option("--proofs", is_flag=True, help="Show the proofs that connect the elements with the faults.")


@click.command()
@program_argument
@session_options
@options_of(Search, "asked")
@at_option
@report_options
def debug(program: str, options: SessionOptions, asked: Search, at: int | str | None, console: Console) -> None:
    """Find the smallest part of an update to undo, or the fewest facts to change, so that faults disappear.

    A fault is a fact that holds and should not (--unwanted), or one that should hold and does not (--missing). Every
    answer has been tried out. If PROGRAM is a store, its last update is examined, or what happened between two epochs;
    with --at, as if an earlier epoch were the last. Without an update, or with --over facts, all explicit facts are
    considered, whenever they came: facts to delete and, for missing ones, facts to insert. An unwanted fact may be a
    pattern such as path(1, _).

    \b
    Examples:
      elastalog debug reach.dl -F facts --update monday.diff --unwanted 'path(1, 4)'
      elastalog debug reach.dl -F facts --update monday.diff --missing 'path(2, 3)' --localise --proofs
      elastalog debug reach.store --unwanted 'path(1, 4)' --reject 'edge(3, 4)'
      elastalog debug reach.store --unwanted 'path(1, 4)' --weight 'edge(1, _)=5'
      elastalog debug reach.store --unwanted 'path(1, 4)' --apply
      elastalog debug reach.store --blame 'path(1, 4)'
      elastalog debug reach.store --unwanted 'path(1, 4)' --at 17
      elastalog debug reach.dl -F facts --unwanted 'path(1, _)'
      elastalog debug reach.dl -F facts --missing 'path(1, 9)' --candidate 'edge(4, 9)' --candidate 'edge(5, 9)'
    """
    _refuse_contradictions(program, asked, at)
    opened = opened_to_write(program, options, console) if asked.applies else opened_at(program, at, options, console)
    with announcing(console), opened as session:
        for path in asked.updates:
            show_reports(session.apply(path).reports, console)
        if asked.blame is not None:
            found = session.blame(asked.blame)
            click.echo(found.to_json() if console.form == "json" else str(found))
            return
        news = after_a_moment(lambda message: click.echo(message, err=True)) if console.is_watched else None
        settings: Any = {"epochs": asked.epochs, "time_limit": asked.time_limit, "on_progress": news}
        answer: Answer
        if asked.localise:
            answer = session.localise(asked.unwanted, asked.missing, **settings)
        else:
            candidates = asked.candidates or None
            weights = dict(map(_weight, asked.weights))
            answer = repair = session.suggest(
                asked.unwanted, asked.missing, asked.reject, weights, over=asked.over, candidates=candidates, **settings
            )
        click.echo(_shown(answer, console, asked.proofs, program, session.epoch if asked.applies else None))
        if not asked.localise and not asked.applies and answer.elements:
            console.say(f"note: `--reject {shlex.quote(str(answer.elements[0].fact))}` looks for another repair")
        if asked.applies:
            changes = repair.apply()
            console.say(f"epoch {session.epoch}: {counted(changes.impact, 'change')}")
        _tell_time(answer, console)


def _weight(written: str) -> tuple[str, float]:
    element, _, number = written.rpartition("=")
    try:
        return element, float(number)
    except ValueError:
        raise click.BadParameter(f"'{written}' is not ELEMENT=N, as 'edge(1, 2)=5'", param_hint="--weight") from None


def _refuse_contradictions(program: str, asked: Search, at: int | str | None) -> None:
    is_search = asked.reject or asked.weights or asked.over or asked.candidates
    if is_store(program):
        if asked.updates:
            raise click.UsageError("--update: a store has its own updates; `elastalog apply` adds one.")
    elif not asked.updates and (asked.blame is not None or asked.localise or asked.over == "update"):
        raise click.UsageError("Missing option '--update': there is nothing to debug without one.")
    if asked.blame is not None and (asked.unwanted or asked.missing or asked.localise or asked.epochs or is_search):
        raise click.UsageError("--blame is a question of its own: give no faults and no other options of the search.")
    if asked.localise and is_search:
        raise click.UsageError(
            "--reject, --weight, --over and --candidate are about suggestions; leave them out, or --localise."
        )
    if asked.applies and not is_store(program):
        raise click.UsageError("--apply is for a store, and this is a program: make one with `elastalog init`.")
    if asked.applies and (at is not None or asked.blame is not None or asked.localise):
        raise click.UsageError("--apply is for the repair of a store: leave out --at, --blame and --localise.")


def after_a_moment(say: Callable[[str], None]) -> Callable[[str], None]:
    """Reports the progress of a search once it has taken a second."""
    begun = time.monotonic()
    return lambda message: say(message) if time.monotonic() - begun > 1 else None


def _shown(answer: Answer, console: Console, proofs: bool, program: str, before: int | None) -> str:
    """An answer as text. `program`: what was asked; `before`: the epoch before the answer is applied, if it is."""
    if console.form == "json":
        return answer.to_json()
    from elastalog.debugging.answers import TO_SEE_ALL

    if before is not None:
        hint = f"{TO_SEE_ALL}`elastalog diff {shlex.quote(program)} {before}`"
    elif not is_store(program):
        named = (one.undoing.replace(" ", "") if one.is_rule else one.undoing for one in answer.elements)
        typed = "; ".join(f"{name} {one.fact}" for name, one in zip(named, answer.elements, strict=True))
        hint = f"{TO_SEE_ALL}`{typed}; preview all` in `elastalog shell` with the same program and facts"
    else:
        signs = ("-" if one.undoing.startswith(("delete", "remove")) else "+" for one in answer.elements)
        changes = (f"{s}{'rule: ' * e.is_rule}{e.fact}" for s, e in zip(signs, answer.elements, strict=True))
        typed = " ".join(shlex.quote(change if change.endswith(".") else f"{change}.") for change in changes)
        hint = (
            f"{TO_SEE_ALL}`printf '%s\\n' {typed} | elastalog apply {shlex.quote(program)} - --preview --show-changes`"
        )
    lines = (hint if line.startswith(TO_SEE_ALL) else line for line in str(answer).split("\n"))
    parts = ["\n".join(lines)]
    if proofs:
        parts += [str(proof) for proof in answer.proofs]
    return "\n\n".join(parts)


def _tell_time(answer: Answer, console: Console) -> None:
    """Reports where the time went, with `-v`."""
    if console.is_verbose:
        spent = answer.seconds
        click.echo(
            f"provenance {spent.provenance:.3f} s, 0/1 programs {spent.solving:.3f} s,"
            f" {spent.number_of_trials} trials {spent.trials:.3f} s",
            err=True,
        )
