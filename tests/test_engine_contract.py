"""The mathematics is written once: every engine gives the bits of the threads engine, for every hasher."""

from contextlib import ExitStack
from unittest.mock import patch

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
from quorumhash.engines import Rows
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.engines.torchengine import TorchEngine

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
from pretenddevice import DEVICE, PretendedDevice  # noqa: E402  it loads torch

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")]

N_ROWS, N_NEW = 400, 100
UNDECIDED = 1e-4  # standard deviations of a bit's scores: closer to zero than this, rounding may choose the bit


class CheckedEngine(TorchEngine):
    """Small blocks of a size no other engine has; functions must stay in torch and leave their rows alone."""

    def map_rows(self, function, *arguments, reuse=()):
        return super().map_rows(self._checked(function, arguments, reuse), *arguments, reuse=reuse)

    def sum_rows(self, function, *arguments):
        return super().sum_rows(self._checked(function, arguments, ()), *arguments)

    def _checked(self, function, arguments, reuse):
        def checked(*given):
            kept = [a.clone() if isinstance(rows, Rows) else a for a, rows in zip(given, arguments, strict=True)]
            result = function(*given)
            for before, after, rows in zip(kept, given, arguments, strict=True):
                if isinstance(rows, Rows) and rows not in reuse:  # as promised to every engine
                    assert torch.equal(before.nan_to_num(), after.nan_to_num()), (
                        f"{function.__name__} wrote on its rows"
                    )
            parts = result if isinstance(result, tuple) else (result,)
            assert all(isinstance(part, torch.Tensor) for part in parts), f"{function.__name__} left torch"
            assert all(part.device == self.device for part in parts), f"{function.__name__} left its device"
            return result

        return checked


class PretendedEngine(CheckedEngine):
    """On a device that is only pretended: what would fail on CUDA for mixing devices fails here."""

    def _checked_device(self, name):
        return DEVICE

    def _bytes_used(self):
        return 0

    def _budget(self):
        return 1e9

    def __enter__(self):
        self._pretended = ExitStack()
        self._pretended.enter_context(PretendedDevice())
        self._pretended.enter_context(patch.dict("os.environ", QUORUMHASH_THREADS="1"))  # one thread pretends
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._pretended.close()


ENGINES = {
    "torch on the processor": lambda: CheckedEngine(block_rows=70),
    "torch on a pretended device": lambda: PretendedEngine("cuda", block_rows=70),
    "torch on CUDA": lambda: CheckedEngine("cuda", block_rows=70),
}


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "torch on CUDA" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    return ENGINES[request.param]


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
    "mfh, nearest": (HASHERS["mfh"](n_bits=16, graph="nearest"), holed_views),
    "chms": (HASHERS["chms"](n_bits=16, max_iter=5), holed_views),
    "chms, nearest": (HASHERS["chms"](n_bits=16, max_iter=5, graph="nearest"), holed_views),
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


def test_every_engine_gives_the_bits_of_threads(engine, case):  # a skipped engine before any fit
    hasher, old, new, expected = case
    assert_same_bits(scores_of(hasher, old, new, engine()), expected)
    hasher.fit(old, engine=engine())
    scores = scores_of(hasher, old, new, engine())
    assert_same_bits(scores, expected)
    np.testing.assert_array_equal(hasher.transform(new, packed=False, engine=engine()), scores[N_ROWS:] >= 0)
    packed = np.packbits(scores[N_ROWS:] >= 0, axis=1)
    np.testing.assert_array_equal(hasher.transform(new, engine=engine()), packed)
    assert_same_bits(scores_of(hasher, old, new, "threads"), expected)


@pytest.fixture(scope="module")
def workers():
    """Two worker processes."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    from quorumhash.engines.daskengine import DaskEngine

    with DaskEngine(n_workers=2, block_rows=70) as engine:
        yield engine


def test_dask_gives_the_bits_of_threads(workers, case):
    hasher, old, new, expected = case
    assert_same_bits(scores_of(hasher, old, new, workers), expected)
    assert_same_bits(scores_of(hasher.fit(old, engine=workers), old, new, workers), expected)


def test_any_number_of_blocks_gives_the_same_bits(case, request):
    hasher, old, new, expected = case
    is_whole = request.node.callspec.params["case"] in ("quorum", "quorum, groups", "tuned", "itq")
    for n_blocks in range(1, 17) if is_whole else (1, 3, 16):
        blocks = ThreadsEngine(1, block_rows=-(-N_ROWS // n_blocks))
        hasher.fit(old, engine=blocks)
        assert_same_bits(scores_of(hasher, old, new, blocks), expected)
