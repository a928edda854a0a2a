"""What pages are made of: the bench shared by all windows, the window of one browser, and controls.

The bench has the service, the basket of facts marked as unwanted or missing, and facts too long for an address. Commits
reach every open window through the event loop that serves it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nicegui import Client, ui

from elastalog.analysis.listing import show_value
from elastalog.analysis.pattern import Free, Pattern, parse_pattern
from elastalog.diagnostics.diagnostic import ElastalogError, collecting_warnings, error
from elastalog.provenance.fact import Fact
from elastalog.web.calls import Asked, T
from elastalog.web.pages.markup import Address, fact_html, faults_html, html, link

if TYPE_CHECKING:
    from elastalog.session import Session
    from elastalog.web.reading import Reading
    from elastalog.web.service import Service
    from elastalog.web.writing import Writing


Side: TypeAlias = Literal["wrong", "missing"]


@dataclass(frozen=True, slots=True)
class Faults:
    """Facts as text, in the order in which they were marked."""

    wrong: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.wrong) + len(self.missing)

    def side(self, side: Side) -> tuple[str, ...]:
        """The faults of one kind."""
        return self.wrong if side == "wrong" else self.missing

    def with_(self, side: Side, *facts: str) -> Faults:
        """With more facts of a kind."""
        return replace(self, **{side: tuple(dict.fromkeys((*self.side(side), *facts)))})

    def without(self, fact: str) -> Faults:
        """Without a fact."""
        return Faults(tuple(f for f in self.wrong if f != fact), tuple(f for f in self.missing if f != fact))


Listener = Callable[[], Awaitable[None]]


LONGEST = 1_500
"""Characters of a fact in an address."""


MOST_LONG = 1_000
"""Longer facts that are remembered."""


class Bench:
    """`title`: the name of the work, as the pages show it. `is_demo`: the demo, which has a guide."""

    def __init__(self, service: Service, title: str, is_demo: bool = False) -> None:
        self.service = service
        self.title = title
        self.is_demo = is_demo
        self.windows: dict[int, Listener] = {}
        """What is called of each open window when something has changed."""
        self._faults = Faults()
        self._long: OrderedDict[str, Fact] = OrderedDict()

    @property
    def faults(self) -> Faults:
        """The facts marked as unwanted or missing."""
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        if faults != self._faults:
            self._faults = faults
            asyncio.get_running_loop().create_task(self._tell())

    async def listen(self) -> None:
        """Tells the windows of commits as long as there is a service; those that arrive while windows are being updated
        are shown together."""
        known = self.service.epoch
        while not self.service.feed.is_closed:
            try:
                event = await self.service.feed.after(known)
            except ElastalogError:
                # What happened since an epoch that is no longer kept: the present is shown all the same.
                known = self.service.epoch
            else:
                if event is None:
                    continue
                known = event.epoch
            await self._tell()

    async def _tell(self) -> None:
        for committed in list(self.windows.values()):
            try:
                await committed()
            except Exception:
                log.exception("a window could not be brought up to date")

    def prepare(self) -> None:
        """Proves one fact, so that the first proof a user requests does not wait for one-time preparations."""
        with suppress(ElastalogError):
            found, _ = self.service.reading.relations()
            derived = [summary for summary in found if summary.rules and summary.facts]
            first = min(derived, key=lambda summary: not summary.is_output, default=None)
            if first is not None:
                row = self.service.reading.page(first.name, limit=1).rows[0]
                self.service.reading.ask(lambda session: session.explain(Fact(first.name, tuple(row)), 1))

    @property
    def example(self) -> str:
        """An example question for this program: an output relation, or else any."""
        relations = self.service.reading.look(lambda session: session.program).checked.relations.values()
        wanted = [r for r in relations if any(directive.kind == "output" for directive in r.directives)] or [*relations]
        if not wanted:
            return "a fact, or a query"
        names = ("X", "Y", "Z", *(f"X{i}" for i in range(4, wanted[0].arity + 1)))
        return f"{wanted[0].name}({', '.join(names[: wanted[0].arity])})"

    # --- addresses of facts ----------------------------------------------------------------------------------------

    def fact_address(self, fact: Fact, epoch: int | None = None) -> Address:
        """The address of a fact. A long fact is replaced by a key, valid as long as the server runs."""
        if sum(len(value) if isinstance(value, str) else 8 for value in fact.values) <= LONGEST:
            return Address.of("/fact", fact=str(fact), epoch=epoch)
        mark = hashlib.sha256(str(fact).encode(errors="surrogatepass")).hexdigest()[:24]
        self._long[mark] = fact
        self._long.move_to_end(mark)
        while len(self._long) > MOST_LONG:
            self._long.popitem(last=False)
        return Address.of("/fact", long=mark, epoch=epoch)

    def fact_at(self, address: Address) -> str | Fact:
        """The fact in an address, given as text or by its key."""
        mark = address.get("long")
        if not mark:
            return address.get("fact")
        if mark not in self._long:
            raise error("E0950")
        return self._long[mark]

    def address_of(self, text: str, epoch: int | None = None) -> Address:
        """The address of the answer to a question: a fact, the facts that match a pattern, or a query."""
        program = self.service.reading.look(lambda session: session.program, epoch)
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
        return Address.of("/facts", relation=pattern.relation, where=where, pattern=text, epoch=epoch)


def _conditions(pattern: Pattern, columns: list[str]) -> str:
    """The conditions of a pattern on the columns of its relation."""
    found: list[str] = []
    first: dict[str, str] = {}
    for column, term in zip(columns, pattern.terms, strict=True):
        if not isinstance(term, Free):
            found.append(f"{column} = {show_value(term)}")
        elif term.name is not None and first.setdefault(term.name, column) != column:
            found.append(f"{column} = {first[term.name]}")
    return ", ".join(found)


class Window:
    """`may_write`: whether the user may change anything."""

    def __init__(self, bench: Bench, client: Client, may_write: bool) -> None:
        self.bench = bench
        self.client = client
        self.may_write = may_write
        self.address = Address("/")
        self._page_listeners: list[Listener] = []

    @property
    def epoch(self) -> int | None:
        """The epoch that is shown; None for the latest."""
        return self.address.epoch

    @property
    def reading(self) -> Reading:
        return self.bench.service.reading

    @property
    def writing(self) -> Writing:
        return self.bench.service.writing

    @property
    def can_change(self) -> bool:
        """Whether the user can change what is shown: it is the present, and the user may write."""
        return self.may_write and self.epoch is None

    def enter(self, address: Address) -> None:
        """Switches to another page, or another state of it."""
        self.address = address
        self._page_listeners.clear()

    def follow(self, listener: Listener) -> None:
        """Calls a function after every commit while the page is shown, unless it shows an earlier epoch."""
        self._page_listeners.append(listener)

    async def tell(self) -> None:
        """Called after a commit."""
        if self.client.is_deleted or self.epoch is not None:
            return
        for listener in list(self._page_listeners):
            await listener()

    def to(self, path: str, **parameters: object) -> Address:
        """An address, at the epoch that is shown."""
        return Address.of(path, **parameters).with_(epoch=self.epoch)

    def fact_link(self, fact: Fact, text: str = "", look: str = "fact") -> str:
        """A link to a fact, at the epoch that is shown."""
        return link(self.bench.fact_address(fact, self.epoch), text or fact_html(*fact), look)

    def go(self, address: Address) -> None:
        """Navigates to an address; the browser can go back."""
        with self.client:
            ui.navigate.to(str(address))

    def note(self, address: Address) -> None:
        """Updates the address to match what is already shown."""
        self.address = address
        with self.client:
            ui.navigate.history.replace(str(address))

    async def ask(self, question: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Asks the service, in another thread and within its limits, while other windows are served."""
        return await self.bench.service.call(question, *asked, **options)

    async def look(self, question: Callable[[Session], T]) -> T:
        """Answers a brief question by the session of the epoch that is shown."""
        return await self.ask(self.reading.look, question, self.epoch)

    async def answer(self, question: Callable[[Session], T], *, changes: bool = False) -> T:
        """Answers a question; see `Reading.ask`."""
        return await self.ask(self.reading.ask, question, self.epoch, changes=changes)

    async def attempt(self, action: Awaitable[T], where: ui.element) -> T | None:
        """Runs something; errors that the user can act on, and warnings, are shown in a place on the page."""
        where.clear()
        done = None
        with collecting_warnings() as found:
            try:
                done = await action
            except ElastalogError as error:
                found += error.diagnostics
        if found:
            with where:
                raw(faults_html(found))
        return done


