"""What `examples/contract_checker` should give: searches over the graph of blocks and of values. And contracts to try
it on."""

from __future__ import annotations

import re
from collections import defaultdict
from random import Random
from typing import Any

Facts = dict[str, set[tuple[Any, ...]]]
RELATIONS = ("Public", "EntryBlock", "Edge", "At", "Operation", "Defines", "Uses", "Slotted", "BranchesOn")
SEVERITIES = {"reentrancy": 10, "chosen code": 9, "unguarded end": 8, "unguarded owner": 8, "unchecked call": 4}


def reached(start: set[Any], edges: dict[Any, set[Any]], without: Any = None) -> set[Any]:
    """What can be reached from some nodes without passing another."""
    found, waiting = set(), [node for node in start if node != without]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [n for n in edges[node] if n != without]
    return found


def graph(pairs: set[tuple[Any, ...]]) -> dict[Any, set[Any]]:
    made: dict[Any, set[Any]] = defaultdict(set)
    for a, b in pairs:
        made[a].add(b)
    return made


class Contract:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.edges = graph(facts["Edge"])
        self.entries = graph(facts["EntryBlock"])
        self.names = graph(facts["Operation"])
        self.blocks = {f: reached(starts, self.edges) for f, starts in list(self.entries.items())}
        self.dominates = {
            (f, a, b)
            for f, blocks in self.blocks.items()
            for a in blocks
            for b in blocks - reached(self.entries[f], self.edges, without=a)
        }
        self.strictly = {(f, a, b) for f, a, b in self.dominates if a != b}
        self.data()

    def controlled(self) -> set[tuple[str, str, str]]:
        found = set()
        for f, blocks in self.blocks.items():
            back = graph({(b, a) for a, b in self.facts["Edge"] if a in blocks and b in blocks})
            ends = {b for b in blocks if not self.edges[b]}
            for b in blocks:
                avoids = reached(ends, back, without=b)
                for d in avoids:
                    if any(c not in avoids for c in self.edges[d]):
                        found.add((f, b, d))
        return found

    def data(self) -> None:
        facts = self.facts
        self.defines, self.uses = graph(facts["Defines"]), graph(facts["Uses"])
        self.loads = {(i, s) for i, s in facts["Slotted"] if "load" in self.names[i]}
        self.stores = {(i, s) for i, s in facts["Slotted"] if "store" in self.names[i]}
        direct = {(v, u) for i, v in facts["Defines"] for u in self.uses[i]}
        for i, s in self.loads:
            for j, t in self.stores:
                if s == t:
                    direct |= {(v, u) for v in self.defines[i] for u in self.uses[j]}
        on = graph(direct)
        self.depends = {(v, u) for v in list(on) for u in reached(on[v], on)}
        source = set()
        for i, v in facts["Defines"]:
            for n in self.names[i]:
                if n.startswith("calldata") or n == "callvalue":
                    source.add((v, "input"))
                if n == "caller":
                    source.add((v, "sender"))
                if n in ("timestamp", "number") or "blockhash" in n:
                    source.add((v, "time"))
        self.tainted = source | {(v, k) for v, u in self.depends for w, k in source if u == w}
        self.looks = {(b, k) for b, v in facts["BranchesOn"] for w, k in self.tainted if v == w}

    def check(self) -> None:
        facts = self.facts
        at = {(i, b, n) for i, b, n in facts["At"]}
        inside = {(i, f) for i, b, _ in at for f, blocks in self.blocks.items() if b in blocks}
        public = {f for (f,) in facts["Public"]}
        after = {b: reached(self.edges[b], self.edges) for _, b, _ in at}
        follow = {(i, j) for i, b, n in at for j, c, m in at if (b == c and n < m) or c in after[b]}
        must = {
            (f, i, j)
            for f, blocks in self.blocks.items()
            for i, b, n in at
            for j, c, m in at
            if (b == c and b in blocks and n < m) or (f, b, c) in self.strictly
        }
        guarded = {(f, b) for f, d, b in self.strictly if (d, "sender") in self.looks}
        calls = {(i, f) for i, f in inside if self.names[i] & {"call", "delegatecall", "callcode"}}
        blocks_of = graph({(i, b) for i, b, _ in at})
        locked = set()
        for c, f in calls:
            for w, s in self.stores:
                if "lock" in s and (f, w, c) in must and any(t == s and (f, r, w) in must for r, t in self.loads):
                    locked.add((f, c))
        self.violations: set[tuple[str, str, str]] = set()
        self.warnings: set[tuple[str, str, str]] = set()
        for c, f in calls:
            for w, s in self.stores:
                reads = [r for r, t in self.loads if t == s and (r, c) in follow and (r, f) in inside]
                if (c, w) in follow and (w, f) in inside and reads:
                    if (f, c) in locked:
                        self.warnings.add(("reentrancy", f, c))
                    elif f in public:
                        self.violations.add(("reentrancy", f, c))
            looked = {v for _, v in facts["BranchesOn"]}
            looked |= {u for v, u in self.depends if v in looked}
            if not self.defines[c] & looked:
                self.violations.add(("unchecked call", f, c))
            if any((v, "time") in self.tainted for v in self.uses[c]):
                self.warnings.add(("depends on time", f, c))
        controlled = self.controlled()
        for c, f in calls:
            if any(g == f and b in blocks_of[c] and (d, "time") in self.looks for g, b, d in controlled):
                self.warnings.add(("depends on time", f, c))
        for i, f in inside:
            is_open = any((f, b) not in guarded for b in blocks_of[i])
            slots = {s for j, s in self.stores if j == i}
            if f in public and is_open:
                if any(s == "owner" or s.endswith("_owner") for s in slots):
                    self.violations.add(("unguarded owner", f, i))
                if "selfdestruct" in self.names[i]:
                    self.violations.add(("unguarded end", f, i))
                if slots and any((v, "input") in self.tainted for v in self.uses[i]):
                    self.warnings.add(("writes without a look", f, i))
            if "delegatecall" in self.names[i] and any((v, "input") in self.tainted for v in self.uses[i]):
                self.violations.add(("chosen code", f, i))
        placed = {i for i, _ in inside}
        self.warnings |= {("never reached", "", i) for i, _ in facts["Operation"] if i not in placed}


