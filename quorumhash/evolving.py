"""What the default hasher can do after fit: views added, replaced and dropped, trust that follows rows, drift told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from quorumhash.drift import (
    DriftReport,
    Stream,
    check_stream,
    first_stream,
    followed,
    measure_drift,
    streamed_rows,
)
from quorumhash.evolution import Evolution, active_views, check_evolution, slot_views, with_view, without_view
from quorumhash.judging import Judge, judged_rows
from quorumhash.landmarks import SAMPLE_ROWS
from quorumhash.viewoptions import call_limits
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


class Evolving:
    """A part of QuorumHasher; `fit` begins anew. Codes of items with the views of fit never change by any of this."""

    judge_: Judge
    view_widths_: dict[str, int]
    evolution_: Evolution
    stream_: Stream

    def add_view(self, name: str, new_view: Any, rows: Any) -> Self:
        """Learn a new view, such as a new embedding model, so that it gives the existing codes.

        Parameters
        ----------
        name : str
            Name of the new view.
        new_view : array (n, n_features)
            The new view of some items; NaN rows where an item lacks it. Some 10,000 rows are plenty.
        rows : Views or anything Views accepts
            The views known so far of the same items, in the same order.

        Stored codes, and those of items without the new view, stay as they are to the bit, and so does `fingerprint`:
        an index goes on taking codes. A new view bears witness and is predicted from; its own features get no bits.
        """
        self.evolution_ = with_view(self._evolution(), name, new_view, self._known(rows), 0)
        return self

    def replace_view(self, name: str, new_view: Any, rows: Any) -> Self:
        """Let a name mean a new view from now on; `rows` hold the old one, and other views, of the same items."""
        known = self._known(rows)
        self.evolution_ = with_view(without_view_or_error(self._evolution(), name), name, new_view, known, 0)
        return self

    def drop_view(self, name: str) -> Self:
        """Do without a view from now on: it may no longer be given, and is predicted from the others."""
        self.evolution_ = without_view(self._evolution(), name)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Let trust follow slow drift: the centres of views, and the middle and spread of the votes on them.

        Changes what `reliability` says of later rows, never codes. A model that was not fitted is fitted.
        """
        if not hasattr(self, "judge_"):
            fitted: Self = self.fit(X, y)  # type: ignore[attr-defined]
            return fitted
        present, blocks = self._fitted_rows(X)
        self.stream_ = followed(self.judge_, self._stream(), present, blocks)
        return self

    def drift(self, X: Any) -> DriftReport:
        """How far rows have drifted from those of fit, and whether a refit is due: `is_due`, `reasons`, figures."""
        present, blocks = self._fitted_rows(X)
        return measure_drift(self.judge_, self._stream(), tuple(self.view_widths_), present, blocks)

    def _evolution(self) -> Evolution:
        fitted = Evolution(self.judge_, tuple(self.view_widths_), tuple(self.view_widths_.values()))
        return getattr(self, "evolution_", fitted)

    def _stream(self) -> Stream:
        return getattr(self, "stream_", None) or first_stream(self.judge_)

    def _forget_evolution(self) -> None:
        for name in ("evolution_", "stream_"):
            self.__dict__.pop(name, None)

    def _entered(self, X: Any) -> Views:
        if not hasattr(self, "evolution_"):
            entered: Views = super()._entered(X)  # type: ignore[misc]
            return entered
        return slot_views(self.evolution_, Views(X), type(self).__name__)

    def _known(self, rows: Any) -> Views:
        """Views with one member per slot."""
        self._entered(rows)  # refuses columns and views that the model does not know
        return slot_views(self._evolution(), Views(rows), type(self).__name__)

    def _has_added(self, views: Views) -> bool:
        return any(views.present(name).any() for name in views.names[len(self.view_widths_) :])

    def _limits(self, view_weights: Mapping[str, float] | None) -> FloatArray:
        """How much of its own the view of every slot may keep in one call."""
        evolution = self._evolution()
        named = dict(
            zip(active_views(evolution), call_limits(view_weights, tuple(active_views(evolution))), strict=True)
        )
        return np.array([named.get(slot, 1.0) for slot in evolution.slots])

    def _reliability_of(self, views: Views) -> tuple[Callable[..., Any], Any, Any]:
        """The function of one block that judges these views, and what it takes before the rows."""
        if self._has_added(views):
            return _judged_by, self.evolution_.judge, None
        stream = getattr(self, "stream_", None)
        return _judged_by, self.judge_, stream

    def _of_active(self, columns: FloatArray) -> FloatArray:
        """The columns of slots that are not empty."""
        slots = self._evolution().slots
        whole = np.full((len(columns), len(slots)), np.nan)
        whole[:, : columns.shape[1]] = columns
        return whole[:, [bool(slot) for slot in slots]]

    def _fitted_rows(self, X: Any) -> tuple[npt.NDArray[np.bool_], list[FloatArray]]:
        """Presence and rows, at most a sample's number, of the views of fit."""
        views = self._entered(X)
        views = views[:: 1 + len(views) // SAMPLE_ROWS]
        names = views.names[: len(self.view_widths_)]
        present = np.stack([views.present(name) for name in names], axis=1)
        widths = self.view_widths_.values()
        blocks = [
            np.full((len(views), width), np.nan) if views.matrix(name) is None else np.asarray(views[name], dtype=float)
            for name, width in zip(names, widths, strict=True)
        ]
        return present, blocks

    def _check_evolution(self) -> None:
        if hasattr(self, "evolution_"):
            check_evolution(self.evolution_, self.judge_)
        if hasattr(self, "stream_"):
            check_stream(self.stream_, list(self.view_widths_.values()))


def without_view_or_error(evolution: Evolution, name: str) -> Evolution:
    """The slot emptied, also where it is the last one: another view takes the name at once."""
    if list(active_views(evolution)) == [name]:
        return Evolution(evolution.judge, tuple("" for _ in evolution.slots), evolution.widths)
    return without_view(evolution, name)


def _judged_by(judge: Judge, stream: Stream | None, present: Any, *blocks: Any) -> Any:
    n_slots = len(judge.components)
    if stream is None:
        return judged_rows(judge, present[:, :n_slots], *blocks[:n_slots])
    return streamed_rows(judge, stream, present[:, :n_slots], *blocks[:n_slots])
