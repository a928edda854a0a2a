"""The language server, spoken to by a client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from elastalog.cli.main import cli

pytest.importorskip("pygls", reason="the extra `lsp` is not installed")

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

PROGRAM = """#include "edges.dl"
.decl path(from: Node, to: Node)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
"""
EDGES = ".type Node <: symbol\n// What leads where.\n.decl edge(from: Node, to: Node)\n.input edge\n"


class Editor:
    """One editor with one server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("test", "1")
        self.shown: dict[str, list[types.Diagnostic]] = {}
        self.news = asyncio.Event()
        self.versions: dict[str, int] = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(given: types.PublishDiagnosticsParams) -> None:
            self.shown[given.uri.rpartition("/")[2]] = list(given.diagnostics)
            self.news.set()

    async def start(self, *options: str) -> types.InitializeResult:
        await self.client.start_io(sys.executable, "-m", "elastalog", "lsp", *options)
        folders = [types.WorkspaceFolder(self.folder.as_uri(), "here")]
        given = types.InitializeParams(types.ClientCapabilities(), workspace_folders=folders)
        result = await self.client.initialize_async(given)
        self.client.initialized(types.InitializedParams())
        return result

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def document(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    async def open(self, name: str, text: str | None = None) -> None:
        text = text if text is not None else (self.folder / name).read_text()
        item = types.TextDocumentItem(self.uri(name), "elastalog", 1, text)
        self.shown.pop(name, None)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await self.until(lambda: name in self.shown)

    async def write(self, name: str, text: str) -> None:
        self.versions[name] = self.versions.get(name, 1) + 1
        document = types.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name))
        self.shown.pop(name, None)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        await self.until(lambda: name in self.shown)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self.news.clear()
                await self.news.wait()

    def codes(self, name: str) -> list[Any]:
        return [found.code for found in self.shown[name]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.dl").write_text(PROGRAM)
    (tmp_path / "edges.dl").write_text(EDGES)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("a\tb\nb\tc\n")
    return tmp_path


def spoken(folder: Path, talk: Callable[[Editor], Awaitable[None]], *options: str) -> None:
    """Run a conversation, and end the server by the protocol's own way."""

    async def run() -> None:
        editor = Editor(folder)
        result = await editor.start(*options)
        assert result.capabilities.rename_provider is not None
        try:
            await talk(editor)
        finally:
            await editor.client.shutdown_async(None)
            editor.client.exit(None)
            await editor.client.stop()

    asyncio.run(run())


def at(text: str, part: str, behind: int = 0) -> types.Position:
    """The position of a part of a text."""
    index = text.index(part) + behind
    return types.Position(text.count("\n", 0, index), index - (text.rfind("\n", 0, index) + 1))


def test_a_conversation(folder: Path) -> None:
    async def talk(editor: Editor) -> None:
        client, main = editor.client, editor.document("main.dl")
        await editor.open("main.dl")
        await editor.until(lambda: editor.shown == {"main.dl": [], "edges.dl": []})
        edge = at(PROGRAM, "edge(y", 1)

        told = await client.text_document_hover_async(types.HoverParams(main, edge))
        assert ".decl edge(from: Node, to: Node)" in told.contents.value
        assert "What leads where." in told.contents.value

        found: Any = await client.text_document_definition_async(types.DefinitionParams(main, edge))
        assert [(place.uri, place.range.start) for place in found] == [(editor.uri("edges.dl"), types.Position(2, 6))]
        included: Any = await client.text_document_definition_async(
            types.DefinitionParams(main, at(PROGRAM, "edges", 2))
        )
        assert [place.uri for place in included] == [editor.uri("edges.dl")]

        context = types.ReferenceContext(include_declaration=True)
        places = await client.text_document_references_async(types.ReferenceParams(context, main, edge))
        assert sorted(place.uri.rpartition("/")[2] for place in places or ()) == ["edges.dl"] * 2 + ["main.dl"] * 2

        area: Any = await client.text_document_prepare_rename_async(types.PrepareRenameParams(main, edge))
        assert (area.start.character, area.end.character) == (26, 30)
        edit = await client.text_document_rename_async(types.RenameParams(main, edge, "link"))
        assert {uri.rpartition("/")[2]: len(edits) for uri, edits in (edit.changes or {}).items()} == {
            "edges.dl": 2,
            "main.dl": 2,
        }
        with pytest.raises(JsonRpcException, match="`path` is the name of another relation"):
            await client.text_document_rename_async(types.RenameParams(main, edge, "path"))

        entries: Any = await client.text_document_document_symbol_async(types.DocumentSymbolParams(main))
        assert [entry.name for entry in entries] == ["path"]
        colours = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(main))
        assert len(colours.data) % 5 == 0
        assert list(colours.data[:5]) == [1, 6, 4, 0, 0]

    spoken(folder, talk)


