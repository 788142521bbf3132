"""Search on a device gives the answers of brute force, ties by id, for every way of finding near rows."""

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from quorumhash import HammingIndex  # noqa: E402
from quorumhash.codes import hamming_distances  # noqa: E402
from quorumhash.errors import ParameterError  # noqa: E402
from quorumhash.index import devicetable, neartiles  # noqa: E402
from quorumhash.index.devicetable import DeviceTable  # noqa: E402

pytestmark = pytest.mark.extra


def codes_like(n_rows, n_bytes, seed=0):
    """Few distinct codes, so that there are many ties; the last byte's low bits unused."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 256, (20, n_bytes), dtype=np.uint8)
    codes = centres[rng.integers(0, 20, n_rows)] ^ (rng.random((n_rows, n_bytes)) < 0.1).astype(np.uint8) * 16
    codes[:, -1] &= 0xF0
    return codes


def brute_force(codes, ids, queries, k):
    distances = hamming_distances(queries, codes)
    order = np.stack([np.lexsort((ids, row))[:k] for row in distances])
    return ids[order], np.take_along_axis(distances, order, 1)


@pytest.fixture(params=["matmul on cpu", "matmul on cuda", "products on cuda", "popcount on cuda"])
def place(request, monkeypatch):
    """Spans, capacity and blocks so small that every branch is walked."""
    method, _, device = request.param.partition(" on ")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    if method != "matmul" and not neartiles.is_available():
        pytest.skip("Triton is not installed")
    monkeypatch.setattr(devicetable, "FIRST_SPAN", 100)
    monkeypatch.setattr(devicetable, "CAPACITY", 64)
    monkeypatch.setattr(devicetable, "MOST_QUERIES", 20)
    monkeypatch.setattr(devicetable, "PAIRS", {"cpu": 3000, "cuda": 3000})
    return {"device": device, "method": method}


@pytest.mark.parametrize("n_bytes", [1, 8, 9, 32, 128])
@pytest.mark.parametrize("k", [1, 7, 100, 3000])
def test_nearest_is_brute_force(place, n_bytes, k):
    codes = codes_like(3000, n_bytes)
    ids = np.sort(np.random.default_rng(1).choice(10**12, 3000, replace=False)) - 5 * 10**11
    queries = np.concatenate([codes[:25], codes_like(8, n_bytes, seed=9)])
    found, distances = DeviceTable(codes, ids, **place).nearest(queries, k)
    expected = brute_force(codes, ids, queries, k)
    np.testing.assert_array_equal(found, expected[0])
    np.testing.assert_array_equal(distances, expected[1])
    assert (found.dtype, distances.dtype) == (np.int64, np.uint16)


@pytest.mark.parametrize("radius", [0, 1, 5, 64])
def test_within_is_brute_force(place, radius):
    codes = codes_like(1500, 8)
    queries = np.concatenate([codes[:25], codes_like(8, 8, seed=9)])
    offsets, ids, distances = DeviceTable(codes, None, **place).within(queries, radius)
    expected = hamming_distances(queries, codes)
    np.testing.assert_array_equal(np.diff(offsets), (expected <= radius).sum(axis=1))
    for i, row in enumerate(expected):
        near = np.flatnonzero(row <= radius)
        near = near[np.lexsort((near, row[near]))]
        np.testing.assert_array_equal(ids[offsets[i] : offsets[i + 1]], near)
        np.testing.assert_array_equal(distances[offsets[i] : offsets[i + 1]], row[near])


def test_no_queries_and_few_rows(place):
    table = DeviceTable(codes_like(5, 8), None, **place)
    assert table.nearest(np.empty((0, 8), dtype=np.uint8), 3)[0].shape == (0, 3)
    assert table.nearest(codes_like(2, 8), 5)[0].shape == (2, 5)
    assert table.within(np.empty((0, 8), dtype=np.uint8), 3)[0].tolist() == [0]


def test_an_unknown_method_is_refused():
    with pytest.raises(ParameterError, match="method of a DeviceTable must be one of auto, products"):
        DeviceTable(codes_like(5, 8), None, method="heap")


def test_an_index_on_a_device_answers_as_one_on_threads():
    codes, rng = codes_like(500, 8), np.random.default_rng(3)
    ids = rng.permutation(5000)[:500]
    here, there = HammingIndex(64), HammingIndex(64, engine="torch")

    def same(**options):
        a, b = (index.search(codes[:9] ^ np.uint8(2), k=20, **options) for index in (here, there))
        np.testing.assert_array_equal(a.ids, b.ids)
        np.testing.assert_array_equal(a.distances, b.distances)
        a, b = (index.within(codes[:9], radius=3, **options) for index in (here, there))
        for one, other in ((a.offsets, b.offsets), (a.ids, b.ids), (a.distances, b.distances)):
            np.testing.assert_array_equal(one, other)

    same()
    for index in (here, there):
        index.add(codes, ids=ids)
    same()
    same(where=ids[:30])
    for index in (here, there):
        index.remove(ids[:7])
    same()
    for index in (here, there):
        index.update(codes[:5], ids[20:25])
    same()
    scores = rng.standard_normal((2, 64))
    np.testing.assert_array_equal(here.search(scores, k=5).ids, there.search(scores, k=5).ids)
    np.testing.assert_array_equal(here.pairs(1).ids, there.pairs(1).ids)


def test_an_unknown_engine_of_an_index_is_refused():
    with pytest.raises(ParameterError, match="engine of a HammingIndex must be 'threads', 'torch'"):
        HammingIndex(64, engine="gpu")


def test_a_device_with_too_little_shared_memory_takes_smaller_tiles_then_popcount(monkeypatch):
    launched = []

    class Kernel:
        def __init__(self, name):
            self.name = name

        def __getitem__(self, grid):
            def launch(*_, TILE, **__):
                launched.append((self.name, TILE, *grid))
                if self.name == "mark_products":
                    raise neartiles.OutOfResources(290816, 232448, "shared memory")

            return launch

    for name in ("mark_products", "mark_bit_counts", "collect_marked"):
        monkeypatch.setattr(neartiles, name, Kernel(name), raising=False)
    words, limits = torch.zeros((300, 16), dtype=torch.int64), torch.zeros(2, dtype=torch.int32)
    neartiles.collect_near("products", words[:2], None, words, limits, (0, 300), 8)
    assert launched == [
        ("mark_products", 128, 3), ("mark_products", 64, 5), ("mark_products", 32, 10), ("mark_products", 16, 19),
        ("mark_bit_counts", 256, 2), ("collect_marked", 256, 2),
    ]  # fmt: skip


KERNELS = """
import numpy as np, torch
from quorumhash.index import devicetable
from quorumhash.index.devicetable import DeviceTable
from quorumhash.codes import hamming_distances
devicetable.FIRST_SPAN, devicetable.CAPACITY = 64, 48
rng = np.random.default_rng(0)
for n_bytes in (8, 12):
    codes = rng.integers(0, 256, (5, n_bytes), dtype=np.uint8)[rng.integers(0, 5, 600)]
    codes[:, 0] = rng.integers(0, 8, 600)
    for method in ("products", "popcount"):
        table = DeviceTable(codes, None, method=method)
        table.shape = 16, 64, 4
        found, distances = table.nearest(codes[:20], 9)
        every = hamming_distances(codes[:20], codes)
        order = np.argsort(every, axis=1, kind="stable")[:, :9]
        assert (found == order).all() and (distances == np.take_along_axis(every, order, 1)).all(), method
"""


def test_triton_kernels_in_the_interpreter():
    """Where Triton is installed its kernels run without a device too, slowly."""
    if not neartiles.is_available():
        pytest.skip("Triton is not installed")
    done = subprocess.run(
        [sys.executable, "-c", KERNELS], capture_output=True, text=True, env=os.environ | {"TRITON_INTERPRET": "1"}
    )
    assert done.returncode == 0, done.stderr
