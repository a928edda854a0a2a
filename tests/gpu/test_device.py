"""The module that runs on devices, on one that is emulated: its arrays are those of NumPy, and programs give the facts,
levels and counts of the kernel."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.gpu import found, fused, place
from elastalog.backends.gpu.arrays import Arrays
from elastalog.backends.gpu.device_arrays import SMALL, TILE, distinct
from elastalog.settings import SETTINGS
from tests.gpu.comparing import compare_random, state
from tests.gpu.conftest import Claims
from tests.gpu.test_engine import CLOSURE, CYCLE, FOLDERS, NEVER


@pytest.mark.parametrize("size", [0, 1, 2, 33, SMALL, SMALL + 1, TILE + 1, 9_000])
def test_arrays_are_those_of_numpy(emulated: Arrays, size: int) -> None:
    module = emulated.module
    rng = np.random.default_rng(size)
    many, few = rng.integers(0, 1 << 37, size), rng.integers(0, 50, size)
    signed = rng.integers(-5, 5, size).astype(np.int32)
    large, small, words = map(module.asarray, (many, few, signed))

    def same(found: Any, expected: Any) -> None:
        assert found.dtype == expected.dtype
        assert found.get().tolist() == expected.tolist()

    same(large, many)
    same(module.sort(large, 37), np.sort(many))
    same(module.lexsort((large, small)), np.lexsort((many, few)))
    same(module.cumsum(large), np.cumsum(many))
    same(module.cumsum(words), np.cumsum(signed, dtype=np.int64))
    same((small == 3).nonzero()[0], np.flatnonzero(few == 3))
    same(module.minimum(small, 7), np.minimum(few, 7))
    same(module.concatenate((large, large[3:])), np.concatenate((many, many[3:])))
    same(words.astype(np.int64) * 3 - large + np.int64(7), signed.astype(np.int64) * 3 - many + 7)
    same((large >> 5) & 1023 | small << 3, (many >> 5) & 1023 | few << 3)
    same(~(words < 0), ~(signed < 0))
    same(-words, -signed)
    same(module.arange(3, size + 3), np.arange(3, size + 3))
    same(module.full(size, np.int32(-2), np.int32), np.full(size, -2, np.int32))
    same(module.zeros(size, bool), np.zeros(size, bool))
    for operator in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        same(getattr(words, operator)(2), getattr(signed, operator)(2))
        same(getattr(small, operator)(large), getattr(few, operator)(many))
    assert ((words >= np.int32(3)) | (words == -5)).any() == bool(((signed >= 3) | (signed == -5)).any())
    order = np.sort(many)
    same(module.searchsorted(module.asarray(order), small, side="right"), np.searchsorted(order, few, "right"))
    if size:
        assert (words.min(), large.max()) == (signed.min(), many.max())
        assert (int(words[-1]), int(large[0])) == (signed[-1], many[0])
        places = rng.integers(0, size, size)
        same(large[module.asarray(places)], many[places])
        values, numbers = distinct(module.sort(small, 6))
        expected = np.unique(few, return_counts=True)
        same(values, expected[0])
        same(numbers, expected[1])
        once = module.zeros(size, np.int64)
        once[module.asarray(rng.permutation(size))] = large
        assert sorted(once.get().tolist()) == order.tolist()


def test_what_is_given_back_is_free_again(emulated: Arrays) -> None:
    before = emulated.held()
    keys = emulated.module.arange(1000)
    part = keys[10:20]
    del keys
    assert emulated.held() == before + 8000
    assert part.get().tolist() == list(range(10, 20))
    del part
    assert emulated.held() == before


def test_rows_of_many_columns(emulated: Arrays) -> None:
    module = emulated.module
    rows = np.random.default_rng(2).integers(0, 8, (100, 20)).astype(np.int32)
    there = module.asarray(rows)
    keys = fused.packed(module, [there[:, n] for n in range(16)], [(0, 3 * n) for n in range(16)])
    columns = [(keys, 3 * (n % 16), 7, -1) for n in range(20)]
    for n, column in enumerate(fused.unpacked(module, columns)):
        assert column.get().tolist() == (rows[:, n % 16] - 1).tolist()
    (matrix,) = fused.unpacked(module, columns, is_matrix=True)
    assert matrix.get()[:, 16:].tolist() == (rows[:, :4] - 1).tolist()


@pytest.fixture(params=[(NEVER, 1 << 20), (2, 3)], ids=["to the end", "handed over, small chunks"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    patience, chunk = request.param
    monkeypatch.setattr(found, "PIECE", chunk)
    monkeypatch.setattr(SETTINGS, "device_patience", patience)
    monkeypatch.setattr(place, "CHUNK", chunk)


@pytest.mark.usefixtures("sizes", "emulated")
@pytest.mark.parametrize("folder", FOLDERS[::6], ids=lambda folder: folder.name)
def test_programs(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    facts = folder / "facts" if (folder / "facts").is_dir() else None
    there = elastalog.open(folder / "program.dl", facts=facts, engine="gpu")
    assert state(there) == state(elastalog.open(folder / "program.dl", facts=facts, engine="local"))
    assert not any("on NumPy" in record.getMessage() for record in caplog.records)


@pytest.mark.usefixtures("sizes", "emulated")
@pytest.mark.parametrize(("strategy", "levels"), [("elastic", "local"), ("recompute", "local"), ("elastic", "global")])
def test_random_programs_and_updates(strategy: str, levels: str) -> None:
    compare_random(range(3), "gpu", strategy, levels=levels)


@pytest.mark.usefixtures("emulated")
def test_rows_that_need_several_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "device_patience", NEVER)
    program = """
    .decl e, p(a: number, b: number, c: number, d: number)
    p(a, b, c, d) :- e(a, b, c, d).
    p(a, b, c, d + 1) :- p(x, b, c, d), e(a, x, _, _), d < 1000000003.
    """
    rng = np.random.default_rng(7)
    facts = [tuple(int(n) for n in row) for row in rng.integers(-(1 << 29), 1 << 29, (60, 4)).tolist()]
    facts += [(a % 7, a % 5, b, 1_000_000_000) for a, b, _, _ in facts]
    here = elastalog.open(program, facts={"e": facts}, engine="local")
    there = elastalog.open(program, facts={"e": facts}, engine="gpu")
    assert state(there) == state(here)
    assert len(there["p"]) > len(facts)


@pytest.mark.usefixtures("emulated")
def test_without_room_the_kernel_takes_over(claims: Claims, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = state(elastalog.open(CLOSURE, facts=CYCLE, engine="local"))
    monkeypatch.setattr(SETTINGS, "device_patience", NEVER)
    monkeypatch.setattr(found, "PIECE", 20)
    elastalog.open(CLOSURE, facts=CYCLE, engine="gpu")
    for _ in claims.each():
        assert state(elastalog.open(CLOSURE, facts=CYCLE, engine="gpu")) == expected
