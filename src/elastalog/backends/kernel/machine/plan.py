"""What the machine runs for a stratum: variants of clauses as code, relations and indexes as tables of addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from ctypes import addressof
from dataclasses import field
from functools import cache
from typing import Final, TypeAlias

import numpy as np

from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable
from elastalog.backends.kernel.compile.signatures import Table, address_of
from elastalog.backends.kernel.execution.bound_variant import BoundVariant, is_indexed
from elastalog.backends.kernel.execution.join import MEMBER
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.expressions.actions import REVERSED, Run
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.store.annotations import DELTA_LIST, LOSS_LIST
from elastalog.backends.kernel.store.memory import STAMPS, Vector
from elastalog.backends.kernel.store.postings import EVERY
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.late import dataclass
from elastalog.planning.steps import Action, Compute, Copy, Fill, Gather, Keep, KeepConstant, KeepEqual, Probe
from elastalog.planning.variants import first_key, handicap
from elastalog.relations.limits import LEAST_NARROW, WIDE
from elastalog.relations.words import Dictionary

UNIT: Final = ""
"""The relation of one fact, without columns, at which variants start whose clauses have no goal to start at."""


@dataclass(frozen=True, slots=True)
class MachineVariants:
    """The variants of a stratum's clauses: those that start `forward` at a goal, and those that look for heads
    `backward`, if these were explicit, or if they lost their last derivation (`recovering`). The latter may leave some
    heads to the enumeration of their clause (`whole`: variants by whose start and steps that can be done, and how many
    rows that should take). `forks`: other variants by those whose start they share."""

    forward: Sequence[BoundVariant]
    backward: Sequence[BoundVariant] = ()
    recovering: Sequence[BoundVariant] = ()
    whole: Mapping[BoundVariant, tuple[BoundVariant, int]] = field(default_factory=dict)
    forks: Mapping[BoundVariant, BoundVariant] = field(default_factory=dict)


class MachinePlan:
    """The code of a stratum, and its tables, which are brought up to date before every update. `flat`: relations whose
    facts count as level 0. `tables`: where these lie. `carried`: words that rows of bindings have behind their slots.
    `keys`: those of its indexes."""

    def __init__(
        self,
        own: Sequence[str],
        flat: frozenset[str],
        variants: MachineVariants,
        carried: int = LEVELS,
    ) -> None:
        starting = [*variants.forks.values(), *variants.forward]
        starting.sort(key=lambda variant: start_of(variant) not in own)
        ordered = [*starting, *variants.backward]
        laid_out = [*ordered, *(variant for variant, _ in variants.whole.values())]
        read = (name for v in laid_out for name in (start_of(v), *(probe.relation for probe in v.probes)))
        self.names = tuple(dict.fromkeys((*own, *read)))
        self.number = {name: number for number, name in enumerate(self.names)}
        # The indexes of a relation of the stratum are neighbours.
        wanted = {(p.relation, p.key_columns) for v in laid_out for p in v.probes if is_indexed(p)}
        self.keys = sorted(wanted, key=lambda key: (self.number[key[0]], key[1]))
        places = {key: place for place, key in enumerate(self.keys)}
        self.code = Code(ordered, variants, self.number, places, carried)
        self.relations = Table(layout.Relation, len(self.names))
        self.indexes = Table(layout.IndexPlace, len(self.keys))
        self._own = frozenset(own)
        self._looked_up = self._own.union(p.relation for v in laid_out for p in v.probes if p.is_member)
        self._write_relations(flat, _starts(ordered, variants))
        for (name, _), place in zip(self.keys, self.indexes, strict=True):
            place.relation = self.number[name]
        self._own_variants = sum(start_of(variant) in own for variant in starting)
        self.begin()

    def begin(self) -> None:
        """The machine has not run."""
        code = self.code
        self.tables = layout.Tables(
            relations=self.relations.address, relations_number=len(self.names), indexes=self.indexes.address,
            indexes_number=len(self.keys), variants=code.variants.address, variants_number=len(code.variants),
            probes=code.probes.address, actions=code.actions.address, operands=address_of(code.operands),
            own_variants=self._own_variants,
        )  # fmt: skip
        self._verified = -1

    def copied(self) -> MachinePlan:
        """A copy of the plan for relations of the same names in another session, with which nothing has been run
        yet."""
        other = copy(self)
        other.code, other.relations, other.indexes = self.code.copied(), self.relations.copied(), self.indexes.copied()
        other.begin()
        return other

    def _write_relations(self, flat: frozenset[str], starts: Mapping[str, int]) -> None:
        """Writes what does not change in the records of relations."""
        for name, row in zip(self.names, self.relations, strict=True):
            places = [place for place, key in enumerate(self.keys) if key[0] == name and name in self._own]
            row.is_flat = name in flat
            row.is_own = name in self._own
            row.starts = starts.get(name, 0)
            if name in self._own and name in self.code.ahead:
                row.ahead, row.ahead_end = self.code.ahead[name]
            row.first_index = min(places, default=0)
            row.indexes_end = max(places, default=-1) + 1

    # --- tables ----------------------------------------------------------------------------------------------------

    def refresh(self, relations: Mapping[str, KernelRelation]) -> None:
        """Writes where relations and indexes are now."""
        self.refresh_relations(relations)
        self.refresh_indexes(relations)

    def refresh_relations(self, relations: Mapping[str, KernelRelation]) -> None:
        """Writes where the descriptors of relations are, which say where these are."""
        for name, row in zip(self.names, self.relations, strict=True):
            relation = unit() if name == UNIT else relations[name]
            row.home = addressof(relation.lay_out(with_table=name in self._looked_up))

    def refresh_indexes(self, relations: Mapping[str, KernelRelation]) -> None:
        """Writes where indexes are now. One that was never made, or lacks rows, is missing until the machine asks for
        it."""
        for place, (name, columns) in enumerate(self.keys):
            if relations[name].lacks(columns):
                row = self.indexes[place]
                row.is_missing, row.home = 1, 0  # where it was before it may be gone
            else:
                self.extend_index(place, relations)

    def verify(self, relations: Mapping[str, KernelRelation]) -> None:
        """All is where its descriptor says, and these are those of the plan: before the machine reads what is there no
        more."""
        if self._verified == STAMPS.last:
            return
        for name, row in zip(self.names, self.relations, strict=True):
            # A set table that no facts were looked up in may be made at any time.
            if name in self._looked_up:
                relation = relations[name]
                if row.home != relation.address or relation.stamp != relation.laid_out:
                    raise InternalError("machine", f"`{name}` has moved under a plan")
        for (name, columns), place in zip(self.keys, self.indexes, strict=True):
            if not place.is_missing:
                index = relations[name].index_to_extend(columns)
                if index is None or place.home != addressof(index.descriptor) or index.stamp != index.laid_out:
                    raise InternalError("machine", f"the index of `{name}` on {columns} has moved under a plan")
        self._verified = STAMPS.last

    def missing(self, variant: layout.VariantCode) -> set[int]:
        """The places of the indexes that a variant looks into and that are missing."""
        probes = [self.code.probes[variant.first_probe + depth] for depth in range(variant.probes)]
        places = [probe.index for probe in probes if probe.kind == layout.INDEXED]
        return {place for place in places if self.indexes[place].is_missing}

    def extend_index(self, place: int, relations: Mapping[str, KernelRelation]) -> None:
        """Brings an index up to date that is missing, or had no room."""
        name, columns = self.keys[place]
        row = self.indexes[place]
        row.home, row.is_missing = relations[name].index(columns).home, 0


IndexKey: TypeAlias = tuple[str, tuple[int, ...]]
"""A relation and the columns by which it is looked up."""
EncodedAction: TypeAlias = tuple[int, int, int, bool, int]
"""The fields of `layout.ActionCode`."""


_NOWHERE = -1
_ARITHMETIC = {
    "+": layout.ADD,
    "-": layout.SUBTRACT,
    "*": layout.MULTIPLY,
    "/": layout.DIVIDE,
    "%": layout.REMAINDER,
}
_ORDERS = {
    "<": layout.KEEP_LESS,
    "<=": layout.KEEP_AT_MOST,
    ">": layout.KEEP_MORE,
    ">=": layout.KEEP_AT_LEAST,
}


class Code:
    """Variants in order, given the numbers of relations and indexes in the machine's tables. `carried`: words that rows
    of bindings have behind their slots.

    `transforms` are the actions to be run in Python, with the width of their blocks; `widths` those of the widest block
    of each step. `ahead`: by the relation that a variant starts at, where operands say which probes it will need: see
    `Relation`.
    `is_general`: it has nothing in it that only one session knows, but for the ids of constants."""

    def __init__(
        self,
        ordered: Sequence[BoundVariant],
        variants: MachineVariants,
        numbers: Mapping[str, int],
        indexes: Mapping[IndexKey, int],
        carried: int,
    ) -> None:
        self._numbers = numbers
        self._indexes = indexes
        self._recovering = frozenset(variants.recovering)
        self._carried = carried
        self._operands: list[int] = []
        self._actions: list[EncodedAction] = []
        self._encoded_probes = 0
        self.transforms: list[tuple[Run, int]] = []
        self.ahead: dict[str, tuple[int, int]] = {}
        self.is_general = True
        # By the places of actions: those whose ids differ from session to session.
        self._constants: list[tuple[int, Constant]] = []
        whole = variants.whole
        laid_out = [*ordered, *(variant for variant, _ in whole.values())]
        self.widths = _widths(laid_out, carried)
        self.variants = Table(layout.VariantCode, len(laid_out))
        self.probes = Table(layout.ProbeCode, sum(len(variant.probes) for variant in laid_out))
        places = {variant: place for place, variant in enumerate(ordered)}
        seeking = {len(ordered) + i: places[sought] for i, sought in enumerate(whole)}
        for place, (variant, code) in enumerate(zip(laid_out, self.variants, strict=True)):
            if place in seeking:
                code.seeks = seeking[place] + 1
            elif variant in whole:
                code.whole = whole[variant][1]
            self._encode(variant, code)
        for usual, other in variants.forks.items():
            self._encode_fork(usual, places[usual], places[other], is_other_way=False)
            self._encode_fork(other, places[other], places[usual], is_other_way=True)
        self.actions = Table(layout.ActionCode, len(self._actions))
        for action, encoded in zip(self.actions, self._actions, strict=True):
            action.kind, action.first, action.second, action.is_constant, action.result = encoded
        self.operands: Vector = np.array(self._operands or [0], np.int64)

    def copied(self) -> Code:
        """A copy that shares the code, which must be general; counts of variants and ids are its own."""
        other = copy(self)
        other.variants = self.variants.copied()
        if self._constants:
            other.actions = self.actions.copied()
        return other

    def belong_to(self, dictionary: Dictionary) -> None:
        """General code is run for another session."""
        for place, constant in self._constants:
            self.actions[place].second = dictionary.encode_value(constant.base, constant.value)

    def _encode(self, variant: BoundVariant, code: layout.VariantCode) -> None:
        """Writes the code of a variant."""
        gather, transforms = variant.gather, len(self.transforms)
        code.start = self._numbers[start_of(variant)]
        code.is_backward = gather.goal is None
        code.is_negated = variant.is_negated_start
        code.head = self._numbers.get(variant.clause.head, _NOWHERE)  # unused where results are handed on
        self._encode_heads(variant, code)
        code.first_probe, code.probes = self._encoded_probes, len(variant.probes)
        code.take, code.taken = self._put_pairs(gather.take), len(gather.take)
        code.width = gather.width + self._carried
        code.first_action, code.actions_end = self._put_actions(variant, gather, code.width)
        if not code.is_backward:
            self._look_ahead(variant, code.first_probe)
        if code.seeks and variant.probes:
            column_of = {slot: column for column, slot in gather.take}
            columns = sorted(column_of.get(slot, -1) for slot in variant.probes[0].key_slots)
            code.grouped = self._indexes.get((start_of(variant), tuple(columns)), -1) + 1
        if code.is_backward:
            code.lists = 1 << DELTA_LIST | (1 << LOSS_LIST if variant in self._recovering else 0)
        for probe in variant.probes:
            probe_code = self.probes[self._encoded_probes]
            self._encode_probe(variant, probe, probe_code)
            if code.seeks:
                probe_code.is_before = False  # there is no other variant that facts of the delta could be left to
            self._encoded_probes += 1
        code.is_shared = not code.heads and len(self.transforms) == transforms

    def _look_ahead(self, variant: BoundVariant, number: int) -> None:
        """Notes the probes that the start of a variant says all of: a word for each column of their keys."""
        columns = {slot: column for column, slot in variant.gather.take}
        found: list[int] = []
        for probe in variant.probes:
            key = [columns.get(slot, -1) for slot in probe.key_slots]
            if min(key, default=-1) >= 0:
                found += [number, len(key), *key]
            number += 1
            columns = {place: columns[slot] for slot, place in probe.keep if slot in columns}
        if found:
            place = self._put(found)
            self.ahead[start_of(variant)] = place, place + len(found)

    def _encode_fork(self, variant: BoundVariant, place: int, fork: int, *, is_other_way: bool) -> None:
        """Writes which variant has the same start, and what the first join looks for."""
        columns = first_key(variant.planned)
        assert columns is not None
        code = self.variants[place]
        code.fork, code.is_other_way, code.handicap = fork + 1, is_other_way, handicap(variant.planned)
        code.first_key, code.first_key_width = self._put(columns), len(columns)

    def _encode_heads(self, variant: BoundVariant, code: layout.VariantCode) -> None:
        """Writes where the words of each head are, if there are several."""
        clauses = variant.clauses
        results = variant.planned.results
        size = 2 + max((len(clause.head_terms) for clause in clauses), default=0)
        code.heads, code.first_head, code.head_size = len(clauses), len(self._operands), size
        for clause in clauses:
            places = [results.index(term) for term in clause.head_terms]
            head = [self._numbers[clause.head], len(places), *places]
            self._operands.extend([*head, *[0] * (size - len(head))])

    def _encode_probe(self, variant: BoundVariant, probe: Probe, code: layout.ProbeCode) -> None:
        """Writes the code of a probe."""
        code.relation = self._numbers[probe.relation]
        if is_indexed(probe):
            code.kind, code.index = layout.INDEXED, self._indexes[probe.relation, probe.key_columns]
        else:
            code.kind = MEMBER if probe.is_member else EVERY
        code.is_negated = probe.is_negated
        code.is_before = probe.is_before
        code.key, code.key_width = self._put(probe.key_slots), len(probe.key_slots)
        code.keep, code.kept = self._put_pairs(probe.keep), len(probe.keep)
        code.take, code.taken = self._put_pairs(probe.take), len(probe.take)
        code.width = max(probe.width, 1) + self._carried
        code.first_action, code.actions_end = self._put_actions(variant, probe, code.width)

    def _put(self, numbers: Sequence[int]) -> int:
        """Appends operands; returns their place."""
        place = len(self._operands)
        self._operands.extend(numbers)
        return place

    def _put_pairs(self, pairs: Sequence[tuple[int, int]]) -> int:
        """Appends sources of columns, and then their places; returns where they begin."""
        return self._put([source for source, _ in pairs] + [place for _, place in pairs])

    def _put_actions(self, variant: BoundVariant, step: Gather | Probe, width: int) -> tuple[int, int]:
        """Appends the actions of a step: one by one if the machine knows them all, else as one to be run in Python.
        Returns where they begin and end."""
        first = len(self._actions)
        if not step.actions:
            return first, first
        encoded = [_encode_action(action, step.slots, variant.dictionary) for action in step.actions]
        known = [code for codes in encoded for code in codes]
        if not all(encoded) or not _can_run_again(known):
            self._put_transform(layout.IN_PYTHON, variant.transform(step), width)
        else:
            if any(kind >= layout.ADD for kind, *_ in known):
                self._put_transform(layout.IF_NARROW, variant.transform(step), width)
            for action, codes in zip(step.actions, encoded, strict=True):
                if isinstance(action, Fill | KeepConstant) and not _is_own_word(action.constant):
                    self._constants.append((len(self._actions), action.constant))
                self._actions.extend(codes)
        return first, len(self._actions)

    def _put_transform(self, kind: int, transform: Run, width: int) -> None:
        self.is_general = False
        self._actions.append((kind, len(self.transforms), 0, False, _NOWHERE))
        self.transforms.append((transform, width))


def _encode_action(action: Action, slots: Mapping[str, int], dictionary: Dictionary) -> list[EncodedAction]:
    """The code of an action; nothing if it is to be run in Python."""
    match action:
        case Fill(slot, constant):
            return [(layout.COPY, slot, dictionary.encode_value(constant.base, constant.value), True, slot)]
        case Copy(origin, slot):
            return [(layout.COPY, slot, origin, False, slot)]
        case KeepEqual(left, right):
            return [(layout.KEEP_EQUAL, left, right, False, _NOWHERE)]
        case KeepConstant(slot, constant):
            return [(layout.KEEP_EQUAL, slot, dictionary.encode_value(constant.base, constant.value), True, _NOWHERE)]
        case Compute(slot, Apply() as expression):
            return _encode_expression(expression, slots, slot)
        case Keep("!=", _, Variable() as left, Variable() as right):
            return [(layout.KEEP_UNEQUAL, slots[left.name], slots[right.name], False, _NOWHERE)]
        case Keep(operator, Base.NUMBER | Base.UNSIGNED, left, right) if operator in _ORDERS:
            if isinstance(left, Constant):
                operator, left, right = REVERSED[operator], right, left
            if isinstance(left, Variable):
                return _encode_numbers(_ORDERS[operator], slots[left.name], right, slots, _NOWHERE)
    return []


def _is_own_word(constant: Constant) -> bool:
    """Whether a constant is a number that is its own word, in every session."""
    value = constant.value
    return constant.base is Base.NUMBER and isinstance(value, int) and LEAST_NARROW <= value < WIDE


def _encode_expression(expression: Apply, slots: Mapping[str, int], result: int) -> list[EncodedAction]:
    """The code that evaluates an expression on numbers into a slot: operator after operator, if no more than one
    operand of each is an expression itself."""
    kind = _ARITHMETIC.get(expression.functor)
    if kind is None or expression.base is not Base.NUMBER or len(expression.arguments) != 2:
        return []
    left, right = expression.arguments
    if kind in (layout.ADD, layout.MULTIPLY) and (isinstance(left, Constant) or isinstance(right, Apply)):
        left, right = right, left
    match left:
        case Variable(name):
            return _encode_numbers(kind, slots[name], right, slots, result)
        case Apply():
            inner, outer = _encode_expression(left, slots, result), _encode_numbers(kind, result, right, slots, result)
            return [*inner, *outer] if inner and outer else []
        case _:
            return []


def _encode_numbers(
    kind: int, left: int, right: Expression, slots: Mapping[str, int], result: int
) -> list[EncodedAction]:
    """The code of an action on numbers: a slot, and a variable or a constant."""
    is_division = kind in (layout.DIVIDE, layout.REMAINDER)
    match right:
        case Variable(name) if not is_division:
            return [(kind, left, slots[name], False, result)]
        case Constant(int() as number) if (1 if is_division else LEAST_NARROW) <= number < WIDE:
            return [(kind, left, number, True, result)]
        case _:
            return []


def _can_run_again(actions: Iterable[EncodedAction]) -> bool:
    """Whether actions that have run in part can all be run on what that has left: none writes over what one of them
    has found."""
    written: set[int] = set()
    found: set[int] = set()
    for kind, first, second, is_constant, result in actions:
        if kind != layout.COPY:
            found.update({first} - written)
        if not is_constant:
            found.update({second} - written)
        if result in found:
            return False
        written.add(result)
    return True


def _starts(ordered: Sequence[BoundVariant], variants: MachineVariants) -> dict[str, int]:
    """How variants start at facts of relations (`layout.FORWARDS` and its like)."""
    starts: dict[str, int] = {}
    for variant in ordered:
        if variant.gather.goal is not None:
            way = layout.AGAINST if variant.is_negated_start else layout.FORWARDS
            starts[start_of(variant)] = starts.get(start_of(variant), 0) | way
    for sought, way in ((variants.recovering, layout.SOUGHT), (variants.backward, layout.SOUGHT_IF_EXPLICIT)):
        for variant in sought:
            starts[variant.clause.head] = starts.get(variant.clause.head, 0) | way
    return starts


def start_of(variant: BoundVariant) -> str:
    """The relation that a variant starts at."""
    return variant.gather.relation or UNIT


@cache
def unit() -> KernelRelation:
    """The relation of one fact, without columns."""
    relation = KernelRelation(UNIT, 1, is_annotated=False)
    relation.insert(np.zeros((1, 1), np.int32), 0, 1, 0)
    return relation


def _widths(variants: Iterable[BoundVariant], carried: int) -> tuple[int, ...]:
    """The width of the widest block of each step, with the words that bindings carry; of a variant with several heads
    another one, for each of them."""
    widest: list[int] = []
    for variant in variants:
        blocks = [max(variant.gather.width, 1), *(max(probe.width, 1) for probe in variant.probes)]
        if clauses := variant.clauses:
            blocks.append(max(len(clause.head_terms) for clause in clauses))
        for depth, width in enumerate(blocks):
            if depth == len(widest):
                widest.append(0)
            widest[depth] = max(widest[depth], width + carried)
    return tuple(widest)
