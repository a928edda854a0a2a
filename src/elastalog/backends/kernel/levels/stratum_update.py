"""The delta-driven Update of one stratum (algorithm 4.4 in its counting form), phase by phase.

Losses go first, over the previous epoch: a derivation through a lost fact is taken off its head's count if it was
counted there, and a head whose count reaches 0 is lost in its turn. Counts only count derivations from lower levels, so
this never turns in a circle. Then every lost fact is looked for backwards, and gains settle in the order of their
levels. Each derivation through a changed fact is enumerated once a phase: at the delta that contains its last changed
fact, by the first goal that is in that delta. The rounds of a phase run in compiled code (see `machine.update`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from types import ModuleType

from elastalog.backends.kernel.bootstrap.bodies import what_is_shared
from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.execution.delta_variant import DeltaVariant
from elastalog.backends.kernel.machine import drive as machine_drive
from elastalog.backends.kernel.machine import inputs as machine_inputs
from elastalog.backends.kernel.machine import layout, update
from elastalog.backends.kernel.machine.code import IndexKey, Variant, is_indexed
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store import bookkeeping, given, homes
from elastalog.backends.kernel.store.annotations import DELTA, DELTA_LIST, FIXED, LOSS_LIST
from elastalog.backends.kernel.store.impulse import Impulse
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.kernel.store.transaction import changed_entries
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.jit.operators import Operator
from elastalog.planning.logical import Clause, LogicalStratum, Scan, Test
from elastalog.planning.steps import Gather, Generate, Probe
from elastalog.planning.variants import other_ways, plan_backward, plan_from_goal, plan_heads
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS


class MaintenancePlan:
    """The variants of a stratum's clauses that updates use: from every goal forwards, and from the head backwards.

    `recovering` are the backward variants for facts that lost all derivations of their level. With local levels a
    clause that is not recursive fires at level 1 only: if it still derived the fact, the fact would have level 1 and
    that derivation would be counted. So only recursive clauses can recover it. An explicit fact, whose derivations were
    never counted, needs all (`backward`, planned when it is first asked for). `forks`: others of the same start, by
    forward variants (see `planning.variants`). `flat` are the relations below whose facts count as level 0. Without
    `looks_back` there are no variants backwards. `is_global`: strata above hear of facts that have another level."""

    def __init__(
        self,
        stratum: LogicalStratum,
        flat: frozenset[str],
        dictionary: Dictionary,
        source: Source,
        is_global: bool,
        statistics: KernelStatistics,
        looks_back: bool = True,
    ) -> None:
        self._statistics = statistics
        self.flat = flat
        self.is_global = is_global
        self._dictionary = dictionary
        self._source = source
        self._own = stratum.relations
        self._clauses = stratum.clauses if looks_back else ()
        self._machines: dict[bool, MachinePlan] = {}
        self._whole: dict[Variant, tuple[Variant, int]] = {}
        self._laid_out: list[DeltaVariant] = []
        self.forks: dict[Variant, DeltaVariant] = {}
        self.forward: dict[str, list[DeltaVariant]] = {}
        self.recovering: dict[str, list[DeltaVariant]] = {}
        for clause in stratum.clauses:
            for position, goal in enumerate(clause.goals):
                if not isinstance(goal, Test):
                    planned = plan_from_goal(clause, position, statistics)
                    self.forward.setdefault(goal.relation, []).append(DeltaVariant(planned, dictionary, source))
            if looks_back and (is_global or clause.is_recursive):
                self.recovering.setdefault(clause.head, []).append(self._backwards(clause))

    def _backwards(self, clause: Clause) -> DeltaVariant:
        return DeltaVariant(plan_backward(clause, self._statistics), self._dictionary, self._source)

    @cached_property
    def backward(self) -> dict[str, list[DeltaVariant]]:
        """The backward variants of all clauses, by their heads."""
        known = {id(variant.clause): variant for variant in _listed(self.recovering)}
        found: dict[str, list[DeltaVariant]] = {}
        for clause in self._clauses:
            found.setdefault(clause.head, []).append(known.get(id(clause)) or self._backwards(clause))
        return found

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes an update needs, but for the rare deletion of an explicit fact that rules derive too."""
        machine = self.machine
        for variants in (*self.forward.values(), *self.recovering.values(), self.forks.values()):
            for variant in variants:
                variant.prepare(relations)
        machine.refresh(relations)

    @property
    def machine(self) -> MachinePlan:
        """The variants as the machine runs them, but for those that only explicit facts need."""
        return self._machine_with(is_all=False)

    @property
    def machine_of_all(self) -> MachinePlan:
        """The same with all of them."""
        return self._machine_with(is_all=len(self._clauses) > len(_listed(self.recovering)))

    def _machine_with(self, *, is_all: bool) -> MachinePlan:
        made = self._machines.get(is_all)
        if made is None:
            recovering = _listed(self.recovering)
            if not self._laid_out:
                forward = _listed(self.forward)
                self._whole = self._enumerating(forward, recovering)
                self._laid_out = self._shared(forward)
                self.forks = self._find_forks(self._laid_out, recovering)
            backward = _listed(self.backward) if is_all else recovering
            made = self._machines[is_all] = MachinePlan(
                self._own, self.flat, self._laid_out, backward, recovering, self._dictionary,
                whole=self._whole, forks=self.forks,
            )  # fmt: skip
        return made

    def _shared(self, forward: Sequence[DeltaVariant]) -> list[DeltaVariant]:
        """Variants of rules with several heads, one for all heads."""
        groups: dict[object, list[DeltaVariant]] = {}
        for variant in forward:
            groups.setdefault(what_is_shared(variant), []).append(variant)
        found: list[DeltaVariant] = []
        for members in groups.values():
            is_alone = len(members) == 1 or _may_widen(members[0])
            found += members if is_alone else [self._for_all_heads(members)]
        return found

    def _for_all_heads(self, members: Sequence[DeltaVariant]) -> DeltaVariant:
        clauses, goal = [member.clause for member in members], members[0].gather.goal
        assert goal is not None
        return DeltaVariant(plan_heads(clauses, goal, self._statistics), self._dictionary, self._source, clauses)

    def _find_forks(
        self, forward: Sequence[DeltaVariant], recovering: Sequence[DeltaVariant]
    ) -> dict[Variant, DeltaVariant]:
        """By variants, others of the same start that take the facts which meet less on their way."""
        there = {index for variant in (*forward, *recovering) for index in _indexes(variant)}
        size = sum(map(self._statistics.rows, self._own))
        found: dict[Variant, DeltaVariant] = {}
        for usual in forward:
            if usual.clauses:
                continue
            for planned in other_ways(usual.planned, self._statistics):
                other = DeltaVariant(planned, self._dictionary, self._source)
                share, more = SETTINGS.fork_index_share, _indexes(other) - there
                if all(share * self._statistics.rows(name) <= size for name, _ in more):
                    found[usual] = other
                    break
        return found

    def _enumerating(
        self, forward: Sequence[DeltaVariant], recovering: Sequence[DeltaVariant]
    ) -> dict[Variant, tuple[Variant, int]]:
        """For variants that look for lost facts, the one by which their clause is enumerated, from the smallest
        relation of the stratum, and how many rows that should take as long as nobody knows."""
        found: dict[Variant, tuple[Variant, int]] = {}
        for sought in recovering:
            starts = [
                (self._statistics.rows(goal.relation), variant)
                for variant in forward
                if variant.clause is sought.clause
                and isinstance(goal := variant.clause.goals[variant.gather.goal or 0], Scan)
                and (goal.relation in self._own or not variant.clause.is_recursive)
            ]
            if starts:
                rows, start = min(starts, key=itemgetter(0))
                found[sought] = start, SETTINGS.enumerate_from + SETTINGS.rows_a_fact * int(rows)
        return found


