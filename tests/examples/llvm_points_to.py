"""What `examples/llvm_points_to` should give: sets that grow until nothing is new, and a union-find. And programs to
try it on. Objects are tuples with the name of their branch first."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

Facts = dict[str, set[tuple[Any, ...]]]
Object = tuple[Any, ...]

NULL: Object = ("$Null",)
RELATIONS = (
    "Function", "Parameter", "Returns", "RegisterIn", "StackAllocation", "HeapAllocation", "GlobalAddress",
    "FunctionAddress", "NullConstant", "SiteSize", "GlobalSize", "Copy", "FieldAddress", "LoadFrom", "StoreTo",
    "CopyMemory", "DirectCall", "IndirectCall", "Argument", "Result",
)  # fmt: skip


class Module:
    """Objects and sizes."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.functions = {f for (f,) in facts["Function"]}
        self.address = {(r, ("$Stack", f, s)) for r, s, f in facts["StackAllocation"]}
        self.address |= {(r, ("$Heap", s)) for r, s in facts["HeapAllocation"]}
        self.address |= {(r, ("$Global", g)) for r, g in facts["GlobalAddress"]}
        self.address |= {(r, ("$Code", f)) for r, f in facts["FunctionAddress"] if f in self.functions}
        self.address |= {(r, NULL) for (r,) in facts["NullConstant"]}
        self.memory = {o for _, o in self.address if o[0] in ("$Stack", "$Heap", "$Global")}

    def size(self, o: Object) -> int:
        listed = self.facts["GlobalSize" if o[0] == "$Global" else "SiteSize"]
        return max((n for name, n in listed if name == o[-1]), default=1)

    def whole(self, p: Object) -> Object:
        return p[1] if p[0] == "$Field" else p

    def index(self, p: Object) -> int:
        return p[2] if p[0] == "$Field" else 0

    def part(self, o: Object, i: int) -> Object:
        return o if i == 0 else ("$Field", o, i)

    def moved(self, p: Object, n: int) -> Object:
        """Where an offset leads: beyond the end, to the object as a whole."""
        o, i = self.whole(p), self.index(p) + n
        return self.part(o, i) if 0 <= i < self.size(o) else o

    def is_memory(self, p: Object) -> bool:
        return self.whole(p) in self.memory


class Subsets:
    def __init__(self, module: Module) -> None:
        self.module, facts = module, module.facts
        self.points: dict[str, set[Object]] = defaultdict(set)
        self.holds: dict[Object, set[Object]] = defaultdict(set)
        self.calls = {(s, f) for s, f, _ in facts["DirectCall"] if f in module.functions}
        for r, o in module.address:
            self.points[r].add(o)
        before = -1
        while before != (now := self.count()):
            before = now
            self.step(facts)

    def count(self) -> int:
        return len(self.calls) + sum(map(len, self.points.values())) + sum(map(len, self.holds.values()))

    def step(self, facts: Facts) -> None:
        module, points, holds = self.module, self.points, self.holds
        for a, b in facts["Copy"]:
            points[b] |= points[a]
        for base, n, to in facts["FieldAddress"]:
            points[to] |= {module.moved(p, n) for p in points[base] if module.is_memory(p)}
        for pointer, to in facts["LoadFrom"]:
            for p in list(points[pointer]):
                points[to] |= holds[p]
        for value, pointer in facts["StoreTo"]:
            for p in points[pointer]:
                if module.is_memory(p):
                    holds[p] |= points[value]
        for a, b in facts["CopyMemory"]:
            for p in filter(module.is_memory, points[a]):
                for q in filter(module.is_memory, points[b]):
                    self.copy(p, q)
        for s, r, _ in facts["IndirectCall"]:
            self.calls |= {(s, o[1]) for o in points[r] if o[0] == "$Code"}
        for s, f in self.calls:
            for t, i, actual in facts["Argument"]:
                for g, j, formal in facts["Parameter"]:
                    if (s, f, i) == (t, g, j):
                        points[formal] |= points[actual]
            for t, to in facts["Result"]:
                for g, value in facts["Returns"]:
                    if (s, f) == (t, g):
                        points[to] |= points[value]

    def copy(self, p: Object, q: Object) -> None:
        module = self.module
        x, i, y, j = module.whole(p), module.index(p), module.whole(q), module.index(q)
        for k in range(min(module.size(x) - i, module.size(y) - j)):
            self.holds[module.part(y, j + k)] |= self.holds[module.part(x, i + k)]


