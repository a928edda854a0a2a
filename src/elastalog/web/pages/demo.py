"""The scenario of `elastalog workbench --demo`: services that call each other, and secrets that must not leak.

Five updates lead to the present; the last one, a deployment of twelve changes, has two mistakes in it. Without a
program, `elastalog workbench` starts with an empty one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from elastalog.session import Session
    from elastalog.web.service import Service

PROGRAM: Final = """\
// Services call each other; some are public, some hold secrets.

.decl calls(caller: symbol, callee: symbol)
.decl public(service: symbol)   // anybody may call it
.decl secret(service: symbol)   // holds data that must not get out
.decl guarded(service: symbol)  // lets nobody through
.input calls
.input public
.input secret
.input guarded

// Who reaches whom: along calls, not through a guarded service.
.decl reaches(caller: symbol, callee: symbol)
reaches(x, y) :- calls(x, y).
reaches(x, z) :- reaches(x, y), calls(y, z), !guarded(y).

// What must never be: from a public service to a secret.
.decl exposed(service: symbol, secret: symbol)
exposed(x, y) :- public(x), reaches(x, y), secret(y).
.output exposed

// How far a failure spreads.
.decl dependents(service: symbol, number: number)
dependents(y, n) :- reaches(_, y), n = count : { reaches(_, y) }.

// Services that are called alike, all the way up to a public one.
.decl twin(x: symbol, y: symbol)
twin(x, y) :- public(p), calls(p, x), calls(p, y), x != y.
twin(x, y) :- twin(u, v), calls(u, x), calls(v, y), x != y.
"""

EMPTY: Final = """\
// Paste facts beside this text, then write rules here, as in
//   .decl head(x: symbol)
//   head(x) :- body(x).
"""

_TEAMS: Final = {
    "shop": ("front", "cart", "price", "offers", "catalogue", "stock", "tax", "currency"),
    "help": ("front", "chat", "tickets", "answers", "history", "customers", "files", "audit"),
    "search": ("front", "query", "spelling", "ranking", "index", "crawler", "pages", "words"),
    "pay": ("front", "checkout", "cards", "fraud", "ledger", "banks", "refunds", "limits"),
    "mail": ("front", "writer", "templates", "queue", "sender", "bounces", "lists", "archive"),
    "ship": ("front", "orders", "labels", "routes", "carriers", "depots", "returns", "customs"),
}
_ACROSS: Final = (
    ("shop.cart", "pay.checkout"), ("shop.offers", "search.query"), ("help.tickets", "ship.orders"),
    ("help.chat", "mail.writer"), ("pay.checkout", "ship.orders"), ("ship.returns", "pay.refunds"),
    ("pay.ledger", "gate"), ("gate", "vault"), ("help.customers", "keeper"),
    ("keeper", "diary"), ("mail.sender", "log"), ("pay.ledger", "log"), ("search.index", "log"), ("ship.depots", "log"),
)  # fmt: skip

Rows: TypeAlias = dict[str, list[tuple[str, ...]]]


def first_facts() -> Rows:
    """The facts of the first epoch: in every team a service calls the two that follow it."""
    calls: set[tuple[str, ...]] = set(_ACROSS)
    for team, services in _TEAMS.items():
        names = [f"{team}.{service}" for service in services]
        for step in (1, 2):
            calls |= set(zip(names, names[step:], strict=False))
    return {
        "calls": sorted(calls),
        "public": [("shop.front",), ("help.front",), ("search.front",)],
        "secret": [("vault",), ("diary",)],
        "guarded": [("gate",), ("keeper",)],
    }


def updates() -> list[tuple[str, Rows, Rows]]:
    """Who made each update, and what it inserted and deleted."""
    deployment: list[tuple[str, ...]] = [(f"{team}.{services[3]}", "metrics") for team, services in _TEAMS.items()]
    deployment += [
        ("metrics", "log"), ("mail.archive", "vault"), ("mail.writer", "mail.archive"), ("ship.routes", "ship.customs"),
    ]  # fmt: skip
    return [
        (
            "search team",
            {"calls": [("search.ranking", "search.words"), ("search.words", "log")]},
            {"calls": [("search.index", "log")]},
        ),
        ("ship team", {"calls": [("ship.orders", "ship.carriers")]}, {"calls": [("ship.labels", "ship.carriers")]}),
        ("help team", {"calls": [("help.answers", "search.query"), ("help.files", "log")]}, {}),
        ("shop team", {"calls": [("shop.price", "shop.currency")]}, {"calls": [("shop.catalogue", "shop.tax")]}),
        ("deployment", {"calls": deployment}, {"calls": [("ship.depots", "log")], "guarded": [("keeper",)]}),
    ]


def open_demo(store: Path) -> Session:
    """A session of the first epoch, in a new folder, so that it has a history."""
    import elastalog

    return elastalog.open(elastalog.Program.parse(PROGRAM, "services.dl"), first_facts(), store=store)


def open_empty(store: Path) -> Session:
    """A session of an empty program, in a folder."""
    import elastalog

    return elastalog.open(elastalog.Program.parse(EMPTY, "new.dl"), store=store)


def live_through(service: Service) -> None:
    """Makes the epochs that lead to the present."""
    for source, inserted, deleted in updates():
        service.writing.apply(inserted, deleted, source=source)
