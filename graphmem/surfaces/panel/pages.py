"""The routes of the panel: who asks, in which language, what is told of an error."""

import functools
from collections.abc import Callable, Sequence
from importlib import resources
from urllib.parse import parse_qsl, quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from graphmem import log
from graphmem.errors import GraphmemError
from graphmem.memory import Memory
from graphmem.surfaces.http.bodies import FORM, read_body
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.panel import health, history, notes, overview, scenes, situations
from graphmem.surfaces.panel.asking import Asked, Done, Given, Shown, own_path
from graphmem.surfaces.panel.rendering import render
from graphmem.surfaces.panel.texts import LANGUAGES, TEXTS
from graphmem.surfaces.wire import http_status, whole_number

_LOOKS = ("auto", "light", "dark")
_LANGUAGE, _LOOK = "graphmem-language", "graphmem-look"
_A_YEAR = 366 * 24 * 3600
_BOUNDS = Bounds(body=1 << 20)
# `Referrer-Policy: no-referrer`, which other answers have, would make browsers send forms with `Origin: null`.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
}
_FILES = {"panel.css": "text/css", "panel.js": "text/javascript", "icon.svg": "image/svg+xml"}

_SHOWN: dict[str, Callable[[Asked], Shown]] = {
    "/": overview.overview,
    "/operations": overview.operations,
    "/scenes": scenes.scenes,
    "/scene": scenes.scene,
    "/entity": scenes.entity,
    "/notes": notes.notes,
    "/situation": situations.situation,
    "/history": history.history,
    "/session": history.session,
    "/parts/{number:int}": history.part,
    "/upkeep": health.health,
    "/notes/new": notes.new,
    "/notes/{number:int}": notes.note,
}
_CHANGED: dict[str, Callable[[Asked], Done | Shown]] = {
    "/notes/new": notes.remember,
    "/notes/{number:int}/edit": notes.edit,
    "/notes/{number:int}/archive": notes.archive,
    "/notes/{number:int}/restore": notes.restore,
    "/notes/{number:int}/approve": notes.approve,
    "/notes/{number:int}/reject": notes.reject,
    "/notes/{number:int}/remove": notes.remove,
    "/incidents/{number:int}/forget": overview.forget_incident,
    "/operations/{number:int}/undo": overview.undo,
    "/upkeep/pass": health.upkeep,
}


def routes() -> Sequence[BaseRoute]:
    """Return the routes of all pages, and of the files that they need."""
    return [
        *(Route(path, functools.partial(_show, page), methods=["GET"]) for path, page in _SHOWN.items()),
        *(Route(path, functools.partial(_change, act), methods=["POST"]) for path, act in _CHANGED.items()),
        Route("/display", _display, methods=["POST"]),
        Route("/static/{name}", _file, methods=["GET"]),
    ]


async def _show(page: Callable[[Asked], Shown], request: Request) -> Response:
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    try:
        request.app.state.keeper.require_reading(request)
    except HTTPException as error:
        return await refused(request, error)
    return await _answered(page, request, here, request.query_params)


async def _change(act: Callable[[Asked], Done | Shown], request: Request) -> Response:
    """Do what a form asks for.

    It needs no secret of its own. The token lies in a cookie that browsers send along with requests of this site alone
    (SameSite), and since a port is no part of a site, the keeper takes it only from a page of exactly this server, by
    what the browser says of it in Origin or Sec-Fetch-Site, which no page can forge.
    """
    try:
        request.app.state.keeper.require(request)
        form = await _form_of(request)
    except HTTPException as error:
        return await refused(request, error)
    return await _answered(act, request, own_path(form.get("back", "/")), form)


