"""A deep rival: a denoising multi-view autoencoder with binary codes, tuned on validation rows, then run on the panel.

    export QUORUMHASH_DATA=...        the folder that holds mfeat.npz and coco5.npz
    python benchmarks/quality/deep_rival.py --out benchmarks/results/deep_rival.json      some 17 minutes on one GPU

Every view has an encoder; their mean over the views an item has becomes a code, from which every view is rebuilt.
While it learns, views are dropped, taken from other items, and made noisy: the code has to be that of the views as they
came. Bits come from a tanh that grows steeper or from signs whose gradient is passed straight through. Eight settings,
as for every method (benchmarks/quality/tuning.toml): the mean of MAP and R10@10 on validation queries of digits and
mfeat, clean and swap, decides. Then the panel's cells, measured as every run of the panel; on COCO-5 also with views
weighted as quorum weighs them, as every rival of the panel has them.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.bench.settings import AUTO, EQUAL, Setting
from quorumhash.bench.weighting import automatic_weights
from quorumhash.codes import pack_bits
from quorumhash.datasets import Dataset, load_dataset, thinned, validation_cut
from quorumhash.engines import open_engine
from quorumhash.experiment import (
    Outcome,
    damaged_data,
    measure_outcome,
    relevance_of,
    undamaged_neighbours,
)
from quorumhash.scaling import learn_scalings, separate_rows
from quorumhash.views import Views

DAMAGES = {"clean": 0.0, "swap": 0.2, "noise": 0.3, "zero": 0.3}  # rates of the panel
TUNED_ON = (("digits", "mfeat"), ("clean", "swap"))
ROWS = {"coco5": 4000}
WEIGHTED = ("coco5",)  # on the other two automatic weights are equal
METRICS = ("map", "recall_10", "recall_100")
CELLS = {EQUAL: "cells", AUTO: "weighted_cells"}  # where the report keeps what was run on equal and weighted views
LARGEST = 10.0  # scaled values are cut off here: noise must not swamp the squares
STEEPEST = 8.0  # slope of the tanh at the end


@dataclass(frozen=True)
class Plan:
    """How to learn; `contrast` weighs agreement of two spoiled copies, `is_robust` counts errors by length."""

    hidden: int = 512
    learning_rate: float = 1e-3
    spoiled: float = 0.3  # share of (item, view) pairs dropped, and share taken from other items, in all
    contrast: float = 0.0
    is_straight: bool = False
    is_robust: bool = True
    decorrelation: float = 0.1
    batch: int = 256


PLANS = (
    Plan(),
    Plan(is_robust=False),
    Plan(is_straight=True),
    Plan(contrast=0.1),
    Plan(contrast=1.0),
    Plan(spoiled=0.5, contrast=0.1),
    Plan(spoiled=0.15),
    Plan(hidden=1024, learning_rate=3e-4),
)


class Network(nn.Module):
    """Views (n, d_m) and which of them are there (n, M) -> scores (n, P); codes (n, P) -> views."""

    def __init__(self, widths: list[int], n_bits: int, hidden: int) -> None:
        super().__init__()

        def two_layers(n_in: int, n_out: int) -> nn.Sequential:
            return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, n_out))

        self.encoders = nn.ModuleList(two_layers(width, hidden) for width in widths)
        self.to_code = nn.Sequential(nn.ReLU(), nn.Linear(hidden, n_bits), nn.BatchNorm1d(n_bits, affine=False))
        self.decoders = nn.ModuleList(two_layers(n_bits, width) for width in widths)

    def forward(self, views: list[torch.Tensor], present: torch.Tensor) -> torch.Tensor:
        hidden = torch.stack([encode(view) for encode, view in zip(self.encoders, views, strict=True)], dim=1)
        weights = present / present.sum(dim=1, keepdim=True).clamp(min=1)
        return self.to_code((hidden * weights[:, :, None]).sum(dim=1))

    def rebuild(self, code: torch.Tensor) -> list[torch.Tensor]:
        return [decode(code) for decode in self.decoders]


def activated(scores: torch.Tensor, progress: float, is_straight: bool) -> torch.Tensor:
    """Nearly binary codes with a gradient."""
    if is_straight:
        soft = torch.tanh(scores)
        return soft + (torch.where(scores >= 0, 1.0, -1.0) - soft).detach()
    return torch.tanh(scores * (1.0 + (STEEPEST - 1.0) * progress))


def spoiled(
    views: list[torch.Tensor], present: torch.Tensor, share: float, draw: torch.Generator
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Half the share of pairs dropped, half taken from the item before, a third of the rows noisy; one view stays."""
    fate = torch.rand(present.shape, generator=draw, device=present.device)
    is_dropped = (fate < share / 2) & (present > 0)
    is_dropped &= (is_dropped.sum(dim=1) < present.sum(dim=1))[:, None]
    is_swapped = (fate >= share / 2) & (fate < share)
    is_noisy = torch.rand(len(present), 1, generator=draw, device=present.device) < 1 / 3
    changed = []
    for m, view in enumerate(views):
        noise = torch.randn(view.shape, generator=draw, device=view.device) * is_noisy * 0.5 / view.shape[1] ** 0.5
        changed.append(torch.where(is_swapped[:, m, None], view.roll(1, dims=0), view) + noise)
    return changed, present * ~is_dropped


