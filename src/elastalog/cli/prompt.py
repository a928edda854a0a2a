"""The prompt of the shell: history and completion where prompt_toolkit is installed, a plain line otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from elastalog.cli.shell_commands.registry import BY_NAME, COMMANDS
from elastalog.pipeline.own_folder import own_folder

if TYPE_CHECKING:
    from elastalog.cli.shell_commands import ShellState


def make_prompt(state: ShellState) -> Callable[[str], str]:
    """A function that shows a prompt and reads a line. It raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    except ImportError:
        return input

    class ShellCompleter(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            start, found = completions(document.text_before_cursor, state)
            for text in found:
                yield Completion(text, start_position=start)

    path = history_file()
    history: History = InMemoryHistory() if path is None else FileHistory(str(path))
    session: PromptSession[str] = PromptSession(
        history=history, completer=ShellCompleter(), complete_while_typing=False
    )

    def read(prompt: str) -> str:
        return session.prompt(prompt)

    return read


def completions(before: str, state: ShellState) -> tuple[int, list[str]]:
    """What the text before the cursor may go on with, and how far before the cursor that starts."""
    statement = before.rpartition(";")[2].lstrip()
    name, separator, rest = statement.partition(" ")
    if not separator:
        return -len(name), [c.name + " " * (c.completes is not None) for c in COMMANDS if c.name.startswith(name)]
    command = BY_NAME.get(name)
    kind = command.completes if command is not None else None
    word = rest.rpartition(",")[2].lstrip() if kind == "relations" else rest.lstrip()
    if kind == "relations" and "(" not in word:
        is_open = "dump" not in name
        found = [relation + "(" * is_open for relation in state.session if relation.startswith(word)]
    elif kind == "strategies":
        from elastalog.evaluation.strategies import STRATEGIES

        found = [strategy for strategy in STRATEGIES if strategy.startswith(word)]
    elif kind == "commands":
        found = [c.name for c in COMMANDS if c.name.startswith(word)]
    elif kind == "files":
        found = _files(word)
    else:
        found = []
    return -len(word), found


def _files(word: str) -> list[str]:
    folder, slash, start = word.rpartition("/")
    try:
        entries = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return []
    return [f"{folder}{slash}{entry.name}{'/' * entry.is_dir()}" for entry in entries if entry.name.startswith(start)]


def history_file() -> Path | None:
    """Where lines are remembered, in the user's folder for state; None if it can not be written."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(state).expanduser() / "elastalog" / "history"
    try:
        own_folder(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        return path
    except (OSError, RuntimeError):
        return None
