"""What debugging answers: elements of updates, as users and as the backend see them, and parts of updates with what is
known about them; and how these are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, NamedTuple, TypeAlias

from elastalog.debugging.sandbox import Seconds
from elastalog.diagnostics.display import cut, html_table
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.changes import Changes, Update, net_of
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import written_out

Sign: TypeAlias = Literal["+", "-"]


class Element(NamedTuple):
    """A change of one explicit fact, or of one rule, which is its text; equal to the plain pair `("+", fact)`."""

    sign: Sign
    fact: Fact | str

    @property
    def is_rule(self) -> bool:
        return isinstance(self.fact, str)

    @property
    def undoing(self) -> str:
        """What undoing it does: `delete`, `insert`, `remove rule` or `add rule`."""
        return ("remove rule" if self.sign == "+" else "add rule") if self.is_rule else _UNDONE[self.sign]

    def __str__(self) -> str:
        return f"{self.sign}{self.fact}"


_UNDONE = {"+": "delete", "-": "insert"}


def net_changes(updates: Iterable[Update]) -> dict[WordFact, bool]:
    """The sum of some updates, as they took effect: whether each explicit fact that changed came or went."""
    net = net_of((update.deleted, update.inserted) for update in updates)
    return {
        (name, tuple(row)): has_come
        for name, sides in net.items()
        for has_come, rows in zip((True, False), sides, strict=True)
        for row in written_out(rows).tolist()
    }


What: TypeAlias = Literal["appeared", "disappeared"]


class Told:
    """What is shown to people, or handed on as JSON."""

    __slots__ = ()

    def __repr__(self) -> str:
        return cut(str(self))

    def as_object(self) -> dict[str, Any]:
        """What `to_json` writes."""
        raise NotImplementedError

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.as_object(), ensure_ascii=False, indent=2)


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Told):
    """Part of the update that leads from the first of two epochs to the second.

    `minimum`: no part that does the same weighs less (without weights: is smaller); otherwise none weighs less than
    `bound`, and `why_not_proven` says why no more is known. `proofs` connect the elements with the faults. `seconds`
    says where the time went.
    """

    elements: list[Element]
    minimum: bool
    bound: float
    why_not_proven: str | None
    proofs: tuple[Proof, ...]
    unwanted: tuple[Fact, ...]
    missing: tuple[Fact, ...]
    epochs: tuple[int, int]
    update_size: int
    seconds: Seconds = field(repr=False, compare=False)

    @property
    def verified(self) -> bool:
        """That it was tried, and does what it should: true of every answer, or it would not be one."""
        return True

    @property
    def size_in_words(self) -> str:
        """What is known about its size."""
        if self.minimum:
            return "minimum"
        bound = f"; lower bound {self.bound:g}" if self.bound > 0 else ""
        return f"not proven minimum because {self.why_not_proven}{bound}"

    def _headed(self, heading: str, lines: Iterable[str]) -> str:
        separator = ", " if self.minimum else "; "
        return "\n".join((f"{heading} (verified{separator}{self.size_in_words}):", *(f"  {line}" for line in lines)))

    def _part(self) -> str:
        first, last = self.epochs
        where = f"epoch {last}" if last == first + 1 else f"epochs {first + 1} to {last}"
        return f"{len(self.elements)} of {counted(self.update_size, 'element')} of {where}"

    def _repr_html_(self) -> str:
        heading, *_ = str(self).partition("\n")
        rows = [(element.sign, element.fact) for element in self.elements]
        proofs = "".join(proof.to_html() for proof in self.proofs)
        return html_table(heading, ("", "element"), rows) + proofs

    def as_object(self) -> dict[str, Any]:
        from elastalog.provenance.rendering.markup import as_json

        return {
            "elements": _as_objects(self.elements),
            "unwanted": list(map(str, self.unwanted)),
            "missing": list(map(str, self.missing)),
            "epochs": list(self.epochs),
            "update_size": self.update_size,
            "verified": self.verified,
            "minimum": self.minimum,
            "bound": self.bound,
            "why_not_proven": self.why_not_proven,
            "proofs": list(map(as_json, self.proofs)),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Localisation(Answer):
    """A part of the update that alone, applied to the earlier epoch, shows all faults."""

    def __str__(self) -> str:
        return self._headed(f"the faults come from {self._part()}", map(str, self.elements))


class SideEffects(NamedTuple):
    """The facts that come and go with a repair, besides the faults and the facts that it deletes and inserts itself: of
    the output relations, if the program has any (`is_output`), otherwise of all. `first` are some of them. `compared`:
    the number of repairs of the same size that were looked at, of which none has fewer. `elsewhere`: how many facts of
    the other relations come and go."""

    came: int
    went: int
    first: tuple[Element, ...]
    is_output: bool
    compared: int = 1
    elsewhere: int = 0

    @property
    def number(self) -> int:
        return self.came + self.went

    def __str__(self) -> str:
        fewest = f" (the fewest of {self.compared} repairs compared)" if self.compared > 1 else ""
        heading = f"side effects{' in the output' * self.is_output}{fewest}:"
        numbers = ((self.came, "appear"), (self.went, "disappear"))
        said = [f"{counted(number, 'fact')} {verb}{'s' * (number == 1)}" for number, verb in numbers if number]
        if not said:
            return f"{heading} none"
        first = ", ".join(map(str, self.first[:_FEW])) + ", …" * (self.number > _FEW)
        return f"{heading} {', '.join(said)}: {first}"


_FEW = 4
TO_SEE_ALL = "to see them all: "
_PREVIEWED = (
    ("inserted", "insert"), ("deleted", "delete"), ("added", "rules_to_add"), ("removed", "rules_to_remove"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Suggestion(Answer):
    """A part of the update whose undoing removes all faults, everything else staying applied."""

    rejected: tuple[Element, ...] = ()
    undo: Callable[[Suggestion], Changes] | None = field(default=None, repr=False, compare=False)
    over: Literal["update", "facts"] = "update"
    """What was looked at: an update, or explicit facts whenever they came."""
    side_effects: SideEffects | None = field(default=None, compare=False)
    """What else applying it changes; None for an earlier epoch, and where finding out would take longer than the
    search. `preview` of the same changes tells all of it."""
    replaced: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Where rules are to be removed: those that their epoch removed, which undoing all of it brings back."""

    @property
    def delete(self) -> tuple[Fact, ...]:
        """The explicit facts to delete."""
        return tuple(what for sign, what in self.elements if sign == "+" and isinstance(what, Fact))

    @property
    def insert(self) -> tuple[Fact, ...]:
        """The explicit facts to insert."""
        return tuple(what for sign, what in self.elements if sign == "-" and isinstance(what, Fact))

    @property
    def rules_to_remove(self) -> tuple[str, ...]:
        """The rules to remove."""
        return tuple(what for sign, what in self.elements if sign == "+" and isinstance(what, str))

    @property
    def rules_to_add(self) -> tuple[str, ...]:
        """The rules to add."""
        return tuple(what for sign, what in self.elements if sign == "-" and isinstance(what, str))

    def as_object(self) -> dict[str, Any]:
        found = Answer.as_object(self)
        found |= {"delete": list(map(str, self.delete)), "insert": list(map(str, self.insert))}
        found["rejected"] = _as_objects(self.rejected)
        found |= {"rules_to_remove": list(self.rules_to_remove), "rules_to_add": list(self.rules_to_add)}
        if (others := self.side_effects) is not None:
            found["side_effects"] = {**others._asdict(), "first": _as_objects(others.first)}
        return {**found, "over": self.over}

    def apply(self) -> Changes:
        """Undoes the elements, as a new update. Raises ElastalogError if the session has gone on since."""
        assert self.undo is not None
        return self.undo(self)

    def __str__(self) -> str:
        what = self._part() if self.over == "update" else counted(len(self.elements), "explicit fact")
        heading = f"{'undo' if self.over == 'update' else 'change'} {what}"
        said = self._headed(heading, (f"{element.undoing} {element.fact}" for element in self.elements))
        if self.side_effects is not None:
            said = f"{said}\n{self.side_effects}"
            if self.side_effects.number > _FEW:
                given = ", ".join(f"{kind}=suggestion.{name}" for kind, name in _PREVIEWED if getattr(self, name))
                said = f"{said}\n{TO_SEE_ALL}`db.preview({given})`"
        if self.replaced:
            epoch, rules = self.epochs[1], "".join(f"\n  add rule {rule}" for rule in self.replaced)
            how = f"`undo {epoch}`, in Python `db.apply(undo={epoch})`"
            said = f"{said}\nundoing all of epoch {epoch} also brings back what it replaced ({how}):{rules}"
        return said

    def _repr_html_(self) -> str:
        heading, *_ = str(self).partition("\n")
        rows = [(element.undoing, element.fact) for element in self.elements]
        others = "" if self.side_effects is None else f"<p>{escape(str(self.side_effects))}</p>"
        return html_table(heading, ("to do", "what"), rows) + others + "".join(one.to_html() for one in self.proofs)


@dataclass(frozen=True, slots=True, repr=False)
class Blame(Told):
    """The epoch in which a fact last appeared or disappeared, and the part of its update that did it. No update is to
    blame for a fact that has held since the earliest epoch known."""

    fact: Fact
    what: What
    epoch: int
    elements: list[Element]
    localisation: Localisation | None

    def __str__(self) -> str:
        if not self.elements:
            return f"{self.fact} has held since epoch {self.epoch}, the earliest that is known"
        head = f"{self.fact} {self.what} in epoch {self.epoch}, because of"
        return "\n".join((head, *(f"  {element}" for element in self.elements)))

    def as_object(self) -> dict[str, Any]:
        return {"fact": str(self.fact), "what": self.what, "epoch": self.epoch, "elements": _as_objects(self.elements)}


def _as_objects(elements: Iterable[Element]) -> list[dict[str, str]]:
    return [{"sign": e.sign, "rule" if e.is_rule else "fact": str(e.fact)} for e in elements]
