"""What every part of quorum is worth: one part left out or changed per row, on clean and on damaged views.

    python benchmarks/quality/quorum_ablation.py [--seeds 1] [--bits 64] [--datasets digits mfeat coco5]
        [--out benchmarks/results/quorum_ablation.json]

Data: digits (bundled); mfeat and COCO-5 (4,000 rows) too where QUORUMHASH_DATA holds them. Damage falls on training
rows, database and queries alike. groups: MAP over the whole ranking; neighbours: the share of the ten nearest items on
the undamaged views found among the first ten (COCO-5: the first hundred). Means over the seeds. What the file of --out
holds of other datasets stays in it, each with its own provenance.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from one_judge import OneJudge

from quorumhash import ConsensusHasher, QuorumHasher, Views, damage
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.codes import hamming_distances
from quorumhash.datasets import Dataset, load_dataset
from quorumhash.datasets.base import thinned
from quorumhash.engines.threads import threads_wanted
from quorumhash.evaluation import mean_average_precision, nearest_rows, neighbour_recall
from quorumhash.experiment import relevance_of, undamaged_neighbours
from quorumhash.judging import repaired_rows
from quorumhash.trust import TrustModel

DAMAGES = {"clean": None, "swap": 0.2, "noise": 0.3, "zero": 0.3, "drop_view": 0.3, "swap_source": 0.2}
ROWS = {"digits": None, "mfeat": None, "coco5": 4000}
FOUND = {"digits": 10, "mfeat": 10, "coco5": 100}


class Believing(OneJudge):
    """Without trust: what is present is believed; missing views are still repaired."""

    def _judge(self, sample: Any, present: Any, engine: Any) -> Any:
        judge, judged = super()._judge(sample, present, engine)
        believed = replace(judged, trust=np.where(present, 1.0, judged.trust))
        return replace(judge, trust=_believing(judge.trust)), believed


def _believing(model: TrustModel) -> TrustModel:
    views = tuple(replace(view, mass_points=view.mass_points[:0]) for view in model.views)
    flat = replace(model.densities[0], log_p=np.zeros_like(model.densities[0].log_p))
    certain = np.full(len(views), 30.0)
    return replace(model, views=views, pairs=(), kin=(), densities=(flat,) * len(views), log_odds=certain, known=None)


class Unknowing(QuorumHasher):
    """Rows of fit that hold the same view are not judged together, and their views are not known again."""

    def fit(self, X: Any, **options: Any) -> Any:
        with (
            patch("quorumhash.trustlearning.with_known", lambda model, *_: model),
            patch("quorumhash.trustlearning.without_copies", lambda judged, usable, *_: judged(usable)),
        ):
            return super().fit(X, **options)


class Unrepaired(OneJudge):
    """Without repair: what is not believed becomes the mean of its view, whatever the others say."""

    def _judge(self, sample: Any, present: Any, engine: Any) -> Any:
        judge, judged = super()._judge(sample, present, engine)
        owner = np.repeat(np.arange(len(judge.components)), np.diff(judge.repair.edges))
        alone = judge.repair.precision * (owner[:, None] == owner)
        return replace(judge, repair=replace(judge.repair, precision=alone)), judged


class Short(OneJudge):
    """Repaired items are left as short as predictions make them."""

    def fit(self, X: Any, **options: Any) -> Any:
        with _undrawn():
            return super().fit(X, **options)

    def transform(self, X: Any, **options: Any) -> Any:
        with _undrawn():
            return super().transform(X, **options)


def _undrawn() -> Any:
    return patch("quorumhash.repair._drawn_out", lambda *given: given[3])  # the rows as repaired


class Unrotated(OneJudge):
    """Bits are the signs of what they are cut from, not rotated."""

    def _rotation(self, placed: Any, engine: Any, seed: int) -> Any:  # noqa: ARG002
        return np.eye(placed.shape[1], self.n_bits)


class Plain(OneJudge):
    """Bits are cut from the dimensions themselves for neighbours too, as they are for groups."""

    def _nearness(self, placed: Any, smoothing: float, seed: int, engine: Any) -> Any:  # noqa: ARG002
        return None


class Whitened(OneJudge):
    """What bits are cut from is given the same variance everywhere first, as the paper's constraint on Y does."""

    def _rotation(self, placed: Any, engine: Any, seed: int) -> Any:
        spread = np.maximum(placed.std(axis=0), 1e-12)[:, None]
        return super()._rotation(placed / spread.T, engine, seed) / spread


