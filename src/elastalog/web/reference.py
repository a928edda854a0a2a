"""`/api/docs`: the description of the interface as a page, made here, which asks for nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from elastalog.web.pages.markup import prose

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
section { border-top: 1px solid #8886; padding: 0.5rem 0; }
h3 { font-size: 1rem; margin: 0.5rem 0; } h3 b { display: inline-block; min-width: 4rem; }
table { border-collapse: collapse; } td { padding: 0.1rem 1rem 0.1rem 0; vertical-align: top; }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none'"


async def reference_page(request: Request) -> HTMLResponse:
    """Every call with what it takes and gives."""
    described = request.app.openapi()
    parts = "\n".join(_parts(described))
    title = escape(described["info"]["title"])
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: HTTP</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>{parts}</body></html>'
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


def _parts(described: Mapping[str, Any]) -> Iterator[str]:
    info = described["info"]
    yield f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield '<p>For programs: <a href="/api/openapi.json">/api/openapi.json</a>.'
    yield " What can be asked at any epoch is also below <code>/api/v1/at/N/…</code>, by number or time.</p>"
    for path, calls in described["paths"].items():
        if "/at/{epoch}" not in path:
            for method, call in calls.items():
                yield from _call(path, method, call, described)


def _call(path: str, method: str, call: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[str]:
    yield f"<section><h3><b>{method.upper()}</b> <code>{escape(path)}</code></h3>"
    yield f"<p>{prose(call.get('description', ''))}</p><table>"
    for one in call.get("parameters", ()):
        where = "" if one["in"] == "query" else f" ({one['in']})"
        yield _row(f"{one['name']}{where}", _kind(one["schema"]), one.get("required", False))
    for content in call.get("requestBody", {}).get("content", {}).values():
        yield from _body(content["schema"], described)
    yield "</table></section>"


def _body(schema: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[str]:
    model = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    yield f'<tr><td colspan="3">body: {prose(model.get("description", ""))}</td></tr>'
    for name, field in model["properties"].items():
        yield _row(name, _kind(field), name in model.get("required", ()))


def _row(name: str, kind: str, is_required: bool) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td><td>{'required' * is_required}</td></tr>"


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    examples = schema.get("examples") or ()
    example = f", as {examples[0]}" if examples else ""
    return f"{schema.get('format', schema.get('type', 'anything'))}{example}"
