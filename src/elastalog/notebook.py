"""Notebooks: `%load_ext elastalog`, then cells `%%datalog` of Datalog; each becomes a session, or a query of one.

%%datalog db --facts facts/
.decl edge(from: number, to: number)
…

%%datalog db
path(1, X), edge(X, Y)
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from elastalog.analysis.query import parameters_in
from elastalog.diagnostics.arguments import wrong_kind
from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.folders.addresses import is_address
from elastalog.program import Program
from elastalog.session import Session
from elastalog.session import open as open_session

DEFAULT = "db"
"""The variable that a cell uses unless it names one."""


def load(shell: Any) -> None:
    """Registers `%%datalog` with an IPython shell."""
    shell.register_magic_function(lambda line, cell: datalog(shell.user_ns, line, cell), "cell", "datalog")


def datalog(variables: dict[str, Any], line: str, cell: str) -> Any:
    """Runs a cell. With declarations or rules it is a program: a session of it replaces the one in the variable; its
    facts are given as `--facts`, a folder or a variable with a mapping. Otherwise it is a query of that session, and
    parameters `?x` are variables of the notebook."""
    name, options = _arguments(line)
    if _is_program(cell):
        facts = _facts(options["facts"], variables) if "facts" in options else None
        earlier, store = variables.get(name), options.get("store")
        program = Program.parse(cell, "<cell>")
        if isinstance(earlier, Session) and _is_of(earlier, store):
            earlier.close()  # a store has one writer
        session = open_session(program, facts, store=store)
        if isinstance(earlier, Session):
            earlier.close()
        variables[name] = session
        return session
    asked = variables.get(name)
    if not isinstance(asked, Session):
        what = f"a cell with a query needs a session in the variable `{name}`"
        raise wrong_kind(what, asked, f"run a cell `%%datalog {name}` with a program first")
    wanted = parameters_in(cell, asked.program.checked)
    for word in wanted:
        if word not in variables:
            near = did_you_mean(word, (known for known in variables if known[0] != "_"))
            raise error("E0619.cell", name=word, near=near)
    return asked.query(cell, parameters={word: variables[word] for word in wanted})


def _facts(word: str, variables: dict[str, Any]) -> Any:
    """The value of a variable of the notebook, or else a folder, by path or URL."""
    if word not in variables and not Path(word).is_dir() and not is_address(word):
        raise wrong_kind("`--facts` names a variable or a folder", word, "make one of them first, or check the name")
    return variables.get(word, word)


def _is_of(session: Session, store: str | None) -> bool:
    return (
        store is not None
        and session.engine.store is not None
        and session.engine.store.resolve() == Path(store).resolve()
    )


def _arguments(line: str) -> tuple[str, dict[str, str]]:
    """The variable and the options. Raises WrongArgument if there is anything else."""
    words = shlex.split(line)
    options: dict[str, str] = {}
    names: list[str] = []
    while words:
        word = words.pop(0)
        if word in ("--facts", "--store") and words:
            options[word.removeprefix("--")] = words.pop(0)
        elif word.isidentifier() and not names:
            names.append(word)
        else:
            advice = "write `%%datalog db --facts FACTS --store PATH`, or less of it"
            raise wrong_kind("a cell has one variable, and options with a value each", word, advice)
    return (names[0] if names else DEFAULT), options


def _is_program(cell: str) -> bool:
    return any(part.lstrip().startswith(".") for part in cell.splitlines()) or ":-" in cell
