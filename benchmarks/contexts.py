"""Points-to with contexts on Doop's facts: a variable in a context is a record, a context an algebraic data type.

    python -m benchmarks.contexts [call-site] [object] [--data DIR] [--plain] [--updates N] [--jobs N]

1-call-site and 1-object sensitive; `--plain`: the same analysis without records, for what they cost and as a check. The
result without its contexts is part of the analysis without contexts, which an independent evaluation counted. Updates
delete ten instructions at random and insert them again, beside evaluation anew. Times are of the processor.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import elastalog
from benchmarks.expected import DOOP
from benchmarks.workloads import BY_NAME, EXAMPLES, HERE, data_folder
from elastalog.session import Session

KINDS = {"call-site": {}, "object": {"OBJECT": 1}}
PROJECTIONS = {"PointsTo": "VarPointsTo", "CallGraph": "CallGraphEdge", "ReachableMethod": "Reachable"}
INSTRUCTIONS = tuple(
    f"{kind}_input" for kind in ("AssignLocal", "LoadInstanceField", "StoreInstanceField", "VirtualMethodInvocation")
)


def program() -> str:
    """Import and types as in the analysis without contexts, then the analysis with them."""
    parts = (EXAMPLES / "doop.dl").read_text(encoding="utf-8").partition("// === C.")
    return parts[0] + (HERE / "programs" / "contexts.dl").read_text(encoding="utf-8")


def evaluated(facts: Mapping[str, pa.Table], kind: str, is_plain: bool, jobs: int) -> tuple[float, Session]:
    macros = {**KINDS[kind], **({"PLAIN": 1} if is_plain else {})}
    began = time.process_time()
    db = elastalog.open(elastalog.Program.parse(program(), macros=macros), facts=facts, jobs=jobs)
    return time.process_time() - began, db


def sizes(db: Session) -> dict[str, int]:
    return {name: len(db[name]) for name in ("VarPointsTo", "Assign", "CallGraphEdge", "Reachable", *PROJECTIONS)}


def measure(facts: Mapping[str, pa.Table], kind: str, given: argparse.Namespace, without: Session) -> None:
    seconds, db = evaluated(facts, kind, is_plain=False, jobs=given.jobs)
    stored = sum(db._backend.profile().bytes.values()) / 2**20
    found = sizes(db)
    told = ", ".join(f"{name} {size:,}" for name, size in found.items())
    print(f"{kind}: {seconds:.1f} s, {stored:,.0f} MiB of relations; {told}", flush=True)
    for name, known in PROJECTIONS.items():
        assert set(db[name]) <= set(without[known]), name
        print(f"  {name}: {found[name]:,} of the {DOOP[known]:,} without contexts")
    if given.plain:
        plain, other = evaluated(facts, kind, is_plain=True, jobs=given.jobs)
        assert sizes(other) == found
        assert all(set(other[name]) == set(db[name]) for name in PROJECTIONS)
        print(f"  without records: {plain:.1f} s, the same facts; records cost {seconds / plain:.2f} times that")
        other.close()
    update(db, facts, given.updates, seconds)
    db.close()


def update(db: Session, facts: Mapping[str, pa.Table], repeats: int, anew: float) -> None:
    before, choice = sizes(db), random.Random(1)
    for _ in range(repeats):
        name = choice.choice(INSTRUCTIONS)
        rows = facts[name].take(choice.sample(range(len(facts[name])), 10))
        changed: dict[str, pa.Table] = {name: rows}
        told = []
        for inserted, deleted in ((None, changed), (changed, None)):
            began = time.process_time()
            changes = db.apply(inserted, deleted)
            seconds = time.process_time() - began
            told.append(f"{seconds * 1000:.1f} ms ({changes.impact:,} facts, 1/{anew / seconds:,.0f})")
        print(f"  ten of {name} deleted and inserted: {', '.join(told)}", flush=True)
    assert sizes(db) == before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=[], help="call-site, object; both if none is given")
    parser.add_argument("--data")
    parser.add_argument("--plain", action="store_true", help="also without records")
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    data: Path | None = data_folder(given.data)
    facts = BY_NAME["doop"].facts(data)
    began = time.process_time()
    with elastalog.open(EXAMPLES / "doop.dl", facts=facts, jobs=given.jobs) as without:
        print(f"without contexts: {time.process_time() - began:.1f} s", flush=True)
        for kind in given.kinds or KINDS:
            measure(facts, kind, given, without)


if __name__ == "__main__":
    main()
