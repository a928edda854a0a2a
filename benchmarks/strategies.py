"""The strategies beside each other, on the comparisons of the papers.

`python -m benchmarks.strategies EXPERIMENT ... [--data DIR] [--strategies A,B] [--nodes N --edges N] [--sizes N,N]
[--repeats N] [--timeout SECONDS]`

- `sspe`: single-source path enumeration on a random weighted acyclic graph; 1000 facts and 2 % of the facts deleted,
  then inserted again.
- `example1`, `example2`: the two examples where evaluating rules backwards is quadratic, by size.
- `lubm`: a university ontology; 0.1 % and 2 % of its facts.
- `doop`, `crdt`, `galen`: small (10 facts) and large (1 %) updates.

Update streams with and without marks: `python -m benchmarks.streams`.

`elastic` may evaluate anew; `elastic!` never does. Every strategy runs in a process of its own. Prints a table for each
experiment: milliseconds, median [least..most], and in brackets the ratio to the fastest. Writes
benchmarks/results/strategies.json and a plot for each experiment.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from benchmarks.keep import keep_results
from benchmarks.plot import draw_bars, draw_lines
from benchmarks.strategy_cases import EXPERIMENTS, Case, Options
from benchmarks.workloads import DATA_VARIABLE, HERE

PHASES = ("over_deletions", "rederivations", "deletions", "backward", "forward", "insertions", "derivations")


@dataclass(slots=True)
class Outcome:
    strategy: str
    size: int
    bootstrap: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    memory: int = 0
    problem: str | None = None


# --- measuring -------------------------------------------------------------------------------------------------------


def measure(name: str, size: int, strategy: str, options: Options) -> Outcome:
    """In a fresh process; never raises for what goes wrong there."""
    request = json.dumps({"name": name, "size": size, "strategy": strategy, "options": asdict(options)})
    command = [sys.executable, "-m", "benchmarks.strategies", "--one", request]
    failed = Outcome(strategy, size)
    try:
        done = subprocess.run(
            command, cwd=HERE.parent, capture_output=True, text=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        failed.problem = f"more than {options.timeout:.0f} s"
        return failed
    if done.returncode != 0:
        failed.problem = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return failed
    return Outcome(**json.loads(done.stdout.strip().splitlines()[-1]))


def measure_here(name: str, size: int, strategy: str, options: Options) -> Outcome:
    import elastalog

    experiment = EXPERIMENTS[name]
    case = experiment.make(options, size, options.repeats or experiment.repeats)
    outcome = Outcome(strategy, size)
    budget: float | Literal["auto"] | None = None if strategy.endswith("!") else "auto"
    strategy = strategy.rstrip("!")
    searched = search_without_limit() if options.is_unbounded else None
    warm_up(strategy)
    began = time.process_time()
    with elastalog.open(case.program, case.facts, strategy=strategy, budget=budget) as db:
        outcome.bootstrap = time.process_time() - began
        make_indexes(db, case)
        for label, deleted, inserted in case.steps:
            update = db.update()
            for relation, rows in deleted.items():
                update.delete(relation, rows)
            for relation, rows in inserted.items():
                update.insert(relation, rows)
            before = 0 if searched is None else searched()
            began = time.process_time()
            update.commit()
            outcome.seconds.setdefault(label, []).append(time.process_time() - began)
            if searched is not None:
                outcome.counters["rows"] = outcome.counters.get("rows", 0) + searched() - before
            for counter, value in update.stats.work.counters.as_dict().items():
                outcome.counters[counter] = outcome.counters.get(counter, 0) + value
    outcome.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return outcome


def search_without_limit() -> Callable[[], int]:
    """From now on other derivations are looked for backwards whatever it takes, as the papers do, and heads with sums
    are not solved for what is known. Returns what tells how many rows that has gone through."""
    from elastalog.backends.kernel.sets import heads_backward, set_update
    from elastalog.planning import order

    searches: list[heads_backward.BackwardSearch] = []

    class Counted(heads_backward.BackwardSearch):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            searches.append(self)

    heads_backward.FIRST_LIMIT = 1 << 60
    vars(order)["solve_equation"] = lambda *_: None
    vars(set_update)["BackwardSearch"] = Counted
    return lambda: sum(effort.rows for search in searches for effort in search._efforts.values())


def make_indexes(db: Any, case: Case) -> None:
    """One fact of every relation goes and comes back, so that no update that is measured makes plans and indexes."""
    some = {name: rows.slice(0, 1) for _, deleted, _ in case.steps[:1] for name, rows in deleted.items()}
    db.apply(deleted=some)
    db.apply(inserted=some)


def warm_up(strategy: str) -> None:
    """Loads compiled operators before anything is measured."""
    import elastalog

    program = """
    .decl a(x: number, y: number)
    .decl b(x: number, y: number)
    b(x, y) :- a(x, y).
    b(x, z) :- b(x, y), a(y, z).
    """
    with elastalog.open(program, {"a": [(1, 2), (2, 3), (1, 3)]}, strategy=strategy) as db:
        db.apply({"a": [(3, 4)]}, {"a": [(1, 2)]})
        db.apply({"a": [(1, 2)]}, {"a": [(1, 3)]})


# --- showing ---------------------------------------------------------------------------------------------------------


def table(name: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    paper = EXPERIMENTS[name].paper
    yield f"\n== {name}" + (f"   [paper: {paper}]" if paper else "")
    for size in dict.fromkeys(outcome.size for outcome in outcomes):
        if size:
            yield f"-- n = {size:,}"
        yield from aligned(rows_of([outcome for outcome in outcomes if outcome.size == size]))


def rows_of(group: Sequence[Outcome]) -> list[list[str]]:
    labels = list(dict.fromkeys(label for outcome in group for label in outcome.seconds))
    used = [counter for counter in PHASES if any(outcome.counters.get(counter) for outcome in group)]
    best = {label: min(statistics.median(o.seconds[label]) for o in group if label in o.seconds) for label in labels}
    rows = [["strategy", "start s", *(f"{label} ms" for label in labels), "MiB", *used]]
    for outcome in group:
        if outcome.problem:
            rows.append([outcome.strategy, outcome.problem[:60], *[""] * (len(labels) + 1 + len(used))])
            continue
        cells = []
        for label in labels:
            times = [1000 * seconds for seconds in outcome.seconds[label]]
            middle = statistics.median(times)
            spread = f" [{_short(min(times))}..{_short(max(times))}]" if len(times) > 1 else ""
            cells.append(f"{_short(middle)}{spread} ({_short(middle / 1000 / best[label])})")
        counted = [f"{outcome.counters.get(counter, 0):,}" for counter in used]
        rows.append([outcome.strategy, f"{outcome.bootstrap:.2f}", *cells, f"{outcome.memory >> 20:,}", *counted])
    return rows


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def aligned(rows: list[list[str]]) -> Iterator[str]:
    """Lines of a table, the first column to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()


