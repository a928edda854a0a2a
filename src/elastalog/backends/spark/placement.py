"""Where a stratum is evaluated, in the driver or by tasks, and why; by how many tasks, and how these run; and how
values that many facts have are kept from giving one task most of the work. The log has a line about it for every
stratum."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.protocol import Placed
from elastalog.backends.spark.routing import Routing, Treatment, hashed
from elastalog.backends.spark.values import Functions, may_agree, shows_numbers_of_texts, stays_here
from elastalog.backends.spark.word_files import FiledRelation
from elastalog.diagnostics.arguments import require_one_of
from elastalog.folders.files import files_at
from elastalog.planning.decompose import SharedClause, SharePlan, exchanging_plan, share_plan, whole_plan
from elastalog.planning.logical import LogicalProgram, LogicalStratum, Scan, Test
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("elastalog.placement")

Where = Literal["driver", "tasks", "exchanging tasks"]

SHARE_OF_MACHINE = 0.5
_BYTES_A_FACT = 28  # set table, annotations and an index, beside the words
_GROWTH_OF_RECURSION = 8

_ONE_PASS = 20
"""A stratum without recursion takes one pass over what it reads: it must read this many times the facts to pay."""


_MANY_SHARES = 4
_TOO_MUCH = 1.5
"""From `_MANY_SHARES` tasks on, one that has more than `_TOO_MUCH` times its part of the work is worth an exchange."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a stratum is evaluated, why in words, and the plan of the tasks if there are any."""

    where: Where
    why: str
    plan: SharePlan | None = None

    def placed(self, stratum: LogicalStratum) -> Placed:
        """The choice for a stratum, as all backends tell it."""
        where, why = ("kernel", self.why) if self.where == "driver" else ("spark", f"{self.where}: {self.why}")
        return Placed(stratum.number, stratum.relations, where, why)

    def tell(self, stratum: LogicalStratum) -> None:
        """Logs the choice."""
        log.info("stratum %d (%s): %s: %s", stratum.number, ", ".join(stratum.relations), self.where, self.why)


FALLEN_BACK = Placement("driver", "a task met an error, which is shown best where the program is")


def choose(
    program: LogicalProgram,
    stratum: LogicalStratum,
    sizes: Mapping[str, int],
    *,
    annotation: Annotation,
    is_elastic: bool,
    least_rows: int,
    memory: int,
    functions: Functions,
    has_made_values: bool = False,
    why_apart: str | None = None,
) -> Placement:
    """Where a stratum is best evaluated; its relations and those it reads have these sizes. `has_made_values`: several
    tasks have made new ones, and could not go on. `why_apart`: why tasks cannot exchange, if they cannot."""
    if annotation.support is Support.VECTORS:
        return Placement("driver", "the strategy keeps vectors of counts, which files of tasks do not hold")
    if stratum.aggregate is not None and stratum.aggregate.operator[0] == "@":
        return Placement("driver", f"`@{stratum.aggregate.operator}` is folded by a function of the user")
    functor = stays_here((*stratum.clauses, *stratum.dominance), functions)
    if functor is not None:
        return Placement("driver", f"functor `@{functor}` cannot be sent to tasks")
    needed = working_set(program, stratum, sizes)
    if is_elastic and needed <= memory:
        return Placement("driver", f"an estimated {needed >> 20:,} MiB of {memory >> 20:,} MiB")
    least = least_rows * (1 if stratum.is_recursive else _ONE_PASS)
    if not is_elastic and sum(sizes.values()) < least:
        return Placement("driver", f"fewer than {least:,} input facts")
    plan = share_plan(stratum, program)
    if not plan.is_for_one:
        why = _why_whole(plan, annotation, has_made_values, why_apart)
        plan = plan if why is None else whole_plan(stratum, why)
    if plan.is_for_one:
        return Placement("tasks", f"one task: {plan.obstacle}", plan)
    if plan.decomposes:
        told = ", ".join(f"argument {column + 1} of {name}" for name, column in (plan.arguments or {}).items())
        return Placement("tasks", f"decomposes by {told}", plan)
    agreed = "; they agree on the numbers of new values" if has_made_values else ""
    return Placement("exchanging tasks", f"{plan.obstacle}{agreed}", plan)


