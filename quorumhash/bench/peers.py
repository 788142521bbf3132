"""What people would use in place of a hasher: rankings of the database at a stated number of bytes per item.

    pq, opq         product quantization of the joined, scaled views, without and with a learned rotation (faiss);
                    n_bits / 8 bytes, queries stay floats
    rabitq          RaBitQ of their first n_bits principal components (faiss); 8 bytes of corrections beside the bits,
                    queries stay floats
    rank_fusion     reciprocal rank fusion over the views' own ITQ codes, n_bits shared out among them
    sign            one bit per feature of the joined views, as vector databases quantise an embedding
    sign_rescored   the same, the first 100 put into the order of the floats, which then have to be kept too

faiss comes with the extra bench; without it its three peers are refused.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from quorumhash.codes import hamming_distances, n_bytes, pack_bits
from quorumhash.hashers import HASHERS
from quorumhash.similarity import squared_distances
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]

N_CENTROIDS = 256  # of every byte
WIDEST_PART = 16  # dimensions that one byte of opq stands for
FUSION_OFFSET = 60  # of reciprocal ranks, as its authors chose it
N_RESCORED = 100
FLOAT_BYTES = 4


@dataclass(frozen=True)
class PeerData:
    """Views of all items, the same joined and scaled (n, d), and the setting."""

    views: Views
    joined: FloatArray
    train_rows: npt.NDArray[np.int64]
    database_rows: npt.NDArray[np.int64]
    query_rows: npt.NDArray[np.int64]
    n_bits: int
    seed: int


class Ranking(NamedTuple):
    """Distances (q, n) of database items to queries, in whatever unit, and what an item takes in memory."""

    distances: FloatArray
    bytes_per_item: float


def refusal(peer: str, data: PeerData) -> str:
    """Why the peer cannot face this setting; "" where it can."""
    if peer not in ("pq", "opq", "rabitq"):
        return ""
    if importlib.util.find_spec("faiss") is None:
        return f"{peer} needs faiss: pip install 'quorumhash[bench]'."
    if data.n_bits % 8:
        return f"n_bits of {peer} must be a multiple of 8, got {data.n_bits}; use whole bytes."
    if peer == "rabitq" and data.n_bits > data.joined.shape[1]:
        return f"n_bits of rabitq must be at most the number of features ({data.joined.shape[1]}), got {data.n_bits}."
    if peer != "rabitq" and len(data.train_rows) < N_CENTROIDS:
        return f"{peer} learns {N_CENTROIDS} centroids and has {len(data.train_rows)} training rows; give more rows."
    return ""


def pq(data: PeerData) -> Ranking:
    """Product quantization; features are padded with zeros to whole parts."""
    n_parts = data.n_bits // 8
    n_padded = -data.joined.shape[1] % n_parts
    padded = np.pad(data.joined, ((0, 0), (0, n_padded))).astype(np.float32)
    return _faiss_ranking(_quantiser(padded.shape[1], n_parts, data.seed), data, padded)


def opq(data: PeerData) -> Ranking:
    """The same after a rotation that is learned with it, to 16 dimensions per byte at most."""
    faiss = _faiss()
    n_parts, features = data.n_bits // 8, data.joined.astype(np.float32)
    width = -(-min(features.shape[1], WIDEST_PART * n_parts) // n_parts) * n_parts
    quantiser = _quantiser(width, n_parts, data.seed)
    rotation = faiss.OPQMatrix(features.shape[1], n_parts, width)
    rotation.pq = quantiser.pq
    rotation.train(features[data.train_rows])
    return _faiss_ranking(quantiser, data, rotation.apply(features))


def rabitq(data: PeerData) -> Ranking:
    """RaBitQ of randomly rotated principal components."""
    faiss = _faiss()
    features = data.joined.astype(np.float32)
    components = faiss.PCAMatrix(features.shape[1], data.n_bits)
    rotation = faiss.RandomRotationMatrix(data.n_bits, data.n_bits)
    rotation.init(data.seed)
    components.train(features[data.train_rows])
    index = faiss.IndexRaBitQ(data.n_bits)
    index.qb = 0  # bits per dimension of a query; 0: floats
    return _faiss_ranking(index, data, rotation.apply(components.apply(features)))


def rank_fusion(data: PeerData) -> Ranking:
    """Sum over views of 1 / (60 + rank); a view that a query or an item lacks adds nothing."""
    names = data.views.names
    bits = [data.n_bits // len(names) + (i < data.n_bits % len(names)) for i in range(len(names))]
    scores = np.zeros((len(data.query_rows), len(data.database_rows)))
    for name, n_bits in zip(names, bits, strict=True):
        rows, present = np.asarray(data.views[name]), data.views.present(name)
        train_rows = data.train_rows[present[data.train_rows]]
        if n_bits == 0 or len(train_rows) < 2:
            continue
        hasher = HASHERS["pcah"](n_bits=n_bits, random_state=data.seed)
        hasher.set_params(rotate=True)  # ITQ without its limit on bits
        hasher.fit({name: rows[train_rows]})
        codes = np.zeros((len(rows), n_bytes(n_bits)), dtype=np.uint8)
        codes[present] = hasher.transform({name: rows[present]})
        distances = hamming_distances(codes[data.query_rows], codes[data.database_rows]).astype(np.float64)
        has_both = present[data.query_rows][:, None] & present[data.database_rows]
        ranks = rankdata(np.where(has_both, distances, np.inf), axis=1)  # ties share their mean rank
        scores += np.where(has_both, 1.0 / (FUSION_OFFSET + ranks), 0.0)
    return Ranking(-scores, n_bytes(data.n_bits))


def sign(data: PeerData) -> Ranking:
    """Hamming distances between the signs of all features."""
    codes = pack_bits(data.joined >= 0)
    distances = hamming_distances(codes[data.query_rows], codes[data.database_rows]).astype(np.float64)
    return Ranking(distances, codes.shape[1])


def sign_rescored(data: PeerData) -> Ranking:
    """The same, the first 100 put into the order of the exact distances."""
    distances, n_code = sign(data)
    first = np.argsort(distances, axis=1, kind="stable")[:, :N_RESCORED]
    exact = squared_distances(data.joined[data.query_rows], data.joined[data.database_rows])
    ranks = rankdata(np.take_along_axis(exact, first, axis=1), axis=1)
    rescored = distances + N_RESCORED + 1
    np.put_along_axis(rescored, first, ranks, axis=1)
    return Ranking(rescored, n_code + FLOAT_BYTES * data.joined.shape[1])


PEERS: dict[str, Callable[[PeerData], Ranking]] = {
    "pq": pq,
    "opq": opq,
    "rabitq": rabitq,
    "rank_fusion": rank_fusion,
    "sign": sign,
    "sign_rescored": sign_rescored,
}


def _faiss() -> Any:
    import faiss

    return faiss


def _quantiser(width: int, n_parts: int, seed: int) -> Any:
    index = _faiss().IndexPQ(width, n_parts, 8)
    index.pq.cp.seed = seed + 1
    index.pq.cp.min_points_per_centroid = 1  # or it warns on standard error
    return index


def _faiss_ranking(index: Any, data: PeerData, features: npt.NDArray[np.float32]) -> Ranking:
    """Learned from the training rows, filled with the database, asked for all of it by the queries' floats."""
    index.train(features[data.train_rows])
    index.add(features[data.database_rows])
    found, rows = index.search(features[data.query_rows], len(data.database_rows))
    distances = np.full(found.shape, np.inf)
    np.put_along_axis(distances, rows, found.astype(np.float64), axis=1)
    return Ranking(distances, index.code_size)
