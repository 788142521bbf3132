"""The six verbs, over any cut into blocks and any number of threads."""

import gc
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_info

from quorumhash.engines import Engine, Rows, open_engine
from quorumhash.engines.threads import ThreadsEngine, threads_wanted
from quorumhash.errors import ParameterError

X = np.random.default_rng(0).standard_normal((101, 4))


@pytest.fixture(params=[(1, 1), (1, 7), (2, 25), (3, 101), (2, 1000)], ids=str)
def engine(request):
    with ThreadsEngine(*request.param) as opened:
        yield opened


def test_put_and_get(engine):
    np.testing.assert_array_equal(engine.get(engine.put(X)), X)


def test_sparse_and_memory_mapped_rows_are_read_dense(engine, tmp_path):
    np.save(tmp_path / "x.npy", X)
    for given in (scipy.sparse.csr_array(X), np.load(tmp_path / "x.npy", mmap_mode="r"), np.asfortranarray(X)):
        np.testing.assert_array_equal(engine.get(engine.put(given)), X)
        np.testing.assert_array_equal(engine.take_rows(engine.put(given), np.array([5, 0, 100])), X[[5, 0, 100]])


def test_map_rows_walks_rows_in_step_and_hands_the_rest_over_whole(engine):
    matrix = np.arange(8.0).reshape(4, 2)
    other = np.arange(101.0)[:, None]
    rows = engine.map_rows(lambda a, m, b, c: a @ m + b * c, engine.put(X), matrix, engine.put(other), 2.0)
    assert isinstance(rows, Rows)
    assert rows.n_rows == 101
    np.testing.assert_allclose(engine.get(rows), X @ matrix + other * 2)
    np.testing.assert_allclose(engine.take_rows(rows, np.array([100, 3])), (X @ matrix + other * 2)[[100, 3]])


def test_map_rows_gives_as_many_rows_objects_as_the_function_arrays(engine):
    first, second = engine.map_rows(lambda block: (block * 2, block[:, :1]), engine.put(X))
    np.testing.assert_array_equal(engine.get(first), X * 2)
    np.testing.assert_array_equal(engine.get(second), X[:, :1])


def test_sum_rows(engine):
    gram, count = engine.sum_rows(lambda block: (block.T @ block, np.array(len(block))), engine.put(X))
    np.testing.assert_allclose(gram, X.T @ X)
    assert count == 101


