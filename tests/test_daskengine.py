"""Rows on the workers of a dask cluster: the six verbs, files, workers that die, a scheduler that goes away."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import quorumhash as qh
from quorumhash._native.kernels import Costs, Effort
from quorumhash.engines import Rows, daskengine, open_engine
from quorumhash.engines.partitions import Walk, added, aligned, map_partition, partition_bounds, sum_partition
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.errors import EngineError, ParameterError
from quorumhash.shardfiles import ShardFiles
from quorumhash.sweeps import Sweep

X = np.random.default_rng(0).standard_normal((300, 6))


def test_partitions_are_whole_blocks_by_the_number_of_rows_alone():
    for n_rows, block_rows in [(1, 128), (1000, 128), (10_000, 1), (10_000_000, 2048), (131_073, 2048)]:
        bounds = partition_bounds(n_rows, block_rows)
        assert [part.start for part in bounds[1:]] == [part.stop for part in bounds[:-1]]
        assert (bounds[0].start, bounds[-1].stop) == (0, n_rows)
        assert all(part.start % block_rows == 0 for part in bounds)
    counts = [len(partition_bounds(n, 2048)) for n in (1, 8 * 2048, 32_768, 1_000_000, 100_000_000)]
    assert counts == [1, 4, 4, 55, 763]


def test_sums_are_added_from_the_first_to_the_last():
    parts = [(np.array([1e16]), np.array(1.0)), (np.array([1.0]), np.array(2.0)), (np.array([-1e16]), np.array(3.0))]
    first, second = added(parts)
    assert first == (1e16 + 1.0) - 1e16
    assert second == 6
    assert parts[0][0] == 1e16


def anywhere(matrix):
    """The same numbers, in the same order, where no number of their type lies by itself: as in a message."""
    order = "C" if matrix.flags.c_contiguous else "F"
    moved = np.empty(matrix.nbytes + 1, dtype=np.uint8)[1:].view(matrix.dtype).reshape(matrix.shape, order=order)
    moved[:] = matrix
    assert not moved.flags.aligned
    return moved


def gram_and_moves(block, sweep):
    return block.T @ block, block @ sweep.left @ sweep.right


def test_what_came_in_a_message_gives_the_same_bits():
    rng = np.random.default_rng(1)
    wide, left, right = rng.standard_normal((150, 30)), rng.standard_normal((30, 3)), rng.standard_normal((3, 30))
    walk = Walk(gram_and_moves, "threads", 75, (None, None), (True, False), (False, False))
    found = []
    for lay in (np.array, anywhere):
        blocks, sweep = [lay(wide[:75]), lay(wide[75:])], Sweep(lay(np.asfortranarray(left)), lay(right), 1.0, 1.0, 1.0)
        found.append([*sum_partition(lay(wide), sweep, walk=walk), *map_partition(blocks, sweep, walk=walk)[1]])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_what_lies_badly_is_copied():
    good = X, [X, (X, 3)], Sweep(X, None, 1.0, 1.0, 1.0), "word", Effort(1, 2)
    assert all(aligned(value) is value for value in good)
    found = aligned([anywhere(np.asfortranarray(X)), Costs(anywhere(X))])
    assert isinstance(found[1], Costs)
    for moved in (found[0], found[1].scan):
        assert moved.flags.aligned
        np.testing.assert_array_equal(moved, X)
    assert found[0].flags.f_contiguous  # products of columns round otherwise than those of rows


distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
from quorumhash.engines.daskengine import DaskEngine  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    with DaskEngine(n_workers=2) as engine:
        yield engine


@pytest.fixture
def client(cluster):
    return cluster._client


@pytest.mark.extra
@pytest.mark.parametrize("block_rows", [1, 2, 75, 1000])
def test_verbs_are_those_of_threads(client, block_rows, monkeypatch):
    """Blocks of 1 and 2 rows make partitions of several blocks, and more sums than are added in one go."""
    monkeypatch.setattr(daskengine, "MOST_SUMS", 8)
    monkeypatch.setattr(daskengine, "AT_ONCE", 3)
    outer, shift = np.random.default_rng(1).standard_normal((6, 6)), np.arange(300.0)[:, None]
    answers = []
    for engine in (ThreadsEngine(1, block_rows), DaskEngine(client, block_rows=block_rows)):
        with engine:
            rows, other = engine.put(X), engine.put(shift)
            made = engine.map_rows(lambda a, m, b, n: a @ m + b * n, rows, outer, other, 2.0)
            assert isinstance(made, Rows)
            one, two, facts = engine.map_rows(lambda a: (a * 2, a[:, :1] + 1, a[:1] * 0 + len(a)), made)
            assert (made.n_rows, one.n_rows, facts.n_rows) == (300, 300, -(-300 // block_rows))
            positions = np.array([299, 3, 3, 0, 150])
            answers.append(
                [
                    *(engine.get(r) for r in (rows, made, one, two, facts)),
                    *(engine.take_rows(r, positions) for r in (rows, made, two)),
                    *engine.sum_rows(lambda a, b: (a.T @ b, np.float32(len(a))), one, two),
                ]
            )
    for expected, found in zip(*answers, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
        if block_rows >= 70:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.extra
def test_sparse_and_mapped_rows_are_read_dense(client, tmp_path):
    np.save(tmp_path / "x.npy", X)
    with DaskEngine(client, block_rows=70) as engine:
        for given in (scipy.sparse.csr_array(X), np.load(tmp_path / "x.npy", mmap_mode="r"), np.asfortranarray(X)):
            np.testing.assert_array_equal(engine.get(engine.map_rows(lambda block: block + 0, engine.put(given))), X)
            np.testing.assert_array_equal(engine.take_rows(engine.put(given), np.array([5, 0])), X[[5, 0]])


def _overwrite(block):
    block *= 2
    return block


@pytest.mark.extra
def test_a_function_may_overwrite_only_a_copy(client):
    with DaskEngine(client, block_rows=70) as engine:
        made = engine.map_rows(lambda block: block + 0, engine.put(X))
        doubled = engine.map_rows(_overwrite, made, reuse=[made])
        np.testing.assert_array_equal(engine.get(doubled), 2 * X)
        np.testing.assert_array_equal(engine.get(made), X)


@pytest.mark.extra
def test_a_matrix_for_every_block_is_sent_once(client):
    with DaskEngine(client, block_rows=70) as engine:
        rows = engine.put(X)
        for _ in range(3):
            large = np.ones((6, 4000))  # a new object each time
            assert engine.sum_rows(lambda block, m: (block @ m).sum(keepdims=True), rows, large).shape == (1, 1)
        assert len(engine._sent) == 1


@pytest.mark.extra
def test_an_error_of_a_function_comes_as_it_is(client):
    with DaskEngine(client) as engine, pytest.raises(ZeroDivisionError):
        engine.sum_rows(lambda block: block * (1 // 0), engine.put(X))


@pytest.mark.extra
def test_engines_open_by_name_address_or_client(client):
    address = client.scheduler.address
    for given in (client, f"dask:{address}", DaskEngine(address)):
        with open_engine(given) as engine:
            np.testing.assert_allclose(engine.sum_rows(lambda block: block.T @ block, engine.put(X)), X.T @ X)
    with pytest.raises(ParameterError, match="not open"):
        engine.sum_rows(lambda block: block, engine.put(X))
    with pytest.raises(ParameterError, match="worker_engine"):
        DaskEngine(client, worker_engine="dask")
    with pytest.raises(ParameterError, match="another engine"):
        ThreadsEngine(1).get(DaskEngine(client).put(X))


@pytest.mark.extra
def test_rows_of_files_do_not_pass_through_the_driver(client, tmp_path, monkeypatch):
    views = {"a": X, "b": X[:, :3] ** 2}
    for name, matrix in views.items():
        np.save(tmp_path / f"{name}-0.npy", matrix[:110])
        np.save(tmp_path / f"{name}-1.npy", matrix[110:])
    expected = qh.ITQHasher(n_bits=8).fit(views, engine=ThreadsEngine(1, block_rows=75))
    with DaskEngine(client, block_rows=75) as engine:
        given = {name: qh.shards(str(tmp_path / f"{name}-*.npy"), engine=engine) for name in views}
        monkeypatch.setattr(ShardFiles, "__getitem__", _refuse)  # here; workers are other processes
        hasher = qh.ITQHasher(n_bits=8).fit(given, engine=engine)
        codes = hasher.transform(given, engine=engine)
    assert hasher.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(codes, expected.transform(views))


@pytest.mark.extra
def test_rows_of_lance_datasets_do_not_pass_through_the_driver(client, tmp_path, monkeypatch):
    lancedb, pa = pytest.importorskip("lancedb"), pytest.importorskip("pyarrow")
    database, views = lancedb.connect(str(tmp_path)), {"a": X, "b": X[:, :3] ** 2}
    for i, rows in enumerate((slice(0, 110), slice(110, 300))):
        lists = {
            name: pa.FixedSizeListArray.from_arrays(pa.array(matrix[rows].ravel()), matrix.shape[1])
            for name, matrix in views.items()
        }
        database.create_table(f"part-{i}", pa.table(lists))
    expected = qh.ITQHasher(n_bits=8).fit(views, engine=ThreadsEngine(1, block_rows=75))
    with DaskEngine(client, block_rows=75) as engine:
        given = {name: qh.shards(str(tmp_path / "part-*.lance"), view=name, engine=engine) for name in views}
        monkeypatch.setattr(ShardFiles, "__getitem__", _refuse)
        hasher = qh.ITQHasher(n_bits=8).fit(given, engine=engine)
        encoded = qh.encode_shards(hasher, sorted(tmp_path.glob("part-*.lance")), tmp_path / "codes", engine=engine)
    assert hasher.fingerprint() == expected.fingerprint()
    codes = np.concatenate([np.load(shard.codes) for shard in encoded])
    np.testing.assert_array_equal(codes, expected.transform(views))


def _refuse(self, key):
    raise AssertionError("rows were read by the driver")


class KillingEngine(DaskEngine):
    """Kills a worker, once, when answers are waited for the n-th time."""

    def __init__(self, client, moment):
        super().__init__(client, block_rows=30)
        self.moment, self.n_asked, self.killed = moment, 0, 0

    def _gathered(self, futures):
        self.n_asked += 1
        if self.n_asked == self.moment:
            self.killed = next(iter(self._client.run(os.getpid).values()))
            os.kill(self.killed, signal.SIGKILL)
        return super()._gathered(futures)


@pytest.mark.extra
@pytest.mark.parametrize("moment", [3, 14])
@pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
def test_a_worker_killed_during_fit_or_transform_changes_nothing(client, moment):
    views = {"a": X, "b": X[:, :3] ** 2}
    hasher, calm = qh.ConsensusHasher(n_bits=4, max_iter=5), KillingEngine(client, moment=10**9)
    expected = hasher.fit(views, engine=calm).decision_function(views)
    engine = KillingEngine(client, moment)
    hasher.fit(views, engine=engine)
    assert engine.killed
    assert not calm.killed
    np.testing.assert_array_equal(hasher.decision_function(views), expected)
    engine = KillingEngine(client, 1)
    np.testing.assert_array_equal(hasher.decision_function(views, engine=engine), expected)
    assert engine.killed


SCHEDULER = """
import distributed, time
if __name__ == "__main__":
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=':0')
    print(cluster.scheduler_address, flush=True)
    time.sleep(600)
