"""`elastalog shell`: commands from a script, or from a prompt, with history and completion if prompt_toolkit is
installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elastalog.cli.exits import AT_FAULT, LIMIT, Console, Terminated, code_of
from elastalog.cli.options import program_argument, report_options, update_budget
from elastalog.cli.outputs import checked_output
from elastalog.cli.session_options import (
    SessionOptions,
    announcing,
    is_store,
    load_program,
    open_session,
    opened_to_write,
    session_options,
)
from elastalog.diagnostics.diagnostic import ElastalogError, InternalError, LimitReached, error
from elastalog.diagnostics.messages import counted
from elastalog.diagnostics.source import Source
from elastalog.folders.local import own_folder

if TYPE_CHECKING:
    from elastalog.cli.shell_commands.state import Piece, ShellState
    from elastalog.evaluation.costs import Budget
    from elastalog.program import Program
    from elastalog.session import Session


@click.command()
@program_argument
@session_options
@click.option(
    "--budget", default="auto", show_default=True, callback=update_budget, metavar="auto|FRACTION|none",
    help="What an update may cost before a stratum is recomputed; a number is a fraction of a bootstrap.",
)  # fmt: skip
@report_options
def shell(program: str, budget: Budget, console: Console, options: SessionOptions) -> None:
    """Work with PROGRAM or a store interactively: change facts and ask questions.

    `help` lists the commands. If standard input is not a terminal, it is read as a script: nothing is echoed, and the
    first error ends it with exit code 1. With -q, `commit` shows its changes only as `commit dump_changes`.

    \b
    Examples:
      elastalog shell reach.dl -F facts
      elastalog shell reach.store
      echo 'insert edge(1, 2); commit; query path(1, X)' | elastalog shell reach.dl -F facts
    """
    with checked_output(), announcing(console):
        if is_store(program):
            state = _state(opened_to_write(program, options, console), "elastic", _of_store, console)
        else:
            loaded = load_program(program, console)
            state = _opened(loaded, options, budget, console)
        with state.session:
            if state.is_interactive:
                _converse(state, console)
            else:
                _run_script(state, console)


def _opened(loaded: Program, options: SessionOptions, budget: Budget, console: Console) -> ShellState:
    session = open_session(loaded, options, console, budget=budget)

    def reopen(program: Program, facts: dict[str, Any], strategy: str) -> Session:
        anew = replace(options, facts=facts, strategy=strategy)
        return open_session(program, anew, console, budget=budget)

    return _state(session, options.strategy, reopen, console)


def _of_store(program: Program, facts: dict[str, Any], strategy: str) -> Session:
    """Stands in for `reopen` with a store, whose strategy cannot be changed."""
    raise error("E0811")


def _state(
    session: Session, strategy: str, reopen: Callable[[Program, dict[str, Any], str], Session], console: Console
) -> ShellState:
    from elastalog.cli.shell_commands.state import ShellState

    # Standard input is None when the process that started us has closed it.
    is_interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    return ShellState(session, strategy, reopen, is_interactive=is_interactive, is_quiet=console.is_quiet)


def _run_script(state: ShellState, console: Console) -> None:
    """Reads commands line by line, so that another program can interact with it."""
    from elastalog.cli.shell_commands.state import Piece, statements

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    for number, line, is_text in _script_lines():
        # The lines before it matter for its number only.
        source = Source("<stdin>", "\n" * (number - 1) + line)
        whole = Piece(source, number - 1, len(source.text))
        if not is_text:
            raise whole.error(
                "E0652", "the script is not UTF-8", advice="convert it, for example with `iconv -t utf-8`"
            )
        for statement in statements(whole):
            try:
                _execute(state, statement)
            except ElastalogError as error:
                sys.stdout.flush()
                console.show(_at_line(error, statement).diagnostics)
                console.say("the script ends here: commands after this one were not run")
                sys.exit(LIMIT if isinstance(error, LimitReached) else AT_FAULT)
            except KeyboardInterrupt as end:
                click.echo(f"interrupted: epoch {state.session.epoch} stands", err=True)
                sys.exit(code_of(end))
            finally:
                sys.stdout.flush()
            if state.is_over:
                break
        if state.is_over:
            break
    if state.pending:
        click.echo(f"warning: {_not_committed(state)}", err=True)


def _script_lines() -> Iterator[tuple[int, str, bool]]:
    """The lines of standard input, by number, and whether each is UTF-8; otherwise invalid bytes are replaced. A line
    goes on while a parenthesis is open."""
    from elastalog.cli.shell_commands.state import is_open, without_comment

    first, begun, is_text = 1, "", True
    for number, line in enumerate(() if sys.stdin is None else sys.stdin.buffer, 1):
        encoding = "utf-8-sig" if number == 1 else "utf-8"
        try:
            begun += without_comment(line.decode(encoding).rstrip("\r\n"))
        except UnicodeDecodeError:
            begun, is_text = begun + line.decode(encoding, errors="replace").rstrip("\r\n"), False
        if is_text and is_open(begun):
            begun += "\n"
            continue
        yield first, begun, is_text
        first, begun, is_text = number + 1, "", True
    if begun:
        yield first, begun, is_text


def _execute(state: ShellState, statement: Piece) -> None:
    from elastalog.cli.shell_commands.registry import find_command
    from elastalog.cli.shell_commands.state import Piece

    name, rest = statement.after_word()
    place = Piece(statement.source, statement.start, statement.start + len(name))
    if name in state.session and rest.text.startswith("("):
        raise place.error(
            "E0651", f"`{name}` is not a command", advice=f"write `insert`, `delete` or `query` before `{name}`"
        )
    find_command(name, place).execute(state, rest)


def _at_line(error: ElastalogError, statement: Piece) -> ElastalogError:
    """An error of the evaluation, with the command that caused it."""
    line, _ = statement.source.locate(statement.start)
    note = f"in line {line} of the script: {statement.text[:100]}"
    return ElastalogError(
        [d if d.source is statement.source else replace(d, notes=(*d.notes, note)) for d in error.diagnostics]
    )


def _converse(state: ShellState, console: Console) -> None:
    """Reads commands from a user. Errors and Ctrl-C end the command only; Ctrl-D ends the shell."""
    from elastalog.cli.shell_commands.state import Piece, is_open, statements, without_comment

    read = make_prompt(state)
    if not console.is_quiet:
        click.echo(f"{state.session!r}; `help` lists the commands, Ctrl-D leaves")
    while not state.is_over:
        try:
            line = without_comment(read(f"[{state.pending_size:,} pending] > " if state.pending else "> "))
            while is_open(line):
                line += f"\n{without_comment(read('… '))}"
        except Terminated:
            raise
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        source = Source("<shell>", line)
        epoch = state.session.epoch
        try:
            for statement in statements(Piece(source, 0, len(line))):
                if not state.is_over:
                    _execute(state, statement)
        except ElastalogError as error:
            console.show(error.diagnostics)
        except InternalError as error:
            click.echo(str(error), err=True)
        except KeyboardInterrupt as interrupt:
            what = "stands" if state.session.epoch == epoch else "has been committed"
            click.echo(f"interrupted: epoch {state.session.epoch} {what}", err=True)
            if isinstance(interrupt, Terminated):
                raise
        sys.stdout.flush()
    if state.pending:
        click.echo(_not_committed(state), err=True)


def _not_committed(state: ShellState) -> str:
    return f"{counted(state.pending_size, 'pending change')} not committed"


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
    """The possible completions of the text before the cursor, and how far before the cursor they start."""
    from elastalog.cli.shell_commands.registry import BY_NAME, COMMANDS

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
    """The file of the history, in the user's state folder; None if it cannot be written."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(state).expanduser() / "elastalog" / "history"
    try:
        own_folder(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        return path
    except (OSError, RuntimeError):
        return None
