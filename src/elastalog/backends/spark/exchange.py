"""A stratum that does not decompose, evaluated by tasks that run at the same time and exchange what they derive.

Every task holds its share of the copies that the plan names. An iteration of a task: take the facts that all tasks
derived for its copies in the iteration before, each new one at this level; derive from them; give the heads to the
shares that want them. It ends when none derived anything. So iterations, levels and counts are those of the kernel.

Spark starts the tasks together and, if one fails, ends them all (barrier mode). The driver repeats a job that failed;
files of an earlier attempt lie in another folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.bootstrap.rounds import MachineRounds, Progress, Workers
from elastalog.backends.kernel.execution.bound_variant import Binder
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import Matrix
from elastalog.backends.spark.consensus import IdConsensus
from elastalog.backends.spark.messages import Messages, Outgoing, TaskFailed, add_counts
from elastalog.backends.spark.results import Fault, FileWritten, Result
from elastalog.backends.spark.task import StratumSpec, written_facts
from elastalog.backends.spark.transports import linked
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at
from elastalog.planning.decompose import Copy, with_copies
from elastalog.relations.facts import FactWords

_MUCH_ROOM, _FEW_HEADS = 8, 64
"""The room for the heads of an iteration is used again, unless it is over `_MUCH_ROOM` times what was needed."""


def evaluate_together(spec: StratumSpec, share: int) -> Result:
    """The part of one task in the fixpoint of a stratum; if it cannot do its part, the others are told."""
    folder = attempt_folder(spec)
    links = linked(folder, share, spec.shares, spec.token, own_host()) if spec.shares > 1 else {}
    if links is None:
        return Result(share, fault=Fault.UNLINKED)
    messages = Messages(folder, spec.folder, share, links)
    try:
        result = ExchangingTask(spec, share, messages).run()
    except TaskFailed:
        return Result(share, fault=Fault.NEW_VALUES)
    except ElastalogError:
        messages.give_up()
        raise
    finally:
        messages.close()
    result.rounds, result.waited, result.sent = messages.rounds, messages.waited, messages.sent
    return result


def own_host() -> str:
    """The host of this task, as Spark's barrier names it to the other tasks; where all are on one machine, that."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    hosts = [task.address.partition(":")[0] for task in context.getTaskInfos()]
    return hosts[context.partitionId()] if len(set(hosts)) > 1 else "127.0.0.1"


