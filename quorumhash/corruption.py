"""Damage on purpose: views in, damaged views out; every corruption of the benchmark, seeded.

    gauss        each value with probability `rate`: plus N(0, 1) times its feature's standard deviation
    swap         each (item, view) pair with probability `rate`: that view of a random other item
    noise        each pair: Gaussian noise around the feature means, at twice the features' standard deviations
    zero         each pair: a row of zeros
    placeholder  each pair: one and the same row per view, that of one random item
    swap_source  each (item, source) with probability `rate`: all views of the source, of one random other item
    shift        a block of round(rate * n_items) rows of one view: row i holds the data of row i - 1
    drop_view    each pair: missing (a row of NaN); an item keeps at least one view
    drop_values  each value: missing (NaN); an item keeps at least one value
    patch        pictures only: a square over the share `rate` of the pixels, at a random place per item

A value that was missing stays missing. An item that damage would leave without any value (its partner may lack the
view too) is left as it was. Damaged views come back dense, in their own type or, where integers do not do, float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError
from quorumhash.patches import ImageShape, checked_shape, flattened_pictures, patch_pixels
from quorumhash.views import Views

Values = npt.NDArray[Any]  # one view, (n_items, n_features)
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Sources = Mapping[str, Sequence[str]]
STREAM = 0xDA3A6E
FILLS = ("zero", "mean", "missing")  # of a patch


@dataclass(frozen=True)
class Damaged:
    """Damaged views and, bool (n_items, n_views), where a pair has any value other than the one given."""

    views: Views
    mask: Flags


@dataclass(frozen=True)
class _Job:
    """What a kind of damage works on; a pair is hit where its `chance` is below the rate."""

    views: Views
    matrices: dict[str, Values]  # the views that may be damaged, dense, as given
    chance: dict[str, Floats]  # per view (n_items,), uniform in [0, 1)
    choice: dict[str, Floats]  # the same, for choosing among items
    rate: float
    rng: np.random.Generator
    sources: Sources | None
    names: Sequence[str] | None
    image_shape: Mapping[str, ImageShape] | ImageShape | None
    fill: str


def damage(
    views: Any,
    kind: str,
    *,
    rate: float = 0.2,
    random_state: int | np.random.Generator = 0,
    sources: Sources | None = None,
    names: Sequence[str] | None = None,
    image_shape: Mapping[str, ImageShape] | ImageShape | None = None,
    fill: str = "zero",
) -> Views:
    """Views with damage of one kind; the input is not changed.

    Parameters
    ----------
    views : Views, or anything Views accepts; n_items rows in n_views views.
    kind : gauss, swap, noise, zero, placeholder, swap_source, shift, drop_view, drop_values or patch; see the module.
    rate : probability or share, by kind, from 0 to 1.
    random_state : same number, same damage; which pairs are hit does not depend on the widths of the views.
    sources : for "swap_source", the views of every source, which err together.
    names : the views that may be damaged, by default all; the others are passed on as they are, not copied. "shift"
        damages one view at random, or all those named, in the same rows.
    image_shape : for "patch", per view the (height, width) or (height, width, channels) by which a row is read as a
        picture, in C order; one tuple will do where there is one view. Not needed for image arrays of 3 or 4 axes.
    fill : for "patch", what takes the place of the pixels: "zero", "mean" (of that picture, per channel), "missing".

    >>> damaged = damage({"colour": np.eye(4), "shape": np.ones((4, 2))}, "zero", rate=1.0, names=["shape"])
    >>> float(damaged["colour"].sum()), float(damaged["shape"].sum())
    (4.0, 0.0)
    """
    return _damaged(views, kind, rate, random_state, sources, names, image_shape, fill).views


def damage_with_mask(views: Any, kind: str, **options: Any) -> Damaged:
    """What `damage` gives with these options, together with the mask (n_items, n_views) of the pairs that were changed.

    >>> damage_with_mask({"colour": np.eye(4), "shape": np.ones((4, 2))}, "zero", rate=1.0).mask.sum(axis=0)
    array([4, 4])
    """
    return _damaged(views, kind, **options)


def _damaged(
    views: Any,
    kind: str,
    rate: float = 0.2,
    random_state: Any = 0,
    sources: Sources | None = None,
    names: Sequence[str] | None = None,
    image_shape: Mapping[str, ImageShape] | ImageShape | None = None,
    fill: str = "zero",
) -> Damaged:
    if kind == "patch" and image_shape is None:
        views, image_shape = flattened_pictures(views)
    if kind not in KINDS:
        raise ParameterError(f"kind of damage must be one of {', '.join(KINDS)}, got {kind!r}; choose one of them.")
    if not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
        raise ParameterError(f"rate must be a number from 0 to 1, got {rate!r}; give the share to damage, such as 0.2.")
    given, rng = Views(views), _generator(random_state)
    # the first draws of all, so that no width has a say in which pairs are hit
    chance, choice = (dict(zip(given, draw, strict=True)) for draw in rng.random((2, len(given.names), len(given))))
    matrices = {name: given[name] for name in _chosen(given, names)}
    job = _Job(given, matrices, chance, choice, float(rate), rng, sources, names, image_shape, fill)
    return _compared(job, KINDS[kind](job))


def _generator(random_state: Any) -> np.random.Generator:
    """A stream of damage's own: from a plain seed's, damage would follow whatever else was drawn with that seed."""
    try:
        is_seed = isinstance(random_state, Integral)
        return np.random.default_rng([int(random_state), STREAM] if is_seed else random_state)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"random_state must be a whole number or a generator, got {random_state!r}.") from error


def _compared(job: _Job, damaged: dict[str, Values]) -> Damaged:
    """Keep missing what was missing, spare items left with nothing, compare with what was given."""
    views, left = job.views, np.zeros(len(job.views), dtype=bool)
    for name in views:
        if name in damaged and job.matrices[name].dtype.kind == "f":
            damaged[name][np.isnan(job.matrices[name])] = np.nan
        left |= ~np.isnan(damaged[name]).all(axis=1) if name in damaged else views.present(name)
    mask = np.zeros((len(views), len(views.names)), dtype=bool)
    for name, values in damaged.items():
        before = job.matrices[name]
        values[~left] = before[~left]
        mask[:, views.names.index(name)] = ((values != before) & ~np.isnan(before)).any(axis=1)
    return Damaged(Views({name: damaged.get(name, views.matrix(name)) for name in views}), mask)


def _gauss(job: _Job) -> dict[str, Values]:
    damaged = {name: _as_floats(matrix) for name, matrix in job.matrices.items()}
    for name, values in damaged.items():
        hit = job.rng.random(values.shape) < job.rate
        deviation = np.broadcast_to(_mean_and_deviation(job.matrices[name])[1], values.shape)[hit]
        values[hit] += deviation * job.rng.standard_normal(len(deviation))
    return damaged


def _replace_pairs(job: _Job, rows: Callable[[_Job, str, Flags], Values]) -> dict[str, Values]:
    """Put `rows(job, name, hit)`, (n_hit, n_features), in the place of the pairs that are hit."""
    damaged = {}
    for name, matrix in job.matrices.items():
        hit = job.chance[name] < job.rate
        new_rows = rows(job, name, hit)
        damaged[name] = _as_floats(matrix) if new_rows.dtype.kind == "f" else np.array(matrix)
        damaged[name][hit] = new_rows
    return damaged


def _swap_rows(job: _Job, name: str, hit: Flags) -> Values:
    return np.asarray(job.matrices[name][_partners(job.views.present(name), job.choice[name])[hit]])


def _noise_rows(job: _Job, name: str, hit: Flags) -> Values:
    mean, deviation = _mean_and_deviation(job.matrices[name])
    return mean + 2 * deviation * job.rng.standard_normal((int(hit.sum()), mean.shape[1]))


def _zero_rows(job: _Job, name: str, hit: Flags) -> Values:
    return np.zeros_like(job.matrices[name][hit])


def _placeholder_rows(job: _Job, name: str, hit: Flags) -> Values:
    items = np.flatnonzero(job.views.present(name))
    if not len(items):
        return np.asarray(job.matrices[name][hit])
    return np.tile(job.matrices[name][items[int(job.choice[name][0] * len(items))]], (int(hit.sum()), 1))


def _swap_source(job: _Job) -> dict[str, Values]:
    if not isinstance(job.sources, Mapping) or not job.sources:
        raise ParameterError(
            f'sources must name the views of each source, got {job.sources!r}; give such as {{"photo": ["gist"]}}.'
        )
    damaged = {}
    for source in job.sources.values():
        names = _chosen(job.views, source)
        has_source = np.logical_or.reduce([job.views.present(name) for name in names])
        hit = job.chance[names[0]] < job.rate
        partners = _partners(has_source, job.choice[names[0]])
        for name in set(names) & set(job.matrices):
            damaged[name] = np.array(job.matrices[name])
            damaged[name][hit] = job.matrices[name][partners[hit]]
    return damaged


def _shift(job: _Job) -> dict[str, Values]:
    n_items, length = len(job.views), round(job.rate * len(job.views))
    start = int(job.rng.integers(1, n_items - length + 1)) if length < n_items else 0  # row 0 then holds the last row
    rows = np.arange(start, start + length)
    names = list(job.matrices) if job.names is not None else [str(job.rng.choice(list(job.matrices)))]
    damaged = {name: np.array(job.matrices[name]) for name in names}
    for name, values in damaged.items():
        values[rows] = job.matrices[name][rows - 1]
    return damaged


def _drop(job: _Job, is_whole_view: bool) -> dict[str, Values]:
    """Make missing what has a chance below the rate, save what has an item's highest if the item has nothing else."""
    chances = {}
    for name, matrix in job.matrices.items():
        chance = job.chance[name][:, None] if is_whole_view else job.rng.random(matrix.shape)
        chances[name] = np.where(np.isnan(matrix), -1, chance)
    highest = np.max([chance.max(axis=1) for chance in chances.values()], axis=0)
    for name in set(job.views) - set(job.matrices):
        highest[job.views.present(name)] = 1
    damaged = {name: _as_floats(matrix) for name, matrix in job.matrices.items()}
    for name, values in damaged.items():
        values[chances[name] < np.minimum(job.rate, highest)[:, None]] = np.nan
    return damaged


