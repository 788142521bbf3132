"""A small collection for the tests of the page, and the page itself on a free port."""

import threading
import time
from contextlib import contextmanager

import numpy as np

import quorumhash as qh
from quorumhash.web.collection import Collection

N_STORED, N_NEW = 160, 20
SCRIPT = "<img src=x onerror=alert(1)>.png"


def small_collection(hasher=None, **more):
    """Digits: 160 stored, 20 new; ids are 10 times the row. Some stored views are swapped or zeros."""
    digits = qh.load_dataset("digits")
    rows = np.concatenate([digits.database_rows[:N_STORED], digits.query_rows[:N_NEW]])
    clean = digits.views[rows]
    damaged = qh.damage(clean[:N_STORED], "swap", rate=0.2, names=["profiles"])
    damaged = qh.damage(damaged, "zero", rate=0.1, names=["gradients"])
    views = qh.Views({name: np.vstack([damaged[name], clean[name][N_STORED:]]) for name in clean})
    hasher = (hasher or qh.ITQHasher(32)).fit(views[:N_STORED])
    given = {"views": views, "labels": digits.labels[rows], **more}
    return Collection("digits", hasher, hasher.transform(views[:N_STORED]), np.arange(N_STORED) * 10,
                      np.arange(len(rows)) * 10, **given)  # fmt: skip


def digit_collection(hasher=None):
    """The small collection with its digits as pictures, digits taken as uploads, and a script for a file's name."""
    from quorumhash.datasets.digits import digit_views
    from quorumhash.web.pictures import ArrayPictures, as_digit

    class NamedPictures(ArrayPictures):
        def name(self, item):
            return SCRIPT if item == 50 else ""

    collection = small_collection(hasher)
    images = np.zeros((10 * len(collection.row_ids), 8, 8))
    images[collection.row_ids] = collection.views["pixels"].reshape(-1, 8, 8)
    collection.pictures = NamedPictures(images, is_ink=True)
    collection.read_picture = lambda pixels: digit_views(as_digit(pixels))
    return collection


@contextmanager
def serving(collection, limits=None):
    """The address of the page over a collection; it is closed in the end."""
    import uvicorn

    from quorumhash.web.app import bound_socket, make_app

    with bound_socket("127.0.0.1", 0) as listening:
        config = uvicorn.Config(make_app(collection, limits), log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        for _ in range(600):
            if server.started:
                break
            time.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)
