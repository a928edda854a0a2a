"""The page Repair: the basket of unwanted and missing facts, where they come from, and what to undo."""

from __future__ import annotations

from functools import partial

from nicegui import ui

from elastalog.debugging.answers import Answer, Element, Localisation, Suggestion
from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.messages import counted
from elastalog.provenance.fact import Fact
from elastalog.session import Session
from elastalog.web.pages.markup import Address, empty, fact_html, html, link, sign, tag
from elastalog.web.pages.program import show_commit
from elastalog.web.pages.why import ProofTree
from elastalog.web.pages.window import Faults, Side, Window, box, button, card, choice, heading, raw, written
from elastalog.web.writing import repairing

_OVER = {"update": "the last update", "facts": "all given facts"}


async def show(window: Window, address: Address) -> None:
    """Builds the page. Faults in the address are added to the basket."""
    if window.may_write and (address.all("wrong") or address.all("missing")):
        window.bench.faults = window.bench.faults.with_("wrong", *address.all("wrong")).with_(
            "missing", *address.all("missing")
        )
    heading(
        "Repair",
        "Mark facts that are wrong or missing, and get the smallest change that puts them right.",
    )
    page = _Repair(window, address)
    with box("wb-columns"):
        page.build()
    window.follow(page.committed)


class _Repair:
    """The page while it is shown."""

    def __init__(self, window: Window, address: Address) -> None:
        self._window = window
        self._rejected = list(address.all("rejected"))
        self._over = address.get("over", "update")
        self._basket = window.bench.faults

    def build(self) -> None:
        with box("wb-stack"):
            with card("Faults", "the basket, shared by all windows"):
                self._listed = box()
                if self._window.may_write:
                    self._form()
            with card("Ask"):
                options = [(text, self._address(over=None if key == "update" else key)) for key, text in _OVER.items()]
                raw(
                    f'<span class="wb-note">Look for the cause in</span> {choice(options, _OVER.get(self._over, ""))}',
                    "wb-row",
                )
                self._kept = box("wb-stack")
                with box("wb-row"):
                    button("Where from?", self._localise, mark="localise")
                    button("Suggest a repair", self._suggest, "primary", mark="suggest")
        with box("wb-stack"), card("Answer"):
            self._answer = box("wb-stack")
            with self._answer:
                raw(empty("Nothing asked yet", "Put facts into the basket, here or from their own pages, then ask."))
        self._show_basket()
        self._show_rejected()

    def _address(self, **changes: object) -> Address:
        faults = self._window.bench.faults
        short = [[fact for fact in side if len(fact) < 400][:20] for side in (faults.wrong, faults.missing)]
        return Address.of(
            "/repair",
            wrong=short[0],
            missing=short[1],
            over=self._over if self._over != "update" else None,
            rejected=self._rejected,
            epoch=self._window.epoch,
        ).with_(**changes)

    async def committed(self) -> None:
        """Called when the basket or the facts have changed."""
        self._show_basket()

    # --- the basket ------------------------------------------------------------------------------------------------

    def _show_basket(self) -> None:
        if self._basket != self._window.bench.faults:
            self._answer.clear()  # it is about other faults
        self._basket = self._window.bench.faults
        self._listed.clear()
        with self._listed:
            if not len(self._basket):
                raw(
                    empty(
                        "No faults",
                        "Open a fact and mark it as wrong, or ask for one that is not there and mark it as missing.",
                    )
                )
                return
            with box("wb-list", tag="ul"):
                for fact in self._basket.wrong:
                    self._fault(fact, "wrong")
                for fact in self._basket.missing:
                    self._fault(fact, "missing")

    def _fault(self, fact: str, side: Side) -> None:
        with box(tag="li"):
            address = self._window.to("/fact", fact=fact)
            raw(
                f"{tag(side, 'minus' if side == 'wrong' else 'amber')} {link(address, html(fact, 300), 'fact')}",
                "wb-row",
            )
            if self._window.may_write:
                with box("end"):
                    button("Remove", lambda: self._change(self._window.bench.faults.without(fact)), "quiet", "small")

    def _change(self, faults: Faults) -> None:
        self._window.bench.faults = faults
        self._show_basket()
        self._window.note(self._address())

    def _form(self) -> None:
        wrong = box()
        with box("wb-row wb-grow"):
            given = written("a fact", "a fact, for example path(1, 4)", "mono")

            async def add(side: Side) -> None:
                text = (given.value or "").strip().rstrip(".")
                fact = await self._window.attempt(self._window.look(partial(_checked, text, side)), wrong)
                if fact is not None:
                    given.value = ""
                    self._change(self._window.bench.faults.with_(side, fact))

            button("is wrong", lambda: add("wrong"))
            button("is missing", lambda: add("missing"))

    # --- asking ----------------------------------------------------------------------------------------------------

    async def _localise(self) -> None:
        faults, reading = self._window.bench.faults, self._window.reading

        def ask(session: Session) -> Localisation:
            return session.localise(faults.wrong, faults.missing, time_limit=reading.time_to_search())

        found = await self._window.attempt(self._window.answer(ask, changes=True), self._answer)
        if found is not None:
            with self._answer:
                raw(
                    f"<p>The faults come from <b>{len(found.elements)}</b> of {found.update_size} changes "
                    f"of {_epochs(found)}.</p>"
                )
                self._known(found)
                for element in found.elements:
                    self._element(element, None)
                await self._proofs(found)

    async def _suggest(self) -> None:
        faults, reading = self._window.bench.faults, self._window.reading

        def ask(session: Session) -> Suggestion:
            time = reading.time_to_search()
            over = "facts" if self._over == "facts" else None
            return session.suggest(faults.wrong, faults.missing, list(self._rejected), None, time, over=over)

        found = await self._window.attempt(self._window.answer(ask, changes=True), self._answer)
        if found is None:
            return
        with self._answer:
            number = len(found.elements)
            what = counted(number, "explicit fact")
            undo = f"<p>Undo <b>{number}</b> of {found.update_size} changes of {_epochs(found)}.</p>"
            raw(f"<p>Change <b>{what}</b>.</p>" if found.over == "facts" else undo)
            self._known(found)
            for element in found.elements:
                self._element(element, found)
            if found.side_effects is not None:
                raw(html(str(found.side_effects), 1_000), tag="p")
            if self._window.can_change and found.elements:
                place = box("wb-stack")
                with box("wb-row"):
                    button("Apply, as a new epoch", lambda: self._apply(found, place), "primary", mark="apply")
            await self._proofs(found)

    def _known(self, found: Answer) -> None:
        raw(f"{tag('verified', 'plus')} {tag(found.size_in_words, 'plus' if found.minimum else 'amber')}", "wb-row")

    def _element(self, element: Element, suggestion: Suggestion | None) -> None:
        with box("wb-list wb-element"), box("wb-row"):
            text = fact_html(*element.fact) if isinstance(element.fact, Fact) else html(str(element.fact), 400)
            mark = sign(element.sign == "+") if suggestion is None else tag(element.undoing)
            raw(f'{mark}<span class="fact">{text}</span>', "wb-row")
            if suggestion is not None:
                button("Keep it: ask again", lambda: self._reject(str(element)), "quiet", "small", mark="reject")

    async def _reject(self, element: str) -> None:
        self._rejected.append(element)
        self._show_rejected()
        self._window.note(self._address())
        await self._suggest()

    def _show_rejected(self) -> None:
        self._kept.clear()
        with self._kept:
            for element in list(self._rejected):
                with box("wb-row"):
                    raw(f'{tag("kept")} <span class="mono">{html(element, 200)}</span>')
                    button("Allow again", partial(self._allow, element), "quiet", "small")

    def _allow(self, element: str) -> None:
        self._rejected.remove(element)
        self._show_rejected()
        self._window.note(self._address())

    async def _apply(self, suggestion: Suggestion, place: ui.element) -> None:
        committing = self._window.ask(self._window.writing.commit, repairing(suggestion))
        done = await self._window.attempt(committing, place)
        if done is None:
            return
        self._rejected.clear()
        self._answer.clear()
        self._change(Faults())
        self._show_rejected()
        with self._answer:
            show_commit(self._window, done)

    async def _proofs(self, found: Answer) -> None:
        if not found.proofs:
            return
        raw("The proofs behind it", tag="h3")
        for proof in found.proofs[:5]:
            await ProofTree(self._window, 2).build(proof)


def _checked(text: str, side: Side, session: Session) -> str:
    """A fact as text, after checking that it is the fault it is said to be: an unwanted fact holds, a missing one does
    not."""
    relation, values = session.engine.fact(text)
    fact, is_there = Fact(relation, tuple(values)), tuple(values) in session[relation]
    if is_there == (side == "wrong"):
        return str(fact)
    raise error(
        "E0953", told=f"{fact} holds: it is not missing" if is_there else f"{fact} does not hold: it cannot be wrong"
    )


def _epochs(found: Answer) -> str:
    first, last = found.epochs
    return f"epoch {last}" if last == first + 1 else f"epochs {first + 1} to {last}"