def _listed(by_relation: Mapping[str, Sequence[DeltaVariant]]) -> list[DeltaVariant]:
    return [variant for variants in by_relation.values() for variant in variants]


def _indexes(variant: DeltaVariant) -> set[IndexKey]:
    return {(probe.relation, probe.key_columns) for probe in variant.probes if is_indexed(probe)}


def _may_widen(variant: DeltaVariant) -> bool:
    """Whether a block of a variant may get more rows than usual."""
    steps: list[Gather | Probe] = [variant.planned.gather, *variant.planned.probes]
    return any(isinstance(action, Generate) for step in steps for action in step.actions)


def load_operators(*others: ModuleType) -> None:
    """Compiles what updates run, with the operators of other modules, or finds it in the cache, so that the first
    update need not."""
    for module in (update, machine_drive, machine_inputs, bookkeeping, given, homes, *others):
        for value in vars(module).values():
            if isinstance(value, Operator):
                value.load()


class StratumMaintenance:
    """An update of one stratum under way. `deleted` and `inserted`: the entries of its own explicit facts that go and
    come."""

    def __init__(self, plan: MaintenancePlan, impulse: Impulse, workspace: Workspace) -> None:
        self.plan = plan.machine_of_all if impulse.deleted else plan.machine
        self.relations = impulse.relations
        self.own = impulse.stratum.relations
        self.flat = plan.flat
        self._is_global = plan.is_global
        self.inputs = impulse.below
        self.deleted, self.inserted = impulse.entries()
        for name, entries in self.inserted.items():
            bookkeeping.mark(entries, self.relations[name].touched, FIXED, 0)
        self.workspace = workspace
        self._machine = self._make_run(impulse.watch)
        self._is_marked = False
        self._may_gain = False
        workspace.clear()
        workspace.attach(self.plan)
        self.plan.refresh(self.relations)
        machine_inputs.begin(workspace.address)
        for name, entries in self.inputs.items():
            relation = self.plan.relations[self.plan.number[name]]
            relation.changed, relation.changed_number = address_of(entries), len(entries)
        self._concerned = int(machine_inputs.look(workspace.address)) if self.inputs else 0

    def _make_run(self, watch: Watch) -> MachineRun:
        return MachineRun(self.plan, self.workspace, self.relations, self.own, watch)

    def update(self) -> None:
        """Brings the stratum to its new fixpoint: losses to their end, then gains in the order of their levels."""
        self.lose()
        self.recover()
        self.gain()

    def lose(self) -> None:
        """Takes away the old derivations through deleted facts and what changed below, and so on to the end."""
        if self._concerned & machine_inputs.MAY_LOSE or (self.deleted and self.plan.reads_own):
            self._is_marked = True
            machine_inputs.start_losing(self.workspace.address)
            self._start_own(self.deleted, DELTA)
            self._run(layout.LOSING)
        else:
            for name, entries in self.deleted.items():
                bookkeeping.list_marked(entries, self.relations[name].touched, 0, 0)
                bookkeeping.lose(entries, self.relations[name].touched)

    def recover(self) -> None:
        """Looks for the lost facts backwards, in what was there before the delta of gains."""
        lost = self.plan.losses(self.own)
        may_gain = self._concerned & machine_inputs.MAY_GAIN
        if not (self.inserted or self.deleted or lost or may_gain):
            return
        self._is_marked = True
        if self.inputs:
            machine_inputs.await_gains(self.workspace.address)
        for name, entries in self.inserted.items():
            bookkeeping.make_explicit(entries, self.relations[name].touched)
        self._recover_lost(lost)
        self._may_gain = bool(may_gain or (self.inserted and self.plan.reads_own))

    def gain(self) -> None:
        """Offers the derivations through what came to their heads, which settle level by level."""
        if self._may_gain or self.workspace.is_waiting:
            machine_inputs.start_gaining(self.workspace.address)
            self._start_own(self.inserted, 0)
            self._run(layout.GAINING)

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        self._unmark()
        changed = {}
        for name in self.own:
            relation = self.relations[name]
            relation.extend_indexes()
            if len(entries := changed_entries(relation, self._is_global)):
                changed[name] = entries
        return changed

    def abandon(self) -> None:
        """Forgets what is under way; the marks of this stratum are taken off the relations below it."""
        self.plan.keep(self.relations, self.own)
        self.workspace.clear()
        self.plan.refresh_touched(self.relations)
        self._unmark()

    # --- within ----------------------------------------------------------------------------------------------------

    def _unmark(self) -> None:
        if self._is_marked and self.inputs:
            machine_inputs.unmark(self.workspace.address)

    def _start_own(self, own: Mapping[str, Vector], added: int) -> None:
        """Explicit facts of the stratum are in the delta too, with another mark."""
        for name, entries in own.items():
            bookkeeping.list_marked(entries, self.relations[name].touched, added, 0)
            self.plan.relations[self.plan.number[name]].delta_end = len(entries)

    def _recover_lost(self, lost: Mapping[str, int]) -> None:
        """Finds what supports the facts that were deleted or lost; `lost` says how many of each relation are listed."""
        if not self.plan.backward.isdisjoint(self.deleted):
            self._recover(DELTA_LIST, {name: len(entries) for name, entries in self.deleted.items()})
        if not self.plan.recovering.isdisjoint(lost):
            self._recover(LOSS_LIST, lost)

    def _recover(self, column: int, lengths: Mapping[str, int]) -> None:
        """Looks for the facts of a list backwards."""
        machine_inputs.start_recovering(self.workspace.address, column)
        for name, length in lengths.items():
            self.plan.relations[self.plan.number[name]].delta_end = length
        self._run(layout.RECOVERING)

    def _run(self, phase: int) -> None:
        self.workspace.machine.phase = phase
        self._machine.run(update.advance)