class Classes:
    """Every register has a cell, every class of objects one content: equal things are merged."""

    def __init__(self, module: Module) -> None:
        facts = module.facts
        self.above: dict[Any, Any] = {}
        self.content: dict[Any, Any] = {}  # of a class of objects, and of the class that a register points to
        self.objects = {o for _, o in module.address}
        for r, o in module.address:
            self.join(self.pointee(r), o)
        is_changed = True
        while is_changed:
            before = self.state()
            for a, b in facts["Copy"]:
                self.join(self.pointee(a), self.pointee(b))
            for a, _, b in facts["FieldAddress"]:
                self.join(self.pointee(a), self.pointee(b))
            for pointer, to in facts["LoadFrom"]:
                self.move(pointer, to)
            for value, pointer in facts["StoreTo"]:
                self.move(pointer, value)
            for a, b in facts["CopyMemory"]:
                if self.members(a) and self.members(b):
                    self.join(self.inside(self.pointee(a)), self.inside(self.pointee(b)))
            for s, f in self.reached(module):
                for t, i, actual in facts["Argument"]:
                    for g, j, formal in facts["Parameter"]:
                        if (s, f, i) == (t, g, j):
                            self.join(self.pointee(actual), self.pointee(formal))
                for t, to in facts["Result"]:
                    for g, value in facts["Returns"]:
                        if (s, f) == (t, g):
                            self.join(self.pointee(value), self.pointee(to))
            is_changed = before != self.state()

    def reached(self, module: Module) -> set[tuple[str, str]]:
        found = {(s, f) for s, f, _ in module.facts["DirectCall"] if f in module.functions}
        for s, r, _ in module.facts["IndirectCall"]:
            found |= {(s, o[1]) for o in self.members(r) if o[0] == "$Code"}
        return found

    def move(self, pointer: str, register: str) -> None:
        # A pointer to nothing moves nothing.
        if self.members(pointer):
            self.join(self.inside(self.pointee(pointer)), self.pointee(register))

    def find(self, x: Any) -> Any:
        while x in self.above:
            x = self.above[x]
        return x

    def pointee(self, register: str) -> Any:
        return self.find(("register", register))

    def inside(self, x: Any) -> Any:
        x = self.find(x)
        return self.find(self.content.setdefault(x, ("inside", x)))

    def join(self, a: Any, b: Any) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        mine, other = self.content.pop(a, None), self.content.get(b)
        self.above[a] = b
        if mine is not None and other is not None:
            self.join(mine, other)
        elif mine is not None:
            self.content[self.find(b)] = mine

    def members(self, register: str) -> set[Object]:
        x = self.pointee(register)
        return {o for o in self.objects if self.find(o) == x}

    def state(self) -> tuple[int, int]:
        return len(self.above), len(self.content)


def expected(facts: Facts) -> Facts:
    module = Module(facts)
    subsets, classes = Subsets(module), Classes(module)
    points = {(r, o) for r, objects in subsets.points.items() for o in objects}
    registers = {r for name in RELATIONS for row in facts[name] for r in row if isinstance(r, str)}
    coarser = set()
    for r in registers:
        n, m = len({module.whole(o) for o in subsets.points.get(r, ())}), len(classes.members(r))
        if n < m:
            coarser.add((r, n, m))
    used = {p for p, _ in facts["LoadFrom"]} | {p for _, p in facts["StoreTo"]}
    aliases = {
        (a, b)
        for a in used
        for b in used
        if a < b and any(module.is_memory(o) for o in subsets.points[a] & subsets.points[b])
    }
    return {
        "Points": points,
        "Holds": {(p, o) for p, objects in subsets.holds.items() for o in objects},
        "Calls": subsets.calls,
        "Same": _same(classes, registers),
        "Coarser": coarser,
        "MayAlias": aliases,
        "Modifies": _modified(module, subsets),
        "Finding": _findings(module, subsets, used),
    }


def _same(classes: Classes, registers: set[str]) -> set[tuple[Any, ...]]:
    return {(a, b) for a in classes.objects for b in classes.objects if classes.find(a) == classes.find(b)}


