"""The page Program: the text with findings while typing, previews of changes to rules, and pasted facts, as lines of
values or JSON."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicegui import ui

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.changes import Changes
from elastalog.program import Program
from elastalog.relations.schema import Schema, column_order, goes_by_name
from elastalog.session.questions import Statistics
from elastalog.syntax.keywords import RESERVED
from elastalog.syntax.tree import written_type
from elastalog.web.calls import asks, commits
from elastalog.web.pages.editor import Editor, hints_of, marks_of
from elastalog.web.pages.markup import Address, faults_html, line_of, seconds_html, told
from elastalog.web.pages.tables import changes_html
from elastalog.web.pages.window import FIELD, Window, box, button, card, heading, raw, select
from elastalog.web.reading import Committed
from elastalog.web.writing import Edit, becoming, edits, undoing

_HEADERS: Final = {"": "header: detected", "yes": "first line: names of columns", "no": "first line: a fact"}
_IS_HEADER: Final = {"": None, "yes": True, "no": False}


async def show(window: Window, address: Address) -> None:
    """Builds the page."""
    program = await window.look(lambda session: session.program)
    statistics = await window.ask(window.reading.statistics, window.epoch)
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
        self._tried: str | None = None
        self._name = program.tree.source.name

    async def build(self) -> None:
        with box("wb-stack"), card(self._name.rpartition("/")[2], is_padded=False) as header:
            if self._window.can_change:
                with header, box("wb-row"):
                    button("Reset", self._reset, "quiet")
                    button("Preview", self._preview, mark="preview")
                    button("Commit", self._commit, "primary", mark="commit")
            keys = (("Mod-Enter", self._preview), ("Mod-s", self._commit)) if self._window.can_change else ()
            self._editor = Editor(self._text, self._look, is_open=self._window.can_change, keys=keys)
        with box("wb-stack"):
            with card("Findings"):
                self._findings = raw("", "wb-findings").props('aria-live="polite"')
            if not self._is_begun:
                self._paste_card()
            with card("What would change", "before it is committed"):
                self._result = box("wb-stack")
                self._clear_result()
            if self._is_begun:
                self._paste_card()
            self._news = box()
        await self._editor.look()
        if self._line is not None:
            self._editor.element.reveal_line(self._line)

    async def _look(self, text: str) -> tuple[list[dict[str, Any]], dict[int, str]]:
        found = await self._window.ask(self._window.reading.check_program, text)
        # What holds facts here may have them from an update, of which the text knows nothing.
        findings = tuple(each for each in found if each.code != "E0223" or not self._held & {*each.message.split("`")})
        self._findings.content = _summary(findings)
        if self._tried not in (None, text):
            self._clear_result()
        line = self._line if text == self._text else None
        return marks_of(text, findings, line), hints_of(findings, self._notes if text == self._text else {})

    async def _reset(self) -> None:
        await self._editor.show(self._text)
        self._clear_result()

    def _clear_result(self) -> None:
        """What was said of a text is not true of another."""
        self._tried = None
        self._result.clear()
        with self._result:
            shown = "Change a rule and press Preview, or <kbd>Ctrl</kbd> <kbd>Enter</kbd> in the text."
            raw(shown, "wb-note", tag="p")

    async def _preview(self) -> None:
        text = self._tried = self._editor.text
        await preview(self._window, lambda: becoming(text), self._result)

    async def _commit(self) -> None:
        text = self._tried = self._editor.text
        if await commit(self._window, lambda: becoming(text), self._result):
            self._text, self._tried = text, None

    # --- facts that are pasted -------------------------------------------------------------------------------------

    def _paste_card(self) -> None:
        if self._window.can_change:
            with card("Paste facts", "CSV or JSON"):
                self._paste_form()

    def _paste_form(self) -> None:
        self._relation = ui.input(label="relation").props(FIELD)
        self._relation.classes("wb-input")
        self._facts = ui.textarea(placeholder="caller,callee\nweb,cart\ncart,prices").props("outlined dense rows=6")
        self._facts.props["aria-label"] = "facts"
        self._facts.classes("wb-input mono")
        self._header = select("", _HEADERS, lambda _: None, label="header")
        self._pasted = box("wb-stack")
        with box("wb-row"):
            button("Add facts, as a new epoch", self._paste, mark="paste")

    async def _paste(self) -> None:
        """Adds pasted facts to a relation, which is declared if the program has none of that name."""
        reading, name = self._window.reading, (self._relation.value or "").strip()
        text, has_header = self._facts.value or "", _IS_HEADER[self._header.value]

        def edit() -> Edit:
            if not name:
                raise error("E0955")
            schema = reading.look(lambda session: session.schemas.get(name))
            pasted = read_pasted(text, has_header, () if schema is None else schema.names)
            if schema is None:
                return edits({name: list(pasted.rows)}, added=pasted.declaration(name))
            return edits({name: pasted.in_order_of(schema)})

        if await commit(self._window, edit, self._pasted):
            self._facts.value = self._header.value = ""

    async def committed(self) -> None:
        """Called after a commit: the text follows the program unless the user has edited it here."""
        program = await self._window.look(lambda session: session.program)
        text = program.tree.source.text
        statistics = await self._window.ask(self._window.reading.statistics, None)
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
            raw(told("Someone else has changed the program meanwhile. Reset shows the current version.", "warning"))


async def preview(
    window: Window, edit: Callable[[], Edit], place: ui.element, more: Callable[[Edit], str] = lambda _: ""
) -> None:
    """Shows what an edit would change, and `more`. The edit is made when it is needed."""

    @asks
    def ask() -> tuple[Changes, str]:
        made = edit()
        return window.writing.preview(made), more(made)

    found = await window.attempt(window.ask(ask), place)
    if found is not None:
        changes, further = found
        with place:
            raw(f"<p>It would change <b>{counted(changes.impact, 'fact')}</b>.</p>" if changes.impact else "")
            raw(changes_html(window, changes, nothing="No fact would come or go."))
            raw(further)


async def commit(window: Window, edit: Callable[[], Edit], place: ui.element) -> Committed | None:
    """Commits an edit as the next epoch, and shows the result."""
    making = commits(lambda: window.writing.commit(edit(), source="workbench"))
    done = await window.attempt(window.ask(making), place)
    if done is not None:
        with place:
            show_commit(window, done)
    return done


def show_commit(window: Window, done: Committed) -> None:
    """What an epoch did, and a way to undo it."""
    if done.record.is_unchanged:
        raw(told("Nothing to do: everything is already as requested, so there is no new epoch."))
        return
    record = done.record
    what = counted(record.impact, "fact")
    raw(
        told(f"<b>Epoch {done.epoch}</b> is committed: {what} changed in {seconds_html(record.seconds)}.", "fine"),
        "wb-committed",
    )
    place = box()

    async def take_back() -> None:
        back = await window.attempt(window.ask(window.writing.commit, undoing(done.epoch)), place)
        if back is not None:
            taken.set_visibility(False)
            with place:
                raw(told(f"Undone, as <b>epoch {back.epoch}</b>.", "fine"))

    with box("wb-row"):
        taken = button("Undo, as a new epoch", take_back, mark="undo")
    raw(changes_html(window, done.changes, nothing="No fact came or went."))


def _summary(findings: tuple[Diagnostic, ...]) -> str:
    if not findings:
        return '<div class="wb-note">None: the program is fine.</div>'
    return faults_html(sorted(findings, key=lambda found: found.severity != "error"))


def _held(statistics: Statistics) -> frozenset[str]:
    """The relations that have facts."""
    return frozenset(relation.name for relation in statistics.relations if relation.facts)


def _notes(program: Program, statistics: Statistics) -> dict[int, str]:
    """What is known of a line: columns and facts of a declaration, derived facts of a rule."""
    source = program.tree.source
    sizes = {relation.name: relation for relation in statistics.relations}
    costs = {rule.number: rule for rule in statistics.rules if rule.number is not None}
    notes: dict[int, list[str]] = {}
    for name, relation in program.checked.relations.items():
        columns = ", ".join(f"{attribute.name}: {written_type(attribute)}" for attribute in relation.attributes)
        if name in sizes:
            notes.setdefault(source.locate(relation.span.start)[0], []).append(
                f"{name}({columns})\n{counted(sizes[name].facts, 'fact')}"
            )
    for rule in program.checked.rules:
        cost = costs.get(rule.number)
        if cost is not None and (line := line_of(rule)):
            known = f"rule {rule.number_in_relation} of {rule.head.relation}: {counted(cost.derivations, 'derivation')}"
            notes.setdefault(line, []).append(f"{known} in the last full evaluation")
    return {line: "\n\n".join(texts) for line, texts in notes.items()}


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DELIMITERS = "\t,;|"
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Pasted:
    """Facts of a relation, the names of their columns, which have come with them or are made up, and the type that
    fits all values of each column."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    has_names: bool

    def declaration(self, relation: str) -> str:
        """The declaration of their relation."""
        columns = ", ".join(f"{name}: {kind}" for name, kind in zip(self.columns, self.types, strict=True))
        return f".decl {relation}({columns})"

    def in_order_of(self, schema: Schema) -> list[tuple[Any, ...]]:
        """The facts with their values as a relation has its columns, which names decide."""
        if not self.has_names:
            return list(self.rows)
        order = column_order(schema, self.columns, what="what was pasted")
        return [tuple([row[place] for place in order]) for row in self.rows]


