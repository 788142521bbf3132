"""The consensus sweep in one pass over a device's memory, compared with the array code that says what a sweep is."""

import numpy as np
import pytest

from quorumhash import sweeps
from quorumhash.sweeps import Pull, Sweep, sweep_rows

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]


@pytest.mark.parametrize("norm", ["l21", "l1"])
@pytest.mark.parametrize("is_pulled", [True, False])
@pytest.mark.parametrize(("n_landmarks", "n_views"), [(300, 2), (37, 3), (500, 1), (1, 2), (130, 9)])
@pytest.mark.parametrize("view_type", ["float32", "float64"])
def test_one_pass_gives_what_the_array_code_gives(monkeypatch, norm, is_pulled, n_landmarks, n_views, view_type):
    sweep, pull, targets, state = make_sweep(n_landmarks, n_views, is_pulled, view_type)
    assert sweeps._one_pass(*state) is not None
    fused = sweep_rows(sweep, norm, pull, targets, *(part.clone() for part in state))
    monkeypatch.setattr(sweeps, "_one_pass", lambda *_: None)
    plain = sweep_rows(sweep, norm, pull, targets, *(part.clone() for part in state))
    for one, other in zip(fused, plain, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), other.cpu().numpy(), rtol=1e-12, atol=1e-14)
    assert not torch.equal(fused[0], state[0])


def test_rows_that_do_not_lie_whole_in_memory_are_left_to_the_array_code():
    sweep, pull, targets, state = make_sweep(8, 2, True, "float32")
    wide = [part.repeat(1, 2)[:, :8] for part in state]
    assert sweeps._one_pass(*wide) is None
    np.testing.assert_allclose(
        sweep_rows(sweep, "l21", pull, targets, *wide)[0].cpu().numpy(),
        sweep_rows(sweep, "l21", pull, targets, *state)[0].cpu().numpy(),
        rtol=1e-12,
    )  # fmt: skip


def make_sweep(n_landmarks, n_views, is_pulled, view_type, n_rows=777):
    """A sweep's small numbers, and kernel, Khat - dual_0, duals and views of some rows; duals small, one row all 0."""
    rng = np.random.default_rng(0)

    def there(*shape, scale=1.0, dtype="float64"):
        return torch.as_tensor((rng.random(shape) * scale).astype(dtype), device="cuda")

    sweep = Sweep(there(n_landmarks, n_landmarks, scale=0.01), None, 0.05, 1.3, 0.9)
    pull = Pull(there(n_landmarks, 16), there(16), 1.0, 2.0) if is_pulled else None
    state = [there(n_rows, n_landmarks) for _ in range(2)]
    state += [there(n_rows, n_landmarks, scale=0.1) for _ in range(n_views)]
    state += [there(n_rows, n_landmarks, dtype=view_type) for _ in range(n_views)]
    for part in state:
        part[5] = 0.0
    return sweep, pull, there(n_rows, 16) if is_pulled else None, state