def _modified(module: Module, subsets: Subsets) -> set[tuple[Any, ...]]:
    facts = module.facts
    written = {p for _, p in facts["StoreTo"]} | {p for _, p in facts["CopyMemory"]}
    found: set[tuple[Any, ...]] = set()
    for p, f in facts["RegisterIn"]:
        if p in written:
            found |= {(f, module.whole(o)) for o in subsets.points[p] if module.is_memory(o)}
    sites = {(s, f) for s, _, f in facts["DirectCall"] | facts["IndirectCall"]}
    while True:
        more = {
            (f, o)
            for s, f in sites
            for t, g in subsets.calls
            if s == t
            for h, o in found
            if h == g and not _is_own(module, g, o)
        }
        if more <= found:
            return found
        found |= more


def _is_own(module: Module, f: str, o: Object) -> bool:
    return o[0] == "$Stack" and o[1] == f


def _findings(module: Module, subsets: Subsets, used: set[str]) -> set[tuple[Any, ...]]:
    facts, found = module.facts, set()
    for r in used:
        for o in subsets.points[r]:
            if o == NULL:
                found.add(("null is dereferenced", r, o))
            if o[0] == "$Code":
                found.add(("code is dereferenced", r, o))
    for f, r in facts["Returns"]:
        for o in map(module.whole, subsets.points[r]):
            if _is_own(module, f, o):
                found.add(("a stack object is returned", f, o))
    for p, objects in subsets.holds.items():
        if module.whole(p)[0] == "$Global":
            for o in map(module.whole, objects):
                if o[0] == "$Stack":
                    found.add(("a stack object is kept", module.whole(p)[1], o))
    for s, r, _ in facts["IndirectCall"]:
        found |= {("what is called is no code", s, module.whole(o)) for o in subsets.points[r] if module.is_memory(o)}
        if not any(t == s for t, _ in subsets.calls):
            found.add(("nothing to call", s, NULL))
    return found


# --- programs to try it on -----------------------------------------------------------------------------------------


def random_facts(random: Random) -> Facts:
    facts: Facts = {name: set() for name in RELATIONS}
    functions = ["main", "f", "g"]
    facts["Function"] |= {(f,) for f in functions}
    registers = {f: [f"%{f}.{x}" for x in "abcde"] for f in functions}
    for f in functions:
        facts["RegisterIn"] |= {(r, f) for r in registers[f]}
        facts["Parameter"].add((f, 0, registers[f][0]))
        facts["Returns"].add((f, registers[f][1]))
        for number in range(random.randrange(4, 9)):
            _statement(random, facts, f, registers[f], functions, f"{f}:{number}")
    facts["GlobalSize"] |= {("table", random.randrange(1, 4))}
    return facts


def _statement(random: Random, facts: Facts, f: str, registers: list[str], functions: list[str], site: str) -> None:
    a, b = random.choice(registers), random.choice(registers)
    match random.choice(
        [
            "stack",
            "heap",
            "global",
            "code",
            "null",
            "copy",
            "field",
            "load",
            "store",
            "store",
            "copymem",
            "call",
            "icall",
        ]
    ):
        case "stack":
            facts["StackAllocation"].add((a, site, f))
            facts["SiteSize"].add((site, random.randrange(1, 4)))
        case "heap":
            facts["HeapAllocation"].add((a, site))
            if random.random() < 0.5:
                facts["SiteSize"].add((site, random.randrange(1, 4)))
        case "global":
            facts["GlobalAddress"].add((a, random.choice(["table", "last"])))
        case "code":
            facts["FunctionAddress"].add((a, random.choice(functions)))
        case "null":
            facts["NullConstant"].add((a,))
        case "copy":
            facts["Copy"].add((a, b))
        case "field":
            facts["FieldAddress"].add((a, random.randrange(4), b))
        case "load":
            facts["LoadFrom"].add((a, b))
        case "store":
            facts["StoreTo"].add((a, b))
        case "copymem":
            facts["CopyMemory"].add((a, b))
        case kind:
            if kind == "call":
                facts["DirectCall"].add((site, random.choice(functions), f))
            else:
                facts["IndirectCall"].add((site, a, f))
            facts["Argument"].add((site, 0, b))
            facts["Result"].add((site, random.choice(registers)))