def draw(name: str, outcomes: Sequence[Outcome]) -> None:
    path = HERE / "plots" / f"strategies_{name}.png"
    done = [outcome for outcome in outcomes if outcome.seconds]
    series: dict[str, dict[str, float]] = {}
    lines: dict[str, list[tuple[float, float]]] = {}
    for outcome in done:
        for label, seconds in outcome.seconds.items():
            series.setdefault(outcome.strategy, {})[label] = 1000 * statistics.median(seconds)
            lines.setdefault(outcome.strategy, []).append((outcome.size, 1000 * statistics.median(seconds)))
    if EXPERIMENTS[name].sizes != (0,):
        draw_lines(path, name, "n", "ms", lines)
    elif series:
        draw_bars(path, name, "ms", series)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="compare the strategies", epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--strategies", help="separated by commas")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--sizes", help="of example1 and example2, separated by commas")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one strategy on one case")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        request = json.loads(given.one)
        options = Options(**request["options"])
        outcome = measure_here(request["name"], request["size"], request["strategy"], options)
        print(json.dumps(asdict(outcome)))
        return
    unknown = [name for name in given.experiments if name not in EXPERIMENTS]
    if unknown or not given.experiments:
        parser.error(f"name experiments: {', '.join(EXPERIMENTS)}")
    sizes = tuple(map(int, given.sizes.split(","))) if given.sizes else None
    options = Options(given.data, given.nodes, given.edges, sizes, given.repeats, given.timeout)
    for name in given.experiments:
        experiment = EXPERIMENTS[name]
        chosen = given.strategies.split(",") if given.strategies else experiment.strategies
        outcomes: list[Outcome] = []
        hopeless: set[str] = set()
        for size in experiment.sizes_with(options):
            for strategy in chosen:
                if strategy in hopeless:
                    outcomes.append(replace(Outcome(strategy, size), problem="not tried: too slow before"))
                    continue
                outcomes.append(measure(name, size, strategy, options))
                print(f"{name} {size or ''} {strategy}: {outcomes[-1].problem or 'done'}", file=sys.stderr, flush=True)
                if outcomes[-1].problem and outcomes[-1].problem.startswith("more than"):
                    hopeless.add(strategy)
        print("\n".join(table(name, outcomes)), flush=True)
        draw(name, outcomes)
        key = f"{name} {options.nodes}/{options.edges}" if name == "sspe" else name
        keep_results(HERE / "results" / "strategies.json", {key: [asdict(outcome) for outcome in outcomes]})


if __name__ == "__main__":
    main()
