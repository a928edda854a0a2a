"""Decisions beside other engines of policies: pycasbin and cedarpy (`pip install pycasbin cedarpy`).

`python -m benchmarks.decisions_beside [SIZE ...] [--seconds S] [--limit S]` gives each engine the same policy of 100,
1,000 and 100,000 facts: users in roles, roles that inherit, grants to roles, denials. Measured: seconds until the first
answer, a decision, a decision after each update (a user comes), bytes of the process, and a hundred decisions that all
engines must agree on. Each runs in a process of its own. Cedar's policies and entities are parsed once, and updates add
to the parsed entities; pycasbin looks its policies through, as it does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from benchmarks.decisions import POLICY

SIZES = (100, 1_000, 100_000)
Facts = dict[str, list[tuple[str, str]]]


def policy_of(size: int) -> Facts:
    """So many facts: of twenty, twelve members, six grants, an inheritance and a denial."""
    random, roles, users = Random(size), max(size // 20, 3), max(size * 6 // 20, 4)
    documents = max(size // 10, 5)

    def some(number: int, make: Callable[[], tuple[str, str]]) -> list[tuple[str, str]]:
        found: dict[tuple[str, str], None] = {}
        while len(found) < number:
            found[make()] = None
        return list(found)

    def user() -> str:
        return f"u{random.randrange(users)}"

    def document() -> str:
        return f"doc{random.randrange(documents)}"

    # Roles inherit from earlier ones, so that there are no cycles.
    inherits = [(f"r{i}", f"r{random.randrange(i)}") for i in range(1, max(size // 20, 2))]
    return {
        "member": some(size * 12 // 20, lambda: (user(), f"r{random.randrange(roles)}")),
        "inherits": inherits,
        "grant": some(size * 6 // 20, lambda: (f"r{random.randrange(roles)}", document())),
        "denied": some(size // 20, lambda: (user(), document())),
    }


class Engine(Protocol):
    def __init__(self, facts: Facts) -> None: ...
    def decide(self, user: str, document: str) -> bool: ...
    def add(self, user: str, role: str) -> None: ...


class Elastalog:
    def __init__(self, facts: Facts) -> None:
        import elastalog

        self._db = elastalog.open(POLICY, facts, engine="local")
        self.decide = self._db.prepare("ok(?user, ?resource)")

    def add(self, user: str, role: str) -> None:
        with self._db.update() as update:
            update.insert("member", [(user, role)])


class Casbin:
    MODEL = """
