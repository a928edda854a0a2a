"""Strata that the kernel begins with and a device goes on with give the same facts, levels and counts, and go there
when enough is left: on the course of evaluations that was recorded on a machine with a device."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import elastalog
from elastalog.backends.gpu import place, starting
from elastalog.backends.gpu.arrays import Arrays
from elastalog.backends.gpu.place import Forecast, forecast
from elastalog.backends.kernel.bootstrap.first_epoch import FirstEpoch
from elastalog.backends.kernel.bootstrap.handover import SoFar
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.settings import SETTINGS
from tests.engine.judging import state_of
from tests.gpu.comparing import compare_random
from tests.gpu.test_engine import CLOSURE, NEVER

CHAIN = {"edge": [(n, n + 1) for n in range(60)]}


@pytest.fixture
def eager(emulated: Arrays, monkeypatch: pytest.MonkeyPatch) -> Arrays:
    """Every stratum goes on there after its first round."""
    monkeypatch.setattr(SETTINGS, "device_first_look", 0)
    monkeypatch.setattr(SETTINGS, "device_look", 0.0)
    monkeypatch.setattr(place, "forecast", lambda so_far, variants: Forecast(10.0, 0.1, 1_000_000))
    return emulated


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("patience", [NEVER, 2], ids=["to the end", "and comes back"])
@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_what_goes_on_there_is_the_same(
    patience: int, strategy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SETTINGS, "device_patience", patience)
    caplog.set_level(logging.INFO, "elastalog.placement")
    compare_random(range(4), "auto", strategy)
    both = [elastalog.open(CLOSURE, facts=CHAIN, engine=engine, strategy=strategy) for engine in ("local", "auto")]
    assert state_of(both[0]) == state_of(both[1])
    assert any("on the GPU after" in record.getMessage() for record in caplog.records)
    for db in both:
        db.apply({}, {"edge": [(30, 31)]})
    assert state_of(both[0]) == state_of(both[1])


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("nodes", [12, 90])
def test_a_later_session_begins_here_in_one_call_and_what_gets_large_goes_on_there(
    nodes: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    monkeypatch.setattr(SETTINGS, "device_first_look", 2_000)
    calls, run = [], FirstEpoch.run
    monkeypatch.setattr(FirstEpoch, "run", lambda self, *given: calls.append(self) or run(self, *given))
    program = Program.parse(CLOSURE)
    for number in range(3):
        caplog.clear()
        first = 500 if nodes == 90 and not number else 0  # nothing gets large in the first session
        edges = {"edge": [(node, first + (node + 1) % nodes) for node in range(nodes)]}
        db = elastalog.open(program, facts=edges, engine="auto")
        assert len(calls) == number
        assert state_of(db) == state_of(elastalog.open(CLOSURE, facts=edges, engine="local"))
        goes_on = any("on the GPU after" in record.getMessage() for record in caplog.records)
        assert goes_on == (nodes == 90 and number > 0)
        assert {one.where for one in db.statistics().places} == {"gpu" if goes_on else "kernel"}


@pytest.mark.usefixtures("eager")
def test_what_fails_there_goes_on_here(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    expected = state_of(elastalog.open(CLOSURE, facts=CHAIN, engine="local"))
    limits = elastalog.Limits(device_memory=100)
    assert state_of(elastalog.open(CLOSURE, facts=CHAIN, engine="auto", limits=limits)) == expected
    assert sum("has no room" in record.getMessage() for record in caplog.records) == 1


def test_a_device_is_started_when_a_stratum_takes_long_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []
    monkeypatch.setattr(starting, "is_there", lambda: True)
    monkeypatch.setattr(starting, "is_ready", lambda: False)
    monkeypatch.setattr(starting, "seconds", lambda: 0.5)
    monkeypatch.setattr(starting, "begin", lambda: started.append(True))
    db = elastalog.open(CLOSURE, facts={"edge": [(1, 2)]}, engine="auto")
    there = db._backend.evaluation.place
    stratum = next(one for one in db._backend.program.strata if one.is_recursive)
    assert not there.wants(stratum, SoFar(0.1, 100_000, 100_000, 0.1, 2, True, 50_000, 50_000, 50_000))
    assert not started
    assert not there.wants(stratum, SoFar(3.0, 3_000_000, 300_000, 0.3, 1, True, 500_000, 500_000, 50_000))
    assert started


@pytest.mark.parametrize("wait", [0.0, 1.0], ids=["handed over", "at once"])
def test_a_device_that_cannot_be_started_after_all_leaves_a_stratum_here(
    wait: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "device_at_once_wait", wait)
    monkeypatch.setattr(starting, "is_there", lambda: True)
    monkeypatch.setattr(starting, "seconds_left", lambda: 0.01)
    monkeypatch.setattr(starting, "begin", lambda: None)
    monkeypatch.setattr("elastalog.backends.gpu.arrays.on_device", lambda room: None)
    for name, value in (("device_first_look", 0), ("device_look", 0.0), ("device_from", 0), ("device_growth", 0.0)):
        monkeypatch.setattr(SETTINGS, name, value)
    monkeypatch.setattr(place, "forecast", lambda so_far, variants: Forecast(10.0, 0.1, 1_000_000))
    assert len(elastalog.open(CLOSURE, facts=CHAIN, engine="auto")["path"]) == 60 * 61 // 2


def test_the_start_of_a_device_is_remembered(emulated: Arrays) -> None:
    assert emulated.is_device
    assert starting.is_ready()
    assert starting.seconds() < starting.USUAL


RECORDED = json.loads((Path(__file__).parent / "recorded_h200.json").read_text(encoding="utf-8"))
"""How far the kernel was with the recursive stratum of workloads that took longest, whenever it asked: 16 threads of a
machine with an H200, whose start took 0.35 s."""
VARIANTS = {"doop": 46, "galen": 11, "el-completion-large": 11, "points-to": 4}
"""What rules run in a round, where that is more than two."""
GO_THERE = {"closure-CA-HepTh", "closure-Gnutella", "closure-SF", "closure-wiki", "el-completion-large", "galen"}


@pytest.mark.parametrize("work", RECORDED)
def test_what_goes_there_on_a_recorded_machine(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started when the stratum begins, or when it takes long; started ahead, most go there at the second look."""
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    gone = [_gone_after(work, is_ahead) for is_ahead in (False, True)]
    assert [seconds is not None for seconds in gone] == [work in GO_THERE] * 2
    if gone[0] is not None and gone[1] is not None:
        assert gone[1] < 0.45
        assert gone[1] <= gone[0]


