"""Another thread may be importing pandas while rows are looked at."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from elastalog.relations.tables import is_pandas


def test_a_half_imported_pandas_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    assert not is_pandas([(1, 2)])
