"""`elastalog compare`: one workload under several strategies, each in a process of its own."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from elastalog.cli.exits import AT_FAULT, Console
from elastalog.cli.options import Whole, duration, preprocessing_given, program_argument, report_options
from elastalog.cli.reports import aligned
from elastalog.diagnostics.diagnostic import collecting_warnings, warn_of
from elastalog.program.preprocessing import Preprocessing

if TYPE_CHECKING:
    from elastalog.diagnostics.diagnostic import ElastalogError
    from elastalog.pipeline.streams import StreamedUpdate
    from elastalog.session import Session
    from elastalog.session.pending import PendingUpdate

_PHASES = (
    "over_deletions", "rederivations", "deletions", "backward", "forward", "insertions", "marked_explicit",
    "marked_implicit", "marked_positive", "derivations",
)  # fmt: skip
"""In the order of the papers' tables."""


@click.command()
@program_argument
@click.option(
    "-F", "--facts", default=".", type=click.Path(exists=True, file_okay=False), metavar="DIR",
    help="Folder of the fact files.  [default: the current one]",
)  # fmt: skip
@click.option(
    "--updates", required=True, type=click.Path(exists=True), metavar="PATH",
    help="Folder of updates, or one table with a column `step`.",
)  # fmt: skip
@click.option(
    "--strategies", metavar="A,B,…",
    help="Strategies to run, as `elastic,dredc,bfc+linked`.  [default: all that can run the program]",
)  # fmt: skip
@click.option("-j", "--jobs", default=1, type=Whole(1, 1024), metavar="N", help="Number of threads.")
@click.option("--most-updates", type=Whole(1), metavar="N", help="Only the first N updates.")
@click.option(
    "--timeout", callback=duration, metavar="TIME", help="Time limit of each evaluation or update, such as 30s or 5m."
)
@click.option("--plot", metavar="FILE", help="Plot the times of the updates to an .svg or .png file.")
@report_options
def compare(
    program: str,
    facts: str,
    updates: str,
    strategies: str | None,
    jobs: int,
    most_updates: int | None,
    timeout: float | None,
    plot: str | None,
    console: Console,
) -> None:
    """Run one workload under every strategy, and show time, memory and work.

    Each strategy runs in a process of its own. Strategies that cannot run the program, such as `counting` with
    recursion, are listed with the reason. The results are checked to be the same.

    \b
    Examples:
      elastalog compare reach.dl -F facts --updates updates/
      elastalog compare reach.dl -F facts --updates updates/ --strategies elastic,bfc,bfc+linked --plot times.svg
    """
    from elastalog.cli.session_options import load_program
    from elastalog.evaluation.strategies import STRATEGIES

    load_program(program, console)
    chosen = strategies.split(",") if strategies else list(STRATEGIES)
    for name in chosen:
        if name.partition("+")[0] not in STRATEGIES:
            raise click.BadParameter(f"'{name}' is none of {', '.join(STRATEGIES)}.", param_hint="'--strategies'")
        if name.partition("+")[2] not in ("", "eager", "linked"):
            raise click.BadParameter(f"'{name}': marks are eager or linked.", param_hint="'--strategies'")
    workload = Workload(program, facts, updates, jobs, timeout, most_updates, preprocessing_given())
    outcomes: list[Outcome] = []
    for name in chosen:
        if console.is_verbose:
            click.echo(f"running {name}", err=True)
        outcomes.append(run_alone(workload, name))
    click.echo(_as_json(outcomes) if console.form == "json" else "\n".join(_table(outcomes)))
    if plot and plot != "-" and any(outcome.fault is None for outcome in outcomes):
        _draw(outcomes, Path(plot), program)
    sizes = {name: outcome.sizes for name, outcome in zip(chosen, outcomes, strict=True) if outcome.fault is None}
    if len({str(sorted(counts.items())) for counts in sizes.values()}) > 1:
        click.echo("the strategies came to different facts; this is a defect of Elastalog, please report it", err=True)
        sys.exit(AT_FAULT)
    if not sizes:
        sys.exit(AT_FAULT)


def _table(outcomes: list[Outcome]) -> list[str]:
    done = [outcome for outcome in outcomes if outcome.fault is None]
    used = [name for name in _PHASES if any(outcome.counters.get(name) for outcome in done)]
    header = ["strategy", "bootstrap s", "updates s", "ratio", "min ms", "median ms", "max ms", "memory MiB", *used]
    rows = [header]
    least = min((outcome.total for outcome in done), default=0.0)
    for outcome in sorted(done, key=lambda outcome: outcome.total):
        times = [1000 * seconds for seconds in outcome.updates] or [0.0]
        cells = [f"{outcome.bootstrap:.3f}", f"{outcome.total:.3f}", f"{outcome.total / least if least else 1:.2f}"]
        cells += [f"{value:.2f}" for value in (min(times), median(times), max(times))]
        cells += [f"{outcome.memory / 2**20:,.0f}", *(f"{outcome.counters.get(name, 0):,}" for name in used)]
        rows.append([outcome.strategy, *cells])
    lines = aligned(rows, left=(0,))
    faults: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.fault is not None:
            how = "not run" if outcome.at is None else f"stopped at update {outcome.at}"
            faults.setdefault(f"{how}: {outcome.fault}", []).append(outcome.strategy)
    told = [f"{', '.join(names)}: {fault}" for fault, names in faults.items()]
    return [*lines, *told] if done else told


