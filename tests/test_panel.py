"""A benchmark's file: what it plans, what it leaves out, and that a mistake in it is one sentence with file and key."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from quorumhash.bench.panel import read_panel
from quorumhash.bench.panelpage import panel_report
from quorumhash.bench.scores import Figure, Place, Scores
from quorumhash.bench.settings import Setting, damage_key, plain_setting, run_key
from quorumhash.datasets import load_dataset, validation_cut
from quorumhash.errors import ParameterError
from quorumhash.hashers import HASHERS, ITQHasher

ROOT = Path(__file__).parents[1]
WHOLE = """
title = "Tiny"
datasets = ["digits"]
seeds = [0, 1]
max_rows = { digits = 360 }
joined = ["itq"]

[damages]
clean = {}
swap = { kind = "swap", rate = 0.2 }
drop = { kind = "drop_view", rate = 0.3, datasets = ["mfeat"] }

[[methods]]
name = "short"
hasher = "rmvh"
parameters = { max_iter = 4 }
own = true

[[methods]]
every_other = true
weights = ["equal", "auto"]
without = ["lsh"]

[[methods]]
name = "float, damaged"
role = "float"

[[methods]]
name = "float, undamaged"
role = "float_undamaged"

[[methods]]
name = "oracle"
role = "oracle"
hasher = "itq"

[[methods]]
name = "chance"
role = "chance"

[grids.main]
bits = [16, 32]

[grids.sweep]
bits = [16]
damages = ["swap"]
rates = [0.0, 0.2, 0.5]
seeds = [0]
where = ["queries"]
methods = ["short", "itq"]

