"""A few trials of every kind of attack; `make torture` makes many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import __main__ as torture
from tests.torture import record
from tests.torture.trials import KINDS, Kind, attack


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_no_promise_is_broken(kind: str) -> None:
    tally = attack([kind], 1, 20.0, KINDS[kind].few)[kind]
    assert tally.failed == {}
    assert tally.trials > 0


@pytest.mark.parametrize("seed", [7700002, 7700006])
def test_equivalences_in_recursion_are_looked_at_ahead(seed: int) -> None:
    """Strata of a kind of their own, under strategies that keep sets and mark facts for updates to come."""
    assert attack(["differential"], seed, 60.0, 1)["differential"].failed == {}


@pytest.mark.parametrize("seed", [77110360, 77110439])
def test_an_index_that_was_extended_where_it_is_is_known_as_a_whole(seed: int) -> None:
    """Strategies that keep sets ran a variant over the index as it was before: facts were missing."""
    assert attack(["differential"], seed, 60.0, 1)["differential"].failed == {}


def test_programs_with_subsumption_come_to_an_end() -> None:
    """A number that grew became part of a record in a key, which was another one every time."""
    assert attack(["differential"], 55030354, 60.0, 1)["differential"].failed == {}


def test_links_that_need_more_room_are_alive() -> None:
    """The flags of a ranked stratum's links were written to the table from before it had grown."""
    assert attack(["lattices"], 88120198, 60.0, 1)["lattices"].failed == {}


def test_a_trial_that_fails_is_counted_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "language", Kind(lambda seed: 1 // (seed % 3), "programs", 6))
    tally = attack(["language"], 1, 20.0, 6)["language"]
    assert (tally.trials, list(tally.failed)) == (6, [3, 6])


def test_runs_are_summed_and_what_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "forks", Kind(lambda seed: 5 if seed != 2 else 1 // 0, "lives", 20))
    path = tmp_path / "torture.json"
    assert torture.go_on(path, ["forks"], 60.0, most=3) == 1
    found = record.read(path)["forks"]
    assert (found.next_seed, found.trials, found.attacks, list(found.failed)) == (7, 6, 25, ["2"])
    monkeypatch.setitem(KINDS, "forks", Kind(lambda seed: 5, "lives", 20))
    assert torture.go_on(path, ["forks"], 60.0, most=3) == 0
    found = record.read(path)["forks"]
    assert (found.attacks, found.failed, found.mended) == (30, {}, [2])
    assert "| forks | 6 | 30 lives | 0 | 1 |" in record.table(record.read(path))
