"""Operators are called from Python with what they were declared for, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from elastalog.jit import loading
from elastalog.jit.operators import operator_of
from tests.jit import declared


@pytest.fixture(scope="module")
def loaded() -> Callable[[Any], Callable[..., Any]]:
    """An operator's machine code, made and loaded as object code is."""
    lowering = pytest.importorskip("elastalog.jit.lowering")
    made: dict[str, Callable[..., Any]] = {}

    def load(operator: Any) -> Callable[..., Any]:
        operator = operator_of(operator)
        if operator.name not in made:
            made[operator.name] = loading._load(operator, lowering.object_code(operator))
        return made[operator.name]

    return load


def test_numbers_and_arrays_go_in_and_a_number_comes_out(loaded: Any) -> None:
    total = loaded(declared.total)
    rows = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert total(rows, 100, False) == 115
    assert total(rows, np.int64(-15), True) == 3
    assert total(rows[:0], -1, 0) == -1
    assert total(rows.view(np.memmap), 1 << 40, []) == (1 << 40) + 15


def test_truth_values(loaded: Any) -> None:
    assert loaded(declared.is_odd)(7) is True
    assert loaded(declared.is_odd)(-8) is False


def test_records_have_named_fields(loaded: Any) -> None:
    pairs = np.array([(1, 2, 3), (-4, 5, 6)], declared.PAIR)
    given = np.frombuffer(b"\x01\x02", np.uint8)
    assert not given.flags.writeable
    assert loaded(declared.swap)(pairs, given) is None
    assert pairs.tolist() == [(2, 1, 4), (5, -4, 8)]


def test_records_are_found_by_address_and_in_matrices(loaded: Any) -> None:
    pairs = np.array([(1, 2, 3), (-4, 5, 6)], declared.PAIR)
    rows = np.array([(10, 20), (30, 40)], np.int32)
    assert loaded(declared.moved)(pairs.ctypes.data, 2, rows) == 40
    assert rows.tolist() == [[10, 23], [30, 46]]


def _read_only(rows: Any) -> Any:
    rows.flags.writeable = False
    return rows


ROWS = np.zeros((4, 4), np.int32)


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2]],
        None,
        ROWS.astype(np.int64),
        ROWS.astype(np.uint32),
        ROWS.astype(np.float32),
        ROWS.astype(">i4"),
        ROWS[0],
        ROWS.reshape(2, 2, 4),
        ROWS[:, :2],
        ROWS.T[1:],
        _read_only(ROWS.copy()),
        np.frombuffer(bytearray(65), np.int32, 16, 1).reshape(4, 4),
    ],
)
def test_arrays_of_another_kind_are_refused(loaded: Any, rows: Any) -> None:
    with pytest.raises(TypeError, match=r"total: argument 1 is no int32 array of dimension 2"):
        loaded(declared.total)(rows, 1, True)


def test_records_of_another_size_are_refused(loaded: Any) -> None:
    with pytest.raises(TypeError, match="argument 1"):
        loaded(declared.swap)(np.zeros(2, [("left", "i8")]), np.zeros(2, np.uint8))


def test_no_number_and_too_large_a_number_are_refused(loaded: Any) -> None:
    total = loaded(declared.total)
    with pytest.raises(TypeError):
        total(ROWS, "1", True)
    with pytest.raises(TypeError):
        total(ROWS, 1.5, True)
    with pytest.raises(OverflowError):
        total(ROWS, 1 << 63, True)


@pytest.mark.parametrize("arguments", [(), (ROWS,), (ROWS, 1, True, 4)])
def test_the_number_of_arguments_counts(loaded: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="total takes 3 arguments"):
        loaded(declared.total)(*arguments)


def test_object_code_that_needs_numba_is_refused() -> None:
    lowering = pytest.importorskip("elastalog.jit.lowering")
    with pytest.raises(lowering.Unfit, match=r"declared\.reshaping needs numba_attempt_nocopy_reshape"):
        lowering.object_code(operator_of(declared.reshaping))


def test_arguments_are_neither_kept_nor_lost(loaded: Any) -> None:
    import gc
    import sys

    rows = np.zeros((2, 2), np.int32)
    gc.collect()  # the garbage of other tests refers to None, too
    before = sys.getrefcount(rows), sys.getrefcount(None)
    for _ in range(1000):
        loaded(declared.total)(rows, 1, True)
        loaded(declared.swap)(np.zeros(1, declared.PAIR), np.zeros(1, np.uint8))
    assert sys.getrefcount(rows) == before[0]
    assert abs(sys.getrefcount(None) - before[1]) < 100
