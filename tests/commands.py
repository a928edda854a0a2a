"""Commands as a shell runs them, in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from elastalog.cli.main import cli


def run(*words: object, text: str | None = None) -> Result:
    """What `elastalog` with some words does: its exit code and what it prints; `text` is its input. Exceptions that it
    should have told as errors pass."""
    return CliRunner().invoke(cli, [str(word) for word in words], input=text, catch_exceptions=False)
