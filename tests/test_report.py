"""What a reader of the page or the terminal must be able to rely on; no stored outputs."""

import base64
import io
import math
import os
import re
import struct
import xml.etree.ElementTree as ET
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from quorumhash import report as report_module
from quorumhash.errors import ParameterError
from quorumhash.report import Chart, Curve, Picture, Report, Strip, Table, print_table, write_report

EVIL = "<script>alert('x & \"y\"')</script>"
RNG = np.random.default_rng(0)
DASH = "\N{EN DASH}"
PIXELS = RNG.integers(0, 256, (8, 6)).astype(np.uint8)


def write_page(folder, **parts):
    path = folder / "report.html"
    write_report(path, Report(**{"title": "Title", "lead": "Lead.", **parts}))
    return path.read_text(encoding="utf-8")


def read_main(page):
    """The body as a tree: everything we write is well-formed XML too."""
    return ET.fromstring(page[page.index("<main>") : page.index("</main>") + len("</main>")])


def read_svg(folder, *curves, **options):
    chart = Chart("Chart", "bits", "MAP", curves, **options)
    return read_main(write_page(folder, charts=(chart,))).find(".//svg[@class='chart']")


def positions(svg, label):
    """Where the points of a curve are drawn, in the order of the file."""
    points = [point for point in svg.iter("g") if point.get("class") == "point"]
    own = [point for point in points if point.find("title").text.startswith(f"{label}: ")]
    return [tuple(map(float, re.findall(r"-?[\d.]+", point.get("transform")))) for point in own]


def tick_heights(svg):
    """Height of each tick on the y axis by its label."""
    ticks = svg.findall("text[@class='tick'][@text-anchor='end']")
    return {tick.text: float(tick.get("y")) for tick in ticks}


def decode_png(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, place + 8 + length)
        assert checksum == zlib.crc32(kind + content)
        chunks[kind] = content
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 0, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def pictures_of(main):
    sources = [image.get("src") for image in main.iter("img")]
    return [decode_png(base64.b64decode(source.removeprefix("data:image/png;base64,"))) for source in sources]


def full_report(text):
    """A report with every part, `text` wherever a caller may put words."""
    table = Table(text, (text, "MAP"), ((text, 0.5), ("chance", 0.1)), text, best_columns=("MAP",))
    chart = Chart(text, text, text, (Curve(text, (16, 32), (0.1, 0.2)),), caption=text)
    strip = Strip(
        text, ((Picture(PIXELS, text, None), Picture(PIXELS, text, True), Picture(PIXELS, text, False)),), text
    )
    empty = Chart(text, text, text, (Curve(text, (1,), (None,)),))
    return {
        "title": text,
        "lead": text,
        "tables": (table,),
        "charts": (chart, empty),
        "strips": (strip,),
        "facts": ((text, text),),
    }


