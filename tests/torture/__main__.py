"""`make torture`: attacks from seeds for an hour (`QUICK=1`: five minutes), and a table of what they came to."""

from __future__ import annotations

import argparse
import sys
import time

from tests.torture.trials import KINDS, attack


def main() -> int:
    """The exit code: 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; another one every day if not given")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this kind; may be repeated")
    parser.add_argument("--trials", type=int, default=None, help="most trials of a kind")
    parser.add_argument("--epochs", type=int, default=None, help="stop a kind once it has compared so many epochs")
    given = parser.parse_args()
    first = int(time.time()) // 86_400 * 1_000_000 if given.seed is None else given.seed
    kinds = given.kind or list(KINDS)
    print(f"seeds from {first}; repeat a trial with --kind KIND --seed SEED --trials 1", flush=True)
    tallies = attack(kinds, first, given.seconds, given.trials, given.epochs)
    print(f"\n{'attack':14} {'trials':>8} {'epochs':>8} {'failures':>9} {'seconds':>9} {'longest':>9}")
    for kind, tally in tallies.items():
        numbers = f"{tally.trials:8,} {tally.epochs:8,} {len(tally.failed):9,}"
        print(f"{kind:14} {numbers} {tally.seconds:9.1f} {tally.longest:9.2f}")
    failures = sum(len(tally.failed) for tally in tallies.values())
    trials, epochs = (sum(getattr(tally, what) for tally in tallies.values()) for what in ("trials", "epochs"))
    print(f"{'all':14} {trials:8,} {epochs:8,} {failures:9,}")
    for kind, tally in tallies.items():
        for seed, trace in list(tally.failed.items())[:5]:
            print(f"\n--- {kind}, seed {seed}\n{trace}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
