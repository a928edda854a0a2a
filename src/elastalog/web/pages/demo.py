"""The scenario of `elastalog workbench --demo`: services that call each other, and secrets that must not leak.

Five updates lead to the present; the last one, a deployment of twelve changes, has two mistakes in it. Without a
program, `elastalog workbench` starts with an empty one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from elastalog.pipeline.files.diff import Diff, read_diff, update_files

if TYPE_CHECKING:
    from elastalog.session import Session
    from elastalog.web.service import Service
from elastalog.web.writing import edits

SCENARIO: Final = Path(__file__).with_name("scenario")
"""The program, the facts of the first epoch, and the updates."""

EMPTY: Final = """\
// Paste facts beside this text, then write rules here, as in
//   .decl head(x: symbol)
//   head(x) :- body(x).
"""


def open_demo(store: Path) -> Session:
    """A session of the first epoch, in a new folder, so that it has a history."""
    import elastalog

    program = elastalog.Program.parse((SCENARIO / "services.dl").read_text(), "services.dl")
    return elastalog.open(program, SCENARIO, store=store)


def open_empty(store: Path) -> Session:
    """A session of an empty program, in a folder."""
    import elastalog

    return elastalog.open(elastalog.Program.parse(EMPTY, "new.dl"), store=store)


def updates(session: Session) -> list[tuple[str, Diff]]:
    """Who made each update, and what it inserted and deleted."""
    files = update_files(SCENARIO / "updates")
    return [(file.stem[2:].replace("-", " "), read_diff(file, session.schemas)) for file in files]


def live_through(service: Service) -> None:
    """Makes the epochs that lead to the present."""
    for source, diff in service.reading.look(updates):
        service.writing.commit(edits(diff.inserted, diff.deleted), source=source)
