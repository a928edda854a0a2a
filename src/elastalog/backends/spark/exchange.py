"""A stratum that does not decompose, evaluated by tasks that run at the same time and exchange what they derive.

Every task holds its share of the copies that the plan names. An iteration of a task: take the facts that all tasks
derived for its copies in the iteration before, each new one at this level; derive from them; write the heads, ordered
by the share that wants them, into files of its own, and a *notice* that names these. A task goes on when it has the
notices of all; it ends when none derived anything. So iterations, levels and counts are those of the kernel.

Spark starts the tasks together and, if one fails, ends them all (barrier mode); its own barrier takes a second, the
notices take milliseconds. The driver repeats a job that failed; files of an earlier attempt lie in another folder.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elastalog.backends.kernel.fixpoint import StratumPipelines, Workers
from elastalog.backends.kernel.pipeline import Bounds
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.spark.task import GROWN, Result, TaskSpec, facts_with
from elastalog.backends.spark.word_files import read_words, shares_of, write_words
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.planning.decompose import Copy, with_copies

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02


def evaluate_together(spec: TaskSpec, share: int) -> Iterator[Result]:
    """The part of one task in the fixpoint of a stratum."""
    try:
        task = ExchangingTask(spec, share, attempt_folder(spec))
    except ElastalogError as error:
        # Nobody could be told yet: the job has to fail as a whole.
        raise RuntimeError(str(error)) from error
    return task.run()


def attempt_folder(spec: TaskSpec) -> Path:
    """The folder of this attempt, the same for all its tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    folder = Path(spec.folder) / f"attempt-{context.stageId()}-{context.attemptNumber()}"
    folder.mkdir(exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class Parcel:
    """Heads for one copy, in a file, ordered by the share that wants them: those of share s are rows bounds[s] to
    bounds[s + 1]. For a whole copy all rows are for everybody."""

    copy: str
    path: str
    bounds: tuple[int, ...]


class ExchangingTask:
    """One task: its copies, and the heads it derives in an iteration."""

    def __init__(self, spec: TaskSpec, share: int, folder: Path) -> None:
        self.spec = spec
        self.share = share
        self.folder = folder
        self.watch = Watch()
        self.dictionary = spec.values.dictionary()
        own = frozenset(spec.plan.stratum.relations)
        self.own_copies = [copy for copy in spec.plan.copies if copy.relation in own]
        self.owners = {spec.plan.owner(name).name for name in own}
        clauses = tuple(
            replace(clause, head=head_name(clause.head)) for clause in spec.clauses_of(share, self.dictionary)
        )
        program = with_copies(spec.program, spec.plan, clauses)
        self.stratum = program.strata[0]
        self.relations = {
            name: KernelRelation(name, stored.width, name in self.owners) for name, stored in program.relations.items()
        }
        for copy in spec.plan.copies:
            width = program.relations[copy.name].width
            facts = read_words(spec.inputs[copy.relation], width, copy.column, share, spec.shares)
            self.relations[copy.name].load(facts.words)
        self.widths = {name: spec.program.relations[name].width for name in own}
        self.empty_heads()
        self.pipelines = StratumPipelines(self.stratum, self.relations, self.dictionary, program.checked.source)
        self.workers = Workers(self.relations, self.watch)

    def empty_heads(self) -> None:
        for name, width in self.widths.items():
            self.relations[head_name(name)] = KernelRelation(head_name(name), width, is_annotated=True)

    def run(self) -> Iterator[Result]:
        names = [copy.name for copy in self.own_copies]
        start = dict.fromkeys(names, 0)
        stop = {name: self.relations[name].used for name in names}
        iteration = 1
        while True:
            try:
                self.derive(iteration, start, stop)
            except ElastalogError:
                self.notify(iteration, [], has_failed=True)
                raise
            if self.spec.values.is_outgrown_by(self.dictionary):
                self.notify(iteration, [], has_failed=True)
            else:
                self.notify(iteration, self.pack(iteration))
            notices = self.await_notices(iteration)
            if any(notice["failed"] for notice in notices):
                yield Result(self.share, "", "", 0, self.watch.derivations, GROWN)
                return
            self.discard(iteration - 1)
            parcels = [Parcel(*parcel) for notice in notices for parcel in notice["parcels"]]
            if not parcels:
                break
            start = stop
            for copy in self.own_copies:
                self.receive(copy, [parcel for parcel in parcels if parcel.copy == copy.name], iteration)
            stop = {name: self.relations[name].used for name in names}
            self.pipelines.adapt()
            self.workers.extend_indexes([self.relations[name] for name in names])
            iteration += 1
        yield from self.results()

    def derive(self, iteration: int, start: dict[str, int], stop: dict[str, int]) -> None:
        """Runs every version of the clauses over the delta; heads are collected, each once, with the number of
        derivations."""
        self.empty_heads()
        bounds = Bounds(start, stop)
        counted = dict.fromkeys(map(head_name, self.widths), 0)
        if iteration == 1:
            for pipeline in self.pipelines.once:
                first = pipeline.gather.relation
                self.workers.run(pipeline, 0, 1 if first is None else self.relations[first].used, bounds, counted)
        for pipeline in self.pipelines.by_delta:
            name = pipeline.gather.relation
            assert name is not None
            if start[name] < stop[name]:
                self.workers.run(pipeline, start[name], stop[name], bounds, counted)

    def pack(self, iteration: int) -> list[Parcel]:
        """Writes the heads of this iteration for every copy that wants them."""
        parcels: list[Parcel] = []
        for copy in self.own_copies:
            heads = self.relations[head_name(copy.relation)]
            if not heads.used:
                continue
            words, count = heads.rows[: heads.used], heads.count[: heads.used]
            bounds: tuple[int, ...] = (0, heads.used)
            if copy.column is not None:
                # Numbers of 16 bits are sorted by their digits, in linear time.
                shares = shares_of(words[:, copy.column], self.spec.shares).astype(np.uint16)
                order = np.argsort(shares, kind="stable")
                words, count = words[order], count[order]
                sizes = np.bincount(shares, minlength=self.spec.shares)
                bounds = (0, *np.cumsum(sizes).tolist())
            path = self.folder / f"{iteration}-{self.share}-{len(parcels)}.npy"
            np.save(path, np.column_stack((words, count)))
            parcels.append(Parcel(copy.name, str(path), bounds))
        return parcels

    def receive(self, copy: Copy, parcels: list[Parcel], level: int) -> None:
        """Adds the facts of parcels to a copy. Those that are new are at this level, with all their derivations."""
        relation = self.relations[copy.name]
        first = relation.used
        blocks = [self.opened(parcel, copy) for parcel in parcels]
        # A row of the file is a fact and a count. Copied, since the kernel takes no memory that it may not write to.
        facts = [np.array(block[:, :-1], order="C") for block in blocks]
        for words in facts:
            relation.insert(words, 0, len(words), first)
        if relation.is_annotated and relation.used > first:
            # Inserting has counted every row as one derivation; only those of several need another look.
            for words, block in zip(facts, blocks, strict=True):
                several = np.flatnonzero(block[:, -1] > 1)
                rows = relation.find(words[several])
                is_new = rows >= first
                np.add.at(relation.count, rows[is_new], block[several[is_new], -1] - 1)
            relation.level[first : relation.used] = level
        relation.present = relation.used

    def opened(self, parcel: Parcel, copy: Copy) -> np.ndarray:
        block: np.ndarray = np.load(parcel.path, mmap_mode="r")
        if copy.column is None:
            return block
        return block[parcel.bounds[self.share] : parcel.bounds[self.share + 1]]

    # --- notices ---------------------------------------------------------------------------------------------------

    def notify(self, iteration: int, parcels: list[Parcel], has_failed: bool = False) -> None:
        """Says that the heads of an iteration are written. A notice appears whole."""
        notice = {"parcels": [(p.copy, p.path, p.bounds) for p in parcels], "failed": has_failed}
        path = self.notice(iteration, self.share)
        fresh = path.with_suffix(".tmp")
        fresh.write_text(json.dumps(notice), encoding="utf-8")
        os.replace(fresh, path)

    def await_notices(self, iteration: int) -> list[dict[str, Any]]:
        """The notices of all tasks. A task that fails is noticed by Spark, which then ends this one too."""
        notices = []
        for share in range(self.spec.shares):
            path, pause = self.notice(iteration, share), _SHORTEST_PAUSE
            while not path.exists():
                if not self.folder.exists():
                    raise RuntimeError("the driver has given this attempt up")
                time.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            notices.append(json.loads(path.read_text(encoding="utf-8")))
        return notices

    def notice(self, iteration: int, share: int) -> Path:
        return self.folder / f"{iteration}-{share}.json"

    def discard(self, iteration: int) -> None:
        """Removes the parcels of an iteration that all tasks have left behind."""
        for path in self.folder.glob(f"{iteration}-{self.share}-*.npy"):
            path.unlink(missing_ok=True)

    # --- results ---------------------------------------------------------------------------------------------------

    def results(self) -> Iterator[Result]:
        derivations = self.watch.derivations
        for name in self.spec.plan.stratum.relations:
            owner = self.spec.plan.owner(name)
            relation = self.relations[owner.name]
            facts = facts_with(
                relation.rows[: relation.used], relation.level[: relation.used], relation.count[: relation.used]
            )
            if owner.column is None:
                # Every task holds all of it: the first one tells.
                facts = (
                    facts if self.share == 0 else facts_with(facts.words[:0], facts.words[:0, 0], facts.words[:0, 0])
                )
            file = write_words(Path(self.spec.folder), name, facts)
            yield Result(self.share, name, file.path, file.rows, derivations)
            derivations = 0


def head_name(relation: str) -> str:
    """The relation that collects the heads of an iteration; no program can write its name."""
    return f"{relation}@heads"
