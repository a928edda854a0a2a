"""`make torture`: attacks from seeds for an hour (`QUICK=1`: five minutes), and a table of what they came to. With
`--record FILE` the sums are kept, and the next run goes on where this one ends."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.torture.record import Line, read, table, write
from tests.torture.trials import KINDS, Tally, attack, attempt

SLICE = 20.0
"""How many seconds one kind goes on before the next has its turn."""


def main() -> int:
    """The exit code: 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; another one every day if not given")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this kind; may be repeated")
    parser.add_argument("--trials", type=int, default=None, help="most trials of a kind")
    parser.add_argument("--record", type=Path, help="add the sums to this file, and go on with the seeds after its own")
    parser.add_argument("--table", type=Path, help="only print the table of such a file")
    given = parser.parse_args()
    if given.table is not None:
        print(table(read(given.table)))
        return 0
    kinds = given.kind or list(KINDS)
    if given.record is not None:
        return go_on(given.record, kinds, given.seconds)
    first = int(time.time()) // 86_400 * 1_000_000 if given.seed is None else given.seed
    print(f"seeds from {first}; repeat a trial with --kind KIND --seed SEED --trials 1", flush=True)
    tallies = attack(kinds, first, given.seconds, given.trials)
    print(f"\n{'attack':14} {'trials':>8} {'attacks':>19} {'failures':>9} {'seconds':>9} {'longest':>9}")
    for kind, tally in tallies.items():
        numbers = f"{len(tally.failed):9,} {tally.seconds:9.1f} {tally.longest:9.2f}"
        print(f"{kind:14} {tally.trials:8,} {f'{tally.attacks:,} {KINDS[kind].unit}':>19} {numbers}")
    for kind, tally in tallies.items():
        for seed, trace in list(tally.failed.items())[:5]:
            print(f"\n--- {kind}, seed {seed}\n{trace}", file=sys.stderr)
    failures = sum(len(tally.failed) for tally in tallies.values())
    print(f"{'all':14} {sum(tally.trials for tally in tallies.values()):8,} {'':19} {failures:9,}")
    return 1 if failures else 0


def go_on(path: Path, kinds: list[str], seconds: float, most: int | None = None) -> int:
    """Takes turns among the kinds that have not reached their goal, the one that is furthest from it first; `most`
    trials a turn."""
    lines = read(path)
    for kind in kinds:
        if lines[kind].failed:
            again = Tally()
            for seed in lines[kind].failed:
                attempt(kind, int(seed), again)
            lines[kind].add_again(again)
            write(path, lines)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and (kind := _furthest(lines, kinds)) is not None:
        tally = attack([kind], lines[kind].next_seed, min(SLICE, left), most)[kind]
        for seed, trace in tally.failed.items():
            print(f"\n--- {kind}, seed {seed}\n{trace}", file=sys.stderr, flush=True)
        lines[kind].add(tally)
        write(path, lines)
    print(table(lines))
    return 1 if any(lines[kind].failed for kind in kinds) else 0


def _furthest(lines: dict[str, Line], kinds: list[str]) -> str | None:
    reached = {kind: lines[kind].attacks / KINDS[kind].goal for kind in kinds}
    kind = min(reached, key=lambda kind: reached[kind])
    return kind if reached[kind] < 1 else None


if __name__ == "__main__":
    sys.exit(main())
