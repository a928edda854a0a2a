"""What `examples/java_points_to` should give: a worklist over (context, variable) and (object, field), straight from
the definition of the analysis, with contexts as functions. And programs to try it on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

Facts = dict[str, set[tuple[Any, ...]]]
Context = tuple[str, "Context"] | None
Merge = Callable[[Context, str, Context, str], Context]

RELATIONS = {
    "DirectSuper": 2, "DirectInterface": 2, "Concrete": 1, "Declares": 3, "ThisVariable": 2, "FormalParameter": 3,
    "FormalReturn": 2, "MainMethod": 1, "Allocate": 3, "HeapType": 2, "Move": 2, "CastTo": 4, "Load": 3, "Store": 3,
    "LoadStatic": 3, "StoreStatic": 2, "Throw": 2, "Catch": 3, "VirtualCall": 4, "SpecialCall": 4, "StaticCall": 3,
    "ActualParameter": 3, "ActualReturn": 2,
}  # fmt: skip


class Hierarchy:
    def __init__(self, facts: Facts) -> None:
        pairs = facts["DirectSuper"] | facts["DirectInterface"]
        self.types = {t for pair in pairs for t in pair} | {t for (t,) in facts["Concrete"]}
        self.direct = pairs
        self.supers = facts["DirectSuper"]
        self.concrete = {t for (t,) in facts["Concrete"]}
        self.declares = facts["Declares"]

    def above(self, kind: str) -> set[str]:
        found, waiting = set(), [kind] if kind in self.types else []
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += [a for t, a in self.direct if t == current]
        return found

    def dispatch(self, kind: str, signature: str) -> set[str]:
        """Breadth first: every type that declares the signature ends its branch of the search."""
        if kind not in self.concrete:
            return set()
        found: set[str] = set()
        seen, waiting = set(), [kind]
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            own = {m for t, s, m in self.declares if t == current and s == signature}
            found |= own
            if not own:
                waiting += [a for t, a in self.supers if t == current]
        return found


class Analysis:
    """One analysis: grows sets until nothing is new. Slow, and easy to believe."""

    def __init__(
        self, facts: Facts, virtual: Merge, static: Callable[[Context, str], Context],
        heap: Callable[[Context], Context],
    ) -> None:  # fmt: skip
        self.facts = facts
        self.hierarchy = Hierarchy(facts)
        self.virtual, self.static, self.heap = virtual, static, heap
        self.points: dict[tuple[Context, str], set[tuple[Context, str]]] = defaultdict(set)
        self.fields: dict[tuple[Context, str, str], set[tuple[Context, str]]] = defaultdict(set)
        self.statics: dict[str, set[tuple[Context, str]]] = defaultdict(set)
        self.throws: dict[tuple[Context, str], set[tuple[Context, str]]] = defaultdict(set)
        self.reachable: set[tuple[Context, str]] = {(None, m) for (m,) in facts["MainMethod"]}
        self.edges: set[tuple[Context, str, Context, str]] = set()
        self.types: dict[str, set[str]] = defaultdict(set)
        for h, t in facts["HeapType"]:
            self.types[h].add(t)
        self.is_changed = True
        while self.is_changed:
            self.is_changed = False
            self.statements()
            self.calls()
            self.exceptions()

    def add(self, into: set[Any], new: set[Any]) -> None:
        if not new <= into:
            into |= new
            self.is_changed = True

    def is_below(self, heap: str, kind: str) -> bool:
        return any(kind in self.hierarchy.above(t) for t in self.types[heap])

    def statements(self) -> None:
        facts, points = self.facts, self.points
        contexts = {c for c, _ in self.reachable}
        for c, m in list(self.reachable):
            for v, h, inside in facts["Allocate"]:
                if inside == m:
                    self.add(points[c, v], {(self.heap(c), h)})
            for f, to, inside in facts["LoadStatic"]:
                if inside == m:
                    self.add(points[c, to], self.statics[f])
        for c in contexts:
            for a, b in facts["Move"]:
                self.add(points[c, b], points[c, a])
            for a, b, t, _ in facts["CastTo"]:
                self.add(points[c, b], {(hc, h) for hc, h in points[c, a] if self.is_below(h, t)})
            for b, f, to in facts["Load"]:
                for bc, bh in list(points[c, b]):
                    self.add(points[c, to], self.fields[bc, bh, f])
            for a, b, f in facts["Store"]:
                for bc, bh in list(points[c, b]):
                    self.add(self.fields[bc, bh, f], points[c, a])
            for a, f in facts["StoreStatic"]:
                self.add(self.statics[f], points[c, a])

    def call(self, c: Context, site: str, d: Context, callee: str) -> None:
        self.add(self.edges, {(c, site, d, callee)})
        self.add(self.reachable, {(d, callee)})

    def calls(self) -> None:
        facts, points = self.facts, self.points
        for c, m in list(self.reachable):
            for i, callee, inside in facts["StaticCall"]:
                if inside == m:
                    self.call(c, i, self.static(c, i), callee)
            receiving = [(i, b, None, s) for i, b, s, inside in facts["VirtualCall"] if inside == m]
            receiving += [(i, b, callee, None) for i, b, callee, inside in facts["SpecialCall"] if inside == m]
            for i, b, _, _ in receiving:
                for hc, h in list(points[c, b]):
                    callees = {x for j, _, x, _ in facts["SpecialCall"] if j == i}
                    for j, _, s, _ in facts["VirtualCall"]:
                        if j == i:
                            callees |= {x for t in self.types[h] for x in self.hierarchy.dispatch(t, s)}
                    d = self.virtual(c, i, hc, h)
                    for callee in callees:
                        self.call(c, i, d, callee)
                        for x, this in facts["ThisVariable"]:
                            if x == callee:
                                self.add(points[d, this], {(hc, h)})
        for c, i, d, m in list(self.edges):
            for j, n, actual in facts["ActualParameter"]:
                for x, k, formal in facts["FormalParameter"]:
                    if j == i and x == m and k == n:
                        self.add(points[d, formal], points[c, actual])
            for j, to in facts["ActualReturn"]:
                for x, result in facts["FormalReturn"]:
                    if j == i and x == m:
                        self.add(points[c, to], points[d, result])

    def exceptions(self) -> None:
        facts = self.facts
        raised: dict[tuple[Context, str], set[tuple[Context, str]]] = defaultdict(set)
        for c, m in self.reachable:
            for v, inside in facts["Throw"]:
                if inside == m:
                    raised[c, m] |= self.points[c, v]
        sites = {(i, m) for name in ("VirtualCall", "SpecialCall", "StaticCall") for i, *_, m in facts[name]}
        for c, i, d, callee in self.edges:
            for j, m in sites:
                if j == i:
                    raised[c, m] |= self.throws[d, callee]
        for (c, m), objects in raised.items():
            for hc, h in objects:
                for t in self.types[h]:
                    handlers = [(k, v) for x, k, v in facts["Catch"] if x == m and k in self.hierarchy.above(t)]
                    for _, v in handlers:
                        self.add(self.points[c, v], {(hc, h)})
                    if not handlers:
                        self.add(self.throws[c, m], {(hc, h)})

    # --- results ---------------------------------------------------------------------------------------------------

    def var_points_to(self) -> set[tuple[Any, ...]]:
        return {(c, v, hc, h) for (c, v), objects in self.points.items() for hc, h in objects}

    def findings(self) -> set[tuple[str, str]]:
        facts = self.facts
        runs = {m for _, m in self.reachable}
        found: set[tuple[str, str]] = set()
        for v, to, t, m in facts["CastTo"]:
            for c, x in self.reachable:
                if x == m:
                    for _, h in self.points[c, v]:
                        if any(t not in self.hierarchy.above(own) for own in self.types[h]):
                            found.add(("cast may fail", f"{m}: {to}"))
        for i, _, _, m in facts["VirtualCall"]:
            if m in runs:
                targets = len({x for _, j, _, x in self.edges if j == i})
                if targets == 0:
                    found.add(("no receiver", i))
                if targets > 1:
                    found.add(("several targets", i))
        declared = {m for _, _, m in facts["Declares"]} | {m for (m,) in facts["MainMethod"]}
        found |= {("never called", m) for m in declared - runs}
        for (m,) in facts["MainMethod"]:
            found |= {("uncaught", h) for (_, x), objects in self.throws.items() if x == m for _, h in objects}
        for (c, a), mine in self.points.items():
            for (d, b), others in self.points.items():
                if c == d and a < b and mine & others:
                    found.add(("alias", f"{a} = {b}"))
        return found


def expected(facts: Facts) -> dict[str, set[tuple[Any, ...]]]:
    analyses = {
        "insensitive": Analysis(facts, lambda c, i, hc, h: None, lambda c, i: None, lambda c: None),
        "call site": Analysis(facts, lambda c, i, hc, h: (i, None), lambda c, i: (i, None), lambda c: c),
        "object": Analysis(
            facts,
            lambda c, i, hc, h: (h, (hc[0], None)) if hc is not None else (h, None),
            lambda c, i: c,
            lambda c: (c[0], None) if c is not None else None,
        ),
    }
    found: dict[str, set[tuple[Any, ...]]] = {
        "callSite.VarPointsTo": analyses["call site"].var_points_to(),
        "object.VarPointsTo": analyses["object"].var_points_to(),
        "object.FieldPointsTo": {
            (bc, bh, f, hc, h) for (bc, bh, f), objects in analyses["object"].fields.items() for hc, h in objects
        },
        "PointsTo": {(name, v, h) for name, each in analyses.items() for _, v, _, h in each.var_points_to()},
        "CallGraph": {(name, i, m) for name, each in analyses.items() for _, i, _, m in each.edges},
        "Finding": {(name, *one) for name, each in analyses.items() for one in each.findings()},
    }
    found["Precision"] = {
        (name, *(sum(row[0] == name for row in found[kind]) for kind in ("PointsTo", "CallGraph", "Finding")))
        for name in analyses
    }
    return found


# --- programs to try it on -----------------------------------------------------------------------------------------


def random_facts(random: Random) -> Facts:
    """A program of a few classes and methods whose statements are drawn at random."""
    facts: Facts = {name: set() for name in RELATIONS}
    types = ["Object", "A", "B", "C", "E"]
    for index, t in enumerate(types[1:], 1):
        facts["DirectSuper"].add((t, types[random.randrange(index)]))
    facts["DirectInterface"] |= {(random.choice(types), "I") for _ in range(2)}
    facts["Concrete"] |= {(t,) for t in types if random.random() < 0.8}
    signatures = ["get", "set"]
    methods = ["main", "static"]
    for t in types:
        for s in signatures:
            if random.random() < 0.5:
                facts["Declares"].add((t, s, f"{t}.{s}"))
                methods.append(f"{t}.{s}")
    facts["MainMethod"].add(("main",))
    variables = {m: [f"{m}/{x}" for x in ("this", "p", "x", "y", "r")] for m in methods}
    fields, statics = ["f", "g"], ["S"]
    for m in methods:
        this, p, _, _, r = variables[m]
        if "." in m:
            facts["ThisVariable"].add((m, this))
        facts["FormalParameter"].add((m, 0, p))
        facts["FormalReturn"].add((m, r))
        for number in range(random.randrange(2, 7)):
            _statement(random, facts, m, variables[m], (fields, statics, types, signatures, methods), number)
    return facts


def _statement(random: Random, facts: Facts, m: str, names: list[str], pool: Any, number: int) -> None:
    fields, statics, types, signatures, methods = pool
    a, b = random.choice(names), random.choice(names)
    kind = random.choice(
        ["new", "new", "move", "cast", "load", "store", "static", "virtual", "virtual", "special", "call", "throw"]
    )
    site = f"{m}#{number}"
    if kind == "new":
        facts["Allocate"].add((a, f"new {site}", m))
        facts["HeapType"].add((f"new {site}", random.choice(types)))
    elif kind == "move":
        facts["Move"].add((a, b))
    elif kind == "cast":
        facts["CastTo"].add((a, b, random.choice(types), m))
    elif kind == "load":
        facts["Load"].add((a, random.choice(fields), b))
    elif kind == "store":
        facts["Store"].add((a, b, random.choice(fields)))
    elif kind == "static":
        facts["StoreStatic"].add((a, statics[0]))
        facts["LoadStatic"].add((statics[0], b, m))
    elif kind == "throw":
        facts["Throw"].add((a, m))
        if random.random() < 0.5:
            facts["Catch"].add((m, random.choice(types), b))
    else:
        if kind == "virtual":
            facts["VirtualCall"].add((site, a, random.choice(signatures), m))
        elif kind == "special":
            facts["SpecialCall"].add((site, a, random.choice(methods), m))
        else:
            facts["StaticCall"].add((site, random.choice(methods), m))
        facts["ActualParameter"].add((site, 0, b))
        facts["ActualReturn"].add((site, random.choice(names)))
