"""A view that is a torch tensor, on the host or on a device: what the gate asks of it, without loading torch.

Only methods of the tensor itself are called; who holds a tensor has loaded torch. It is never copied to the host, but
for the rows that somebody asks for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_torch_array

SCAN_VALUES = 1 << 26  # values looked at in one go: what that takes is small on a device that holds the tensor


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor (without loading torch)."""
    return bool(is_torch_array(value))


def host_array(tensor: Any) -> npt.NDArray[Any]:
    """The values as a NumPy array; a copy unless they lie in the host's memory already."""
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has no such type
        tensor = tensor.float()
    return np.asarray(tensor.cpu().numpy())


def on_host(values: Any) -> npt.NDArray[Any]:
    """Values of a block, array or tensor, as a NumPy array: a device comes to rest first."""
    return host_array(values) if is_tensor(values) else np.asarray(values)


def with_arrays(value: Any, convert: Callable[[npt.NDArray[Any]], Any]) -> Any:
    """An array converted, and whatever holds arrays with converted ones in their place; everything else as it is."""
    if isinstance(value, np.ndarray):
        return convert(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return dataclasses.replace(value, **{f.name: with_arrays(getattr(value, f.name), convert) for f in fields})
    return type(value)(with_arrays(v, convert) for v in value) if isinstance(value, list | tuple) else value


def beside(value: Any, rows: Any) -> Any:
    """Host arrays, and whatever holds some, where rows are: themselves unless rows are a tensor."""
    if not is_tensor(rows):
        return value
    xp = array_namespace(rows)
    return with_arrays(value, lambda array: xp.asarray(np.ascontiguousarray(array), device=rows.device))


def tensor_presence(tensor: Any, limit: float) -> tuple[npt.NDArray[np.bool_], bool, tuple[int, int, float] | None]:
    """Which rows hold any value, whether any is missing, and the place and value of one above the limit (or inf)."""
    present = np.ones(tensor.shape[0], dtype=bool)
    any_missing = False
    if not tensor.is_floating_point():
        return present, any_missing, None
    limit = min(limit, float(array_namespace(tensor).finfo(tensor.dtype).max))  # as a float32 1e100 would be inf
    step = max(1, SCAN_VALUES // tensor.shape[1])
    for start in range(0, tensor.shape[0], step):
        block = tensor[start : start + step]
        least, largest = block.aminmax()
        if bool((least >= -limit) & (largest <= limit)):  # one pass over a whole block; NaN is not below anything
            continue
        too_large = block.abs() > limit
        if bool(too_large.any()):
            row, column = (int(i) for i in too_large.nonzero()[0])
            return present, any_missing, (start + row, column, float(block[row, column]))
        missing = block.isnan()
        any_missing = True
        present[start : start + step] = ~host_array(missing.all(dim=1))
    return present, any_missing, None