def read_pasted(text: str, has_header: bool | None = None, declared: Sequence[str] = ()) -> Pasted:
    """The facts in a text. `has_header`: whether the first line names the columns; None to find out from the text and
    the names of the columns `declared`, if the relation is. Raises ElastalogError, also where that is not clear."""
    names, rows = _json(text) if text.lstrip()[:1] in ("[", "{") else _lines(text, has_header, declared)
    if not rows:
        raise _unreadable("there are no facts in it")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        odd = next(number for number, row in enumerate(rows, 1) if len(row) != len(rows[0]))
        told = f"fact {odd} has {len(rows[odd - 1])} values, and the first has {len(rows[0])}"
        raise _unreadable(told)
    columns = tuple(_column(name, i) for i, name in enumerate(names or [""] * len(rows[0])))
    made = [_typed([row[i] for row in rows]) for i in range(len(columns))]
    values = tuple(zip(*(column for _, column in made), strict=True))
    return Pasted(columns, tuple(kind for kind, _ in made), values, bool(names))


def _lines(text: str, has_header: bool | None, declared: Sequence[str]) -> tuple[Sequence[str], list[Sequence[Any]]]:
    lines = [line for line in text.splitlines() if line.strip()]

    def often(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in lines[:50]]
        return min(counts, default=0), sum(counts)

    delimiter = max(_DELIMITERS, key=often)
    rows: list[Sequence[Any]] = [[value.strip() for value in row] for row in csv.reader(lines, delimiter=delimiter)]
    if has_header is None:
        has_header = len(rows) > 1 and _is_header(rows, declared)
    return (rows[0], rows[1:]) if has_header and rows else ((), rows)