class ConsensusOnRepaired:
    """The paper's method on the repaired coordinates of quorum, with or without its consensus step."""

    def __init__(self, objective: str, **common: Any) -> None:
        del objective  # it has only one
        options = {key: common.pop(key) for key in ("max_iter",) if key in common}
        self.judge = OneJudge(**common)
        self.paper = ConsensusHasher(**common, **options)

    def _repaired(self, views: Views) -> dict[str, Any]:
        judge = self.judge.judge_
        present = np.stack([views.present(name) for name in views], axis=1)
        rows = repaired_rows(judge, np.ones(present.shape[1]), present, *(np.asarray(views[name]) for name in views))
        edges = judge.repair.edges
        kept = [(m, name) for m, name in enumerate(views) if self.judge.view_weights_[name] > 0]
        return {name: rows[:, edges[m] : edges[m + 1]] for m, name in kept}

    def fit(self, views: Views) -> ConsensusOnRepaired:
        self.judge.fit(views)
        self.paper.fit(self._repaired(views))
        return self

    def transform(self, views: Views) -> Any:
        return self.paper.transform(self._repaired(views))


def methods(sources: dict[str, list[str]]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Row -> kind of hasher, and its options beside n_bits, random_state and objective."""
    rows = {
        "quorum": (OneJudge, {}),
        "no trust": (Believing, {}),
        "views not known again": (Unknowing, {}),
        "no repair": (Unrepaired, {}),
        "repaired items left short": (Short, {}),
        "no rotation": (Unrotated, {}),
        "no kernel before the bits": (Plain, {}),
        "whitened target": (Whitened, {}),
        "equal views": (OneJudge, {"view_weights": "equal"}),
        "half smoothed": (OneJudge, {"objective": 0.5}),
        "one smoothing step": (OneJudge, {"n_smoothing": 1}),
        "three smoothing steps": (OneJudge, {"n_smoothing": 3}),
        "paper on repaired views": (ConsensusOnRepaired, {}),
        "paper on repaired views, no consensus": (ConsensusOnRepaired, {"max_iter": 0}),
    }
    return rows | ({"told the sources": (OneJudge, {"sources": sources})} if sources else {})


def measure(dataset: Dataset, n_bits: int, seeds: range) -> list[dict[str, Any]]:
    relevance, neighbours = relevance_of(dataset), undamaged_neighbours(dataset)
    kinds = {kind: rate for kind, rate in DAMAGES.items() if kind != "swap_source" or dataset.sources}
    table: dict[str, dict[str, list[float]]] = {}
    for kind, rate in kinds.items():
        for seed in seeds:
            more = {"sources": dataset.sources} if kind == "swap_source" else {}
            views = dataset.views if rate is None else damage(dataset.views, kind, rate=rate, random_state=seed, **more)
            for name, (kind_of, options) in methods(dataset.sources).items():
                row = table.setdefault(name, {})
                for objective in ("groups", "neighbours"):
                    if objective == "neighbours" and "smooth" in name:  # there is none
                        continue
                    common = {"objective": objective, "n_bits": n_bits, "random_state": seed}
                    hasher = kind_of(**common | options).fit(views[dataset.train_rows])
                    codes = [hasher.transform(views[rows]) for rows in (dataset.query_rows, dataset.database_rows)]
                    distances = hamming_distances(*codes)
                    found = neighbour_recall(nearest_rows(distances, FOUND[dataset.name]), neighbours)
                    score = mean_average_precision(relevance, distances) if objective == "groups" else found
                    row.setdefault(f"{objective} {kind}", []).append(score)
            print(dataset.name, kind, seed, flush=True)
    return [{"method": name} | {key: float(np.mean(v)) for key, v in row.items()} for name, row in table.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--datasets", nargs="*", default=list(ROWS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    known = json.loads(given.out.read_text()) if given.out and given.out.is_file() else {"datasets": {}}
    measured = known.get("measured") or dict.fromkeys(known["datasets"], known.get("provenance"))
    tables = known["datasets"]
    for name in given.datasets:
        dataset = load_dataset(name)
        tables[name] = measure(thinned(dataset, ROWS[name]) if ROWS[name] else dataset, given.bits, range(given.seeds))
        measured[name] = provenance(threads_wanted())
    report = {
        "what": f"{given.bits} bits, {given.seeds} seed(s); groups: MAP; neighbours: R10@10, for coco5 R10@100",
        "command": "python benchmarks/quality/quorum_ablation.py "
        f"--seeds {given.seeds} --datasets {' '.join(tables)} --out {given.out}",
        "measured": measured,
        "datasets": tables,
    }
    if given.out:
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())
    else:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
