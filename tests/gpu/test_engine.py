"""`engine="gpu"` gives the facts, levels and counts that the kernel gives: on NumPy, which runs the same code, and on a
device that is emulated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import elastalog
from elastalog.backends.gpu import arrays, found, place, rounds
from elastalog.planning.lower import lower
from elastalog.settings import SETTINGS
from tests.closures import CLOSURE
from tests.engine.judging import Kind, state_of
from tests.gpu.comparing import compare_random
from tests.gpu.conftest import Claims

PROGRAMS = Path(__file__).parent.parent / "programs"
FOLDERS = sorted(path.parent for path in PROGRAMS.glob("*/program.dl"))
NEVER = 1 << 60


SIZES = {"to the end": (NEVER, 1 << 20), "handed over, small chunks": (2, 3)}
"""When a stratum is handed over, and how large pieces and chunks are."""


@contextmanager
def sized(name: str) -> Iterator[None]:
    patience, chunk = SIZES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found, "PIECE", chunk)
        patch.setattr(SETTINGS, "device_patience", patience)
        patch.setattr(place, "CHUNK", chunk)
        yield


@pytest.fixture(params=SIZES)
def sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    with sized(request.param):
        yield


@pytest.fixture(params=["NumPy", "emulated"])
def device(request: pytest.FixtureRequest) -> str:
    """Where programs run."""
    if request.param == "emulated":
        request.getfixturevalue("emulated")
    return str(request.param)


def evaluated_there(folder: Path, levels: Kind = "local") -> Iterator[elastalog.Session]:
    """Sessions of a program folder on a device, one for each of the sizes: with what the kernel has."""
    facts = folder / "facts" if (folder / "facts").is_dir() else None
    try:
        expected = state_of(elastalog.open(folder / "program.dl", facts=facts, engine="local", levels=levels))
    except elastalog.ElastalogError:
        assert levels == "global", "choices, subsumption and `.limitsize` have local levels only"
        return
    for name in SIZES:
        with sized(name):
            there = elastalog.open(folder / "program.dl", facts=facts, engine="gpu", levels=levels)
            assert state_of(there) == expected, name
            yield there


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("folder", FOLDERS[::6], ids=lambda folder: folder.name)
def test_program_folders_on_a_device(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    assert len(list(evaluated_there(folder))) == len(SIZES)
    assert not any("on NumPy" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_program_folders(folder: Path) -> None:
    assert len(list(evaluated_there(folder))) == len(SIZES)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_program_folders_with_global_levels(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    for there in evaluated_there(folder, "global"):
        derives = any(stratum.clauses for stratum in lower(there.program.checked).strata)
        told = [record.getMessage() for record in caplog.records]
        assert any("on NumPy" in text or "on the GPU" in text for text in told) == derives
        caplog.clear()


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize(("strategy", "levels"), [("elastic", "local"), ("recompute", "local"), ("elastic", "global")])
def test_random_programs_and_updates(strategy: str, levels: str, device: str) -> None:
    compare_random(range(3 if device == "emulated" else 15), "gpu", strategy, levels=levels)


@pytest.mark.usefixtures("device")
def test_rows_that_need_several_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "device_patience", NEVER)
    program = """
    .decl e, p(a: number, b: number, c: number, d: number, f: number)
    p(a, b, c, d, f) :- e(a, b, c, d, f).
    p(a, b, c, d, f + 1) :- p(x, b, c, d, f), e(a, x, _, _, _), f < 1000000003.
    """
    rng = np.random.default_rng(7)
    facts = [tuple(int(n) for n in row) for row in rng.integers(-(1 << 29), 1 << 29, (60, 5)).tolist()]
    facts += [(a % 7, a % 5, b, c, 1_000_000_000) for a, b, c, _, _ in facts]
    here = elastalog.open(program, facts={"e": facts}, engine="local")
    there = elastalog.open(program, facts={"e": facts}, engine="gpu")
    assert state_of(there) == state_of(here)
    assert len(there["p"]) > len(facts)


CYCLE = {"edge": [(n, (n + 1) % 9) for n in range(9)]}


@pytest.mark.usefixtures("device")
def test_without_room_the_kernel_takes_over(
    claims: Claims, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At every place where memory is asked for."""
    expected = state_of(elastalog.open(CLOSURE, facts=CYCLE, engine="local"))
    monkeypatch.setattr(SETTINGS, "device_patience", NEVER)
    monkeypatch.setattr(found, "PIECE", 20)
    elastalog.open(CLOSURE, facts=CYCLE, engine="gpu")
    every = claims.number
    assert every > 20
    caplog.set_level(logging.INFO, "elastalog.placement")
    for _ in claims.each():
        assert state_of(elastalog.open(CLOSURE, facts=CYCLE, engine="gpu")) == expected
    assert sum("has no room" in record.getMessage() for record in caplog.records) == every


