"""The language server: requests of an editor, answered by `editing` and translated into the protocol."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from elastalog import __version__
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Severity
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.complete import Proposal, Sort, complete
from elastalog.editing.hover import Entry, coloured, hover, outline
from elastalog.editing.references import definition, included_at, references, rename
from elastalog.editing.repairs import repairs
from elastalog.editing.scopes import Kind, Place, file_of, offset, position
from elastalog.editing.workspace import Workspace
from elastalog.program.preprocessing import Preprocessing
from elastalog.syntax.format import format_program

SEVERITIES: Final[dict[Severity, types.DiagnosticSeverity]] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
KINDS: Final[dict[Kind, tuple[types.SymbolKind, types.CompletionItemKind, types.SemanticTokenTypes]]] = {
    kind: (types.SymbolKind[symbol], types.CompletionItemKind[proposal], types.SemanticTokenTypes[colour])
    for kind, symbol, proposal, colour in (
        (Kind.RELATION, "Function", "Function", "Function"),
        (Kind.TYPE, "Struct", "Struct", "Type"),
        (Kind.COMPONENT, "Class", "Class", "Class"),
        (Kind.INSTANCE, "Object", "Module", "Namespace"),
        (Kind.FUNCTOR, "Method", "Method", "Method"),
        (Kind.BRANCH, "EnumMember", "EnumMember", "EnumMember"),
        (Kind.PARAMETER, "TypeParameter", "TypeParameter", "TypeParameter"),
        (Kind.VARIABLE, "Variable", "Variable", "Variable"),
    )
}
"""What the protocol calls a kind of name: as a symbol, as a completion, as a semantic token."""
PROPOSALS: Final[dict[Sort, types.CompletionItemKind]] = {
    **{kind: proposal for kind, (_, proposal, _) in KINDS.items()},
    "attribute": types.CompletionItemKind.Field,
    "keyword": types.CompletionItemKind.Keyword,
    "directive": types.CompletionItemKind.Keyword,
    "type": types.CompletionItemKind.Struct,
}
LEGEND: Final = types.SemanticTokensLegend([colour.value for _, _, colour in KINDS.values()], [])


def uri_of(file: str) -> str:
    return uris.from_fs_path(file) or Path(file).as_uri()


def range_of(source: Source, span: Span, encoding: str) -> types.Range:
    """The lines and columns of a span, in the encoding that the editor counts in."""
    start, end = position(source, span.start, encoding), position(source, span.end, encoding)
    return types.Range(types.Position(*start), types.Position(*end))


def location_of(place: Place, source_of: Callable[[str], Source], encoding: str) -> types.Location:
    return types.Location(uri_of(place.file), range_of(source_of(place.file), place.span, encoding))


def diagnostic_of(found: Diagnostic, encoding: str) -> types.Diagnostic:
    """A diagnostic; every label with a message becomes related information, in included files too."""
    ranges = types.Range(types.Position(0, 0), types.Position(0, 0))
    related = []
    is_first = True
    for label in sorted(found.labels, key=lambda label: not label.primary) if found.source is not None else ():
        assert found.source is not None
        origin = found.source.origin(label.span)
        where = range_of(origin.source, origin.span, encoding)
        if is_first and label.primary:
            ranges, is_first = where, False
        else:
            location = types.Location(uri_of(file_of(origin.source)), where)
            related.append(types.DiagnosticRelatedInformation(location, label.text or "see here"))
    lines = [
        found.message,
        *(f"note: {note}" for note in found.notes),
        *([f"help: {found.help}"] if found.help else []),
    ]
    return types.Diagnostic(
        ranges,
        "\n".join(lines),
        SEVERITIES[found.severity],
        found.code,
        source="elastalog",
        related_information=related,
    )


def item_of(proposal: Proposal, rank: int, takes_snippets: bool) -> types.CompletionItem:
    is_snippet = proposal.snippet is not None and takes_snippets
    return types.CompletionItem(
        proposal.text,
        kind=PROPOSALS[proposal.sort],
        detail=proposal.detail or None,
        sort_text=f"{rank:05}",
        insert_text=proposal.snippet if is_snippet else None,
        insert_text_format=types.InsertTextFormat.Snippet if is_snippet else None,
    )


def symbol_of(entry: Entry, source: Source, encoding: str) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        entry.name,
        KINDS[entry.kind][0],
        range_of(source, entry.span, encoding),
        range_of(source, entry.name_span, encoding),
        detail=entry.detail,
        children=[symbol_of(inner, source, encoding) for inner in entry.inner],
    )


def colours_of(names: Iterable[tuple[Place, Kind]], source: Source, encoding: str) -> types.SemanticTokens:
    """Five numbers for each name: lines and columns since the previous one, length, kind, no modifiers."""
    kinds = list(KINDS)
    data: list[int] = []
    last_line = last_column = 0
    for place, kind in names:
        line, column = position(source, place.span.start, encoding)
        end_line, end = position(source, place.span.end, encoding)
        if end_line != line:
            continue
        data += (line - last_line, column - last_column if line == last_line else column, end - column)
        data += (kinds.index(kind), 0)
        last_line, last_column = line, column
    return types.SemanticTokens(data)


PAUSE: Final = 0.2
"""Seconds without a key press after which a program is checked."""
LONGEST_COUNT: Final = 60.0
"""The most seconds that counting facts may take."""


class Protocol(LanguageServerProtocol):
    """Answers every request by its id, even one that cannot be parsed."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            self._refuse(data, error)
            raise

    def handle_message(self, message: Any) -> None:
        is_message = getattr(message, "jsonrpc", None) == self.VERSION
        if is_message and not (self._shutdown and getattr(message, "method", types.EXIT) != types.EXIT):
            super().handle_message(message)
            return
        for one in message if isinstance(message, list) else [message]:
            told = one if isinstance(one, dict) else {"id": getattr(one, "id", None), "method": ""}
            self._refuse(told, JsonRpcInvalidRequest("the server has been shut down" if is_message else None))

    def _refuse(self, request: dict[str, Any], error: JsonRpcException) -> None:
        if "method" in request and isinstance(request.get("id"), int | str):
            self._send_response(request["id"], error=error.to_response_error())


