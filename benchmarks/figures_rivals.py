"""Tables about rivals: how they were tuned, peers at equal bytes, the deep one, published facts."""

from __future__ import annotations

from figures_table import OWN, RECALL, ROOT, SHOWN, called, results, table

from quorumhash.hashers import HASHERS


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
}
