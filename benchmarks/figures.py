"""Write the tables of README.md and docs/ from benchmarks/results/*.json, between their marks.

    python benchmarks/figures.py

A page holds `<!-- figures: NAME -->` and `<!-- end of figures -->`; what stands between is made here and nowhere else.
tests/test_repository.py fails when it is stale.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from quorumhash.hashers import HASHERS

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md", "docs/benchmarks.md", "docs/features.md", "docs/quorum.md", "docs/rivals.md", "docs/scaling.md",
    "docs/search.md",
)  # fmt: skip
REGION = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def called(name: str) -> str:
    """How tables call a method: reconstructions are said to be such."""
    return f"{name} (reconstruction)" if name in HASHERS and HASHERS[name].about.is_reconstruction else name


def fit_scaling() -> str:
    report = results("fit_scaling")
    header = ["rows", "fit, s", "its products alone, s", "ratio", "state, MB", "grown by, MB", "ratio"]
    keys = ("rows", "fit_seconds", "product_seconds", "ratio", "state_mb", "grown_mb", "memory_ratio")
    rows = [[f"{row[key]:,}" for key in keys] for row in report["results"]]
    return table(header, rows) + (
        f"\n{report['what']}; log-log slope {report['log_log_slope']}. {report['machine']}. `{report['command']}`\n"
    )


def billion() -> str:
    report = results("billion")
    header = [
        "codes",
        "items",
        "bytes a code",
        "build, s",
        "peak memory, GB",
        "10 nearest, p50 ms",
        "p99 ms",
        "in a batch",
    ]
    rows = [
        [row["codes"], f"{row['items']:,}", f"{row['bytes_per_code']}", f"{row['build_seconds']}",
         f"{row['peak_anonymous_bytes'] / 1e9:.2f}", f"{row['p50_ms']}", f"{row['p99_ms']}", f"{row['batch_ms']}"]
        for row in report["results"]
    ]  # fmt: skip
    last = report["results"][-1]
    facts = last["provenance"]
    return table(header, rows) + (
        f"\n64-bit codes, running ids, exact: answers are those of a plain scan. {facts['cpu']}, {facts['cores']} "
        f"cores, kernel {last['kernel']}. `{last['command']}`, `benchmarks/results/billion.json`\n"
    )


def scaling_paper() -> str:
    report = results("scaling_paper")
    header = ["items", "workers", "features, GB", "fit all, s", "fit 10^6, s", "into the driver, MB", "encode, s",
              "codes a worker, GB", "a query, ms"]  # fmt: skip
    keys = ("feature_gb", "fit_seconds", "fit_sample_seconds", "driver_mb_a_fit", "encode_seconds", "code_gb_a_worker",
            "query_ms")  # fmt: skip
    rows = [
        [f"{row['items']:,}", str(row["workers"]), *(f"{float(f'{row[key]:.2g}'):,g}" for key in keys)]
        for row in report["results"]
    ]
    c = report["constants"]
    return table(header, rows) + (
        "\nWorked out, not run, to two digits; a worker is a core. QuorumHasher (groups), 512 + 300 features, 64 bits: "
        f"{1e6 * c['fit_core_seconds_a_row']:.0f} µs of a core a row and {c['fit_fixed_seconds']:.1f} s whatever the "
        f"rows for fit, {1e6 * c['encode_core_seconds_a_row']:.0f} µs for encoding, {c['passes']} pass over all rows "
        f"with sums of {c['sum_bytes'] / 1e6:.1f} MB, {1e3 * c['dask_seconds_an_iteration']:.0f} ms of dask an "
        f"iteration, {c['bytes_a_code']} bytes and {1e9 * c['scan_core_seconds_a_code']:.2f} ns of a core a code. From "
        f"{report['sources']}; the network, {c['network_bytes_a_second'] / 1e9} GB a second, is assumed. "
        f"`{report['command']}`, `benchmarks/results/scaling_paper.json`\n"
    )


def rmvh_ablation() -> str:
    report = results("rmvh_ablation")
    columns = [(metric, damage) for metric in ("map", "recall_10") for damage in ("clean", "swap", "noise")]
    header = [f"{SHOWN[metric]} {damage}" for metric, damage in columns]
    text = ""
    for name, rows in report["datasets"].items():
        body = []
        for row in rows:
            cells = [row[f"{metric} {damage}"] for metric, damage in columns]
            body.append([row["method"], *(f"{mean:.3f} ± {spread:.3f}" for mean, spread in cells)])
        text += table([name, *header], body) + "\n"
    return text + f"Mean and standard deviation: {report['what']}. `{report['command']}`\n"


OWN = ("quorum, groups", "quorum, neighbours")
PLAIN_ROLES = ("float", "oracle", "chance")  # rows that are no methods
RECALL = {"digits": "recall_10", "mfeat": "recall_10", "coco5": "recall_100"}  # recall_10 for all others
SHOWN = {"map": "MAP", "recall_10": "R10@10", "recall_100": "R10@100"}


def panel_table(dataset: str, metric: str) -> str:
    """Methods by kinds of damage; the best of each column is bold."""
    cells = results("panel")["grids"]["main"][dataset]
    columns = [cell for cell in cells if cell.endswith(" both 64")]
    names = dict.fromkeys(name for cell in columns for name in cells[cell])
    plain = [name for name in names if not name.startswith(PLAIN_ROLES)]
    best = [max(cells[c][n][metric][0] for n in plain if metric in cells[c].get(n, {})) for c in columns]
    rows = []
    for name in names:
        numbers = [cells[cell].get(name, {}).get(metric) for cell in columns]
        shown = ["" if number is None else f"{number[0]:.3f}" for number in numbers]
        marked = zip(shown, numbers, best, strict=True)
        rows.append([called(name), *(f"**{t}**" if name in plain and n and n[0] == b else t for t, n, b in marked)])
    return table([f"{dataset}, {SHOWN[metric]}", *(cell.split()[0] for cell in columns)], rows)


def panel_tables() -> str:
    report = results("panel")
    text = ""
    for dataset in report["grids"]["main"]:
        for metric in ("map", RECALL[dataset]):
            text += panel_table(dataset, metric) + "\n"
    return text + (
        "64 bits; training rows, database and queries damaged; "
        f"{report['runs']:,} of {report['planned']:,} planned runs. "
        "`quorumhash bench run benchmarks/quality/panel.toml --jobs 2`\n"
    )


def _brief_rows(cells: Any, metric: str, own: str) -> dict[str, list[str]]:
    """Row -> figures by cell: our method, the best other one of each cell, itq, float search in the damaged views."""
    rows: dict[str, list[str]] = {own: [], "best rival": [], "itq": [], "float, damaged": []}
    for found in cells.values():
        figures = {name: row[metric][0] for name, row in found.items() if metric in row}
        rivals = {n: f for n, f in figures.items() if n not in OWN and not n.startswith((*PLAIN_ROLES, "quorum"))}
        first = max(rivals, key=rivals.__getitem__)
        ours = f"{figures[own]:.3f}"
        rows[own].append(f"**{ours}**" if figures[own] >= rivals[first] else ours)
        rows["best rival"].append(f"{rivals[first]:.3f} ({called(first)})")
        for name in ("itq", "float, damaged"):
            rows[name].append(f"{figures[name]:.3f}" if name in figures else "")
    return rows


def brief(name: str) -> str:
    """Of every dataset and measure: our method beside the best rival of each cell, itq, and float search."""
    report = results(name)
    text = ""
    for dataset, found in report["grids"]["main"].items():
        cells = {cell: methods for cell, methods in found.items() if cell.endswith(" both 64")}
        body = []
        for metric, own in (("map", OWN[0]), (RECALL.get(dataset, "recall_10"), OWN[1])):
            for row, figures in _brief_rows(cells, metric, own).items():
                body.append([SHOWN[metric], row, *figures])
        text += table([dataset, "", *(cell.split()[0] for cell in cells)], body) + "\n"
    return text + (
        f"64 bits; training rows, database and queries damaged; {report['runs']:,} runs. A rival with one seed "
        "stands with that seed's figure; ratios compare it on that seed alone. "
        f"`quorumhash bench run benchmarks/quality/{name}.toml --jobs 2`, `benchmarks/results/{name}.json`\n"
    )


def panel_ratios() -> str:
    report = results("panel")["standings"]
    rows = []
    for method, metric in ((OWN[0], "map"), (OWN[1], "recall_10"), (OWN[1], "recall_100")):
        found = report[f"{method} {metric}"]
        by_data = {name: [r for cell, (r, _) in found["cells"].items() if cell.startswith(name)] for name in RECALL}
        ratio, cell, rival = found["worst"]
        means = [f"{geometric_mean(ratios):.2f}" if ratios else "" for ratios in by_data.values()]
        rows.append(
            [f"{method}, {SHOWN[metric]}", *means, f"{found['geometric_mean']:.2f}", f"{ratio:.2f} ({cell}, {rival})"]
        )
    return table(["ratio to the best rival of each damaged cell", *RECALL, "all", "worst cell, rival"], rows)


def panel_trust() -> str:
    report = results("panel")["grids"]["main"]
    rows = []
    for dataset, cells in report.items():
        for cell, methods in cells.items():
            found = methods.get(OWN[1], {})
            if cell.endswith(" both 64") and "false_alarms" in found:
                auc = found.get("trust_auc")
                rows.append(
                    [
                        dataset,
                        cell.split()[0],
                        f"{auc[0]:.3f}" if auc else "",
                        f"{100 * found['false_alarms'][0]:.1f} %",
                    ]
                )
    return table(["data", "damage", "AUC of reliability on queries", "false alarms at 1 %"], rows)


def panel_sources() -> str:
    """Views of one photo swapped together, with and without being told that they have one source."""
    methods = next(iter(results("panel")["grids"]["sources"]["coco5"].values()))
    rows = []
    for name, found in methods.items():
        auc = f"{found['trust_auc'][0]:.3f}" if "trust_auc" in found else ""
        rows.append([name, f"{found['map'][0]:.3f}", f"{found['recall_100'][0]:.3f}", auc])
    return table(["coco5, swap_source", "MAP", "R10@100", "AUC of reliability"], rows)


def panel_sweep() -> str:
    """MAP and recall on mfeat as ever more pairs are swapped or zero."""
    cells = results("panel")["grids"]["sweep"]["mfeat"]
    text = ""
    for kind, metric, own in ((k, m, o) for k in ("swap", "zero") for m, o in (("map", OWN[0]), ("recall_10", OWN[1]))):
        columns = [cell for cell in cells if cell.startswith(f"{kind} ")]
        names = [own, *(name for name in cells[columns[-1]] if not name.startswith("quorum"))]
        found = [[cells[cell].get(name, {}).get(metric) for cell in columns] for name in names]
        rows = [
            [name, *("" if number is None else f"{number[0]:.3f}" for number in numbers)]
            for name, numbers in zip(names, found, strict=True)
        ]
        text += table([f"mfeat, {kind}, {SHOWN[metric]}", *(cell.split()[1] for cell in columns)], rows) + "\n"
    return text


def panel_codes() -> str:
    report = results("panel")["grids"]["main"]
    rows = []
    for dataset, cells in report.items():
        for name in (*OWN, "itq"):
            found = next(methods for cell, methods in cells.items() if cell.startswith("clean"))[name]
            rows.append([dataset, name, f"{found['distinct_codes'][0]:,.0f}", f"{found['tie_list_size'][0]:.1f}"])
    return table(["data, clean", "method", "distinct codes in the database", "mean tie-list size"], rows)


def quorum_ablation() -> str:
    report = results("quorum_ablation")
    text = ""
    for name, rows in report["datasets"].items():
        columns = [key for key in rows[0] if key != "method"]
        body = [[row["method"], *(f"{row[c]:.3f}" if c in row else "" for c in columns)] for row in rows]
        text += table([name, *columns], body) + "\n"
    return text + f"{report['what']}. `{report['command']}`\n"


def labels() -> str:
    """MAP by number of labels."""
    report = results("labels")
    rows = []
    for name, kinds in report["datasets"].items():
        rows += [[f"{name}, {kind}", *(f"{figure:.3f}" for figure in found.values())] for kind, found in kinds.items()]
    header = ["data", "no labels", "50", "200", "all rows labelled"]
    return table(header, rows) + f"\n{report['what']}. `{report['command']}`\n"


def quorum_cost() -> str:
    report = results("quorum_cost")
    keys = ("rows", "itq_fit", "neighbours_fit", "groups_fit", "itq_encode", "neighbours_encode", "groups_encode")
    header = ["rows", "itq fit, s", "quorum fit, s", "groups", "itq transform, s", "quorum transform, s", "groups"]
    rows = [[f"{row[key]:,}" for key in keys] for row in report["results"]]
    last = report["results"][-1]
    return table(header, rows) + (
        f"\n{report['what']}. Ratios to itq at {last['rows']:,} rows: fit {last['neighbours_fit_ratio']} and "
        f"{last['groups_fit_ratio']}, transform {last['neighbours_encode_ratio']} and {last['groups_encode_ratio']}; "
        f"log-log slopes of fit {report['slopes']['neighbours']} and {report['slopes']['groups']}. "
        f"`{report['command']}`\n"
    )


def stores() -> str:
    report = results("stores")
    keys = ("add_seconds", "nearest_p50_ms", "nearest_p99_ms", "batch_ms", "within_p50_ms", "remove_1000_seconds",
            "reopen_seconds", "disk_mb", "recall")  # fmt: skip
    header = ["store", "add all, s", "10 nearest, ms", "99 %", "in a batch", "within 2 bits, ms", "remove 1,000, s",
              "open again, s", "disk, MB", "recall"]  # fmt: skip
    rows = [[row["store"], *(f"{row[key]:,}" if key in row else "" for key in keys)] for row in report["results"]]
    source = report["provenance"]
    return table(header, rows) + (
        f"\n{report['what']}. Recall 1.0 means every answer is that of brute force. {source['cpu']}, "
        f"{source['cores']} cores. `{report['command']}`, `benchmarks/results/stores.json`\n"
    )


def durability() -> str:
    report = results("durability")
    kill, torn, full = report["kill"], report["torn_wal"], report["disk_full"]
    mutated, readers = report["mutations"], report["readers"]
    bad = sum(mutated[word] for word in ("wrong", "other_error", "memory_error", "timeout", "crash"))
    rows = [
        [f"{kill['kills']:,} kill -9 during add, replace, remove, compact and open",
         f"{kill['reopened']:,} reopened, {kill['before_the_file']} came before there was a file; of "
         f"{kill['acknowledged_calls']:,} acknowledged calls {kill['lost']} lost, {kill['by_half']} by half"],
        [f"{torn['cuts']:,} logs cut or garbled at a random byte", f"all reopened; {torn['by_half']} batches by half"],
        [f"{full['rlimit']['limits']} limits of file size, {full['tmpfs']['file_systems']} full file systems",
         f"one error each; {full['rlimit']['lost']} items lost"],
        [f"{mutated['files']:,} mutated files, {mutated['unchanged']:,} of them by chance the same bytes",
         f"{mutated['refused']:,} refused, {mutated['right']:,} read right (changed in free space), {bad} others"],
        [f"one writer and {readers['readers']} readers for {readers['seconds']:.0f} s",
         f"{readers['calls_of_the_writer']:,} batches, {readers['loads']:,} loads, {readers['torn']} torn"],
    ]  # fmt: skip
    text = table(["what was done", "what came of it"], rows)
    words = ("refused", "silent", "memory_error", "timeout", "crash")
    counts = [mutated[word] for word in ("refused", "right", "memory_error", "timeout", "crash")]
    own = ["quorumhash, per 600 that differ; silent ones all right", *(f"{600 * n / sum(counts):.0f}" for n in counts)]
    others = [[name, *(str(found[word]) for word in words)] for name, found in report["peers"]["mutated"].items()]
    text += (
        "\nOthers' files, byte-mutated, from "
        + report["peers"]["source"]
        + ". Silent: read without a word, right or not.\n\n"
    )
    text += table(["loader, 600 files", "refused", "silent", "MemoryError", "timeout", "crash"], [*others, own])
    killed = "; ".join(f"{name}: {said}" for name, said in report["peers"]["killed"].items())
    return text + f"\nKilled while saving: {killed}. `{report['command']}`, `benchmarks/results/durability.json`\n"


def search_nearest() -> str:
    report = results("hamming_search")
    rows = []
    for row in report["nearest"]:
        if "queries_per_second" not in row:
            continue
        rate, faiss = row["queries_per_second"], row["times_faiss"]
        best = next(iter(faiss))
        passes = f"{100 * row['share_of_bare_pass'][best]:.0f} %" if "share_of_bare_pass" in row else ""
        theirs = max(rate["faiss heap"], rate["faiss counting"])
        setting = [row["codes"], f"{row['distinct']:,}", str(row["bits"]), str(row["k"]), f"{row['batch']:,}"]
        shown = [f"{theirs:,.0f}", f"{rate[best]:,.0f}", f"{faiss[best]:.1f}", f"{faiss['ours portable']:.1f}", passes]
        rows.append([*setting, *shown])
    header = ["codes", "distinct", "bits", "k", "batch", "faiss, queries a second", "ours", "times faiss"]
    memory = [row for row in report["nearest"] if "id_bytes_per_item" in row]
    return table([*header, "portable C, times faiss", "share of a bare pass"], rows) + (
        f"\n{max(row['items'] for row in memory):,} items, {memory[0]['bytes_per_distinct_code']:.2f} bytes a distinct "
        f"code of 64 bits, at most {max(row['id_bytes_per_item'] for row in memory):.2f} bytes an item for ids and "
        f"lists. {_of_search(report)}"
    )


def _of_search(report: Any) -> str:
    place = report["provenance"]
    return f"{place['cpu']}, kernels {place['kernels']}, faiss {place['faiss']}. `{report['command']}`\n"


def search_radius() -> str:
    report = results("hamming_search")
    rows = []
    for row in (row for row in report["radius"] if "radius" in row):
        rate = row["queries_per_second"]
        shown = [f"{rate[name]:,.0f}" for name in ("faiss BinaryFlat", "faiss BinaryMultiHash", "ours")]
        rows.append(
            [row["codes"], str(row["radius"]), f"{row['found_per_query']:,}", *shown, f"{row['times_faiss']:.1f}"]
        )
    header = ["codes", "radius", "found a query", "faiss flat, queries a second", "faiss multi-hash", "ours"]
    return table([*header, "times multi-hash"], rows) + f"\n{_of_search(report)}"


def search_multi_index() -> str:
    report = results("hamming_search")
    rows = []
    for row in (row for row in report["multi_index"] if "k" in row):
        rate = row["queries_per_second"]
        shown = [f"{rate[name]:,.0f}" for name in ("scan", "multi-index")]
        spread = " / ".join(f"{value:.0f}" for value in row["farthest"])
        share = f"{100 * row['share_looked_up']:.0f} %"
        rows.append(
            [row["codes"], f"{row['items']:,}", str(row["k"]), spread, *shown, f"{row['times_scan']:.1f}", share]
        )
    header = ["codes", "items", "k", "k-th distance, 10 / 50 / 90 %", "scan, queries a second", "bands", "times scan"]
    taken = ", ".join(
        f"{row['band_bytes_per_code']} ({row['codes']})" for row in report["multi_index"] if "k" not in row
    )
    return table([*header, "answered by bands alone"], rows) + (
        f"\nBytes of bands a distinct code: {taken}. {_of_search(report)}"
    )


def picture_features() -> str:
    report = results("picture_features")
    rows = []
    for row in report["rows"]:
        pictures = f"{row['dataset']}, {row['reading']} patch" if "reading" in row else row["dataset"]
        rows.append([pictures, ", ".join(row["views"]), row["method"], f"{row['map_32']:.3f}", f"{row['map_64']:.3f}"])
    text = table(["pictures", "views", "method", "MAP, 32 bits", "MAP, 64 bits"], rows) + "\n"
    body = []
    for name, found in report["seconds"].items():
        views = [view for view in found if f"{view}_processor" in found]
        cells = [f"{found[view]:.0f} ({found[f'{view}_processor']:.0f})" for view in views]
        body.append([f"{name}, {found['pictures']:,}", *cells])
    text += table(["pictures", *views], body)
    machine = report["provenance"]
    return text + (
        "\nSeconds by the clock and, in brackets, of processor time, with "
        f"{machine['cores']} cores ({machine['cpu']}) that had a load of {report['load']} from other work. "
        f"{report['what']}. `{report['command']}`\n"
    )


def rotation() -> str:
    """Each method without and with the rotation."""
    report = results("rotation")
    text = ""
    for dataset, cells in report["grids"]["main"].items():
        columns = [(metric, cell) for metric in ("map", "recall_10") for cell in cells]
        names = dict.fromkeys(name.split(",")[0] for found in cells.values() for name in found if name != "chance")
        rows = []
        for name in names:
            key = "rotation" if name == "rmvh" else "rotate"
            pairs = [
                [cells[cell][f"{name}, {key}={on}"][metric][0] for on in (False, True)] for metric, cell in columns
            ]
            rows.append([called(name), *(f"{off:.3f} → {on:.3f}" for off, on in pairs)])
        text += table([dataset, *(f"{SHOWN[metric]} {cell.split()[0]}" for metric, cell in columns)], rows) + "\n"
    return text + (
        f"Without → with the rotation, 32 bits, means over 2 seeds, {report['runs']} runs. "
        "`quorumhash bench run benchmarks/quality/rotation.toml`\n"
    )


def tuning() -> str:
    """What was chosen for every method, and what normalised rows did to it."""
    report = results("tuning")
    rows = []
    for name, found in report["methods"].items():
        tried, pick = found["tried"], found["chosen"]
        first, best = tried[0]["score"], max(tried, key=lambda row: row["score"])
        same = (row for row in tried if row["parameters"] == tried[0]["parameters"])
        normalised = next(row["score"] for row in same if row["is_row_normalised"])
        told = ", ".join(
            [f"{k}={v}" for k, v in best["parameters"].items()] + ["normalised rows"] * best["is_row_normalised"]
        )
        kept = "changed" if pick["gain"] else "kept"
        rows.append(
            [
                called(name),
                str(len(tried)),
                f"{first:.3f}",
                f"{normalised:.3f}",
                f"{best['score']:.3f}",
                told or "-",
                kept,
            ]
        )
    header = ["method", "settings", "before", "the same, normalised rows", "best", "which", "default"]
    return table(header, rows) + f"\n{report['criterion']}. `{report['command']}`\n"


def peers() -> str:
    """Peers with their bytes, beside itq and quorum."""
    report = results("peers")
    text = ""
    for dataset, cells in report["grids"]["main"].items():
        names = dict.fromkeys(name for found in cells.values() for name in found)
        for metric in ("map", RECALL[dataset]):
            rows = []
            for name in names:
                found = [cells[cell].get(name, {}) for cell in cells]
                size = next((f"{row['bytes_per_item'][0]:,.0f}" for row in found if "bytes_per_item" in row), "")
                rows.append([name, size, *(f"{row[metric][0]:.3f}" if metric in row else "" for row in found)])
            header = [f"{dataset}, {SHOWN[metric]}", "bytes per item", *(cell.split()[0] for cell in cells)]
            text += table(header, rows) + "\n"
    return text + f"One seed, {report['runs']} runs. `quorumhash bench run benchmarks/quality/peers.toml`\n"


def deep_rival() -> str:
    """The deep rival in its cells, beside the panel's first rival and quorum there."""
    if not (ROOT / "benchmarks" / "results" / "deep_rival.json").is_file():
        return "Not run yet: `python benchmarks/quality/deep_rival.py --out benchmarks/results/deep_rival.json`\n"
    report, panel = results("deep_rival"), results("panel")["grids"]["main"]
    rows = []
    for dataset, cells in report["cells"].items():
        for cell, equal in cells.items():
            row = [f"{dataset}, {cell.split()[0]}"]
            weighted = report["weighted_cells"].get(dataset, {}).get(cell, equal)
            for metric in ("map", RECALL[dataset]):
                found = max(equal, weighted, key=lambda figures: figures[metric][0])
                beside = {name: m[metric][0] for name, m in panel[dataset].get(cell, {}).items() if metric in m}
                rivals = {name: figure for name, figure in beside.items() if name in HASHERS}
                own = [figure for name, figure in beside.items() if name in OWN]
                first = max(rivals, key=rivals.__getitem__, default="")
                row += [
                    f"{found[metric][0]:.3f} ± {found[metric][1]:.3f}",
                    f"{rivals[first]:.3f} ({called(first)})" if first else "",
                    f"{max(own):.3f}" if own else "",
                ]
            rows.append(row)
    header = [
        "",
        "deep, MAP",
        "first rival, MAP",
        "quorum, MAP",
        "deep, recall",
        "first rival, recall",
        "quorum, recall",
    ]
    machine = report["provenance"]
    return table(header, rows) + (
        f"\n{report['what']}; recall is R10@10, for coco5 R10@100. {machine['device']}, torch {machine['torch']}. "
        f"`{report['command']}`\n"
    )


