"""Which column given is which column declared. **Names decide**: if any name given is a declared one (also but for
case), columns go by name and all must be found; only if none is do they go by position. Never a silent swap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.schema import Schema


def column_order(
    schema: Schema,
    names: Sequence[str],
    *,
    what: str = "the table",
    location: str | None = None,
    apart: Sequence[str] = (),
) -> list[int]:
    """For every column of the relation, the place of the one given for it.

    `what`: what has the columns, for diagnostics. `apart`: columns of the schema that are found by their names and say
    nothing of the others, such as the `op` of a table of changes."""
    if tuple(names) == schema.names:
        return list(range(len(names)))
    if len(names) != schema.arity:
        raise ElastalogError([_wrong_number(schema, names, what, location)])
    places = places_by_name(schema.names, names)
    open_columns = [i for i, name in enumerate(schema.names) if name not in apart]
    if not goes_by_name([schema.names[i] for i in open_columns], names):
        taken = {places[i] for i in range(schema.arity) if i not in open_columns}
        rest = (place for place in range(len(names)) if place not in taken)
        places = [places[i] if i not in open_columns else next(rest, None) for i in range(schema.arity)]
    found = [place for place in places if place is not None]
    if len(found) < schema.arity:
        raise ElastalogError([_unmatched(schema, names, places, what, location)])
    return found


def goes_by_name(declared: Iterable[str], given: Iterable[str]) -> bool:
    """Whether any name given is a declared one, also but for case."""
    return not {name.casefold() for name in declared}.isdisjoint(name.casefold() for name in given)


def places_by_name(declared: Sequence[str], given: Sequence[str]) -> list[int | None]:
    """The place of each declared name among those given: the name itself, or else the only one that differs from it in
    nothing but case. None where there is none, and where several are equally good."""
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


def values_by_name(schema: Schema, row: Mapping[str, Any]) -> list[Any] | Fault:
    """The values of a row that names them, in the order of the columns. Such a row has no positions: every attribute
    is found, or it is at fault."""
    if row.keys() == set(schema.names):
        return [row[name] for name in schema.names]
    names = list(row)
    places = places_by_name(schema.names, names)
    missing = next((name for name, place in zip(schema.names, places, strict=True) if place is None), None)
    advice = f"name the values as they are declared: {', '.join(map(shown, schema.names))}"
    if missing is not None:
        return Fault(faults.ARITY, f"no attribute `{missing}`", advice)
    unknown = next((name for place, name in enumerate(names) if place not in places), None)
    if unknown is not None:
        return Fault(faults.ARITY, f"no column for attribute {shown(unknown)}", advice)
    return [row[names[place]] for place in places if place is not None]


def columns_given(names: Sequence[str]) -> str:
    """The note that lists the columns given."""
    return f"the columns given are: {', '.join(map(shown, names)) or 'none'}"


def _unmatched(
    schema: Schema, names: Sequence[str], places: Sequence[int | None], what: str, location: str | None
) -> Diagnostic:
    missing = [name for name, place in zip(schema.names, places, strict=True) if place is None]
    unknown = [name for place, name in enumerate(names) if place not in places]
    twice = [name for name, number in Counter(names).items() if number > 1 and name in missing]
    if twice:
        found = f"{_listed('column', twice)} more than once"
        advice = "give every column a name of its own"
    else:
        found = f"{_listed('no column', missing)} of relation `{schema.name}`"
        advice = f"rename {_listed('column', unknown)}, or the attribute: where one name fits, all columns go by name"
    return Diagnostic(
        code=faults.NAMES,
        message=f"{what} has {found}",
        notes=(f"declared as {schema}", columns_given(names)),
        help=advice,
        location=location,
    )


def _listed(what: str, names: Sequence[str]) -> str:
    return f"{what}{'' if len(names) == 1 else 's'} {', '.join(map(shown, names))}"


def _wrong_number(schema: Schema, names: Sequence[str], what: str, location: str | None) -> Diagnostic:
    columns = f"{schema.arity} column{'' if schema.arity == 1 else 's'}"
    return Diagnostic(
        code=faults.ARITY,
        message=f"relation `{schema.name}` has {columns}, {what} has {len(names)}",
        notes=(f"declared as {schema}", columns_given(names)),
        help=faults.helps(faults.ARITY),
        location=location,
    )
