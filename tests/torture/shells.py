"""Whatever is typed into the shell, it answers or says what is wrong; nothing is left half done."""

from __future__ import annotations

from random import Random

from click.testing import CliRunner

from elastalog.cli.main import cli
from tests.storage.scripted import folder_in_memory

PROGRAM = ".decl edge(x: number, y: symbol)\n.decl p(x: number)\n.output p\np(x) :- edge(x, _).\n"
COMMANDS = (
    "insert", "delete", "query", "commit", "rollback", "start", "dump", "explain", "whynot", "explainnegation",
    "addrule", "removerule", "setdepth 2", "log", "help", "changes", "dump_changes", "relations", "at 1", "diff",
    "suggest", "blame", "preview", "forecast", "stats", "commit;",
)  # fmt: skip
PIECES = (
    *COMMANDS, "edge", "p", '(1, "a")', "(1)", "(2)", '(2, "b")', "(X)", "(", ")", ",", ";", ".", "!", "x", "//",
    "p(x) :- edge(x, _), x < 3.", "1", "-1", '"', "\\", "é", "\u202e", 'edge(3, "c")', "p(1)", "9" * 30,
)  # fmt: skip
SCRIPTS = 8
"""How many scripts one trial tries. A line that is wrong ends one."""


def shell(seed: int) -> int:
    """Scripts of a few lines, mostly a command and pieces."""
    random = Random(seed)
    with folder_in_memory() as folder:
        (folder / "p.dl").write_text(PROGRAM)
        for _ in range(SCRIPTS):
            lines = ['insert edge(1, "a"); commit;', *(_line(random) for _ in range(random.randrange(1, 6)))]
            script = "\n".join(lines) + "\n"
            ended = CliRunner().invoke(cli, ["shell", str(folder / "p.dl")], input=script)
            assert ended.exception is None or isinstance(ended.exception, SystemExit), (script, ended.exception)
            assert ended.exit_code in (0, 1, 3), (script, ended.output)
            assert "Traceback" not in ended.output
            if ended.exit_code:
                assert "error[E" in ended.output, (script, ended.output)
    return SCRIPTS


def _line(random: Random) -> str:
    first = random.choice(COMMANDS if random.random() < 0.8 else PIECES)
    return " ".join([first, *(random.choice(PIECES) for _ in range(random.choice((0, 1, 1, 2, 4))))])