def sanity() -> str:
    """What is published and what is found."""
    report = results("sanity")
    rows = []
    for fact in report["facts"]:
        found = "; ".join(
            f"{name} " + ", ".join(f"{figure:.3f} ({bits} bits)" for bits, figure in figures.items())
            for name, figures in fact["map"].items()
        )
        rows.append([fact["says"], fact["dataset"], found, "yes" if fact["holds"] else "no"])
    left_out = "".join(f" Left out: {sentence}" for sentence in report["left_out"])
    return table(["published", "data", "MAP here", "holds"], rows) + (
        f"\n{report['what']}.{left_out} `{report['command']}`\n"
    )


FIGURES = {
    "rotation": rotation,
    "tuning": tuning,
    "peers": peers,
    "deep_rival": deep_rival,
    "sanity": sanity,
    "billion": billion,
    "fit_scaling": fit_scaling,
    "scaling_paper": scaling_paper,
    "rmvh_ablation": rmvh_ablation,
    "panel": panel_tables,
    "panel_brief": lambda: brief("panel"),
    "untouched": lambda: brief("untouched"),
    "panel_ratios": panel_ratios,
    "panel_trust": panel_trust,
    "panel_codes": panel_codes,
    "panel_sources": panel_sources,
    "panel_sweep": panel_sweep,
    "picture_features": picture_features,
    "quorum_ablation": quorum_ablation,
    "quorum_cost": quorum_cost,
    "labels": labels,
    "stores": stores,
    "durability": durability,
    "search_nearest": search_nearest,
    "search_radius": search_radius,
    "search_multi_index": search_multi_index,
}


def fresh(text: str) -> str:
    return REGION.sub(lambda found: found.group(1) + FIGURES[found.group(2)]() + found.group(3), text)


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(fresh(path.read_text()))
