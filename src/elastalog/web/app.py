"""The application: every call of the interface, behind the guard and within the bounds."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from elastalog import __version__
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.web import problems
from elastalog.web.api import changes, debugging, health, history, program, questions, relations, updates
from elastalog.web.api.models import Problem
from elastalog.web.api.parts import bearer
from elastalog.web.auth import Guard
from elastalog.web.bounds import Bounds
from elastalog.web.reference import reference_page
from elastalog.web.service import Service
from elastalog.web.settings import Settings

PREFIX = "/api/v1"
AT_ANY_EPOCH = (relations.router, questions.router, program.router, updates.previews, debugging.router)
AT_THE_LAST = (program.present, updates.router, changes.router, history.router, health.router)


def make_app(service: Service, settings: Settings | None = None) -> FastAPI:
    """The application of a service. It does not end the service."""
    settings = settings or Settings()
    app = FastAPI(
        title="Elastalog",
        version=__version__,
        summary="Datalog that keeps its answers up to date and can say why they are so",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service, app.state.settings = service, settings
    for router in AT_ANY_EPOCH:
        app.include_router(router, prefix=PREFIX, dependencies=[Depends(bearer)])
        app.include_router(router, prefix=f"{PREFIX}/at/{{epoch}}", dependencies=[Depends(bearer)])
    for router in AT_THE_LAST:
        app.include_router(router, prefix=PREFIX, dependencies=[Depends(bearer)])
    app.get("/api/docs", include_in_schema=False)(reference_page)
    app.add_exception_handler(ElastalogError, problems.of_error)
    app.add_exception_handler(HTTPException, problems.of_refusal)
    app.add_exception_handler(RequestValidationError, problems.of_malformed)
    app.add_exception_handler(Exception, problems.of_defect)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Bounds, most=settings.limits.body, metrics=service.metrics_kept)
    _describe_problems(app)
    return app


def without_pages(app: FastAPI) -> FastAPI:
    """The application, for a service that has no pages: whoever opens its address sees what may be asked."""
    app.add_route("/", lambda _request: RedirectResponse("/api/docs"), include_in_schema=False)
    return app


def _describe_problems(app: FastAPI) -> None:
    """Puts our refusals into the description of the interface, in the place of the framework's."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = describe()
            schemas = found["components"]["schemas"]
            schemas["Problem"] = Problem.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for path in found["paths"].values():
                for call in path.values():
                    told = call["responses"]
                    if "HTTPValidationError" in str(told.get("422", "")):
                        del told["422"]
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]