STRATA = """
.decl edge, road, path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl both(x: number, y: number)
both(x, y) :- path(x, y), path(y, x).
.decl reached(x: number, n: number)
reached(x, n) :- edge(x, _), n = count : { path(x, _) }.
.decl onward(x: number, y: number)
onward(x, y) :- both(x, y).
onward(x, z) :- onward(x, y), road(y, z), !path(x, z).
"""


@pytest.mark.parametrize("patience", [NEVER, 0], ids=["all of path", "the first facts of path"])
def test_what_a_stratum_leaves_there_is_not_sent_again(monkeypatch: pytest.MonkeyPatch, patience: int) -> None:
    monkeypatch.setattr(SETTINGS, "device_patience", patience)
    monkeypatch.setattr(rounds, "FEW", 0 if patience else NEVER)
    monkeypatch.setattr(rounds, "INDEXED", NEVER)
    facts = {"edge": [(n, (n + 1) % 40) for n in range(40)], "road": [(n, n + 40) for n in range(80)]}
    here = elastalog.open(STRATA, facts=facts, engine="local")
    sent: list[int] = []
    send = arrays.Carrier.send
    monkeypatch.setattr(arrays.Carrier, "send", lambda self, array: sent.append(len(array)) or send(self, array))
    there = elastalog.open(STRATA, facts=facts, engine="gpu")
    assert state_of(there) == state_of(here)
    assert len(there["path"]) == len(there["both"]) == 1600
    assert max(sent) == 80 if patience else 1520 <= max(sent) < 1600
    for side in (there, here):  # a stratum that is evaluated anew in an update sees what is there then
        side.apply(deleted={"edge": [(3, 4)]}, inserted={"road": [(200, 201)]})
    assert state_of(there) == state_of(here)


def test_it_says_that_there_is_no_gpu(caplog: pytest.LogCaptureFixture) -> None:
    if arrays.on_device() is not None:
        pytest.skip("there is a GPU")
    caplog.set_level(logging.INFO, "elastalog.placement")
    elastalog.open(CLOSURE, facts=CYCLE, engine="gpu")
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "there is no GPU" in warnings[0].message
    assert any("on NumPy in place of a GPU: " in record.getMessage() for record in caplog.records)


def test_what_is_computed_from_texts_is_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "device_patience", NEVER)
    program = """
    .decl word(w: symbol)
    .decl grown(w: symbol, n: number)
    grown(w, 0) :- word(w).
    grown(cat(w, "x"), n + 1) :- grown(w, n), n < 4, strlen(w) < 20, w != "stop".
    """
    facts = {"word": [("a",), ("stop",), ("ab",)]}
    here = elastalog.open(program, facts=facts, engine="local")
    assert state_of(elastalog.open(program, facts=facts, engine="gpu")) == state_of(here)


def test_what_it_cost_is_in_the_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "device_patience", NEVER)
    db = elastalog.open(CLOSURE, facts=CYCLE, engine="gpu")
    (cost,) = (part for part in db.statistics().elsewhere if "path" in part.bytes)
    assert (cost.rounds, cost.derivations) == (10, 90)  # nine facts by the first rule, nine from each of nine rounds
    assert cost.bytes["path"] >= 8 * 81
    assert cost.peak > 0
    assert elastalog.open(CLOSURE, facts=CYCLE, engine="local").statistics().elsewhere == ()


def test_no_more_memory_than_allowed_is_used(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    db = elastalog.open(CLOSURE, facts=CYCLE, engine="gpu", limits=elastalog.Limits(device_memory=100))
    assert any("has no room" in record.getMessage() for record in caplog.records)
    assert len(db["path"]) == 81