Action = Callable[[], Awaitable[None] | None]


def raw(content: str, *classes: str, tag: str = "div") -> ui.html:
    """HTML that has been escaped already."""
    return ui.html(content, sanitize=False, tag=tag).classes(" ".join(classes))


def box(*classes: str, tag: str = "div") -> ui.element:
    """A container element."""
    return ui.element(tag).classes(" ".join(classes))


@contextmanager
def card(title: str = "", note: str = "", *, is_padded: bool = True) -> Iterator[ui.element]:
    """A card; yields its header, for controls. The block fills its body."""
    with box("wb-card", tag="section"):
        header = box(tag="header")
        with header:
            raw(html(title), tag="h2")
            if note:
                raw(note, "wb-note", tag="span")
        if not title:
            header.set_visibility(False)
        with box("wb-body" if is_padded else ""):
            yield header


def button(text: str, action: Action, *classes: str, mark: str = "", label: str = "", picture: str = "") -> ui.element:
    """A button. `mark` names it for tests; `label` does where only its icon is shown."""
    made = ui.element("button").classes(" ".join(("wb-button", *classes))).props('type="button"')
    if mark:
        made.props["data-action"] = mark
    if label:
        made.props["aria-label"] = made.props["title"] = label
    with made:
        if picture:
            raw(picture, tag="span")
        if text:
            raw(html(text), tag="span")
    made.on("click", action)
    return made


