"""Row blocks as torch tensors, on the processor or on a CUDA device; the only file of this room that loads torch.

Rows may come from the host (arrays, memory maps, CSR matrices: a block is copied when it is walked) or lie on the
device already (tensors: a block is a slice, nothing is copied). Rows made by map_rows stay on the device while they fit
the memory budget, the rest in the host's memory. Products of float32 are full float32 (no tf32) unless asked for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.base import Engine, FloatArray, Rows, default_block_rows
from quorumhash.engines.threads import ThreadsEngine, keep_freed_memory
from quorumhash.engines.torchrows import GivenBlocks, MadeBlocks, own_rows
from quorumhash.errors import MissingExtraError, ParameterError
from quorumhash.matrices import dense_rows
from quorumhash.progress import begin_stage
from quorumhash.tensors import host_array, is_tensor, with_arrays

SMALLEST_BLOCK, LARGEST_BLOCK = 1024, 524_288  # rows, on a device: every block costs the host some hundred calls
# a row in work at most: its features some four times over, and kernels, ties to 3,000 landmarks or targets; float64
ROW_COPIES, ROW_NUMBERS = 4, 8192
BLOCKS_AT_ONCE = 2  # where results are needed a part at a time
SHARE_IN_WORK = 0.5  # of the budget; the rest is for what is kept
SMALL_SHARE = 1 / 64  # of the budget: a matrix of the host that is so small is copied once, not for every walk
DEVICE_EIGH = 250  # rows of a symmetric matrix from which on it is decomposed on the device
N_CACHED = 8  # models whose tensors are kept for the next call


class TorchEngine(Engine):
    """Walk row blocks as torch tensors.

    Parameters
    ----------
    device : str
        "cpu", "cuda" or "cuda:0", "cuda:1", ...
    block_rows : int, optional
        Rows per block; default: what the memory budget allows, up to 524,288 (on "cpu" those of the threads engine).
    memory_budget : int, optional
        Bytes of device memory to take beyond what is in use already; default: half of what is free. Rows made by
        map_rows that would go beyond it are kept in the host's memory.
    tf32 : bool
        Whether products of float32 may round their factors to 10 bits, which is faster and flips some bits.

    Examples
    --------
    >>> import numpy as np
    >>> with TorchEngine() as engine:  # doctest: +SKIP
    ...     engine.sum_rows(lambda block: block.sum(0), engine.put(np.eye(2)))
    array([1., 1.])
    """

    def __init__(
        self,
        device: str = "cpu",
        *,
        block_rows: int | None = None,
        memory_budget: float | None = None,
        tf32: bool = False,
    ) -> None:
        self._torch = _load_torch()
        keep_freed_memory()
        self.device = self._checked_device(device)
        if block_rows is not None and block_rows < 1:
            raise ParameterError(f"block_rows must be at least 1, got {block_rows}.")
        self.block_rows = block_rows
        self.memory_budget = memory_budget
        self.tf32 = tf32
        self._n_features = 0
        self._precisions: list[str] = []
        self._cache: dict[int, tuple[Any, Any]] = {}
        self._used_before = self._bytes_used()
        self._room = 0.0  # bytes that the walk at hand may still keep on the device

    def _checked_device(self, name: str) -> Any:
        torch = self._torch
        try:
            device = torch.device(name)
        except RuntimeError:
            device = None
        if device is None or device.type not in ("cpu", "cuda"):
            raise ParameterError(f"device of TorchEngine must be 'cpu', 'cuda' or 'cuda:0', got {name!r}.")
        n_devices = torch.cuda.device_count() if device.type == "cuda" else 0
        if device.type == "cuda" and (device.index or 0) >= n_devices:
            raise ParameterError(
                f"device of TorchEngine must be there, got {name!r} with {n_devices} CUDA device(s) in sight; use "
                "engine='torch' or 'threads'."
            )
        return torch.device("cuda", device.index or torch.cuda.current_device()) if device.type == "cuda" else device

    def plan(self, n_features: int, memory_budget: float | None = None) -> None:
        """Remember the width of rows, and the budget where none was set."""
        self._n_features = n_features
        self.memory_budget = memory_budget if self.memory_budget is None else self.memory_budget

    def __enter__(self) -> TorchEngine:
        """Hold float32 products to full precision, or not, as asked."""
        self._precisions.append(self._torch.get_float32_matmul_precision())
        self._torch.set_float32_matmul_precision("high" if self.tf32 else "highest")
        if self.device.type == "cuda":  # threads that meet at the first decomposition of all would fail
            self._torch.linalg.eigh(self._torch.eye(2, device=self.device))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Set the precision back and forget the models' tensors."""
        self._torch.set_float32_matmul_precision(self._precisions.pop())
        self._cache.clear()

    @property
    def rows_at_once(self) -> int:
        """Some blocks."""
        return BLOCKS_AT_ONCE * self._rows_per_block(1 << 40)

    def put(self, matrix: Any) -> Rows:
        """Keep a reference."""
        return GivenBlocks(matrix, self._rows_per_block(int(matrix.shape[0])))

    def get(self, rows: Rows) -> npt.NDArray[Any]:
        """All rows as one host array, block after block: never twice on the device."""
        held = own_rows(rows)
        parts = [host_array(self._block(held, i)) for i in range(held.n_blocks)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def answer(self, rows: Rows, given: Any) -> Any:
        """A tensor on the device for who gave a tensor, else a host array."""
        return self.held(rows) if is_tensor(given) else self.get(rows)

    def held(self, rows: Rows) -> Any:
        """One tensor on the device."""
        blocks = [self._block(own_rows(rows), i) for i in range(own_rows(rows).n_blocks)]
        return blocks[0] if len(blocks) == 1 else self._torch.cat(blocks)

    def map_rows(self, function: Callable[..., Any], *arguments: Any, reuse: Sequence[Rows] = ()) -> Any:
        """Apply a function to one block after the other."""
        if self.device.type != "cpu":  # asked once, and counted from there: the device's allocator is slow to answer
            self._room = self._budget() - (self._bytes_used() - self._used_before)
        results = [
            tuple(map(self._kept, result)) if isinstance(result, tuple) else self._kept(result)
            for result in self._results(function, arguments, reuse)
        ]
        if isinstance(results[0], tuple):
            return tuple(MadeBlocks(list(blocks)) for blocks in zip(*results, strict=True))
        return MadeBlocks(results)

    def sum_rows(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add up on the device, in float64 and in block order; the sums are fetched once."""
        totals: list[Any] = []
        is_tuple = False
        for result in self._results(function, arguments, ()):
            is_tuple = isinstance(result, tuple)
            parts = [self._torch.as_tensor(p, device=self.device) for p in (result if is_tuple else (result,))]
            if totals:
                for total, part in zip(totals, parts, strict=True):
                    total += part
            else:
                totals = [part.to(self._torch.float64, copy=True) for part in parts]
        sums = [host_array(total) for total in totals]
        return tuple(sums) if is_tuple else sums[0]

    def take_rows(self, rows: Rows, positions: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Some rows as a dense host array."""
        if isinstance(rows, GivenBlocks):
            return dense_rows(rows.matrix, positions)
        return host_array(self._picked(own_rows(rows), positions))

    def _picked(self, rows: MadeBlocks, positions: npt.NDArray[np.intp]) -> Any:
        pieces, order = rows.pieces(positions, self._torch.as_tensor)
        return self._torch.cat([piece.to(self.device) for piece in pieces])[self._tensor(np.argsort(order))]

    def beside(self, value: Any) -> Any:
        """As tensors on the device."""
        return self._on_device(value)

    def sample(self, rows: Rows, positions: npt.NDArray[np.intp]) -> Any:
        """A tensor on the device, where there is one."""
        held = own_rows(rows)
        if self.device.type == "cpu":
            return self.take_rows(rows, positions)
        if isinstance(held, MadeBlocks):
            return self._picked(held, positions)
        if is_tensor(held.matrix) and held.matrix.device == self.device:
            return held.matrix[self._tensor(positions)]
        return self._tensor(self.take_rows(rows, positions))

    @property
    def at_hand(self) -> Engine:
        """Threads where there is no device: they are quicker with many small steps."""
        return ThreadsEngine(block_rows=self.block_rows) if self.device.type == "cpu" else self

    def eigenpairs(self, matrix: FloatArray, n_pairs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """On the device where the matrix is large enough to be worth the way."""
        if self.device.type == "cpu" or len(matrix) < DEVICE_EIGH:
            return super().eigenpairs(matrix, n_pairs)
        values, vectors = self._torch.linalg.eigh(self._tensor(matrix))
        kept = slice(-(n_pairs or len(matrix)), None)
        return host_array(values[kept]), host_array(vectors[:, kept])

    def _results(self, function: Callable[..., Any], arguments: Sequence[Any], reuse: Sequence[Rows]) -> Iterator[Any]:
        whole = [None if isinstance(argument, Rows) else self._whole(argument) for argument in arguments]
        walked = own_rows(next(argument for argument in arguments if isinstance(argument, Rows)))
        n_rows, n_blocks = walked.n_rows, walked.n_blocks
        done = begin_stage("pass", n_rows, "rows")
        for i in range(n_blocks):
            given = [
                self._given(a, i, a in reuse) if isinstance(a, Rows) else small
                for a, small in zip(arguments, whole, strict=True)
            ]
            with self._torch.no_grad():
                result = function(*given)
            yield result
            done(n_rows * (i + 1) // n_blocks - n_rows * i // n_blocks)

    def _given(self, rows: Rows, i: int, is_reused: bool) -> Any:
        held = own_rows(rows)
        if is_reused and isinstance(held, MadeBlocks) and held.blocks[i].device == self.device:
            self._room += held.blocks[i].nbytes
        block = self._block(held, i)
        if not is_reused:
            return block
        if isinstance(held, MadeBlocks):
            held.blocks[i] = None
            return block
        return block.clone()  # what the caller put is the caller's

    def _block(self, rows: GivenBlocks | MadeBlocks, i: int) -> Any:
        if isinstance(rows, MadeBlocks):
            return rows.blocks[i].to(self.device)
        bounds = rows.bounds[i]
        if is_tensor(rows.matrix):
            return rows.matrix[bounds].to(self.device)
        if rows.copy is None and self._is_small(rows.matrix):  # at once: every copy waits for all work before it
            rows.copy = self._tensor(dense_rows(rows.matrix, slice(None)))
        return self._tensor(dense_rows(rows.matrix, bounds)) if rows.copy is None else rows.copy[bounds]

    def _is_small(self, matrix: Any) -> bool:
        n_bytes = math.prod(matrix.shape) * np.dtype(matrix.dtype).itemsize
        return self.device.type != "cpu" and bool(n_bytes <= SMALL_SHARE * self._budget())

    def _kept(self, block: Any) -> Any:
        """A block that map_rows made, on the host where the device's budget is used up."""
        if self.device.type != "cpu" and block.nbytes > self._room:
            return block.cpu()
        self._room -= block.nbytes
        return block

    def _bytes_used(self) -> int:
        return int(self._torch.cuda.memory_allocated(self.device)) if self.device.type == "cuda" else 0

    def _budget(self) -> float:
        if self.memory_budget is None:
            self.memory_budget = self._torch.cuda.mem_get_info(self.device)[0] / 2
        return self.memory_budget

    def _rows_per_block(self, n_rows: int) -> int:
        """From the number of rows and the setting alone, so that rows of one length are cut alike."""
        if self.block_rows:
            return self.block_rows
        if self.device.type == "cpu":
            return default_block_rows(n_rows)
        in_work = 8 * (ROW_COPIES * self._n_features + ROW_NUMBERS)
        return max(SMALLEST_BLOCK, min(LARGEST_BLOCK, int(SHARE_IN_WORK * self._budget() / in_work)))

    def _tensor(self, array: npt.NDArray[Any]) -> Any:
        array = np.asarray(array, dtype=array.dtype.newbyteorder("="))
        if not array.flags.writeable or any(stride < 0 for stride in array.strides) or isinstance(array, np.memmap):
            array = np.array(array)  # torch shares memory with what it is given, and shares no read-only memory
        return self._torch.from_numpy(array).to(self.device)

    def _whole(self, value: Any) -> Any:
        """An argument that goes to every block, on the device; a model that comes again and again is sent once."""
        if not dataclasses.is_dataclass(value):
            return self._on_device(value)
        if id(value) not in self._cache:
            while len(self._cache) >= N_CACHED:
                del self._cache[next(iter(self._cache))]
            # the value is kept beside its tensors, or its id could come to name another one
            self._cache[id(value)] = value, self._on_device(value)
        return self._cache[id(value)][1]

    def _on_device(self, value: Any) -> Any:
        return with_arrays(value, self._tensor)


def _load_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "the engine 'torch' needs PyTorch, which is not installed: pip install 'quorumhash[torch]'."
        ) from error
    return torch
