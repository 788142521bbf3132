"""RMVH: a low-rank kernel that all views agree on, and its hash functions; the source paper, its errors mended."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from quorumhash.checks import check_count, is_number
from quorumhash.consensus import Weights, mean_kernel, solve_consensus, state_bytes_per_row
from quorumhash.encoding import Encoder, check_encoder, encode_rows
from quorumhash.engines import Engine, Rows
from quorumhash.errors import ParameterError, RankWarning
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import ViewKernel, kernels_and_graphs, landmark_matrix, learn_kernel_space
from quorumhash.landmarks import LANDMARK_RULES, default_n_landmarks
from quorumhash.progress import sweep_bar
from quorumhash.proximal import rotate_to_bits
from quorumhash.querykernel import QUERY_KERNELS
from quorumhash.scaling import Scaling, put_views
from quorumhash.similarity import BANDWIDTH_RULES
from quorumhash.views import Views

SETTINGS: dict[str, dict[str, Any]] = {
    # chosen on digits with swapped and noisy pairs (docs/method.md); alpha_rel sets the rank, lambda against beta = 1
    # how weakly the codes pull on the consensus
    "tuned": {"alpha_rel": 0.005, "lambda_": 100.0, "gamma": 30.0, "beta": 1.0, "delta_rel": 1.0,
              "coupling": True, "rotation": True},
    # as printed in the paper, section 6.1; the K-step it prints is uncoupled and it takes signs without a rotation
    "published": {"alpha": 0.1, "lambda_": 1e-3, "gamma": 1e-4, "beta": 1.0, "delta": 1e-6,
                  "coupling": False, "rotation": False},
}  # fmt: skip
QUERY_KERNEL_OF = {"tuned": "robust", "published": "mean"}  # robust: benchmarks/results/tuning.json
OUT_OF_SAMPLE = ("kernel", "prototypes")


class ConsensusHasher(BaseHasher):
    """Robust multi-view hashing: a low-rank kernel that all views agree on, and hash functions learned with it.

    The joint objective of Wu and Wang (2016) with its steps corrected; every departure is in docs/method.md. Views are
    centred and scaled, compared with R shared landmarks by an RBF kernel, and each kernel is split into a
    consensus all views share and a row-sparse error of its own:

        min  sum_m [ 2 tr(Y_m^T L_m Y_m) + gamma |Y - Y_m|^2 ] + alpha |Khat|_* + lambda sum_m |K_m - Khat|_{2,1}
             + beta ( |Khat W + 1 b - Y|^2 + delta |W|^2 ),   Khat >= 0, Y^T Y = N I, Y^T 1 = 0

    K_m (N, R) kernel of view m; Khat (N, R) consensus; L_m Laplacian of its landmark graph; Y (N, P) targets;
    W (R, P), b (P,) hash functions.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    setting : {"tuned", "published"}
        Where a weight below is None it comes from here. "published" are the paper's printed values: at them the
        consensus collapses to a few dimensions, which a RankWarning says.
    alpha_rel, alpha : float, optional
        Weight of the low rank, relative (alpha / (lambda M sqrt(N)), the ratio that bounds the rank) or absolute.
    lambda_, gamma, beta : float, optional
        Weights of the errors, of the graphs' agreement and of the fit of the hash functions.
    delta_rel, delta : float, optional
        Ridge of the hash functions, relative to the mean eigenvalue of the mean kernel's Gram matrix, or absolute.
    error_norm : {"l21", "l1"}
        Whether whole rows of a view are wrong, or single kernel values.
    coupling : bool, optional
        Whether the codes pull on the consensus (joint learning) or follow it (two stages, as printed).
    rotation : bool, optional
        Whether to rotate the targets towards bits (ITQ); it leaves the objective as it is.
    max_iter, tol : int, float
        Sweeps at most, and the residual and relative change of the objective that end them. Forty sweeps are a budget
        that most fits use up (`history_` shows where they stood). max_iter=0 leaves the consensus step out: the mean
        kernel serves.
    n_landmarks, n_kernel_landmarks : int, optional
        Landmarks of each view's graph (L) and of the shared kernel (R); chosen from the number of rows where not
        given (`default_n_landmarks`; R at least 2 n_bits).
    n_neighbors : int
        Nearest graph landmarks of each item (k).
    landmarks : {"kmeans", "rows"}
        Shared landmarks: centres over the joined views, or training rows.
    bandwidth : {"seventh", "median"}
        Kernel bandwidth per view: mean distance to the 7th landmark, or the median rule.
    query_kernel : {"mean", "project", "robust"}, optional
        How the kernels of an item's views become one row when it is encoded by the hash functions. Where not given:
        "robust", with setting="published" "mean".
    out_of_sample : {"kernel", "prototypes"}
        Encode by the hash functions, or by the paper's out-of-sample extension: the weighted mean of the scores of
        the n_neighbors nearest shared landmarks.
    random_state : int, generator or None
        Seed of sample, landmarks and rotation.
    verbose : bool
        Show a progress bar with objective, residual, rank and time.

    Attributes
    ----------
    history_ : list of dict
        Objective, residual, rank and seconds of every sweep.
    rank_ : int
        Dimensions of the consensus.
    n_iter_ : int
        Sweeps made.

    References
    ----------
    L. Wu and Y. Wang, "Robust Hashing for Multi-View Data: Jointly Learning Low-Rank Kernelized Similarity
    Consensus and Hash Functions", 2016.

    Examples
    --------
    >>> import quorumhash
    >>> digits = quorumhash.load_dataset("digits")
    >>> train = digits.views[digits.train_rows[:300]]
    >>> ConsensusHasher(n_bits=8, max_iter=5).fit(train).transform(train).shape
    (300, 1)
    """

    about = About(year=2016, fit_cost="N R (R + M) a round", encode_cost="d R + R P", rotation="rotation=True or False")
    learned = ("encoder_",)
    told = ("rank_", "n_iter_", "history_")
    parts = (Scaling, ViewKernel, Encoder)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        setting: str = "tuned",
        alpha_rel: float | None = None,
        alpha: float | None = None,
        lambda_: float | None = None,
        gamma: float | None = None,
        beta: float | None = None,
        delta_rel: float | None = None,
        delta: float | None = None,
        error_norm: str = "l21",
        coupling: bool | None = None,
        rotation: bool | None = None,
        max_iter: int = 40,
        tol: float = 1e-5,
        n_landmarks: int | None = None,
        n_kernel_landmarks: int | None = None,
        n_neighbors: int = 3,
        landmarks: str = "kmeans",
        bandwidth: str = "seventh",
        query_kernel: str | None = None,
        out_of_sample: str = "kernel",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.n_bits = n_bits
        self.setting = setting
        self.alpha_rel = alpha_rel
        self.alpha = alpha
        self.lambda_ = lambda_
        self.gamma = gamma
        self.beta = beta
        self.delta_rel = delta_rel
        self.delta = delta
        self.error_norm = error_norm
        self.coupling = coupling
        self.rotation = rotation
        self.max_iter = max_iter
        self.tol = tol
        self.n_landmarks = n_landmarks
        self.n_kernel_landmarks = n_kernel_landmarks
        self.n_neighbors = n_neighbors
        self.landmarks = landmarks
        self.bandwidth = bandwidth
        self.query_kernel = query_kernel
        self.out_of_sample = out_of_sample
        self.random_state = random_state
        self.verbose = verbose

    def handles(self, views: Views) -> tuple[bool, str]:
        """There are no more independent targets than rows."""
        return self.n_bits < len(views), (
            f"n_bits must be below the number of rows ({len(views)}), got {self.n_bits}; "
            "use fewer bits, or lsh, which has no such limit."
        )

    def _sizes(self, n_rows: int) -> tuple[int, int]:
        """(R, L): shared kernel landmarks, landmarks of each graph."""
        chosen = default_n_landmarks(n_rows)
        wanted = self.n_kernel_landmarks or max(chosen, 2 * self.n_bits)
        return min(wanted, n_rows), min(self.n_landmarks or chosen, n_rows)

    def _state_bytes(self, views: Views) -> int:
        n_kernel_landmarks, _ = self._sizes(len(views))
        return len(views) * state_bytes_per_row(n_kernel_landmarks, len(views.names), self.n_bits)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        setting = self._chosen_setting()
        n_kernel, n_graph = self._sizes(len(views))
        space = learn_kernel_space(
            views, engine, seed, n_kernel_landmarks=n_kernel, n_graph_landmarks=n_graph,
            n_neighbors=self.n_neighbors, landmarks=self.landmarks, bandwidth=self.bandwidth,
        )  # fmt: skip
        kernels, graphs = kernels_and_graphs(views, space, engine)
        weights = _weights(setting, self.error_norm, kernels, engine)
        with sweep_bar(self.verbose, self.max_iter, "rmvh") as progress:
            solution = solve_consensus(
                kernels, graphs, self.n_bits, weights, engine, max_iter=self.max_iter, tol=self.tol, progress=progress
            )
        self.history_, self.rank_, self.n_iter_ = solution.history, solution.rank, len(solution.history)
        if self.rank_ < self.n_bits:
            warnings.warn(
                f"the consensus has rank {self.rank_}, fewer than the {self.n_bits} bits: the surplus bits follow "
                "residuals; lower alpha (or alpha_rel), or ask for fewer bits.", RankWarning, stacklevel=3,
            )  # fmt: skip
        projection, bias = solution.projection, solution.bias
        if setting["rotation"]:
            scores = engine.map_rows(_linear, solution.kernel, projection, bias)
            rotation = rotate_to_bits(scores, self.n_bits, engine, seed)
            projection, bias = projection @ rotation, bias @ rotation
        view_kernels = tuple(space.kernels.values())
        self.encoder_ = Encoder(
            view_kernels, projection, bias, solution.basis, self.query_kernel or QUERY_KERNEL_OF[self.setting],
            mean_kernel(*landmark_matrix(view_kernels)) @ projection + bias,
            space.joined_bandwidth, self.n_neighbors if self.out_of_sample == "prototypes" else 0,
        )  # fmt: skip

    def _scores(self, views: Views, engine: Engine) -> Rows:
        present = engine.put(np.stack([views.present(name) for name in views], axis=1))
        scores: Rows = engine.map_rows(encode_rows, self.encoder_, present, *put_views(views, engine))
        return scores

    def _check_parameters(self) -> None:
        for name, value, known in (
            ("setting", self.setting, tuple(SETTINGS)),
            ("error_norm", self.error_norm, ("l21", "l1")),
            ("query_kernel", self.query_kernel or QUERY_KERNELS[0], QUERY_KERNELS),
            ("out_of_sample", self.out_of_sample, OUT_OF_SAMPLE),
            ("landmarks", self.landmarks, LANDMARK_RULES),
            ("bandwidth", self.bandwidth, BANDWIDTH_RULES),
        ):
            if value not in known:
                raise ParameterError(f"{name} of ConsensusHasher must be one of {', '.join(known)}, got {value!r}.")
        for name, smallest in (("max_iter", 0), ("n_neighbors", 1), ("n_landmarks", 1), ("n_kernel_landmarks", 1)):
            if getattr(self, name) is not None or name in ("max_iter", "n_neighbors"):
                check_count(name, getattr(self, name), smallest, self)
        for one, other in (("alpha", "alpha_rel"), ("delta", "delta_rel")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ParameterError(f"{one} and {other} say the same thing twice: give one of them.")
        for name, value in self._chosen_setting().items():
            if name in ("coupling", "rotation") and not isinstance(value, bool):
                raise ParameterError(f"{name} of ConsensusHasher must be True or False, got {value!r}.")
            if name not in ("coupling", "rotation") and not (is_number(value) and 0 < value < np.inf):
                raise ParameterError(f"{name} of ConsensusHasher must be a finite number above 0, got {value!r}.")
        if not (is_number(self.tol) and self.tol >= 0):
            raise ParameterError(f"tol of ConsensusHasher must be a number from 0 up, got {self.tol!r}.")

    def _check_state(self) -> None:
        check_encoder(self.encoder_, tuple(self.view_widths_.values()), self.n_bits_)

    def _chosen_setting(self) -> dict[str, Any]:
        """The weights of the setting, with those given in their place."""
        names = ("alpha_rel", "alpha", "lambda_", "gamma", "beta", "delta_rel", "delta", "coupling", "rotation")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        twin = {"alpha": "alpha_rel", "alpha_rel": "alpha", "delta": "delta_rel", "delta_rel": "delta"}
        chosen = {name: value for name, value in SETTINGS[self.setting].items() if twin.get(name) not in given}
        return chosen | given


def _weights(setting: dict[str, Any], error_norm: str, kernels: list[Rows], engine: Engine) -> Weights:
    """Absolute weights from relative ones: alpha = alpha_rel lambda M sqrt(N), delta = delta_rel tr(K_c^T K_c) / R."""
    n_rows = kernels[0].n_rows
    alpha, delta = setting.get("alpha"), setting.get("delta")
    if alpha is None:
        alpha = setting["alpha_rel"] * setting["lambda_"] * len(kernels) * np.sqrt(n_rows)
    if delta is None:
        squares, sums = engine.sum_rows(_moments, *kernels)
        delta = setting["delta_rel"] * (squares - (sums @ sums) / n_rows) / len(sums)
    return Weights(
        float(alpha),
        setting["lambda_"],
        setting["gamma"],
        setting["beta"],
        float(delta),
        error_norm,
        setting["coupling"],
    )


def _moments(*kernels: Any) -> Any:
    mean = mean_kernel(*kernels)
    return (mean**2).sum(), mean.sum(0)


def _linear(block: Any, projection: Any, bias: Any) -> Any:
    return block @ projection + bias
