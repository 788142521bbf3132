"""Tables about engines and large numbers of items."""

from __future__ import annotations

from typing import Any

from figures_table import results, table


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
    header = ["items", "workers", "features, GB", "fit, s", "into the driver, MB", "encode, s",
              "codes a worker, GB", "a query, ms"]  # fmt: skip
    keys = ("feature_gb", "fit_seconds", "driver_mb_a_fit", "encode_seconds", "code_gb_a_worker",
            "query_ms")  # fmt: skip
    rows = [
        [f"{row['items']:,}", str(row["workers"]), *(f"{float(f'{row[key]:.2g}'):,g}" for key in keys)]
        for row in report["results"]
    ]
    c = report["constants"]
    return table(header, rows) + (
        "\nWorked out, not run, to two digits; a worker is a core. QuorumHasher (groups), 512 + 300 features, 64 bits: "
        f"{1e6 * c['fit_core_seconds_a_row']:.0f} µs of a core a row and {c['fit_fixed_seconds']:.1f} s whatever the "
        f"rows for fit, {1e6 * c['encode_core_seconds_a_row']:.0f} µs for encoding, "
        f"{1e3 * c['dask_seconds_an_iteration']:.0f} ms of dask an iteration, {c['bytes_a_code']} bytes "
        f"and {1e9 * c['scan_core_seconds_a_code']:.2f} ns of a core a code. From "
        f"{report['sources']}; the network, {c['network_bytes_a_second'] / 1e9} GB a second, is assumed. "
        f"`{report['command']}`, `benchmarks/results/scaling_paper.json`\n"
    )


def gpu() -> str:
    """What one GPU does, beside the floor of its operations and bytes."""
    report = results("gpu")
    quorum, search, small = report["quorum"], report["search"], report["consensus_300"]
    large, floor = report["consensus"], search["floor_int8"]
    n_rows = f"{quorum['rows']:,} rows of {' + '.join(map(str, quorum['widths']))} features"
    rows = [
        ["QuorumHasher, fit", n_rows, f"{quorum['fit_seconds']:.2f} s", _gigabytes(quorum)],
        ["QuorumHasher, transform", n_rows, f"{quorum['items_per_second'] / 1e6:.1f} million items a second", ""],
    ]
    for found in (small, large):
        what = f"{found['rows']:,} rows, {found['kernel_landmarks']} landmarks, {found['sweeps']} sweeps"
        rows.append(["ConsensusHasher, fit", what, f"{found['fit_seconds']:.1f} s", _gigabytes(found)])
    what = f"{search['queries']:,} queries, k = {search['k']}, {search['codes']:,} codes of {search['bits']} bits"
    speed = f"{search['queries_per_second']:,.0f} queries a second"
    share = f"{100 * floor['ratio']:.0f} % of what products of int8 at the measured rate allow"
    rows.append(["HammingIndex, exact search", what, speed, share])
    differing = 100 * quorum["bits_that_differ_from_threads"]
    return table(["what", "of what", "speed", ""], rows) + (
        f"\n{report['device']}, torch {report['torch']}; inputs on the device, synthetic clusters. Bits of "
        f"QuorumHasher that differ from the threads engine: {differing:g} %. `{report['command']}`, "
        "`benchmarks/results/gpu.json`\n"
    )


def _gigabytes(found: dict[str, float]) -> str:
    return f"{found['peak_device_bytes'] / 1e9:.1f} GB of the device"


def out_of_core() -> str:
    report = results("out_of_core")
    steps = report["steps"]
    rows = [
        [name, f"{step['seconds']:,.0f}", f"{step['peak_anonymous_bytes'] / 1e9:.2f}"] for name, step in steps.items()
    ]
    return table(["step", "seconds", "anonymous memory at most, GB"], rows) + (
        f"\n{report['rows']:,} rows of {' + '.join(map(str, report['widths']))} float32 features, "
        f"{report['gigabytes']} GB of files, memory_budget {report['budget_bytes'] / 1e9:g} GB. Pages of the mapped "
        f"files are not counted: the system drops them. {machine(report)} `{report['command']}`, "
        "`benchmarks/results/out_of_core.json`\n"
    )


def dask() -> str:
    cost = results("dask_overhead")
    overhead, fits = cost["overhead"], cost["fit_seconds_by_workers"]
    rows = [
        ["an iteration beyond its work", f"{overhead['median_ms']} ms ({overhead['best_ms']} at best)"],
        [f"ConsensusHasher of {cost['rows']:,} rows, one worker", f"{fits['1']} s"],
        ["the same, two workers", f"{fits['2']} s, {cost['two_workers_over_one']} times as fast"],
    ]
    return table(["what", ""], rows) + (
        f"\n{machine(cost)} The driver and the scheduler need a part of them. `{cost['command']}`, "
        "`benchmarks/results/dask_overhead.json`\n"
    )


def dask_kill() -> str:
    report = results("dask_kill")
    rows = [
        [row["method"], row["step"], f"{row['kills']}", f"{row['same']}", f"{row['seconds']}"]
        for row in report["results"]
    ]
    header = ["method", "step", "moments", "results the same to the bit", "seconds undisturbed"]
    return table(header, rows) + (
        f"\nOne of two workers killed at a random moment. {machine(report)} `{report['command']}`, "
        "`benchmarks/results/dask_kill.json`\n"
    )


def machine(report: dict[str, Any]) -> str:
    facts = report["provenance"]
    return f"{facts['cpu']}, {facts['cores']} cores."


FIGURES = {
    "gpu": gpu,
    "out_of_core": out_of_core,
    "dask": dask,
    "dask_kill": dask_kill,
    "billion": billion,
    "scaling_paper": scaling_paper,
}
