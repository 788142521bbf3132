"""The verbs over torch tensors: what lies where, what is copied, what is refused."""

import sys

import numpy as np
import pytest
import scipy.sparse

from quorumhash import ITQHasher, QuorumHasher, Views, load_dataset
from quorumhash.engines import Rows, open_engine, torchengine
from quorumhash.engines.torchengine import TorchEngine
from quorumhash.errors import MissingExtraError, ParameterError, ViewsError

X = np.random.default_rng(0).standard_normal((101, 4))


def test_the_engine_without_torch_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'quorumhash\[torch\]'"):
        open_engine("torch")


torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from pretenddevice import DEVICE, PretendedDevice, is_there  # noqa: E402  it loads torch

extra = pytest.mark.extra


class PretendedEngine(TorchEngine):
    used = 0

    def _checked_device(self, name):
        return DEVICE

    def _bytes_used(self):
        return self.used


@pytest.fixture(params=[1, 7, 101, 1000])
def engine(request):
    with TorchEngine(block_rows=request.param) as opened:
        yield opened


@extra
def test_rows_of_every_kind_come_back_as_they_were(engine, tmp_path):
    np.save(tmp_path / "x.npy", X)
    read_only = X.copy()
    read_only.flags.writeable = False
    given = (
        X, torch.from_numpy(X), scipy.sparse.csr_array(X), np.load(tmp_path / "x.npy", mmap_mode="r"), X[::-1][::-1],
        np.asfortranarray(X), read_only, X.astype(">f8"),
    )  # fmt: skip
    for matrix in given:
        np.testing.assert_array_equal(engine.get(engine.put(matrix)), X)
        np.testing.assert_array_equal(engine.take_rows(engine.put(matrix), np.array([5, 0, 100])), X[[5, 0, 100]])
        made = engine.map_rows(lambda block: block * 2, engine.put(matrix))
        np.testing.assert_array_equal(engine.take_rows(made, np.array([100, 3, 3])), 2 * X[[100, 3, 3]])


@extra
def test_sums_are_float64_and_the_rest_goes_whole_to_every_block(engine):
    whole = np.arange(8.0).reshape(4, 2)
    total, count = engine.sum_rows(
        lambda block, m: ((block.T @ (block @ m)).to(torch.float32), torch.tensor(len(block))), engine.put(X), whole
    )
    np.testing.assert_allclose(total, X.T @ (X @ whole), rtol=1e-4)
    assert total.dtype == np.float64
    assert count == 101


@extra
def test_reused_rows_may_be_overwritten_but_not_the_users(engine):
    def double(block):
        block *= 2
        return block

    for mine in (X.copy(), torch.from_numpy(X.copy())):
        given = engine.put(mine)
        doubled = engine.map_rows(double, given, reuse=[given])
        np.testing.assert_array_equal(np.asarray(mine), X)
        np.testing.assert_array_equal(engine.get(engine.map_rows(double, doubled, reuse=[doubled])), 4 * X)


@extra
def test_rows_beyond_the_budget_are_kept_on_the_host():
    with PretendedDevice():
        engine = PretendedEngine(block_rows=25, memory_budget=X.nbytes)
        rows = engine.map_rows(lambda block: block + 1, engine.put(X))
        assert all(is_there(block) for block in rows.blocks)
        engine.used = X.nbytes
        more = engine.map_rows(lambda block: block + 1, rows)
        assert not any(is_there(block) for block in more.blocks)
        engine.used = 0
        assert all(is_there(block) for block in engine.map_rows(lambda block: block + 1, more).blocks)
        np.testing.assert_array_equal(engine.get(more), X + 1 + 1)


@extra
def test_a_walk_keeps_as_many_blocks_on_the_device_as_fit_and_reused_ones_make_room():
    with PretendedDevice():
        engine = PretendedEngine(block_rows=25, memory_budget=2 * X[:25].nbytes)
        rows = engine.map_rows(lambda block: block + 1, engine.put(X))
        kept = [True, True, False, False, False]
        assert [is_there(block) for block in rows.blocks] == kept
        engine.used = engine.memory_budget
        more = engine.map_rows(lambda block: block + 1, rows, reuse=[rows])
        assert [is_there(block) for block in more.blocks] == kept
        np.testing.assert_array_equal(engine.get(more), X + 1 + 1)


@extra
def test_blocks_follow_the_budget_and_the_width():
    with PretendedDevice():
        sizes = []
        for n_features, budget in ((10, 1e12), (1000, 4e9), (1000, 1e9), (100_000, 1e9)):
            engine = PretendedEngine()
            engine.plan(n_features, budget)
            sizes.append(engine._rows_per_block(10**9))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4


@extra
def test_eigenpairs_of_a_device_are_those_of_the_host(monkeypatch):
    monkeypatch.setattr(torchengine, "DEVICE_EIGH", 20)
    for size in (19, 40):
        factor = np.random.default_rng(size).standard_normal((size, size))
        matrix = factor @ np.diag(np.arange(size)) @ factor.T
        expected, vectors = np.linalg.eigh(matrix)
        with PretendedDevice():
            found = PretendedEngine(memory_budget=1e9).eigenpairs(matrix, 5)
        np.testing.assert_allclose(found[0], expected[-5:])
        np.testing.assert_allclose(np.abs((found[1] * vectors[:, -5:]).sum(axis=0)), np.ones(5))


