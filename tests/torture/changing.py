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
_TOKEN = re.compile(r"\w+|[:<>=!]{2}|\S|\s+")
_KINDS = tuple(map(re.compile, (r"[a-z]", r"[ep][0-9]", r"[0-9]+|nil", r"[<>=!]=?|[-+*/%]", r"[a-z]{2,}", r"[A-Z]\w*")))
"""Variables, relations, constants, signs, words, types."""


def changed_programs(random: Random, number: int) -> Iterator[str]:
    """A few lines of a program that is accepted, mostly with what they use declared, changed again and again."""
    lines = seeded_program(random.randrange(2**40), ALL).text.splitlines()
    declared = {line.split("(")[0].split()[1]: line for line in lines if line.startswith((".decl", ".type"))}
    others = [line for line in lines if not line.startswith((".decl", ".type"))]
    for _ in range(number):
        few = "\n".join(random.sample(others, min(len(others), random.choice((1, 1, 1, 2, 2, 6)))))
        named = set(_TOKEN.findall(few))
        used = [line for name, line in declared.items() if name in named or random.random() < 0.05]
        types = [declared[name] for name in ("R", "A") if any(f": {name}" in line for line in used)]
        text = "\n".join([*types, *used, few] if random.random() < 0.9 else [*used, few])
        for _ in range(random.choice((1, 1, 2, 4))):
            text = (by_characters if random.random() < 0.25 else by_tokens)(random, text)
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
    """A token in the place of another, mostly of the same kind; left out, repeated, or something else."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        return text
    i, j = random.randrange(len(tokens)), random.randrange(len(tokens))
    match random.randrange(12):
        case 0:
            tokens[i] = ""
        case 1:
            tokens[i] += f" {tokens[i]}"
        case 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        case 3:
            tokens[i] = random.choice(PIECES)
        case _:
            kinds = random.choice(_KINDS)
            fitting = [k for k, token in enumerate(tokens) if kinds.fullmatch(token)]
            if fitting:
                tokens[random.choice(fitting)] = tokens[random.choice(fitting)]
    return "".join(tokens)


def in_a_row(random: Random) -> str:
    return " ".join(random.choice(PIECES) for _ in range(random.randrange(60)))
