"""Quorum: codes that a quorum of the views agrees on; the default method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_count, check_shape, is_number, require
from quorumhash.classes import Told, some_labelled
from quorumhash.drift import STREAM_PARTS
from quorumhash.engines import Engine, Rows, open_engine
from quorumhash.evolution import EVOLUTION_PARTS, evolved_rows
from quorumhash.evolving import Evolving
from quorumhash.hashers.base import About, BaseHasher, EngineLike, walk_parts
from quorumhash.judging import (
    JUDGE_PARTS,
    Judge,
    Judged,
    check_judge,
    knowing_all,
    learn_one_model_judge,
    pair_distances,
    repaired_sample,
    repaired_views,
)
from quorumhash.kernelspace import put_presence
from quorumhash.landmarks import default_n_landmarks, refuse_rare_views, sample_positions
from quorumhash.nearness import Nearness, check_nearness, learn_nearness, near_rows
from quorumhash.nested import learn_rotation
from quorumhash.overlap import neighbourhood_lift
from quorumhash.quorum import (
    ENCODER_PARTS,
    Dial,
    Encoder,
    check_encoder,
    embed_rows,
    learn_encoder,
    placed_rows,
)
from quorumhash.repair import BELIEVED, linked_views
from quorumhash.scaling import put_views
from quorumhash.supervision import labelled_pairs, memberships, supervised_weights, unlike_pairs
from quorumhash.teachers import Items, Labels, Teachers, many_items
from quorumhash.viewoptions import dial_of, given_weights, source_numbers
from quorumhash.views import Views
from quorumhash.viewworth import overlap_weights
from quorumhash.weighting import learn_weighting, worth_of_views

FloatArray = npt.NDArray[np.float64]

Ending = tuple[Nearness | None, Any]  # what makes scores of dimensions: nearness, rotation (p, n_bits)

MOST_LANDMARKS = 3_000  # over all graphs: their ties are one matrix
FEWEST_DIMENSIONS = 256  # of embed, where the data have them


class QuorumHasher(Evolving, BaseHasher):
    """Binary codes that stay good when values are noisy, when a view of an item is wrong, and when it is missing.

    Every view of every item is judged by the item's other views, by its density and by how many items share it. What is
    not believed is replaced by what the believed views predict. The result is turned into a few dimensions, in order of
    variance, and those into bits. New items pass through the same steps.

    Parameters
    ----------
    n_bits : int
        Bits per code. Codes are nested: the first 64 bits of a longer code are the 64-bit code.
    objective : {"neighbours", "groups"} or float
        What near codes mean. "neighbours" (0): the items that were nearest before any damage. "groups" (1): items of
        the same kind first, by smoothing along landmark graphs, at the price of fewer distinct codes. Or between.
    view_weights : {"auto", "equal"} or dict of str to float
        Worth of whole views. "auto": the views whose neighbourhoods agree, or what labels or pairs say if there are
        any; a view may get 0 and then serves as a witness only. A dict counts views it does not name as 1.
    sources : dict of str to list of str, optional
        Views that come from one source (one photo, one text) and err together: they share one vote.
        Views not named are sources of their own.
    n_components : int, optional
        Coordinates kept per view, also the rank of the completion of missing values.
    n_landmarks : int, optional
        Landmarks per graph; chosen from the number of rows where not given.
    n_neighbors : int
        Landmarks each item is tied to.
    n_smoothing : int
        Smoothing steps along the graphs.
    n_steps : int
        Rotation steps.
    random_state : int, generator or None
        Seed of sample, landmarks and rotation.

    Attributes
    ----------
    view_weights_ : dict of str to float
        Worth of whole views, as chosen or given.
    suggested_sources_ : dict of str to list of str
        Views so much alike, given all others, that they may come from one source; a suggestion, not used.
    judge_, encoder_, nearness_, rotation_
        What was learned; see judging.py, quorum.py, nearness.py and nested.py.

    Examples
    --------
    >>> import quorumhash as qh
    >>> digits = qh.load_dataset("digits")
    >>> damaged = qh.damage(digits.views, "swap", rate=0.2)
    >>> hasher = QuorumHasher(n_bits=32).fit(damaged[digits.train_rows])
    >>> hasher.transform(damaged[digits.query_rows]).shape
    (297, 4)
    >>> hasher.reliability(damaged[digits.query_rows]).shape
    (297, 4)
    """

    about = About(
        year=None,
        fit_cost="sample once; n (d q + q^2), with smoothing n L q, n = N up to 100,000",
        encode_cost="d q, with smoothing L q",
        labels="optional",
        rotation="always",
    )
    learned = ("view_weights_", "judge_", "encoder_", "nearness_", "rotation_")
    told = ("suggested_sources_", "evolution_", "stream_")
    parts = (*JUDGE_PARTS, *ENCODER_PARTS, Nearness, *EVOLUTION_PARTS, *STREAM_PARTS)
    uses_pairs = True
    call_options = ("view_weights",)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        objective: Any = "neighbours",
        view_weights: Any = "auto",
        sources: Any = None,
        n_components: int | None = None,
        n_landmarks: int | None = None,
        n_neighbors: int = 3,
        n_smoothing: int = 2,
        n_steps: int = 50,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.objective = objective
        self.view_weights = view_weights
        self.sources = sources
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.n_smoothing = n_smoothing
        self.n_steps = n_steps
        self.random_state = random_state

    def _check_parameters(self) -> None:
        dial_of(self.objective)
        for name, least in (("n_neighbors", 1), ("n_smoothing", 1), ("n_steps", 0)):
            check_count(name, getattr(self, name), least, self)
        for name in ("n_components", "n_landmarks"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 1, self)

    def _check_state(self) -> None:
        check_judge(self.judge_, list(self.view_widths_.values()))
        check_encoder(self.encoder_, self.judge_)
        n_columns = check_nearness(self.nearness_, self.encoder_.linear.shape[1])
        check_shape(self.rotation_, (n_columns, self.n_bits_))
        require(list(self.view_weights_) == list(self.view_widths_))
        require(all(map(is_number, self.view_weights_.values())))
        self._check_evolution()

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self._forget_evolution()
        given = given_weights(self.view_weights, views.names)
        positions = sample_positions(len(views), engine, seed)
        blocks, present = put_views(views, engine), put_presence(views, engine)
        here = engine.take_rows(present, positions)
        refuse_rare_views(views, here)
        near = engine.at_hand
        sample = {n: engine.sample(b, positions) for n, b in zip(views, blocks, strict=True) if b is not None}
        self.judge_, judged = self._judge(sample, here, near)
        many = many_items(present, blocks, views.shape[1], engine, seed)
        if many is not None and self.judge_.trust.known is not None:
            self.judge_ = knowing_all(self.judge_, *many, engine)
        linked = [[views.names[m] for m in group] for group in linked_views(self.judge_.repair)]
        self.suggested_sources_ = {"+".join(group): group for group in linked}
        classes = None if self._training_labels is None else memberships(self._training_labels)
        if classes is not None and not classes.any():
            classes = None
        believed = here & (judged.trust >= BELIEVED)
        if given is None:
            parts = dict(zip(views, judged.coordinates, strict=True))
            given = overlap_weights(neighbourhood_lift(parts, believed, seed=seed))
            given = self._supervised(views, given, classes, seed)
        self.view_weights_ = dict(zip(views, map(float, given), strict=True))
        weighting = learn_weighting(self.judge_, given)
        dial = self._dial(len(views), len(weighting.views) + 1)
        worth = worth_of_views(self.judge_, weighting)
        repaired = repaired_sample(self.judge_, judged, here, near, worth)
        labels = None
        if classes is not None and dial.smoothing > 0:
            shown = some_labelled(classes, seed)
            told = Told(repaired_views(self.judge_, views[shown], worth), classes[shown])
            labels = Labels(Items(self.judge_, present, blocks), engine.put(classes), told)
        teachers = Teachers(repaired, believed[:, given > 0], many and Items(self.judge_, *many), labels)
        self.encoder_ = learn_encoder(weighting, teachers, dial, engine, seed, max(self.n_bits, FEWEST_DIMENSIONS))
        placed = near.held(near.map_rows(placed_rows, self.encoder_, near.put(repaired)))
        self.nearness_ = self._nearness(placed, dial.smoothing, seed, near)
        cut = near.held(near.map_rows(near_rows, self.nearness_, near.put(placed)))
        self.rotation_ = self._rotation(cut, near, seed)

    def _judge(self, sample: dict[str, Any], present: Any, engine: Engine) -> tuple[Judge, Judged]:
        sources = source_numbers(self.sources, tuple(sample))
        return learn_one_model_judge(sample, present, sources, self.n_components, engine)

    def _nearness(self, placed: Any, smoothing: float, seed: int, engine: Engine) -> Nearness | None:
        return learn_nearness(placed, smoothing, seed, engine)

    def _rotation(self, placed: Any, engine: Engine, seed: int) -> FloatArray:
        return learn_rotation(placed, self.n_bits, engine, seed, self.n_steps)

    def _dial(self, n_rows: int, n_graphs: int) -> Dial:
        chosen = self.n_landmarks or min(default_n_landmarks(n_rows), MOST_LANDMARKS // n_graphs)
        return Dial(dial_of(self.objective), self.n_smoothing, chosen, self.n_neighbors)

    def _supervised(self, views: Views, weights: FloatArray, classes: FloatArray | None, seed: int) -> FloatArray:
        """Weights improved by labels or pairs, if there are any."""
        if self._training_pairs is not None:
            alike, unlike = self._training_pairs, unlike_pairs(self._training_pairs, seed)
        elif classes is not None:
            alike, unlike = labelled_pairs(classes, seed)
        else:
            return weights
        pairs = np.concatenate([alike, unlike])
        return supervised_weights(pair_distances(self.judge_, views, pairs), pairs, len(alike), weights)

    def _scores(self, views: Views, engine: Engine, **options: Any) -> Rows:
        scores: Rows = self._walk(views, engine, (self.nearness_, self.rotation_), **options)
        return scores

    def _walk(
        self, views: Views, engine: Engine, ending: Ending | None, view_weights: Mapping[str, float] | None = None
    ) -> Any:
        """Scores of all rows, in one pass; without an ending their dimensions."""
        present, rows = put_presence(views, engine), put_views(views, engine)
        limits = self._limits(view_weights)
        if not self._has_added(views):  # the very path of fit: codes stay to the bit
            n_fitted = len(self.view_widths_)
            present = engine.put(np.stack([views.present(name) for name in views.names[:n_fitted]], axis=1))
            limits, rows = limits[:n_fitted], rows[:n_fitted]
            return engine.map_rows(_fitted_rows, ending, self.judge_, self.encoder_, limits, present, *rows)
        judges = self.judge_, self.evolution_.judge
        return engine.map_rows(_evolved_rows, ending, judges, self.encoder_, limits, present, *rows)

    def embed(
        self, X: Any, *, view_weights: Mapping[str, float] | None = None, engine: EngineLike = "threads"
    ) -> npt.NDArray[np.float32]:
        """Dense vectors (n, n_dimensions), repaired and weighted, dimensions in order of variance.

        Codes are cut from them (nearness.py, nested.py). For any vector database, or to re-rank what codes found.
        `view_weights` limits, in this call, how much each view may say of itself (0: as if it were not given).
        """
        views = self._entered(X)
        with open_engine(engine) as opened:
            vectors: npt.NDArray[np.float32] = walk_parts(
                views, opened, lambda part: self._walk(part, opened, None, view_weights)
            )
        return vectors

    def reliability(self, X: Any, *, engine: EngineLike = "threads") -> FloatArray:
        """How far each view of each row can be believed, (n, n_views) in [0, 1]; NaN where a view is absent.

        A p-value: the share of undamaged rows of that view that look at least as suspicious. `reliability < 0.01` marks
        damage with 1 % false alarms, in rows that come from the same stream as those of `fit` (where those were
        damaged more, alarms are fewer). The worth of whole views is left out, so values compare across views.
        """
        views = self._entered(X)
        with open_engine(engine) as opened:
            trust = walk_parts(views, opened, lambda part: self._judged(part, opened, *self._reliability_of(views)))
        return self._of_active(trust)

    def _judged(self, views: Views, engine: Engine, function: Any, *models: Any) -> Any:
        return engine.map_rows(function, *models, put_presence(views, engine), *put_views(views, engine))


def _fitted_rows(ending: Ending | None, judge: Judge, encoder: Encoder, limits: Any, present: Any, *blocks: Any) -> Any:
    return _ended(ending, embed_rows(judge, encoder, limits, present, *blocks))


def _evolved_rows(
    ending: Ending | None, judges: tuple[Judge, Judge], encoder: Encoder, limits: Any, present: Any, *blocks: Any
) -> Any:
    return _ended(ending, placed_rows(encoder, evolved_rows(*judges, encoder.weighting, limits, present, *blocks)))


def _ended(ending: Ending | None, dimensions: Any) -> Any:
    """Scores (n, n_bits) of one block of dimensions; or these themselves, float32."""
    if ending is not None:
        nearness, rotation = ending
        return near_rows(nearness, dimensions) @ rotation
    xp = array_namespace(dimensions)
    return xp.astype(dimensions, xp.float32)