@extra
def test_float32_products_are_whole_unless_asked_and_the_setting_is_given_back():
    before = torch.get_float32_matmul_precision()
    for tf32, inside in ((False, "highest"), (True, "high")):
        with TorchEngine(tf32=tf32):
            assert torch.get_float32_matmul_precision() == inside
        assert torch.get_float32_matmul_precision() == before


@extra
def test_tensors_in_tensors_out_everything_else_numpy():
    digits = load_dataset("digits").views[:200]
    tensors = {name: torch.from_numpy(np.array(matrix, dtype=np.float32)) for name, matrix in digits.items()}
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    hasher = QuorumHasher(n_bits=12).fit(tensors, engine="torch")
    for call in ("transform", "decision_function", "embed", "reliability"):
        expected = getattr(hasher, call)(arrays)
        found = getattr(hasher, call)(tensors, engine="torch")
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)
        for views, engine in ((arrays, "torch"), (tensors, "threads"), (Views(tensors)[:200], "threads")):
            answer = getattr(hasher, call)(views, engine=engine)
            assert isinstance(answer, np.ndarray)
            assert answer.dtype == expected.dtype
            np.testing.assert_allclose(answer, expected, atol=1e-5)
    codes = hasher.transform(tensors, engine="torch", packed=False)
    assert codes.dtype == torch.uint8
    np.testing.assert_array_equal(np.packbits(codes.numpy(), axis=1), hasher.transform(arrays))


@extra
def test_tensors_on_a_device_are_walked_there():
    with PretendedDevice():
        rows = torch.as_tensor(np.repeat(X, 2, axis=0), device=DEVICE)
        hasher = ITQHasher(n_bits=3).fit(rows, engine=PretendedEngine(memory_budget=1e9))
        codes = hasher.transform(rows, engine=PretendedEngine(memory_budget=1e9))
        assert is_there(codes)
        on_host = codes.cpu().numpy()
    np.testing.assert_array_equal(on_host, hasher.transform(np.repeat(X, 2, axis=0)))


@extra
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8", "bool"])
def test_tensors_of_any_type_are_views(dtype):
    tensor = torch.from_numpy(X * 3).to(getattr(torch, dtype))
    as_array = tensor.to(torch.float64).numpy()
    for engine in ("threads", "torch"):
        np.testing.assert_array_equal(
            ITQHasher(n_bits=2).fit(tensor, engine=engine).transform(as_array),
            ITQHasher(n_bits=2).fit(as_array).transform(as_array),
        )


@extra
def test_missing_values_of_tensors_are_seen():
    holed = torch.from_numpy(X.copy())
    holed[3] = torch.nan
    holed[5, 1] = torch.nan
    views = Views({"a": holed, "b": torch.ones(101, 1)})
    np.testing.assert_array_equal(np.flatnonzero(~views.present("a")), [3])
    assert views.is_incomplete("a")
    assert not views.is_incomplete("b")
    assert len(views[np.array([True] + [False] * 100)]) == 1


@extra
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.full((3, 2), torch.inf, dtype=torch.float32), r"view 'a', row 0, column 0: .*got inf"),
        (lambda: torch.full((3, 2), 1e150, dtype=torch.float64), r"got 1e\+150, too large"),
        (lambda: torch.ones(3, 2, dtype=torch.complex64), "Complex data not supported"),
        (lambda: torch.ones(3, 2).to_sparse(), "is a sparse tensor"),
        (lambda: torch.ones(3), "must be 2-D"),
        (lambda: torch.ones(3, 0), "is empty"),
    ],
)
def test_tensors_that_cannot_be_used_are_refused_in_words(make, words):
    with pytest.raises(ViewsError, match=words):
        Views({"a": make()})


@extra
@pytest.mark.parametrize("name", ["torch:mps", "torch:nowhere", "torch:cuda:99"])
def test_devices_that_are_not_there_are_refused(name):
    with pytest.raises(ParameterError, match="device of TorchEngine must be"):
        open_engine(name)
    with pytest.raises(ParameterError, match="at least 1"):
        TorchEngine(block_rows=0)


@extra
def test_rows_of_another_engine_are_refused():
    with TorchEngine() as engine, pytest.raises(ParameterError, match="another engine"):
        engine.get(Rows())


@extra
def test_a_sample_lies_on_the_device_in_the_order_asked_for():
    positions = np.array([100, 3, 50, 3])
    with PretendedDevice():
        engine = PretendedEngine(block_rows=25, memory_budget=1e9)
        there = torch.as_tensor(X, device=DEVICE)
        for rows in (engine.put(X), engine.put(there), engine.map_rows(lambda block: block + 0, engine.put(X))):
            found, put_in = engine.sample(rows, positions), engine.held(engine.some_rows(rows, positions))
            assert is_there(found)
            assert is_there(put_in)
            np.testing.assert_array_equal(found.cpu().numpy(), X[positions])
            np.testing.assert_array_equal(put_in.cpu().numpy(), X[positions])
