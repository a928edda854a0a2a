"""A web service that guards its requests by a policy: `uvicorn service:app` in this folder, then

    curl -H "X-User: ann" localhost:8000/documents/plan
    curl -H "X-User: eve" localhost:8000/documents/plan                    # 403, with the reason
    curl "localhost:8000/decisions?user=eve&action=read&resource=plan"     # and the smallest change that lets her in

Who a user is comes from a header here: put your own authentication in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, Header, HTTPException

import elastalog

PROGRAM = elastalog.Program.load(Path(__file__).with_name("policy.dl"))
FACTS = {
    "member": [("root", "admins"), ("ann", "staff"), ("bob", "interns"), ("eve", "guests")],
    "within": [("admins", "staff"), ("interns", "staff")],
    "allow": [("admins", "administer", "policy"), ("staff", "read", "plan"), ("staff", "write", "plan")],
    "deny": [("bob", "write", "plan")],
    "delegate": [],
}
Rows = dict[str, list[list[str]]]
User = Annotated[str, Header(alias="X-User")]


class Policy:
    """The policy of one tenant: a session of the program that all tenants share."""

    def __init__(self, facts: dict[str, Any], store: str | None = None) -> None:
        self.db = elastalog.open(PROGRAM, facts, store=store)
        self.may = self.db.prepare("may(?user, ?action, ?resource)")

    def decision(self, user: str, action: str, resource: str, *, with_change: bool) -> dict[str, Any]:
        """Whether someone may do something, and why; if not, also the smallest change of the facts that allows it, if
        that is wanted: to find it, changes are tried, and requests wait meanwhile."""
        decision = self.may(user, action, resource, explain=True)
        found: dict[str, Any] = {"allowed": decision.holds, "reason": decision.reason.to_tree()}
        if decision.holds:
            found["because"] = [str(fact) for fact in decision.reason.explicit_facts]
        if decision.holds or not with_change:
            return found
        try:
            least = self.db.suggest(missing=[decision.fact], over="facts", time_limit=2)
        except elastalog.ElastalogError:  # no change of facts that are there, or like those, lets them in
            return found
        found["smallest_change"] = {"insert": list(map(str, least.insert)), "delete": list(map(str, least.delete))}
        return found

    def change(self, insert: Rows, delete: Rows) -> dict[str, list[list[Any]]]:
        """Changes facts; tells who may do what from now on, and who may not any more."""
        changed = self.db.apply(_facts(insert), _facts(delete))["may"]
        return {"allowed": sorted(map(list, changed.inserted)), "denied": sorted(map(list, changed.deleted))}


def _facts(rows: Rows) -> dict[str, list[tuple[str, ...]]]:
    return {relation: [tuple(row) for row in given] for relation, given in rows.items()}


def guarded(policy: Policy, action: str, resource: str | None = None) -> Callable[..., str]:
    """A dependency that lets a request pass if its user may do something to the resource, or to the document that its
    path names."""

    def guard(user: User, document: str = "") -> str:
        wanted = document if resource is None else resource
        if not policy.may(user, action, wanted):
            raise HTTPException(403, policy.decision(user, action, wanted, with_change=False))
        return user

    return guard


def create(facts: dict[str, Any] | None = None, store: str | None = None) -> FastAPI:
    """The service over a policy, whose changes a store keeps if one is given."""
    app = FastAPI(title="Guarded documents")
    policy = Policy(FACTS if facts is None else facts, store)
    documents = {"plan": "To be written."}
    reader, writer = Depends(guarded(policy, "read")), Depends(guarded(policy, "write"))

    @app.get("/documents/{document}")
    def read(document: str, user: str = reader) -> dict[str, str]:
        return {"document": document, "text": documents.get(document, ""), "user": user}

    @app.put("/documents/{document}")
    def write(document: str, text: Annotated[str, Body(embed=True)], user: str = writer) -> dict[str, str]:
        documents[document] = text
        return {"document": document, "user": user}

    @app.get("/decisions")
    def decide(user: str, action: str, resource: str) -> dict[str, Any]:
        return policy.decision(user, action, resource, with_change=True)

    @app.post("/policy", dependencies=[Depends(guarded(policy, "administer", "policy"))])
    def change(
        insert: Annotated[Rows | None, Body()] = None, delete: Annotated[Rows | None, Body()] = None
    ) -> dict[str, Any]:
        try:
            return policy.change(insert or {}, delete or {})
        except elastalog.ElastalogError as error:
            raise HTTPException(422, str(error)) from None

    return app


app = create()
