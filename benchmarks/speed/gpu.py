"""What one GPU does: fit, transform, consensus and exact search, each with its floor and where the time goes.

    python benchmarks/speed/gpu.py [--out benchmarks/results/gpu.json] [--rows 1000000] [--codes 100000000]

Data: synthetic clusters made on the device (speed only; no quality is claimed here). Every part stands alone: one that
fails says so in the file and the others are done. A floor is the larger of operations at the measured matrix rate and
bytes at the measured bandwidth; intermediate arrays count in neither.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quorumhash import HASHERS, ConsensusHasher, HammingIndex, QuorumHasher, load_dataset
from quorumhash.bench.provenance import provenance
from quorumhash.engines.base import eigenpairs
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.engines.torchengine import TorchEngine
from quorumhash.index import devicetable, neartiles
from quorumhash.index.devicetable import DeviceTable
from quorumhash.teachers import most_items

WIDTHS, N_BITS, N_SWEEPS = (512, 300), 64, 40
N_QUERIES, K = 10_000, 100
UNDECIDED = 1e-4  # standard deviations of a bit's scores
SECONDS = 330  # after which no further part is begun
SHAPES = {
    "products": [(64, 128, 4), (64, 256, 4), (128, 256, 8), (128, 128, 4), (128, 128, 8)],
    "popcount": [(32, 256, 4), (64, 256, 8)],
}


def now(device: str) -> float:
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def best_seconds(function: Any, device: str, repeats: int = 3) -> float:
    function()
    seconds = []
    for _ in range(repeats):
        started = now(device)
        function()
        seconds.append(now(device) - started)
    return min(seconds)


def make_views(n_rows: int, device: str) -> dict[str, Any]:
    generator = torch.Generator(device=device).manual_seed(0)
    latent = torch.randn((50, 40), generator=generator, device=device)
    groups = torch.randint(0, 50, (n_rows,), generator=generator, device=device)
    own = torch.randn((n_rows, 40), generator=generator, device=device) * 0.5
    views = {}
    for width in WIDTHS:
        mixing = torch.randn((40, width), generator=generator, device=device)
        features = torch.randn((n_rows, width), generator=generator, device=device)
        for start in range(0, n_rows, 100_000):
            rows = slice(start, start + 100_000)
            features[rows] += (latent[groups[rows]] + own[rows]) @ mixing * 0.5
        views[f"features{width}"] = features
    return views


class ProfiledEngine(TorchEngine):
    """Seconds of every verb by the function it walks, the device waited for."""

    def __init__(self, device: str, **options: Any) -> None:
        super().__init__(device, **options)
        self.seconds: dict[str, float] = {}

    def _timed(self, name: str, call: Any) -> Any:
        started = now(self.device.type)
        result = call()
        self.seconds[name] = self.seconds.get(name, 0.0) + now(self.device.type) - started
        return result

    def map_rows(self, function: Any, *arguments: Any, reuse: Any = ()) -> Any:
        return self._timed(
            f"map {function.__name__}", lambda: TorchEngine.map_rows(self, function, *arguments, reuse=reuse)
        )

    def sum_rows(self, function: Any, *arguments: Any) -> Any:
        return self._timed(f"sum {function.__name__}", lambda: TorchEngine.sum_rows(self, function, *arguments))

    def take_rows(self, rows: Any, positions: Any) -> Any:
        return self._timed("take_rows", lambda: TorchEngine.take_rows(self, rows, positions))

    def get(self, rows: Any) -> Any:
        return self._timed("get", lambda: TorchEngine.get(self, rows))


def stages(call: Any, device: str) -> dict[str, Any]:
    """One more run: seconds of the verbs, and the host's functions by the time spent in and under them."""
    engine = ProfiledEngine(device)
    profile = cProfile.Profile()
    started = now(device)
    profile.enable()
    call(engine)
    profile.disable()
    total = now(device) - started
    rows = []
    for (path, _, name), (_, calls, own, under, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if "quorumhash" in path or "numpy" in path or "sklearn" in path or "scipy" in path:
            rows.append((round(under, 4), round(own, 4), calls, f"{Path(path).stem}.{name}"))
    rows.sort(reverse=True)
    verbs = {name: round(seconds, 4) for name, seconds in sorted(engine.seconds.items(), key=lambda item: -item[1])}
    return {
        "seconds_with_profiler": round(total, 3),
        "verbs": verbs,
        "verbs_together": round(sum(engine.seconds.values()), 3),
        "functions": [{"under": u, "own": o, "calls": c, "name": n} for u, o, c, n in rows[:45]],
    }


def kernels(call: Any, device: str) -> Any:
    """One more run: what ran on the device, by time; or why it could not be seen."""
    if device == "cpu":
        return []
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            call(TorchEngine(device))
            torch.cuda.synchronize()
        rows = [(event.self_device_time_total / 1e6, event.count, event.key[:90]) for event in seen.key_averages()]
        rows.sort(reverse=True)
        return [{"seconds": round(seconds, 5), "calls": count, "name": name} for seconds, count, name in rows[:25]]
    except Exception as error:
        return f"failed: {type(error).__name__}: {str(error)[:300]}"


def measure_rates(device: str) -> dict[str, float]:
    """Operations and bytes a second, measured: what floors are made of."""
    n = 8192 if device != "cpu" else 512
    rates = {}
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64}
    for name, dtype in kinds.items():
        left, right = (torch.randn((n, n), device=device).to(dtype) for _ in range(2))
        rates[f"{name}_ops"] = 2 * n**3 / best_seconds(lambda a=left, b=right: a @ b, device)
    try:
        left, right = (torch.randint(-1, 2, (n, n), device=device, dtype=torch.int8) for _ in range(2))
        rates["int8_ops"] = 2 * n**3 / best_seconds(lambda: torch._int_mm(left, right.T), device)
    except (RuntimeError, NotImplementedError) as error:
        rates["int8_ops_error"] = str(error)  # type: ignore[assignment]
    values = torch.empty(1 << (30 if device != "cpu" else 22), dtype=torch.float32, device=device)
    other = torch.empty_like(values)
    rates["copy_bytes"] = 2 * values.nbytes / best_seconds(lambda: other.copy_(values), device)
    rates["read_bytes"] = values.nbytes / best_seconds(lambda: values.sum(), device)
    host = torch.empty(1 << 26, dtype=torch.float32)
    rates["host_to_device_bytes"] = host.nbytes / best_seconds(lambda: host.to(device), device)
    return rates