class Server(LanguageServer):
    """`facts`: the folder of the facts that are counted."""

    def __init__(self, options: Preprocessing, facts: str | None) -> None:
        kind = types.TextDocumentSyncKind.Full
        super().__init__("elastalog", __version__, text_document_sync_kind=kind, protocol_cls=Protocol)
        self.options = options
        self.facts = facts
        self.counts: dict[str, dict[str, int]] = {}
        self.programs = Workspace((), options)
        self.encoding = "utf-16"
        self.takes_snippets = False
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._published: dict[str, set[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, given: types.InitializeParams) -> None:
        """Notes what the editor announces about itself and its folders."""
        folders = [uris.to_fs_path(folder.uri) for folder in given.workspace_folders or ()]
        if not folders and given.root_uri:
            folders = [uris.to_fs_path(given.root_uri)]
        self.programs = Workspace([folder for folder in folders if folder], self.options)
        completion = given.capabilities.text_document and given.capabilities.text_document.completion
        item = completion.completion_item if completion else None
        self.takes_snippets = bool(item and item.snippet_support)

    # --- places ----------------------------------------------------------------------------------------------------

    def place(self, document: Any, position: types.Position) -> tuple[str, int, Source]:
        """The file, the offset in it, and its text."""
        file = file_at(document.uri)
        source = self.programs.source(file)
        return file, offset(source, position.line, position.character, self.encoding), source

    def locations(self, places: Sequence[Any]) -> list[types.Location]:
        return [location_of(place, self.programs.source, self.encoding) for place in places]

    # --- diagnostics -----------------------------------------------------------------------------------------------

    def check_soon(self, file: str, pause: float = PAUSE) -> None:
        """Checks the programs that include a file once editing has paused."""
        earlier = self._waiting.get(file)
        if earlier is not None:
            earlier.cancel()
        self._waiting[file] = asyncio.ensure_future(self._check(file, pause))

    async def _check(self, file: str, pause: float) -> None:
        await asyncio.sleep(pause)
        findings = self.programs.findings(file)
        # A file that is not included any more keeps no findings.
        for each in {*findings, *self._published.get(file, ())}:
            found = findings.get(each, ())
            shown = [diagnostic_of(diagnostic, self.encoding) for _, diagnostic in found]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri_of(each), shown))
        self._published[file] = set(findings)

    # --- numbers of facts ------------------------------------------------------------------------------------------

    def count_soon(self, file: str) -> None:
        """Evaluates the program that includes a file, as it is on disk, in the background."""
        if self.facts is not None:
            task = asyncio.ensure_future(self._count(file, self.facts))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _count(self, file: str, facts: str) -> None:
        root = self.programs.reading(file).file
        counted = await asyncio.get_running_loop().run_in_executor(None, count_facts, root, facts, self.options)
        if counted is not None:
            self.counts[root] = counted


