"""Prepared queries, of a session or of a service through a client."""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from elastalog.diagnostics.arguments import wrong_kind
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.late import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from elastalog.evaluation.queries import PatternQuery
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.fact import Fact
    from elastalog.provenance.proof import Proof
    from elastalog.relations.facts import Relation


class Asked(Protocol):
    """What answers prepared queries: a session or a client."""

    def query(self, text: str, /, parameters: Mapping[str, Any] | None = None) -> Relation: ...
    def explain(self, fact: Fact) -> Proof: ...
    def why_not(self, fact: Fact) -> Absence: ...


class PreparedQuery:
    """A query that is asked often, each time with other values for its parameters. Made by `db.prepare`; called with
    the values, by name or in the order of `parameters`."""

    def __init__(self, db: Asked, text: str, parameters: tuple[str, ...]) -> None:
        self._db = db
        self.text = text
        self.parameters = parameters

    def __call__(self, /, *values: Any, **named: Any) -> Relation:
        """The answers at the latest epoch."""
        return self._db.query(self.text, parameters=self._by_name(values, named))

    def _by_name(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The values by parameter. Raises ElastalogError if there are too many or too few, or one is given twice."""
        if len(values) > len(self.parameters):
            raise wrong_kind(f"{self!r} takes {len(self.parameters)} values", values, "give one for each parameter")
        found = dict(zip(self.parameters, values, strict=False))
        for name in named:
            if name in found:
                raise wrong_kind(f"`?{name}` has one value", (found[name], named[name]), "give it once")
        found.update(named)
        lacking = [name for name in self.parameters if name not in found]
        if lacking and found.keys() <= set(self.parameters):
            by_name = not any(map(iskeyword, self.parameters))
            call = ", ".join(f"{name}=…" if by_name else "…" for name in self.parameters)
            raise error("E0619.prepared", name=lacking[0], text=self.text.strip(), call=call)
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text.strip()}>"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a prepared decision, with its reason: true if the fact holds. `reason`: its proof, or why it does
    not hold."""

    fact: Fact
    holds: bool
    reason: Proof | Absence

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return str(self.reason)


class PreparedDecision(PreparedQuery):
    """A prepared query of one atom without variables, `ok(?user, ?resource)`: whether a fact holds."""

    def __init__(self, db: Asked, text: str, asked: PatternQuery) -> None:
        super().__init__(db, text, asked.parameters)
        self._asked = asked

    @overload  # type: ignore[override]  # a fact holds or not: there are no answers to list
    def __call__(self, /, *values: Any, explain: Literal[False] = False, **named: Any) -> bool: ...
    @overload
    def __call__(self, /, *values: Any, explain: Literal[True], **named: Any) -> Decision: ...
    def __call__(self, /, *values: Any, explain: bool = False, **named: Any) -> bool | Decision:
        """Whether the fact holds at the latest epoch. With `explain`, a `Decision`, which says why, or why not."""
        if named or len(values) != len(self.parameters):
            values = self._in_order(self._by_name(values, named))
        return self._explained(values) if explain else self._holds(values)

    def many(self, /, *values: Any, **named: Any) -> np.ndarray:
        """Many decisions at one epoch, as an array of truth values. Each parameter gets a list or an array, all of the
        same length, or one value for all."""
        import numpy as np

        given = self._in_order(self._by_name(values, named))
        lengths = {len(column) for column in given if is_column(column)}
        if len(lengths) > 1:
            told = "the values of all parameters are equally many"
            raise wrong_kind(told, sorted(lengths), "give lists of one length, or one value for all")
        size = lengths.pop() if lengths else 1
        columns = [_listed(column) if is_column(column) else [column] * size for column in given]
        rows = list(zip(*columns, strict=True)) if columns else [()] * size
        return np.array(self._hold(rows), np.bool_)

    def _in_order(self, named: dict[str, Any]) -> tuple[Any, ...]:
        if named.keys() != set(self.parameters):
            self._db.query(self.text, parameters=named)  # says which one is missing, or unknown
        return tuple([named[name] for name in self.parameters])

    def _holds(self, values: Sequence[Any]) -> bool:
        """Whether the fact with these values holds."""
        return bool(self._db.query(self.text, parameters=dict(zip(self.parameters, values, strict=True))))

    def _hold(self, rows: Sequence[Sequence[Any]]) -> Sequence[bool] | np.ndarray:
        """Which of many facts hold."""
        return [self._holds(row) for row in rows]

    def _explained(self, values: Sequence[Any]) -> Decision:
        from elastalog.provenance.fact import Fact

        fact = Fact(self._asked.relation, tuple(self._asked.arguments(values)))
        try:
            return Decision(fact, True, self._db.explain(fact))
        except ElastalogError as error:
            if error.diagnostics[0].code != "E0701":
                raise
        return Decision(fact, False, self._db.why_not(fact))


def is_column(given: object) -> bool:
    """Whether a parameter is given many values: a list, or an array of Arrow, numpy, pandas or polars."""
    return isinstance(given, list) or hasattr(given, "dtype") or hasattr(given, "to_pylist")


def _listed(column: Any) -> list[Any]:
    """The values of a list or an array."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)
