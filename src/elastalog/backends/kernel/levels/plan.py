"""The variants of a stratum's clauses that updates use, whatever its facts carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from types import ModuleType
from typing import Any

from elastalog.backends.kernel.bootstrap.bodies import for_all_heads, sharing
from elastalog.backends.kernel.execution.bound_variant import Binder, BoundVariant, is_indexed
from elastalog.backends.kernel.machine import drive as machine_drive
from elastalog.backends.kernel.machine import inputs as machine_inputs
from elastalog.backends.kernel.machine import stratum_update
from elastalog.backends.kernel.machine.plan import IndexKey, MachinePlan, MachineVariants
from elastalog.backends.kernel.store import bookkeeping, transaction
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.jit.operators import operator_of
from elastalog.planning.logical import Clause, LogicalStratum, Scan, Test
from elastalog.planning.steps import Gather, Generate, Probe
from elastalog.planning.variants import other_ways, plan_backward, plan_from_goal
from elastalog.settings import SETTINGS


class MaintenancePlan:
    """The variants of a stratum's clauses that updates use: from every goal forwards, and from the head backwards.

    `recovering` are the backward variants for facts that lost all derivations of their level. With local levels a
    clause that is not recursive fires at level 1 only: if it still derived the fact, the fact would have level 1 and
    that derivation would be counted. So only recursive clauses can recover it. An explicit fact, whose derivations were
    never counted, needs all (`backward`, planned when it is first asked for). `forks`: others of the same start, by
    forward variants (see `planning.variants`). `flat` are the relations below whose facts count as level 0. Without
    `looks_back` there are no variants backwards. `is_global`: strata above hear of facts that have another level.
    `kept`: what sessions of the program with relations of like, small sizes share."""

    def __init__(
        self,
        stratum: LogicalStratum,
        flat: frozenset[str],
        binder: Binder,
        is_global: bool,
        looks_back: bool = True,
        kept: dict[Any, Any] | None = None,
    ) -> None:
        self._binder = binder
        self._statistics = binder.statistics
        self.flat = flat
        self.is_global = is_global
        self._own = stratum.relations
        self._stratum = stratum
        self._clauses = stratum.clauses if looks_back else ()
        sizes = None if kept is None else self._statistics.small_sizes((*self._own, *sorted(stratum.reads)))
        self._kept = {} if kept is None or sizes is None else kept
        self._key = stratum.number, is_global, looks_back, sizes
        self._machine: MachinePlan | None = None
        self._looks_for_explicit = False
        self._whole: dict[BoundVariant, tuple[BoundVariant, int]] = {}
        self._laid_out: list[BoundVariant] = []
        self.forks: dict[BoundVariant, BoundVariant] = {}

    @cached_property
    def forward(self) -> dict[str, list[BoundVariant]]:
        """The variants from every goal, by the relation of that."""
        found: dict[str, list[BoundVariant]] = {}
        for clause in self._stratum.clauses:
            for position, goal in enumerate(clause.goals):
                if not isinstance(goal, Test):
                    planned = plan_from_goal(clause, position, self._statistics)
                    found.setdefault(goal.relation, []).append(self._binder.bind(planned))
        return found

    @cached_property
    def recovering(self) -> dict[str, list[BoundVariant]]:
        """See above; by their heads."""
        found: dict[str, list[BoundVariant]] = {}
        for clause in self._clauses:
            if self.is_global or clause.is_recursive:
                found.setdefault(clause.head, []).append(self._backwards(clause))
        return found

    def _backwards(self, clause: Clause) -> BoundVariant:
        return self._binder.bind(plan_backward(clause, self._statistics))

    @cached_property
    def backward(self) -> dict[str, list[BoundVariant]]:
        """The backward variants of all clauses, by their heads."""
        known = {id(variant.clause): variant for variant in _listed(self.recovering)}
        found: dict[str, list[BoundVariant]] = {}
        for clause in self._clauses:
            found.setdefault(clause.head, []).append(known.get(id(clause)) or self._backwards(clause))
        return found

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes an update needs, but for the rare deletion of an explicit fact that rules derive too."""
        for name, columns in self.machine.keys:
            relations[name].index(columns)
        self.machine.refresh(relations)

    def look_for_explicit(self) -> None:
        """Explicit facts may go that rules derive too: from now on the machine looks for such."""
        if not self._looks_for_explicit and len(self._clauses) > len(_listed(self.recovering)):
            self._looks_for_explicit, self._machine = True, None

    @property
    def machine(self) -> MachinePlan:
        """The variants as the machine runs them; those that only explicit facts need if such have gone."""
        if self._machine is None:
            if self._key in self._kept and not self._looks_for_explicit:
                self._machine = self._kept[self._key].copied()
                self._machine.code.belong_to(self._binder.dictionary)
                return self._machine
            recovering = _listed(self.recovering)
            if not self._laid_out:
                forward = _listed(self.forward)
                self._whole = self._enumerating(forward, recovering)
                self._laid_out = self._shared(forward)
                self.forks = self._find_forks(self._laid_out, recovering)
            backward = _listed(self.backward) if self._looks_for_explicit else recovering
            variants = MachineVariants(self._laid_out, backward, recovering, self._whole, self.forks)
            made = self._machine = MachinePlan(self._own, self.flat, variants)
            if made.code.is_general and not self._looks_for_explicit and self._key[-1] is not None:
                self._kept[self._key] = made.copied()
        return self._machine

    def _shared(self, forward: Sequence[BoundVariant]) -> list[BoundVariant]:
        """Variants of rules with several heads, one for all heads."""
        found: list[BoundVariant] = []
        for members in sharing(forward):
            found += members if _may_widen(members[0]) else [for_all_heads(members, self._binder)]
        return found

    def _find_forks(
        self, forward: Sequence[BoundVariant], recovering: Sequence[BoundVariant]
    ) -> dict[BoundVariant, BoundVariant]:
        """By variants, others of the same start that take the facts which meet less on their way."""
        there = {index for variant in (*forward, *recovering) for index in _indexes(variant)}
        size = sum(map(self._statistics.rows, self._own))
        found: dict[BoundVariant, BoundVariant] = {}
        for usual in forward:
            if usual.clauses:
                continue
            for planned in other_ways(usual.planned, self._statistics):
                other = self._binder.bind(planned)
                share, more = SETTINGS.fork_index_share, _indexes(other) - there
                if all(share * self._statistics.rows(name) <= size for name, _ in more):
                    found[usual] = other
                    break
        return found

    def _enumerating(
        self, forward: Sequence[BoundVariant], recovering: Sequence[BoundVariant]
    ) -> dict[BoundVariant, tuple[BoundVariant, int]]:
        """For variants that look for lost facts, the one by which their clause is enumerated, from the smallest
        relation of the stratum, and how many rows that should take as long as that is not known."""
        found: dict[BoundVariant, tuple[BoundVariant, int]] = {}
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


def _listed(by_relation: Mapping[str, Sequence[BoundVariant]]) -> list[BoundVariant]:
    return [variant for variants in by_relation.values() for variant in variants]


def _indexes(variant: BoundVariant) -> set[IndexKey]:
    return {(probe.relation, probe.key_columns) for probe in variant.probes if is_indexed(probe)}


def _may_widen(variant: BoundVariant) -> bool:
    """Whether a block of a variant may get more rows than usual."""
    steps: list[Gather | Probe] = [variant.planned.gather, *variant.planned.probes]
    return any(isinstance(action, Generate) for step in steps for action in step.actions)


def load_operators(*others: ModuleType) -> None:
    """Compiles what updates run, with the operators of other modules, or finds it in the cache, so that the first
    update need not."""
    for module in (stratum_update, machine_drive, machine_inputs, bookkeeping, transaction, *others):
        for each in filter(None, map(operator_of, vars(module).values())):
            each.load()