def test_sums_are_float64_whatever_the_blocks_are():
    """10 million as float32 would lose every 1 added to it."""
    values = np.ones((16_777_217 // 4096 + 100, 1), dtype=np.float32)
    with ThreadsEngine(2, block_rows=1) as engine:
        total = engine.sum_rows(lambda block: block.sum() + np.float32(4095), engine.put(values))
    assert total.dtype == np.float64
    assert total == len(values) * 4096


def test_reused_rows_may_be_overwritten_but_not_the_users(engine):
    def double(block):
        block *= 2
        return block

    mine = X.copy()
    given = engine.put(mine)
    doubled = engine.map_rows(double, given, reuse=[given])
    np.testing.assert_array_equal(mine, X)
    again = engine.map_rows(double, doubled, reuse=[doubled])
    np.testing.assert_array_equal(engine.get(again), 4 * X)


def test_random_draws_are_the_hosts(engine):
    np.testing.assert_array_equal(engine.random(3).random(4), np.random.default_rng(3).random(4))


def test_one_thread_and_many_add_up_alike():
    answers = []
    for n_threads in (1, 2, 4):
        with ThreadsEngine(n_threads, block_rows=9) as engine:
            answers.append(engine.sum_rows(lambda block: np.exp(block).T @ block, engine.put(X)))
    assert all((answer == answers[0]).all() for answer in answers)


def test_workers_have_one_blas_thread_each():
    with ThreadsEngine(2, block_rows=10) as engine:
        seen = engine.get(engine.map_rows(lambda block: np.array([[max(_blas_threads())]]), engine.put(X)))
    assert (seen == 1).all()


def _blas_threads():
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


def test_blas_threads_are_given_back():
    before = _blas_threads()
    with ThreadsEngine(2) as engine:
        engine.sum_rows(np.sum, engine.put(X))
        assert set(_blas_threads()) == {1}
    assert _blas_threads() == before


def test_an_error_in_a_block_reaches_the_caller_and_stops_the_rest():
    seen = []

    def fail(block):
        seen.append(1)
        time.sleep(0.02)  # long enough for the caller to hear of the first failure
        raise RuntimeError("block failed")

    with ThreadsEngine(1, block_rows=1) as engine, pytest.raises(RuntimeError, match="block failed"):
        engine.map_rows(fail, engine.put(X))
    assert len(seen) < 101


def test_blocks_run_on_several_threads():
    barrier = threading.Barrier(2, timeout=30)
    with ThreadsEngine(2, block_rows=51) as engine:
        engine.map_rows(lambda block: (barrier.wait(), block)[1], engine.put(X))  # deadlocks unless two run at once


def test_rows_of_another_engine_are_refused():
    with ThreadsEngine(1) as engine, pytest.raises(ParameterError, match="another engine"):
        engine.get(Rows())


def test_engines_by_name(monkeypatch):
    monkeypatch.setenv("QUORUMHASH_THREADS", "3")
    opened = open_engine("threads")
    assert isinstance(opened, Engine)
    assert opened.n_threads == 3
    assert open_engine(opened) is opened
    with pytest.raises(ParameterError, match=r"engine must be 'threads', .* or an Engine, got 'gpu'"):
        open_engine("gpu")


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_bad_thread_counts_are_refused(monkeypatch, text):
    monkeypatch.setenv("QUORUMHASH_THREADS", text)
    with pytest.raises(ParameterError, match="QUORUMHASH_THREADS must be a whole number from 1 up"):
        threads_wanted()


@pytest.mark.parametrize("arguments", [{"n_threads": 0}, {"block_rows": 0}])
def test_bad_sizes_are_refused(arguments):
    with pytest.raises(ParameterError, match="at least 1"):
        ThreadsEngine(**arguments)


def test_a_memory_budget_makes_blocks_smaller_and_changes_nothing_else():
    rows, widths = np.random.default_rng(0).standard_normal((5000, 3)), []
    for budget in (None, 1e9, 4e6, 1.0):
        lengths = []
        with ThreadsEngine(2, memory_budget=budget) as engine:
            engine.plan(3)
            engine.plan(3, 1e12)  # its own budget counts more than what it is told
            total = engine.sum_rows(
                lambda block, seen=lengths: (seen.append(len(block)), block.T @ block)[1], engine.put(rows)
            )
            np.testing.assert_allclose(total, rows.T @ rows)
        widths.append(max(lengths))
    assert widths[0] == widths[1] == 320
    assert widths[2] * 2 * 8 * (8 * 3 + 4096) <= 2e6 < (widths[2] + 1) * 2 * 8 * (8 * 3 + 4096)
    assert widths[3] == 16
    with ThreadsEngine(2) as engine:
        engine.plan(3, 4e6)
        assert (
            max(engine.get(engine.map_rows(lambda block: np.full((1, 1), len(block)), engine.put(rows)))) == widths[2]
        )


def test_an_engine_works_on_after_ctrl_c_and_leaves_no_worker_behind():
    """A worker that Ctrl-C caught half begun is known to nobody, and Python would wait for it at its end."""
    engine = ThreadsEngine(n_threads=2)
    rows = engine.put(np.ones((4, 2)))
    engine.sum_rows(np.sum, rows)
    workers = list(engine._pool._threads)
    with pytest.raises(KeyboardInterrupt), engine:
        raise KeyboardInterrupt
    for worker in workers:
        worker.join(timeout=30)
    assert not any(worker.is_alive() for worker in workers)
    with engine:
        assert engine.sum_rows(np.sum, rows) == 8


def test_an_engine_that_is_left_takes_its_threads_with_it():
    before = threading.active_count()
    for _ in range(3):
        with ThreadsEngine(2, 25) as engine:
            engine.get(engine.map_rows(lambda block: block, engine.put(X)))
    del engine
    gc.collect()
    end = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before
