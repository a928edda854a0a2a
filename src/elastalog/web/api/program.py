"""The program: its text, what is wrong with another, and changes of its rules."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter

from elastalog.diagnostics.diagnostic import render_json
from elastalog.evaluation.changes import Changes
from elastalog.program import rule_texts
from elastalog.web.answers import Committed
from elastalog.web.api.models import Moment, ProgramGiven, TextGiven
from elastalog.web.api.parts import WRITES, Asked, ExactRoute, refusals
from elastalog.web.api.updates import Key, commit_as_json, most_rows
from elastalog.web.values import changes_as_json, malformed

router = APIRouter(tags=["program"], route_class=ExactRoute)
present = APIRouter(tags=["program"], route_class=ExactRoute)


@router.get("/program", responses=refusals(410))
async def program(service: Asked, epoch: Moment = None) -> dict[str, Any]:
    """The text of the program, and its rules by number, from 1."""

    def told() -> dict[str, Any]:
        found = service.reading.program(epoch)
        return {
            "name": found.tree.source.name, "text": found.tree.source.text, "rules": list(rule_texts(found)),
        }  # fmt: skip

    return await service.call(told)


@present.post("/program/check", responses=refusals())
async def check(service: Asked, given: TextGiven) -> dict[str, Any]:
    """The diagnostics of a whole program that might take the place of the present one, as `--format json` has them."""
    found = await service.call(service.reading.check_program, given.program)
    return {"is_correct": all(one.severity != "error" for one in found), "diagnostics": json.loads(render_json(found))}


@present.patch("/program", dependencies=WRITES, responses=refusals(422))
async def change(service: Asked, given: ProgramGiven, key: Key = None) -> dict[str, Any]:
    """Adds and removes rules, or puts another program in the place of this one: the next epoch. With `preview`, only
    what that would change is told."""
    if given.program is not None and (given.added or given.removed):
        raise malformed("give either a whole program or rules to add and remove")
    writing, program = service.writing, given.program

    def preview() -> Changes:
        if program is None:
            return writing.preview(added=given.added, removed=given.removed)
        return writing.preview_program(program)

    def commit() -> Committed:
        if program is None:
            return writing.apply(added=given.added, removed=given.removed, key=key, source=given.source)
        return writing.become(program, key=key, source=given.source)

    if given.preview:
        return await service.call(changes_as_json, await service.ask(preview), most_rows(service, given.rows))
    return await service.call(commit_as_json, await service.commit(commit), service, given.rows)
