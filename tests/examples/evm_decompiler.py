"""What `examples/evm_decompiler` should give: a machine on stacks of symbols, run until it has seen all states. And
programs to try it on. Stacks and contexts are nested pairs that end in None."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

Facts = dict[str, set[tuple[Any, ...]]]

MOST_VALUES, LARGEST = 8, 64
EFFECTS = {
    "ADD": (2, 1), "SUB": (2, 1), "MUL": (2, 1), "EQ": (2, 1), "LT": (2, 1), "AND": (2, 1), "SHA3": (2, 1),
    "ISZERO": (1, 1), "SLOAD": (1, 1), "MLOAD": (1, 1), "CALLDATALOAD": (1, 1),
    "CALLER": (0, 1), "CALLVALUE": (0, 1), "TIMESTAMP": (0, 1),
    "SSTORE": (2, 0), "MSTORE": (2, 0), "POP": (1, 0), "LOG": (2, 0),
    "JUMPDEST": (0, 0), "JUMP": (1, 0), "JUMPI": (2, 0), "RETURN": (2, 0), "REVERT": (2, 0), "STOP": (0, 0),
}  # fmt: skip
ENDS = {"JUMP", "RETURN", "REVERT", "STOP"}


def nested(values: tuple[Any, ...]) -> Any:
    """A stack as pairs."""
    return None if not values else (values[0], nested(values[1:]))


class Machine:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.opcodes: dict[str, set[str]] = defaultdict(set)
        for s, o in facts["Opcodes"]:
            self.opcodes[s].add(o)
        self.pushed: dict[str, set[int]] = defaultdict(set)
        for s, v in facts["Pushed"]:
            self.pushed[s].add(v)
        self.held: dict[str, dict[int, str]] = defaultdict(dict)
        for b, i, s in facts["Holds"]:
            self.held[b][i] = s
        self.last = {b: held[max(held)] for b, held in self.held.items()}
        self.first = {b: held[0] for b, held in self.held.items() if 0 in held}
        self.targets = {
            (b, a) for b, a in facts["Address"] if b in self.first and "JUMPDEST" in self.opcodes[self.first[b]]
        }
        self.find_calls()
        self.before: set[tuple[Any, str, tuple[Any, ...]]] = set()
        self.after: set[tuple[Any, str, tuple[Any, ...]]] = set()
        self.goes: set[tuple[Any, str, str]] = set()
        self.jumps: set[tuple[Any, str, str]] = set()
        self.edges: set[tuple[Any, str, Any, str]] = set()
        self.run()

    def find_calls(self) -> None:
        addresses = {a for _, a in self.targets}
        self.calls, self.returns = set(), set()
        for b, held in self.held.items():
            values = {v for s in held.values() for v in self.pushed[s]}
            jumps = "JUMP" in self.opcodes[self.last[b]]
            behind = {a for c, t in self.facts["FallsTo"] if c == b for u, a in self.targets if u == t}
            if jumps and values & behind:
                self.calls.add(b)
            if jumps and not values & addresses:
                self.returns.add(b)

    def run(self) -> None:
        starts = {(None, self.first[b], ()) for (b,) in self.facts["FirstBlock"] if b in self.first}
        following = {}
        for held in self.held.values():
            for i, s in held.items():
                if i + 1 in held:
                    following[s] = held[i + 1]
        size = -1
        new = starts
        while new or size != len(self.before) + len(self.after) + len(self.edges):
            size = len(self.before) + len(self.after) + len(self.edges)
            self.before |= new
            results = {(c, s, after) for c, s, stack in new for after in self.step(s, stack)}
            self.after |= results
            found = {(c, following[s], stack) for c, s, stack in results if s in following}
            found |= self.across_blocks()
            new = found - self.before

    def across_blocks(self) -> set[tuple[Any, str, tuple[Any, ...]]]:
        ends = {s: b for b, s in self.last.items()}
        for c, s, stack in self.before:
            if s in ends and self.opcodes[s] & {"JUMP", "JUMPI"} and stack and stack[0][0] == "$Number":
                self.jumps |= {(c, ends[s], t) for t, a in self.targets if a == stack[0][1]}
        self.goes |= self.jumps
        for c, s, _ in self.after:
            if s in ends and not self.opcodes[s] & ENDS:
                self.goes |= {(c, ends[s], t) for b, t in self.facts["FallsTo"] if b == ends[s]}
        for c, b, t in self.goes:
            self.edges.add((c, b, self.context(c, b), t))
        stacks: dict[tuple[Any, str], set[tuple[Any, ...]]] = defaultdict(set)
        for c, s, stack in self.after:
            stacks[c, s].add(stack)
        return {
            (n, self.first[t], stack)
            for c, b, n, t in self.edges
            if t in self.first
            for stack in stacks[c, self.last[b]]
        }

    def context(self, c: Any, b: str) -> Any:
        return (b, None) if b in self.calls else None if b in self.returns else c

    def step(self, s: str, stack: tuple[Any, ...]) -> set[tuple[Any, ...]]:
        found = set()
        for o in self.opcodes[s]:
            if o == "PUSH" and len(stack) < MOST_VALUES:
                found |= {(("$Number", v), *stack) for v in self.pushed[s]}
            elif o.startswith("DUP") and int(o[3:]) <= len(stack) < MOST_VALUES:
                found.add((stack[int(o[3:]) - 1], *stack))
            elif o.startswith("SWAP") and int(o[4:]) < len(stack):
                n = int(o[4:])
                found.add((stack[n], *stack[1:n], stack[0], *stack[n + 1 :]))
            elif o in EFFECTS and EFFECTS[o][0] <= len(stack):
                takes, gives = EFFECTS[o]
                if not gives:
                    found.add(stack[takes:])
                elif o in ("ADD", "SUB"):
                    found.add((self.sum(s, o, *stack[:2]), *stack[2:]))
                elif len(stack) - takes < MOST_VALUES:
                    found.add((("$Result", s), *stack[takes:]))
        return found

    def sum(self, s: str, o: str, a: Any, b: Any) -> Any:
        if a[0] == b[0] == "$Number":
            n = a[1] + b[1] if o == "ADD" else a[1] - b[1]
            if 0 <= n < LARGEST:
                return ("$Number", n)
        return ("$Result", s)


def shown(value: Any) -> str:
    return str(value[1]) if value[0] == "$Number" else f"v_{value[1]}"


def expected(facts: Facts) -> Facts:
    machine = Machine(facts)
    operands, code = set(), set()
    problems = {(s, "never reached") for s, _ in facts["Opcodes"]} - {
        (s, "never reached") for _, s, _ in machine.before
    }
    storage = set()
    for _, s, stack in machine.before:
        for o in machine.opcodes[s]:
            if o == "PUSH" and len(stack) >= MOST_VALUES:
                problems.add((s, "the stack is full"))
            if o not in EFFECTS:
                continue
            takes, gives = EFFECTS[o]
            left = f"v_{s} = " if gives else ""
            operands |= {(s, i, value) for i, value in enumerate(stack[:takes])}
            if len(stack) < takes:
                problems.add((s, "the stack is empty"))
            elif o not in ("POP", "JUMPDEST"):
                code.add((s, f"{left}{o}({', '.join(map(shown, stack[:takes]))})"))
    for s, i, value in operands:
        if i:
            continue
        for o in machine.opcodes[s]:
            if o in ("JUMP", "JUMPI"):
                if value[0] == "$Result":
                    problems.add((s, "the target is not known"))
                elif not any(a == value[1] for _, a in machine.targets):
                    problems.add((s, "the target is no JUMPDEST"))
            if o in ("SLOAD", "SSTORE") and value[0] == "$Number":
                storage.add((value[1], "read" if o == "SLOAD" else "written", s))
    called: dict[str, set[str]] = defaultdict(set)
    for _, b, t in machine.jumps:
        if b in machine.calls:
            called[t].add(b)
    starts = {s: b for b, s in machine.first.items()}
    runs = {(c, starts[s]) for c, s, _ in machine.before if s in starts}
    stacks: dict[str, int] = defaultdict(int)
    for _, s, _ in machine.before:
        stacks[s] += 1
    return {
        "Runs": runs,
        "BlockEdge": machine.edges,
        "PrivateFunction": {(f, len(callers)) for f, callers in called.items()},
        "Loop": _loops({(b, t) for _, b, _, t in machine.edges}),
        "Operand": operands,
        "Code": code,
        "Storage": storage,
        "Problem": problems,
        "Statistics": {
            ("blocks", len(facts["Address"])),
            ("blocks in contexts", len(runs)),
            ("statements with several stacks", sum(n > 1 for n in stacks.values())),
        },
    }


def _loops(edges: set[tuple[str, str]]) -> set[tuple[Any, ...]]:
    found = set()
    for start in {b for b, _ in edges}:
        seen, waiting = set(), [t for b, t in edges if b == start]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += [t for b, t in edges if b == node]
        if start in seen:
            found.add((start,))
    return found


# --- programs to try it on -----------------------------------------------------------------------------------------


def random_facts(random: Random) -> Facts:
    """A few blocks that push a little, compute, and jump to each other."""
    facts: Facts = {name: set() for name in ("FirstBlock", "Address", "FallsTo", "Holds", "Opcodes", "Pushed")}
    blocks = [f"b{n}" for n in range(5)]
    facts["FirstBlock"].add(("b0",))
    plain = ["ADD", "SUB", "EQ", "SLOAD", "SSTORE", "POP", "CALLER", "DUP1", "DUP2", "SWAP1", "SWAP2"]
    for n, b in enumerate(blocks):
        facts["Address"].add((b, 10 * n))
        if n + 1 < len(blocks):
            facts["FallsTo"].add((b, blocks[n + 1]))
        words = ["JUMPDEST"] if n else []
        words += [random.choice(["PUSH", random.choice(plain)]) for _ in range(random.randrange(1, 5))]
        words += random.choice([["PUSH", "JUMP"], ["PUSH", "JUMPI"], ["JUMP"], ["STOP"], []])
        for index, o in enumerate(words):
            s = f"{b}.{index}"
            facts["Holds"].add((b, index, s))
            facts["Opcodes"].add((s, o))
            if o == "PUSH":
                facts["Pushed"].add((s, random.choice([0, 1, 10, 20, 30, 40])))
    return facts
