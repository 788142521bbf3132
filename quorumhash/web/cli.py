"""`quorumhash serve`: the page over a model and an index, or over a demo; a thin coat."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from quorumhash.errors import ParameterError
from quorumhash.printing import JsonOption, note, say
from quorumhash.progress import watching

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    model: Annotated[Path | None, typer.Argument(help="Model file.", metavar="MODEL")] = None,
    index: Annotated[Path | None, typer.Argument(help="Index file, .qhx.", metavar="INDEX")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Show a dataset whose stored items were damaged.")] = False,
    dataset: Annotated[
        str, typer.Option("--dataset", help="Of the demo: digits, or cifar10, mnist or fashion_mnist once fetched.")
    ] = "digits",
    views: Annotated[
        list[str] | None,
        typer.Option("--views", help="Views of the items, a file or name=path, repeated; for damage and health."),
    ] = None,
    ids: Annotated[
        Path | None, typer.Option("--ids", help="Ids of the rows of views and labels, .npy; else row i is item i.")
    ] = None,
    labels: Annotated[Path | None, typer.Option("--labels", help="Labels of the rows, .npy.")] = None,
    images: Annotated[
        Path | None, typer.Option("--images", help="Folder of pictures, called by id (812.jpg) or in the items' order.")
    ] = None,
    uploads: Annotated[
        int | None,
        typer.Option(
            "--uploads", help="Take pictures, where extract_features made the views: from so many pixels a side."
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any free one.")] = 8000,
    name: Annotated[str, typer.Option("--name", help="Host name the page is called by too, behind a proxy.")] = "",
    rate: Annotated[float, typer.Option("--rate", help="Requests a second from one address; 0: no limit.")] = 100.0,
    as_json: JsonOption = False,
) -> None:
    """Show a page on this machine: search, damage, health of the data, the model; Ctrl-C ends it.

    Example: quorumhash serve items.qh items.qhx --views views.npz --images pictures
    """
    from quorumhash.web.app import bound_socket, make_app, require_server, run_server
    from quorumhash.web.guards import Limits
    from quorumhash.web.opening import Files, demo_collection, open_collection

    if demo == (model is not None) or (model is None) != (index is None):
        raise ParameterError("serve needs a model file and an index file, or --demo and no file.")
    if rate < 0:
        raise ParameterError(f"--rate must be a number of requests from 0 up, got {rate:g}.")
    require_server()
    with bound_socket(host, port) as listening:
        has_bars = demo and dataset != "digits"  # of its own
        with nullcontext() if has_bars else watching("serve"):
            if model is None or index is None:
                collection = demo_collection(dataset)
            else:
                files = Files(model, index, views or (), ids, labels, images, uploads)
                collection = open_collection(files)
            app = make_app(collection, Limits(name or host, requests_per_second=rate))
        if host not in LOOPBACK:
            note(f"everyone who can reach {host} can see these items; there is no password.")
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
        facts = {"url": address, "items": len(collection.ids), "bits": int(collection.hasher.n_bits_)}
        say(as_json, facts, f"{collection.title}: {len(collection.ids)} items at {address} (Ctrl-C ends it).")
        run_server(app, listening)
