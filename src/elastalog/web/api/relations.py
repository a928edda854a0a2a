"""Relations and their facts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from elastalog.relations.schema import Column
from elastalog.web.answers import RelationSummary
from elastalog.web.api.forms import JSON, OTHER_FORMS, form_of, page_in
from elastalog.web.api.models import ColumnTold, Moment, PageTold, RelationsTold, RelationTold
from elastalog.web.api.parts import Asked, refusals

router = APIRouter(tags=["relations"])


def _column(column: Column) -> ColumnTold:
    return ColumnTold(name=column.name, type=column.type_name)


def _told(one: RelationSummary) -> RelationTold:
    return RelationTold(
        name=one.name, columns=list(map(_column, one.schema.columns)), facts=one.facts, inserted=one.inserted,
        deleted=one.deleted, rules=one.rules, is_input=one.is_input, is_output=one.is_output,
    )  # fmt: skip


@router.get("/relations", responses=refusals(410))
async def relations(service: Asked, epoch: Moment = None) -> RelationsTold:
    """Every relation: its columns, how many facts it holds, and what the last epoch changed in it."""
    found, number = await service.call(service.reading.relations_at, epoch)
    told = list(map(_told, found))
    return RelationsTold(epoch=number, relations=told)


@router.get(
    "/relations/{relation}",
    response_model=PageTold,
    responses={200: {"content": OTHER_FORMS}, **refusals(404, 406, 410, 422)},
)
async def relation_page(
    service: Asked,
    request: Request,
    relation: str,
    where: Annotated[str, Query(max_length=100_000, examples=["from > 10, !edge(from, to)"])] = "",
    order: Annotated[str, Query(max_length=10_000, examples=["-from,to"])] = "",
    offset: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    limit: Annotated[int | None, Query(ge=0, lt=1 << 31)] = None,
    annotations: bool = False,
    epoch: Moment = None,
) -> Response:
    """Facts of a relation by pages. `where` holds literals as in the body of a rule, in which the columns are
    variables; `order` names columns, prefix `-` for descending; `annotations` adds levels and counts. By
    `Accept`: JSON, CSV, Arrow stream or Parquet; the latter three hold all facts unless there is a `limit`."""
    form = form_of(request)
    most = None if form == JSON else service.limits.export
    find = service.reading.search if where or order else service.reading.page
    page = await service.call(find, relation, where, order, offset, limit, epoch, annotations=annotations, most=most)
    return await page_in(form, page, service)