class Outline(HTMLParser):
    """Checks that tags close in order and remembers tags, attributes and text."""

    VOID = frozenset({"meta", "img"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


# The page


def test_page_is_well_formed_and_every_label_is_escaped(tmp_path):
    page = write_page(tmp_path, **full_report(EVIL))
    outline = Outline()
    outline.feed(page)
    outline.close()
    assert outline.open == []
    assert "script" not in outline.tags
    assert EVIL not in page
    assert outline.text.count(EVIL) >= 17
    assert len(list(read_main(page).iter("svg"))) > 1


def test_page_refers_to_nothing_outside_itself(tmp_path):
    page = write_page(tmp_path, **full_report("words"))
    assert not re.search(r"https?:|//|url\(|@import|<link|<script|<iframe", re.sub(r"base64,[\w+/=]+", "", page))
    outline = Outline()
    outline.feed(page)
    assert all(value.startswith("data:image/png") for name, value in outline.attributes if name in ("src", "href"))
    assert not any(name.startswith("on") for name, _ in outline.attributes)
    assert ("content", "default-src 'none'; img-src data:; style-src 'unsafe-inline'") in outline.attributes


def test_empty_report_has_title_and_lead_only(tmp_path):
    main = read_main(write_page(tmp_path, lead="One.\n\nTwo."))
    assert [(part.tag, part.text) for part in main] == [("h1", "Title"), ("p", "One."), ("p", "Two.")]


def test_facts_are_a_definition_list_at_the_end(tmp_path):
    main = read_main(write_page(tmp_path, **{**full_report("x"), "facts": (("seed", "0"), ("data", "digits"))}))
    terms = main[-1].find("dl")
    assert [part.text for part in terms] == ["seed", "0", "data", "digits"]


def test_text_that_is_no_unicode_is_written_all_the_same(tmp_path):
    assert "broken ? name" in write_page(tmp_path, facts=(("file", "broken \udcff name"),))


# Writing


@pytest.mark.parametrize("stop", [RuntimeError("stop"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, stop):
    old = write_page(tmp_path, lead="old")

    def fail(descriptor):
        raise stop

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(stop)):
        write_page(tmp_path, lead="new")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == old
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_drawing_that_fails_leaves_the_old_file(tmp_path):
    old = write_page(tmp_path, lead="old")
    with pytest.raises(ValueError, match="could not convert"):
        write_page(tmp_path, charts=(Chart("t", "x", "y", (Curve("a", ("no number",), (1,)),)),))
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == old


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    path = tmp_path / "nowhere" / "report.html"
    with pytest.raises(ParameterError, match=r"nowhere.*give a file name in a folder that exists") as caught:
        write_report(path, Report("t", "l"))
    assert str(path) in str(caught.value)


def test_a_folder_that_refuses_is_named(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(report_module, "replacing", refuse)  # root may write everywhere, so chmod proves nothing
    with pytest.raises(ParameterError, match=r"report\.html.*Permission denied.*may write to"):
        write_report(tmp_path / "report.html", Report("t", "l"))


def test_a_path_that_is_a_folder_is_named(tmp_path):
    with pytest.raises(ParameterError, match="folder that exists"):
        write_report(tmp_path, Report("t", "l"))


# Tables

TABLE = Table(
    "MAP",
    ("method", "clean", "damaged", "kind", "items"),
    (
        ("quorum", 0.71, 0.69, "ours", 1797),
        ("itq", 0.7104, None, "rival", 1797),
        ("lsh", 0.5, math.nan, "rival", 12),
        ("float search", 0.71, 0.9, DASH, None),
    ),
    note="A note.",
    best_columns=("clean", "damaged"),
    reference_rows=("float search",),
)


def rows_of(page):
    return {row[0].text or row[0][0].text: row for row in read_main(page).iter("tr")}


def test_numbers_have_three_decimals_and_stand_right(tmp_path):
    row = rows_of(write_page(tmp_path, tables=(TABLE,)))["lsh"]
    assert [cell.text for cell in row] == ["lsh", "0.500", DASH, "rival", "12"]
    assert [cell.get("class") for cell in row] == ["left", "right", "right", "left", "right"]


def test_column_names_stand_over_their_values(tmp_path):
    head = rows_of(write_page(tmp_path, tables=(TABLE,)))["method"]
    assert [cell.get("class") for cell in head] == ["left", "right", "right", "left", "right"]


def test_missing_values_are_a_dash(tmp_path):
    rows = rows_of(write_page(tmp_path, tables=(TABLE,)))
    assert rows["itq"][2].text == rows["lsh"][2].text == rows["float search"][4].text == DASH


def test_best_is_bold_and_never_in_a_reference_row(tmp_path):
    rows = rows_of(write_page(tmp_path, tables=(TABLE,)))
    bold = {(label, place) for label, row in rows.items() for place, cell in enumerate(row) if len(cell)}
    assert bold == {("quorum", 1), ("itq", 1), ("quorum", 2)}  # 0.710 and 0.7104 look the same
    assert rows["float search"].get("class") == "reference"
    assert rows["quorum"].get("class") != "reference"


def test_best_may_be_the_smallest(tmp_path):
    table = Table("s", ("m", "fit"), (("a", 2.0), ("b", 1.0)), best="smallest", best_columns=("fit",))
    rows = rows_of(write_page(tmp_path, tables=(table,)))
    assert [label for label, row in rows.items() if row.find(".//strong") is not None] == ["b"]


def test_a_number_close_below_zero_has_no_sign(tmp_path):
    rows = rows_of(write_page(tmp_path, tables=(Table("t", ("m", "x"), (("a", -1e-9),)),)))
    assert rows["a"][1].text == "0.000"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rows": (("a", 1.0), ("b",))}, "one value per column"),
        ({"best": "highest"}, "largest"),
        ({"best_columns": ("z",)}, "among the columns"),
    ],
)
def test_tables_that_cannot_be_drawn_are_refused(change, reason):
    with pytest.raises(ParameterError, match=reason):
        Table(**{"title": "t", "columns": ("m", "x"), "rows": (), **change})


def terminal(table, width=80, **options):
    out = io.StringIO()
    print_table(table, Console(file=out, width=width, **options))
    return out.getvalue()


def test_terminal_table_fits_eighty_columns_and_keeps_numbers_whole():
    names = tuple(f"damaged {bits}" for bits in range(16, 23))
    label = "the paper's method, corrected and run to the end"
    text = terminal(Table("T", ("method", *names), ((label, *RNG.random(7)),) * 9))
    assert max(map(len, text.splitlines())) <= 80
    assert len(re.findall(r"\d\.\d{3}\b", text)) == 63


def test_terminal_table_shows_words_as_they_are_and_marks_best():
    table = Table("T", ("m", "x"), (("[bold]a[/bold]", 0.5), ("chance", 0.9)), "[red]", "", ("x",), ("chance",))
    text = terminal(table, force_terminal=True, color_system="truecolor", legacy_windows=False)
    assert "[bold]a[/bold]" in text
    assert "[red]" in text
    assert re.search(r"\x1b\[1m0\.500", text)
    assert re.search(r"\x1b\[2m[^\n]*0\.900", text)


def test_terminal_and_page_show_the_same_values():
    text = terminal(TABLE)
    assert [len(re.findall(re.escape(part), text)) for part in ("0.710", DASH, "1,797", "A note.")] == [3, 4, 2, 1]


# Charts


def test_larger_values_are_higher_and_the_order_of_x_is_kept(tmp_path):
    svg = read_svg(tmp_path, Curve("a", (16, 32, 64), (0.3, 0.9, 0.5)))
    (x16, low), (x32, top), (x64, middle) = positions(svg, "a")
    assert top < middle < low
    assert math.isclose((x64 - x32) / (x32 - x16), 2, rel_tol=1e-2)


def test_code_lengths_are_ticks_at_their_values(tmp_path):
    svg = read_svg(tmp_path, Curve("a", (16, 32, 64), (0.3, 0.9, 0.5)))
    ticks = svg.findall("text[@class='tick'][@text-anchor='middle']")
    assert [tick.text for tick in ticks] == ["16", "32", "64"]
    assert [float(tick.get("x")) for tick in ticks] == pytest.approx([x for x, _ in positions(svg, "a")], abs=0.1)


def test_points_lie_at_the_height_their_ticks_say(tmp_path):
    svg = read_svg(tmp_path, Curve("a", (1, 2), (0.2, 0.4)), y_min=0, y_max=1)
    ticks = tick_heights(svg)
    (_, low), (_, high) = positions(svg, "a")
    assert low - high == pytest.approx(ticks["0.2"] - ticks["0.4"], abs=0.2)
    assert {"0.0", "1.0"} <= set(ticks)


def test_log_axis_gives_equal_ratios_equal_steps(tmp_path):
    svg = read_svg(tmp_path, Curve("a", (1, 2, 3, 4), (1e-6, 1e-4, 1e-2, 1)), log_y=True)
    steps = np.diff([y for _, y in positions(svg, "a")])
    assert (steps < 0).all()
    assert steps == pytest.approx(steps[0], abs=0.05)


def test_log_axis_skips_what_has_no_logarithm(tmp_path):
    assert len(positions(read_svg(tmp_path, Curve("a", (1, 2, 3), (0, -1, 5)), log_y=True), "a")) == 1


def test_missing_points_leave_a_gap(tmp_path):
    svg = read_svg(tmp_path, Curve("a", range(6), (1, 2, None, 3, math.inf, 4)))
    line = next(path for path in svg.iter("path") if path.get("class").startswith("line"))
    assert line.get("d").count("M") == 3
    assert line.get("d").count("L") == 1
    assert len(positions(svg, "a")) == 4


def test_nothing_to_draw_is_said(tmp_path):
    charts = (Chart("t", "x", "y", (Curve("a", (1, 2), (None, math.nan)),)), Chart("t", "x", "y", ()))
    main = read_main(write_page(tmp_path, charts=charts, strips=(Strip("s", ()),)))
    assert [part.text for part in main.iter("p")][1:] == ["nothing to draw"] * 3
    assert main.find(".//svg") is None


def test_points_beyond_given_limits_are_not_drawn_outside(tmp_path):
    svg = read_svg(tmp_path, Curve("a", (1, 2, 3), (0.1, 0.5, 2.0)), y_min=0.2, y_max=1)
    assert len(positions(svg, "a")) == 1


@pytest.mark.parametrize("limits", [{"y_min": 0.15, "y_max": 0.95}, {"y_min": 3e-4, "y_max": 0.5, "log_y": True}])
def test_ticks_lie_within_given_limits(tmp_path, limits):
    svg = read_svg(tmp_path, Curve("a", (1, 2), (limits["y_min"], limits["y_max"])), **limits)
    (_, bottom), (_, top) = positions(svg, "a")
    text_offset = 5
    assert all(top <= height <= bottom + text_offset for height in tick_heights(svg).values())


def test_the_first_curve_lies_on_top(tmp_path):
    svg = read_svg(tmp_path, Curve("ours", (1, 2), (1, 2)), Curve("other", (1, 2), (1, 2)))
    labels = [point.find("title").text.split(":")[0] for point in svg.iter("g") if point.get("class") == "point"]
    assert labels == ["other", "other", "ours", "ours"]


def test_every_curve_has_its_own_line_and_marker(tmp_path):
    curves = tuple(Curve(f"c{number}", (1, 2), (number, number)) for number in range(24))
    main = read_main(write_page(tmp_path, charts=(Chart("t", "x", "y", curves),)))
    samples = [entry.find("svg") for entry in main.iter("li")]
    looks = [(sample[0].get("stroke-dasharray"), sample[1].get("d")) for sample in samples]
    assert len(set(looks)) == 24
    assert len({marker for _, marker in looks[:8]}) == 8
    assert len({sample.get("class") for sample in samples[:7]}) == 7


def test_legend_and_line_of_a_curve_look_the_same(tmp_path):
    curves = tuple(Curve(f"c{number}", (1, 2), (number, number)) for number in range(5))
    main = read_main(write_page(tmp_path, charts=(Chart("t", "x", "y", curves),)))
    lines = [path for path in main.iter("path") if "line k" in path.get("class")]
    in_plot = {path.get("class").split()[1]: path.get("stroke-dasharray") for path in lines}
    in_legend = {entry[0].get("class"): entry[0][0].get("stroke-dasharray") for entry in main.iter("li")}
    assert in_plot == in_legend
    assert [entry[0].tail.strip() for entry in main.iter("li")] == [f"c{number}" for number in range(5)]


def test_chart_is_described_in_words(tmp_path):
    svg = read_svg(tmp_path, Curve("quorum", (16, 64), (0.61, 0.74)))
    assert svg.get("role") == "img"
    assert [svg[0].tag, svg[1].tag] == ["title", "desc"]
    assert "quorum: 0.61 at 16 to 0.74 at 64" in svg[1].text


def test_long_curves_are_drawn_whole_with_few_markers(tmp_path):
    svg = read_svg(tmp_path, Curve("a", np.arange(5000), np.sqrt(np.arange(5000))))
    line = next(path for path in svg.iter("path") if path.get("class").startswith("line"))
    assert line.get("d").count("L") == 4999
    assert sum(path.get("class") == "marker" for path in svg.iter("path")) <= 12
    assert len(positions(svg, "a")) <= 200


@pytest.mark.parametrize(("low", "high"), [(0.41, 0.79), (3, 1234), (-5, 5), (0.0011, 0.0013), (1e7, 3e7)])
@pytest.mark.parametrize("log_y", [False, True])
def test_ticks_are_round_and_hold_the_values(tmp_path, low, high, log_y):
    low = abs(low) / 2 if log_y else low
    svg = read_svg(tmp_path, Curve("a", (1, 2), (low, high)), log_y=log_y)
    ticks = tick_heights(svg)
    heights = [y for _, y in positions(svg, "a")]
    assert 3 <= len(ticks) <= 9
    assert min(ticks.values()) - 5 <= min(heights)
    assert max(heights) <= max(ticks.values())
    assert all(
        len(label.split("·")[0].replace(",", "").replace(".", "").strip("-0⁰¹²³⁴⁵⁶⁷⁸⁹⁻")) <= 3 for label in ticks
    )


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.tuples(st.floats(), st.floats()), max_size=6),
    log_y=st.booleans(),
    limit=st.none() | st.floats(1e-3, 1e3),
    is_upper=st.booleans(),
)
def test_any_numbers_give_a_chart_with_every_point_inside(tmp_path_factory, values, log_y, limit, is_upper):
    x, y = zip(*values, strict=True) if values else ((), ())
    limits = {"y_max" if is_upper else "y_min": limit}
    svg = read_svg(tmp_path_factory.mktemp("page"), Curve("a", x, y), log_y=log_y, **limits)
    if svg is not None:
        width, height = map(float, svg.get("viewBox").split()[2:])
        assert all(0 < across < width and 0 < down < height for across, down in positions(svg, "a"))
        assert "nan" not in ET.tostring(svg, encoding="unicode")


