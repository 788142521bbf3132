"""The page in a real browser: its four views, uploads, keyboard, themes, and whether everyone can use it."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from webcollection import N_STORED, SCRIPT, digit_collection, serving

import quorumhash as qh
from quorumhash.web.guards import Limits

pytestmark = pytest.mark.extra
for package in ("fastapi", "uvicorn", "PIL", "playwright", "axe_playwright_python"):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'quorumhash[all]'")

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from PIL import Image  # noqa: E402
from playwright.sync_api import expect, sync_playwright  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHECKS = (Path(__file__).with_name("accessibility.js")).read_text(encoding="utf-8")
FOCUSED = "() => { const at = document.activeElement; return at.id || at.className || at.textContent.trim(); }"
SETTLED = """() => Promise.allSettled(document.getAnimations()
    .filter((moved) => moved.effect.getTiming().iterations < Infinity).map((moved) => moved.finished))"""
VIEWS = ("search", "damage", "health", "model")
expect.set_options(timeout=30_000)  # a busy machine is no fault of the page
DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def address():
    collection = digit_collection(qh.QuorumHasher(32))
    with serving(collection, Limits(requests_per_second=0)) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium or Chrome on the PATH (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """Opens a view; in the end nothing may have been said on the console, asked elsewhere, or popped up."""
    contexts, complaints = [], []

    def opened(view="search", viewport=DESKTOP, theme="light"):
        context = browser.new_context(viewport=viewport, color_scheme=theme, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda sent: sent.url.startswith((address, "blob:")) or complaints.append(sent.url))
        page.goto(f"{address}/#{view}")
        page.wait_for_selector("body[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def shown(page, view):
    """Wait until a view has drawn what it draws."""
    page.wait_for_selector({"search": "#results .card", "damage": "#duel .method", "health": ".suspect",
                            "model": ".matrix"}[view])  # fmt: skip


def test_search_shows_neighbours_and_follows_them(open_page):
    page = open_page("search/100")
    expect(page.locator("#results .card")).to_have_count(12)
    expect(page.locator("#search-status")).to_contain_text("12 items found among 160 in")
    distances = [int(text.split()[0]) for text in page.locator("#results strong").all_inner_texts()]
    assert distances == sorted(distances)
    assert page.locator("#results .strip").count() == 12
    assert page.locator("#query-item .trust-row").count() == 4
    page.locator("#results img").first.evaluate("image => image.decode()")  # waits for the picture; fails if it is none
    page.locator("#results .card").first.click()
    expect(page.locator("#query-item strong")).not_to_have_text("Item 100")
    page.go_back()
    expect(page.locator("#query-item strong")).to_have_text("Item 100")


def test_search_controls(open_page):
    page = open_page("search/100")
    page.locator("#k").fill("5")
    expect(page.locator("#results .card")).to_have_count(5)
    page.get_by_text("Within a radius").click()
    page.locator("#radius").fill("32")
    expect(page.locator("#search-status")).to_contain_text("159 items found")
    page.locator("#radius").fill("0")
    expect(page.locator("#search-status")).to_contain_text("found")
    page.locator("#item-number").fill("200")
    page.locator("#item-number").press("Enter")
    expect(page.locator("#query-item strong")).to_have_text("Item 200")
    page.get_by_role("button", name="Show others").click()
    drawn_again(page, "random-item", 200)
    expect(page.locator("#query-item strong")).not_to_have_text("Item 200")
    expect(page.locator("#query-item strong")).to_contain_text("Item")


def drawn_again(page, button, item, asked=""):
    """Press a button that draws an item, with the page's chance such that `item`, the one shown, is drawn first."""
    seed = page.evaluate("""async ([item, asked]) => {
        for (let seed = 0; seed < 5000; seed++) {
            const drawn = await (await fetch(`/api/items?limit=2&seed=${seed}${asked}`)).json();
            if (drawn[0].id === item) return seed;
        }
    }""", [item, asked])  # fmt: skip
    page.evaluate("seed => { Math.random = () => (seed + 0.5) / 2 ** 31; }", seed)
    page.locator(f"#{button}").click()


