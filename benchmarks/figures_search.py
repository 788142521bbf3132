"""Tables about search: speed beside faiss, stores of other programs, what the index file was put through.

python benchmarks/figures_search.py     writes docs/figures/recall_speed_*.svg; benchmarks/figures.py writes the tables
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from figures_paper import DRAWINGS, standalone
from figures_table import results, table

from quorumhash.report import Chart, Curve

RECALLS = (0.9, 0.99, 1.0)  # at which queries a second are compared


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


def search_nearest(name: str = "hamming_search") -> str:
    report = results(name)
    rows, has_planner = [], any("planner_times_faiss" in row for row in report["nearest"])
    for row in report["nearest"]:
        if "queries_per_second" not in row:
            continue
        rate, faiss = row["queries_per_second"], row["times_faiss"]
        best = next(iter(faiss))
        passes = f"{100 * row['share_of_bare_pass'][best]:.0f} %" if "share_of_bare_pass" in row else ""
        if "share_of_bare_pass_over_all" in row:
            passes += f" ({100 * row['share_of_bare_pass_over_all'][best]:,.0f} % of one over all items)"
        theirs = max(rate["faiss heap"], rate["faiss counting"])
        setting = [row["codes"], f"{row['distinct']:,}", str(row["bits"]), str(row["k"]), f"{row['batch']:,}"]
        shown = [f"{theirs:,.0f}", f"{rate[best]:,.0f}", f"{faiss[best]:.1f}", f"{faiss['ours portable']:.1f}", passes]
        if has_planner:
            shown.append(f"{row['planner_times_faiss']:.1f}" if "planner_times_faiss" in row else "")
        rows.append([*setting, *shown])
    header = ["codes", "distinct", "bits", "k", "batch", "faiss, queries a second", "ours", "times faiss"]
    memory = [row for row in report["nearest"] if "id_bytes_per_item" in row]
    last = ["portable C, times faiss", "share of a bare pass", *(["with bands, times faiss"] if has_planner else [])]
    return table([*header, *last], rows) + (
        f"\n{max(row['items'] for row in memory):,} items, {memory[0]['bytes_per_distinct_code']:.2f} bytes a distinct "
        f"code of 64 bits, at most {max(row['id_bytes_per_item'] for row in memory):.2f} bytes an item for ids and "
        f"lists. {_of_search(report)}{_other_runs(report)}"
    )


def _other_runs(report: Any) -> str:
    """How far the figures move from run to run, where that was looked at."""
    if "runs" not in report:
        return ""
    rows = report["runs"]["rows"]
    said = "; ".join(f"{row['codes']}: {', '.join(f'{x:.1f}' for x in row['times_faiss'])}" for row in rows)
    least = min(report["runs"]["share_of_a_bare_pass_over_all_items"].values())
    return (
        f"\nTimes faiss at k = 100, batches of 1,000, in {len(rows[0]['times_faiss'])} runs: {said}. The tables are of "
        "the third run. Of a bare pass over all items, not over the distinct codes alone, a search among repeats "
        f"is {least:.0f} times as fast and more.\n"
    )


def _of_search(report: Any) -> str:
    place = report["provenance"]
    return f"{place['cpu']}, kernels {place['kernels']}, faiss {place['faiss']}. `{report['command']}`\n"


def search_threads() -> str:
    report = results("hamming_search")
    rows = []
    for row in report["two_threads"]:
        rate = row["queries_per_second"]
        theirs = max(rate["faiss heap"], rate["faiss counting"])
        shown = [f"{theirs:,.0f}", *(f"{rate[name]:,.0f}" for name in ("ours scan", "ours auto"))]
        rows.append([row["codes"], str(row["k"]), *shown, f"{max(row['times_faiss'].values()):.1f}"])
    header = ["codes", "k", "faiss, queries a second", "ours, scan", "ours, planner", "times faiss"]
    loads = " to ".join(str(edge(row["load_average"] for row in report["two_threads"])) for edge in (min, max))
    return table(header, rows) + f"\nTwo threads each, by the clock, load average {loads}. {_of_search(report)}"


def search_radius(name: str = "hamming_search") -> str:
    report = results(name)
    rows = []
    for row in (row for row in report["radius"] if "radius" in row):
        rate = row["queries_per_second"]
        shown = [f"{rate[name]:,.0f}" for name in ("faiss BinaryFlat", "faiss BinaryMultiHash", "ours")]
        rows.append(
            [row["codes"], str(row["radius"]), f"{row['found_per_query']:,}", *shown, f"{row['times_faiss']:.1f}"]
        )
    header = ["codes", "radius", "found a query", "faiss flat, queries a second", "faiss multi-hash", "ours"]
    return table([*header, "times multi-hash"], rows) + f"\n{_of_search(report)}"


def search_multi_index(name: str = "hamming_search") -> str:
    report = results(name)
    rows = []
    for row in (row for row in report["multi_index"] if "k" in row):
        rate = row["queries_per_second"]
        shown = [f"{rate[name]:,.0f}" for name in ("scan", "multi-index")]
        spread = " / ".join(f"{value:.0f}" for value in row.get("farthest", []))
        share = f"{100 * row['share_looked_up']:.0f} %" if "share_looked_up" in row else ""
        facts = [row["codes"], f"{row['items']:,}", str(row["k"]), f"{row['batch']:,}", spread]
        times = [f"{row['times_faiss'][name]:,.0f}" for name in ("scan", "multi-index")]
        rows.append([*facts, *shown, f"{row['times_scan']:.1f}", *times, share])
    header = ["codes", "items", "k", "batch", "k-th distance, 10 / 50 / 90 %", "scan, queries a second", "bands"]
    header += ["times scan", "scan, times faiss", "bands, times faiss"]
    taken = ", ".join(
        f"{row['band_bytes_per_code']} ({row['codes']})" for row in report["multi_index"] if "k" not in row
    )
    return table([*header, "answered by bands alone"], rows) + (
        f"\nBytes of bands a distinct code: {taken}. {_of_search(report)}"
    )


def recall_speed() -> str:
    """The fastest setting of every index that reaches a recall; two threads at 0.99."""
    report, rows = results("recall_speed"), []
    for row in report["rows"]:
        best = [_fastest(row, recall, 1) for recall in RECALLS]
        place = f"{row['codes']}: {row['items']:,} items, {row['distinct']:,} codes"
        built = [f"{row['build_processor_seconds']:,.1f}", f"{row['n_bytes'] / row['items']:,.1f}"]
        highest = f"{max(found['recall'] for found in row['settings']):.4f}"
        rows.append([place, row["engine"], *built, highest, *best, _fastest(row, 0.99, 2)])
    header = ["codes", "index", "build, processor s", "bytes an item", "highest recall",
              *(f"queries a second, recall {recall:g}" for recall in RECALLS), "recall 0.99, two threads"]  # fmt: skip
    place = report["provenance"]
    versions = f"faiss {place['faiss']}, usearch {place['usearch']}, hnswlib {place['hnswlib']}"
    loads = [row["load_average"] for row in report["rows"]]
    how = f"load average {min(loads)} to {max(loads)} from other work, so one thread by processor time"
    return table(header, rows) + (
        f"\n{report['what']}. {place['cpu']}, {place['cores']} cores, {how}; two threads by the clock, only where "
        f"nothing else ran. Kernel {place['kernel']}, {versions}. `{report['command']}`, "
        "`benchmarks/results/recall_speed.json`\n"
    )


def _fastest(row: dict[str, Any], recall: float, n_threads: int) -> str:
    settings, key = [found for found in row["settings"] if found["recall"] >= recall], f"queries_per_second_{n_threads}"
    rates = [found[key] for found in settings if key in found]
    return f"{max(rates):,.0f}" if rates else "" if settings else "not reached"


def recall_charts() -> Iterator[tuple[str, Chart]]:
    rows = results("recall_speed")["rows"]
    names = {"coco5, repeated": "repeated", "coco5, each code once": "once"}
    for codes in dict.fromkeys(row["codes"] for row in rows):
        own = [row for row in rows if row["codes"] == codes]
        own = [row for row in own if row["items"] == max(r["items"] for r in own if r["engine"] == row["engine"])]
        curves = []
        for row in own:
            points = [(found["recall"], found["queries_per_second_1"]) for found in row["settings"]]
            curves.append(Curve(row["engine"], *zip(*points, strict=True)))
        title = f"{own[0]['items']:,} items, {own[0]['distinct']:,} different codes"
        chart = Chart(title, "recall@10", "queries a second, one thread", tuple(curves), log_y=True)
        yield f"recall_speed_{names.get(codes, 'turned')}", chart


def serve_load() -> str:
    report = results("serve_load")
    header = ["clients", "requests", "errors", "requests a second", "p50, ms", "p99, ms", "slowest, ms"]
    times = [f"{report['milliseconds'][key]:,.0f}" for key in ("p50", "p99", "max")]
    counts = [f"{report[key]:,}" for key in ("n_clients", "requests", "errors", "requests_per_second")]
    machine = report["provenance"]
    where = f"{machine['cpu']}, {machine['cores']} cores that clients and server share"
    load = f"load average {report['load_average_before']} from other work"
    what = f"the {report['k']} nearest of {report['items']:,} items"
    note = f"{report['seconds']:.0f} s on {where}, {load}; {what}. `{report['command']}`"
    return table(header, [[*counts, *times]]) + f"\n{note}\n"


FIGURES = {
    "recall_speed": recall_speed,
    "serve_load": serve_load,
    "stores": stores,
    "durability": durability,
    "search_nearest": search_nearest,
    "search_nearest_avx512": lambda: search_nearest("hamming_search_avx512"),
    "search_radius": search_radius,
    "search_threads": search_threads,
    "search_multi_index": search_multi_index,
    "search_radius_avx512": lambda: search_radius("hamming_search_avx512"),
    "search_multi_index_avx512": lambda: search_multi_index("hamming_search_avx512"),
}


if __name__ == "__main__":
    for name, chart in recall_charts():
        (DRAWINGS / f"{name}.svg").write_text(standalone(chart))
        print(f"docs/figures/{name}.svg")