def _patch(job: _Job) -> dict[str, Values]:
    if job.fill not in FILLS:
        raise ParameterError(f"fill must be one of {', '.join(FILLS)}, got {job.fill!r}; choose one of them.")
    shapes = job.image_shape if isinstance(job.image_shape, Mapping) else dict.fromkeys(job.matrices, job.image_shape)
    damaged = {}
    for name, given in (shapes or {"": None}).items():
        matrix = job.matrices.get(name, np.empty((1, 0)))
        shape = checked_shape(name, given, matrix.shape[1])
        pictures = matrix.reshape(len(matrix), shape[0] * shape[1], -1)
        filling = {"zero": 0, "missing": np.nan}.get(job.fill, _mean_and_deviation(pictures, axis=1)[0])
        covered = patch_pixels(len(matrix), job.rate, shape, job.rng)[:, :, None]
        values = np.where(covered, filling, pictures).reshape(matrix.shape)
        damaged[name] = values.astype(matrix.dtype) if job.fill == "zero" or matrix.dtype.kind == "f" else values
    return damaged


def _mean_and_deviation(values: Values, axis: int = 0) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the values that are there, 0 where there are none."""
    there = ~np.isnan(values)
    count = np.maximum(there.sum(axis=axis, keepdims=True), 1)
    mean = np.where(there, values, 0).sum(axis=axis, keepdims=True, dtype=np.float64) / count
    return mean, np.sqrt((np.where(there, values - mean, 0) ** 2).sum(axis=axis, keepdims=True) / count)


def _partners(has_view: Flags, choice: Floats) -> npt.NDArray[np.intp]:
    """A random other item with the view for every item with it, (n_items,)."""
    if len(has_view) < 2:
        raise ParameterError("a swap needs a partner: views must have at least 2 rows, got 1; give more items.")
    items = np.flatnonzero(has_view)
    steps = 1 + (choice[items] * (len(items) - 1)).astype(np.intp)
    partners = np.arange(len(has_view))
    partners[items] = items[(np.arange(len(items)) + steps) % len(items)]
    return partners


def _as_floats(matrix: Values) -> Values:
    return np.array(matrix, dtype=matrix.dtype if matrix.dtype.kind == "f" else np.float64)


def _chosen(views: Views, names: Sequence[str] | None) -> list[str]:
    """The named views that hold data, in the order of the views."""
    wanted = views.names if names is None else tuple(names) if isinstance(names, list | tuple | set) else (names,)
    chosen = [name for name in views if name in wanted and views.matrix(name) is not None]
    if not chosen or any(name not in views for name in wanted):
        raise ParameterError(
            f"views to damage must be among {', '.join(map(repr, views))} and hold data, got {names!r}; choose others."
        )
    return chosen


KINDS: dict[str, Callable[[_Job], dict[str, Values]]] = {
    "gauss": _gauss,
    "swap": partial(_replace_pairs, rows=_swap_rows),
    "noise": partial(_replace_pairs, rows=_noise_rows),
    "zero": partial(_replace_pairs, rows=_zero_rows),
    "placeholder": partial(_replace_pairs, rows=_placeholder_rows),
    "swap_source": _swap_source,
    "shift": _shift,
    "drop_view": partial(_drop, is_whole_view=True),
    "drop_values": partial(_drop, is_whole_view=False),
    "patch": _patch,
}
