"""Line charts as SVG and grey pictures as PNG, written by hand so that a report needs no plotting library."""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorumhash.errors import ParameterError

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 440, 290  # units of the viewBox; the page scales them
TOP, BOTTOM, RIGHT = 34, 44, 14
CHARACTER = 7.2  # an upper bound for the width of a digit at the chart's font size
MAX_MARKERS, MAX_HOVERS = 12, 200  # per curve
N_COLOURS = 7
SMALLEST, LARGEST = 1e-150, 1e150  # beyond them differences of values leave the range of a float

# Seven, eight and five have no common factor: colour, marker and dash repeat together only after 280 curves.
DISC, SQUARE, TRIANGLE = "M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0z", "M-3.6,-3.6h7.2v7.2h-7.2z", "M0,-4.8L4.6,3.6H-4.6z"
CROSS, DIAMOND, WEDGE = "M-4,-4L4,4M-4,4L4,-4", "M0,-5.2L5.2,0L0,5.2L-5.2,0z", "M0,4.8L4.6,-3.6H-4.6z"
PLUS, BAR = "M-5,0H5M0,-5V5", "M-2,-5H2V5H-2z"
MARKERS = (DISC, SQUARE, TRIANGLE, CROSS, DIAMOND, WEDGE, PLUS, BAR)
DASHES = ("none", "7 5", "0.5 4.5", "9 5 0.5 5", "3 5")  # ends are round: a gap looks two units shorter


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a chart; values that are missing or not finite leave a gap.

    >>> Curve("quorum", (16, 32, 64), (0.61, None, 0.74)).label
    'quorum'
    """

    label: str
    x: ArrayLike
    y: ArrayLike

    def __post_init__(self) -> None:
        shapes = np.shape(self.x), np.shape(self.y)
        if shapes[0] != shapes[1] or len(shapes[0]) != 1:
            raise ParameterError(f"curve {self.label!r}: x and y must be lists of one length, got shapes {shapes}")


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves over common axes; limits that are not given are the next round numbers around the values.

    >>> curve = Curve("quorum", (16, 32, 64), (0.61, 0.69, 0.74))
    >>> Chart("Quality by code length", "bits", "MAP", (curve,), y_max=1.0).log_y
    False
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    caption: str = ""
    y_min: float | None = None
    y_max: float | None = None
    log_y: bool = False

    def __post_init__(self) -> None:
        given = [limit for limit in (self.y_min, self.y_max) if limit is not None]
        if not all(map(math.isfinite, given)) or (len(given) == 2 and given[0] >= given[1]):
            raise ParameterError(f"chart {self.title!r}: y_min must lie below y_max, both finite, got {given}")
        if self.log_y and min(given, default=1.0) < SMALLEST:
            raise ParameterError(f"chart {self.title!r}: a limit of a log axis must be positive, got {min(given)}")


@dataclass(frozen=True)
class Axis:
    """Which values lie between two places on the paper, and which of them are written beside it."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    is_log: bool = False

    def place(self, values: ArrayLike) -> Floats:
        """Coordinates of the values, in units of the viewBox."""
        scale = np.log10 if self.is_log else np.asarray
        low, high, inner = (np.asarray(scale(value), dtype=float) for value in (self.low, self.high, values))
        return np.asarray(self.start + (inner - low) / (high - low) * (self.end - self.start))


def draw_chart(chart: Chart) -> str:
    """The chart as one SVG element, without its legend; an empty text when no point can be drawn."""
    points = [_drawable(curve, chart.log_y) for curve in chart.curves]
    x, y = np.concatenate([np.empty((2, 0)), *points], axis=1)
    if not np.isfinite(x).any():
        return ""
    y_axis = _y_axis(chart, y[np.isfinite(y)])
    left = CHARACTER * max(map(len, y_axis.labels), default=0) + 12
    x_axis = _x_axis(x[np.isfinite(x)], left)
    order = list(enumerate(points))[::-1]  # the first curve is drawn last, on top of the others
    lines = "".join(_draw_line(number, x_axis.place(x), y_axis.place(y)) for number, (x, y) in order)
    dots = "".join(_draw_points(chart.curves[number].label, number, xy, (x_axis, y_axis)) for number, xy in order)
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}"><title>{escape(chart.title)}</title>'
        f"<desc>{escape(_describe(chart, points))}</desc>{_draw_axes(chart, x_axis, y_axis)}"
        f"{_clip(lines, left)}{dots}</svg>"
    )