def floor(rates: dict[str, float], operations: float, rate: str, n_bytes: float, seconds: float) -> dict[str, float]:
    least = max(operations / rates[rate], n_bytes / rates["read_bytes"])
    return {
        "operations": operations, "rate": rate, "bytes": n_bytes, "floor_seconds": least, "ratio": least / seconds,
    }  # fmt: skip


def quorum_operations(hasher: Any, n_rows: int) -> float:
    """Of one pass over rows, float64: coordinates, signatures, density, agreement, Gram matrix."""
    per_row, judge = 0.0, hasher.judge_
    for part in judge.components:
        d, s = part.directions.shape[0], part.n_signature
        per_row += 2 * d * (part.directions.shape[1] + s + part.grain.shape[1]) + 2 * s * s
    for pair in (*judge.trust.pairs, *judge.trust.kin):
        per_row += 2 * (pair.left.size + pair.right.size)
    return n_rows * (per_row + 2 * hasher.encoder_.linear.shape[0] ** 2)


def part_quorum(facts: dict[str, Any], options: Any) -> dict[str, Any]:
    device = options.device
    views = make_views(options.rows, device)
    n_bytes = sum(part.nbytes for part in views.values())
    small = {name: part[:20_000] for name, part in views.items()}
    QuorumHasher(n_bits=N_BITS).fit(small, engine=TorchEngine(device))
    hasher = QuorumHasher(n_bits=N_BITS)
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    fit = best_seconds(lambda: hasher.fit(views, engine=TorchEngine(device)), device)
    peak = torch.cuda.max_memory_allocated() if device != "cpu" else 0
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    encode = best_seconds(lambda: hasher.transform(views, engine=TorchEngine(device)), device)
    encode_peak = torch.cuda.max_memory_allocated() if device != "cpu" else 0
    codes = hasher.transform(small, engine=TorchEngine(device))
    on_host = hasher.transform({name: part.cpu().numpy() for name, part in small.items()})
    n_learned = min(options.rows, most_items(sum(WIDTHS)))
    return {
        "rows": options.rows, "widths": WIDTHS, "bits": N_BITS,
        "fit_seconds": fit, "input_bytes": n_bytes, "peak_device_bytes": peak,
        "fit_floor": floor(  # a fit without labels learns from a sample
            facts["rates"], quorum_operations(hasher, n_learned), "fp64_ops", n_bytes * n_learned / options.rows, fit
        ),
        "transform_seconds": encode, "items_per_second": options.rows / encode,
        "transform_peak_device_bytes": encode_peak,
        "bits_that_differ_from_threads": float(np.unpackbits(codes.cpu().numpy() ^ on_host).mean()),
        "fit_stages": stages(lambda engine: hasher.fit(views, engine=engine), device),
        "transform_stages": stages(lambda engine: hasher.transform(views, engine=engine), device),
        "transform_kernels": kernels(lambda engine: hasher.transform(views, engine=engine), device),
    }  # fmt: skip