"""


@pytest.mark.extra
def test_a_scheduler_that_goes_away_is_one_sentence(tmp_path):
    import dask

    script = tmp_path / "scheduler.py"
    script.write_text(SCHEDULER)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().strip()
        with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
            with DaskEngine(address, block_rows=70) as engine:
                rows = engine.map_rows(lambda block: block + 1, engine.put(X))
                process.kill()
                process.wait()
                with pytest.raises(EngineError, match="scheduler went away"):
                    engine.sum_rows(lambda block: block.T @ block, rows)
            with pytest.raises(EngineError, match="no dask scheduler answers at"):
                DaskEngine(address).__enter__()
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


@pytest.mark.extra
def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from quorumhash.engines.daskengine import DaskEngine\nDaskEngine(n_workers=1).__enter__()\n")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode != 0
    assert "EngineError: the worker processes did not start" in ran.stderr
    assert "if __name__ == '__main__':" in ran.stderr


@pytest.mark.extra
def test_what_a_function_gives_is_asked_once(client):
    def doubled(block):
        return 2 * block

    def row_and_fact(block):
        return block, block[:1]

    with DaskEngine(client, block_rows=70) as engine:
        rows = engine.put(X)
        for _ in range(2):
            np.testing.assert_array_equal(engine.get(engine.map_rows(doubled, rows)), 2 * X)
        assert len(engine._lengths) == 1
        both = engine.map_rows(row_and_fact, rows)
        assert [len(engine.get(part)) for part in both] == [len(X), -(-len(X) // 70)]
        assert len(engine._lengths) == 2
