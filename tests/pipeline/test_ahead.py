"""Files are read ahead of those that use them: what comes out, and what goes wrong, is the same with every number of
threads."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.backends.watch import Watch
from elastalog.pipeline.files.ahead import read_ahead
from elastalog.pipeline.files.allowance import Allowance, allowance, reading_within

PROGRAM = "".join(f".decl r{i}(x: symbol, y: number)\n.input r{i}\n" for i in range(6))


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """Each file has texts of the one before, and new ones."""
    for i in range(6):
        (tmp_path / f"r{i}.facts").write_text("".join(f"text {n}\t{-n}\n" for n in range(50 * i, 50 * i + 100)))
    return tmp_path


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_come_in_order_and_few_are_ahead(threads: int) -> None:
    begun: list[int] = []

    def read(number: int) -> int:
        begun.append(number)
        return number

    for number in read_ahead((partial(read, i) for i in range(9)), threads):
        assert set(range(number + 1)) <= set(begun)
        assert len(begun) <= number + 1 + threads
    assert sorted(begun) == list(range(9))
    assert list(read_ahead([], threads)) == []


def test_what_a_read_raises_is_raised_in_its_turn() -> None:
    def read(number: int) -> int:
        if number == 1:
            raise ValueError("the second")
        return number

    coming = read_ahead((partial(read, i) for i in range(4)), 2)
    assert next(coming) == 0
    with pytest.raises(ValueError, match="the second"):
        next(coming)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("elastalog reading")]


def test_limits_hold_in_the_other_thread() -> None:
    allowed = Allowance(Watch(), 7)
    with reading_within(allowed):
        assert list(read_ahead([allowance, allowance], 2)) == [allowed, allowed]


def test_ids_do_not_depend_on_threads(facts: Path) -> None:
    known = []
    for jobs in (1, 2, 3):
        with elastalog.open(PROGRAM, facts=facts, jobs=jobs, engine="local") as db:
            symbols = db._materialisation.dictionary.symbols
            known.append((symbols.strings_from(0), {name: sorted(db[name]) for name in db}))
    assert known[0] == known[1] == known[2]
    assert known[0][0] == [f"text {n}" for n in range(350)]
    assert len(known[0][1]["r5"]) == 100


def test_the_first_file_that_is_wrong_is_named(facts: Path) -> None:
    (facts / "r2.facts").write_text("text\tno number\n")
    (facts / "r3.facts").unlink()
    messages = []
    for jobs in (1, 2):
        with pytest.raises(ElastalogError) as error:
            elastalog.open(PROGRAM, facts=facts, jobs=jobs, engine="local")
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "r2.facts" in messages[0]