def _is_header(rows: list[Sequence[Any]], declared: Sequence[str]) -> bool:
    """Whether a first line looks like a header: all its values are names, and none are numbers where other lines have
    numbers. Where all are texts, only names that are declared, or stand below too, tell."""
    first, others = rows[0], rows[1:]
    if not all(_NAME.fullmatch(name) for name in first) or len(set(first)) < len(first):
        return False
    kinds = [_typed([row[i] for row in others if i < len(row)])[0] for i in range(len(first))]
    if any(kind != "symbol" for kind in kinds):
        return True
    if declared or not {value for row in others for value in row}.isdisjoint(first):
        return goes_by_name(declared, first)
    raise error("E0956.header", line=", ".join(first))


def _json(text: str) -> tuple[Sequence[str], list[Sequence[Any]]]:
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise _unreadable(f"it is not JSON: {error}") from None
    facts = found if isinstance(found, list) else [found]
    if all(isinstance(fact, dict) for fact in facts):
        names = list(dict.fromkeys(name for fact in facts for name in fact))
        for number, fact in enumerate(facts, 1):
            if len(fact) < len(names):
                lacking = next(name for name in names if name not in fact)
                raise _unreadable(f"fact {number} has no `{lacking}`")
        return names, [[fact[name] for name in names] for fact in facts]
    return (), [fact if isinstance(fact, list) else [fact] for fact in facts]


def _column(name: str, number: int) -> str:
    plain = re.sub(r"\W+", "_", name.strip(), flags=re.ASCII).strip("_")
    if not plain or not _NAME.fullmatch(plain):
        plain = f"c{number + 1}" if not plain else f"c_{plain}"
    return f"{plain}_" if plain in RESERVED else plain


def _typed(values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The narrowest type that fits all values of a column, and the values converted to it."""
    kinds: tuple[tuple[str, Callable[[Any], Any]], ...] = (("number", _whole), ("float", _real))
    for kind, convert in kinds:
        try:
            return kind, [convert(value) for value in values]
        except ValueError:
            continue
    return "symbol", [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]


def _whole(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d*)", value):  # 007 is a name
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        raise ValueError
    return value


def _real(value: Any) -> float:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return float(value)


def _unreadable(why: str) -> ElastalogError:
    return error("E0956", why=why)
