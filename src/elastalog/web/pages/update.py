"""The page Update: changes of facts and rules are staged as text, one a line, previewed, committed as one epoch, and
undone by another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nicegui import events, ui

from elastalog.analysis.listing import show_value
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, finding
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.costs import Forecast
from elastalog.pipeline.files.diff import Diff, parse_diff
from elastalog.program import Program, rule_texts, shown_rule
from elastalog.program.rule_change import RuleEdits, change_rules
from elastalog.relations.schema import Schema, schemas_of
from elastalog.web.pages.editor import Editor
from elastalog.web.pages.markup import Address, cell, faults_html, html, sign, table, tag, told
from elastalog.web.pages.program import commit, preview
from elastalog.web.pages.tables import NUMBERS
from elastalog.web.pages.window import FIELD, Window, box, button, card, heading, raw, select
from elastalog.web.rules import refuse_in_rules
from elastalog.web.writing import Edit, edits

LONGEST = 1_500
"""Characters of an update in an address."""
LARGEST_FILE = 16 << 20
"""Bytes of a file that can be staged; `elastalog apply` and the HTTP interface take larger ones."""
MOST_LISTED = 50
"""Staged changes that are listed individually."""


async def show(window: Window, address: Address) -> None:
    """Builds the page."""
    heading("Update", "Stage what to insert and delete, one change per line; see what follows; commit it as one epoch.")
    program = await window.look(lambda session: session.program)
    if not window.can_change:
        raw(told("Nothing can be changed here: this is an earlier epoch, or you have read-only access."))
        return
    with box("wb-columns wb-wide-left"):
        page = _Update(window, program)
        await page.build(_staged(address))
    window.follow(page.committed)


def _staged(address: Address) -> str:
    """The update in an address: its text, and individual facts."""
    lines = [f"+{fact.rstrip('.')}." for fact in address.all("insert")] + [
        f"-{fact.rstrip('.')}." for fact in address.all("delete")
    ]
    return "\n".join([part for part in (address.get("text").rstrip(), *lines) if part])


class _Update:
    """The page while it is shown."""

    def __init__(self, window: Window, program: Program) -> None:
        self._window = window
        self._program = program
        self._schemas = schemas_of(program.checked)
        self._relation = next(iter(self._schemas), "")
        self._answered = ""  # the text that the result is about

    async def committed(self) -> None:
        """Called after a commit, which may have changed the rules."""
        program = await self._window.look(lambda session: session.program)
        if program is not self._program:
            self._program, self._schemas = program, schemas_of(program.checked)
            await self._editor.look()

    async def build(self, text: str) -> None:
        with box("wb-stack"):
            with card("Staged", is_padded=False) as header:
                with header, box("wb-row"):
                    button("Clear", self._clear, "quiet")
                    button("Preview", self._preview, mark="preview")
                    button("Commit", self._commit, "primary", mark="commit")
                self._editor = Editor(text, self._look, keys=(("Mod-Enter", self._preview), ("Mod-s", self._commit)))
                self._findings = raw("", "wb-body").props('aria-live="polite"')
                self._lines = box("wb-body wb-flush")
            with card("What would change"):
                self._result = box("wb-stack")
                with self._result:
                    shown = "Press Preview, or <kbd>Ctrl</kbd> <kbd>Enter</kbd> in the text; this commits nothing."
                    raw(shown, "wb-note", tag="p")
        with box("wb-stack"):
            with card("Add a fact"):
                self._form()
            with card("Add a rule, or remove one"):
                self._rule_form()
            with card("Add a file", "a diff file"):
                ui.upload(
                    on_upload=self._file,
                    auto_upload=True,
                    max_file_size=LARGEST_FILE,
                    label="choose a file, or drop one here",
                ).props("flat bordered").classes("wb-upload")
        await self._editor.look()

    # --- staging ---------------------------------------------------------------------------------------------------

    def _form(self) -> None:
        select(self._relation, {name: name for name in self._schemas}, self._choose, label="relation")
        self._fields = box("wb-stack wb-tight")
        self._wrong = box()
        with box("wb-row"):
            button("+ Insert", lambda: self._add("+"), mark="add")
            button("− Delete", lambda: self._add("-"), mark="remove")
        self._choose(self._relation)

    def _choose(self, relation: str) -> None:
        self._relation = relation
        self._fields.clear()
        self._values: list[ui.input] = []
        with self._fields:
            for column in self._schemas[relation].columns if relation in self._schemas else ():
                made = ui.input(label=f"{column.name}: {column.type_name}").props(FIELD)
                self._values.append(made.classes("wb-input"))

    async def _add(self, way: str) -> None:
        schema = self._schemas[self._relation]
        blank = [column.name for made, column in zip(self._values, schema.columns, strict=True) if not made.value]
        if blank:
            self._wrong.clear()
            with self._wrong:
                raw(faults_html([finding("E0955.add", n=", ".join(f"`{n}`" for n in blank))]))
            return
        written = [
            _as_written(made.value or "", column.type_name)
            for made, column in zip(self._values, schema.columns, strict=True)
        ]
        line = f"{way}{self._relation}({', '.join(written)})."
        if await self._is_staged(line, self._wrong):
            for made in self._values:
                made.value = ""

    def _rule_form(self) -> None:
        written = ui.textarea(placeholder="path(x, y) :- edge(x, y).").props("outlined dense autogrow spellcheck=false")
        written.props["aria-label"] = "a rule"
        written.classes("wb-input mono")
        texts = [shown_rule(text) for text in rule_texts(self._program)]
        names = {"": "a rule to remove", **{text: text if len(text) <= 80 else f"{text[:79]}…" for text in texts}}
        wrong = box()

        async def add() -> None:
            rules = " ".join((written.value or "").split())
            if rules and await self._is_staged(f"+{RULE}{rules}", wrong):
                written.value = ""

        async def remove(text: str) -> None:
            if text:
                await self._is_staged(f"-{RULE}{text}", wrong)
                chosen.value = ""

        with box("wb-row"):
            button("+ Add", add, mark="add-rule")
        chosen = select("", names, remove, label="a rule to remove")

    async def _is_staged(self, line: str, wrong: ui.element) -> bool:
        """Stages a change unless it is invalid by itself; then the error is shown."""
        staged = await self._window.attempt(self._window.ask(staged_in, line, self._program), wrong)
        if staged is not None:
            await self._append(line)
        return staged is not None

    async def _file(self, event: events.UploadEventArguments) -> None:
        try:
            text = (await event.file.read()).decode()
        except UnicodeDecodeError:
            self._findings.content = faults_html([finding("E0951", name=event.file.name)])
            return
        await self._append(text)

    async def _append(self, text: str) -> None:
        before = self._editor.text.rstrip()
        await self._editor.show(f"{before}\n{text.rstrip()}" if before else text.rstrip())

    async def _clear(self) -> None:
        await self._editor.show("")
        self._result.clear()

    def _list(self, text: str) -> None:
        """The staged changes, each of which can be removed."""
        self._lines.clear()
        lines = lines_of(text)
        self._lines.set_visibility(bool(lines))
        with self._lines, box("wb-list wb-staged", tag="ul"):
            for number, line in lines[:MOST_LISTED]:
                with box(tag="li"):
                    mark = sign(line[0] == "+") if line[0] in "+-" else '<span class="wb-mark">?</span>'
                    raw(f'{mark}<span class="fact">{html(line.lstrip("+-").strip(), 300)}</span>', "wb-row")
                    with box("end"):
                        taken = partial(self._take_away, number, line)
                        button("Remove", taken, "quiet", "small").props(f'data-action="unstage" data-line="{number}"')
            if len(lines) > MOST_LISTED:
                raw(f"… {len(lines) - MOST_LISTED:,} more, in the text above", "wb-note", tag="li")

    async def _take_away(self, number: int, line: str) -> None:
        text = self._editor.text
        if (number, line) in lines_of(text):  # otherwise the text has changed meanwhile
            await self._editor.show(without_line(text, number))

    async def _look(self, text: str) -> tuple[list[dict[str, Any]], dict[int, str]]:
        is_short = len(text) <= LONGEST
        self._window.note(Address.of("/update", text=text if is_short else None))
        self._list(text)
        if text.strip() and text != self._answered:
            self._result.clear()  # it is about another text
        if not text.strip():
            self._findings.content = f'<div class="wb-note">Nothing is staged. {self._example()}</div>'
            return [], {}
        try:
            staged = await self._window.ask(staged_in, text, self._program)
        except ElastalogError as error:
            self._findings.content = faults_html(error.diagnostics)
            return _marks(text, _bad_lines(error.diagnostics)), {}
        came, went = (sum(table.num_rows for table in side.values()) for side in (staged.inserted, staged.deleted))
        facts = [(came, "to insert", "plus"), (went, "to delete", "minus")]
        parts = [(f"{number:,} {what}", look) for number, what, look in facts if number]
        rules = [(staged.added_rules, "to add", "plus"), (staged.removed_rules, "to remove", "minus")]
        parts += [(f"{counted(len(texts), 'rule')} {what}", look) for texts, what, look in rules if texts]
        self._findings.content = f'<div class="wb-row">{" ".join(tag(text, look) for text, look in parts)}</div>'
        return _marks(text, frozenset()), {}

    def _example(self) -> str:
        schema = self._schemas.get(self._relation)
        if schema is None:
            return ""
        values = ", ".join("1" if column.type_name in NUMBERS else '"a"' for column in schema.columns)
        fact = f"{html(schema.name)}({values})."
        rule = f"<code>+{RULE}head(x) :- body(x).</code>"
        return f"A line is <code>+{fact}</code> or <code>-{fact}</code>, or for rules {rule}, likewise with a minus."

    # --- asking and committing -------------------------------------------------------------------------------------

    def _edit(self) -> Callable[[], Edit]:
        """A function that makes the edit of the staged update, to be called where it may take time."""
        text = self._answered = self._editor.text

        def made() -> Edit:
            staged = staged_in(text, self._program)
            return edits(staged.inserted, staged.deleted, added=staged.added_rules, removed=staged.removed_rules)

        return made

    async def _preview(self) -> None:
        forecast = self._window.writing.forecast
        await preview(self._window, self._edit(), self._result, lambda edit: _forecasts(forecast(edit)))

    async def _commit(self) -> None:
        if await commit(self._window, self._edit(), self._result):
            await self._editor.show("")


def _as_written(text: str, type_name: str) -> str:
    """A value from an input field, as it is written in a line; texts need no quotes in the field."""
    is_quoted = len(text) >= 2 and text[0] == text[-1] == '"'
    return text if type_name != "symbol" or is_quoted else show_value(text)


def _bad_lines(findings: tuple[Diagnostic, ...]) -> frozenset[int]:
    places = ((finding.location or "").rpartition(":")[2] for finding in findings)
    return frozenset(int(place) for place in places if place.isdigit())


def _marks(text: str, bad: frozenset[int]) -> list[dict[str, Any]]:
    """Marks that colour lines by sign, and those that are not changes."""
    marks: list[dict[str, Any]] = []
    for number, line in enumerate(text.split("\n")[:2_000], 1):
        look = "hl-bad" if number in bad else {"+": "hl-plus", "-": "hl-minus"}.get(line.strip()[:1])
        if look is not None:
            marks.append({"kind": "line", "line": number, "class": look})
    return marks


def _forecasts(forecasts: tuple[Forecast, ...]) -> str:
    if not forecasts:
        return ""
    rows = []
    for forecast in forecasts:
        how = tag(forecast.how, "accent" if forecast.how == "update" else "amber")
        names = html(", ".join(forecast.relations), 120)
        rows.append(f"<tr>{cell(names, 'mono')}{cell(how)}{cell(html(forecast.reason), 'wb-note')}</tr>")
    return f"<h3>Forecast of the elastic choice</h3>{table('', rows)}"


FILE = "update"
"""The name of the text in diagnostics."""
RULE = "rule: "


def staged_in(text: str, program: Program) -> Diff:
    """The update in a text; rules are checked together with the present program. Raises ElastalogError."""

    def with_rules(added: tuple[str, ...]) -> Mapping[str, Schema]:
        refuse_in_rules(added)
        return schemas_of(change_rules(program, RuleEdits(added)).after.checked)

    diff = parse_diff(text, FILE, schemas_of(program.checked), with_rules)
    if diff.changes_rules:
        change_rules(program, RuleEdits(diff.added_rules, diff.removed_rules))
    return diff


def lines_of(text: str) -> list[tuple[int, str]]:
    """The non-empty lines of a text, with their numbers from 0."""
    lines = enumerate(line.strip() for line in text.split("\n"))
    return [(number, line) for number, line in lines if line and not line.startswith("//")]


def without_line(text: str, number: int) -> str:
    """The text without a line."""
    lines = text.split("\n")
    return "\n".join([*lines[:number], *lines[number + 1 :]])