def part_consensus(facts: dict[str, Any], options: Any, n_landmarks: int | None = None) -> dict[str, Any]:
    device = options.device
    views = make_views(options.rows, device)
    small = {name: part[:20_000] for name, part in views.items()}

    def fit(rows: Any, engine: Any) -> Any:
        sizes = {"n_landmarks": n_landmarks, "n_kernel_landmarks": n_landmarks}
        return ConsensusHasher(n_bits=N_BITS, max_iter=N_SWEEPS, tol=0.0, **sizes).fit(rows, engine=engine)

    fit(small, TorchEngine(device))
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    started = now(device)
    hasher = fit(views, TorchEngine(device))
    seconds = now(device) - started
    peak = torch.cuda.max_memory_allocated() if device != "cpu" else 0
    n_kernel, n_graph = hasher._sizes(options.rows)
    n_views = len(WIDTHS)
    # per sweep: the step of the singular values and two Gram matrices, R x R each; misfit and its gradient, R x P each
    per_row = 2 * sum(WIDTHS) * (n_kernel + n_graph) + N_SWEEPS * (6 * n_kernel**2 + 4 * n_kernel * N_BITS)
    # per sweep the state is read and written once by the sweep and read once by the sums
    state = n_kernel * (8 * (n_views + 2) * 2 + 4 * n_views + 16)
    return {
        "rows": options.rows, "kernel_landmarks": n_kernel, "graph_landmarks": n_graph, "sweeps": len(hasher.history_),
        "fit_seconds": seconds, "peak_device_bytes": peak,
        "seconds_of_sweeps": hasher.history_[-1]["seconds"],
        "floor": floor(facts["rates"], options.rows * per_row, "fp64_ops", options.rows * N_SWEEPS * state, seconds),
        "stages": stages(lambda engine: fit(views, engine), device),
        "kernels": kernels(lambda engine: fit(views, engine), device),
    }  # fmt: skip


def part_consensus_300(facts: dict[str, Any], options: Any) -> dict[str, Any]:
    return part_consensus(facts, options, 300)


def part_eigh(_: dict[str, Any], options: Any) -> dict[str, Any]:
    """Seconds of an eigendecomposition on the host and on the device: what DEVICE_EIGH is chosen by."""
    facts: dict[str, Any] = {}
    for size in (300, 500, 900, 1500):
        factor = torch.randn((size, 2 * size), dtype=torch.float64, generator=torch.Generator().manual_seed(size))
        matrix = factor @ factor.T
        there, on_host = matrix.to(options.device), matrix.numpy()
        facts[f"host, {size}"] = best_seconds(lambda m=on_host: np.linalg.eigh(m), options.device)
        facts[f"host, 64 pairs of {size}"] = best_seconds(lambda m=on_host: eigenpairs(m, 64), options.device)
        facts[f"device, {size}"] = best_seconds(lambda m=there: torch.linalg.eigh(m), options.device)
    return facts