[request_definition]
r = sub, obj
[policy_definition]
p = sub, obj, eft
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = r.obj == p.obj && g(r.sub, p.sub)
"""

    def __init__(self, facts: Facts) -> None:
        import casbin

        model = casbin.Model()
        model.load_model_from_text(self.MODEL)
        self._enforcer = enforcer = casbin.Enforcer(model)
        enforcer.add_named_grouping_policies("g", [list(row) for row in (*facts["member"], *facts["inherits"])])
        enforcer.add_policies([[role, document, "allow"] for role, document in facts["grant"]])
        enforcer.add_policies([[user, document, "deny"] for user, document in facts["denied"]])

    def decide(self, user: str, document: str) -> bool:
        return bool(self._enforcer.enforce(user, document))

    def add(self, user: str, role: str) -> None:
        self._enforcer.add_grouping_policy(user, role)


class Cedar:
    def __init__(self, facts: Facts) -> None:
        import cedarpy

        self._cedar = cedarpy
        parents: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for user, role in facts["member"]:
            parents.setdefault(("User", user), []).append(("Role", role))
        for role, other in facts["inherits"]:
            parents.setdefault(("Role", role), []).append(("Role", other))
        names = {("Role", role) for role, _ in facts["grant"]} | {("User", user) for user, _ in facts["denied"]}
        names |= {parent for found in parents.values() for parent in found} | parents.keys()
        entities = [_entity(name, parents.get(name, [])) for name in sorted(names)]
        self._entities = cedarpy.Entities.from_json_str(json.dumps(entities))
        rules = [f'permit(principal in Role::"{r}", action, resource == Doc::"{d}");' for r, d in facts["grant"]]
        rules += [f'forbid(principal == User::"{u}", action, resource == Doc::"{d}");' for u, d in facts["denied"]]
        self._policies = cedarpy.PolicySet.from_str("\n".join(rules))

    def decide(self, user: str, document: str) -> bool:
        request = {"principal": f'User::"{user}"', "action": 'Action::"read"', "resource": f'Doc::"{document}"'}
        return bool(self._cedar.is_authorized(request, self._policies, self._entities).allowed)

    def add(self, user: str, role: str) -> None:
        self._entities = self._entities.with_added_json_str(json.dumps([_entity(("User", user), [("Role", role)])]))


def _entity(name: tuple[str, str], parents: list[tuple[str, str]]) -> dict[str, Any]:
    listed = [{"type": kind, "id": other} for kind, other in parents]
    return {"uid": {"type": name[0], "id": name[1]}, "attrs": {}, "parents": listed}


ENGINES: dict[str, type[Any]] = {"elastalog": Elastalog, "pycasbin": Casbin, "cedarpy": Cedar}


def measure(name: str, size: int, seconds: float) -> dict[str, Any]:
    """One engine on one policy, in this process."""
    facts, random = policy_of(size), Random(1)
    asked = [(f"u{random.randrange(max(size * 6 // 20, 4))}", f"doc{random.randrange(max(size // 10, 5))}")]
    asked += [(user, document) for user, _ in facts["member"][:50] for _, document in facts["grant"][:1]]
    asked += [(user, document) for user, document in facts["denied"][:49]]
    ENGINES[name](policy_of(100)).decide(*asked[0])  # what is imported and compiled is no part of it
    before, began = _resident(), time.perf_counter()
    engine: Engine = ENGINES[name](facts)
    engine.decide(*asked[0])
    opened = time.perf_counter() - began
    decisions = [engine.decide(*one) for one in asked[: 100 if size < 100_000 or name == "elastalog" else 10]]
    decision = _least(lambda: engine.decide(*asked[0]), seconds)
    numbers = iter(range(1 << 40))

    def after_update() -> None:
        user = f"new {next(numbers)}"
        engine.add(user, "r1")
        engine.decide(user, asked[0][1])

    return {
        "opened": opened, "decision": decision, "after update": _least(after_update, seconds),
        "bytes": _resident() - before, "decisions": decisions,
    }  # fmt: skip


def _least(operation: Callable[[], object], seconds: float) -> float:
    """The least seconds of one call, in rounds of ten, or of one where it takes long."""
    end, least, calls = time.perf_counter() + seconds, float("inf"), 1
    while True:
        began = time.perf_counter()
        for _ in range(calls):
            operation()
        now = time.perf_counter()
        least = min(least, (now - began) / calls)
        calls = 10 if least < seconds / 100 else 1
        if now > end:
            return least


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("sizes", nargs="*", type=int, default=SIZES)
    arguments.add_argument("--seconds", type=float, default=2.0)
    arguments.add_argument("--limit", type=float, default=120.0, help="seconds for an engine on a policy")
    given = arguments.parse_args()
    context = multiprocessing.get_context("spawn")
    print(f"{'facts':>8} {'engine':12}{'opened s':>10}{'decision µs':>14}{'after update µs':>17}{'MB':>8}")
    for size in given.sizes:
        known: list[bool] | None = None
        for name in ENGINES:
            with context.Pool(1) as pool:
                try:
                    found = pool.apply_async(measure, (name, size, given.seconds)).get(given.limit)
                except multiprocessing.TimeoutError:
                    print(f"{size:8,} {name:12} not done in {given.limit:g} s")
                    continue
            known = found["decisions"] if known is None else known
            assert found["decisions"] == known[: len(found["decisions"])], f"{name} decides otherwise"
            print(
                f"{size:8,} {name:12}{found['opened']:10.3f}{found['decision'] * 1e6:14,.1f}"
                f"{found['after update'] * 1e6:17,.1f}{found['bytes'] / 1e6:8.1f}"
            )


if __name__ == "__main__":
    main()
