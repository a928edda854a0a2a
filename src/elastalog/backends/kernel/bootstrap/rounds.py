"""Rounds of a bootstrap in the machine (see `machine.growth`), and who has them run: in this thread or in all of a
crew, by inserting and counting what is derived or by doing something else with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from elastalog.backends.kernel.bootstrap.bodies import StratumBodies
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.machine import growth, layout
from elastalog.backends.kernel.machine.layout import VariantCode
from elastalog.backends.kernel.machine.plan import UNIT, MachinePlan, MachineVariants, start_of
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.late import dataclass

NO_LIMIT: Final = 1 << 62
ONE_ROUND: Final = -1
"""How many facts may be found before a further round is asked for."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an evaluation is: the delta of each relation, the iteration that comes next, whether there is none.
    `is_first`: nothing has been derived yet, so that facts of relations below are new."""

    start: Mapping[str, int]
    stop: Mapping[str, int]
    iteration: int
    is_done: bool = False
    is_first: bool = False

    @property
    def found(self) -> int:
        """The facts of the delta."""
        return sum(self.stop.values()) - sum(self.start.values())


def first_progress(own: Sequence[KernelRelation], iteration: int = 1) -> Progress:
    """Nothing has been derived; all that relations hold is new."""
    return Progress({each.name: 0 for each in own}, {each.name: each.used for each in own}, iteration, is_first=True)


class GlobalLevels(NamedTuple):
    """What global levels need: the relations whose facts count as level 0, the workspace in whose queue derivations
    wait, filed under the places of their heads' relations among those of the stratum, and the level from which on none
    has to."""

    flat: frozenset[str]
    workspace: Workspace
    until: int


_SPARE: Final[list[Workspace]] = []
_MOST_SPARE: Final = 8
"""Workspaces that no evaluation uses, and how many are kept, and of code that sessions can share: a session that has
been opened may never need them again."""


def spare_workspace() -> Workspace:
    """A workspace that is not in use."""
    try:
        return _SPARE.pop()
    except IndexError:
        return Workspace()


def give_workspace_back(workspace: Workspace) -> None:
    """Keeps a workspace that is no longer in use, unless enough are kept."""
    if len(_SPARE) < _MOST_SPARE:
        _SPARE.append(workspace)


class MachineRounds(MachineRun):
    """The bodies of a stratum, laid out for the machine. `take`: what is done with what a variant gives, if that is not
    just inserted and counted. With `global_levels`, iterations are levels, and facts of lower relations have theirs. In
    both cases every variant is run for itself."""

    def __init__(
        self,
        stratum: StratumBodies,
        watch: Watch,
        take: Callable[[BoundVariant, Matrix, int], None] | None = None,
        global_levels: GlobalLevels | None = None,
    ) -> None:
        own = stratum.own
        self.planned = stratum.bodies
        is_plain = take is None and global_levels is None
        bodies = stratum.bodies if is_plain else [one for body in stratum.bodies for one in body.each]
        # As the machine has them: those first that start at facts of the stratum.
        self.bodies = sorted(bodies, key=lambda body: start_of(body) not in own)
        self._stratum = stratum.number
        self._own = own
        self._given_to = take
        self.carries_levels = global_levels is not None
        carried, flat, until = 0, frozenset[str](), NO_LIMIT
        if global_levels is not None:
            carried, (flat, workspace, until) = LEVELS, global_levels
        else:
            workspace = spare_workspace()
        plan = self._laid_out(stratum, flat, carried, (stratum.key, is_plain, carried))
        super().__init__(plan, workspace, stratum.binder.relations, watch, has_entries=False)
        self._rows = {name: plan.relations[plan.number[name]] for name in own}
        self._task = growth.GrowthTask(carried=carried, hands_on=take is not None, until=until)
        workspace.attach(plan, self._task)
        self._told = 0

    def _laid_out(self, stratum: StratumBodies, flat: frozenset[str], carried: int, key: object) -> MachinePlan:
        """The code of the bodies, which another evaluation may have left."""
        self._spare_plans: list[MachinePlan] = stratum.codes.setdefault(key, []) if stratum.key else []
        try:
            plan: MachinePlan = self._spare_plans.pop()
            plan.code.belong_to(stratum.binder.dictionary)
        except IndexError:  # there is none, or another thread was faster
            variants = MachineVariants(self.bodies)
            plan = MachinePlan(stratum.own, flat | {UNIT}, variants, carried)
        return plan

    def give_back(self) -> None:
        """No further round will be run: leaves workspace and code to others."""
        if not self.carries_levels:
            give_workspace_back(self.workspace)
        if self.plan.code.is_general and len(self._spare_plans) < _MOST_SPARE:
            self._spare_plans.append(self.plan)

    def run_from(self, progress: Progress, most_found: int = ONE_ROUND) -> Progress:
        """Runs iterations, from where the evaluation is, until the fixpoint, or until `most_found` facts are found. Not
        every iteration is told the watch, but where it is whenever limits are looked at, and at the end."""
        start, stop = progress.start, progress.stop
        plan, task = self.plan, self._task
        plan.refresh(self.relations)
        for name, row in zip(plan.names, plan.relations, strict=True):
            used = 1 if name == UNIT else self.relations[name].used
            row.delta, row.delta_end = start.get(name, 0), stop.get(name, used if progress.is_first else 0)
        task.iteration, task.most_found, task.most_work = progress.iteration, most_found, NO_LIMIT
        self._told = sum(stop[name] for name in self._own)
        self.watch.rounds += 1
        began = time.perf_counter()
        try:
            reason = self._go_on()
        finally:
            self._note(time.perf_counter() - began)
        self.watch.check()
        return Progress(
            {name: row.delta for name, row in self._rows.items()},
            {name: row.delta_end for name, row in self._rows.items()},
            task.iteration,
            reason == layout.DONE,
        )

    def _go_on(self) -> int:
        """Runs iterations in this thread; returns DONE, or LARGE if there are others."""
        machine = self.workspace.machine
        machine.served = 0
        self._task.opened = machine.work_before
        reason = self.run(growth.grow)
        self.tell()
        return reason

    def _take(self, number: int, block: Matrix, used: int) -> None:
        assert self._given_to is not None
        variant = self.bodies[number]
        self._given_to(variant, block, used)
        self.plan.code.variants[number].made += used
        self.relations[variant.clause.head].lay_out()

    def _check(self) -> None:
        super()._check()
        self.tell()

    def tell(self) -> None:
        """Tells the watch how far it is, if anybody wants to know."""
        if self._stratum >= 0 and self.watch.on_progress is not None:
            now = sum(self.relations[name].used for name in self._own)
            self.watch.tell(self._stratum, self._task.iteration, now - self._told)
            self._told = now

    def _codes(self) -> Sequence[Sequence[VariantCode]]:
        """Where it is written what variants have done, by thread."""
        return [list(self.plan.code.variants)]

    def _note(self, seconds: float) -> None:
        """Tells bodies what they have come to. The time of each was not measured; rows are the best measure of their
        shares."""
        threads = self._codes()
        looked = max(sum(code.looked for codes in threads for code in codes), 1)
        for codes in threads:
            for body, code in zip(self.bodies, codes, strict=True):
                every = body.each
                for one in every:
                    one.derivations += code.made
                    one.rows += code.looked
                    one.start_rows += code.started
                    one.seconds += seconds * code.looked / looked / len(every)
                code.made = code.looked = code.started = 0


class Workers:
    """Have the rounds of strata run, in the threads of a crew, this one among them; small ones and actions on texts in
    this one only."""

    def __init__(self, relations: Mapping[str, KernelRelation], watch: Watch, crew: Crew = ALONE) -> None:
        self.relations = relations
        self.watch = watch
        self.crew = crew

    def rounds(self, stratum: StratumBodies, progress: Progress, last: MachineRounds | None = None) -> MachineRounds:
        """The rounds that are to come: the `last` ones, as long as these can go on."""
        if last is not None and last.planned is stratum.bodies:
            return last
        if self.crew.number > 1:
            from elastalog.backends.kernel.bootstrap.shared_growth import SharedGrowth

            return SharedGrowth(self.crew, stratum, self.watch)
        return MachineRounds(stratum, self.watch)

    def run_round(self, stratum: StratumBodies, progress: Progress) -> None:
        """Runs one round of bodies that are run once."""
        rounds = self.rounds(stratum, progress)
        rounds.run_from(progress)
        rounds.give_back()


class SettlingWorkers(Workers):
    """Have rounds run one by one, in this thread, and do something else with what is derived than to insert and to
    count it; what a round has come to is settled at its end. `before`: where relations ended before the round."""

    def __init__(self, relations: Mapping[str, KernelRelation], watch: Watch) -> None:
        super().__init__(relations, watch)
        self.before: Mapping[str, int] = {}

    def rounds(self, stratum: StratumBodies, progress: Progress, last: MachineRounds | None = None) -> MachineRounds:
        self.before = progress.stop
        if last is not None and last.planned is stratum.bodies:
            return last
        return MachineRounds(stratum, self.watch, self.take)

    def take(self, variant: BoundVariant, block: Matrix, used: int) -> None:
        """Inserts what a variant has derived."""
        head = self.relations[variant.clause.head]
        head.insert(block, 0, used, self.before[head.name])
        self.watch.derived(used)

    def settle(self, iteration: int) -> Mapping[str, int]:
        """Finds what else a round has, and what comes before the first one (0). Returns where its facts begin."""
        return self.before

    def finish(self) -> None:
        """The fixpoint is reached."""

    def settled(self, own: Sequence[KernelRelation], progress: Progress) -> Progress:
        """Where the evaluation is after a round, which had brought it to where it is said to be."""
        iteration = progress.iteration - 1
        start = self.settle(iteration)
        for relation in own:
            if relation.is_annotated:
                relation.level[start[relation.name] : relation.used] = iteration
        after = Progress(start, {each.name: each.used for each in own}, progress.iteration)
        return Progress(after.start, after.stop, after.iteration, is_done=not after.found)


class WorkersAside(SettlingWorkers):
    """Set aside what the rules give in a round for the relations of a stratum, each fact with the number of its
    derivations, in `found`."""

    def __init__(self, own: Sequence[KernelRelation], relations: Mapping[str, KernelRelation], watch: Watch) -> None:
        super().__init__(relations, watch)
        self.own = own
        self.found: dict[str, KernelRelation] = {}
        self.clear()

    def clear(self) -> None:
        """Nothing is set aside; there is room for about as much as was."""
        for each in self.own:
            before, empty = self.found.get(each.name, each), KernelRelation(each.name, each.width, is_annotated=True)
            empty.expect(before.used)
            self.found[each.name] = empty

    def take(self, variant: BoundVariant, block: Matrix, used: int) -> None:
        self.found[variant.clause.head].insert(block, 0, used, 0)
        self.watch.derived(used)