def test_the_other_item_of_the_damage_lab_is_another_one(open_page):
    page = open_page(f"damage/{10 * N_STORED}")  # the first that is not stored
    shown(page, "damage")
    expect(page.locator("#damage-item strong")).to_have_text("Item 1,600")
    drawn_again(page, "damage-random", 1600, "&only_new=true")
    expect(page.locator("#damage-item strong")).not_to_have_text("Item 1,600")


def digit_file(folder, name="digit.png"):
    digits = qh.load_dataset("digits")
    pixels = 255 - np.kron(digits.images[digits.query_rows[5]], np.ones((16, 16))) * 255 / 16
    Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    return folder / name


def test_upload(open_page, tmp_path):
    page = open_page()
    page.set_input_files("#upload-file", digit_file(tmp_path))
    expect(page.locator("#query-item strong")).to_have_text("digit.png")
    expect(page.locator("#query-item .tag").first).to_have_text("uploaded")
    expect(page.locator("#results .card")).to_have_count(12)
    label = str(qh.load_dataset("digits").labels[qh.load_dataset("digits").query_rows[5]])
    found = page.locator("#results .label").all_inner_texts()
    assert sum(text.strip() == label for text in found) >= 6


def test_files_that_are_no_small_picture_are_refused_in_a_sentence(open_page, tmp_path):
    page = open_page()
    (tmp_path / "large.png").write_bytes(bytes(10_000_001))
    page.set_input_files("#upload-file", tmp_path / "large.png")
    expect(page.locator("#search-error")).to_have_text("large.png is larger than 10 MB: make it smaller.")
    (tmp_path / "notes.txt").write_text("hello")
    page.set_input_files("#upload-file", tmp_path / "notes.txt")
    expect(page.locator("#search-error")).to_contain_text("notes.txt is no picture")


def test_what_the_server_refuses_is_told(browser, address, tmp_path):
    """Without the fixture that allows no complaint: the browser writes refusals on its console."""
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    page.set_input_files("#upload-file", tmp_path / "broken.png")
    expect(page.locator("#search-error")).to_contain_text("no readable PNG, JPEG or WebP")
    page.locator("#item-number").fill("7")
    page.locator("#item-number").press("Enter")
    expect(page.locator("#search-error")).to_contain_text("got 7")
    page.close()


def test_a_script_in_a_file_name_is_a_name(open_page, tmp_path):
    page = open_page("search/50")
    expect(page.locator("#query-item strong")).to_have_text(SCRIPT)
    page.set_input_files("#upload-file", digit_file(tmp_path, SCRIPT))
    expect(page.locator("#query-item .tag").first).to_have_text("uploaded")
    expect(page.locator("#query-item strong")).to_have_text(SCRIPT)
    assert page.locator("[onerror]").count() == 0


def test_damage_moves_trust_and_results(open_page):
    page = open_page(f"damage/{10 * (N_STORED + 4)}")
    shown(page, "damage")
    assert page.locator(".method h2").all_inner_texts() == ["quorum", "itq"]
    expect(page.locator(".method .hint").first).to_contain_text("0 of 32 bits flipped")
    before = page.locator("#trust .fill").evaluate_all("fills => fills.map((fill) => fill.style.width)")
    page.locator("#swapped").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#swapped-value")).to_have_text("1 of 4")
    expect(page.locator("#trust .tag")).to_contain_text(["swapped with"])
    after = page.locator("#trust .fill").evaluate_all("fills => fills.map((fill) => fill.style.width)")
    assert before != after
    page.locator("#missing").fill("2")
    expect(page.locator("#trust .trust-word.none")).to_have_count(2)
    for n in (0, 4, 1, 3, 2, 4, 0, 3, 1, 2) * 3:  # faster than it can be answered: the last one counts
        page.locator("#noisy").fill(str(n))
    expect(page.locator("#noisy-value")).to_have_text("2 of 4")
    page.get_by_role("button", name="No damage").click()
    expect(page.locator("#damage-error")).to_be_hidden()
    expect(page.locator("#trust .tag")).to_have_count(0)


