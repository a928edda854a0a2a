"""Bad rows: located, counted, and then refused, set aside or skipped, as the user says. Those of an update are gathered
while it is filled, and set aside when it is committed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, assert_never, get_args

from elastalog.diagnostics.arguments import require_number, require_one_of, require_place
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached, finding, warn_of
from elastalog.late import dataclass
from elastalog.pipeline.files.paths import replacing
from elastalog.relations.faults import Fault, shown

MOST_REPORTED = 5
LINES = "diff"
"""What bad lines of diff files are gathered under that do not tell their relation."""
MAX_BAD_ROWS = 1000

Mode = Literal["fail", "quarantine", "skip"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class BadRows:
    """How to handle rows that cannot be facts. `fail`: an error (the default). `quarantine`: they are written to
    `R.bad.jsonl` in `folder`, and the good rows are loaded. `skip`: they are dropped while a relation has at most
    `most` of them."""

    policy: Mode = "fail"
    most: int = MAX_BAD_ROWS
    folder: str | os.PathLike[str] = "."

    @property
    def lets_pass(self) -> bool:
        """Whether good rows are taken though others are bad."""
        return self.policy != "fail"

    def quarantine(self, relation: str) -> Path:
        """The file that bad rows of a relation are set aside in."""
        return Path(self.folder) / f"{relation}.bad.jsonl"


FAIL = BadRows()
"""Bad rows are errors."""


def as_bad_rows(given: Mode | BadRows | None) -> BadRows:
    """The policy for bad rows, from any form in which a user may give it."""
    if given is None or given == "fail":
        return FAIL
    policy = given if isinstance(given, BadRows) else BadRows(given)
    require_one_of("value of `bad_rows`", policy.policy, MODES)
    require_number("most", policy.most, 0, whole=True, or_none=False)
    require_place("`folder` is a path", policy.folder, "give that of the folder in which bad rows are set aside")
    return policy


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be a fact. `line` counts from 1: the line of a text file, the row of a Parquet file; 0 if it is
    not known. `unit`: what it counts where that is not lines."""

    file: str
    line: int
    fault: Fault
    text: str
    unit: str = ""

    def as_json(self) -> dict[str, Any]:
        """The row as a quarantine holds it, and as a service reports it."""
        fault = self.fault
        return {"file": self.file, "line": self.line, "code": fault.code, "reason": fault.reason, "text": self.text}

    @property
    def location(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}, {self.unit} {self.line}" if self.unit else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Report:
    """How reading the facts of one relation went. `converted`: values of tables that were given in another type than
    the declared one, in which they are the same."""

    relation: str
    files: tuple[str, ...]
    loaded: int
    bad: int
    first_bad: tuple[BadRow, ...] = ()
    quarantine: Path | None = None
    converted: int = 0
    understood: str = ""
    """How a file that was looked at is written, in words."""


def settle(
    policy: BadRows, relation: str, files: Iterable[str], loaded: int, bad: list[BadRow], converted: int = 0
) -> Report:
    """Applies the policy to the bad rows of a relation: an error, or the report of what was done."""
    refuse(policy, relation, bad)
    if policy.policy == "quarantine":
        path = policy.quarantine(relation)
        if bad:
            with replacing(path) as out:
                out.write(quarantine_lines(bad))
        else:
            path.unlink(missing_ok=True)  # of an earlier run: it would speak of rows that are fine now
    report = report_of(policy, relation, files, loaded, bad, converted)
    warn_of_lost([report])
    return report


def refuse(policy: BadRows, relation: str, bad: list[BadRow]) -> None:
    """Raises ElastalogError if the policy does not let these bad rows of a relation pass."""
    match policy.policy:
        case "fail":
            if bad:
                raise bad_rows_error(f"bad row for `{relation}`", bad)
        case "skip":
            if len(bad) > policy.most:
                raise LimitReached(
                    [
                        finding("E0513", location=bad[0].file, bad=len(bad), relation=relation, most=policy.most),
                        *bad_rows_error(f"bad row for `{relation}`", bad).diagnostics,
                    ]
                )
        case "quarantine":
            pass
        case _:
            assert_never(policy.policy)


def report_of(
    policy: BadRows, relation: str, files: Iterable[str], loaded: int, bad: list[BadRow], converted: int = 0
) -> Report:
    """The report of bad rows that the policy lets pass."""
    place = policy.quarantine(relation) if bad and policy.policy == "quarantine" else None
    return Report(relation, tuple(files), loaded, len(bad), tuple(bad[:MOST_REPORTED]), place, converted)