def count_facts(program: str, facts: str, options: Preprocessing) -> dict[str, int] | None:
    """The number of facts of every relation; None where the program or its facts have errors, or take too long."""
    import elastalog
    from elastalog.program import Program

    try:
        loaded = Program.load(program, include=options.include, macros=dict(options.macros), preprocess=options.is_on)
        with elastalog.open(loaded, facts, limits=elastalog.Limits(time=LONGEST_COUNT)) as db:
            return {name: len(db[name]) for name in loaded.checked.relations}
    except ElastalogError:
        return None


def file_at(uri: str) -> str:
    """The path of a document; a document that is not a file is named by its URI."""
    try:
        return uris.to_fs_path(uri) or uri
    except ValueError:  # it is no address
        return uri


def serve(options: Preprocessing, facts: str | None) -> None:
    """Serves standard input and output until the editor disconnects."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    # The server closes its output when the editor says `exit`; that of the process is still flushed.
    server(options, facts).start_io(stdout=os.fdopen(os.dup(sys.stdout.fileno()), "wb"))


def server(options: Preprocessing, facts: str | None) -> Server:
    """A server with its features."""
    made = Server(options, facts)
    for name, work in _FEATURES.items():
        given, feature = work if isinstance(work, tuple) else (None, work)
        made.feature(name, given)(feature)
    return made


# --- documents -----------------------------------------------------------------------------------------------------


def _initialize(ls: Server, given: types.InitializeParams) -> None:
    ls.begin(given)


def _initialized(ls: Server, given: types.InitializedParams) -> None:
    ls.encoding = str(getattr(ls.workspace.position_encoding, "value", ls.workspace.position_encoding) or "utf-16")


def _opened(ls: Server, given: types.DidOpenTextDocumentParams) -> None:
    file = file_at(given.text_document.uri)
    ls.programs.write(file, given.text_document.text)
    ls.check_soon(file, 0)
    ls.count_soon(file)


def _changed(ls: Server, given: types.DidChangeTextDocumentParams) -> None:
    file = file_at(given.text_document.uri)
    for change in given.content_changes[-1:]:
        ls.programs.write(file, change.text)
    ls.check_soon(file)


def _saved(ls: Server, given: types.DidSaveTextDocumentParams) -> None:
    ls.programs.refresh()
    file = file_at(given.text_document.uri)
    ls.check_soon(file, 0)
    ls.count_soon(file)


def _closed(ls: Server, given: types.DidCloseTextDocumentParams) -> None:
    ls.programs.close(file_at(given.text_document.uri))


def _files_changed(ls: Server, given: types.DidChangeWatchedFilesParams) -> None:
    ls.programs.refresh()
    for file in ls.programs.files:
        ls.check_soon(file)


# --- questions -----------------------------------------------------------------------------------------------------


def _hover(ls: Server, given: types.HoverParams) -> types.Hover | None:
    file, at, _ = ls.place(given.text_document, given.position)
    reading = ls.programs.reading(file)
    text = hover(reading, file, at, ls.counts.get(reading.file))
    return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))


def _definition(ls: Server, given: types.DefinitionParams) -> list[types.Location]:
    file, at, source = ls.place(given.text_document, given.position)
    found = included_at(source, at, ls.options.include) or definition(ls.programs.reading(file), file, at)
    return ls.locations([found] if found is not None else [])


def _references(ls: Server, given: types.ReferenceParams) -> list[types.Location]:
    file, at, _ = ls.place(given.text_document, given.position)
    readings = ls.programs.readings(file)
    found = ls.programs.reading(file).at(file, at)
    if found is None:
        return []
    is_wanted = given.context.include_declaration
    return ls.locations(references(readings, found.symbol, with_definition=is_wanted))


def _prepare_rename(ls: Server, given: types.PrepareRenameParams) -> types.Range | None:
    file, at, source = ls.place(given.text_document, given.position)
    found = ls.programs.reading(file).at(file, at)
    if found is None:
        return None
    # Behind the last character counts too.
    name = found.symbol.name
    start = max((at - i for i in range(len(name) + 1) if source.text.startswith(name, at - i)), default=None)
    return None if start is None else range_of(source, Span(start, start + len(name)), ls.encoding)


def _rename(ls: Server, given: types.RenameParams) -> types.WorkspaceEdit:
    file, at, _ = ls.place(given.text_document, given.position)
    try:
        places = rename(ls.programs.readings(file), file, at, given.new_name)
    except ElastalogError as fault:
        raise JsonRpcInvalidParams(str(fault.diagnostics[0].message)) from None
    changes: dict[str, list[types.TextEdit]] = {}
    for place in places:
        where = range_of(ls.programs.source(place.file), place.span, ls.encoding)
        changes.setdefault(uri_of(place.file), []).append(types.TextEdit(where, given.new_name))
    return types.WorkspaceEdit(changes)


def _completion(ls: Server, given: types.CompletionParams) -> types.CompletionList:
    file, at, source = ls.place(given.text_document, given.position)
    found = complete(ls.programs.reading(file), source, at)
    items = [item_of(proposal, rank, ls.takes_snippets) for rank, proposal in enumerate(found)]
    return types.CompletionList(is_incomplete=False, items=items)


def _actions(ls: Server, given: types.CodeActionParams) -> list[types.CodeAction]:
    file = file_at(given.text_document.uri)
    source = ls.programs.source(file)
    wanted = given.range
    start = offset(source, wanted.start.line, wanted.start.character, ls.encoding)
    end = offset(source, wanted.end.line, wanted.end.character, ls.encoding)
    made = []
    for reading, diagnostic in ls.programs.findings(file).get(file, ()):
        shown = diagnostic_of(diagnostic, ls.encoding)
        for index, repair in enumerate(repairs(reading, diagnostic)):
            span = repair.place.span
            if repair.place.file == file and span.start <= end and start <= max(span.end, _end(source, shown, ls)):
                where = range_of(source, span, ls.encoding)
                edit = types.WorkspaceEdit({given.text_document.uri: [types.TextEdit(where, repair.text)]})
                kind = types.CodeActionKind.QuickFix
                made.append(types.CodeAction(repair.title, kind, [shown], is_preferred=index == 0, edit=edit))
    return made


def _end(source: Source, shown: types.Diagnostic, ls: Server) -> int:
    return offset(source, shown.range.end.line, shown.range.end.character, ls.encoding)


def _formatting(ls: Server, given: types.DocumentFormattingParams) -> list[types.TextEdit]:
    source = ls.programs.source(file_at(given.text_document.uri))
    text, _ = format_program(source)
    if text == source.text:
        return []
    return [types.TextEdit(range_of(source, Span(0, len(source.text)), ls.encoding), text)]


def _symbols(ls: Server, given: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    file = file_at(given.text_document.uri)
    source = ls.programs.source(file)
    return [symbol_of(entry, source, ls.encoding) for entry in outline(ls.programs.reading(file), file)]


def _colours(ls: Server, given: types.SemanticTokensParams) -> types.SemanticTokens:
    file = file_at(given.text_document.uri)
    return colours_of(coloured(ls.programs.reading(file), file), ls.programs.source(file), ls.encoding)


_FEATURES: Final[dict[str, Any]] = {
    types.INITIALIZE: _initialize,
    types.INITIALIZED: _initialized,
    types.TEXT_DOCUMENT_DID_OPEN: _opened,
    types.TEXT_DOCUMENT_DID_CHANGE: _changed,
    types.TEXT_DOCUMENT_DID_SAVE: _saved,
    types.TEXT_DOCUMENT_DID_CLOSE: _closed,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: _files_changed,
    types.TEXT_DOCUMENT_HOVER: _hover,
    types.TEXT_DOCUMENT_DEFINITION: _definition,
    types.TEXT_DOCUMENT_REFERENCES: _references,
    types.TEXT_DOCUMENT_PREPARE_RENAME: _prepare_rename,
    types.TEXT_DOCUMENT_RENAME: (types.RenameOptions(prepare_provider=True), _rename),
    types.TEXT_DOCUMENT_COMPLETION: (types.CompletionOptions(trigger_characters=[".", "@", "$", "#"]), _completion),
    types.TEXT_DOCUMENT_CODE_ACTION: (types.CodeActionOptions([types.CodeActionKind.QuickFix]), _actions),
    types.TEXT_DOCUMENT_FORMATTING: _formatting,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: _symbols,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: (LEGEND, _colours),
}
"""The features: method, options that are announced, and function."""
