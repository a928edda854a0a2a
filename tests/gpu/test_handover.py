"""Strata that the kernel begins with and a device goes on with give the same facts, levels and counts, and go there when
enough is left: on costs of machines that were recorded."""

from __future__ import annotations

import logging

import pytest

import elastalog
from elastalog.backends.gpu import forecast, place, rounds, starting
from elastalog.backends.gpu.arrays import Arrays
from elastalog.backends.gpu.forecast import Forecast
from elastalog.backends.kernel.bootstrap import begun
from elastalog.backends.kernel.bootstrap.begun import SoFar
from elastalog.settings import SETTINGS
from tests.generators.seeded import seeded_case
from tests.gpu.test_engine import CLOSURE, NEVER, _state

CHAIN = {"edge": [(n, n + 1) for n in range(60)]}


@pytest.fixture
def eager(emulated: Arrays, monkeypatch: pytest.MonkeyPatch) -> Arrays:
    """Every stratum goes on there after its first round."""
    monkeypatch.setattr(begun, "_FIRST_LOOK", 0)
    monkeypatch.setattr(begun, "_A_LOOK", 0.0)
    monkeypatch.setattr(place, "forecast", lambda so_far: Forecast(10.0, 0.1))
    return emulated


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("patience", [NEVER, 2], ids=["to the end", "and comes back"])
@pytest.mark.parametrize("machine", [0, 100], ids=["from the machine", "from rounds"])
@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_what_goes_on_there_is_the_same(
    patience: int, machine: int, strategy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rounds, "PATIENCE", patience)
    monkeypatch.setattr(SETTINGS, "machine_after", machine)
    caplog.set_level(logging.INFO, "elastalog.placement")
    for seed in range(4):
        program, updates = seeded_case(seed)
        both = [
            elastalog.open(program.text, facts=program.facts, engine=engine, strategy=strategy)
            for engine in ("local", "auto")
        ]
        for update in [None, *updates]:
            if update is not None:
                for db in both:
                    db.apply(inserted=update.inserted, deleted=update.deleted)
            here, there = (_state(db, strategy == "elastic") for db in both)
            assert here == there, (seed, update)
    both = [elastalog.open(CLOSURE, facts=CHAIN, engine=engine, strategy=strategy) for engine in ("local", "auto")]
    assert _state(both[0]) == _state(both[1])
    assert any("on the GPU after" in record.message for record in caplog.records)
    for db in both:
        db.apply({}, {"edge": [(30, 31)]})
    assert _state(both[0]) == _state(both[1])


@pytest.mark.usefixtures("eager")
def test_what_fails_there_goes_on_here(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    expected = _state(elastalog.open(CLOSURE, facts=CHAIN, engine="local"))
    limits = elastalog.Limits(device_memory=100)
    assert _state(elastalog.open(CLOSURE, facts=CHAIN, engine="auto", limits=limits)) == expected
    assert sum("has no room" in record.message for record in caplog.records) == 1


def test_a_device_is_started_when_a_stratum_takes_long_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []
    monkeypatch.setattr(starting, "is_there", lambda: True)
    monkeypatch.setattr(starting, "is_ready", lambda: False)
    monkeypatch.setattr(starting, "seconds", lambda: 0.5)
    monkeypatch.setattr(starting, "begin", lambda: started.append(True))
    db = elastalog.open(CLOSURE, facts={"edge": [(1, 2)]}, engine="auto")
    there = db._backend.evaluation._place
    stratum = next(one for one in db._backend.program.strata if one.is_recursive)
    assert not there.wants(stratum, SoFar(0.1, 100_000, 100_000, 0.1, 50_000, 50_000, 50_000))
    assert not started
    assert not there.wants(stratum, SoFar(3.0, 3_000_000, 300_000, 0.3, 500_000, 500_000, 50_000))
    assert started


def test_the_start_of_a_device_is_remembered(emulated: Arrays) -> None:
    assert emulated.is_device
    assert starting.is_ready()
    assert starting.seconds() < starting.USUAL


@pytest.mark.parametrize(
    ("so_far", "is_there"),
    [
        (SoFar(0.03, 30_000, 30_000, 0.03, 300, 3_000, 60_000), False),  # CRDT
        (SoFar(0.3, 500_000, 200_000, 0.1, 40_000, 90_000, 400_000), False),  # Doop: rounds are getting smaller
        (SoFar(0.4, 2_000_000, 700_000, 0.12, 600_000, 600_000, 1_000_000), True),  # Galen
        (SoFar(0.25, 9_000_000, 3_000_000, 0.25, 3_000_000, 3_000_000, 50_000), True),  # CA-HepTh
        (SoFar(0.2, 900_000, 400_000, 0.1, 9_000, 9_000, 120_000), False),  # luxembourg: long and thin
    ],
)
def test_what_is_worth_it_on_recorded_machines(so_far: SoFar, is_there: bool) -> None:
    assert forecast.forecast(so_far).is_better_there(wait=0.0) == is_there
