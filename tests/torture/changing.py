"""Programs changed in a few places: by characters, which mostly break their syntax, or by tokens, which seldom do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from tests.generators.construction import Features
from tests.generators.seeded import seeded_program

ALL = Features(
    ranges=True, text_functors=True, tested_groups=True, records=True, branches=True, nested_aggregates=True,
    equivalences=True, choices=True, subsumptions=True,
)  # fmt: skip
"""All that generated programs can contain."""

PIECES = (
    ".decl", ".input", ".output", ".type", ".plan 1:(2,1)", "(", ")", "{", "}", ":-", ".", ",", ";", "!", "=", "<",
    "range", "count : ", "sum x : ", "match", "cat", '"a\\x41"', '"', "'", "0x", "9" * 30, "1.5e400", "_", "x", "edge",
    "path", "/*", "*/", "//", "\n", "\0", "\u202e", "é", "\\", "#define", "nil", "[", "]", "$", "@", "-", "^", "as(",
    "number", "symbol", "eqrel", "choice-domain", "inline", ".limitsize e0(n=3)", ".pragma", ".comp C", ".init c = C",
    "<=", ".functor f(x: number): number", "@f(", "autoinc()", "mean", "#include \"x\"", ".override", "unsigned", "|",
)  # fmt: skip
_TOKEN = re.compile(r"\s+|\w+|[:<>=!]{2}|.")
_KEPT_LINES = 12


def changed_programs(random: Random, number: int) -> Iterator[str]:
    """A part of a program that is accepted, changed again and again."""
    lines = seeded_program(random.randrange(2**40), ALL).text.splitlines()
    declared = [line for line in lines if line.startswith((".decl", ".type"))]
    others = [line for line in lines if line not in declared]
    for _ in range(number):
        few = random.sample(others, min(len(others), random.randrange(1, 6)))
        text = "\n".join([*declared, *few][-_KEPT_LINES:] if random.random() < 0.1 else [*declared, *few])
        for _ in range(random.choice((1, 1, 2, 4))):
            text = (by_characters if random.random() < 0.4 else by_tokens)(random, text)
        yield text


def by_characters(random: Random, text: str) -> str:
    """Something inserted, left out or repeated anywhere."""
    i, j = sorted(random.randrange(len(text) + 1) for _ in range(2))
    match random.randrange(3):
        case 0:
            return text[:i] + random.choice(PIECES) + text[i:]
        case 1:
            return text[:i] + text[min(j, i + 12) :]
        case _:
            return text[:i] + text[i:j][:40] * random.randrange(1, 4) + text[i:]


def by_tokens(random: Random, text: str) -> str:
    """A token left out, repeated, or in the place of another."""
    tokens = _TOKEN.findall(text)
    words = [i for i, token in enumerate(tokens) if not token.isspace()]
    if not words:
        return text
    i, j = random.choice(words), random.choice(words)
    match random.randrange(6):
        case 0:
            tokens[i] = ""
        case 1:
            tokens[i] += f" {tokens[i]}"
        case 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        case 3:
            tokens[i] = random.choice(PIECES)
        case _:
            # Of the same kind, so that the program mostly stays one: a name for a name, a sign for a sign.
            fitting = [k for k in words if tokens[k][0].isalnum() == tokens[i][0].isalnum()]
            tokens[i] = tokens[random.choice(fitting)]
    return "".join(tokens)


def in_a_row(random: Random) -> str:
    return " ".join(random.choice(PIECES) for _ in range(random.randrange(60)))