@pytest.mark.parametrize(
    "limits", [{"y_min": 1, "y_max": 1}, {"y_min": math.nan}, {"y_min": 0, "log_y": True}, {"y_max": -1, "log_y": True}]
)
def test_limits_that_make_no_axis_are_refused(limits):
    with pytest.raises(ParameterError, match="chart 't'"):
        Chart("t", "x", "y", (), **limits)


def test_curves_with_unequal_lengths_are_refused():
    with pytest.raises(ParameterError, match="curve 'a'"):
        Curve("a", (1, 2), (1,))


# Strips


def test_pictures_decode_to_their_pixels(tmp_path):
    other = RNG.integers(0, 256, (3, 5)).astype(np.uint8)
    strip = Strip("s", ((Picture(PIXELS, "a", None), Picture(other, "b", True)),))
    first, second = pictures_of(read_main(write_page(tmp_path, strips=(strip,))))
    np.testing.assert_array_equal(first, PIXELS)
    np.testing.assert_array_equal(second, other)


def test_other_numbers_are_stretched_from_black_to_white(tmp_path):
    values = np.array([[0.0, 4.0], [16.0, np.nan]])
    pictures = (Picture(values, "a", None), Picture(np.ones((2, 2)), "b", None), Picture(np.eye(2) > 0, "c", None))
    grey, flat, mask = pictures_of(read_main(write_page(tmp_path, strips=(Strip("s", (pictures,)),))))
    assert grey.tolist() == [[0, 64], [255, 0]]
    assert not flat.any()
    assert mask.tolist() == [[255, 0], [0, 255]]