def _why_whole(plan: SharePlan, annotation: Annotation, has_made_values: bool, why_apart: str | None) -> str | None:
    """Why one task has to evaluate a stratum by the kernel, and several cannot by their plan; None if they can."""
    if has_made_values and any(shows_numbers_of_texts(clause) for clause in plan.stratum.clauses):
        return "rules make texts that have no number yet, and look at their numbers"
    if plan.decomposes:
        return None
    if annotation.is_global:
        return f"levels are global, and {plan.obstacle}"
    if annotation.support is not Support.LEVELS:
        return f"the strategy keeps other things than levels, and {plan.obstacle}"
    if has_made_values and not may_agree(plan.stratum):
        return f"rules make values that have no number yet, and {plan.obstacle}"
    return None if why_apart is None else f"tasks cannot exchange ({why_apart}), and {plan.obstacle}"


def spared(placement: Placement, stratum: LogicalStratum, part: float, shares: int) -> Placement:
    """The placement; or exchanging tasks, where one value makes up too large a part of what the stratum reads. In a
    stratum that decomposes, facts with the same value stay together, and one task would have most of the work."""
    if shares < _MANY_SHARES or part <= _TOO_MUCH / shares:
        return placement
    why = f"one value is in {part:.0%} of the facts of an input, too many for one of {shares} tasks"
    return Placement("exchanging tasks", why, exchanging_plan(stratum, why))


def working_set(program: LogicalProgram, stratum: LogicalStratum, sizes: Mapping[str, int]) -> int:
    """An estimate of the bytes that evaluating a stratum takes: what it reads, and as much again for what it derives,
    eight times as much under recursion. This is a rule of thumb: the size of the result is not known before."""
    return bytes_of(program, sizes) * (1 + (_GROWTH_OF_RECURSION if stratum.is_recursive else 1))


def bytes_of(program: LogicalProgram, sizes: Mapping[str, int]) -> int:
    """An estimate of the bytes that relations of these sizes take."""
    return sum(size * (_BYTES_A_FACT + 4 * program.relations[name].width) for name, size in sizes.items())


def memory_allowed(memory: int | None) -> int:
    """What the driver may use: the limit of the user, or half of the machine."""
    if memory is not None:
        return memory
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE_OF_MACHINE)
    except (ValueError, OSError):
        return 4 << 30


_BUCKETS = 1 << 14
_MOST_WORDS = 64
_MOST_COPIES = 12


@dataclass(frozen=True, slots=True)
class Heavy:
    """Heavy words, the heaviest first, and which part of a column each makes up at most."""

    words: tuple[int, ...] = ()
    parts: Mapping[int, float] = field(default_factory=dict)

    @property
    def greatest(self) -> float:
        return max(self.parts.values(), default=0.0)

    def tell(self, plan: SharePlan) -> None:
        if self.words:
            how = "dealt out" if treatments(plan) is None else "spread over all tasks"
            names = ", ".join(plan.stratum.relations)
            log.info(
                "stratum %d (%s): %d heavy values (one in up to %.0f%% of the facts of an input) are %s",
                plan.stratum.number, names, len(self.words), 100 * self.greatest, how,
            )  # fmt: skip


def heavy_words(read: Mapping[str, FiledRelation], shares: int) -> Heavy:
    """The words that make up so much of a column that the task that gets them has half as much again to do as the
    others."""
    if shares < 2:
        return Heavy()
    counts: dict[int, float] = {}
    for filed in read.values():
        if filed.size < SETTINGS.spark_skew_from:
            continue
        for word, part in _parts(filed, shares).items():
            counts[word] = max(part, counts.get(word, 0.0))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[:_MOST_WORDS]
    return Heavy(tuple(ranked), {word: counts[word] for word in ranked})


def _parts(filed: FiledRelation, shares: int) -> dict[int, float]:
    """How large a part of a column every heavy word of a relation makes up. Changes since the state was written are
    left out, since they are a small part of it."""
    total = sum(file.rows for file in filed.base)
    least = max(SETTINGS.spark_skew_from, total / (2 * shares))
    with ExitStack() as opened:
        files = [opened.enter_context(files_at(f.path).parquet(f.path)) for f in filed.base if f.rows]
        return _parts_of_columns(files, total, least)