def field(value: str, on_value: Callable[[str], Any], *, label: str, hint: str = "") -> ui.input:
    """An input field; `on_value` gets its text when Enter is pressed or the field loses focus."""
    made = written(label, hint, value=value)
    made.on("keydown.enter", lambda: on_value(made.value or ""))
    made.on("change", lambda: on_value(made.value or ""))
    return made


FIELD = "outlined dense spellcheck=false autocomplete=off"
"""The style of one-line input fields."""


def written(label: str, hint: str = "", *classes: str, value: str = "") -> ui.input:
    """An input field for program text."""
    made = ui.input(value=value, placeholder=hint).props(FIELD)
    made.props["aria-label"] = label
    return made.classes(" ".join(("wb-input", *classes)))


def select(value: str, options: Mapping[str, str], on_value: Callable[[str], Any], *, label: str) -> ui.select:
    """A choice between several options, by their names."""
    made = ui.select(dict(options), value=value, on_change=lambda event: on_value(event.value))
    made.props["aria-label"] = label
    made.props("outlined dense options-dense").classes("wb-input")
    return made


def choice(options: Sequence[tuple[str, Address]], chosen: str) -> str:
    """A row of links, one of which is active."""
    links = (
        link(address, html(text), "is-here" if text == chosen else "", "aria-current=true" if text == chosen else "")
        for text, address in options
    )
    return f'<nav class="wb-choice">{"".join(links)}</nav>'


def heading(title: str, lead: str = "") -> ui.element:
    """The header of a page, with room for controls."""
    head = box("wb-head")
    with head, box():
        raw(html(title), tag="h1")
        if lead:
            raw(lead, "wb-lead", tag="p")
    return head


log = logging.getLogger("elastalog.web")