[quick]
grids = ["main"]
damages = ["clean"]
methods = ["itq", "chance"]
bits = [8]
seeds = [5]
max_rows = 240
"""


class Weigher(ITQHasher):
    pass


@pytest.fixture
def few(monkeypatch):
    """The hashers of the first version alone, whatever there is by now."""
    for name in set(HASHERS) - {"rmvh", "itq", "lsh"}:
        monkeypatch.delitem(HASHERS, name)


def panel_of(tmp_path, text=WHOLE, **options):
    path = tmp_path / "tiny.toml"
    path.write_text(text)
    return read_panel(path, **options)


def test_every_combination_is_planned_once(tmp_path, few):
    panel = panel_of(tmp_path)
    main = [cell for cell in panel.cells if cell.grid == "main"]
    assert len(main) == 2 * 2 * 2 * 6  # damages, seeds, bits, methods: short, itq, float x 2, oracle, chance
    assert {cell.damage for cell in main} == {"clean", "swap"}  # the third is for mfeat alone
    assert [method.name for method in panel.methods if method.is_own] == ["short"]
    assert [method.name for method in panel.methods if method.is_rival] == ["itq"]
    sweep = [(cell.rate, cell.where, cell.method) for cell in panel.cells if cell.grid == "sweep"]
    assert sweep == [(rate, "queries", method) for rate in (0.0, 0.2, 0.5) for method in ("short", "itq")]
    assert all(cell.setting.max_rows == 360 for cell in panel.cells)
    assert len({run_key(setting) for setting in panel.settings()}) == len(panel.settings())


def test_runs_that_are_the_same_are_done_once(tmp_path, few):
    panel = panel_of(tmp_path)
    of = {name: {run_key(c.setting) for c in panel.cells if c.method == name and c.grid == "main"}
          for name in ("float, damaged", "float, undamaged", "oracle", "chance", "itq")}  # fmt: skip
    assert len(of["float, undamaged"]) == 1
    assert len(of["float, damaged"]) == 3  # undamaged, and two seeds of damage; bits have no say
    assert len(of["chance"]) == 4  # seeds and bits; damage has no say
    assert len(of["oracle"] & of["itq"]) == 4  # without damage it is the method itself
    settings = panel.settings()
    zero = next(c.setting for c in panel.cells if c.grid == "sweep" and c.rate == 0 and c.method == "itq")
    assert sum(run_key(s) == run_key(zero) for s in settings) == 1


def test_runs_on_the_same_damaged_data_follow_each_other(tmp_path, few):
    main = [c.setting for c in panel_of(tmp_path).cells if c.grid == "main" and c.method == "short"]
    data = [(setting.damage, setting.random_state) for setting in main]
    assert [data[i] != data[i - 1] for i in range(1, len(data))].count(True) == len(set(data)) - 1


def test_hashers_that_are_not_there_are_left_out_with_a_sentence(tmp_path, few):
    future = '[[methods]]\nname = "later"\nhasher = "later_hasher"\nparameters = { any = 1 }\n\n[grids.main]'
    panel = panel_of(tmp_path, WHOLE.replace("[grids.main]", future))
    assert "later is left out: the hasher 'later_hasher' is not in this version" in panel.skipped
    assert any("weighted views are left out" in sentence for sentence in panel.skipped)
    assert {cell.weights for cell in panel.cells} == {"equal"}
    grid = panel_of(tmp_path, WHOLE.replace('["short", "itq"]', '["short", "later"]'))
    assert any("grid sweep goes without the method 'later'" in sentence for sentence in grid.skipped)


def test_weighted_views_are_planned_when_there_is_who_weighs(tmp_path, few, monkeypatch):
    monkeypatch.setitem(HASHERS, "quorum", Weigher)
    cells = panel_of(tmp_path).cells
    by_method = {
        name: {(c.weights, c.setting.weights) for c in cells if c.method == name} for name in ("itq", "quorum")
    }
    assert by_method["itq"] == {("equal", "equal"), ("auto", "auto, joined")}
    assert by_method["quorum"] == {("equal", "equal"), ("auto", "auto")}
    assert {c.weights for c in cells if c.method in ("short", "oracle", "chance")} == {"equal"}


def test_quick_keeps_what_its_table_says(tmp_path, few):
    panel = panel_of(tmp_path, profile="quick")
    assert {(c.grid, c.damage, c.method, c.n_bits, c.seed) for c in panel.cells} == {
        ("main", "clean", "itq", 8, 5), ("main", "clean", "chance", 8, 5),
    }  # fmt: skip
    assert {c.setting.max_rows for c in panel.cells} == {240}
    assert panel.runs_folder() != panel_of(tmp_path).runs_folder()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('title = "Tiny"', "", "title is missing; it must be a text"),
        ('["digits"]\nseeds', '["letters"]\nseeds', "datasets must be a list out of digits"),
        ("seeds = [0, 1]", "seeds = [-1]", "seeds must be a list of whole numbers from 0 up, got [-1]"),
        ("seeds = [0, 1]", "seed = 1", "seed is no key of a benchmark here; the keys are"),
        ('kind = "swap"', 'kind = "melt"', "damages.swap.kind must be one of gauss, swap"),
        ("rate = 0.2", "rate = 2", "damages.swap.rate must be a number from 0 to 1, got 2"),
        ("rate = 0.2", "rats = 2", "damages.swap.rats is no key of a damage"),
        ("max_iter = 4", "max_its = 4", "methods[0].parameters has 'max_its'; the parameters of 'rmvh' are"),
        ("own = true", "own = 1", "methods[0].own must be true or false, got 1"),
        ('name = "oracle"', 'name = "chance"', "methods must have a name each, got 'chance' twice"),
        ('hasher = "rmvh"', "hasher = [1]", "methods[0].hasher must be a text, got [1]"),
        ('role = "chance"', 'role = "luck"', "methods[5].role must be one of hasher, float"),
        ('role = "oracle"\nhasher = "itq"', 'role = "oracle"', "methods[4].hasher is missing"),
        ("[grids.main]\nbits = [16, 32]", "[grids.main]", "grids.main.bits is missing"),
        ('damages = ["swap"]', 'damages = ["swop"]', "grids.sweep.damages must be a list out of clean, swap, drop"),
        ('where = ["queries"]', 'where = ["items"]', "grids.sweep.where must be a list out of both, queries, database"),
        ("max_rows = 240", "max_rows = 20", "quick.max_rows must be a whole number from 120 up, got 20"),
        ('grids = ["main"]', 'grids = ["minor"]', "quick.grids must be a list out of main, sweep"),
        ("max_rows = { digits", "max_rows = { digit", "max_rows.digit is no key"),
        ("[damages]", "[damages", "is no readable TOML"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_file_and_key(tmp_path, few, old, new, sentence):
    assert old in WHOLE
    with pytest.raises(ParameterError) as caught:
        panel_of(tmp_path, WHOLE.replace(old, new, 1))
    assert str(tmp_path / "tiny.toml") in str(caught.value)
    assert sentence in str(caught.value)


def test_a_missing_file_and_a_file_without_runs_are_refused(tmp_path, few):
    with pytest.raises(ParameterError, match=r"nowhere\.toml cannot be read"):
        read_panel(tmp_path / "nowhere.toml")
    with pytest.raises(ParameterError, match="has no run at all"):
        panel_of(tmp_path, WHOLE.replace('methods = ["itq", "chance"]', 'methods = ["none"]'), profile="quick")


PANELS = [path for path in sorted((ROOT / "benchmarks").rglob("*.toml")) if path.name != "audit.toml"]  # no panel


@pytest.mark.parametrize("path", PANELS, ids=lambda path: path.name)
@pytest.mark.parametrize("profile", ["", "quick", "smoke"])
def test_the_files_of_the_repository_can_be_read(path, profile):
    assert read_panel(path, profile).settings()


def test_the_panel_is_what_was_agreed():
    cells = read_panel(ROOT / "benchmarks" / "quality" / "panel.toml").cells
    main = [cell for cell in cells if cell.grid in ("main", "sources")]
    assert {cell.dataset for cell in main} == {"digits", "mfeat", "coco5"}
    assert {cell.damage: cell.rate for cell in main} == {
        "clean": 0.0, "gauss": 0.2, "swap": 0.2, "noise": 0.3, "zero": 0.3, "placeholder": 0.3, "swap_source": 0.2,
        "shift": 0.2, "drop_view": 0.3, "drop_values": 0.25,
    }  # fmt: skip
    assert {(cell.n_bits, cell.where) for cell in main} == {(64, "both")}
    assert {cell.seed for cell in main} == {0, 1, 2}
    assert {cell.n_bits for cell in cells if cell.grid == "bits"} == {16, 32, 128, 256}
    assert {(c.dataset, c.rate) for c in cells if c.grid == "sweep"} == {("mfeat", r / 10) for r in range(6)}
    assert {method for cell in main if (method := cell.method) in HASHERS} == set(HASHERS) - {"quorum"}


TRIED = """
title = "Tried"
datasets = ["digits"]
validation = true