def bad_row_diagnostic(heading: str, row: BadRow, more: int = 0) -> Diagnostic:
    """The diagnostic of one bad row, which may stand for others."""
    notes = [f"the row is {shown(row.text)}"] if row.text else []
    if more:
        notes.append(f"{more:,} more row{' is' if more == 1 else 's are'} bad")
    fault = row.fault
    return Diagnostic(fault.code, f"{heading}: {fault.reason}", (), tuple(notes), fault.help, location=row.location)


def warn_of_lost(reports: Iterable[Report]) -> None:
    """Warns of every relation that lost rows: how many they are, and which is the first."""
    for report in reports:
        if report.bad:
            first = bad_row_diagnostic(f"bad row for `{report.relation}`", report.first_bad[0])
            what = f"set aside in `{report.quarantine}`" if report.quarantine else "skipped"
            of = "without a relation" if report.relation == LINES else f"of `{report.relation}`"
            told = f"{report.bad:,} bad row{'' if report.bad == 1 else 's'} {of} {what}"
            notes = (f"the first: {report.first_bad[0].fault.reason}", *first.notes)
            warn_of(replace(first, severity="warning", message=told, notes=notes, help=None))


def converted_diagnostic(report: Report) -> Diagnostic:
    """A note of how many values were given in another type."""
    were = "value was" if report.converted == 1 else "values were"
    return finding(
        "E0525",
        severity="note",
        location=", ".join(report.files),
        converted=report.converted,
        were=were,
        relation=report.relation,
    )


def bad_rows_error(heading: str, bad: list[BadRow], is_each: bool = False) -> ElastalogError:
    """The first bad rows, of each reason unless `is_each`; what helps against several is said once, with the first."""
    kept: dict[str, BadRow] = {}
    for row in bad:
        kept.setdefault(row.fault.reason, row)
    reported = (bad if is_each else [*kept.values()])[:MOST_REPORTED]
    found = [bad_row_diagnostic(heading, row) for row in reported[:-1]]
    found += [bad_row_diagnostic(heading, row, len(bad) - len(reported)) for row in reported[-1:]]
    helps = [one.help for one in found]
    return ElastalogError(
        [replace(one, help=None) if one.help in helps[:place] else one for place, one in enumerate(found)]
    )


def quarantine_lines(bad: Iterable[BadRow]) -> bytes:
    """Bad rows as a quarantine holds them: JSON, one a line."""
    return b"".join(json.dumps(row.as_json()).encode() + b"\n" for row in bad)


class BadChanges:
    """What the policy lets pass of an update. Rows of several calls and files add up: the bound of `skip` holds for an
    update."""

    def __init__(self, policy: BadRows) -> None:
        self.policy = policy
        self._given: dict[str, tuple[dict[str, None], int, list[BadRow], int]] = {}

    def add(self, relation: str, files: Iterable[str], loaded: int, bad: list[BadRow], converted: int = 0) -> None:
        """Notes what was read of a relation. Raises ElastalogError if the policy does not let the bad rows pass."""
        files_before, loaded_before, bad_before, converted_before = self._given.get(relation, ({}, 0, [], 0))
        gathered = [*bad_before, *bad]
        refuse(self.policy, relation, gathered)
        every = {**files_before, **dict.fromkeys(files)}
        self._given[relation] = every, loaded_before + loaded, gathered, converted_before + converted

    def add_of_diff(self, relation: str, bad: Sequence[BadRow]) -> None:
        """Notes bad rows of diff files."""
        self.add(relation, dict.fromkeys(row.file for row in bad), 0, list(bad))

    def set_aside(self) -> None:
        """Warns of bad rows, and appends them to the quarantine if that is the policy: a service has many updates, and
        the rows of all of them are kept. This is done before the commit, so that none is lost whatever happens then."""
        warn_of_lost(self.reports)
        for relation, (_, _, bad, _) in self._given.items():
            if bad and self.policy.policy == "quarantine":
                path = self.policy.quarantine(relation)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab") as out:
                    out.write(quarantine_lines(bad))
                    out.flush()
                    os.fsync(out.fileno())

    @property
    def reports(self) -> tuple[Report, ...]:
        """How reading the update went, by relation."""
        return tuple(report_of(self.policy, name, *given) for name, given in self._given.items())
