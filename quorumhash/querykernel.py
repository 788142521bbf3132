"""One kernel row for a new item, from the kernels of the views it has.

    mean      the average of the views' kernels, the scale the hash functions were fitted to
    project   the average, projected on the span of the low-rank consensus, non-negative
    robust    the point of that span with the least sum of distances to the views' kernels (Weiszfeld), non-negative

Stored items and queries are encoded by the same rule.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from quorumhash.proximal import row_norms

QUERY_KERNELS = ("mean", "project", "robust")
WEISZFELD_STEPS = 8
SMALLEST_DISTANCE = 1e-9


def query_kernel(mode: str, basis: Any, present: Any, *kernels: Any) -> Any:
    """The kernel rows (n, R), float64; `present` (n, n_views) says which views count, absent kernels may be None."""
    if mode == "mean":
        return weighted_mean(present, *kernels)
    kernel = weighted_mean(present, *kernels) @ basis @ basis.T
    if mode == "robust":
        for _ in range(WEISZFELD_STEPS):
            kernel = weighted_mean(_nearness(kernel, present, kernels), *kernels) @ basis @ basis.T
    return kernel.clip(0.0, None)


def weighted_mean(weights: Any, *kernels: Any) -> Any:
    """Average of kernels with a weight per item and view, float64; a kernel that is None has weight 0 everywhere."""
    xp = array_namespace(weights)
    weights = xp.astype(weights, xp.float64)
    parts = [weights[:, m, None] * kernel for m, kernel in enumerate(kernels) if kernel is not None]
    total = parts[0]
    for part in parts[1:]:
        total += part
    total /= xp.sum(weights, axis=1)[:, None]
    return total


def _nearness(kernel: Any, present: Any, kernels: tuple[Any, ...]) -> Any:
    """1 / distance of every view's kernel to the current one; 0 where the view is absent."""
    xp = array_namespace(kernel)
    columns = [
        xp.zeros_like(kernel[:, 0]) if view is None else 1.0 / row_norms(view - kernel).clip(SMALLEST_DISTANCE, None)
        for view in kernels
    ]
    return xp.stack(columns, axis=1) * xp.astype(present, xp.float64)


def fill_absent(present: Any, *kernels: Any) -> Any:
    """Kernels (n, R) per view in which an absent view takes the mean of the views its item has: no voice of its own."""
    xp = array_namespace(present)
    mean = weighted_mean(present, *kernels)
    return tuple(
        xp.where(present[:, m, None], kernel, xp.astype(mean, kernel.dtype)) for m, kernel in enumerate(kernels)
    )
