"""Tables about engines and large numbers of items."""

from __future__ import annotations

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


FIGURES = {
    "billion": billion,
    "scaling_paper": scaling_paper,
}
