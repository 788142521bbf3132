"""Draw the pictures of docs/how.md from runs on the digits: the path of the data, a quorum at work, what a code is.

python docs/make_pictures.py    writes docs/pictures/*.svg; about ten seconds.

Nothing is chosen for its looks: the item is the first query, and the digit whose pixels it is given is the first
query of another kind. Pictures refer to nothing outside and have a ground of their own, so that they can be read on
a light page and on a dark one.
"""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

import quorumhash as qh
from quorumhash._drawing import as_grey, encode_png

FOLDER = Path(__file__).with_name("pictures")
BLUE, RED, INK, PALE = "#1b6ec2", "#c2410c", "#1f2937", "#e5e7eb"
N_BITS = 64


def drawing(title: str, width: int, height: int, *parts: str) -> str:
    """A whole SVG file; the title is what a reader who cannot see is told."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14" fill="{INK}"><title>{escape(title)}</title>'
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>' + "\n".join(parts) + "</svg>\n"
    )


def text(x: float, y: float, words: str, *, size: int = 14, anchor: str = "start", fill: str = INK) -> str:
    """A line of words."""
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none", line: float = 1) -> str:
    """A rectangle."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="{stroke}" '
        f'stroke-width="{line:g}"/>'
    )


def digit(x: float, y: float, pixels: npt.NDArray[np.float64], size: float = 56, border: str = PALE) -> str:
    """A digit, 8 x 8 pixels, dark on light."""
    data = base64.b64encode(encode_png(255 - as_grey(pixels.reshape(8, 8)))).decode()
    return (
        f'<image x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{data}"/>{box(x, y, size, size, "none", border, 3)}'
    )


def path_picture(views: qh.Views, hasher: qh.QuorumHasher) -> str:
    """What becomes of the items, step by step, with the shapes of this run."""
    n_rows, n_views, n_dims = len(views), len(views.names), hasher.embed(views[:2]).shape[1]
    steps = (
        ("Views", [f"{name}: {width}" for name, width in views.widths.items()], "NaN where missing"),
        ("Judge", ["each view of an", "item by the views", "of other sources"], f"p-values {n_rows:,} x {n_views}"),
        ("Repair", ["what is missing", "or not believed", "is predicted by", "what is believed"], "as wide as before"),
        ("Dimensions", ["all views together,", "in order of", "variance"], f"{n_rows:,} x {n_dims}"),
        ("Bits", ["rotated, then cut", "at zero"], f"{n_rows:,} x {N_BITS} bits"),
        ("Index", ["equal codes once,", "bytes in tiles"], f"{n_rows * N_BITS // 8:,} bytes"),
        ("Matches", ["fewest differing", "bits first, exact"], "ids and distances"),
    )
    parts = []
    for number, (name, lines, shape) in enumerate(steps):
        x = 12 + 140 * number
        parts += [box(x, 46, 124, 116, "#f3f6fb", BLUE), text(x + 62, 36, name, size=16, anchor="middle", fill=BLUE)]
        parts += [text(x + 62, 72 + 22 * i, line, size=12, anchor="middle") for i, line in enumerate(lines)]
        parts.append(text(x + 62, 186, shape, size=12, anchor="middle", fill="#4b5563"))
        if number:
            parts.append(f'<path d="M{x - 15} 104h10m-4 -4l4 4l-4 4" fill="none" stroke="{INK}" stroke-width="1.5"/>')
    return drawing("The path of the data: views, judge, repair, dimensions, bits, index, matches", 992, 204, *parts)


def nearest_kinds(x: float, y: float, name: str, found: npt.NDArray[np.int64], digits: qh.Dataset, kind: int) -> str:
    """The first five items found, framed by whether they are of the query's kind."""
    rows = digits.database_rows[found[:5]]
    parts = [text(x, y + 34, name)]
    for i, row in enumerate(rows):
        colour = BLUE if digits.labels[row] == kind else RED
        parts.append(digit(x + 150 + 66 * i, y, digits.views["pixels"][row], border=colour))
    return "".join(parts)