def part_contract(_: dict[str, Any], options: Any) -> dict[str, Any]:
    """Every hasher fitted and applied on threads and on the device: bits with a score not within 1e-4 of zero."""
    digits = load_dataset("digits").views[:500]
    facts: dict[str, Any] = {}
    for name, kind in HASHERS.items():
        try:
            scores = []
            for engine in (ThreadsEngine(), TorchEngine(options.device, block_rows=70)):
                hasher = kind(n_bits=16).fit(digits[:400], engine=engine)
                scores.append(hasher.decision_function(digits, engine=engine))
            decided = np.abs(scores[0]) >= UNDECIDED * scores[0].std(axis=0)
            facts[name] = {
                "decided_share": float(decided.mean()),
                "decided_bits_that_differ": int(((scores[0] >= 0) != (scores[1] >= 0))[decided].sum()),
                "largest_difference": float(np.abs(scores[0] - scores[1]).max()),
            }
        except Exception as error:
            facts[name] = f"failed: {type(error).__name__}: {str(error)[:300]}"
    facts["all_agree"] = all(isinstance(f, dict) and f["decided_bits_that_differ"] == 0 for f in facts.values())
    return facts


def make_words(n_codes: int, device: str, seed: int = 0) -> Any:
    """Clustered codes: 4,096 centres, each bit flipped with probability about 1/8."""
    generator = torch.Generator(device=device).manual_seed(seed)
    kind = {"generator": generator, "device": device}
    centres = torch.randint(-(2**63), 2**63 - 1, (4096,), **kind)
    words = centres[torch.randint(0, 4096, (n_codes,), **kind)]
    for start in range(0, n_codes, 10_000_000):
        part = words[start : start + 10_000_000]
        flips = torch.full_like(part, -1)
        for _ in range(3):
            flips &= torch.randint(-(2**63), 2**63 - 1, part.shape, **kind)
        part ^= flips
    return words[:, None]


def to_codes(words: Any) -> Any:
    """The packed codes of words."""
    return words.cpu().numpy().view(np.uint64).astype(">u8").view(np.uint8).reshape(len(words), -1)


def part_search_check(_: dict[str, Any], options: Any) -> dict[str, Any]:
    """The same answers as HammingIndex on the host, for every method that runs here."""
    words = make_words(200_000, options.device)
    codes, queries = to_codes(words), to_codes(make_words(300, options.device, seed=1))
    queries[:100] = codes[:100]
    index = HammingIndex(64)
    index.add(codes)
    expected = index.search(queries, k=K)
    facts: dict[str, Any] = {"queries": len(queries), "codes": len(codes)}
    for method in methods(options.device):
        for shape in SHAPES.get(method, [None]):
            table = DeviceTable(words, None, options.device, method)
            table.shape = shape
            try:
                ids, distances = table.nearest(queries, K)
                same = bool((ids == expected.ids).all() and (distances == expected.distances).all())
            except Exception as error:
                same = f"failed: {type(error).__name__}: {str(error)[:300]}"  # type: ignore[assignment]
            facts[f"{method} {shape}"] = same
    return facts


def methods(device: str) -> list[str]:
    return ["matmul", *(["products", "popcount"] if device != "cpu" and neartiles.is_available() else [])]


