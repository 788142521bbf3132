"""What the documentation says is true: code runs, links resolve, lists are whole, the command line's page is fresh."""

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

import quorumhash
from quorumhash import corruption, errors, evaluation

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LIBRARY = ROOT / "quorumhash"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md"]

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"<!-- needs: *(.*?) *-->\n+\Z")
NEEDS_ANYWHERE = re.compile(r"<!-- needs: (?!quorumhash)")
NOT_RUN = re.compile(r"<!-- not run: *(.*?) *-->\n+\Z")
FENCED = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def raise_error(name):
    """Without this, walk_packages passes over a package that cannot be imported."""
    raise ImportError(f"{name} cannot be imported")


MODULES = ["quorumhash", *(m.name for m in pkgutil.walk_packages(quorumhash.__path__, "quorumhash.", raise_error))]

sys.path.insert(0, str(DOCS))
make_cli_page = importlib.import_module("make_cli_page")
make_methods_page = importlib.import_module("make_methods_page")
sys.path.remove(str(DOCS))


def name_of(page):
    return page.name


def python_blocks(text, is_everything_run=False):
    """(first line, code) of every block that is to run; those that need a package of an extra only on request."""
    for block in BLOCK.finditer(text):
        before = text[: block.start()]
        excuse, needs = NOT_RUN.search(before), NEEDS.search(before)
        if excuse:
            assert excuse.group(1), "a block that is not run must say why: <!-- not run: reason -->"
        elif needs is None or all(is_met(need, is_everything_run) for need in needs.group(1).split()):
            yield text[: block.start(1)].count("\n") + 1, block.group(1)


def is_met(need, is_everything_run):
    """A need is a name of the library, `quorumhash.audit`, or a package that an extra brings."""
    home, _, name = need.partition(".")
    if home == "quorumhash":
        return name in quorumhash.__all__
    return is_everything_run and importlib.util.find_spec(need) is not None


def run_blocks(page, is_everything_run=False):
    """The blocks of one page share their names and run in order; warnings are errors."""
    names = {"__name__": "__main__"}
    for line, code in python_blocks(page.read_text(), is_everything_run):
        # blank lines before the code, so that an error names the line of the page
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


def without_code(page):
    return FENCED.sub("", page.read_text())


def table_rows(text):
    """Cells of the table rows of a page, without headings and rules."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not set(row[0]) <= set("-: ")]


def section(text, title):
    """What stands under a heading, up to the next one of its level."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^\1 |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, title
    return found.group(2)


