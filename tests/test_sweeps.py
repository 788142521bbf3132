"""A sweep of the consensus in C, compared with the array code that says what a sweep is."""

import subprocess
import sys

import numpy as np
import pytest

from quorumhash import sweeps
from quorumhash._native import kernels
from quorumhash.sweeps import Pull, Sweep, sweep_rows

COMPILED = kernels.available()[:-1]

pytestmark = pytest.mark.skipif(not COMPILED, reason="no compiled kernel")


@pytest.mark.parametrize("norm", ["l21", "l1"])
@pytest.mark.parametrize("is_pulled", [True, False])
@pytest.mark.parametrize(("n_landmarks", "n_views"), [(300, 2), (37, 3), (500, 1), (1, 2), (64, 3)])
@pytest.mark.parametrize("view_type", ["float32", "float64"])
def test_every_kernel_gives_what_the_array_code_gives(monkeypatch, norm, is_pulled, n_landmarks, n_views, view_type):
    sweep, pull, targets, state = make_sweep(n_landmarks, n_views, is_pulled, view_type)
    found = {}
    for name in kernels.available():
        monkeypatch.setenv(kernels.VARIABLE, name)
        assert (sweeps._one_pass(*state) is None) == (name == "numpy")
        found[name] = sweep_rows(sweep, norm, pull, targets, *(part.copy() for part in state))
    assert not np.array_equal(found["numpy"][0], state[0])
    assert n_landmarks == 1 or (np.delete(found["numpy"][0], 5, axis=0) == 0.0).any()  # what would be negative
    for name in COMPILED:
        for one, plain in zip(found[name], found["numpy"], strict=True):
            np.testing.assert_allclose(one, plain, rtol=1e-12, atol=1e-14)
        for one, other in zip(found[name], found[COMPILED[-1]], strict=True):
            np.testing.assert_array_equal(one, other)  # no kernel rounds otherwise


def test_new_blocks_are_the_old_ones_written_over():
    sweep, pull, targets, state = make_sweep(37, 2, True, "float32")
    swept = sweep_rows(sweep, "l21", pull, targets, *state)
    assert all(new is old for new, old in zip(swept[:4], state, strict=False))


def test_it_does_not_matter_how_rows_are_cut_into_slices(monkeypatch):
    sweep, pull, targets, state = make_sweep(24, 2, True, "float32", n_rows=50)
    whole = sweep_rows(sweep, "l21", pull, targets, *(part.copy() for part in state))
    monkeypatch.setattr(sweeps, "SLICE_ROWS", 16)
    for one, other in zip(sweep_rows(sweep, "l21", pull, targets, *state), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)  # BLAS may add up in another order


@pytest.mark.parametrize("norm", ["l21", "l1"])
def test_what_is_not_a_number_is_not_hidden(monkeypatch, norm):
    sweep, pull, targets, state = make_sweep(8, 2, False, "float32")
    state[-1][3, 2] = np.nan
    *found, facts = sweep_rows(sweep, norm, pull, targets, *(part.copy() for part in state))
    assert np.isnan(facts[0, 1])
    monkeypatch.setattr(sweeps, "_one_pass", lambda *_: None)
    for one, plain in zip(found, sweep_rows(sweep, norm, pull, targets, *state), strict=False):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(plain))
    assert np.isnan(found[0]).sum() == 1


