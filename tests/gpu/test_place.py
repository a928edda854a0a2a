"""Which strata go to a device, and what the log says of those that do not."""

from __future__ import annotations

import logging
from typing import cast

import numpy as np
import pytest

from elastalog.backends.gpu.arrays import Arrays, NoRoom
from elastalog.backends.gpu.place import DevicePlace
from elastalog.backends.gpu.sorted_facts import SortedIndex
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

PROGRAM = Program.parse(
    """
    .decl e(x: number, y: number)
    .decl pass(x: number)
    pass(x) :- e(x, _).
    .decl path(x: number, y: number)
    path(x, y) :- e(x, y).
    path(x, z) :- path(x, y), e(y, z).
    .decl most(x: number, m: number)
    most(x, m) :- e(x, _), m = max y : { e(x, y) }.
    """
)
STRATA = lower(PROGRAM.checked).strata
(PASS,) = (stratum for stratum in STRATA if "pass" in stratum.relations)
(PATH,) = (stratum for stratum in STRATA if "path" in stratum.relations)
(MOST,) = (stratum for stratum in STRATA if stratum.aggregate is not None)


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, facts in (("device_asked_from", 10), ("device_once_from", 20), ("device_from", 30)):
        monkeypatch.setattr(SETTINGS, name, facts)


class _Full(Arrays):
    """A device on which there is no room for anything: who gets so far goes there."""

    def claim(self, size: int) -> None:
        raise NoRoom


def _reason(stratum: LogicalStratum, size: int, caplog: pytest.LogCaptureFixture, *, is_asked: bool) -> str:
    """What the log says of a stratum that reads so many facts, where there is a device."""
    caplog.set_level(logging.INFO, "elastalog.placement")
    caplog.clear()
    there = DevicePlace(
        _Full(np, is_device=True), Dictionary(), PROGRAM.checked.source, Watch(), is_asked=is_asked
    )  # fmt: skip
    facts = np.arange(2 * size, dtype=np.int32).reshape(-1, 2)
    if stratum.aggregate is not None:
        assert there.fold(stratum, facts, None) is None
    else:
        own = dict.fromkeys(stratum.relations, facts[:0])
        assert there.evaluate(stratum, {"e": facts, **own}, {}) is None
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith(f"stratum {stratum.number} ({stratum.relations[0]}): in this process: ")
    return message


@pytest.mark.parametrize(
    ("stratum", "asked", "auto"), [(PATH, 10, None), (PASS, 20, None), (MOST, 10, 30)], ids=["path", "pass", "most"]
)
def test_small_strata_stay_in_this_process_and_the_log_says_why(
    stratum: LogicalStratum, asked: int, auto: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    for is_asked, least in ((True, asked), (False, auto)):
        if least is None:
            why = "begun here; a GPU goes on" if stratum.is_recursive else "without recursion"
            assert why in _reason(stratum, 1000, caplog, is_asked=is_asked)
            continue
        few = _reason(stratum, least - 1, caplog, is_asked=is_asked)
        assert few.endswith(f"{least - 1:,} facts are not worth the transfer, {least:,} would be")
        assert "has no room" in _reason(stratum, least, caplog, is_asked=is_asked)


@pytest.mark.parametrize("size", [100, 500])
def test_a_pass_over_what_is_there_goes_there(size: int) -> None:
    place = DevicePlace(Arrays(np, is_device=True), Dictionary(), PROGRAM.checked.source, Watch(), is_asked=False)
    place._kept["e"] = cast(SortedIndex, range(size))
    assert place._is_worth_it(PASS, 600, size) == (size == 500)
    place.keep(lambda name: name != "e")
    assert not place._kept


def test_the_twin_takes_everything(caplog: pytest.LogCaptureFixture) -> None:
    there = DevicePlace(
        Arrays(np, is_device=False), Dictionary(), PROGRAM.checked.source, Watch(), is_asked=True
    )  # fmt: skip
    folded = there.fold(MOST, np.array([[1, 2], [1, 5], [3, 4]], np.int32), None)
    assert folded.rows.tolist() == [[1, 5], [3, 4]]
    assert folded.levels is None