[damages]
clean = {}

[[methods]]
name = "itq"
hasher = "itq"
tried = [{}, { n_steps = 9 }, { n_steps = 9, row_normalised = true }]

[[methods]]
name = "signs"
role = "peer"
peer = "sign"

[grids.main]
bits = [16]
"""


def test_variants_are_rows_of_their_own(tmp_path, few):
    panel = panel_of(tmp_path, TRIED)
    assert [(m.name, m.parameters, m.is_row_normalised) for m in panel.methods] == [
        ("itq", {}, False),
        ("itq, n_steps=9", {"n_steps": 9}, False),
        ("itq, n_steps=9, row_normalised", {"n_steps": 9}, True),
        ("signs", {}, False),
    ]
    settings = panel.settings()
    assert all(setting.is_validation for setting in settings)
    assert [setting.is_row_normalised for setting in settings] == [False, False, True, False]
    assert [(setting.role, setting.hasher) for setting in settings][2:] == [("hasher", "itq"), ("peer", "sign")]
    assert [method.is_rival for method in panel.methods] == [True, True, True, False]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("n_steps = 9 }, {", "speed = 9 }, {", r"parameters has 'speed'; the parameters of 'itq' are n_steps"),
        ('"sign"', '"sigh"', r"methods\[1\]\.peer must be one of pq, opq, .*, got 'sigh'"),
        ("[{},", "[3,", r"methods\[0\]\.tried must be \[\[tried\]\] tables"),
    ],
)
def test_a_mistake_in_variants_and_peers_is_one_sentence(tmp_path, few, old, new, sentence):
    with pytest.raises(ParameterError, match=sentence):
        panel_of(tmp_path, TRIED.replace(old, new))


def test_tables_say_which_methods_are_reconstructions(tmp_path):
    panel = panel_of(
        tmp_path, TRIED.replace('hasher = "itq"', 'hasher = "chms"').replace("n_steps = 9", "max_iter = 9")
    )
    places = [Place("main", "digits", "clean", 0.0, "both", 16, method.name) for method in panel.methods]
    figures = {
        (place, metric): Figure(0.5, 0.0, 1, "equal") for place in places for metric in ("map", "bytes_per_item")
    }
    report = panel_report(Scores(panel, {}, figures, ()))
    first = [row[0] for table in report.tables if "MAP" in table.title for row in table.rows]
    assert first == [
        "itq (reconstruction)", "itq, max_iter=9 (reconstruction)", "itq, max_iter=9, row_normalised (reconstruction)",
        "signs",
    ]  # fmt: skip
    assert any("bytes per item" in table.title for table in report.tables)


def test_the_budget_of_tuning_is_the_same_for_all():
    panel = read_panel(ROOT / "benchmarks" / "quality" / "tuning.toml")
    counts = Counter(method.hasher for method in panel.methods if method.role == "hasher")
    assert set(counts) == set(HASHERS)
    assert max(counts.values()) == 8
    assert all(setting.is_validation for setting in panel.settings())
    for hasher in HASHERS:
        own = [method for method in panel.methods if method.hasher == hasher]
        assert not own[0].is_row_normalised  # those before tuning come first
        assert any(method.is_row_normalised for method in own)
        assert not any("rotate" in method.parameters for method in own)


def test_what_tuning_chose_is_shipped():
    log = json.loads((ROOT / "benchmarks" / "results" / "tuning.json").read_text())["methods"]
    assert set(log) == set(HASHERS)
    for name, found in log.items():
        shipped = HASHERS[name]().get_params()
        for parameter, value in found["chosen"]["parameters"].items():
            assert shipped[parameter] in (value, None), f"{name}, {parameter}"  # None: by a rule, see the next test
    panel = read_panel(ROOT / "benchmarks" / "quality" / "panel.toml")
    normalised = {method.hasher for method in panel.methods if method.is_row_normalised}
    assert normalised == {name for name, found in log.items() if found["chosen"]["is_row_normalised"]}


def test_rules_give_what_tuning_chose():
    """At the 1,250 training rows of the tuning."""
    digits = validation_cut(load_dataset("digits"))
    training = digits.views[digits.train_rows]
    assert len(training) == 1_250
    assert len(HASHERS["agh"](32).fit(training).graph_.landmarks) == 400
    assert len(HASHERS["imh"](32).fit(training).graph_.landmarks) == 400
    fitted = HASHERS["klsh"](8).fit(training)
    fixed = HASHERS["klsh"](8, n_landmarks=100, n_summed=10).fit(training)
    assert np.array_equal(fitted.projection_, fixed.projection_)


def test_every_free_rotation_is_reported_both_ways():
    panel = read_panel(ROOT / "benchmarks" / "quality" / "rotation.toml")
    both = {(method.hasher, value) for method in panel.methods for value in method.parameters.values()}
    free = {name for name, kind in HASHERS.items() if {"rotate", "rotation"} & set(kind().get_params())}
    assert both == {(name, value) for name in free for value in (False, True)}


VARIANTS = """
title = "Variants"
datasets = ["low", "digits"]
seeds = [0, 3]
splits = true
by_labels = true
runs = "shared"
[variants]
low = { dataset = "coco5", views = ["visual_words"] }
[damages]
clean = {}
[[methods]]
name = "surface"
hasher = "itq"
crossed = { n_steps = [1, 2, 3] }
[[methods]]
name = "lsh"
hasher = "lsh"
[grids.main]
bits = [8, 16, 32]
datasets = ["low"]
methods = ["surface"]
"""


def test_a_variant_is_a_dataset_with_options_and_the_seed_is_its_split(tmp_path):
    cells = panel_of(tmp_path, VARIANTS).cells
    assert {cell.dataset for cell in cells} == {"low"}
    assert {cell.setting.dataset for cell in cells} == {"coco5"}
    assert {cell.seed: cell.setting.dataset_options for cell in cells} == {
        seed: {"views": ["visual_words"], "split": seed} for seed in (0, 3)
    }
    assert all(cell.setting.is_by_labels for cell in cells)


def test_a_name_stands_for_every_combination_of_its_values(tmp_path):
    cells = panel_of(tmp_path, VARIANTS).cells
    assert list(dict.fromkeys(cell.method for cell in cells)) == [f"surface, n_steps={n}" for n in (1, 2, 3)]
    assert {cell.setting.parameters["n_steps"] for cell in cells} == {1, 2, 3}
    others = panel_of(tmp_path, VARIANTS.replace('methods = ["surface"]', 'without = ["surface"]')).cells
    assert {cell.method for cell in others} == {"lsh"}


def test_smoke_has_a_bit_of_everything_on_digits(tmp_path):
    cells = panel_of(tmp_path, VARIANTS, profile="smoke").cells
    assert {(cell.method, cell.n_bits, cell.seed) for cell in cells} == {
        (f"surface, n_steps={n}", bits, 0) for n in (1, 2) for bits in (8, 16)
    }
    assert {(cell.setting.dataset, cell.setting.max_rows) for cell in cells} == {("digits", 240)}
    assert not any(cell.setting.dataset_options for cell in cells)


def test_files_that_share_runs_name_the_folder(tmp_path):
    assert panel_of(tmp_path, VARIANTS).runs_folder() == tmp_path / "shared.runs"
    assert panel_of(tmp_path, VARIANTS, profile="smoke").runs_folder() == tmp_path / "shared.smoke.runs"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('dataset = "coco5"', 'dataset = "coco6"', r"variants\.low\.dataset must be one of .*got 'coco6'"),
        ('datasets = ["low", "digits"]', 'datasets = ["high"]', r"datasets must be a list out of .*low"),
        ("n_steps = [1, 2, 3]", "n_steps = 3", r"crossed must have a list of values for n_steps, got 3"),
        ("n_steps = [1, 2, 3]", "n_stops = [3]", r"parameters has 'n_stops'"),
    ],
)
def test_a_mistake_in_a_variant_is_named(tmp_path, old, new, sentence):
    with pytest.raises(ParameterError, match=sentence):
        panel_of(tmp_path, VARIANTS.replace(old, new))


def test_options_of_a_loader_make_another_run_and_none_keep_the_old_key():
    setting = Setting("itq", 64, dataset="coco5")
    other = Setting("itq", 64, dataset="coco5", dataset_options={"split": 1})
    assert run_key(setting) != run_key(other)
    assert damage_key(setting) != damage_key(other)
    assert "dataset_options" not in plain_setting(setting)