def part_search_shapes(_: dict[str, Any], options: Any) -> dict[str, Any]:
    """Seconds of every method and shape of tile, on a tenth of the codes."""
    words = make_words(options.codes // 10, options.device)
    queries = to_codes(make_words(N_QUERIES, options.device, seed=1))
    facts: dict[str, Any] = {"queries": N_QUERIES, "codes": len(words)}
    for method in methods(options.device):
        for shape in SHAPES.get(method, [None]):
            table = DeviceTable(words, None, options.device, method)
            table.shape = shape
            try:
                facts[f"{method} {shape}"] = best_seconds(lambda t=table: t.nearest(queries, K), options.device, 2)
            except Exception as error:
                facts[f"{method} {shape}"] = f"failed: {type(error).__name__}: {str(error)[:300]}"
    return facts


def part_search(facts: dict[str, Any], options: Any) -> dict[str, Any]:
    shapes = facts.get("search_shapes", {})
    tried = {name: seconds for name, seconds in shapes.items() if " " in name and isinstance(seconds, float)}
    name = min(tried, key=tried.__getitem__) if tried else "matmul None"
    method, _, shape = name.partition(" ")
    words = make_words(options.codes, options.device)
    queries = to_codes(make_words(N_QUERIES, options.device, seed=1))
    table = DeviceTable(words, None, options.device, method)
    table.shape = None if shape == "None" else tuple(int(i) for i in shape.strip("()").split(","))
    spans: list[dict[str, Any]] = []
    seconds = best_seconds(lambda: table.nearest(queries, K), options.device)
    timed = table._collected

    def collected(*arguments: Any) -> Any:
        started = now(options.device)
        result = timed(*arguments)
        spans.append({
            "first": arguments[2], "last": result[2], "asked_to": arguments[3],
            "seconds": now(options.device) - started, "most_found": int(result[1].max()),
            "mean_found": float(result[1].float().mean()),
        })  # fmt: skip
        return result

    table._collected = collected  # type: ignore[method-assign]
    started = now(options.device)
    table.nearest(queries, K)
    profiled = now(options.device) - started
    operations = 2.0 * N_QUERIES * len(words) * 64
    n_blocks = -(-N_QUERIES // devicetable.MOST_QUERIES)
    rates = facts["rates"]
    return {
        "chosen": name, "queries": N_QUERIES, "k": K, "codes": len(words), "bits": 64,
        "seconds": seconds,
        "queries_per_second": N_QUERIES / seconds,
        "pairs_per_second": N_QUERIES * len(words) / seconds,
        "floor_bf16": floor(rates, operations, "bf16_ops", n_blocks * words.nbytes, seconds),
        "floor_int8": floor(rates, operations, "int8_ops", n_blocks * words.nbytes, seconds)
        if isinstance(rates.get("int8_ops"), float) else None,
        "floor_bytes_seconds": n_blocks * words.nbytes / rates["read_bytes"],
        "profiled_seconds": profiled, "spans": spans,
    }  # fmt: skip


PARTS = {
    "search_check": part_search_check,
    "quorum": part_quorum,
    "search_shapes": part_search_shapes,
    "search": part_search,
    "consensus_300": part_consensus_300,
    "consensus": part_consensus,
    "eigh": part_eigh,
    "contract": part_contract,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu.json"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--codes", type=int, default=100_000_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    started = time.perf_counter()
    facts: dict[str, Any] = {
        "what": "one GPU: fit and transform of QuorumHasher, fit of ConsensusHasher, exact Hamming search",
        "command": f"python benchmarks/speed/gpu.py --rows {options.rows} --codes {options.codes}",
        "seed": 0,
        "device": torch.cuda.get_device_name() if options.device != "cpu" else "cpu",
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "triton": neartiles.triton.__version__ if neartiles.is_available() else "none",
        "machine": provenance(os.cpu_count() or 1),
        "rates": measure_rates(options.device),
    }
    print(json.dumps(facts["rates"], indent=1), flush=True)
    for name in options.parts:
        begun = time.perf_counter()
        if begun - started > SECONDS:
            facts[name] = {"skipped": f"{SECONDS} seconds were over"}
            continue
        try:
            facts[name] = PARTS[name](facts, options)
        except Exception:
            facts[name] = {"failed": traceback.format_exc()[-3000:]}
        if options.device != "cpu":
            torch.cuda.empty_cache()
        facts[name]["seconds_of_this_part"] = time.perf_counter() - begun
        print(name, json.dumps(facts[name])[:1500], flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"done in {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
