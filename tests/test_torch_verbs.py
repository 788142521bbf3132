"""The mathematics is written once: an engine of 60 lines over torch tensors gives the bits of the threads engine."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import clone

from quorumhash import (
    HASHERS,
    AnchorGraphHasher,
    ConsensusHasher,
    EPAMHHasher,
    InductiveManifoldHasher,
    ITQHasher,
    KernelITQHasher,
    KLSHHasher,
    LSHHasher,
    PCAHasher,
    SpectralHasher,
    load_dataset,
)
from quorumhash.engines import Engine, Rows
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.matrices import dense_rows

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")]

N_ROWS, N_NEW = 400, 100
UNDECIDED = 1e-4  # standard deviations of a bit's scores: closer to zero than this, rounding may choose the bit


class TorchRows(Rows):
    def __init__(self, blocks):
        self.blocks = blocks
        self.n_rows = sum(len(block) for block in blocks)


class TorchEngine(Engine):
    """Blocks of a size no other engine has, one after the other, as torch tensors on the CPU."""

    block_rows = 70

    def put(self, matrix):
        cuts = range(0, matrix.shape[0], self.block_rows)
        return TorchRows([torch.from_numpy(np.array(dense_rows(matrix, slice(s, s + self.block_rows)))) for s in cuts])

    def get(self, rows):
        return torch.cat(rows.blocks).numpy()

    def map_rows(self, function, *arguments, reuse=()):
        results = list(self._results(function, arguments, reuse))
        if isinstance(results[0], tuple):
            return tuple(TorchRows(list(blocks)) for blocks in zip(*results, strict=True))
        return TorchRows(results)

    def sum_rows(self, function, *arguments):
        results = list(self._results(function, arguments, ()))
        if isinstance(results[0], tuple):
            return tuple(_total(parts) for parts in zip(*results, strict=True))
        return _total(results)

    def take_rows(self, rows, positions):
        return self.get(rows)[positions]

    def _results(self, function, arguments, reuse):
        small = [None if isinstance(argument, Rows) else to_torch(argument) for argument in arguments]
        for i in range(len(next(argument for argument in arguments if isinstance(argument, Rows)).blocks)):
            given = [a.blocks[i] if isinstance(a, Rows) else b for a, b in zip(arguments, small, strict=True)]
            kept = [a.clone() if isinstance(rows, Rows) else a for a, rows in zip(given, arguments, strict=True)]
            result = function(*given)
            for before, after, rows in zip(kept, given, arguments, strict=True):
                if isinstance(rows, Rows) and rows not in reuse:  # as promised to every engine
                    assert torch.equal(before.nan_to_num(), after.nan_to_num()), (
                        f"{function.__name__} wrote on its rows"
                    )
            parts = result if isinstance(result, tuple) else (result,)
            assert all(isinstance(part, torch.Tensor) for part in parts), f"{function.__name__} left torch"
            yield result


def _total(parts):
    return torch.stack([part.to(torch.float64) for part in parts]).sum(0).numpy()


def to_torch(value):
    """Arrays, and whatever holds arrays, with tensors in their place; everything else as it is."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if dataclasses.is_dataclass(value):
        fields = {field.name: to_torch(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return type(value)(map(to_torch, value)) if isinstance(value, list | tuple) else value


def whole_views():
    return load_dataset("digits").views[: N_ROWS + N_NEW]


def holed_views():
    """A tenth of the values and a tenth of the (item, view) pairs are missing; each item keeps a view but the first."""
    rng = np.random.default_rng(0)
    holed = {name: np.array(matrix, dtype=np.float64) for name, matrix in whole_views().items()}
    for m, matrix in enumerate(holed.values()):
        matrix[rng.random(matrix.shape) < 0.1] = np.nan
        kept = 1 + np.arange(len(matrix)) % (len(holed) - 1)
        matrix[(rng.random(len(matrix)) < 0.1) & (kept != m)] = np.nan
    return holed


def rows_of(views, rows):
    return {name: views[name][rows] for name in views}


CASES = {
    "quorum": (HASHERS["quorum"](n_bits=16, n_steps=10), whole_views),
    "quorum, holes": (HASHERS["quorum"](n_bits=16, n_steps=10), holed_views),
    "quorum, groups": (HASHERS["quorum"](n_bits=16, n_steps=10, objective="groups"), whole_views),
    "lsh": (LSHHasher(n_bits=32), whole_views),
    "itq": (ITQHasher(n_bits=32, n_steps=10), whole_views),
    "itq, holes": (ITQHasher(n_bits=32, n_steps=10), holed_views),
    "klsh": (KLSHHasher(n_bits=32), holed_views),
    "sh": (SpectralHasher(n_bits=32), holed_views),
    "pcah": (PCAHasher(n_bits=32), holed_views),
    "agh": (AnchorGraphHasher(n_bits=16), holed_views),
    "agh, one layer": (AnchorGraphHasher(n_bits=16, n_layers=1, rotate=True), whole_views),
    "imh": (InductiveManifoldHasher(n_bits=16), holed_views),
    "kitq": (KernelITQHasher(n_bits=16), holed_views),
    "epamh": (EPAMHHasher(n_bits=16, n_steps=10), holed_views),
    "epamh, more bits than features": (EPAMHHasher(n_bits=48, n_steps=5), whole_views),
    "tuned": (ConsensusHasher(n_bits=16, max_iter=9), whole_views),
    "published": (ConsensusHasher(n_bits=16, max_iter=9, setting="published"), whole_views),
    "l1": (ConsensusHasher(n_bits=16, max_iter=9, error_norm="l1"), whole_views),
    "holes": (ConsensusHasher(n_bits=16, max_iter=9), holed_views),
    "project": (ConsensusHasher(n_bits=16, max_iter=5, query_kernel="project"), holed_views),
    "robust": (ConsensusHasher(n_bits=16, max_iter=5, query_kernel="robust"), holed_views),
    "prototypes": (ConsensusHasher(n_bits=16, max_iter=5, out_of_sample="prototypes"), holed_views),
    "mfh": (HASHERS["mfh"](n_bits=16, rotate=True), holed_views),
    "chms": (HASHERS["chms"](n_bits=16, max_iter=5), holed_views),
    "ckh": (HASHERS["ckh"](n_bits=16, rotate=True), holed_views),
    "ssh": (HASHERS["ssh"](n_bits=16), holed_views),
    "ssh, distance": (HASHERS["ssh"](n_bits=16, criterion="distance"), holed_views),
    "mvlh": (HASHERS["mvlh"](n_bits=16), holed_views),
}
for defence in ("vote", "repair_itq", "knn_repair_itq", "gcca_itq", "rpca_itq", "view_select"):
    CASES[defence] = (HASHERS[defence](n_bits=16), whole_views)
    CASES[f"{defence}, holes"] = (HASHERS[defence](n_bits=16), holed_views)


@pytest.fixture(params=CASES)
def case(request):
    """A hasher fitted on threads, the views it was fitted on, new ones, and its scores of both."""
    hasher, make = clone(CASES[request.param][0]), CASES[request.param][1]
    views = make()
    old, new = rows_of(views, slice(N_ROWS)), rows_of(views, slice(N_ROWS, None))
    if make is holed_views:
        del new[next(iter(new))]  # a whole view that the new items do not have
    hasher.fit(old, engine=ThreadsEngine(1))
    return hasher, old, new, scores_of(hasher, old, new, ThreadsEngine(1))


def scores_of(hasher, old, new, engine):
    return np.concatenate([hasher.decision_function(views, engine=engine) for views in (old, new)])


def assert_same_bits(scores, expected):
    decided = np.abs(expected) >= UNDECIDED * expected.std(axis=0)
    assert decided.mean() > 0.99
    np.testing.assert_array_equal((scores >= 0)[decided], (expected >= 0)[decided])


def test_torch_blocks_give_the_bits_of_numpy_blocks(case):
    hasher, old, new, expected = case
    assert_same_bits(scores_of(hasher, old, new, TorchEngine()), expected)
    hasher.fit(old, engine=TorchEngine())
    scores = scores_of(hasher, old, new, TorchEngine())
    assert_same_bits(scores, expected)
    np.testing.assert_array_equal(hasher.transform(new, packed=False, engine=TorchEngine()), scores[N_ROWS:] >= 0)
    assert_same_bits(scores_of(hasher, old, new, "threads"), expected)


def test_any_number_of_blocks_gives_the_same_bits(case):
    hasher, old, new, expected = case
    for n_blocks in range(1, 17):
        engine = ThreadsEngine(1, block_rows=-(-N_ROWS // n_blocks))
        hasher.fit(old, engine=engine)
        assert_same_bits(scores_of(hasher, old, new, engine), expected)