def test_findings_while_writing_and_their_repairs(folder: Path) -> None:
    async def talk(editor: Editor) -> None:
        await editor.open("main.dl")
        wrong = PROGRAM.replace("edge(y, z)", "egde(y, z)")
        await editor.write("main.dl", wrong)
        (found,) = editor.shown["main.dl"]
        assert (found.code, found.severity, found.source) == ("E0204", types.DiagnosticSeverity.Error, "elastalog")
        assert found.range == types.Range(at(wrong, "egde"), at(wrong, "egde", 4))
        assert "help: did you mean `edge`?" in found.message
        given = types.CodeActionParams(editor.document("main.dl"), found.range, types.CodeActionContext([found]))
        (action,) = await editor.client.text_document_code_action_async(given) or ()
        assert action.title == "replace `egde` by `edge`"
        assert isinstance(action, types.CodeAction)
        assert {uri: list(edits) for uri, edits in (action.edit.changes or {}).items()} == {
            editor.uri("main.dl"): [types.TextEdit(found.range, "edge")]
        }

        await editor.write("main.dl", wrong + "path(x, \n")
        assert "E0204" not in editor.codes("main.dl")  # the grammar comes first
        assert editor.codes("main.dl")
        listed: Any = await editor.client.text_document_completion_async(
            types.CompletionParams(editor.document("main.dl"), types.Position(5, 8))
        )
        assert {"edge", "path", "to"} <= {item.label for item in listed.items}
        await editor.write("main.dl", PROGRAM)
        assert editor.codes("main.dl") == []

    spoken(folder, talk)


def test_an_included_file_is_read_with_its_program(folder: Path) -> None:
    async def talk(editor: Editor) -> None:
        await editor.open("edges.dl")
        await editor.write("edges.dl", EDGES.replace("to: Node", "to: Node, cost: number"))
        await editor.until(lambda: bool(editor.shown.get("main.dl")))
        found = editor.shown["main.dl"][0]
        assert found.code == "E0205"
        assert any(place.location.uri == editor.uri("edges.dl") for place in found.related_information or ())
        await editor.write("edges.dl", EDGES)
        await editor.until(lambda: not editor.shown["main.dl"])

    spoken(folder, talk)


def test_layout(folder: Path) -> None:
    async def talk(editor: Editor) -> None:
        await editor.open("main.dl", "path( x,y ):-edge(x,y).\n")
        options = types.FormattingOptions(tab_size=4, insert_spaces=True)
        given = types.DocumentFormattingParams(editor.document("main.dl"), options)
        (edit,) = await editor.client.text_document_formatting_async(given) or ()
        assert edit.new_text == "path(x, y) :- edge(x, y).\n"
        await editor.write("main.dl", "path( x,\n")
        assert not await editor.client.text_document_formatting_async(given)

    spoken(folder, talk)


def test_every_request_is_answered_and_the_end_is_orderly() -> None:
    """Messages as no client library would send them: each with an id gets an answer to it."""

    def message(text: str) -> bytes:
        return b"Content-Length: %d\r\n\r\n%s" % (len(text.encode()), text.encode())

    def request(number: int, method: Any, given: Any, version: str = "2.0") -> str:
        return json.dumps({"jsonrpc": version, "id": number, "method": method, "params": given})

    before = {"textDocument": {"uri": "file:///x.dl"}, "position": {"line": 0, "character": -1}}
    first = {**before, "position": {"line": 0, "character": 0}}
    sent = [
        request(1, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}),
        request(2, "textDocument/hover", before),
        request(3, "textDocument/hover", None),
        request(4, ["textDocument/hover"], before),
        request(5, "textDocument/hover", first, "1.0"),
        f"[{request(6, 'textDocument/hover', before)}]",
        '{"id": 7, "method": "textDocument/hover"}',
        "{", "null", "[1]",
        request(8, "textDocument/unheardOf", {}),
        request(9, "textDocument/hover", {**first, "textDocument": {"uri": "http://["}}),
        request(10, "shutdown", None),
        request(11, "textDocument/hover", first),
        '{"jsonrpc": "2.0", "method": "exit"}',
    ]  # fmt: skip
    command = [sys.executable, "-m", "elastalog", "lsp"]
    ended = subprocess.run(command, input=b"".join(map(message, sent)), capture_output=True, timeout=60)
    answers = map(json.loads, re.findall(rb"\r\n\r\n(\{.*?\})(?=Content-Length|$)", ended.stdout, re.DOTALL))
    codes = {one["id"]: one.get("error", {}).get("code") for one in answers if "id" in one}
    assert codes == {
        1: None, 2: -32602, 3: -32602, 4: -32603, 5: -32600, 6: -32602, 7: -32600, 8: -32601, 9: None, 10: None,
        11: -32600,
    }  # fmt: skip
    assert ended.returncode == 0
    assert b"I/O operation on closed file" not in ended.stderr


@pytest.mark.slow
def test_numbers_of_facts(folder: Path) -> None:
    async def talk(editor: Editor) -> None:
        await editor.open("main.dl")
        given = types.HoverParams(editor.document("main.dl"), at(PROGRAM, "path", 1))
        async with asyncio.timeout(120):
            while True:
                told: Any = await editor.client.text_document_hover_async(given)
                if "`path`: 2 rules, 3 facts" in told.contents.value:
                    break
                await asyncio.sleep(0.2)

    spoken(folder, talk, "-F", str(folder / "facts"))


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pygls", "lsprotocol", "elastalog.cli.language_server", "elastalog.cli.language_server"):
        monkeypatch.setitem(sys.modules, name, None)
    result = CliRunner().invoke(cli, ["lsp"])
    assert result.exit_code == 1
    assert "error[E0906]" in result.stderr
    assert 'pip install "elastalog[lsp]"' in result.stderr
