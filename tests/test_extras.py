"""Every extra installs to something that works: its modules import, and the report's page shows in a real browser."""

import importlib
import shutil
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest

from quorumhash.doctor import EXTRAS, examine
from quorumhash.report import Chart, Curve, Picture, Report, Strip, Table, write_report

pytestmark = pytest.mark.extra

ROOT = Path(__file__).parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# alone on the machine: no sandbox (CI runs as root), no graphics card, no calls home
FLAGS = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
         "disable-component-update", "disable-sync", "hide-scrollbars")  # fmt: skip
BLUE, PAPER = (0x1B, 0x7F, 0xE0), (255, 255, 255)  # the first curve and the page, in the light


def test_doctor_knows_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*EXTRAS} == {*project["optional-dependencies"]} - {"test", "all"}


@pytest.mark.parametrize("extra", EXTRAS)
def test_extra_imports(extra):
    for module in EXTRAS[extra]:
        importlib.import_module(module)
    assert examine()[f"extra {extra}"] == "yes"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A small report as the browser has it: the document's text, and a screenshot (height, width, 3)."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium or Chrome on the PATH (Debian: apt-get install chromium)")
    image = pytest.importorskip("PIL.Image", reason="the extra serve (pillow) is not installed")
    folder = tmp_path_factory.mktemp("browser")
    write_report(folder / "report.html", small_report())
    command = [browser, *(f"--{flag}" for flag in FLAGS), f"--user-data-dir={folder / 'profile'}",
               "--window-size=1000,1400", f"--screenshot={folder / 'page.png'}", "--dump-dom",
               (folder / "report.html").as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    return done.stdout.decode("utf-8"), np.asarray(image.open(folder / "page.png").convert("RGB"))


def small_report():
    charts = [
        Chart(
            title, "bits", "MAP", (Curve("ours", (16, 32, 64), (0.5, 0.7, 0.8)), Curve("theirs", (16, 64), (0.4, 0.6)))
        )
        for title in ("First", "Second")
    ]
    grey = np.full((8, 8), 123, dtype=np.uint8)
    strip = Strip("Found", ((Picture(grey, "3", None), Picture(grey, "3", True), Picture(grey, "8", False)),))
    table = Table("MAP", ("method", "64 bits"), (("ours", 0.8), ("theirs", 0.6)), best_columns=("64 bits",))
    return Report("Größe & <tags>", "Lead.", (table,), tuple(charts), (strip,), (("seed", "0"),))


def test_browser_reads_the_page_as_written(shown):
    document, _ = shown
    assert "<h1>Größe &amp; &lt;tags&gt;</h1>" in document
    parts = ('<svg class="chart"', '<path class="line', "<img ", "<tbody", "<dd>0</dd>", "<strong>0.800</strong>")
    assert [document.count(part) for part in parts] == [2, 8, 3, 2, 1, 1]  # half of the lines are in legends


def test_browser_draws_styles_curves_and_pictures(shown):
    _, screenshot = shown
    assert screenshot.shape == (1400, 1000, 3)
    share = {colour: (screenshot == colour).all(axis=2).mean() for colour in (PAPER, BLUE, (123, 123, 123))}
    assert 0.5 < share[PAPER] < 0.99  # not blank, and no page of errors
    assert share[BLUE] * screenshot.size / 3 > 2 * 300  # two curves, hundreds of pixels long
    assert share[123, 123, 123] * screenshot.size / 3 == pytest.approx(3 * 60**2, rel=0.02)  # 64 pixels, border 2
