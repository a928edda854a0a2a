"""A few trials of every kind of attack; `make torture` makes many."""

from __future__ import annotations

import pytest

from tests.torture.trials import KINDS, attack

FEW = {"language": 200, "facts": 150, "diffs": 150, "arguments": 6}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_no_promise_is_broken(kind: str) -> None:
    tally = attack([kind], 1, 20.0, FEW.get(kind, 4))[kind]
    assert tally.failed == {}
    assert tally.trials > 0


def test_a_trial_that_fails_is_counted_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "language", lambda seed: 1 // (seed % 3))
    tally = attack(["language"], 1, 20.0, 6)["language"]
    assert (tally.trials, list(tally.failed)) == (6, [3, 6])
