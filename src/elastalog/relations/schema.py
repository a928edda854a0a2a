"""The columns of a relation, names and base types, and which given column stands for which declared one.

**Names decide**: if any given name is a declared one (ignoring case), columns go by name: every attribute must be
found, and columns that the relation does not have are left out, with a warning. Otherwise they go by position. Never a
silent swap.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from elastalog.analysis.program import Attribute, Base, CheckedProgram, Relation
from elastalog.diagnostics.arguments import require_text
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error, finding, warn_of
from elastalog.diagnostics.nearest import did_you_mean, nearest
from elastalog.late import dataclass
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.limits import LEAST_NARROW

if TYPE_CHECKING:
    import pyarrow as pa

    from elastalog.relations.records import RecordType

_LEAST: Final = {Base.NUMBER: LEAST_NARROW, Base.UNSIGNED: 0, Base.SYMBOL: None}
"""The least number that is its own word; None of texts."""


class UnknownRelation(ElastalogError, KeyError):
    """There is no relation of a name; to mappings of relations, a key that is missing."""


@dataclass(frozen=True, slots=True)
class Column:
    """`record`: of a column of records, their type."""

    name: str
    base: Base
    record: RecordType | None = None

    @staticmethod
    def of(attribute: Attribute) -> Column:
        """The column of a declared attribute."""
        if attribute.structures is None:
            return Column(attribute.name, attribute.base)
        from elastalog.relations.records import RecordType

        return Column(attribute.name, attribute.base, RecordType(attribute.type_name, attribute.structures))

    @property
    def type_name(self) -> str:
        """The name of the type, as messages say it."""
        return self.base.value if self.record is None else self.record.name


@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """A relation's name and columns, in order. If all columns are whole numbers or texts, `parts` has for each where
    its values are in facts one after the other, and the least value that is its own word, None for texts; columns that
    are all alike are one part; and `kinds` has the type of a plain value of each. `is_of_texts`: all are texts. Every
    small update asks."""

    name: str
    columns: tuple[Column, ...]
    parts: tuple[tuple[slice, int | None], ...] = field(default=(), init=False, repr=False, compare=False)
    kinds: tuple[type, ...] = field(default=(), init=False, repr=False, compare=False)
    is_of_texts: bool = field(default=False, init=False, repr=False, compare=False)
    names: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple([column.name for column in self.columns]))
        bases = [column.base for column in self.columns]
        if bases and all(base in _LEAST for base in bases):
            parts = [(slice(place, None, len(bases)), _LEAST[base]) for place, base in enumerate(bases)]
            object.__setattr__(self, "parts", ((slice(None), parts[0][1]),) if len(set(bases)) == 1 else tuple(parts))
            object.__setattr__(self, "kinds", tuple([str if base is Base.SYMBOL else int for base in bases]))
            object.__setattr__(self, "is_of_texts", set(bases) == {Base.SYMBOL})

    @staticmethod
    def of(relation: Relation) -> Schema:
        """The schema of a checked relation."""
        return Schema(relation.name, tuple(map(Column.of, relation.attributes)))

    @property
    def arity(self) -> int:
        return len(self.columns)

    def arrow(self) -> pa.Schema:
        """The Arrow schema of the relation's facts: `int64`, `uint64`, `float64`, `string`, none nullable; records are
        text."""
        import pyarrow as pa

        from elastalog.relations.arrays import ARROW_TYPES

        return pa.schema([pa.field(column.name, ARROW_TYPES[column.base], nullable=False) for column in self.columns])

    def __repr__(self) -> str:
        return f"<Schema {self}>"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{column.name}: {column.type_name}' for column in self.columns)})"


def schemas_of(program: CheckedProgram) -> dict[str, Schema]:
    """The schemas of all declared relations."""
    return {name: Schema.of(relation) for name, relation in program.relations.items()}


def schema_named(schemas: Mapping[str, Schema], name: str) -> Schema:
    """The schema of a relation. Raises UnknownRelation when there is none of that name."""
    schema = schemas.get(name) if type(name) is str else None
    if schema is None:
        require_text("a relation is named by a text", name, 'give its name, as in `"path"`')
        if name in schemas:  # a text of another kind
            return schemas[name]
        advice = did_you_mean(name, schemas) or "the program declares: " + ", ".join(schemas)
        raise UnknownRelation([finding("E0606", name=name, advice=advice)])
    return schema


def column_order(
    schema: Schema,
    names: Sequence[str],
    *,
    what: str = "the table",
    location: str | None = None,
    apart: Sequence[str] = (),
    warns: bool = True,
    index: Sequence[str] = (),
    values: Callable[[int], Iterable[object]] = lambda place: (),
) -> list[int]:
    """For every column of the relation, the place of the one given for it.

    `what`: what has the columns, for diagnostics. `apart`: columns of the schema that are found by their names and say
    nothing of the others, such as the `op` of a table of changes. `warns`: whether to warn of columns left out.
    `index`: columns that a data frame has as its index. `values`: those at the beginning of a column, by its place."""
    if tuple(names) == schema.names:
        return list(range(len(names)))
    places = places_by_name(schema.names, names)
    open_columns = [i for i, name in enumerate(schema.names) if name not in apart]
    own = Schema(schema.name, tuple([schema.columns[i] for i in open_columns]))
    if not goes_by_name(own.names, names):
        if len(names) != schema.arity:
            given = len(names) - schema.arity + own.arity
            raise error(
                "E0501", location=location, relation=schema.name, arity=own.arity, what=what, given=given,
                schema=own, columns=columns_given(names), few=max(0, own.arity - given) or None,
            )  # fmt: skip
        taken = {places[i] for i in range(schema.arity) if i not in open_columns}
        rest = (place for place in range(len(names)) if place not in taken)
        places = [places[i] if i not in open_columns else next(rest, None) for i in range(schema.arity)]
        if warns and _are_chosen(names) and own.arity > 1:
            pairs = zip(places, schema.names, strict=True)
            taken_as = [(names[at], name) for at, name in pairs if at is not None and name not in apart]
            told, where = ", ".join(f"{shown(given)} as `{name}`" for given, name in taken_as), _whole(location)
            warn_of(finding("E0518.position", severity="warning", location=where, what=what, pairs=told, schema=own))
    found = [place for place in places if place is not None]
    if len(found) < schema.arity:
        raise ElastalogError([_unmatched(schema, own, names, places, what, location, index)])
    if warns and len(names) > schema.arity:
        left_out = {name: place for place, name in enumerate(names) if place not in found}
        warn_of_left_out(schema, left_out, location, values(left_out["op"]) if "op" in left_out else ())
    return found


def _are_chosen(names: Sequence[str]) -> bool:
    """Whether the columns of a table have names of their own: not numbers behind the same word."""
    return len({re.sub("[0-9]+$", "", name) for name in names}) > 1 or not all(name[-1:].isdigit() for name in names)


def warn_of_left_out(schema: Schema, names: Iterable[str], location: str | None, ops: Iterable[object] = ()) -> None:
    """Warns of columns that are left out since the relation has none of their names. `ops`: values of a column `op`
    among them; if all are signs, the rows are changes, and refused."""
    if not (listed := list(names)):
        return
    location = _whole(location)
    if (signs := set(map(str, ops))) and signs <= {"+", "-"}:
        file = PurePath(location or "").name.partition(":")[0]
        suffix = next((one for one in (".csv", ".tsv", ".parquet") if one in file), ".csv")
        other = None if re.sub("^[0-9]+[-_.]", "", file).startswith(schema.name + suffix) else schema.name + suffix
        update = None if not file or ".json" in file or ".ndjson" in file else other or file
        raise error("E0535.changes", location=location, relation=schema.name, update=update, other=other)
    columns = _listed("column", listed[:8]) + f" and {len(listed) - 8} more" * (len(listed) > 8)
    warn_of(finding("E0535", severity="warning", location=location, columns=columns, schema=schema))


def warn_of_midnights(schema: Schema, column: Column, location: str | None) -> None:
    """Warns of a column of timestamps that are probably meant as dates: as texts they differ from those of dates."""
    location, name = _whole(location), column.name
    warn_of(finding("E0536", severity="warning", location=location, column=name, relation=schema.name, schema=schema))


def _whole(location: str | None) -> str | None:
    """A folder of Parquet files stands for one file: it is warned of once."""
    if location is None:
        return None
    return next((str(path) for path in PurePath(location).parents if path.suffix == ".parquet"), location)


def goes_by_name(declared: Iterable[str], given: Iterable[str]) -> bool:
    """Whether any name given is a declared one, ignoring case."""
    return not {name.casefold() for name in declared}.isdisjoint(name.casefold() for name in given)


def places_by_name(declared: Sequence[str], given: Sequence[str]) -> list[int | None]:
    """The place of each declared name among those given: the same name, or else the only one that differs in nothing
    but case. None if there is none, or several are equally good."""
    exact = Counter(given)
    folded = Counter(name.casefold() for name in given if name not in declared)
    by_name = {name: i for i, name in enumerate(given)}
    by_folded = {name.casefold(): i for i, name in enumerate(given) if name not in declared}
    wanted = Counter(name.casefold() for name in declared if name not in by_name)

    def place(name: str) -> int | None:
        if name in by_name:
            return by_name[name] if exact[name] == 1 else None
        key = name.casefold()
        return by_folded[key] if folded[key] == 1 and wanted[key] == 1 else None

    return [place(name) for name in declared]


def values_by_name(schema: Schema, row: Mapping[str, Any], left_out: dict[str, object]) -> list[Any] | Fault:
    """The values of a row that names them, in the order of the columns. Such a row has no positions: a missing
    attribute is a fault. Names that the relation does not have are added to `left_out`, with a value."""
    if row.keys() == set(schema.names):
        return [row[name] for name in schema.names]
    names = list(row)
    places = places_by_name(schema.names, names)
    missing = next((name for name, place in zip(schema.names, places, strict=True) if place is None), None)
    if missing is not None:
        advice = f"name the values as they are declared: {', '.join(map(shown, schema.names))}"
        return Fault(faults.ARITY, f"the row has no value for `{missing}`", advice)
    left_out.update((str(name), row[name]) for place, name in enumerate(names) if place not in places)
    return [row[names[place]] for place in places if place is not None]


def columns_given(names: Sequence[str]) -> str:
    """The note that lists the columns given."""
    return f"the columns given are: {', '.join(map(shown, names)) or 'none'}"


def _unmatched(
    schema: Schema,
    own: Schema,
    names: Sequence[str],
    places: Sequence[int | None],
    what: str,
    location: str | None,
    index: Sequence[str],
) -> Diagnostic:
    missing = [name for name, place in zip(schema.names, places, strict=True) if place is None]
    twice = [name for name, number in Counter(names).items() if number > 1 and name in missing]
    if twice:
        found = f"{_listed('column', twice)} more than once"
        advice = "give every column a name of its own"
    else:
        found = f"{_listed('no column', missing)} of relation `{schema.name}`"
        unknown = [name for place, name in enumerate(names) if place not in places]
        meant = {near: name for name in missing if (near := _like(name, unknown)) is not None}
        renamed = f"name {'a column' if len(missing) == 1 else 'columns'} {', '.join(map(shown, missing))}"
        if len(meant) == len(missing):
            renamed = "rename " + ", ".join(f"{shown(near)} to {shown(name)}" for near, name in meant.items())
        attributes = "attribute" if len(missing) == 1 else "attributes"
        advice = f"{renamed}, or rename the {attributes}: once one name matches, every attribute needs its column"
    if set(missing) <= set(index):
        advice = f"give `frame.reset_index()`: the index has {_listed('column', missing)}"
    columns = columns_given(names)
    return finding("E0518", location=location, what=what, found=found, schema=own, columns=columns, advice=advice)


def _like(name: str, others: Sequence[str]) -> str | None:
    """The one among others that is called much alike, or is an abbreviation: "grp" of "group"."""
    return nearest(name, others) or next((one for one in others if _are_one_shortened(one, name)), None)


def _are_one_shortened(one: str, other: str) -> bool:
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    letters = iter(long)
    return len(short) > 2 and short[0] == long[0] and all(letter in letters for letter in short)


def _listed(what: str, names: Sequence[str]) -> str:
    return f"{what}{'' if len(names) == 1 else 's'} {', '.join(map(shown, names))}"