def quorum_picture(digits: qh.Dataset, hasher: qh.QuorumHasher) -> str:
    """One item before and after its pixels are those of another digit: what is believed, and what is found."""
    row, kind = digits.query_rows[0], digits.labels[digits.query_rows[0]]
    other = next(r for r in digits.query_rows if digits.labels[r] != kind)
    whole = {name: digits.views[name][[row]] for name in digits.views}
    damaged = whole | {"pixels": digits.views["pixels"][[other]]}
    plain = qh.ITQHasher(n_bits=N_BITS).fit(digits.views[digits.train_rows])
    parts = [text(20, 30, f"The item, a {kind}"), digit(20, 42, whole["pixels"][0], 84)]
    parts += [text(20, 160, "given the pixels of"), digit(20, 172, damaged["pixels"][0], 84, RED)]
    for title, item, x in (("whole: reliability of", whole, 190), ("pixels swapped:", damaged, 560)):
        parts.append(text(x, 30, title))
        for number, (name, value) in enumerate(zip(digits.views, hasher.reliability(item)[0], strict=True)):
            y = 44 + 28 * number
            colour = BLUE if value >= 0.01 else RED
            parts += [text(x + 88, y + 15, name, size=13, anchor="end"), box(x + 96, y, 200, 20, PALE)]
            parts += [box(x + 96, y, max(200 * value, 2), 20, colour), text(x + 302, y + 15, f"{value:.3f}", size=13)]
    parts.append(text(190, 190, "with the pixels swapped, the nearest are"))
    database = digits.views[digits.database_rows]
    for number, (name, model) in enumerate((("QuorumHasher", hasher), ("ITQHasher", plain))):
        index = qh.HammingIndex(n_bits=N_BITS)
        index.add(model.transform(database))
        found = index.search(model.transform(damaged), k=5).ids[0]
        parts.append(nearest_kinds(190, 202 + 68 * number, name, found, digits, kind))
    parts += [box(690, 206, 14, 14, "none", BLUE, 3), text(712, 218, f"a {kind}, or a view that is believed", size=12)]
    parts += [box(690, 232, 14, 14, "none", RED, 3), text(712, 244, "another digit, or p below 0.01", size=12)]
    return drawing(
        "One view of an item is wrong: its reliability falls, and the right items are found", 960, 348, *parts
    )


def code_picture(digits: qh.Dataset, hasher: qh.QuorumHasher) -> str:
    """The bits of a query, of the item nearest to it, and of the nearest item of another kind."""
    row = digits.query_rows[0]
    query = hasher.transform(digits.views[[row]])
    codes = hasher.transform(digits.views[digits.database_rows])
    distances = qh.hamming_distances(query, codes)[0]
    order = np.argsort(distances, kind="stable")
    labels = digits.labels[digits.database_rows]
    near, far = order[0], next(i for i in order if labels[i] != digits.labels[row])
    shown = (("query", row, query[0], None), ("nearest", digits.database_rows[near], codes[near], near),
             ("nearest other digit", digits.database_rows[far], codes[far], far))  # fmt: skip
    bits = np.unpackbits(query[0])
    parts = []
    for number, (name, item, code, place) in enumerate(shown):
        y = 20 + 84 * number
        parts += [digit(150, y, digits.views["pixels"][item]), text(140, y + 33, name, size=13, anchor="end")]
        for i, bit in enumerate(np.unpackbits(code)):
            differs = bit != bits[i]
            parts.append(box(220 + 10 * i, y + 16, 8, 24, (RED if differs else INK) if bit else "#ffffff",
                             RED if differs else "#9ca3af", 2 if differs else 1))  # fmt: skip
        told = code.tobytes().hex(" ") if place is None else f"{distances[place]} bits differ"
        parts.append(text(220, y + 58, told, size=13, fill="#4b5563"))
    return drawing(
        "Three codes of 64 bits: the query, the nearest item, the nearest item of another digit", 880, 264, *parts
    )


def main() -> None:
    """Fit once, draw three files."""
    digits = qh.load_dataset("digits")
    training = digits.views[digits.train_rows]
    hasher = qh.QuorumHasher(n_bits=N_BITS).fit(training)
    pictures = {
        "path": path_picture(training, hasher),
        "quorum": quorum_picture(digits, hasher),
        "code": code_picture(digits, hasher),
    }
    for name, picture in pictures.items():
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
