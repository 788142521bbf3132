"""The contract of a hasher: a scikit-learn estimator that turns Views into codes.

A method's own file says what it `handles`, learns in `_fit` and scores in `_scores`; this file does the rest once:
the gate, the engine, bits from scores, the default score, saving. What `fit` learned ends in `_`: `learned` names what
decides the codes, `told` what only tells how they were found, `parts` the dataclasses both are made of, so that a model
file can hold them without pickle; `about` holds the facts of the page of methods.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from quorumhash import modelfile
from quorumhash.codes import MOST_BITS, code_rows, hamming_distances, n_bytes, scores_to_bits
from quorumhash.engines import Engine, Rows, open_engine
from quorumhash.errors import ParameterError, RefusedError, ViewsError
from quorumhash.evaluation import mean_average_precision, shared_labels
from quorumhash.hashers.columns import check_columns, learn_columns
from quorumhash.hashers.labels import checked_labels, checked_pairs, same_labels
from quorumhash.hashers.plain import to_plain
from quorumhash.views import Views

EngineLike = str | Engine


@dataclass(frozen=True)
class About:
    """Facts of a method that its code does not say, for docs/methods.md; costs are leading terms, letters as there."""

    year: int | None  # of the reference; None: folklore
    fit_cost: str
    encode_cost: str  # per item
    labels: str = "no"
    rotation: str = ""  # of a method without `rotate`: whether it rotates, or why not
    is_reconstruction: bool = False  # the original could not be read


class BaseHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What every hasher can do; see the module's text for what a method adds."""

    about: ClassVar[About] = About(None, "not told", "not told")
    learned: ClassVar[tuple[str, ...]] = ()
    told: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[tuple[type, ...]] = ()

    n_bits: int
    random_state: Any
    view_widths_: dict[str, int]
    n_features_in_: int
    n_bits_: int
    uses_pairs: ClassVar[bool] = False
    call_options: ClassVar[tuple[str, ...]] = ()  # of transform and decision_function, beside engine and packed
    _training_labels: npt.NDArray[Any] | None  # there while `fit` runs, for methods that learn from labels
    _training_pairs: npt.NDArray[np.int64] | None  # the same for pairs of rows known to be alike

    def handles(self, views: Views) -> tuple[bool, str]:  # noqa: ARG002
        """Whether the method can face these views at this setting, and if not, why."""
        return True, ""

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        raise NotImplementedError

    def _scores(self, views: Views, engine: Engine) -> Rows:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        similar_pairs: Any = None,
        engine: EngineLike = "threads",
        memory_budget: int | None = None,
    ) -> Self:
        """Learn the hash functions.

        Parameters
        ----------
        X : Views or anything Views accepts
            One row per item.
        y : array, optional
            Labels. Methods that learn without labels use them only as the default `score`'s truth.
        similar_pairs : array (n_pairs, 2), optional
            Rows known to be alike, for methods that use them; the others refuse them.
        engine : str or Engine
            Where the rows live and are walked: "threads", "torch", "torch:cuda", or an Engine; not stored in the model.
        memory_budget : int, optional
            Bytes the work may take, on the device where there is one: blocks follow it, and a method whose state needs
            more refuses before it starts.
        """
        views = Views(X)
        labels = None if y is None else checked_labels(y, len(views))
        seed = _seed(self.random_state)
        self._training_labels = labels
        self._training_pairs = None if similar_pairs is None else checked_pairs(similar_pairs, len(views))
        try:
            self._check_setting(views, similar_pairs, memory_budget)
            with open_engine(engine) as opened:
                opened.plan(views.shape[1], memory_budget)
                self._fit(views, opened, seed)
        finally:
            del self._training_labels, self._training_pairs
        learn_columns(self, X)
        self.view_widths_ = views.widths
        self.n_features_in_ = views.shape[1]
        self.n_bits_ = int(self.n_bits)
        self._fitted_labels = labels
        self._fitted_codes = None if labels is None else self.transform(views, engine=engine)
        return self

    def _check_setting(self, views: Views, similar_pairs: Any, memory_budget: int | None) -> None:
        name = type(self).__name__
        n_bits: Any = self.n_bits
        if isinstance(n_bits, bool) or not isinstance(n_bits, Integral) or not 1 <= int(n_bits) <= MOST_BITS:
            raise ParameterError(f"n_bits of {name} must be a whole number from 1 to {MOST_BITS}, got {n_bits!r}.")
        self._check_parameters()
        if len(views) < 2:
            raise RefusedError(f"{name} cannot learn from n_samples={len(views)}: give 2 rows or more.")
        if similar_pairs is not None and not self.uses_pairs:
            raise RefusedError(f"{name} learns without pairs: leave similar_pairs out.")
        fits, reason = self.handles(views)
        if not fits:
            raise RefusedError(f"{name} cannot face this setting: {reason}")
        budget: Any = memory_budget
        if budget is not None and not isinstance(budget, Real):
            raise ParameterError(f"memory_budget must be a number of bytes, got {budget!r}.")
        needed = self._state_bytes(views)
        if budget is not None and needed > budget:
            raise RefusedError(
                f"{name} needs {needed:,} bytes of state for {len(views):,} rows, memory_budget is {budget:,}: "
                "fit on fewer rows or with fewer landmarks."
            )

    def _check_parameters(self) -> None:
        """Refuse parameters out of range before any work is done."""

    def _check_state(self) -> None:
        """Refuse learned values that do not fit each other; called on what a model file held."""

    def _state_bytes(self, views: Views) -> int:  # noqa: ARG002
        """Bytes of solver state that grow with the rows; 0 for methods that stream."""
        return 0

    def _entered(self, X: Any) -> Views:
        check_is_fitted(self)
        check_columns(self, X)
        if isinstance(X, Views) and len(X) == 0:
            raise ViewsError("there are no rows to encode: found views with 0 sample(s), at least 1 is required.")
        return Views(X).aligned(self.view_widths_, type(self).__name__)

    def decision_function(self, X: Any, *, engine: EngineLike = "threads", **options: Any) -> npt.NDArray[np.float64]:
        """Scores before the sign, (n, n_bits): how sure each bit is; for asymmetric search.

        Tensors in and a torch engine give tensors on its device; everything else gives NumPy arrays.
        """
        scores: npt.NDArray[np.float64] = self._walked(X, engine, options, lambda scores, _: scores)
        return scores

    def transform(
        self, X: Any, *, packed: bool = True, engine: EngineLike = "threads", **options: Any
    ) -> npt.NDArray[np.uint8]:
        """Codes, uint8: (n, ceil(n_bits / 8)) packed as np.packbits does, or (n, n_bits) of 0 and 1.

        `options` are those of the method; most have none. Tensors as in `decision_function`.
        """
        if not packed and _get_output_config("transform", self)["dense"] != "default":
            raise ParameterError("packed=False gives plain arrays: call set_output(transform='default') first.")

        def encode(scores: Rows, opened: Engine) -> Any:
            codes, n_missing = opened.map_rows(code_rows, scores, packed)
            if opened.get(n_missing).any():
                scores_to_bits(opened.get(scores))  # names the place in an error
            return codes

        codes: npt.NDArray[np.uint8] = self._walked(X, engine, options, encode)
        return codes

    def _walked(
        self, X: Any, engine: EngineLike, options: dict[str, Any], finish: Callable[[Rows, Engine], Rows]
    ) -> Any:
        """What `finish` makes of the scores of all rows, some blocks at a time: the scores need not fit in memory."""
        views = self._entered(X)
        for name in set(options) - set(self.call_options):
            known = ", ".join(("engine", "packed", *self.call_options))
            raise ParameterError(f"{name} is no option of {type(self).__name__} at this call: it knows {known}.")
        with open_engine(engine) as opened:
            scores: Callable[..., Rows] = self._scores  # of a method with options of its own
            return walk_parts(views, opened, lambda part: finish(scores(part, opened, **options), opened))

    def score(self, X: Any, y: Any) -> float:
        """Mean average precision of these rows as queries against the fitted rows, by Hamming distance."""
        codes = self.transform(X)
        labels, fitted_codes = getattr(self, "_fitted_labels", None), getattr(self, "_fitted_codes", None)
        if labels is None or fitted_codes is None:
            raise ParameterError(
                "score compares with the fitted rows: call fit(X, y) with labels first (a loaded model holds no rows)."
            )
        relevance = shared_labels(*same_labels(checked_labels(y, len(codes)), labels))
        return mean_average_precision(relevance, hamming_distances(codes, fitted_codes))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all; `quorumhash.load` reads it."""
        modelfile.write_model(path, *self._content())

    def fingerprint(self) -> str:
        """Hex SHA-256 of what decides the codes: two models with the same one give the same codes."""
        kind, _, state = self._content()
        return modelfile.fingerprint(kind, {}, {name: state[name] for name in state if name not in self.told})

    def _content(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        check_is_fitted(self)
        parameters = {name: to_plain(value) for name, value in self.get_params(deep=False).items()}
        state = {name: to_plain(getattr(self, name)) for name in self._state_names() if hasattr(self, name)}
        return type(self).__name__, parameters, state

    @classmethod
    def _state_names(cls) -> tuple[str, ...]:
        always = ("view_widths_", "n_features_in_", "n_bits_", "feature_names_in_", "view_columns_")
        return (*always, *cls.learned, *cls.told)

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in ("view_widths_", *self.learned))

    @property
    def _n_features_out(self) -> int:
        return n_bytes(self.n_bits_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # codes are uint8 whatever came in
        return tags


def walk_parts(views: Views, engine: Engine, function: Callable[[Views], Rows]) -> Any:
    """The rows that a function gives for these views, as many rows at a time as the engine likes; see Engine.answer."""
    engine.plan(views.shape[1])
    given = next(matrix for name in views if (matrix := views.matrix(name)) is not None)
    step = engine.rows_at_once or len(views)
    parts = [
        engine.answer(function(views if step >= len(views) else views[start : start + step]), given)
        for start in range(0, len(views), step)
    ]
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(parts)


def _seed(random_state: Any) -> int:
    """One whole number from an int, None or a generator, as scikit-learn reads random_state."""
    if isinstance(random_state, Integral) and 0 <= int(random_state) < 2**32:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**31 - 1))
    raise ParameterError(
        f"random_state must be a whole number from 0 to {2**32 - 1}, a NumPy generator or None, got {random_state!r}."
    )