def draw_legend(chart: Chart) -> str:
    """One entry per curve, in the order of the curves: a piece of its line, its marker, its label."""
    entries = []
    for number, curve in enumerate(chart.curves):
        is_empty = not np.isfinite(_drawable(curve, chart.log_y)).any()
        sample = (
            f'<svg class="k{number % N_COLOURS}" viewBox="-18 -7 36 14" width="36" height="14" aria-hidden="true">'
            f'<path class="line" d="M-17,0H17"{_dash(number)}/>{_marker(number)}</svg>'
        )
        entries.append(f"<li>{sample} {escape(curve.label)}{' (no values)' if is_empty else ''}</li>")
    return f'<ul class="legend">{"".join(entries)}</ul>'


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """A grey PNG file of a 2-D uint8 array.

    >>> encode_png(np.zeros((8, 8), dtype=np.uint8))[1:4]
    b'PNG'
    """
    n_rows, n_columns = pixels.shape
    header = struct.pack(">IIBBBBB", n_columns, n_rows, 8, 0, 0, 0, 0)  # eight bits, grey, no interlace
    lines = np.pad(pixels, ((0, 0), (1, 0))).tobytes()  # every line begins with its filter: none
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def as_grey(pixels: ArrayLike) -> NDArray[np.uint8]:
    """Grey levels: uint8 as it is, anything else stretched from its smallest (black) to its largest value (white)."""
    if np.asarray(pixels).dtype == np.uint8:
        return np.asarray(pixels)
    values = np.asarray(pixels, dtype=float)
    is_known = np.isfinite(values)
    low, high = (values[is_known].min(), values[is_known].max()) if is_known.any() else (0.0, 1.0)
    grey = np.where(is_known, values - low, 0.0) * (255.0 / (high - low) if high > low else 0.0)
    return np.rint(grey).astype(np.uint8)


def _drawable(curve: Curve, is_log: bool) -> Floats:
    """Two rows, x and y, with NaN in both where there is nothing to draw."""
    xy = np.array([curve.x, curve.y], dtype=float)
    is_drawn = (np.abs(xy) < LARGEST).all(axis=0) & ((xy[1] > SMALLEST) | (not is_log))
    return np.where(is_drawn, xy, np.nan)


def _y_axis(chart: Chart, values: Floats) -> Axis:
    low = float(values.min()) if chart.y_min is None else chart.y_min
    high = float(values.max()) if chart.y_max is None else chart.y_max
    if _is_flat(low, high):
        fixed = low if chart.y_max is None else high
        margin = 0.1 * abs(fixed) or 1.0
        low = fixed - margin if chart.y_min is None else low
        high = fixed + margin if chart.y_max is None else high
    ticks = _log_ticks(low, high) if chart.log_y and high / low > 3 else _round_ticks(low, high)
    low = ticks[0] if chart.y_min is None else low
    high = ticks[-1] if chart.y_max is None else high
    ticks = _inside(ticks, low, high)
    return Axis(low, high, HEIGHT - BOTTOM, TOP, ticks, _tick_labels(ticks), chart.log_y)


def _x_axis(values: Floats, left: float) -> Axis:
    """Ticks at the values themselves where these are a few whole numbers (bits), else at round numbers."""
    low, high = float(values.min()), float(values.max())
    margin = 0.03 * (high - low) if not _is_flat(low, high) else 0.1 * abs(high) or 1.0
    start, end = left, float(WIDTH - RIGHT)
    whole = sorted({float(value) for value in values}, reverse=True)
    if len(whole) > 8 or any(value % 1 for value in whole):
        ticks = _inside(_round_ticks(low - margin, high + margin), low - margin, high + margin)
    else:
        ticks = ()
        for value in whole:
            room = (ticks[0] - value) / (high - low + 2 * margin) * (end - start) if ticks else math.inf
            if room > CHARACTER * len(f"{value:,.0f}") + 6:
                ticks = (value, *ticks)
    return Axis(low - margin, high + margin, start, end, ticks, _tick_labels(ticks))


def _is_flat(low: float, high: float) -> bool:
    return high - low <= 1e-9 * max(abs(low), abs(high)) + SMALLEST


def _round_ticks(low: float, high: float, n_steps: int = 5) -> tuple[float, ...]:
    """About `n_steps` steps of 1, 2 or 5 times a power of ten, just far enough to hold both limits."""
    power = 10.0 ** math.floor(math.log10((high - low) / n_steps))
    ratio = (high - low) / n_steps / power
    step = power * (1 if ratio < 1.5 else 2 if ratio < 3.5 else 5 if ratio < 7.5 else 10)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(float(f"{count * step:.12g}") for count in range(first, last + 1))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten around the limits; 1, 2 and 5 times them when there are few; every second, third … when many."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    every = math.ceil((last - first) / 7)
    powers = range(first - first % every, last + every, every)
    ticks = [float(f"{factor}e{power}") for power in powers for factor in ((1, 2, 5) if last - first <= 2 else (1,))]
    start = max(tick for tick in ticks if tick <= low * (1 + 1e-9))
    end = min(tick for tick in ticks if tick >= high * (1 - 1e-9))
    return tuple(tick for tick in ticks if start <= tick <= end)


def _inside(ticks: tuple[float, ...], low: float, high: float) -> tuple[float, ...]:
    return tuple(tick for tick in ticks if low - 1e-9 * abs(low) <= tick <= high + 1e-9 * abs(high))