async def _form_of(request: Request) -> Given:
    body = await read_body(request, _BOUNDS, kind=FORM)
    return Given(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


async def _answered(answer: Callable[[Asked], Done | Shown], request: Request, here: str, given: Given) -> Response:
    number, may_write = request.path_params.get("number", 0), request.app.state.keeper.knows(request)
    back = here if request.method == "POST" else "/"

    def work(memory: Memory) -> Response:
        asked = Asked(memory, here, given, number, may_write and not memory.config.read_only)
        try:
            with memory.looking():
                found = answer(asked)
        except GraphmemError as error:
            found = _error(http_status(error), str(error), back)
        except Exception:  # noqa: BLE001 (told in the log)
            log.exception("%s %s failed", request.method, request.url.path)
            found = _error(500, "graphmem failed; its log tells why", back)
        return _gone(found, here) if isinstance(found, Done) else _page(request, asked, found)

    found: Response = await request.app.state.memories.run(request, work)
    return found


async def refused(request: Request, error: HTTPException) -> Response:
    """Answer with an error of the protocol, on a page that tells nothing of the memory."""
    found = await _answered(lambda asked: _refusal(error.status_code, error.detail), request, "/", Given())
    found.headers.update(error.headers or {})
    return found


def _error(status: int, message: str, back: str = "/") -> Shown:
    return Shown("error.html", {"message": message, "back": back, "said": ""}, status)


def _refusal(status: int, message: str) -> Shown:
    """Return a page of an error of the protocol, in words of ours where there are some."""
    said = str(status) if f"error.{status}" in TEXTS else ""
    return Shown("error.html", {"message": message, "back": "/", "said": said}, status)


def _page(request: Request, asked: Asked, found: Shown) -> Response:
    outcome = request.query_params.get("done", "") if request.method == "GET" else ""
    told = {
        "asked": asked,
        "path": request.url.path,
        "look": _chosen(request.cookies.get(_LOOK), _LOOKS),
        "looks": _LOOKS,
        "outcome": outcome if f"outcome.{outcome}" in TEXTS else "",
        "number": whole_number(request.query_params.get("number", "")) or 0,
        "operation": whole_number(request.query_params.get("operation", "")) or 0,
        **found.told,
    }
    text = render(found.template, language_of(request), asked.memory.config.zone, told)
    return Response(text.encode("utf-8", "replace"), found.status, _HEADERS, "text/html")


def _gone(done: Done, here: str) -> Response:
    told: dict[str, str | int] = {"done": done.outcome}
    if done.number:
        told["number"] = done.number
    if done.operation:
        told["operation"] = done.operation
    path, _, query = (done.to or here).partition("?")
    kept = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] not in ("done", "number", "operation")]
    return RedirectResponse(f"{quote(path)}?{urlencode([*kept, *told.items()])}", 303, _HEADERS)


def _chosen(given: str | None, choices: Sequence[str]) -> str:
    return given if given is not None and given in choices else choices[0]


def language_of(request: Request) -> str:
    """Return the language that somebody chose, else the first one that their browser names and we have."""
    chosen = request.cookies.get(_LANGUAGE)
    if chosen in LANGUAGES:
        return chosen
    named = [part.split(";")[0].strip()[:2].lower() for part in request.headers.get("accept-language", "").split(",")]
    return next((each for each in named if each in LANGUAGES), LANGUAGES[0])


async def _display(request: Request) -> Response:
    """Keep the language or the look that somebody chose in a cookie. It changes nothing else, so anybody may."""
    try:
        form = await _form_of(request)
    except HTTPException as error:
        return await refused(request, error)
    answer = RedirectResponse(own_path(form.get("back", "/")), 303, _HEADERS)
    for name, cookie, choices in (("language", _LANGUAGE, LANGUAGES), ("look", _LOOK, _LOOKS)):
        if form.get(name) in choices:
            answer.set_cookie(cookie, form[name], max_age=_A_YEAR, httponly=True, samesite="strict")
    return answer


async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _FILES:
        raise HTTPException(404, "there is no such file")
    return Response(_content(name), media_type=_FILES[name], headers={"Cache-Control": "no-cache"})


@functools.cache
def _content(name: str) -> bytes:
    return resources.files("graphmem.surfaces.panel").joinpath("static", name).read_bytes()
