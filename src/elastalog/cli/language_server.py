"""The language server: requests of an editor, answered by `editing`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from elastalog import __version__
from elastalog.cli import protocol_values as values
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source, Span
from elastalog.editing import Desk, complete, definition, hover, outline, references, rename, repairs
from elastalog.editing.outline import coloured
from elastalog.editing.places import offset
from elastalog.editing.references import included_at
from elastalog.program.preprocessing import Preprocessing
from elastalog.syntax.format import format_program

PAUSE: Final = 0.2
"""How many seconds of quiet pass before a program that is being written is checked."""
LONGEST_COUNT: Final = 60.0
"""How many seconds an evaluation for numbers of facts may take."""


class Protocol(LanguageServerProtocol):
    """Every request gets an answer to its id, also one that cannot be understood."""

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
    """`facts`: the folder that numbers of facts are counted from."""

    def __init__(self, options: Preprocessing, facts: str | None) -> None:
        kind = types.TextDocumentSyncKind.Full
        super().__init__("elastalog", __version__, text_document_sync_kind=kind, protocol_cls=Protocol)
        self.options = options
        self.facts = facts
        self.counts: dict[str, dict[str, int]] = {}
        self.desk = Desk((), options)
        self.encoding = "utf-16"
        self.takes_snippets = False
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._published: dict[str, set[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, given: types.InitializeParams) -> None:
        """What the editor says about itself and its folders."""
        folders = [uris.to_fs_path(folder.uri) for folder in given.workspace_folders or ()]
        if not folders and given.root_uri:
            folders = [uris.to_fs_path(given.root_uri)]
        self.desk = Desk([folder for folder in folders if folder], self.options)
        completion = given.capabilities.text_document and given.capabilities.text_document.completion
        item = completion.completion_item if completion else None
        self.takes_snippets = bool(item and item.snippet_support)

    # --- places ----------------------------------------------------------------------------------------------------

    def place(self, document: Any, position: types.Position) -> tuple[str, int, Source]:
        """The file, the character in it, and its text."""
        file = file_at(document.uri)
        source = self.desk.source(file)
        return file, offset(source, position.line, position.character, self.encoding), source

    def locations(self, places: Sequence[Any]) -> list[types.Location]:
        return [values.location_of(place, self.desk.source, self.encoding) for place in places]

    # --- diagnostics -----------------------------------------------------------------------------------------------

    def check_soon(self, file: str, pause: float = PAUSE) -> None:
        """Check the programs that hold a file when nobody has written for a while."""
        earlier = self._waiting.get(file)
        if earlier is not None:
            earlier.cancel()
        self._waiting[file] = asyncio.ensure_future(self._check(file, pause))

    async def _check(self, file: str, pause: float) -> None:
        await asyncio.sleep(pause)
        findings = self.desk.findings(file)
        # A file that is not included any more keeps no findings.
        for each in {*findings, *self._published.get(file, ())}:
            found = findings.get(each, ())
            shown = [values.diagnostic_of(diagnostic, self.encoding) for _, diagnostic in found]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(values.uri_of(each), shown))
        self._published[file] = set(findings)

    # --- numbers of facts ------------------------------------------------------------------------------------------

    def count_soon(self, file: str) -> None:
        """Evaluate the program that holds a file, as it is on disk, beside all else."""
        if self.facts is not None:
            task = asyncio.ensure_future(self._count(file, self.facts))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _count(self, file: str, facts: str) -> None:
        root = self.desk.reading(file).file
        counted = await asyncio.get_running_loop().run_in_executor(None, count_facts, root, facts, self.options)
        if counted is not None:
            self.counts[root] = counted


def count_facts(program: str, facts: str, options: Preprocessing) -> dict[str, int] | None:
    """How many facts every relation has; None where the program or its facts are at fault, or take too long."""
    import elastalog
    from elastalog.program import Program

    try:
        loaded = Program.load(program, include=options.include, macros=dict(options.macros), preprocess=options.is_on)
        with elastalog.open(loaded, facts, limits=elastalog.Limits(time=LONGEST_COUNT)) as db:
            return {name: len(db[name]) for name in loaded.checked.relations}
    except ElastalogError:
        return None


def file_at(uri: str) -> str:
    """The path of a document; one that is not in a file is named by what it has."""
    try:
        return uris.to_fs_path(uri) or uri
    except ValueError:  # it is no address
        return uri


def serve(options: Preprocessing, facts: str | None) -> None:
    """Answer over standard input and output until the editor goes."""
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
    ls.desk.write(file, given.text_document.text)
    ls.check_soon(file, 0)
    ls.count_soon(file)


def _changed(ls: Server, given: types.DidChangeTextDocumentParams) -> None:
    file = file_at(given.text_document.uri)
    for change in given.content_changes[-1:]:
        ls.desk.write(file, change.text)
    ls.check_soon(file)


def _saved(ls: Server, given: types.DidSaveTextDocumentParams) -> None:
    ls.desk.refresh()
    file = file_at(given.text_document.uri)
    ls.check_soon(file, 0)
    ls.count_soon(file)


def _closed(ls: Server, given: types.DidCloseTextDocumentParams) -> None:
    ls.desk.close(file_at(given.text_document.uri))


def _files_changed(ls: Server, given: types.DidChangeWatchedFilesParams) -> None:
    ls.desk.refresh()
    for file in ls.desk.files:
        ls.check_soon(file)


# --- questions -----------------------------------------------------------------------------------------------------


def _hover(ls: Server, given: types.HoverParams) -> types.Hover | None:
    file, at, _ = ls.place(given.text_document, given.position)
    reading = ls.desk.reading(file)
    text = hover(reading, file, at, ls.counts.get(reading.file))
    return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))


def _definition(ls: Server, given: types.DefinitionParams) -> list[types.Location]:
    file, at, source = ls.place(given.text_document, given.position)
    found = included_at(source, at, ls.options.include) or definition(ls.desk.reading(file), file, at)
    return ls.locations([found] if found is not None else [])


def _references(ls: Server, given: types.ReferenceParams) -> list[types.Location]:
    file, at, _ = ls.place(given.text_document, given.position)
    readings = ls.desk.readings(file)
    found = ls.desk.reading(file).at(file, at)
    if found is None:
        return []
    is_wanted = given.context.include_declaration
    return ls.locations(references(readings, found.symbol, with_definition=is_wanted))


def _prepare_rename(ls: Server, given: types.PrepareRenameParams) -> types.Range | None:
    file, at, source = ls.place(given.text_document, given.position)
    found = ls.desk.reading(file).at(file, at)
    if found is None:
        return None
    # Behind the last character counts too.
    name = found.symbol.name
    start = max((at - i for i in range(len(name) + 1) if source.text.startswith(name, at - i)), default=None)
    return None if start is None else values.range_of(source, Span(start, start + len(name)), ls.encoding)


def _rename(ls: Server, given: types.RenameParams) -> types.WorkspaceEdit:
    file, at, _ = ls.place(given.text_document, given.position)
    try:
        places = rename(ls.desk.readings(file), file, at, given.new_name)
    except ElastalogError as fault:
        raise JsonRpcInvalidParams(str(fault.diagnostics[0].message)) from None
    changes: dict[str, list[types.TextEdit]] = {}
    for place in places:
        where = values.range_of(ls.desk.source(place.file), place.span, ls.encoding)
        changes.setdefault(values.uri_of(place.file), []).append(types.TextEdit(where, given.new_name))
    return types.WorkspaceEdit(changes)


def _completion(ls: Server, given: types.CompletionParams) -> types.CompletionList:
    file, at, source = ls.place(given.text_document, given.position)
    found = complete(ls.desk.reading(file), source, at)
    items = [values.item_of(proposal, rank, ls.takes_snippets) for rank, proposal in enumerate(found)]
    return types.CompletionList(is_incomplete=False, items=items)


def _actions(ls: Server, given: types.CodeActionParams) -> list[types.CodeAction]:
    file = file_at(given.text_document.uri)
    source = ls.desk.source(file)
    wanted = given.range
    start = offset(source, wanted.start.line, wanted.start.character, ls.encoding)
    end = offset(source, wanted.end.line, wanted.end.character, ls.encoding)
    made = []
    for reading, diagnostic in ls.desk.findings(file).get(file, ()):
        shown = values.diagnostic_of(diagnostic, ls.encoding)
        for index, repair in enumerate(repairs(reading, diagnostic)):
            span = repair.place.span
            if repair.place.file == file and span.start <= end and start <= max(span.end, _end(source, shown, ls)):
                where = values.range_of(source, span, ls.encoding)
                edit = types.WorkspaceEdit({given.text_document.uri: [types.TextEdit(where, repair.text)]})
                kind = types.CodeActionKind.QuickFix
                made.append(types.CodeAction(repair.title, kind, [shown], is_preferred=index == 0, edit=edit))
    return made


def _end(source: Source, shown: types.Diagnostic, ls: Server) -> int:
    return offset(source, shown.range.end.line, shown.range.end.character, ls.encoding)


def _formatting(ls: Server, given: types.DocumentFormattingParams) -> list[types.TextEdit]:
    source = ls.desk.source(file_at(given.text_document.uri))
    text, _ = format_program(source)
    if text == source.text:
        return []
    return [types.TextEdit(values.range_of(source, Span(0, len(source.text)), ls.encoding), text)]


def _symbols(ls: Server, given: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    file = file_at(given.text_document.uri)
    source = ls.desk.source(file)
    return [values.symbol_of(entry, source, ls.encoding) for entry in outline(ls.desk.reading(file), file)]


def _colours(ls: Server, given: types.SemanticTokensParams) -> types.SemanticTokens:
    file = file_at(given.text_document.uri)
    return values.colours_of(coloured(ls.desk.reading(file), file), ls.desk.source(file), ls.encoding)


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
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: (values.LEGEND, _colours),
}
"""What the server can do: the method, the options that it announces, and the function."""
