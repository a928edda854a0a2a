"""The strategies beside each other, on the comparisons of the papers.

`python -m benchmarks.strategies EXPERIMENT ... [--data DIR] [--strategies A,B] [--nodes N --edges N] [--sizes N,N]
[--repeats N] [--timeout SECONDS]`

- `sspe`: single-source path enumeration on a random weighted acyclic graph; 1000 facts and 2 % of the facts deleted,
  then inserted again.
- `example1`, `example2`: the two examples where evaluating rules backwards is quadratic, by size.
- `lubm`: a university ontology; 0.1 % and 2 % of its facts.
- `doop`, `crdt`, `galen`: small (10 facts) and large (1 %) updates.

Update streams with and without marks: `python -m benchmarks.streams`.

`elastic` may evaluate anew; `elastic!` never does. Every strategy runs in a process of its own, and they take turns
step by step. Prints a table for each experiment: milliseconds, median [least..most], and in brackets the ratio to the
fastest. Writes benchmarks/results/strategies.json and a plot for each experiment.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from benchmarks.keep import keep_results
from benchmarks.plot import draw_bars, draw_lines
from benchmarks.strategy_cases import EXPERIMENTS, Options
from benchmarks.strategy_turns import Outcome, measure_by_turns
from benchmarks.workloads import DATA_VARIABLE, HERE

PHASES = ("over_deletions", "rederivations", "deletions", "backward", "forward", "insertions", "derivations")


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
    given = parser.parse_args()
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
            outcomes += [Outcome(s, size, problem="not tried: too slow before") for s in chosen if s in hopeless]
            outcomes += measure_by_turns(name, size, [s for s in chosen if s not in hopeless], options)
            hopeless |= {o.strategy for o in outcomes if o.problem and o.problem.startswith("more than")}
        print("\n".join(table(name, outcomes)), flush=True)
        draw(name, outcomes)
        key = f"{name} {options.nodes}/{options.edges}" if name == "sspe" else name
        keep_results(HERE / "results" / "strategies.json", {key: [asdict(outcome) for outcome in outcomes]})


if __name__ == "__main__":
    main()
