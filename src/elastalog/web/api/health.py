"""Whether the service lives, and what it counts."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from elastalog import __version__
from elastalog.web.api.parts import Asked, refusals

router = APIRouter(tags=["service"])


@router.get("/health")
async def health(service: Asked) -> dict[str, Any]:
    """Whether the service lives: needs no token, and waits for nothing."""
    return {"status": "ok", "version": __version__, "epoch": service.epoch}


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}, **refusals()})
async def metrics(service: Asked) -> Response:
    """Epochs, impact, seconds by stratum and choice, facts, memory, readers and requests, as Prometheus reads them."""
    text = await service.call(service.metrics)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