def reconstruction(
    rebuilt: list[torch.Tensor], views: list[torch.Tensor], present: torch.Tensor, is_robust: bool
) -> torch.Tensor:
    """Mean error over the pairs that are there; views have mean squared norm 1."""
    squares = torch.stack([((a - b) ** 2).sum(dim=1) for a, b in zip(rebuilt, views, strict=True)], dim=1)
    errors = torch.sqrt(squares + 1e-4) if is_robust else squares
    return (errors * present).sum() / present.sum()


def disagreement(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Of two copies of every item's code, against the codes of the other items (InfoNCE)."""
    similarity = nn.functional.normalize(one, dim=1) @ nn.functional.normalize(other, dim=1).T / 0.3
    return nn.functional.cross_entropy(similarity, torch.arange(len(one), device=one.device))


def dependence(code: torch.Tensor) -> torch.Tensor:
    """How far bits are unbalanced or correlated."""
    correlation = code.T @ code / len(code) - torch.eye(code.shape[1], device=code.device)
    return (correlation**2).mean() + (code.mean(dim=0) ** 2).mean()


def learn(plan: Plan, rows: list[torch.Tensor], present: torch.Tensor, n_bits: int, n_steps: int, seed: int) -> Network:
    device = present.device
    torch.manual_seed(seed)
    draw = torch.Generator(device=device).manual_seed(seed)
    network = Network([view.shape[1] for view in rows], n_bits, plan.hidden).to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=plan.learning_rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_steps)
    for step in range(n_steps):
        chosen = torch.randint(len(present), (min(plan.batch, len(present)),), generator=draw, device=device)
        views, there = [view[chosen] for view in rows], present[chosen]
        copies = [spoiled(views, there, plan.spoiled, draw) for _ in range(2 if plan.contrast else 1)]
        codes = [activated(network(*copy), step / n_steps, plan.is_straight) for copy in copies]
        loss = sum(reconstruction(network.rebuild(code), views, there, plan.is_robust) for code in codes) / len(codes)
        loss = loss + plan.decorrelation * dependence(codes[0])
        if plan.contrast:
            loss = loss + plan.contrast * disagreement(*codes)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        schedule.step()
    return network.eval()