def expected(facts: Facts) -> Facts:
    contract = Contract(facts)
    contract.check()
    known = {f for f, _ in facts["EntryBlock"]}
    summary = set()
    for f in known:
        mine = [rule for rule, g, _ in contract.violations if g == f]
        others = sum(g == f for _, g, _ in contract.warnings)
        summary.add((f, len(mine), others, sum(SEVERITIES[rule] for rule in mine)))
    most = max((points for *_, points in summary), default=0)
    strictly = contract.strictly
    return {
        "Dominates": contract.dominates,
        "ImmediateDominator": {
            (f, a, b)
            for f, a, b in strictly
            if not any((f, a, c) in strictly and (f, c, b) in strictly for c in contract.blocks[f])
        },
        "ControlledBy": contract.controlled(),
        "DependsOn": contract.depends,
        "Tainted": contract.tainted,
        "Violation": contract.violations,
        "Warning": contract.warnings,
        "Safe": {(f,) for f, violations, warnings, _ in summary if not violations and not warnings},
        "Summary": summary,
        "Riskiest": {(f, points) for f, _, _, points in summary if points == most > 0},
    }


# --- contracts to try it on ----------------------------------------------------------------------------------------

OPERATIONS = (
    "load", "store", "load", "store", "call", "delegatecall", "caller", "calldataload", "timestamp", "add",
    "selfdestruct",
)  # fmt: skip
SLOTS = ("balance", "owner", "new_owner", "lock")
assert all(re.fullmatch(r"\w+", slot) for slot in SLOTS)


def random_facts(random: Random) -> Facts:
    facts: Facts = {name: set() for name in RELATIONS}
    for f in ("pay", "set"):
        blocks = [f"{f}{n}" for n in range(5)]
        facts["EntryBlock"].add((f, blocks[0]))
        if random.random() < 0.8:
            facts["Public"].add((f,))
        for n, b in enumerate(blocks):
            for target in random.sample(blocks, random.randrange(3)):
                facts["Edge"].add((b, target))
            if n + 1 < len(blocks) and random.random() < 0.7:
                facts["Edge"].add((b, blocks[n + 1]))
            for index in range(random.randrange(3)):
                i = f"{b}.{index}"
                o = random.choice(OPERATIONS)
                facts["At"].add((i, b, index))
                facts["Operation"].add((i, o))
                facts["Defines"].add((i, f"v{random.randrange(10)}"))
                if random.random() < 0.7:
                    facts["Uses"].add((i, f"v{random.randrange(10)}"))
                if o in ("load", "store"):
                    facts["Slotted"].add((i, random.choice(SLOTS)))
            if random.random() < 0.5:
                facts["BranchesOn"].add((b, f"v{random.randrange(10)}"))
    return facts