def anchors(page):
    """Ids that the headings of a page get: lower case, no signs, words joined by hyphens."""
    titles = [re.sub(r"[`*]", "", title) for title in HEADING.findall(without_code(page))]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    assert page.is_file(), f"{page.name} is missing"
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore:.*pkg_resources.*", "ignore:.*swigvar.*|.*SwigPy.*:DeprecationWarning")
@pytest.mark.parametrize("page", [page for page in PAGES if NEEDS_ANYWHERE.search(page.read_text())], ids=name_of)
def test_blocks_that_need_an_extra_run(page, tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    run_blocks(page, is_everything_run=True)


def test_pages_have_code_that_runs():
    """The pattern finds blocks, so that the test above is no empty promise."""
    assert sum(len(list(python_blocks(page.read_text()))) for page in PAGES if page.is_file()) > 20


def test_an_excuse_needs_a_reason():
    with pytest.raises(AssertionError, match="must say why"):
        list(python_blocks("<!-- not run: -->\n```python\n1 / 0\n```\n"))
    assert not list(python_blocks("<!-- not run: needs a network -->\n```python\n1 / 0\n```\n"))
    assert not list(python_blocks("<!-- needs: faiss -->\n```python\n1 / 0\n```\n"))
    assert not list(python_blocks("<!-- needs: quorumhash.nothing -->\n```python\n1 / 0\n```\n"))
    assert list(python_blocks("<!-- needs: quorumhash.damage -->\n```python\n1 / 0\n```\n"))
    assert list(python_blocks("<!-- a remark -->\n```python\n1 / 0\n```\n")) == [(3, "1 / 0\n")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0, capsys.readouterr().out


def test_public_functions_and_classes_have_an_example():
    for name in quorumhash.__all__:
        value = getattr(quorumhash, name)
        if callable(value) and not (isinstance(value, type) and issubclass(value, Exception)):
            assert ">>> " in (value.__doc__ or ""), name


def test_command_line_page_is_fresh():
    now = make_cli_page.comparable(make_cli_page.page())
    assert make_cli_page.comparable(make_cli_page.PAGE.read_text()) == now, "run: python docs/make_cli_page.py"


def test_page_of_methods_is_fresh():
    assert make_methods_page.PAGE.read_text() == make_methods_page.page(), "run: python docs/make_methods_page.py"


def test_every_method_tells_its_facts():
    for name, method in quorumhash.HASHERS.items():
        assert "about" in vars(method), f"{name} has no about"
        assert make_methods_page.idea(method), f"the first line of the file of {name} must be 'NAME: idea.'"
        assert make_methods_page.rotation(method), f"{name} must say whether its bits are rotated"
        assert bool(method.about.year) == bool(make_methods_page.reference(method)), name
        if method.about.year:
            assert str(method.about.year) in make_methods_page.reference(method), name
        assert method.about.is_reconstruction == ("A reconstruction:" in method.__doc__), name


def test_first_rival_of_a_cell_is_found():
    """One cell: itq leads the rivals, quorum counts with its better setting and is not among them."""
    row = {"itq": {"map": [0.5]}, "lsh": {"map": [0.25]}, "quorum, groups": {"map": [0.6]}, "chance": {"map": [0.9]}}
    cells = {"digits": {"swap 0.2 both 64": row | {"quorum, neighbours": {"map": [0.4]}}}}
    found = make_methods_page.standings({"grids": {"main": cells}}, "map")
    assert {name: ratios["digits swap"] for name, ratios in found.items() if ratios} == {
        "itq": 1.0, "lsh": 0.5, "quorum": pytest.approx(1.2),
    }  # fmt: skip
    assert make_methods_page.told(found["lsh"]) == "50.0 % of the first (digits swap)"


@pytest.mark.extra
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    words = ("-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site")
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(list(DOCS.glob("*.md")))
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<(?:script|img|iframe)[^>]+src=.?(?:https?:)?//", text), page
        assert not re.search(r"<link[^>]+href=.?(?:https?:)?//[^>]*stylesheet|@import|fonts\.g", text), page


def test_every_public_name_is_on_the_page_of_the_api():
    page = (DOCS / "api.md").read_text()
    shown = re.findall(r"^::: quorumhash\.(\w+)$", page, re.MULTILINE) + re.findall(r"`quorumhash\.(\w+)`", page)
    assert sorted(shown) == sorted(set(shown))
    wanted = {name for name in quorumhash.__all__ if not hasattr(errors, name)}  # those stand together, as a tree
    assert set(shown) - {"errors"} == wanted


@pytest.mark.parametrize("path", sorted((DOCS / "pictures").glob("*.svg")), ids=name_of)
def test_pictures_are_whole_small_and_refer_to_nothing_outside(path):
    root = ElementTree.fromstring(path.read_text())
    assert root.findtext("{http://www.w3.org/2000/svg}title")
    assert path.stat().st_size < 40_000
    assert all(value.startswith("data:image/png") for node in root.iter() if (value := node.get("href")))
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert any(f"pictures/{path.name}" in page.read_text() for page in PAGES)


def test_every_command_has_help_and_a_heading():
    headings = HEADING.findall(FENCED.sub("", make_cli_page.PAGE.read_text()))
    commands = make_cli_page.commands()
    assert {"quorumhash", "quorumhash demo", "quorumhash fit", "quorumhash encode"} <= set(commands)
    for words, command in commands.items():
        assert (command.help or "").strip(), f"{words} has no help"
        assert words in headings, f"{words} has no heading in docs/cli.md"
        for parameter in command.params:
            assert getattr(parameter, "help", None) or parameter.name == "help", (
                f"{words}: {parameter.name} has no help"
            )


def test_every_page_is_in_the_navigation():
    lines = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1].splitlines()
    named = [match.group(1) for line in lines if (match := re.search(r"(\S+\.md)$", line))]
    assert sorted(named) == sorted(page.name for page in DOCS.glob("*.md"))


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_between_pages_resolve(page):
    for target in LINK.findall(without_code(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(goal), f"{page.name} links to {target}, which has no such heading"


def test_every_file_of_the_library_is_a_room():
    rows = table_rows(section((DOCS / "architecture.md").read_text(), "Rooms"))
    named = [row[0].strip("`") for row in rows if row[0] != "file"]
    assert sorted(named) == sorted(path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.py"))


def test_import_levels_are_those_that_are_tested():
    from test_architecture import LEVELS

    block = re.search(r"```text\n(.*?)```", section((DOCS / "architecture.md").read_text(), "Import levels"), re.DOTALL)
    assert [set(line.split()[1:]) for line in block.group(1).splitlines()] == LEVELS


def test_symbols_are_found_where_the_page_says():
    rows = table_rows(section((DOCS / "method.md").read_text(), "Symbols"))[1:]
    assert len(rows) > 20
    for symbol, *_, names, file in rows:
        text = (LIBRARY / file.strip("`")).read_text()
        for name in re.findall(r"`([^`]+)`", names):
            assert re.search(rf"\b{name.rpartition('.')[2]}\b", text), f"{symbol}: {name} is not in {file}"


def test_departures_are_listed_once_each():
    rows = table_rows(section((DOCS / "method.md").read_text(), "Departures from the paper"))[1:]
    assert [row[0] for row in rows] == [f"E{i}" for i in range(1, 29) if i not in (26, 28)]
    cited = {name for path in LIBRARY.rglob("*.py") for name in re.findall(r"\bE\d+\b", path.read_text())}
    assert cited <= {row[0] for row in rows}


def test_every_kind_of_damage_has_a_section():
    assert set(corruption.KINDS) <= anchors(DOCS / "damage.md")


def test_every_metric_has_a_section():
    own = {name for name, value in vars(evaluation).items() if getattr(value, "__module__", "") == evaluation.__name__}
    functions = {name for name in own if not name.startswith("_") and not isinstance(getattr(evaluation, name), type)}
    assert len(functions) > 5
    assert functions <= anchors(DOCS / "metrics.md")


def test_files_that_are_named_exist():
    for page in LINKED:
        for path in re.findall(r"`((?:quorumhash|tests|docs|benchmarks)/[\w/]+\.(?:py|md))`", page.read_text()):
            assert (ROOT / path).is_file(), f"{page.name} names {path}"