def tensors(
    views: Views, train_rows: Any, device: str, weights: dict[str, float] | None = None
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """All rows of every view, centred and scaled by the training rows, missing values 0; which views items have.

    Times their weights, of mean 1 over the views that have any: what a view is fed with and what its errors count.
    """
    weights = weights or dict.fromkeys(views.names, 1.0)
    chosen = [name for name in views if weights[name] > 0]
    mean = float(np.mean([weights[name] for name in chosen]))
    with open_engine("threads") as engine:
        scalings = learn_scalings(views[train_rows], engine)
    parts = separate_rows(tuple(scalings[name] for name in chosen), *(np.asarray(views[name]) for name in chosen))
    present = np.stack([views.present(name) for name in chosen], axis=1)
    moved = [
        torch.tensor(part.clip(-LARGEST, LARGEST) * (weights[name] / mean), dtype=torch.float32, device=device)
        for name, part in zip(chosen, parts, strict=True)
    ]
    return moved, torch.tensor(present, dtype=torch.float32, device=device)


def run(plan: Plan, dataset: Dataset, setting: Setting, n_steps: int, device: str) -> dict[str, float]:
    """Damage, learn, encode, measure: one cell for one seed."""
    views, weights = damaged_data(dataset, setting).views, None
    if setting.weights == AUTO:
        weights = automatic_weights(views[dataset.train_rows], setting.random_state)
    rows, present = tensors(views, dataset.train_rows, device, weights)
    train_rows = torch.tensor(dataset.train_rows, device=device)
    started = time.perf_counter()
    training = [view[train_rows] for view in rows], present[train_rows]
    network = learn(plan, *training, setting.n_bits, n_steps, setting.random_state)
    seconds = time.perf_counter() - started
    with torch.no_grad():
        codes = pack_bits((network(rows, present) >= 0).cpu().numpy())
    outcome = Outcome(setting, codes[dataset.database_rows], codes[dataset.query_rows], fit_seconds=seconds)
    return measure_outcome(outcome, relevance_of(dataset), undamaged_neighbours(dataset))


def setting_of(dataset: Dataset, damage: str, n_bits: int, seed: int, weights: str = EQUAL) -> Setting:
    return Setting("deep", n_bits, damage, DAMAGES[damage], {}, seed, dataset.name, weights=weights)


def tune(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Every plan with its score on validation queries."""
    tried = []
    names, damages = TUNED_ON
    cuts = [validation_cut(load_dataset(name)) for name in names if name in given.datasets]
    if given.max_rows:
        cuts = [thinned(cut, given.max_rows) for cut in cuts]
    for plan in PLANS[: given.plans]:
        figures = {}
        for cut in cuts:
            for damage in damages:
                measures = run(plan, cut, setting_of(cut, damage, given.bits, 0), given.tuning_steps, given.device)
                figures |= {f"{metric} {cut.name} {damage}": round(measures[metric], 4) for metric in METRICS[:2]}
        score = round(float(np.mean(list(figures.values()))), 4)
        tried.append({"plan": asdict(plan), "score": score, "figures": figures})
        print(f"{score:.4f}  {plan}", flush=True)
    return tried


def cells(plan: Plan, given: argparse.Namespace, report: dict[str, Any]) -> None:
    """Fill the report cell by cell, written after each, so that what was done is kept whatever happens."""
    for name in given.datasets:
        dataset = load_dataset(name)
        if n_rows := given.max_rows or ROWS.get(name):
            dataset = thinned(dataset, n_rows)
        weightings = (EQUAL, AUTO) if name in WEIGHTED else (EQUAL,)
        for weights, (damage, rate) in product(weightings, DAMAGES.items()):
            place, filled = f"{damage} {rate:g} both {given.bits}", report[CELLS[weights]].setdefault(name, {})
            if place in filled:
                continue
            settings = [setting_of(dataset, damage, given.bits, seed, weights) for seed in range(given.seeds)]
            found = [run(plan, dataset, setting, given.steps, given.device) for setting in settings]
            means = {
                metric: [round(float(np.mean(values)), 4), round(float(np.std(values)), 4), given.seeds]
                for metric in (*METRICS, "lookup", "distinct_codes", "fit_seconds", "bytes_per_item")
                if (values := [measures[metric] for measures in found])
            }
            filled[place] = means
            print(name, weights, damage, means["map"], means["recall_10"], means["recall_100"], flush=True)
            write(report, given.out)


def write(report: dict[str, Any], path: Path) -> None:
    with replacing(path) as file:
        file.write((json.dumps(report, indent=1) + "\n").encode())


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=["digits", "mfeat", "coco5"])
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--tuning-steps", type=int, default=1000)
    parser.add_argument("--plans", type=int, default=len(PLANS), help="how many of the plans are tried")
    parser.add_argument("--max-rows", type=int, default=0, help="thin every dataset, for a trial")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--goes-on-from", type=Path, help="an unfinished result: its tuning and cells are kept")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    given = arguments(words)
    started = time.perf_counter()
    earlier = json.loads(given.goes_on_from.read_text()) if given.goes_on_from else {}
    tried = earlier.get("tried") or tune(given)
    best = max(tried, key=lambda row: row["score"])
    torch_facts = {"torch": torch.__version__, "device": _device_name(given.device)}
    report = {
        "what": f"deep rival: {given.bits} bits, {given.steps} steps, {given.seeds} seed(s); [mean, spread, seeds]",
        "command": "python benchmarks/quality/deep_rival.py "
        f"--datasets {' '.join(given.datasets)} --bits {given.bits} --seeds {given.seeds} --steps {given.steps} "
        f"--tuning-steps {given.tuning_steps} --plans {given.plans} --out {given.out.name}",
        "provenance": provenance(1) | torch_facts,
        "criterion": "mean of MAP and R10@10 over digits and mfeat, clean and swap, on validation queries",
        "tried": tried,
        "chosen": best["plan"],
        **{key: earlier.get(key, {}) for key in CELLS.values()},
    }
    cells(replace(PLANS[0], **best["plan"]), given, report)
    report["seconds"] = round(time.perf_counter() - started + earlier.get("seconds", 0.0), 1)
    write(report, given.out)
    print(f"{report['seconds']} seconds in all")


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device.startswith("cuda") else device


if __name__ == "__main__":
    main()