def _as_json(outcomes: list[Outcome]) -> str:
    import json

    return json.dumps([asdict(outcome) for outcome in outcomes], indent=2)


def _draw(outcomes: list[Outcome], path: Path, title: str) -> None:
    """Plots the time of every update under every strategy."""
    try:
        import matplotlib
    except ImportError:
        click.echo("no plot: matplotlib is not installed", err=True)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from elastalog.pipeline.files.paths import replacing

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    path = path if path.suffix else path.with_suffix(".png")
    form = path.suffix[1:].lower()
    if form not in figure.canvas.get_supported_filetypes():
        click.echo(f"no plot: matplotlib writes no {path.suffix}; give a name that ends in .svg or .png", err=True)
        return
    for outcome in outcomes:
        if outcome.fault is None and outcome.updates:
            times = [1000 * seconds for seconds in outcome.updates]
            axes.plot(range(1, len(times) + 1), times, marker=".", label=outcome.strategy)
    axes.set(xlabel="update", ylabel="milliseconds", yscale="log", title=title)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    with replacing(path) as out:
        figure.savefig(out, format=form)
    pyplot.close(figure)


@dataclass(frozen=True, slots=True)
class Workload:
    """A program, its facts, a stream of updates."""

    program: str
    facts: str
    updates: str
    jobs: int = 1
    timeout: float | None = None
    most_updates: int | None = None
    preprocessing: Preprocessing = field(default_factory=Preprocessing)


@dataclass(slots=True)
class Outcome:
    """The result of a run. `strategy` may include its marks, as in `bfc+linked`. `fault` says why it failed, `at` in
    which update, if it was one. `sizes` are those of all relations after the last update."""

    strategy: str
    bootstrap: float = 0.0
    updates: list[float] = field(default_factory=list)
    memory: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    fault: str | None = None
    at: str | None = None

    @property
    def total(self) -> float:
        return sum(self.updates)


def run_alone(workload: Workload, strategy: str) -> Outcome:
    """Runs a workload in a new process, so that its memory can be measured. An interrupt of this process ends that one,
    too."""
    import pickle
    import subprocess

    code = f"import sys; sys.path[:] = {sys.path!r}; from elastalog.cli.compare import answer; answer()"
    pipe = subprocess.PIPE
    # In a session of its own, where Ctrl-C does not reach it.
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, start_new_session=True) as process:
        try:
            told, _ = process.communicate(pickle.dumps((workload, strategy)))
        finally:
            process.kill()
    if not told:
        return Outcome(strategy, fault="its process died, perhaps for lack of memory")
    found: Outcome
    found, warnings = pickle.loads(told)
    for warning in warnings:
        warn_of(warning)
    return found


def answer() -> None:
    """Runs the workload read from standard input, in the other process. Input is empty if the first process has ended
    meanwhile."""
    import os
    import pickle

    given = sys.stdin.buffer.read()
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # whatever is printed is not part of the answer
        if given:
            with collecting_warnings() as warnings:
                outcome = run_here(*pickle.loads(given))
            out.write(pickle.dumps((outcome, warnings)))


def run_here(workload: Workload, strategy: str) -> Outcome:
    """Runs a workload in this process."""
    import elastalog
    from elastalog.diagnostics.quota import peak_memory
    from elastalog.pipeline.streams import read_stream, with_next

    name, _, marks = strategy.partition("+")
    outcome = Outcome(strategy)
    totals: dict[str, int] = {}
    try:
        began = time.perf_counter()
        options = workload.preprocessing
        program = elastalog.Program.load(
            workload.program, include=options.include, macros=dict(options.macros), preprocess=options.is_on
        )
        session = elastalog.open(
            program, workload.facts, strategy=name, jobs=workload.jobs, limits=elastalog.Limits(time=workload.timeout)
        )
        outcome.bootstrap = time.perf_counter() - began
        with session as db:
            stream = list(read_stream(workload.updates, db.program))[: workload.most_updates]
            for present, following in with_next(stream):
                outcome.at = present.batch
                update = _filled(db, present)
                upcoming = None
                if marks and following is not None and not present.diff.changes_rules:
                    outcome.at = following.batch
                    upcoming = _filled(db, following)
                    outcome.at = present.batch
                began = time.perf_counter()
                if upcoming is not None:
                    db.engine.announce(upcoming, marks)
                update.commit()
                outcome.updates.append(time.perf_counter() - began)
                for counter, number in update.stats.work.counters.as_dict().items():
                    totals[counter] = totals.get(counter, 0) + number
            outcome.at = None
            outcome.sizes = {relation: len(db[relation]) for relation in db}
    except elastalog.ElastalogError as fault:
        outcome.fault = _reason(fault)
    outcome.counters = totals
    outcome.memory = peak_memory()
    return outcome


def _reason(fault: ElastalogError) -> str:
    """The first diagnostic as one line, with the file it is about."""
    from elastalog.diagnostics.diagnostic import origin

    first = fault.diagnostics[0]
    return first.message if origin(first) is None else f"{origin(first)}: {first.message}"


def _filled(db: Session, streamed: StreamedUpdate) -> PendingUpdate:
    pending = db.update()
    pending.take(streamed.diff, streamed.batch)
    return pending
