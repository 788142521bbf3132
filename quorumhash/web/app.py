"""The routes of the page; the only door to FastAPI and uvicorn.

Annotations are read when a route is made, not put off: FastAPI needs them, and what they name is imported inside the
functions.
"""

import socket
from importlib.resources import files
from typing import Annotated, Any

from quorumhash._version import __version__
from quorumhash.errors import MissingExtraError, ParameterError, QuorumHashError
from quorumhash.web import answers
from quorumhash.web.collection import Collection, UnknownItemError, learn_rival
from quorumhash.web.damagelab import DamageLab, Dose
from quorumhash.web.guards import DRAINED, Guard, Limits, too_large
from quorumhash.web.health import Health
from quorumhash.web.modelfacts import model_facts
from quorumhash.web.pictures import decoded, require_pillow

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
LONGEST_NAME = 200
REFUSALS = (400, 403, 404, 413, 415, 421, 422, 429, 503)
ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in ("image/png", "image/jpeg",
                                                                                           "image/webp")},
    }
}  # fmt: skip


def make_app(collection: Collection, limits: Limits | None = None) -> Guard:
    """The page over a collection, guarded; an ASGI application."""
    require_server()
    from fastapi import FastAPI

    limits = limits or Limits()
    told: dict[int | str, dict[str, Any]] = {
        status: {"description": "One sentence.", "content": {"application/json": {"schema": ERROR}}}
        for status in REFUSALS
    }
    app = FastAPI(title="quorumhash", version=__version__, docs_url=None, redoc_url=None, responses=told)
    rival = learn_rival(collection)
    _add_errors(app)
    _add_files(app)
    _add_items(app, collection)
    _add_search(app, collection, limits)
    _add_damage(app, collection, None if rival is None else DamageLab(collection, rival))
    _add_health(app, Health(collection))

    @app.get("/api/collection")
    def collection_facts() -> dict[str, Any]:
        """What the page is about."""
        more = {"version": __version__, "rival": rival and rival.name, "max_upload_bytes": limits.max_bytes}
        return {**answers.about(collection), **more}

    @app.get("/api/model")
    def model() -> dict[str, Any]:
        """Views, bits and history of the model."""
        return model_facts(collection)

    return Guard(app, limits)


