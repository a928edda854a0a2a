"""The thesis, chapter 6: Table 6.1, and the loop of Algorithm 11 on examples where it goes wrong."""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.debugging import Case, run
from benchmarks.papers.items import Settings, reproduces
from benchmarks.papers.tables import Cell, Figures, Table

CASE_HEAD = (
    "update", "faults", "question", "number", "size", "seconds", "delta debugging: size", "seconds", "ratio",
)  # fmt: skip


@reproduces("Table 6.1: suggestions against delta debugging", "doop")
def table6_1(settings: Settings) -> Figures:
    options = argparse.Namespace(
        data=None if settings.data is None else str(settings.data), workload="doop", first_seed=1,
        seeds=3 if settings.is_quick else 11, time_limit=60.0, delta_limit=600.0, without_delta=False,
    )  # fmt: skip
    cases = run(options)
    summaries = {question: _summary(question, cases) for question in ("suggest", "localise")}
    values = {f"{question} {key}": value for question, found in summaries.items() for key, value in found.items()}
    head = ("question", "speed-up, geometric mean", "least", "smaller", "larger", "proven minimum", "slowest, s")
    title = "Share of answers that are smaller and larger than delta debugging's, and proven minimum"
    shares = Table(title, head, [(question, *found.values()) for question, found in summaries.items()])
    return Figures([shares, Table("Processor seconds", CASE_HEAD, [_row(case) for case in cases])], values=values)


def _row(case: Case) -> Sequence[Cell]:
    ours = (case.size, case.processor)
    theirs = (case.delta_size, case.delta_processor, case.processor_ratio)
    return (case.seed, case.kind, case.question, case.faults, *ours, *theirs)


def _summary(question: str, cases: Sequence[Case]) -> dict[str, float]:
    own = [case for case in cases if case.question == question]
    ratios = [case.processor_ratio for case in own if case.processor_ratio is not None]
    sizes = [(case.size, case.delta_size) for case in own if case.delta_size is not None]
    return {
        "speed-up": math.exp(statistics.fmean(map(math.log, ratios))),
        "least": min(ratios),
        "smaller": sum(ours < theirs for ours, theirs in sizes) / len(sizes),
        "larger": sum(ours > theirs for ours, theirs in sizes) / len(sizes),
        "minimum": sum(case.minimum for case in own) / len(own),
        "slowest": max(case.processor for case in own),
    }


@dataclass(frozen=True, slots=True)
class Example:
    """Relations without columns, named by letters. `printed`: what the loop as printed answers, by hand: the parts for
    unwanted and for missing facts are found each by itself, and put together."""

    rules: str
    before: str
    after: str
    unwanted: str
    missing: str
    printed: str


EXAMPLES = (
    Example("u :- a. u :- b. f :- b. t :- u, c.", "ac", "b", "f", "t", "bc"),
    Example("f :- b. f :- a, !v. v :- b.", "", "ab", "f", "", "b"),
)


@reproduces("Algorithm 11: the loop is not sound")
def algorithm11(settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {"printed": 0, "ours": 0}
    for example in EXAMPLES:
        found = _answer(example)
        left = {"printed": _faults_left(example, example.printed), "ours": _faults_left(example, found)}
        for key, number in left.items():
            values[key] += number
        undone = (_signed(example, example.printed), left["printed"], _signed(example, found), left["ours"])
        rows.append((f"`{example.rules}`", _set(example.before), _set(example.after), *undone))
    head = ("program", "before", "after", "undone by the loop", "faults left", "undone by ours", "faults left")
    return Figures([Table("", head, rows)], values=values)


def _program(example: Example) -> str:
    text = "".join(sorted({letter for letter in example.rules if letter.isalpha()}))
    rules = "".join(f"{letter}()" if letter.isalpha() else letter for letter in example.rules)
    return "".join(f".decl {letter}()\n" for letter in text) + rules


def _rows(letters: str) -> dict[str, list[tuple[()]]]:
    return {letter: [()] for letter in letters}


def _answer(example: Example) -> str:
    """What our suggestion undoes."""
    import elastalog

    with elastalog.open(_program(example), facts=_rows(example.before)) as db:
        gone = "".join(letter for letter in example.before if letter not in example.after)
        db.apply(_rows(example.after), _rows(gone))
        unwanted, missing = [f"{f}()" for f in example.unwanted], [f"{f}()" for f in example.missing]
        return "".join(element.fact[0] for element in db.suggest(unwanted=unwanted, missing=missing).elements)


def _faults_left(example: Example, undone: str) -> int:
    """How many of the faults there are when these elements of the update are not applied."""
    import elastalog

    facts = {f for f in "".join(sorted({*example.before, *example.after})) if (f in example.after) != (f in undone)}
    with elastalog.open(_program(example), facts=_rows("".join(sorted(facts)))) as db:
        unwanted = sum(len(db[fact]) for fact in example.unwanted)
        return unwanted + sum(1 - len(db[fact]) for fact in example.missing)


def _signed(example: Example, undone: str) -> str:
    return ", ".join(f"{'+' if letter in example.after else '−'}{letter}" for letter in undone)


def _set(letters: str) -> str:
    return "{" + ", ".join(letters) + "}"
