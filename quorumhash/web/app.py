"""The routes of the page; the only door to FastAPI and uvicorn.

Annotations are read when a route is made, not put off: FastAPI needs them, and what they name is imported inside
`make_app`.
"""

import socket
from importlib.resources import files
from typing import Annotated, Any

from quorumhash._version import __version__
from quorumhash.errors import MissingExtraError, ParameterError, QuorumHashError
from quorumhash.web import answers
from quorumhash.web.collection import Collection, learn_rival
from quorumhash.web.damagelab import DamageLab, Dose
from quorumhash.web.guards import MAX_UPLOAD_BYTES, Guard, Limits, too_large
from quorumhash.web.health import Health
from quorumhash.web.modelfacts import model_facts
from quorumhash.web.pictures import decoded

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
LONGEST_NAME = 200
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
    try:
        from fastapi import FastAPI, HTTPException, Path, Query, Request
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import JSONResponse, Response
        from starlette.exceptions import HTTPException as AnyHTTPException
    except ImportError as error:
        raise _missing() from error

    limits = limits or Limits()
    told = {status: {"description": "One sentence.", "content": {"application/json": {"schema": ERROR}}}
            for status in (400, 404, 413, 415, 422, 429, 503)}  # fmt: skip
    app: Any = FastAPI(title="quorumhash", version=__version__, docs_url=None, redoc_url=None, responses=told)
    health, rival = Health(collection), learn_rival(collection)
    lab = None if rival is None else DamageLab(collection, rival)
    n_bits, n_views = int(collection.hasher.n_bits_), len(collection.hasher.view_widths_)

    ItemPath = Annotated[int, Path(description="Id of an item.", ge=-(2**63), lt=2**63)]
    ItemQuery = Annotated[int, Query(description="Id of an item.", ge=-(2**63), lt=2**63)]
    KQuery = Annotated[int, Query(description="How many of the nearest.", ge=1, le=answers.MOST_FOUND)]
    RadiusQuery = Annotated[int, Query(description="All items so many bits away at most; -1: k nearest.", ge=-1, le=n_bits)]
    CountQuery = Annotated[int, Query(ge=0, le=n_views)]
    SeedQuery = Annotated[int, Query(ge=0, lt=2**31)]

    @app.exception_handler(AnyHTTPException)
    def show_refusal(_: Request, error: Any) -> Response:
        sentence = error.detail if error.status_code != 404 or error.detail != "Not Found" else "there is nothing here."
        return JSONResponse({"error": str(sentence)}, error.status_code, getattr(error, "headers", None))

    @app.exception_handler(RequestValidationError)
    def show_bad_value(_: Request, error: Any) -> Response:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}."}, 422)

    @app.exception_handler(QuorumHashError)
    def show_error(_: Request, error: QuorumHashError) -> Response:
        return JSONResponse({"error": str(error)}, 400)

    @app.exception_handler(Exception)
    def show_fault(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": f"the page failed at this ({type(error).__name__}); the terminal says more."}, 500)

    def known(item: int) -> int:
        try:
            return answers.require_item(collection, item)
        except ParameterError as error:
            raise HTTPException(404, str(error)) from error

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return Response(_asset("templates", "page.html"), media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        kind = KINDS.get(name.rpartition(".")[2])
        if kind is None or name not in _names("static"):
            raise HTTPException(404, "there is no such file here.")
        return Response(_asset("static", name), media_type=kind, headers={"cache-control": "no-cache"})

    @app.get("/api/collection")
    def collection_facts() -> dict[str, Any]:
        """What the page is about."""
        return {**answers.about(collection), "version": __version__, "rival": rival.name if rival else None,
                "max_upload_bytes": limits.max_bytes}  # fmt: skip

    @app.get("/api/items")
    def items(
        limit: Annotated[int, Query(ge=1, le=100)] = 24, seed: SeedQuery = 0, only_new: bool = False
    ) -> list[dict[str, Any]]:
        """A random choice of items."""
        return answers.some_items(collection, limit, seed, only_new)

    @app.get("/api/items/{item}")
    def item(item: ItemPath) -> dict[str, Any]:
        """One item, its code, and how far its views can be believed."""
        return answers.one_item(collection, known(item))

    @app.get("/api/items/{item}/picture", response_class=Response,
             responses={200: {"content": {"image/png": {}}}})  # fmt: skip
    def picture(item: ItemPath) -> Response:
        """The picture of an item, PNG."""
        if collection.pictures is None or not collection.pictures.has(item):
            raise HTTPException(404, f"there is no picture of item {item}.")
        headers = {"cache-control": "private, max-age=300"}
        return Response(collection.pictures.picture(item), media_type="image/png", headers=headers)

    @app.get("/api/search")
    def search(item: ItemQuery, k: KQuery = 12, radius: RadiusQuery = -1) -> dict[str, Any]:
        """The items nearest to one that is here."""
        return answers.search_item(collection, known(item), k, None if radius < 0 else radius)

    @app.post("/api/search", openapi_extra=UPLOAD)
    async def search_picture(
        request: Request,
        name: Annotated[str, Query(max_length=LONGEST_NAME)] = "the picture",
        k: KQuery = 12,
        radius: RadiusQuery = -1,
    ) -> dict[str, Any]:
        """The items nearest to the picture that is the body."""
        if not request.headers.get("content-type", "").startswith("image/"):
            raise HTTPException(415, "only pictures are taken: send a PNG, JPEG or WebP with its content type.")
        content = await _body(request, limits.max_bytes, HTTPException)
        pixels = await _in_thread(decoded, content, name)
        return await _in_thread(answers.search_picture, collection, pixels, k, None if radius < 0 else radius)

    @app.get("/api/damage")
    def damage(
        item: ItemQuery,
        swapped: CountQuery = 0,
        noisy: CountQuery = 0,
        missing: CountQuery = 0,
        strength: Annotated[float, Query(ge=0, le=10, allow_inf_nan=False)] = 2.0,
        draw: SeedQuery = 0,
        k: KQuery = 10,
    ) -> dict[str, Any]:
        """What is found for an item whose views are damaged, by the model and by a rival."""
        if lab is None:
            raise HTTPException(404, "damage needs the items' views: start the page with --views.")
        return lab.tried(known(item), Dose(swapped, noisy, missing, strength, draw), k)

    @app.get("/api/health")
    def health_facts() -> dict[str, Any]:
        """The audit of the stored items, begun when it is first asked for."""
        return health.told()

    @app.get("/api/health.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
    def health_table() -> Response:
        """A line for every damaged view of an item."""
        text = health.csv()
        if text is None:
            raise HTTPException(404, "the audit is not done: ask for /api/health and wait until it is.")
        headers = {"content-disposition": 'attachment; filename="health.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    @app.get("/api/model")
    def model() -> dict[str, Any]:
        """Views, bits and history of the model."""
        return model_facts(collection)

    return Guard(app, limits)


async def _body(request: Any, max_bytes: int, error: Any) -> bytes:
    """The body, never more of it than the cap."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            refusal = too_large(max_bytes)
            raise error(refusal.status, refusal.sentence)
        parts.append(part)
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
            f"the page cannot listen on {host}, port {port} ({getattr(error, 'strerror', None) or error}): give another "
            "--port, or end what listens there."
        ) from error


def run_server(app: Guard, listening: socket.socket) -> None:
    """Answer until Ctrl-C."""
    try:
        import uvicorn
    except ImportError as error:
        raise _missing() from error
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, limit_concurrency=400,
                            timeout_keep_alive=15, lifespan="off", ws="none")  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])


def _missing() -> MissingExtraError:
    return MissingExtraError("the page needs FastAPI and uvicorn, which are not installed: pip install 'quorumhash[serve]'.")


__all__ = ["MAX_UPLOAD_BYTES", "bound_socket", "make_app", "run_server"]