def _tick_labels(ticks: tuple[float, ...]) -> tuple[str, ...]:
    """Plain numbers with as many decimals as the finest step needs, or powers of ten where these would be long."""
    sizes = [abs(tick) for tick in ticks if tick]
    if sizes and (max(sizes) >= 1e6 or max(sizes) < 1e-3 or min(sizes) < 1e-4):
        return tuple(_power_label(tick) for tick in ticks)
    plain = [f"{tick:,.10g}" for tick in ticks]
    if len(ticks) > 2 and not math.isclose(ticks[1] - ticks[0], ticks[-1] - ticks[-2], rel_tol=1e-6):
        return tuple(plain)
    n_decimals = max((len(text.partition(".")[2]) for text in plain), default=0)
    return tuple(f"{tick:,.{n_decimals}f}" for tick in ticks)


def _power_label(value: float) -> str:
    mantissa, _, exponent = f"{value:.9e}".partition("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = f"{float(mantissa):g}"
    return "0" if factor == "0" else power if factor == "1" else f"{factor}·{power}"


def _draw_axes(chart: Chart, x_axis: Axis, y_axis: Axis) -> str:
    left, right, bottom = x_axis.start, x_axis.end, HEIGHT - BOTTOM
    parts = [f'<text x="{left:.1f}" y="16">{escape(chart.y_label)}</text>']
    for place, label in zip(y_axis.place(y_axis.ticks), y_axis.labels, strict=True):
        parts.append(f'<path class="grid" d="M{left:.1f},{place:.1f}H{right:.1f}"/>')
        parts.append(f'<text class="tick" x="{left - 6:.1f}" y="{place + 4.5:.1f}" text-anchor="end">{label}</text>')
    for place, label in zip(x_axis.place(x_axis.ticks), x_axis.labels, strict=True):
        parts.append(f'<path class="grid" d="M{place:.1f},{TOP}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{place:.1f}" y="{bottom + 17}" text-anchor="middle">{label}</text>')
    parts.append(f'<path class="axis" d="M{left:.1f},{bottom}H{right:.1f}"/>')
    middle, name = (left + right) / 2, escape(chart.x_label)
    return "".join(parts) + f'<text x="{middle:.1f}" y="{HEIGHT - 7}" text-anchor="middle">{name}</text>'


def _clip(lines: str, left: float) -> str:
    """The lines in an inner <svg> of the same scale, which cuts them off where the plot ends."""
    x, y, width, height = f"{left:.2f}", TOP - 2, f"{WIDTH - left:.2f}", HEIGHT - TOP - BOTTOM + 4
    return f'<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}">{lines}</svg>'


def _draw_line(number: int, x: Floats, y: Floats) -> str:
    """One path; `h0` after each move lets a point between two gaps appear as a dot."""
    commands, is_pen_down = [], False
    for across, down in zip(x, y, strict=True):
        if math.isfinite(across):
            commands.append(f"L{across:.2f},{down:.2f}" if is_pen_down else f"M{across:.2f},{down:.2f}h0")
        is_pen_down = math.isfinite(across)
    return f'<path class="line k{number % N_COLOURS}" d="{"".join(commands)}"{_dash(number)}/>'


def _draw_points(label: str, number: int, xy: Floats, axes: tuple[Axis, Axis]) -> str:
    """Points with their values as hover text; on long curves only some bear a marker, not the same for every curve."""
    shown = xy[:, (xy[1] >= axes[1].low) & (xy[1] <= axes[1].high)]
    shown = shown[:, :: math.ceil(max(shown.shape[1], 1) / MAX_HOVERS)]
    every = math.ceil(max(shown.shape[1], 1) / MAX_MARKERS)
    parts, places = [], zip(*shown, axes[0].place(shown[0]), axes[1].place(shown[1]), strict=True)
    for position, (x, y, across, down) in enumerate(places):
        marker = _marker(number) if position % every == number % every else ""
        hover = f'<title>{escape(label)}: {y:.4g} at {x:.6g}</title><circle class="hover" r="7"/>'
        parts.append(f'<g class="point" transform="translate({across:.2f},{down:.2f})">{hover}{marker}</g>')
    return f'<g class="k{number % N_COLOURS}">{"".join(parts)}</g>'


def _marker(number: int) -> str:
    return f'<path class="marker" d="{MARKERS[number % len(MARKERS)]}"/>'


def _dash(number: int) -> str:
    return f' stroke-dasharray="{DASHES[number % len(DASHES)]}"'


def _describe(chart: Chart, points: list[Floats]) -> str:
    sentences = [f"{chart.y_label} against {chart.x_label}."]
    for curve, xy in zip(chart.curves, points, strict=True):
        known = xy[:, np.isfinite(xy[0])]
        if known.size:
            (x, last_x), (y, last_y) = known[:, [0, -1]]
            sentences.append(f"{curve.label}: {y:.4g} at {x:.6g} to {last_y:.4g} at {last_x:.6g}.")
    return " ".join(sentences)
