"""Semi-naive evaluation of a stratum over sorted facts. Every derivation is enumerated once, so the round in which a
fact is first found is its level, and how often it is found there its count."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from elastalog.backends.gpu.arrays import Array, Arrays, Carrier
from elastalog.backends.gpu.found import Found
from elastalog.backends.gpu.packing import Keys, Packing, Range, one_after_the_other, packing_of, ranges_of
from elastalog.backends.gpu.running import DeviceVariant
from elastalog.backends.gpu.sorted_facts import SortedIndex, counted
from elastalog.backends.kernel.bootstrap.handover import Begun, Given
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Absent, Clause, LogicalStratum, Scan
from elastalog.planning.order import Statistics
from elastalog.planning.steps import Variant
from elastalog.planning.variants import plan_from_goal, plan_full
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

Matrix = npt.NDArray[np.int32]
Vector = npt.NDArray[np.int32]


FEW = 3_000
"""Facts of a round, for every variant of a rule, whose launches cost more than its work."""
INDEXED = 10_000
"""Facts that the kernel indexes in the time of such a round: it has to before it can go on."""


class DeviceRelation:
    """The facts of a relation, in every order that is needed; `delta` are those of the latest round."""

    def __init__(
        self, arrays: Arrays, words: Array, ranges: tuple[Range, ...], is_own: bool, left: SortedIndex | None = None
    ) -> None:
        self._arrays = arrays
        self._ranges = ranges
        self._is_own = is_own
        self._kept: set[tuple[int, ...]] = set()
        natural = tuple(range(words.shape[1]))
        packing = packing_of(natural, ranges)
        if left is None or len(words) or left.packing != packing:
            columns = [words[:, column] for column in natural]
            if left is not None:
                arrays.claim(2 * 4 * len(natural) * len(left))
                there = left.packing.columns(left.new, natural, arrays)
                columns = [arrays.module.concatenate(parts) for parts in zip(there, columns, strict=True)]
            left = SortedIndex(arrays, packing, columns)
        self.natural = left
        self._indexes = {natural: self.natural}
        self.delta: Keys = self.natural.new
        if is_own:
            self.natural.start()

    @property
    def bytes(self) -> int:
        """What its facts take, in all orders."""
        return sum(index.bytes for index in self._indexes.values())

    @property
    def width(self) -> int:
        return len(self._ranges)

    @property
    def packing(self) -> Packing:
        return self.natural.packing

    def index(self, columns: tuple[int, ...]) -> SortedIndex:
        """One whose order begins with some columns."""
        for order, index in self._indexes.items():
            if set(order[: len(columns)]) == set(columns):
                return index
        width = len(self._ranges)
        order = (*columns, *(column for column in range(width) if column not in columns))
        index = self._indexes[order] = SortedIndex(self._arrays, packing_of(order, self._ranges), self.columns())
        if self._is_own:
            index.start()
        return index

    def columns(self, keys: Keys | None = None) -> list[Array]:
        """The columns of facts given by their keys; of all, if none are given."""
        keys = self.natural.new if keys is None else keys
        return self.packing.columns(keys, range(self.width), self._arrays)

    def rows(self, keys: Keys) -> Array:
        """The words of facts given by their keys."""
        return self.packing.rows(keys, self._arrays)

    def keep_old(self, columns: tuple[int, ...]) -> None:
        """Keeps the facts before each round, in the order of some columns: they are looked up by these."""
        index = self.index(columns)
        self._kept.add(index.packing.order)

    def take_rows(self, rows: Array) -> None:
        """The facts of a round come in, as words."""
        self.take(self.natural.keys([rows[:, column] for column in range(self.width)]))

    def take(self, delta: Keys) -> None:
        """The facts of a round come in."""
        self.delta = delta
        if not len(delta[0]):
            for order, index in self._indexes.items():
                index.stay(keeps_old=order in self._kept)
            return
        columns = self.columns(delta) if len(self._indexes) > 1 else []
        for order, index in self._indexes.items():
            more = delta if index is self.natural else index.keys(columns)
            index.take(more, keeps_old=order in self._kept)


class _Heads:
    """The derivations of a round for one relation whose heads are new: they are counted."""

    def __init__(self, arrays: Arrays, relation: DeviceRelation, chunk: int) -> None:
        self._arrays = arrays
        self._relation = relation
        self._chunk = chunk
        self._waiting: list[Keys] = []
        self._size = 0
        self._counted: list[tuple[Keys, Array]] = []

    def add(self, keys: Keys) -> None:
        if len(keys[0]):
            self._waiting.append(keys)
            self._size += len(keys[0])
        if self._size > self._chunk:
            self._count()

    def _count(self) -> None:
        if self._waiting:
            keys = one_after_the_other(self._waiting, self._arrays)
            self._counted.append(counted(self._arrays, keys, self._relation.packing.bits))
            self._waiting, self._size = [], 0

    def close(self) -> tuple[Keys, Array]:
        """The facts found, in order, with their counts."""
        self._count()
        if not self._counted:
            nothing = tuple(part[:0] for part in self._relation.delta)
            return nothing, self._arrays.module.zeros(0, np.int64)
        if len(self._counted) == 1:
            return self._counted[0]
        keys = one_after_the_other([keys for keys, _ in self._counted], self._arrays)
        counts = self._arrays.module.concatenate([counts for _, counts in self._counted])
        return counted(self._arrays, keys, self._relation.packing.bits, counts)


class _Arriving:
    """The facts of a relation that is read, which come in by their levels: a round derives what follows from facts of
    the level before."""

    def __init__(self, arrays: Arrays, relation: DeviceRelation, words: Matrix, levels: Vector) -> None:
        self._relation = relation
        order = np.argsort(levels, kind="stable")
        self._words, self._levels = words[order], levels[order]
        self._arrays = arrays

    def next_level(self) -> int | None:
        """The lowest level of facts that have not come yet; None if all have."""
        return int(self._levels[0]) if len(self._levels) else None

    def bring(self, level: int) -> None:
        """The facts of a level come in; there may be none."""
        number = int(np.searchsorted(self._levels, self._levels.dtype.type(level), side="right"))
        rows = self._words[:number]
        self._relation.take_rows(self._arrays.to_device(rows))
        self._words, self._levels = self._words[number:], self._levels[number:]


class StratumRounds:
    """The evaluation of one stratum; `facts` are those of all its relations (of its own the explicit ones). `left`:
    what strata before have left here of those that it reads, the first of these facts in another order. `levels`: those
    of the relations that it reads, where levels are global; a relation without any is at level 0. `given`: what rounds
    have found of its own relations so far, if it has been begun elsewhere."""

    def __init__(
        self,
        stratum: LogicalStratum,
        facts: Mapping[str, Matrix],
        left: Mapping[str, SortedIndex],
        arrays: Arrays,
        dictionary: Dictionary,
        source: Source,
        statistics: Statistics,
        watch: Watch,
        chunk: int,
        carrier: Carrier,
        levels: Mapping[str, Vector] | None = None,
        given: Mapping[str, Given] | None = None,
    ) -> None:
        self._stratum = stratum
        self._arrays = arrays
        self._watch = watch
        self._chunk = chunk
        self._carrier = carrier
        self._given = given or {}
        facts = {**facts, **{name: one.facts.words for name, one in self._given.items()}}
        facts = {name: words[len(left.get(name, ())) :] for name, words in facts.items()}
        ranges = ranges_of(stratum, facts, {name: index.packing for name, index in left.items()}, dictionary)
        growing = frozenset(stratum.relations)
        self._is_global = levels is not None
        if levels is not None:
            growing |= frozenset(stratum.reads)
        whole = {name: carrier.send(facts[name]) for name in (_negated(stratum) if levels is not None else ())}
        deltas = {name: carrier.send(one.facts.words[one.before :]) for name, one in self._given.items()}
        first = {
            name: carrier.send(
                words[:0] if name in (levels or ()) else words[: self._given[name].before if name in deltas else None]
            )
            for name, words in facts.items()
        }
        self._whole = {
            name: DeviceRelation(arrays, arrived(), ranges[name], is_own=False) for name, arrived in whole.items()
        }
        """Relations that grow here, as negations see them: they are known to the end."""
        self._relations = {
            name: DeviceRelation(arrays, arrived(), ranges[name], name in growing, left.get(name))
            for name, arrived in first.items()
        }
        self._arriving = [
            _Arriving(arrays, self._relations[name], facts[name], there) for name, there in (levels or {}).items()
        ]

        def bound(variant: Variant) -> DeviceVariant:
            head = self._relations[variant.clause.head].natural
            return DeviceVariant(variant, arrays, self._index, head, dictionary, source, chunk)

        starts = [(clause, _scans(clause) if self._is_global else clause.recursive_goals) for clause in stratum.clauses]
        self._once = [bound(plan_full(clause, statistics)) for clause, goals in starts if not goals]
        self._by_delta = [bound(plan_from_goal(clause, goal, statistics)) for clause, goals in starts for goal in goals]
        for variant in self._by_delta:
            for probe in variant.variant.probes:
                if probe.is_before and probe.relation in growing and not probe.is_negated:
                    self._relations[probe.relation].keep_old(probe.key_columns)
        for name, arrived in deltas.items():
            self._relations[name].take_rows(arrived())

    def bytes(self) -> dict[str, int]:
        """What the facts of each relation take."""
        return {name: relation.bytes for name, relation in self._relations.items()}

    def left(self) -> dict[str, SortedIndex]:
        """What strata that come may find here of its own relations."""
        own = self._stratum.relations
        return {name: self._relations[name].natural.settle() for name in own if len(self._relations[name].natural)}

    def _index(self, relation: str, columns: tuple[int, ...], is_negated: bool) -> SortedIndex:
        relations = self._whole if is_negated and relation in self._whole else self._relations
        return relations[relation].index(columns)

    def run(self, limits: Mapping[str, int], goes_to_the_end: bool = False) -> Begun:
        """Goes to the fixpoint, or to where a relation has as many facts as `limits` allows, or to where rounds
        have become small, unless it shall go to the end."""
        goes_to_the_end |= self._is_global
        own = {name: self._relations[name] for name in self._stratum.relations}
        level = next((one.round for one in self._given.values()), 1)
        found = {
            name: Found(self._carrier, self._arrays, relation.width, relation.rows) for name, relation in own.items()
        }
        for name, relation in own.items():
            if name in self._given:
                found[name].begin_with(self._given[name])
            else:
                found[name].add(relation.delta, None, 0)
        before = self._watch.derivations
        small = 0
        is_complete = is_done = True
        self._let_in(0)
        while True:
            heads = {name: _Heads(self._arrays, relation, self._chunk) for name, relation in own.items()}
            self._round(heads, is_first=level == 1)
            closed = {name: head.close() for name, head in heads.items()}
            del heads
            number = sum(len(keys[0]) for keys, _ in closed.values())
            self._watch.iteration(self._stratum.number, level, number)
            for name, (keys, counts) in closed.items():
                own[name].take(keys)
                found[name].add(keys, counts, level)
            following = self._following(level, number)
            if following is None or not self._by_delta:
                break
            if any(len(relation.natural) >= limits.get(name, 1 << 62) for name, relation in own.items()):
                is_complete = False
                break
            small = small + 1 if number <= FEW * len(self._by_delta) else 0
            held = sum(len(relation.natural) for relation in own.values())
            if small >= max(SETTINGS.device_patience, held // INDEXED) and not goes_to_the_end:
                is_done = False
                break
            level = following
            self._let_in(level - 1)
        for facts in found.values():
            facts.send()
        relations = {name: facts.brought() for name, facts in found.items()}
        return Begun(relations, level, self._watch.derivations - before, is_done, is_complete)

    def _following(self, level: int, found: int) -> int | None:
        """The round after one that found some facts; None if there is none."""
        pending = [after for arriving in self._arriving if (after := arriving.next_level()) is not None]
        if found:
            return level + 1
        return min(pending) + 1 if pending else None

    def _let_in(self, level: int) -> None:
        """The facts of a level that are read come in."""
        for arriving in self._arriving:
            arriving.bring(level)

    def _round(self, heads: Mapping[str, _Heads], is_first: bool) -> None:
        for variant in self._once if is_first else ():
            start = variant.variant.gather.relation
            index = None if start is None else self._relations[start].natural
            self._run(variant, () if index is None else index.new, index, heads)
        for variant in self._by_delta:
            start = variant.variant.gather.relation
            assert start is not None
            relation = self._relations[start]
            if len(relation.delta[0]):
                self._run(variant, relation.delta, relation.natural, heads)

    def _run(self, variant: DeviceVariant, keys: Keys, start: SortedIndex | None, heads: Mapping[str, _Heads]) -> None:
        head = heads[variant.variant.clause.head]
        for number, found in variant.run(keys, start):
            self._watch.derived(number)
            head.add(found)


def _scans(clause: Clause) -> tuple[int, ...]:
    """The numbers of its goals that are facts."""
    return tuple(number for number, goal in enumerate(clause.goals) if isinstance(goal, Scan))


def _negated(stratum: LogicalStratum) -> set[str]:
    return {goal.relation for clause in stratum.clauses for goal in clause.goals if isinstance(goal, Absent)}
