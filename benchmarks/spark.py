"""Evaluation on Spark: (a) a plain DataFrame loop, (b) the kernel in this process, (c) the kernel in tasks.

Three parts, `--only` chooses: `table` (all workloads, against the goals), `sizes` (cost against the size of the data),
`processes` (cost against cores and executor processes). Measurements are made in other processes, each with a time
limit, so that none can hold up the others; the loop is given up when it is certain that its goal is met, and then told
as "more than". Everything takes about fifteen minutes on an idle machine of 2 cores, of which the loop has ten.

`python -m benchmarks.spark [WORKLOAD ...] [--only PART] [--data DIR]`
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.plot import draw_bars, draw_lines
from benchmarks.spark_case import DATA_SETS, WAYS, Measured, case_named, cores_of, measure
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, data_folder

PARTS = ("table", "sizes", "processes")
WORKLOADS = ("closure-roads:20", "closure-roads:200", "closure-random:20", "closure-random:500", "doubling:100",
             "doubling:400", "el-completion")  # fmt: skip
SIZES = {"closure-random": (1, 5, 20, 100, 500), "doubling": (5, 25, 100, 400, 1600)}
MASTERS = ("local[1,4]", "local[2,4]", *(f"local-cluster[{number},1,1024]" for number in (1, 2, 4)))
SPREAD = ("closure-random:200", "doubling:200")
RECORDS = HERE / "results" / "spark.json"
GOALS = {True: (10.0, 1.5), False: (4.0, 2.5)}
"""Of strata that decompose, and of others: at least so many times faster than (a), at most so many times as long as (b)
plus start-up, which is what the least job costs."""


class Runner:
    """Measures, tells how it goes, and remembers everything."""

    def __init__(self, repeats: int, timeout: float, loop_timeout: float, data: Path | None) -> None:
        self.repeats, self.timeout, self.loop_timeout, self.data = repeats, timeout, loop_timeout, data
        self.done: dict[tuple[str, str, str], Measured] = {}

    def __call__(self, way: str, workload: str, master: str) -> Measured:
        self.measure(way, [workload], master)
        return self.done[_key(way, workload, master)]

    def measure(self, way: str, workloads: Iterable[str], master: str) -> None:
        """Measures those that are not known yet, in one process."""
        missing = [name for name in dict.fromkeys(workloads) if _key(way, name, master) not in self.done]
        limits = {name: self._patience(way, name, master) for name in missing}
        for found in measure(way, limits, master=master, repeats=self.repeats, data=self.data):
            told = f"{found.least:.2f} s" if found.least is not None else found.problem
            print(f"{found.workload} {way} {master}: {told}", file=sys.stderr, flush=True)
            self.done[_key(way, found.workload, master)] = found

    def _patience(self, way: str, workload: str, master: str) -> float:
        """How long to wait: for the loop, at least until it is certain that the goal is met."""
        if way != "loop":
            return self.timeout
        tasks = self("tasks", workload, master).least or 0.0
        goal, _ = GOALS[case_named(workload, self.data).decomposes]
        return max(self.loop_timeout, 1.05 * goal * tasks)


def _key(way: str, workload: str, master: str) -> tuple[str, str, str]:
    return way, workload, "local[1]" if way == "kernel" else master  # the kernel does without


def table(run: Runner, workloads: Sequence[str], master: str) -> str:
    """All workloads in all ways, and whether the goals are met."""
    heads = (
        "workload",
        "facts",
        "(a) loop",
        "(b) kernel",
        "(c) tasks",
        "start",
        "1st job",
        "job",
        "a/c",
        "(c-job)/b",
        "goals",
    )
    lines = [f"{heads[0]:20}{''.join(f'{head:>12}' for head in heads[1:])}  where"]
    for way in ("tasks", "kernel", "loop"):
        run.measure(way, workloads, master)
    for name in workloads:
        loop, kernel, tasks = (run(way, name, master) for way in WAYS)
        least_gain, most_loss = GOALS[case_named(name, run.data).decomposes]
        gain = _ratio(loop.least, tasks.least)
        loss = None if tasks.least is None else _ratio(max(0.0, tasks.least - tasks.job), kernel.least)
        if loop.limit is not None and tasks.least is not None:
            gain = loop.limit / tasks.least  # at least
        met = (gain is None or gain >= least_gain) and (loss is None or loss <= most_loss)
        cells = [
            f"{tasks.facts or kernel.facts:,}", *(_seconds(found) for found in (loop, kernel, tasks)),
            f"{tasks.started:.1f}", f"{tasks.first_job:.1f}", f"{tasks.job:.2f}",
            _times(gain, loop.least is None), _times(loss, False),
            "met" if met and loss is not None else f"≥{least_gain:g} ≤{most_loss:g}",
        ]  # fmt: skip
        counts = {found.facts for found in (loop, kernel, tasks) if found.seconds}
        wrong = "" if len(counts) <= 1 else f"  DIFFERENT COUNTS: {sorted(counts)}"
        lines.append(f"{name:20}{''.join(f'{cell:>12}' for cell in cells)}  {', '.join(tasks.where)}{wrong}")
    return "\n".join(lines)


def sizes(run: Runner, master: str) -> str:
    """Cost against the number of facts, of one workload that decomposes and of one that does not."""
    names = {kind: [f"{kind}:{number}" for number in numbers] for kind, numbers in SIZES.items()}
    for way in ("tasks", "kernel"):
        run.measure(way, [name for of_kind in names.values() for name in of_kind], master)
    lines = []
    for kind, of_kind in names.items():
        series: dict[str, list[tuple[float, float]]] = {}
        for way in WAYS:
            for name in of_kind:
                found = run(way, name, master)
                if found.least is None:
                    break  # larger ones would take longer
                series.setdefault(way, []).append((found.facts, found.least))
                lines.append(f"{kind:16} {found.facts:12,} facts  {way:8} {found.least:9.2f} s")
        name = kind.replace("-", "_")
        draw_lines(HERE / "plots" / f"spark_sizes_{name}.png", f"{kind} on Spark", "facts", "seconds", series)
    return "\n".join(lines)


def processes(run: Runner, masters: Iterable[str]) -> str:
    """Cost against cores of one process, and against executor processes. The plot has what other runs measured too."""
    lines = []
    series: dict[str, dict[str, float]] = {}
    for row in _recorded():
        if row["way"] == "tasks" and row["workload"] in SPREAD and row["master"] in MASTERS and row["seconds"]:
            series.setdefault(row["workload"], {})[row["master"]] = min(row["seconds"])
    for master in masters:
        run.measure("tasks", SPREAD, master)
        for name in SPREAD:
            found = run("tasks", name, master)
            told = _seconds(found) if found.seconds else found.problem
            lines.append(f"{name:20} {master:24} {cores_of(master)} slots  {told:>9} s  start {found.started:.1f} s")
            if found.least is not None:
                series.setdefault(name, {})[master] = found.least
    draw_bars(HERE / "plots" / "spark_processes.png", "tasks on cores and executor processes", "seconds", series)
    return "\n".join(sorted(lines))


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def _times(ratio: float | None, is_least: bool) -> str:
    return "–" if ratio is None else f"{'>' if is_least else ''}{ratio:.1f}"


def _seconds(found: Measured) -> str:
    if found.least is not None:
        return f"{found.least:.2f}"
    return "–" if found.limit is None else f">{found.limit:.0f}"


def _recorded() -> list[dict[str, Any]]:
    """What other runs measured."""
    known: list[dict[str, Any]] = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else []
    return known


def _record(run: Runner) -> None:
    """Adds what was measured to that."""
    rows = {(row["way"], row["workload"], row["master"]): row for row in _recorded()}
    rows |= {(found.way, found.workload, found.master): asdict(found) for found in run.done.values()}
    RECORDS.parent.mkdir(exist_ok=True)
    RECORDS.write_text(json.dumps(list(rows.values()), indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="evaluation on Spark, side by side")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="for the table; closure-roads:50 has a size")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--master", default="local[2,4]", help="of the table and the sizes")
    parser.add_argument("--masters", nargs="+", default=MASTERS, metavar="MASTER", help="of the processes")
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one measurement beyond start-up")
    parser.add_argument("--loop-timeout", type=float, default=30, help="the same for the DataFrame loop, at least")
    given = parser.parse_args()
    data = data_folder(given.data)
    sets = tuple(name for name in DATA_SETS if BY_NAME[name].is_available(data))
    workloads = given.workloads or (*WORKLOADS, *sets)
    for name in workloads:
        try:
            case_named(name, data)
        except ValueError as error:
            parser.error(f"{error}; there are {', '.join((*WORKLOADS, *DATA_SETS))}")
    run = Runner(given.repeats, given.timeout, given.loop_timeout, data)
    parts: dict[str, Callable[[], str]] = {
        "table": lambda: table(run, workloads, given.master),
        "sizes": lambda: sizes(run, given.master),
        "processes": lambda: processes(run, given.masters),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            print(f"\n{name}\n{part()}", flush=True)
            _record(run)
    if given.only in (None, "table"):
        rows = {way: {n: s for n in workloads if (s := run(way, n, given.master).least)} for way in WAYS}
        draw_bars(HERE / "plots" / "spark.png", "evaluation on local Spark", "seconds", rows)


if __name__ == "__main__":
    main()