def _add_errors(app: Any) -> None:
    """Whatever goes wrong is one sentence in a JSON object."""
    from fastapi import Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, Response
    from starlette.exceptions import HTTPException

    @app.exception_handler(HTTPException)
    def show_refusal(_: Request, error: Any) -> Response:
        sentence = "there is nothing here." if error.detail == "Not Found" else str(error.detail)
        return JSONResponse({"error": sentence}, error.status_code, getattr(error, "headers", None))

    @app.exception_handler(RequestValidationError)
    def show_bad_value(_: Request, error: Any) -> Response:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}."}, 422)

    @app.exception_handler(QuorumHashError)
    def show_error(_: Request, error: QuorumHashError) -> Response:
        return JSONResponse({"error": str(error)}, 404 if isinstance(error, UnknownItemError) else 400)

    @app.exception_handler(Exception)
    def show_fault(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": f"the page failed ({type(error).__name__}); the terminal says more."}, 500)


def _add_files(app: Any) -> None:
    """The page itself, its script and style."""
    from fastapi import HTTPException
    from fastapi.responses import Response

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return Response(_asset("templates", "page.html"), media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        kind = KINDS.get(name.rpartition(".")[2])
        if kind is None or name not in _names("static"):
            raise HTTPException(404, "there is no such file here.")
        return Response(_asset("static", name), media_type=kind, headers={"cache-control": "no-cache"})


def _add_items(app: Any, collection: Collection) -> None:
    from fastapi import HTTPException, Path, Query
    from fastapi.responses import Response

    Item = Annotated[int, Path(description="Id of an item.", ge=-(2**63), lt=2**63)]
    Limit = Annotated[int, Query(description="How many.", ge=1, le=100)]
    Seed = Annotated[int, Query(description="Of the random choice.", ge=0, lt=2**31)]

    @app.get("/api/items")
    def items(limit: Limit = 24, seed: Seed = 0, only_new: bool = False) -> list[dict[str, Any]]:
        """A random choice of items; `only_new` leaves out those that are stored."""
        return answers.some_items(collection, limit, seed, only_new)

    @app.get("/api/items/{item}")
    def item(item: Item) -> dict[str, Any]:
        """One item, its code, and how far its views can be believed."""
        return answers.one_item(collection, item)

    @app.get("/api/items/{item}/picture", response_class=Response, responses={200: {"content": {"image/png": {}}}})
    def picture(item: Item) -> Response:
        """The picture of an item, PNG."""
        if collection.pictures is None or not collection.pictures.has(item):
            raise HTTPException(404, f"there is no picture of item {item}.")
        headers = {"cache-control": "private, max-age=300"}
        return Response(collection.pictures.picture(item), media_type="image/png", headers=headers)


def _add_search(app: Any, collection: Collection, limits: Limits) -> None:
    from fastapi import HTTPException, Query, Request

    n_bits = int(collection.hasher.n_bits_)
    Item = Annotated[int, Query(description="Id of an item.", ge=-(2**63), lt=2**63)]
    Count = Annotated[int, Query(description="How many of the nearest.", ge=1, le=answers.MOST_FOUND)]
    Radius = Annotated[int, Query(description="All items so many bits away; -1: the k nearest.", ge=-1, le=n_bits)]
    Name = Annotated[str, Query(description="What to call the picture in an error.", max_length=LONGEST_NAME)]

    @app.get("/api/search")
    async def search(item: Item, k: Count = 12, radius: Radius = -1) -> dict[str, Any]:
        """The items nearest to one that is here."""
        question = (collection, item, k, None if radius < 0 else radius)
        if answers.is_quick(collection, item):  # sooner done than handed to a thread
            return answers.search_item(*question)
        found: dict[str, Any] = await _in_thread(answers.search_item, *question)
        return found

    @app.post("/api/search", openapi_extra=UPLOAD)
    async def search_picture(
        request: Request, name: Name = "the picture", k: Count = 12, radius: Radius = -1
    ) -> dict[str, Any]:
        """The items nearest to the picture that is the body."""
        if not request.headers.get("content-type", "").startswith("image/"):
            raise HTTPException(415, "only pictures are taken: send a PNG, JPEG or WebP with its content type.")
        content = await _body(request, limits.max_bytes, HTTPException)
        pixels = await _in_thread(decoded, content, name)
        found: dict[str, Any] = await _in_thread(
            answers.search_picture, collection, pixels, k, None if radius < 0 else radius
        )
        return found


def _add_damage(app: Any, collection: Collection, lab: DamageLab | None) -> None:
    from fastapi import HTTPException, Query

    n_views = len(collection.hasher.view_widths_)
    Item = Annotated[int, Query(description="Id of an item.", ge=-(2**63), lt=2**63)]
    Views = Annotated[int, Query(description="How many views.", ge=0, le=n_views)]
    Strength = Annotated[float, Query(description="In standard deviations.", ge=0, le=10, allow_inf_nan=False)]
    Draw = Annotated[int, Query(description="Which views are hit, and by what.", ge=0, lt=2**31)]
    Count = Annotated[int, Query(description="How many of the nearest.", ge=1, le=answers.MOST_FOUND)]

    @app.get("/api/damage")
    def damage(
        item: Item,
        swapped: Views = 0,
        noisy: Views = 0,
        missing: Views = 0,
        strength: Strength = 2.0,
        draw: Draw = 0,
        k: Count = 10,
    ) -> dict[str, Any]:
        """What is found for an item whose views are damaged, by the model and by a rival."""
        if lab is None:
            raise HTTPException(404, "damage needs the items' views: start the page with --views.")
        return lab.tried(item, Dose(swapped, noisy, missing, strength, draw), k)


def _add_health(app: Any, health: Health) -> None:
    from fastapi import HTTPException
    from fastapi.responses import Response

    @app.get("/api/health")
    def facts() -> dict[str, Any]:
        """The audit of the stored items, begun when it is first asked for."""
        return health.told()

    @app.get("/api/health.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
    def table() -> Response:
        """A line for every damaged view of an item."""
        text = health.csv()
        if text is None:
            raise HTTPException(404, "the audit is not done: ask for /api/health and wait until it is.")
        headers = {"content-disposition": 'attachment; filename="health.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


async def _body(request: Any, max_bytes: int, error: Any) -> bytes:
    """The body, never more of it than the cap."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size <= max_bytes:
            parts.append(part)
        elif size > DRAINED * max_bytes:
            break
    if size > max_bytes:
        refusal = too_large(max_bytes)
        raise error(refusal.status, refusal.sentence)
    if not size:
        raise error(422, "the body is empty: send a picture.")
    return b"".join(parts)


async def _in_thread(function: Any, *arguments: Any) -> Any:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(function, *arguments)


def _names(folder: str) -> set[str]:
    return {entry.name for entry in files("quorumhash.web").joinpath(folder).iterdir()}


def _asset(folder: str, name: str) -> bytes:
    return files("quorumhash.web").joinpath(folder, name).read_bytes()


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise ParameterError(
            f"the page cannot listen on {host}, port {port} ({getattr(error, 'strerror', None) or error}): give "
            "another --port, or end what listens there."
        ) from error


def run_server(app: Guard, listening: socket.socket) -> None:
    """Answer until Ctrl-C."""
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, limit_concurrency=400,
                            timeout_keep_alive=15, lifespan="off", ws="none")  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])


def require_server() -> None:
    """Refuse to begin where the packages of the page are not installed."""
    try:
        import fastapi
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(
            f"the page needs the package {error.name}, which is not installed: pip install 'quorumhash[serve]'."
        ) from error
    del fastapi, uvicorn
    require_pillow()
