"""What `examples/disassembler` should give: searches over a graph of addresses, written without rules. And programs to
try it on."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

Facts = dict[str, set[tuple[Any, ...]]]

KINDS = {"jmp": "jump", "jz": "branch", "call": "call", "switch": "switch", "ret": "return", "hlt": "halt"}
WEIGHTS = {"entry": 20, "label": 10, "call": 6, "jump": 4, "table": 3, "pointer": 2}


class Disassembly:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.decoded: dict[int, set[tuple[int, str, int]]] = defaultdict(set)
        for a, n, o, x in facts["Instruction"]:
            self.decoded[a].add((n, o, x))
        self.words: dict[int, set[int]] = defaultdict(set)
        for a, value in facts["Word"]:
            self.words[a].add(value)
        self.entries = {a for (a,) in facts["Entry"]}
        self.labels: dict[int, set[str]] = defaultdict(set)
        for a, name in facts["Label"]:
            self.labels[a].add(name)
        self.find_sound()
        self.collect()
        self.resolve()
        self.group()

    def kinds(self, a: int) -> set[str]:
        return {KINDS.get(o, "next") for _, o, _ in self.decoded[a]}

    def falls(self, a: int) -> set[int]:
        # Sizes of one reading and kinds of another are told apart only by address.
        goes_on = self.kinds(a) & {"next", "branch", "call"}
        return {a + n for n, _, _ in self.decoded[a]} if goes_on else set()

    def targets(self, a: int) -> set[tuple[int, str]]:
        kinds = self.kinds(a) & {"jump", "branch", "call"}
        return {(a + n + x, k) for n, _, x in self.decoded[a] for k in kinds}

    def find_sound(self) -> None:
        code = [(lo, hi) for lo, hi, kind in self.facts["Section"] if kind == "code"]
        addresses = list(self.decoded)
        possible = {
            a for a in addresses for n, _, _ in self.decoded[a] if any(lo <= a and a + n <= hi for lo, hi in code)
        }
        bad = {a for a in addresses if a not in possible}
        needs = {a: self.falls(a) | {t for t, _ in self.targets(a)} for a in addresses}
        waiting = True
        while waiting:
            more = {a for a in addresses if a not in bad and any(b not in possible or b in bad for b in needs[a])}
            bad |= more
            waiting = bool(more)
        self.sound = possible - bad

    def table(self, a: int) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        if "switch" not in self.kinds(a):
            return found
        operands = {x for _, _, x in self.decoded[a]}
        index = 0
        while True:
            entries = {t for x in operands for t in self.words[x + 4 * index] if t in self.sound}
            if not entries:
                return found
            found |= {(index, t) for t in entries}
            index += 1

    def collect(self) -> None:
        self.evidence: set[tuple[int, str, int]] = set()
        self.evidence |= {(a, "entry", a) for a in self.entries & self.sound}
        self.evidence |= {(a, "label", a) for a in self.labels if a in self.sound}
        self.evidence |= {(t, "pointer", a) for a, values in self.words.items() for t in values if t in self.sound}
        self.tables = {a: self.table(a) for a in list(self.decoded)}
        self.runs: set[tuple[int, int]] = set()
        waiting = [(b, b) for b, _, _ in self.evidence]
        while waiting:
            b, a = waiting.pop()
            if (b, a) in self.runs:
                continue
            self.runs.add((b, a))
            waiting += [(b, n) for n in self.falls(a)]
            found = {(t, "call" if k == "call" else "jump", a) for t, k in self.targets(a)}
            found |= {(t, "table", a) for _, t in self.tables.get(a, ())}
            self.evidence |= found
            waiting += [(t, t) for t, _, _ in found]
        scores: dict[int, int] = defaultdict(int)
        for b, reason, _ in self.evidence:
            scores[b] += WEIGHTS[reason]
        self.points: dict[int, int] = {}
        for b, a in self.runs:
            self.points[a] = max(self.points.get(a, 0), scores[b])

    def resolve(self) -> None:
        covers = {(a, a + i) for a in self.points for n, _, _ in self.decoded[a] for i in range(n)}
        best: dict[int, int] = {}
        for a, x in covers:
            if x not in best or (-self.points[a], a) < (-self.points[best[x]], best[x]):
                best[x] = a
        loses = {a for a, x in covers if best[x] != a}
        self.dropped = {(a, self.points[a], best[x]) for a, x in covers if best[x] != a}
        self.code: set[int] = set()
        waiting = [a for a, reason, _ in self.evidence if reason in ("entry", "label", "pointer")]
        while waiting:
            a = waiting.pop()
            if a not in self.code and a not in loses:
                self.code.add(a)
                waiting += self.follows(a)

    def follows(self, a: int) -> set[int]:
        return self.falls(a) | {t for t, _ in self.targets(a)} | {t for _, t in self.tables.get(a, ())}

    def flow(self, a: int) -> set[int]:
        found = self.falls(a) | {t for t, k in self.targets(a) if k != "call"}
        return (found | {t for _, t in self.tables.get(a, ())}) & self.code

    def group(self) -> None:
        self.starts = {a for a in self.code if a in self.entries or self.labels[a]}
        self.starts |= {t for a in self.code for t, k in self.targets(a) if k == "call"} & self.code
        # Breadth first: a step after the other, in each the candidates in order.
        self.function: dict[int, int] = {}
        candidates = sorted((f, f) for f in self.starts)
        while candidates:
            new = []
            for a, f in candidates:
                if a not in self.function:
                    self.function[a] = f
                    new.append((a, f))
            candidates = sorted({(n, f) for a, f in new for n in self.flow(a)})
        self.names = {f: min(self.labels[f]) if self.labels[f] else f"function_{f}" for f in self.starts}
        self.depth = dict.fromkeys(self.starts, 0)
        is_changed = True
        while is_changed:
            is_changed = False
            for a, d in list(self.depth.items()):
                if d >= 256:
                    continue
                for n in self.flow(a):
                    for _, o, x in self.decoded[a]:
                        pushed = {"push": 4, "pop": -4, "enter": x, "leave": -x}.get(o, 0)
                        new_depth = max(-64, d + pushed)
                        if n not in self.depth or new_depth < self.depth[n]:
                            self.depth[n] = new_depth
                            is_changed = True
        self.distance: dict[int, int] = {}
        level, steps = self.entries & self.code, 0
        while level:
            for a in level:
                self.distance[a] = steps
            level = {n for a in level for n in self.follows(a) & self.code} - set(self.distance)
            steps += 1

    def listing(self) -> set[tuple[int, str, str]]:
        lines = set()
        for a, f in self.function.items():
            name, kinds = self.names[f], self.kinds(a)
            for _, o, x in self.decoded[a]:
                for t, k in self.targets(a):
                    if k != "call":
                        lines.add((a, name, f"{o} -> {t}"))
                    elif t in self.names:
                        lines.add((a, name, f"{o} {self.names[t]}"))
                if "switch" in kinds:
                    lines.add((a, name, f"{o} of {len(self.tables[a])}"))
                if "next" in kinds:
                    lines.add((a, name, f"{o} {x}"))
                if kinds & {"return", "halt"}:
                    lines.add((a, name, o))
        return lines

    def suspicious(self) -> set[tuple[int, str]]:
        found = {(a, "the stack is below where the function began") for a, d in self.depth.items() if d < 0}
        for a, d in self.depth.items():
            if d > 0 and "return" in self.kinds(a) and a in self.code:
                found.add((a, "returns with something on the stack"))
        found |= {(f, "a function that no entry reaches") for f in self.starts if f not in self.distance}
        for f, name in self.names.items():
            stem, _, number = name.rpartition(".part.")
            if name.startswith("_") or (stem + number != name and number.isdecimal()):
                found.add((f, "a name as of a compiler"))
        for a in self.code:
            if "switch" in self.kinds(a) and not self.tables[a]:
                found.add((a, "a table without entries"))
        for a, f in self.function.items():
            if any(self.function.get(n, f) != f for n in self.falls(a)):
                found.add((a, "falls into another function"))
        return found


def expected(facts: Facts) -> Facts:
    found = Disassembly(facts)
    sizes = set()
    for f in found.starts:
        mine = [a for a, g in found.function.items() if g == f]
        sizes.add((f, len(mine), sum(n for a in mine for n, _, _ in found.decoded[a])))
    return {
        "Code": {(a,) for a in found.code},
        "Dropped": found.dropped,
        "FunctionOf": set(found.function.items()),
        "FunctionName": set(found.names.items()),
        "FunctionSize": sizes,
        "StackDepth": set(found.depth.items()),
        "Distance": set(found.distance.items()),
        "Table": {(a, i, t) for a, entries in found.tables.items() for i, t in entries},
        "Listing": found.listing(),
        "Suspicious": found.suspicious(),
    }


# --- programs to try it on -----------------------------------------------------------------------------------------

SIZES = {
    "jmp": 2,
    "jz": 2,
    "call": 3,
    "switch": 3,
    "ret": 1,
    "hlt": 1,
    "push": 2,
    "pop": 1,
    "enter": 2,
    "leave": 2,
    "add": 1,
    "mov": 2,
}


def random_facts(random: Random) -> Facts:
    """Forty bytes of code, decoded at most offsets; a few words, some of which point into it."""
    size = 40
    facts: Facts = {"Instruction": set(), "Section": {(0, size, "code"), (100, 140, "data")}, "Word": set()}
    for a in range(size):
        if random.random() < 0.9:
            o = random.choice(list(SIZES))
            operand = {"jmp": 0, "jz": 0, "call": 0}.get(o)
            if operand is not None:
                operand = random.randrange(size) - a - SIZES[o]
            elif o == "switch":
                operand = 100 + 4 * random.randrange(6)
            else:
                operand = 4 * random.randrange(4)
            facts["Instruction"].add((a, SIZES[o], o, operand))
    facts["Word"] |= {(100 + 4 * i, random.randrange(size)) for i in range(10) if random.random() < 0.7}
    facts["Entry"] = {(random.randrange(size),) for _ in range(3)}
    names = ["main", "_start", "copy.part.0", "helper"]
    facts["Label"] = {(random.randrange(size), random.choice(names)) for _ in range(3)}
    return facts
