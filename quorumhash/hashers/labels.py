"""Labels and pairs as they are given to `fit`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError


def checked_labels(y: Any, n_rows: int) -> npt.NDArray[Any]:
    """Labels of n rows: whole numbers, texts, or a column of 0 and 1 per label."""
    labels = np.asarray(y)
    if labels.ndim not in (1, 2) or len(labels) != n_rows:
        raise ParameterError(f"labels must have one entry per row ({n_rows}), got shape {labels.shape}.")
    if labels.dtype.kind == "O":
        if len({type(label) for label in labels.ravel()}) > 1:
            raise ParameterError("labels must be all whole numbers or all texts, got both kinds.")
        labels = np.array(labels.tolist())
    if labels.ndim == 2 and labels.dtype.kind not in "iubf":
        raise ParameterError(
            "labels in columns must be 0 or 1, got texts; give one text per row, or a column per label."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ParameterError("labels must be whole numbers or texts, got NaN or infinity; -1 marks an unlabelled row.")
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        return labels.astype(np.int64)
    return labels


def checked_pairs(pairs: Any, n_rows: int) -> npt.NDArray[np.int64]:
    """Pairs (n_pairs, 2) of rows known to be alike."""
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu" or not len(rows):
        raise ParameterError(
            f"similar_pairs must be whole numbers of shape (n_pairs, 2), got {rows.dtype} {rows.shape}."
        )
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ParameterError(f"similar_pairs must name rows from 0 to {n_rows - 1}, got {rows.min()} to {rows.max()}.")
    return rows.astype(np.int64)


def same_labels(*labels: npt.NDArray[Any]) -> Sequence[npt.NDArray[Any]]:
    """Labels that are texts or floats as whole numbers, alike in both; the others as they are."""
    if any(part.ndim == 2 for part in labels) or all(part.dtype.kind in "iub" for part in labels):
        return labels
    numbers = np.unique(np.concatenate(labels), return_inverse=True)[1]
    return np.split(numbers, [len(labels[0])])