@pytest.mark.parametrize("part", range(6))
def test_rows_that_do_not_lie_whole_in_memory_are_left_to_the_array_code(part):
    sweep, pull, targets, state = make_sweep(8, 2, True, "float32")
    mixed = [np.repeat(block, 2, axis=1)[:, ::2] if i == part else block.copy() for i, block in enumerate(state)]
    assert sweeps._one_pass(*mixed) is None
    for one, other in zip(
        sweep_rows(sweep, "l21", pull, targets, *mixed),
        sweep_rows(sweep, "l21", pull, targets, *state), strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def anywhere(matrix):
    """The same numbers one byte behind where numbers of their type lie."""
    moved = np.empty(matrix.nbytes + 1, dtype=np.uint8)[1:].view(matrix.dtype).reshape(matrix.shape)
    moved[:] = matrix
    assert not moved.flags.aligned
    return moved


def test_rows_may_lie_anywhere_in_memory_as_those_of_a_message_do():
    sweep, pull, targets, state = make_sweep(8, 2, True, "float32")
    given = [*(part.copy() for part in state[:4]), *map(anywhere, state[4:])]
    assert sweeps._one_pass(*given) is not None
    assert sweeps._one_pass(*map(anywhere, state)) is None
    moved = [anywhere(part) for part in state]
    wanted = sweep_rows(sweep, "l21", pull, targets, *state)
    for found in (sweep_rows(sweep, "l21", pull, targets, *given), sweep_rows(sweep, "l21", pull, targets, *moved)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_views_of_two_types_and_states_of_single_numbers_are_left_to_the_array_code():
    *_, state = make_sweep(8, 2, False, "float32")
    assert sweeps._one_pass(*state) is not None
    assert sweeps._one_pass(*state[:-1], state[-1].astype("float64")) is None
    assert sweeps._one_pass(*state[:-1], state[-1].astype("float16")) is None
    assert sweeps._one_pass(state[0].astype("float32"), *state[1:]) is None


def arguments(name=COMPILED[-1] if COMPILED else "", **changed):
    rng = np.random.default_rng(0)
    given = {"kernel": rng.random((6, 5)), "shown": rng.random((6, 5)), "low_rank": rng.random((6, 5)),
             "pulled": rng.random((6, 5)), "duals": [rng.random((6, 5)) for _ in range(2)],
             "views": [rng.random((6, 5)).astype("float32") for _ in range(2)]} | changed  # fmt: skip
    return name, True, True, (0.1, 0.3, 0.9), *given.values()


def cut(matrix):
    return {
        "rows": matrix[:5],
        "columns": np.ascontiguousarray(matrix[:, :4]),
        "the other order": np.asfortranarray(matrix),
        "one axis": matrix.ravel(),
        "another type": matrix.astype("float32" if matrix.dtype == np.float64 else "float64"),
        "whole numbers": matrix.astype("int64"),
        "bytes the other way round": matrix.astype(matrix.dtype.newbyteorder()),
        "bytes": matrix.tobytes(),
        "nothing": None,
    }


@pytest.mark.parametrize("part", ["kernel", "shown", "low_rank", "pulled", "duals", "views"])
@pytest.mark.parametrize("how", list(cut(np.zeros((6, 5)))))
def test_the_door_refuses_what_the_kernels_cannot_read(part, how):
    """The extension checks shapes and types itself: a wrong call is an error, not a read past the end."""
    place = ("kernel", "shown", "low_rank", "pulled", "duals", "views").index(part) + 4
    right = arguments()[place]
    if part == "pulled" and how == "nothing":
        assert len(kernels._hamming.sweep(*arguments(pulled=None))) == 2
        return
    wrong = [right[0], cut(right[1])[how]] if isinstance(right, list) else cut(right)[how]
    with pytest.raises((ValueError, TypeError, BufferError)):
        kernels._hamming.sweep(*arguments(**{part: wrong}))


@pytest.mark.parametrize("part", ["kernel", "shown", "duals"])
def test_the_door_writes_into_nothing_that_is_read_only(part):
    locked = np.random.default_rng(0).random((6, 5))
    locked.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match=r"read-only|writ"):
        kernels._hamming.sweep(*arguments(**{part: [locked, locked] if part == "duals" else locked}))


def test_the_door_wants_a_kernel_that_is_here_and_a_dual_for_every_view():
    for wrong in (arguments("abacus"), arguments("numpy"), arguments(duals=[]), arguments(duals=[], views=[])):
        with pytest.raises(ValueError, match="no such kernel here, or not a dual for every view"):
            kernels._hamming.sweep(*wrong)


def test_no_rows_are_swept_too():
    nothing = np.empty((0, 5))
    given = arguments(**dict.fromkeys(("kernel", "shown", "low_rank", "pulled"), nothing), duals=[nothing] * 2,
                      views=[nothing.astype("float32")] * 2)  # fmt: skip
    assert kernels._hamming.sweep(*given) == (0.0, 0.0)


def test_without_the_extension_numpy_sweeps():
    code = (
        "import sys; sys.modules['quorumhash._native._hamming'] = None\n"
        "import numpy as np\n"
        "from quorumhash import ConsensusHasher, sweeps\n"
        "assert sweeps._one_pass(*(np.zeros((2, 3)) for _ in range(4))) is None\n"
        "rng = np.random.default_rng(0)\n"
        "views = {'a': rng.random((60, 5)), 'b': rng.random((60, 4))}\n"
        "assert ConsensusHasher(n_bits=4, max_iter=2).fit(views).transform(views).shape == (60, 1)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def make_sweep(n_landmarks, n_views, is_pulled, view_type, n_rows=777):
    """A sweep's small numbers, and kernel, Khat - dual_0, duals and views of some rows; duals small, one row all 0."""
    rng = np.random.default_rng(0)
    sweep = Sweep(rng.random((n_landmarks, n_landmarks)) * 0.1 - 0.05, None, 0.05, 1.3, 0.9)
    pull = Pull(rng.random((n_landmarks, 16)), rng.random(16), 1.0, 2.0) if is_pulled else None
    state = [rng.random((n_rows, n_landmarks)) for _ in range(2)]
    state += [rng.random((n_rows, n_landmarks)) * 0.1 - 0.05 for _ in range(n_views)]
    state += [rng.random((n_rows, n_landmarks)).astype(view_type) for _ in range(n_views)]
    for part in state:
        part[5] = 0.0
    return sweep, pull, rng.random((n_rows, 16)) if is_pulled else None, state