def attempt_folder(spec: StratumSpec) -> str:
    """The folder of this attempt, the same for all its tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    folder = inside(spec.folder, f"attempt-{context.stageId()}-{context.attemptNumber()}")
    files_at(folder).make_folder(folder)
    return folder


class ExchangingTask:
    """One of the tasks that evaluate a stratum together: its copies, and the heads that it derives in an iteration.
    `program`: the clauses that are the task's, their heads in relations of their own. `own`: the relations of the
    stratum."""

    def __init__(self, spec: StratumSpec, share: int, messages: Messages) -> None:
        self.spec = spec
        self.share = share
        self.messages = messages
        self.watch = Watch()
        self.dictionary = spec.values.dictionary()
        self.own = spec.plan.stratum.relations
        self.own_copies = [copy for copy in spec.plan.copies if copy.relation in self.own]
        clauses = tuple(
            replace(clause, head=head_name(clause.head)) for clause in spec.clauses_of(share, self.dictionary)
        )
        program = with_copies(spec.program, spec.plan, clauses)
        self.consensus = IdConsensus(spec.values, self.dictionary)
        owned = {spec.plan.owner(name).name for name in self.own}
        self.relations = {n: KernelRelation(n, stored.width, n in owned) for n, stored in program.relations.items()}
        for copy in spec.plan.copies:
            facts = spec.start if copy.relation in self.own else spec.present
            self.relations[copy.name].load(facts(copy, share))
        self.empty_heads()
        binder = Binder(self.relations, self.dictionary, program.checked.source)
        self.variants = StratumVariants(program.strata[0], binder)
        self.workers = Workers(self.relations, self.watch)
        self.rounds: MachineRounds | None = None

    def empty_heads(self) -> None:
        for name in self.own:
            head = head_name(name)
            heads = self.relations.get(head)
            if heads is None or len(heads.table) > _MUCH_ROOM * max(heads.used, _FEW_HEADS):
                width = self.spec.program.relations[name].width
                self.relations[head] = KernelRelation(head, width, is_annotated=True)
            elif heads.used:
                heads.table.fill(0)
                heads.used = 0

    def run(self) -> Result:
        names = [copy.name for copy in self.own_copies]
        start = dict.fromkeys(names, 0)
        stop = {name: self.relations[name].used for name in names}
        iteration = 1
        while True:
            self.derive(iteration, start, stop)
            if not self.spec.agrees and self.spec.values.is_outgrown_by(self.dictionary):
                self.messages.give_up()
                return Result(self.share, fault=Fault.NEW_VALUES)
            if self.spec.agrees:  # on the numbers of new values, before the heads just derived are given away
                self.messages.exchange({}, self.consensus.news())
                self.consensus.agree(self.messages.notes)
            messages = self.messages.exchange(self.outgoing())
            if not messages:
                break
            start = stop
            for copy in self.own_copies:
                blocks = [message.rows for message in messages if message.address == copy.name and len(message.rows)]
                bases = self.spec.program.relations[copy.relation].bases
                self.receive(copy, [self.consensus.inward(block, bases) for block in blocks], iteration)
            stop = {name: self.relations[name].used for name in names}
            self.variants.adapt()
            for name in names:
                self.relations[name].extend_indexes()
            iteration += 1
        result = Result(self.share, list(self.files()), self.watch.derivations)
        if not self.consensus.is_empty and not self.share:
            result.made = self.consensus.values
        return result

    def derive(self, iteration: int, start: dict[str, int], stop: dict[str, int]) -> None:
        """Runs every version of the clauses over the delta; heads are collected, each once, with the number of
        derivations."""
        self.empty_heads()
        heads = dict.fromkeys(map(head_name, self.own), 0)
        progress = Progress(start | heads, stop | heads, iteration, is_first=iteration == 1)
        laid_out = replace(self.variants.laid_out, number=-1, own=tuple(progress.stop))
        self.rounds = self.workers.rounds(laid_out, progress, self.rounds)
        self.rounds.run_from(progress)

    def outgoing(self) -> dict[str, Outgoing]:
        """The heads of this iteration, for every copy that wants them; owners get their counts too."""
        found = {}
        for copy in self.own_copies:
            heads = self.relations[head_name(copy.relation)]
            count = heads.count[: heads.used] if self.relations[copy.name].is_annotated else None
            rows = self.outward(copy.relation, heads.rows[: heads.used])
            found[copy.name] = Outgoing(rows, self.spec.routings[copy.name].shares_of(rows), count)
        return found

    def outward(self, name: str, facts: Matrix) -> Matrix:
        """Facts of a relation in words that all tasks know."""
        return self.consensus.outward(facts, self.spec.program.relations[name].bases)

    def receive(self, copy: Copy, blocks: list[np.ndarray], level: int) -> None:
        """Adds facts to a copy. Those that are new are at this level, with all their derivations."""
        relation = self.relations[copy.name]
        first = relation.used
        for block in blocks:
            relation.insert(block, 0, len(block), first)
        if relation.is_annotated and relation.used > first:
            # Inserting has counted every row as one derivation.
            for block in blocks:
                add_counts(block, relation.rows, relation.table, relation.shift, relation.count, first)
            relation.level[first : relation.used] = level
        relation.present = relation.used

    def files(self) -> Iterator[FileWritten]:
        """Writes the facts that this task owns."""
        for name in self.spec.plan.stratum.relations:
            owner = self.spec.plan.owner(name)
            relation = self.relations[owner.name]
            rows, level, count = (array[: relation.used] for array in (relation.rows, relation.level, relation.count))
            rows = self.outward(name, rows)
            # What several tasks hold, one of them owns.
            is_mine = self.spec.owners(name).shares_of(rows) == self.share
            if not is_mine.all():
                rows, level, count = rows[is_mine], level[is_mine], count[is_mine]
            if not self.spec.annotation.is_kept:
                level, count = np.minimum(level, 1), np.ones(len(rows), np.int32)
            yield from written_facts(self.spec, self.share, name, FactWords(rows, level, count))


def head_name(relation: str) -> str:
    """The relation that collects the heads of an iteration; no program can write its name."""
    return f"{relation}@heads"