def test_right_and_wrong_differ_in_shape_words_and_border(tmp_path):
    row = (Picture(PIXELS, "3", None), Picture(PIXELS, "3", True), Picture(PIXELS, "8", np.False_))
    page = write_page(tmp_path, strips=(Strip("s", (row,)),))
    query, right, wrong = read_main(page).iter("td")
    assert query.find(".//path") is None
    assert right.find(".//path").get("d") != wrong.find(".//path").get("d")
    assert [cell.find("img").get("alt") for cell in (query, right, wrong)] == [
        "query: 3",
        "found 1: 3, right",
        "found 2: 8, wrong",
    ]
    assert right.get("class") != wrong.get("class")
    assert "".join(wrong.find("div").itertext()).strip() == "8"
    assert "image-rendering: pixelated" in page


def test_a_query_without_neighbours_is_shown_alone(tmp_path):
    main = read_main(write_page(tmp_path, strips=(Strip("s", ((Picture(PIXELS, "3", None),),)),)))
    assert len(list(main.iter("img"))) == 1


@pytest.mark.parametrize("shape", [(8,), (8, 8, 3), (0, 8)])
def test_pictures_must_be_grey_and_flat(shape):
    with pytest.raises(ParameterError, match="2-D"):
        Picture(np.zeros(shape), "a", None)
