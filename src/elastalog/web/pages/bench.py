"""What all windows share: the service, the basket of faults, and facts too long for an address."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

from elastalog.analysis.listing import show_value
from elastalog.analysis.pattern import Free, Pattern, parse_pattern
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.provenance.fact import Fact
from elastalog.web.pages.address import Address
from elastalog.web.pages.basket import Faults
from elastalog.web.pages.live import Live

if TYPE_CHECKING:
    from elastalog.web.service import Service

LONGEST = 1_500
"""Characters of a fact that an address may hold."""
MOST_LONG = 1_000
"""Longer facts that are remembered."""


class Bench:
    """`title`: what is worked on, as the pages call it. `is_demo`: the demonstration, which shows the way."""

    def __init__(self, service: Service, title: str, is_demo: bool = False) -> None:
        self.service = service
        self.title = title
        self.is_demo = is_demo
        self.live = Live(service)
        self._faults = Faults()
        self._long: OrderedDict[str, Fact] = OrderedDict()

    @property
    def faults(self) -> Faults:
        """The facts that were marked as wrong or missing."""
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        if faults != self._faults:
            self._faults = faults
            self.live.tell()

    def prepare(self) -> None:
        """Proves one fact, so that the first proof that somebody wants does not wait for what is made once."""
        with suppress(ElastalogError):
            derived = [summary for summary in self.service.reading.relations() if summary.rules and summary.facts]
            first = min(derived, key=lambda summary: not summary.is_output, default=None)
            if first is not None:
                row = self.service.reading.page(first.name, limit=1).rows[0]
                self.service.reading.proof(Fact(first.name, tuple(row)), 1)

    @property
    def example(self) -> str:
        """A question that can be asked of this program: a relation that is output, or else any."""
        relations = self.service.reading.program().checked.relations.values()
        wanted = [r for r in relations if any(directive.kind == "output" for directive in r.directives)] or [*relations]
        if not wanted:
            return "a fact, or a query"
        names = ("X", "Y", "Z", *(f"X{i}" for i in range(4, wanted[0].arity + 1)))
        return f"{wanted[0].name}({', '.join(names[: wanted[0].arity])})"

    # --- addresses of facts ----------------------------------------------------------------------------------------

    def fact_address(self, fact: Fact, epoch: int | None = None) -> Address:
        """Where a fact is shown. A long one is remembered by a mark, as long as the server runs."""
        if sum(len(value) if isinstance(value, str) else 8 for value in fact.values) <= LONGEST:
            return Address.of("/fact", fact=str(fact), epoch=epoch)
        mark = hashlib.sha256(str(fact).encode(errors="surrogatepass")).hexdigest()[:24]
        self._long[mark] = fact
        self._long.move_to_end(mark)
        while len(self._long) > MOST_LONG:
            self._long.popitem(last=False)
        return Address.of("/fact", long=mark, epoch=epoch)

    def fact_at(self, address: Address) -> str | Fact:
        """The fact that an address names: as it was written, or one that was too long for that."""
        mark = address.get("long")
        if not mark:
            return address.get("fact")
        if mark not in self._long:
            told = "this fact was too long for its address, and the server has forgotten it"
            raise ElastalogError([Diagnostic("E0950", told, help="open it again from the table of its relation")])
        return self._long[mark]

    def address_of(self, text: str, epoch: int | None = None) -> Address:
        """Where the answer to a question is shown: a fact, the facts that fit a pattern, or a query."""
        program = self.service.reading.program(epoch)
        if text in program.checked.relations:
            return Address.of("/facts", relation=text, epoch=epoch)
        try:
            pattern = parse_pattern(text, program.checked)
        except ElastalogError:
            return Address.of("/facts", query=text, epoch=epoch)  # which says what is wrong with it, if it is no query
        if pattern.is_fact:
            return Address.of("/fact", fact=text, epoch=epoch)
        columns = [attribute.name for attribute in program.checked.relations[pattern.relation].attributes]
        where = _conditions(pattern, columns)
        return Address.of("/facts", relation=pattern.relation, where=where, pattern=where and text, epoch=epoch)


def _conditions(pattern: Pattern, columns: list[str]) -> str:
    """What a pattern says of the columns of its relation."""
    found: list[str] = []
    first: dict[str, str] = {}
    for column, term in zip(columns, pattern.terms, strict=True):
        if not isinstance(term, Free):
            found.append(f"{column} = {show_value(term)}")
        elif term.name is not None and first.setdefault(term.name, column) != column:
            found.append(f"{column} = {first[term.name]}")
    return ", ".join(found)