def _gone_after(work: str, is_ahead: bool) -> float | None:
    ready = 0.15 if is_ahead else None
    for so_far in (SoFar(*numbers) for numbers in RECORDED[work]):
        guess = forecast(so_far, VARIANTS.get(work, 2))
        if ready is None:
            ready = so_far.seconds + 0.35 if place.is_worth_a_start(so_far, guess, 0.35) else None
        elif so_far.seconds >= ready and guess.is_better_there():
            return so_far.seconds
    return None


@pytest.mark.parametrize(("facts", "cores", "is_begun"), [(2_000, 16, False), (40_000, 16, True), (40_000, 2, False)])
@pytest.mark.parametrize("kind", ["rows", "folder"])
def test_a_device_is_started_beside_the_reading_of_many_facts(
    facts: int, cores: int, is_begun: bool, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[bool] = []
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr(starting, "is_there", lambda: True)
    monkeypatch.setattr(starting, "begin", lambda: begun.append(True))
    rows = [(1_000_000 + number, 1_000_000) for number in range(facts)]
    if kind == "folder":
        (tmp_path / "edge.facts").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    program = CLOSURE + (".input edge\n" if kind == "folder" else "")
    elastalog.open(program, facts={"edge": rows} if kind == "rows" else tmp_path, engine="auto", jobs=1)
    assert bool(begun) == is_begun


def test_a_machine_with_few_cores_starts_a_device_only_for_what_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    early = SoFar(*RECORDED["closure-CA-HepTh"][1])
    for cores, is_started in ((2, False), (16, True)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        assert place.is_worth_a_start(early, forecast(early, 1), 0.35) == is_started


def test_what_is_large_from_the_start_goes_there_at_once_and_what_was_seen_early_is_not_believed(
    eager: Arrays, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    dense = {"edge": [(a, b) for a in range(9) for b in range(9) if (a + b) % 2]}
    monkeypatch.setattr(SETTINGS, "device_from", 30)
    for facts, least, variants, where in (
        (CHAIN, 50, 16, "on the GPU: "), (CHAIN, 50, 0, "begun here"), (CHAIN, 500, 16, "begun here"),
        (dense, 500, 16, "on the GPU: "), (dense, 500, 0, "begun here"), (dense["edge"][:20], 500, 16, "begun here"),
    ):  # fmt: skip
        given = facts if isinstance(facts, dict) else {"edge": facts}
        monkeypatch.setattr(SETTINGS, "device_at_once_from", least)
        monkeypatch.setattr(SETTINGS, "device_most_variants", variants)
        expected = state_of(elastalog.open(CLOSURE, facts=given, engine="local"))
        caplog.clear()
        assert state_of(elastalog.open(CLOSURE, facts=given, engine="auto")) == expected
        assert where in next(record.getMessage() for record in caplog.records if "(path)" in record.getMessage())
    early = SoFar(0.127, 171_659, 131_659, 0.121, 3, True, 45_938, 45_938, 184_949)  # points-to, done 0.05 s later
    assert not forecast(early, 4).is_better_there()


def test_how_a_stratum_grows_is_seen_before_it_begins() -> None:
    program = lower(
        Program.parse(
            """
            .decl e, wide, p(x: number, y: number)
            p(x, y) :- e(x, y).
            p(x, z) :- p(x, y), e(y, z).
            p(x, w) :- p(x, y), e(y, z), wide(z, w).
            p(x, z) :- p(x, y), p(y, z).
            """
        ).checked
    )
    (stratum,) = (one for one in program.strata if one.is_recursive)
    few, many = ([(a, b) for a in range(100) for b in range(size)] for size in (2, 20))
    for edges, wide, expected in ((few, few, 2 + 4), (many, few, 20 + 40), (few, [(0, 1)], 2 + 2)):
        statistics = place._statistics({
            "e": np.array(edges, np.int32), "wide": np.array(wide, np.int32), "p": np.empty((0, 2), np.int32)
        })  # fmt: skip
        assert place.growth(stratum, statistics, {"p"}) == pytest.approx(expected, rel=0.2)
