"""The page Program: its text, findings while typing, and what a change of rules would change before it is one."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

from elastalog.analysis.findings import counted
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.statistics import Statistics
from elastalog.program import Program
from elastalog.web.answers import Committed
from elastalog.web.pages.address import Address
from elastalog.web.pages.changes import changes_html
from elastalog.web.pages.controls import box, button, card, heading, raw, select
from elastalog.web.pages.editor import Editor
from elastalog.web.pages.highlight import hints_of, marks_of
from elastalog.web.pages.markup import faults_html, seconds_html, told
from elastalog.web.pages.pasted import read_pasted
from elastalog.web.pages.undoing import undo
from elastalog.web.pages.window import Window

_HEADERS: Final = {"": "header: found out", "yes": "first line: names of columns", "no": "first line: a fact"}
_IS_HEADER: Final = {"": None, "yes": True, "no": False}


async def show(window: Window, address: Address) -> None:
    """Builds the page."""
    service = window.bench.service
    program = await window.ask(service.reading.program, window.epoch)
    statistics = await window.ask(service.reading.statistics, window.epoch)
    heading("Program", "Write rules and paste facts. Preview shows what would come and go; Commit makes it an epoch.")
    with box("wb-columns wb-wide-left"):
        page = _Program(window, program, statistics, address.number("line", 1))
        await page.build()
    window.follow(page.committed)


class _Program:
    """The page while it is shown."""

    def __init__(self, window: Window, program: Program, statistics: Statistics, line: int | None) -> None:
        self._window = window
        self._text = program.tree.source.text
        self._notes = _notes(program, statistics)
        self._held = _held(statistics)
        self._is_begun = bool(program.checked.relations)
        self._line = line
        self._name = program.tree.source.name

    async def build(self) -> None:
        with box("wb-stack"), card(self._name.rpartition("/")[2], is_padded=False) as header:
            if self._window.can_change:
                with header, box("wb-row"):
                    button("Reset", self._reset, "quiet")
                    button("Preview", self._preview).props('data-action="preview"')
                    button("Commit", self._commit, "primary").props('data-action="commit"')
            keys = (("Mod-Enter", self._preview), ("Mod-s", self._commit)) if self._window.can_change else ()
            self._editor = Editor(self._text, self._look, is_open=self._window.can_change, keys=keys)
        with box("wb-stack"):
            with card("Findings"):
                self._findings = raw("", "wb-findings").props('aria-live="polite"')
            if not self._is_begun:
                self._paste_card()
            with card("What would change", "before it is committed"):
                self._result = box("wb-stack")
                with self._result:
                    raw(
                        "Change a rule and press Preview, or <kbd>Ctrl</kbd> <kbd>Enter</kbd> in the text.",
                        "wb-note",
                        tag="p",
                    )
            if self._is_begun:
                self._paste_card()
            self._news = box()
        await self._editor.look()
        if self._line is not None:
            self._editor.element.reveal_line(self._line)

    async def _look(self, text: str) -> tuple[list[dict[str, Any]], dict[int, str]]:
        found = await self._window.ask(self._window.bench.service.reading.check_program, text)
        # What holds facts here may have them from an update, of which the text knows nothing.
        findings = tuple(each for each in found if each.code != "E0223" or not self._held & {*each.message.split("`")})
        self._findings.content = _summary(findings)
        line = self._line if text == self._text else None
        return marks_of(text, findings, line), hints_of(findings, self._notes if text == self._text else {})

    async def _reset(self) -> None:
        await self._editor.show(self._text)
        self._result.clear()

    async def _preview(self) -> None:
        service = self._window.bench.service

        async def ask() -> Changes:
            return await self._window.ask(service.writing.preview_program, self._editor.text)

        changes = await self._window.attempt(ask, self._result)
        if changes is not None:
            with self._result:
                raw(f"<p>It would change <b>{counted(changes.impact, 'fact')}</b>.</p>" if changes.impact else "")
                raw(changes_html(self._window, changes, nothing="No fact would come or go."))

    async def _commit(self) -> None:
        service = self._window.bench.service

        async def ask() -> Committed:
            return await self._window.ask(service.writing.become, self._editor.text, source="workbench")

        done = await self._window.attempt(ask, self._result)
        if done is None:
            return
        self._text = self._editor.text
        with self._result:
            show_commit(self._window, done)

    # --- facts that are pasted -------------------------------------------------------------------------------------

    def _paste_card(self) -> None:
        if self._window.can_change:
            with card("Paste facts", "CSV or JSON"):
                self._paste_form()

    def _paste_form(self) -> None:
        self._relation = ui.input(label="relation").props("outlined dense spellcheck=false autocomplete=off")
        self._relation.classes("wb-input")
        self._facts = ui.textarea(placeholder="caller,callee\nweb,cart\ncart,prices").props("outlined dense rows=6")
        self._facts.props["aria-label"] = "facts"
        self._facts.classes("wb-input mono")
        self._header = select("", _HEADERS, lambda _: None, label="header")
        self._pasted = box("wb-stack")
        with box("wb-row"):
            button("Add facts, as a new epoch", self._paste).props('data-action="paste"')

    async def _paste(self) -> None:
        """Adds what was pasted to a relation, which is declared if the program has none of that name."""
        service = self._window.bench.service
        name = (self._relation.value or "").strip()

        async def ask() -> Committed:
            if not name:
                told = Diagnostic("E0955", "no name for the relation", help="write one above the facts, as in `calls`")
                raise ElastalogError([told])
            program = await self._window.ask(service.reading.program, None)
            pasted = await self._window.ask(read_pasted, self._facts.value or "", _IS_HEADER[self._header.value])
            added = "" if name in program.checked.relations else pasted.declaration(name)
            rows = {name: list(pasted.rows)}
            return await self._window.ask(service.writing.apply, rows, None, added=added, source="workbench")

        done = await self._window.attempt(ask, self._pasted)
        if done is not None:
            self._facts.value = ""
            with self._pasted:
                show_commit(self._window, done)

    async def committed(self) -> None:
        """Somebody has committed something: a text that nobody is changing here follows the program."""
        service = self._window.bench.service
        program = await self._window.ask(service.reading.program, None)
        text = program.tree.source.text
        statistics = await self._window.ask(service.reading.statistics, None)
        self._held = _held(statistics)
        if text == self._text:
            await self._editor.look()
            return
        is_untouched = self._editor.text == self._text
        self._text, self._notes = text, _notes(program, statistics)
        self._news.clear()
        if is_untouched or self._editor.text == text:
            await self._editor.show(text)
            return
        with self._news:
            raw(told("The program has been changed by somebody else since. Reset shows it as it is now.", "warning"))


def show_commit(window: Window, done: Committed) -> None:
    """What an epoch did, and a way to undo it."""
    if done.record.is_unchanged:
        raw(told("Nothing to do: everything is already so, and there is no new epoch."))
        return
    record = done.record
    what = counted(record.impact, "fact")
    raw(
        told(f"<b>Epoch {done.epoch}</b> is committed: {what} changed in {seconds_html(record.seconds)}.", "fine"),
        "wb-committed",
    )
    place = box()

    async def take_back() -> None:
        back = await window.attempt(lambda: window.ask(undo, window.bench.service, done), place)
        if back is not None:
            taken.set_visibility(False)
            with place:
                raw(told(f"Undone, as <b>epoch {back.epoch}</b>.", "fine"))

    with box("wb-row"):
        taken = button("Undo, as a new epoch", take_back)
        taken.props["data-action"] = "undo"
    raw(changes_html(window, done.changes, nothing="No fact came or went."))


def _summary(findings: tuple[Diagnostic, ...]) -> str:
    if not findings:
        return '<div class="wb-note">None: the program is fine.</div>'
    return faults_html(sorted(findings, key=lambda found: found.severity != "error"))


def _held(statistics: Statistics) -> frozenset[str]:
    """The relations that hold facts."""
    return frozenset(relation.name for relation in statistics.relations if relation.facts)


def _notes(program: Program, statistics: Statistics) -> dict[int, str]:
    """What is known of a line: of a declaration its columns and facts, of a rule what it has derived."""
    source = program.tree.source
    sizes = {relation.name: relation for relation in statistics.relations}
    costs = {rule.number: rule for rule in statistics.rules if rule.number is not None}
    notes: dict[int, list[str]] = {}
    for name, relation in program.checked.relations.items():
        columns = ", ".join(f"{attribute.name}: {attribute.written_type}" for attribute in relation.attributes)
        if name in sizes:
            notes.setdefault(source.locate(relation.span.start)[0], []).append(
                f"{name}({columns})\n{counted(sizes[name].facts, 'fact')}"
            )
    for rule in program.checked.rules:
        cost = costs.get(rule.number)
        if cost is not None and rule.line:
            known = f"rule {rule.number_in_relation} of {rule.head.relation}: {counted(cost.derivations, 'derivation')}"
            notes.setdefault(rule.line, []).append(f"{known} in the last full evaluation")
    return {line: "\n\n".join(texts) for line, texts in notes.items()}
