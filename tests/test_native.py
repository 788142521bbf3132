"""Every kernel against brute force written from the definition of the Hamming distance."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from quorumhash._native import kernels
from quorumhash._native.kernels import Costs, Search
from quorumhash._native.layout import from_tiles, to_tiles, to_words
from quorumhash.codes import pack_bits
from quorumhash.errors import ParameterError
from quorumhash.index.bands import band_widths, make_bands
from quorumhash.index.codetable import CodeTable
from quorumhash.index.searching import cost_tables, cut

KERNELS = ("avx512", "avx2", "neon", "portable", "numpy")
COMPILED = KERNELS[:-1]
BITS = (1, 8, 9, 13, 63, 64, 65, 127, 128, 248, 249, 256, 1024)


@pytest.fixture(params=KERNELS)
def kernel(request):
    if request.param not in kernels.available():
        pytest.skip(f"this processor or this build has no {request.param} kernel")
    return request.param


def random_bits(rng, n, n_bits, n_centres=5):
    """Bits of codes that lie around a few centres, many of them alike."""
    centres = rng.integers(0, 2, (n_centres, n_bits))
    flips = rng.random((n, n_bits)) < rng.choice([0.0, 0.05, 0.3], n)[:, None]
    return (centres[rng.integers(0, n_centres, n)] ^ flips).astype(np.uint8)


class Case:
    """Items and queries of n_bits bits, in a table of several segments, some items removed."""

    def __init__(self, n_bits, n_items=700, seed=0, deduplicate=True, removed=0.1):
        rng = np.random.default_rng([seed, n_bits])
        self.n_bits = n_bits
        bits = random_bits(rng, n_items, n_bits)
        self.query_bits = np.concatenate([bits[:5], random_bits(rng, 9, n_bits)])
        ids = rng.permutation(10 * n_items)[:n_items].astype(np.int64) - n_items
        self.table = CodeTable(-(-n_bits // 8), deduplicate)
        cuts = [0, n_items // 2, n_items // 2 + n_items // 7, n_items // 2 + n_items // 7 + 20]
        cuts = [*cuts, n_items] if n_items < 700 else cuts  # else three segments that are not joined
        for start, stop in itertools.pairwise(cuts):
            self.table.add(pack_bits(bits[start:stop]), ids[start:stop])
        self.bits, self.ids = bits[: cuts[-1]], ids[: cuts[-1]]
        if removed:
            gone = rng.random(len(self.ids)) < removed
            self.table.remove(self.ids[gone])
            self.bits, self.ids = self.bits[~gone], self.ids[~gone]
        self.queries = pack_bits(self.query_bits)

    def parts(self, allowed=None, bands=False):
        if bands:
            for segment in self.table.segments:
                segment.bands = make_bands(segment.tiles, segment.n_rows, self.n_bits)
        return [s.part(None if allowed is None else np.isin(s.ids, allowed), bands) for s in self.table.segments]

    def distances(self):
        """(q, n) number of differing bits, by definition."""
        return (self.query_bits[:, None, :] != self.bits[None]).sum(axis=2)

    def nearest(self, k):
        found = self.distances()
        order = [sorted(range(len(self.ids)), key=lambda i: (row[i], self.ids[i]))[:k] for row in found]
        return self.ids[np.array(order)], np.take_along_axis(found, np.array(order), 1)

    def within(self, radius):
        rows = []
        for row in self.distances():
            near = [i for i in range(len(self.ids)) if row[i] <= radius]
            near.sort(key=lambda i: (row[i], self.ids[i]))
            rows.append((self.ids[near].tolist(), row[near].tolist()))
        return rows


def found_within(search, queries, radius):
    offsets, ids, distances, _ = kernels.within(search, queries, radius)
    pieces = itertools.pairwise(offsets)
    return [(ids[a:b].tolist(), distances[a:b].tolist()) for a, b in pieces]


@pytest.mark.parametrize("n_bits", BITS)
@pytest.mark.parametrize("k", [1, 7, 100])
def test_nearest_is_brute_force(kernel, n_bits, k):
    case = Case(n_bits)
    ids, distances, effort = kernels.nearest(Search(kernel, n_bits, case.parts()), case.queries, k)
    wanted_ids, wanted = case.nearest(k)
    np.testing.assert_array_equal(distances, wanted)
    np.testing.assert_array_equal(ids, wanted_ids)
    assert effort == (len(case.queries) * len(case.table.segments), 0)


@pytest.mark.parametrize("n_bits", BITS)
def test_all_items_can_be_asked_for(kernel, n_bits):
    case = Case(n_bits, n_items=150)
    ids, distances, _ = kernels.nearest(Search(kernel, n_bits, case.parts()), case.queries, len(case.ids))
    wanted_ids, wanted = case.nearest(len(case.ids))
    np.testing.assert_array_equal(ids, wanted_ids)
    np.testing.assert_array_equal(distances, wanted)


@pytest.mark.parametrize("n_bits", BITS)
def test_within_is_brute_force(kernel, n_bits):
    case = Case(n_bits)
    for radius in {0, 1, 2, n_bits // 4, n_bits}:
        assert found_within(Search(kernel, n_bits, case.parts()), case.queries, radius) == case.within(radius)


@pytest.mark.parametrize("n_bits", [8, 9, 64, 128, 256, 1024])
@pytest.mark.parametrize("stage", [1, 3, 8, 31])
def test_a_prefix_first_gives_the_same(kernel, n_bits, stage):
    case = Case(n_bits)
    ids, distances, _ = kernels.nearest(Search(kernel, n_bits, case.parts(), min(stage, n_bits // 8)), case.queries, 9)
    wanted_ids, wanted = case.nearest(9)
    np.testing.assert_array_equal(ids, wanted_ids)
    np.testing.assert_array_equal(distances, wanted)


@pytest.mark.parametrize("n_bits", BITS)
def test_scores_rank_by_their_sum_over_signs(kernel, n_bits):
    """Scores are small whole numbers: sums are exact, and many of them equal."""
    case = Case(n_bits)
    rng = np.random.default_rng(1)
    scores = rng.integers(-3, 4, (6, n_bits)).astype(float)
    sums = scores @ (2.0 * case.bits.T - 1)
    order = np.array([sorted(range(len(case.ids)), key=lambda i: (-row[i], case.ids[i]))[:20] for row in sums])
    codes = pack_bits(scores >= 0)
    search = Search(kernel, n_bits, case.parts())
    ids, costs, distances, _ = kernels.ranked(search, codes, cost_tables(scores), 20)
    np.testing.assert_array_equal(ids, case.ids[order])
    np.testing.assert_array_equal(np.abs(scores).sum(1, keepdims=True) - 2 * costs, np.take_along_axis(sums, order, 1))
    wrong = ((scores >= 0)[:, None] != case.bits[order].astype(bool)).sum(axis=2)
    np.testing.assert_array_equal(distances, wrong)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-3, 1.0, 1e300])
def test_scores_of_any_size_give_the_same_on_all_kernels(kernel, scale):
    case = Case(64, n_items=5000, removed=0)
    scores = np.random.default_rng(2).standard_normal((8, 64)) * scale
    given = pack_bits(scores >= 0), cost_tables(scores), 30
    wanted = kernels.ranked(Search("numpy", 64, case.parts()), *given)
    found = kernels.ranked(Search(kernel, 64, case.parts()), *given)
    for a, b in zip(found[:3], wanted[:3], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n_bits", BITS)
@pytest.mark.parametrize("name", COMPILED)
def test_bands_are_brute_force(name, n_bits):
    if name not in kernels.available():
        pytest.skip(f"this processor or this build has no {name} kernel")
    case = Case(n_bits)
    search = Search(name, n_bits, case.parts(bands=True), 0, Costs(scan=-1.0))
    for k in (1, 10):
        # certifying a k-th item far away means looking up nearly every value of bands: near queries only
        near = case.nearest(k)[1][:, -1] <= 40
        ids, distances, effort = kernels.nearest(search, case.queries[near], k)
        np.testing.assert_array_equal(ids, case.nearest(k)[0][near])
        np.testing.assert_array_equal(distances, case.nearest(k)[1][near])
        assert effort.scanned == 0
    for radius in (0, 1, 2, 3, 7):
        assert found_within(search, case.queries, radius) == case.within(radius)


@pytest.mark.parametrize("cost", [1e-3, 0.1, 10.0])
def test_a_plan_changes_no_answer(cost):
    """Look-ups given up for a scan leave nothing behind."""
    if kernels.available()[0] == "numpy":
        pytest.skip("no compiled kernel")
    case = Case(64, n_items=3000)
    parts = case.parts(bands=True)
    for k in (1, 5, 50):
        found = kernels.nearest(Search(kernels.available()[0], 64, parts, 0, Costs(cost, 1.0, 0.1)), case.queries, k)
        np.testing.assert_array_equal(found[0], case.nearest(k)[0])


def test_plans_differ_by_cost():
    if kernels.available()[0] == "numpy":
        pytest.skip("no compiled kernel")
    case = Case(64, n_items=3000)
    efforts = []
    for cost in (1e-6, 1e6):
        search = Search(kernels.available()[0], 64, case.parts(bands=True), 0, Costs(cost, 1.0, 0.1))
        efforts.append(kernels.nearest(search, case.queries, 5)[2])
    assert efforts[0].looked_up == 0
    assert efforts[1].scanned == 0


def test_items_left_out_are_not_found(kernel):
    case = Case(13)
    allowed = case.ids[::3]
    parts = case.parts(allowed)
    case.bits, case.ids = case.bits[::3], case.ids[::3]
    ids, distances, _ = kernels.nearest(Search(kernel, 13, parts), case.queries, 40)
    np.testing.assert_array_equal(ids, case.nearest(40)[0])
    np.testing.assert_array_equal(distances, case.nearest(40)[1])
    assert found_within(Search(kernel, 13, parts), case.queries, 2) == case.within(2)


def test_large_tables_have_seeded_limits_and_early_ends(kernel):
    """20,000 codes: runs of tiles, first limits from the codes around the query, tiles left early."""
    rng = np.random.default_rng(3)
    bits = random_bits(rng, 20_000, 64, n_centres=40)
    queries = random_bits(rng, 7, 64)
    queries[:4] = bits[:4]
    table = CodeTable(8)
    table.add(pack_bits(bits), np.arange(20_000))
    distances = (queries[:, None] != bits[None]).sum(axis=2)
    for k in (1, 10, 3000):
        order = np.lexsort((np.broadcast_to(np.arange(20_000), distances.shape), distances))[:, :k]
        found = kernels.nearest(Search(kernel, 64, [table.segments[0].part(None, False)]), pack_bits(queries), k)
        np.testing.assert_array_equal(found[0], order)
        np.testing.assert_array_equal(found[1], np.take_along_axis(distances, order, 1))


def test_pieces_of_a_part_hold_all_its_items():
    case = Case(9, n_items=2000)
    parts = case.parts()
    pieces = [part for piece in cut(parts, 3) for part in piece]
    assert len(pieces) > len(parts)
    found = kernels.nearest(Search("numpy", 9, pieces), case.queries, len(case.ids))
    np.testing.assert_array_equal(found[0], case.nearest(len(case.ids))[0])


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_tiles_and_words_keep_codes(n):
    codes = np.random.default_rng(n).integers(0, 256, (n, 11), dtype=np.uint8)
    np.testing.assert_array_equal(from_tiles(to_tiles(codes), n), codes)
    np.testing.assert_array_equal(to_words(codes).astype(">u8").view(np.uint8)[:, :11], codes)


@pytest.mark.parametrize("n_bits", BITS)
def test_bands_cover_every_bit_once(n_bits):
    for n_rows in (1, 2, 1000, 10**6, 10**9):
        widths = band_widths(n_bits, n_rows)
        assert sum(widths) == n_bits
        assert max(widths) - min(widths) <= 1
        assert 1 <= min(widths) <= max(widths) <= 24
        assert len(widths) <= 128


def test_a_kernel_can_be_chosen_by_name(monkeypatch):
    for name in kernels.available():
        monkeypatch.setenv("QUORUMHASH_KERNEL", name)
        assert kernels.chosen() == name
    monkeypatch.setenv("QUORUMHASH_KERNEL", "abacus")
    with pytest.raises(ParameterError, match=r"QUORUMHASH_KERNEL must be one of .*numpy"):
        kernels.chosen()


def test_without_the_extension_numpy_answers():
    code = (
        "import sys; sys.modules['quorumhash._native._hamming'] = None\n"
        "import numpy as np\n"
        "from quorumhash import HammingIndex\n"
        "from quorumhash._native import kernels\n"
        "assert kernels.available() == ('numpy',)\n"
        "index = HammingIndex(8, method='multi-index'); index.add(np.array([[1], [3]], dtype=np.uint8))\n"
        "assert index.search(np.array([[3]], dtype=np.uint8), k=2).ids.tolist() == [[1, 0]]\n"
        "assert index.within(np.array([[3]], dtype=np.uint8), 0).ids.tolist() == [1]\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "QUORUMHASH_KERNEL"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.skipif(kernels.available() == ("numpy",), reason="no compiled kernel")
def test_short_buffers_are_refused():
    """The extension checks lengths itself: a wrong call is an error, not a read past the end."""
    part = Case(64).parts()[0]
    ids, distances = np.empty((1, 5), dtype=np.int64), np.empty((1, 5), dtype=np.uint16)
    query = np.zeros((1, 8), dtype=np.uint8)
    native = kernels._hamming
    wrong = [
        (Search("portable", 64, [part]), query[:, :7].copy(), 1, 5, ids, distances),
        (Search("portable", 64, [part]), query, 1, 6, ids, distances),
        (Search("portable", 64, [part._replace(tiles=part.tiles[:-1])]), query, 1, 5, ids, distances),
        (Search("portable", 64, [part._replace(n_items=part.n_items - 1)]), query, 1, 5, ids, distances),
        (Search("abacus", 64, [part]), query, 1, 5, ids, distances),
        (Search("portable", 1025, [part]), query, 1, 5, ids, distances),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError, match=r"must have|no such kernel"):
            native.nearest(*arguments)
    wide = np.empty((1, 5000), dtype=np.int64), np.empty((1, 5000), dtype=np.uint16)
    with pytest.raises(RuntimeError, match="fewer items"):
        native.nearest(Search("portable", 64, [part]), query, 1, 5000, *wide)