def _parts_of_columns(files: Sequence[Any], total: int, least: float) -> dict[int, float]:
    names = [name for name in (files[0].schema_arrow.names if files else ()) if name.isdigit()]
    found: dict[int, float] = {}
    for name in names:
        buckets = np.zeros(_BUCKETS, np.int64)
        for file in files:
            buckets += np.bincount(hashed(_column(file, name), _BUCKETS), minlength=_BUCKETS)
        full = np.flatnonzero(buckets >= least)
        if not len(full):
            continue
        counts: dict[int, int] = {}
        for file in files:
            words = _column(file, name)
            kept, times = np.unique(words[np.isin(hashed(words, _BUCKETS), full)], return_counts=True)
            for word, count in zip(kept.tolist(), times.tolist(), strict=True):
                counts[word] = counts.get(word, 0) + count
        for word, count in counts.items():
            if count >= least:
                found[word] = max(count / total, found.get(word, 0.0))
    return found


def _column(file: Any, name: str) -> np.ndarray:
    words: np.ndarray = file.read([name]).column(0).to_numpy()
    return words


def routings(plan: SharePlan, shares: int, heavy: tuple[int, ...]) -> dict[str, Routing]:
    """How tasks share every copy of a plan."""
    chosen = treatments(plan) if heavy else None
    if chosen is None:
        return {
            copy.name: Routing(copy.column, shares, heavy if copy.column is not None else ()) for copy in plan.copies
        }
    return {
        copy.name: Routing(copy.column, shares, heavy, chosen[copy.name])
        if copy.column is not None
        else Routing(None, shares)
        for copy in plan.copies
    }


def treatments(plan: SharePlan) -> dict[str, Treatment] | None:
    """For every shared copy, whether facts with a heavy word are spread or everywhere: among the atoms of a clause with
    its pivot exactly one is spread, and no negated one is. None if there is no such choice, or if the stratum
    decomposes and facts must stay together."""
    copies = [copy.name for copy in plan.copies if copy.column is not None]
    if plan.decomposes or len(copies) > _MOST_COPIES:
        return None
    for choice in product((True, False), repeat=len(copies)):
        spread = {name for name, is_spread in zip(copies, choice, strict=True) if is_spread}
        if all(_finds_each_once(shared, spread, set(copies)) for shared in plan.clauses):
            return {name: "spread" if name in spread else "everywhere" for name in copies}
    return None


def _finds_each_once(shared: SharedClause, spread: set[str], copies: set[str]) -> bool:
    if not isinstance(shared.pivot, str):
        return True
    goals = [goal for goal in shared.clause.goals if not isinstance(goal, Test) and goal.relation in copies]
    held = [goal for goal in goals if goal.relation in spread]
    return len(held) == 1 and isinstance(held[0], Scan)


SHARES_SETTING = "spark.elastalog.shares"
_LOCAL = re.compile(r"local(?:\[(\*|[0-9]+)(?:,[^\]]*)?\])?")


def shares_for(spark: SparkSession, are_together: bool) -> int:
    """The number of tasks for a stratum: as many as the session's parallelism, or as the user sets. Tasks that exchange
    must all have a slot at once, or Spark would wait for slots that never come."""
    wanted = int(spark.conf.get(SHARES_SETTING, None) or max(1, spark.sparkContext.defaultParallelism))
    return min(wanted, slots(spark)) if are_together else wanted


def slots(spark: SparkSession) -> int:
    """The slots of the executors that are there now."""
    context = spark.sparkContext
    settings = context.getConf()
    found = _LOCAL.fullmatch(context.master or "")
    if found is not None:
        executors, cores = 1, int((os.cpu_count() or 1) if found.group(1) == "*" else found.group(1) or 1)
    else:
        java: Any = context._jsc
        executors = int(java.sc().getExecutorMemoryStatus().size()) - 1  # the driver is among them
        cores = int(settings.get("spark.executor.cores", "1") or 1)
    return max(1, executors) * max(1, cores // int(settings.get("spark.task.cpus", "1") or 1))


EXCHANGE_SETTING = "spark.elastalog.exchange"


def why_apart(spark: SparkSession) -> str | None:
    """Why tasks cannot exchange, by the settings of the session; None if they can."""
    wanted = spark.conf.get(EXCHANGE_SETTING, None) or "network"
    require_one_of(EXCHANGE_SETTING, wanted, ("network", "never"))
    if wanted == "never":
        return f"`{EXCHANGE_SETTING}` is `never`"
    is_dynamic = (spark.conf.get("spark.dynamicAllocation.enabled", None) or "false").lower() == "true"
    return "dynamic allocation does not go together with Spark's barrier mode" if is_dynamic else None
