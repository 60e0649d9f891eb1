"""The application of the page: its routes, and its responses to errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from contexture.errors import ContextureError
from contexture_airflow.web import actions, api, connections, fragments, new_publication, pages
from contexture_airflow.web.forms import ForbiddenError
from contexture_airflow.web.installation import Installation
from contexture_airflow.web.rendering import render
from contexture_airflow.web.responses import SecurityHeaders
from contexture_airflow.web.visitor import places

_STATIC = Path(__file__).parent / "static"


def application(installation: Installation) -> FastAPI:
    """The ASGI application of the page."""
    app = FastAPI(title="Contexture", openapi_url=None, docs_url=None, redoc_url=None)
    app.state.installation = installation
    app.include_router(pages.router)
    app.include_router(new_publication.router)
    app.include_router(fragments.router)
    app.include_router(actions.router)
    app.include_router(connections.router)
    app.include_router(pages.report_router)
    app.include_router(api.router)
    app.include_router(api.status_router)
    app.add_middleware(SecurityHeaders)
    app.mount("/static", StaticFiles(directory=_STATIC))
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(ForbiddenError, _forbid)
    app.add_exception_handler(RequestValidationError, _misread)
    app.add_exception_handler(ContextureError, _unavailable)
    return app


async def _refuse(request: Request, error: Any) -> Response:
    """Scripts get the status; people who are not logged in get Airflow's login."""
    if error.status_code in {401, 403} and not _is_for_scripts(request):
        return RedirectResponse(places(request).login(), 303)
    return _error_response(request, error.status_code, str(error.detail))


async def _forbid(request: Request, error: Any) -> Response:
    return _error_response(request, 403, str(error.detail))


async def _misread(request: Request, error: Any) -> Response:
    return _error_response(request, 422, "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors()))


async def _unavailable(request: Request, error: Exception) -> Response:
    return _error_response(request, 503, str(error))


def _error_response(request: Request, status: int, message: str) -> Response:
    if _is_for_scripts(request):
        return JSONResponse({"error": message}, status)
    return HTMLResponse(render("error", places(request), status=status, message=message), status)


def _is_for_scripts(request: Request) -> bool:
    return request.url.path.removeprefix(places(request).root).startswith(f"{api.API}/")