def test_health_and_its_table(open_page, tmp_path):
    page = open_page("health")
    shown(page, "health")
    expect(page.locator("#health-status")).to_contain_text("160 items in 4 views checked")
    assert page.locator(".chart").count() == 4
    page.get_by_role("button", name="Zeros").click()
    kinds = set(page.locator(".suspect .kind").all_inner_texts())
    assert kinds == {"Zeros"}
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert download.value.suggested_filename == "health.csv"
    download.value.save_as(tmp_path / "health.csv")
    lines = list(csv.DictReader((tmp_path / "health.csv").read_text().splitlines()))
    assert {"zero"} <= {line["kind"] for line in lines}


def test_model(open_page):
    page = open_page("model")
    shown(page, "model")
    assert page.locator(".tile strong").first.inner_text() == "quorum"
    assert page.locator("tbody tr").count() == 4
    assert page.locator(".bar-fill").count() == 32 + 33
    assert "Item" not in page.title()


def test_a_phone_breaks_no_word_of_the_table(open_page):
    page = open_page("model", PHONE)
    shown(page, "model")
    lines = """cells => cells.map((cell) => {
        const text = document.createRange();
        text.selectNodeContents(cell);
        return new Set([...text.getClientRects()].map((box) => box.top)).size;
    })"""
    assert set(page.locator("tbody th, tbody .num, .worth .number").evaluate_all(lines)) == {1}


def test_everything_is_reached_by_the_keyboard(open_page):
    """Tab goes from the skip link over the views and the theme into the page, in the order that is seen."""
    page = open_page("search/100")
    shown(page, "search")
    seen = []
    for _ in range(16):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    assert seen[:6] == ["skip", "Search", "Damage lab", "Data health", "Model", "theme"]
    assert seen[6:12] == ["item-number", "random-item", "upload-file", "mode-k", "k", "card"]
    page.get_by_role("link", name="Model").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#model-title")).to_be_focused()
    page.locator("#theme").focus()
    page.keyboard.press("Space")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everyone_can_use_it(open_page, theme, viewport):
    """Names, labels, headings, contrast, size of targets, and no sideways scrolling, in every view."""
    page = open_page("search/100", viewport, theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    for view in VIEWS:
        page.goto(page.url.partition("#")[0] + f"#{view}")
        shown(page, view)
        page.evaluate(SETTLED)
        assert page.evaluate(CHECKS) == [], view


def serious(page):
    """What axe finds serious or critical on the page, one sentence each, with the places."""
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {fault['help']}: {[node['target'] for node in fault['nodes']]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_serious(open_page, theme, viewport):
    page = open_page("search/100", viewport, theme)
    for view in VIEWS:
        page.goto(page.url.partition("#")[0] + f"#{view}")
        shown(page, view)
        page.evaluate(SETTLED)
        assert serious(page) == [], view


def test_axe_finds_what_is_broken(open_page):
    page = open_page("search/100")
    shown(page, "search")
    page.evaluate(
        """() => {
        document.querySelector('#view-search').insertAdjacentHTML('beforeend', '<img src="/static/mark.svg">');
        document.querySelector('.lead').style.color = 'rgb(200, 200, 200)';
    }"""
    )
    assert {fault.partition(":")[0] for fault in serious(page)} == {"image-alt", "color-contrast"}


def test_the_checks_can_fail(open_page):
    page = open_page("search/100")
    shown(page, "search")
    page.evaluate(
        """() => {
        const box = document.querySelector('#view-search');
        box.insertAdjacentHTML('beforeend', '<img src="/static/mark.svg"><input id="k"><button></button><h4>Deep</h4>');
        document.querySelector('.lead').style.color = 'rgb(200, 200, 200)';
        box.append(Object.assign(document.createElement('div'), { id: 'far' }));
        document.querySelector('#far').style.cssText = 'width: 3000px; height: 1px';
    }"""
    )
    found = " ".join(page.evaluate(CHECKS))
    for word in ("no alt", "no label", "no name", "twice", "contrast", "heading", "sideways"):
        assert word in found
