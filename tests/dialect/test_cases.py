"""Small programs as people write them for Soufflé, with what its documentation says of them.

The files `*.cases` hold blocks: a line `=== name`, a program, and lines that begin with `%%` and say what is expected:

    %% r: 1, 'a' | 2, 'b'    the facts of a relation, as Python shows them; none after the colon: it is empty
    %% ok                    the program is evaluated
    %% check                 the program is accepted (it needs functions to be evaluated)
    %% error                 the program is refused
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program

BLOCK = re.compile(r"^=== (.*)\n((?:(?!===).*\n)*)", re.MULTILINE)


def cases() -> Iterator[tuple[str, str, list[str]]]:
    for file in sorted(Path(__file__).parent.glob("*.cases")):
        for name, text in BLOCK.findall(file.read_text(encoding="utf-8")):
            lines = text.splitlines()
            wanted = [line[2:].strip() for line in lines if line.startswith("%%")]
            yield f"{file.stem}: {name}", "\n".join(line for line in lines if not line.startswith("%%")), wanted


def rows(db: elastalog.Session, relation: str) -> list[str]:
    return sorted(str(tuple(row))[1:-1].rstrip(",") for row in db[relation])


CASES = list(cases())


def test_there_are_many_and_none_is_without_expectation() -> None:
    assert len(CASES) > 250
    assert len({name for name, _, _ in CASES}) == len(CASES)
    assert all(wanted for _, _, wanted in CASES)


@pytest.mark.parametrize(("program", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_program_means_what_is_documented(program: str, wanted: list[str]) -> None:
    if wanted == ["error"]:
        with pytest.raises(ElastalogError) as raised:
            elastalog.open(Program.parse(program, "program.dl"), facts={})
        assert all(found.code for found in raised.value.diagnostics)
        return
    checked = Program.parse(program, "program.dl")
    if wanted == ["check"]:
        return
    with elastalog.open(checked, facts={}, strategy="recompute") as db:
        for line in wanted:
            relation, colon, facts = line.partition(":")
            if colon:
                assert rows(db, relation) == sorted(fact.strip() for fact in facts.split(" | ") if fact.strip())


UPDATED = [
    case for case in CASES if case[0].startswith(("accepted", "functions")) and case[2][0] not in ("error", "check")
]


@pytest.mark.parametrize(("program", "wanted"), [case[1:] for case in UPDATED], ids=[case[0] for case in UPDATED])
def test_updates_give_what_evaluation_gives(program: str, wanted: list[str]) -> None:
    """Every explicit fact goes, and comes back: each time the facts are those of an evaluation of what is left."""
    checked = Program.parse(program, "program.dl")
    with elastalog.open(checked, facts={}, budget=None) as db:
        names = [name for name in db if not name.startswith("@")]
        given = {name: sorted(db.explicit(name), key=str) for name in names}
        told = [(name, row) for name, listed in given.items() for row in listed]
        for name, row in told:
            left = {n: [r for r in listed if (n, r) != (name, row)] for n, listed in given.items()}
            db.apply(deleted={name: [row]})
            assert {n: rows(db, n) for n in names} == evaluated(program, left), (name, row)
            db.apply(inserted={name: [row]})
            assert {n: rows(db, n) for n in names} == evaluated(program, given), (name, row)


def evaluated(program: str, facts: dict[str, list[tuple[object, ...]]]) -> dict[str, list[str]]:
    """All facts, those in the text of the program left out but for what is given."""
    with elastalog.open(Program.parse(program, "program.dl"), facts={}, strategy="recompute") as db:
        wanted = {name: set(known) for name, known in facts.items()}
        gone = {name: [r for r in db.explicit(name) if r not in wanted[name]] for name in wanted}
        if any(gone.values()):
            db.apply(deleted=gone)
        return {name: rows(db, name) for name in wanted}
