"""What the commands that explain share: forms, and values as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from elastalog.cli.options import together
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

if TYPE_CHECKING:
    from elastalog.analysis.program import Base, Value
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.proof import Proof

_RENDERERS: Final[Mapping[str, Callable[[Proof | Absence], str]]] = {
    "auto": str,
    "text": lambda shown: shown.to_text(),
    "tree": lambda shown: shown.to_tree(),
    "json": lambda shown: shown.to_json(),
    "dot": lambda shown: shown.to_dot(),
    "mermaid": lambda shown: shown.to_mermaid(),
    "html": lambda shown: shown.to_html(page=True),
}
FORMS: Final = tuple(_RENDERERS)
"""The forms of explanations; `auto` is text where that is narrow enough and a tree otherwise."""

form_options: Final = together(
    click.option(
        "--format", "form", type=click.Choice(FORMS), default="auto", show_default=True, help="Form of the explanation."
    ),
    click.option("--output", metavar="FILE", help="Write the explanation to FILE."),
)
"""`--format` and `--output` of a command that explains."""


def rendered(shown: Proof | Absence, form: str) -> str:
    """An explanation in a form."""
    return _RENDERERS[form](shown)


def give_explanation(text: str, path: str | None) -> None:
    """Prints an explanation, or writes it to a file."""
    if path is None:
        click.echo(text)
    else:
        write_explanation(text, path)


def write_explanation(text: str, path: str) -> None:
    """Writes an explanation to a file, which appears whole or not at all."""
    from elastalog.pipeline.files.atomic import replacing

    with replacing(Path(path)) as out:
        out.write(text.encode() + b"\n")


def value_from(text: str, base: Base, name: str) -> Value:
    """The value that a text spells for a variable. Symbols may stand in quotes."""
    from elastalog.analysis.program import Base

    text = text.strip()
    try:
        match base:
            case Base.SYMBOL:
                is_quoted = len(text) >= 2 and text[0] == text[-1] == '"'
                return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if is_quoted else text
            case Base.FLOAT:
                return float(text)
            case Base.NUMBER | Base.UNSIGNED:
                return int(text.removesuffix("u") if base is Base.UNSIGNED else text)
            case Base.RECORD:
                raise ValueError(text)
    except ValueError:
        message = f"`{text[:40]}` is not a {base.value}"
        raise ElastalogError([Diagnostic("E0711", message, help=f"give a {base.value} for `{name}`")]) from None
