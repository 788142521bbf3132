"""An audit of views whose damage is known."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import quorumhash as qh
from quorumhash.auditing import _first_verdicts, audit
from quorumhash.auditreport import KINDS
from quorumhash.cli import app
from quorumhash.copies import same_rows
from quorumhash.engines import open_engine
from quorumhash.errors import ParameterError, RefusedError
from quorumhash.inspection import Inspection, find_facts, inspect_views, learn_inspector
from quorumhash.joins import Run, find_runs, heaviest_runs, voted_offsets
from quorumhash.judging import described_rows
from quorumhash.pairtests import pair_evidence
from quorumhash.partners import Homes, MatchRows, _copies, find_partners, learn_homes, learn_matching, match_views
from quorumhash.versions import is_other_version

N_ROWS = 600


def made_views(seed=0, n_rows=N_ROWS):
    """Three views of the same eight hidden numbers, each with noise of its own."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n_rows, 8))
    return {
        name: hidden @ rng.standard_normal((8, width)) + 0.3 * rng.standard_normal((n_rows, width)) + 1.0
        for name, width in (("image", 14), ("text", 12), ("sound", 10))
    }


@pytest.fixture(scope="module")
def clean():
    return made_views()


@pytest.fixture(scope="module")
def mixed():
    """All kinds in one table, in rows of their own, and what was planted."""
    views, rng = made_views(), np.random.default_rng(1)
    planted = {kind: np.arange(30 * i, 30 * i + 30) for i, kind in enumerate(("zero", "constant", "missing", "noise"))}
    planted |= {"placeholder": np.arange(120, 150), "swap": np.arange(150, 190), "shift": np.arange(250, 290)}
    given = {name: values.copy() for name, values in views.items()}
    given["image"][planted["zero"]] = 0.0
    given["text"][planted["constant"]] = 2.5
    given["sound"][planted["missing"]] = np.nan
    given["text"][planted["noise"]] = 1.0 + 20 * rng.standard_normal((30, 12))
    given["sound"][planted["placeholder"]] = views["sound"][500]
    order = rng.permutation(planted["swap"])
    homes = np.empty_like(order)
    homes[order - planted["swap"][0]] = np.roll(order, 1)
    given["image"][planted["swap"]] = views["image"][homes]
    given["text"][planted["shift"]] = views["text"][planted["shift"] - 3]
    return given, views, planted, homes


@pytest.fixture(scope="module")
def report(mixed):
    return audit(mixed[0])


@pytest.mark.parametrize(
    ("kind", "view"),
    [("zero", 0), ("constant", 1), ("missing", 2), ("noise", 1), ("placeholder", 2), ("swap", 0), ("shift", 1)],
)
def test_every_planted_kind_is_named(report, mixed, kind, view):
    rows = mixed[2][kind]
    assert np.mean(report.kinds[rows, view] == kind) >= 0.95
    elsewhere = np.delete(report.kinds[:, view], rows)
    assert np.sum(elsewhere == kind) <= 3


def test_p_values_are_nan_where_a_view_is_absent_alone(report, mixed):
    absent = np.zeros(report.p_values.shape, dtype=bool)
    absent[mixed[2]["missing"], 2] = True
    assert np.array_equal(np.isnan(report.p_values), absent)
    assert (report.p_values[mixed[2]["zero"], 0] == 0).all()


def test_partners_of_swaps_are_the_rows_they_came_from(report, mixed):
    found = report.partners[mixed[2]["swap"], 0]
    assert np.mean(found[:, 0] == mixed[3]) >= 0.9
    assert (report.partners[report.kinds == ""] == -1).all()


def test_a_shifted_join_is_one_finding_with_its_range_and_comes_first(report, mixed):
    first = report.findings[0]
    assert (first.kind, first.view, first.offset) == ("shift", "text", -3)
    assert (first.first, first.last) == (250, 289)
    assert sum(finding.kind == "shift" for finding in report.findings) == 1
    assert "rows 250 to 289" in first.sentence


def test_clean_views_raise_few_alarms(clean):
    found = audit(clean)
    assert 0.001 < np.mean(found.p_values < 0.01) < 0.02
    assert np.mean(found.kinds != "") < 0.003


def test_rows_of_another_model_are_one_group(clean):
    rng = np.random.default_rng(2)
    given = {name: values.copy() for name, values in clean.items()}
    hit = rng.permutation(N_ROWS)[:200]
    turn = np.linalg.qr(rng.standard_normal((14, 14)))[0]
    given["image"][hit] = given["image"][hit] @ turn + 5.0
    found = audit(given)
    assert [(finding.kind, finding.view) for finding in found.findings[:1]] == [("model_version", "image")]
    assert len(np.intersect1d(found.findings[0].rows, hit)) > 0.85 * len(np.union1d(found.findings[0].rows, hit))


def test_a_cluster_of_the_same_model_is_no_other_version(clean):
    rows = np.array(clean["image"][:, 0] > 0)
    parts, usable = list(clean.values()), np.ones((N_ROWS, 3), dtype=bool)
    assert not is_other_version(parts, 0, rows, ~rows, usable, 0)
    shuffled = [parts[0].copy(), *parts[1:]]
    shuffled[0][~rows] = np.random.default_rng(0).permutation(shuffled[0][~rows])
    assert not is_other_version(shuffled, 0, rows, ~rows, usable, 0)  # a swap is at one with nothing


def test_drop_repair_and_swap_correct_the_views(report, mixed):
    given, views, planted, _ = mixed
    dropped = report.apply("drop")
    assert np.isnan(dropped["image"][planted["zero"]]).all()
    assert np.array_equal(dropped["image"][300:], given["image"][300:], equal_nan=True)
    repaired = report.apply("repair")
    rows = planted["zero"]
    error = np.linalg.norm(repaired["image"][rows] - views["image"][rows])
    assert error < 0.4 * np.linalg.norm(views["image"][rows] - views["image"].mean(axis=0))
    assert not np.isnan(repaired["sound"]).any()
    swapped = report.apply("swap")
    back = np.isclose(swapped["image"][planted["swap"]], views["image"][planted["swap"]]).all(axis=1)
    assert back.mean() >= 0.8
    shifted = planted["shift"][:-3]
    assert np.allclose(swapped["text"][shifted], views["text"][shifted])
    assert np.array_equal(np.isnan(given["sound"]), np.isnan(mixed[0]["sound"]))  # what was given is not changed


def test_an_item_keeps_its_most_credible_view():
    views = made_views(n_rows=200)
    for values in views.values():
        values[:3] = 0.0
    dropped = audit(views).apply("drop")
    assert all(sum(not np.isnan(dropped[name][row]).all() for name in views) == 1 for row in range(3))


def test_report_is_written_as_json_csv_page_and_table(report, tmp_path):
    facts = json.loads(report.to_json())
    assert facts["findings"][0]["offset"] == -3
    assert {pair["kind"] for pair in facts["pairs"]} >= {"zero", "swap", "shift", "missing"}
    assert facts["summary"][0]["kinds"]["zero"] == pytest.approx(30 / N_ROWS)
    assert facts["summary"][0]["overlap"]["text"] > 2
    report.to_csv(tmp_path / "pairs.csv")
    lines = (tmp_path / "pairs.csv").read_text().splitlines()
    assert lines[0] == "row,view,kind,p_value,partners"
    assert len(lines) == 1 + np.sum(report.kinds != "")
    report.to_html(tmp_path / "page.html", images=np.zeros((N_ROWS, 4, 4), dtype=np.uint8))
    page = (tmp_path / "page.html").read_text()
    assert "Misplaced in image" in page
    assert "p-values of sound" in page
    assert report.table().row_count == len(report.findings)
    with pytest.raises(ParameterError, match="600"):
        report.to_html(tmp_path / "page.html", images=[b""])
    with pytest.raises(ParameterError, match="'drop', 'repair' or 'swap'"):
        report.apply("mend")


def test_pictures_of_a_folder_are_shown_as_they_are(report, tmp_path):
    for row in range(N_ROWS):
        (tmp_path / f"{row:04}.gif").write_bytes(b"GIF89a" + bytes([row % 256]))
    report.to_html(tmp_path / "page.html", images=tmp_path)
    assert "data:image/gif;base64," in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("views", "options", "words"),
    [
        ({"image": np.eye(40)}, {}, "one view, 'image'"),
        ({"image": np.eye(10), "text": np.eye(10)}, {}, "at least 30 rows"),
        ({"image": np.eye(90), "text": np.eye(90)}, {"sources": {"photo": ["image", "text"]}}, "one source"),
        ({"image": np.eye(90), "text": np.eye(90)}, {"false_alarms": 1.0}, "false_alarms"),
        ({"image": np.eye(90), "text": np.eye(90)}, {"model": 3}, "fitted QuorumHasher"),
    ],
)
def test_what_cannot_be_audited_is_refused(views, options, words):
    with pytest.raises((RefusedError, ParameterError), match=words):
        audit(views, **options)


def test_views_without_overlap_are_refused(clean):
    given = {"image": clean["image"].copy(), "text": clean["text"].copy()}
    given["image"][:300], given["text"][290:] = np.nan, np.nan
    given["image"][280:300] = clean["image"][280:300]
    with pytest.raises(RefusedError, match="overlap of 30 rows"):
        audit(given)


def test_command_prints_and_writes(mixed, tmp_path):
    np.savez(tmp_path / "views.npz", **mixed[0])
    words = ["audit", str(tmp_path / "views.npz"), "--json", "--csv", str(tmp_path / "a.csv")]
    done = CliRunner().invoke(app, [*words, "--html", str(tmp_path / "a.html"), "--source", "photo=image"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["findings"][0]["kind"] == "shift"
    assert (tmp_path / "a.csv").is_file()
    assert (tmp_path / "a.html").is_file()


def test_odds_of_rows_are_the_votes_of_the_textbook(clean):
    """S(i, j) is the sum over the other views of share x trust x log odds, pair by pair."""
    views = qh.Views({name: values[:120] for name, values in clean.items()})
    trust = np.random.default_rng(0).uniform(0.2, 1.0, (120, 3))
    with open_engine("threads") as engine:
        facts = find_facts(views, engine)
        judge = learn_inspector(views, [0, 1, 2], facts, engine, 0).judge
        matching = learn_matching(judge.trust, 1, 120)
        matches = match_views(views, judge, matching, trust, engine)
    signatures = described_rows(judge, facts == 0, *(values for _, values in views.items()))[1]
    i, j = np.arange(50), np.arange(50) + 40
    expected = np.zeros(50)
    for pair in judge.trust.pairs:
        if 1 in (pair.first, pair.second):
            other = pair.second if pair.first == 1 else pair.first
            sides = (i, j) if pair.first == 1 else (j, i)
            odds = pair_evidence(pair, signatures[pair.first][sides[0]], signatures[pair.second][sides[1]])
            assert (np.abs(odds) < 20).mean() > 0.3
            odds = np.where(np.abs(odds) < 20, odds, np.nan)  # beyond that the vote is cut off
            expected += pair.shares[0 if pair.first == 1 else 1] * trust[j, other] * odds
    found = matches.odds(i, j)
    known = ~np.isnan(expected)
    assert known.sum() > 5
    assert np.allclose(found[known], expected[known], rtol=1e-3, atol=1e-3)


def test_codes_find_the_partners_that_all_rows_give(clean, monkeypatch):
    views = qh.Views(clean)
    with open_engine("threads") as engine:
        facts = find_facts(views, engine)
        inspector = learn_inspector(views, [0, 1, 2], facts, engine, 0)
        judge, seen = inspector.judge, inspect_views(views, inspector, facts, engine)
        matching = learn_matching(judge.trust, 0, N_ROWS)
        matches = match_views(views, judge, matching, seen.trust, engine)
    homes = learn_homes(seen.trust[:, 0], seen.usable[:, 0], seen.copies[:, 0], 0.5)
    rows = np.arange(60)
    exact, odds = find_partners(matches, matching, homes, rows, 0)
    assert (np.diff(odds + homes.log_prior[exact], axis=1) <= 1e-4).all()
    monkeypatch.setattr("quorumhash.partners.EXACT_ROWS", 10)
    by_codes, _ = find_partners(matches, matching, homes, rows, 0)
    assert np.mean(by_codes[:, 0] == exact[:, 0]) > 0.9
    assert all(len(set(row)) == len(row) for row in by_codes.tolist())
    assert find_partners(matches, matching, homes, rows[:0], 0)[0].shape == (0, 5)


def test_copies_are_rows_with_the_same_number():
    homes = Homes(np.zeros(5, dtype=np.float32), np.array([3, -1, 3, 7, -1]), 1.0)
    assert [sorted(set(row)) for row in _copies(homes, np.array([0, 1])).tolist()] == [[0, 2], [1]]


def test_a_copy_is_a_clue_to_the_partner_unless_copies_are_common():
    """Row 0 holds what row 1 holds; rows 2 and 3 are doubted and wait for a view, by the odds as well as row 1 does."""

    def homes_of(marks, trust):
        matches = MatchRows(np.zeros((len(marks), 1)), np.zeros((len(marks), 1)), np.zeros(len(marks)))
        everywhere = np.ones((len(marks), 1), dtype=bool)
        return learn_homes(trust, everywhere[:, 0], same_rows(marks[:, None], everywhere)[:, 0], 1.0), matches

    marks = np.arange(60)
    marks[0] = marks[1]
    trust = np.full(60, 0.99)
    trust[[0, 2, 3]] = 0.01
    rare, matches = homes_of(marks, trust)
    assert rare.copied == pytest.approx(np.log(60))
    assert find_partners(matches, None, rare, np.array([0]), 0)[0][0, 0] == 1
    marks[10:59:2] = marks[11:60:2]  # most rows are there twice, and believed
    assert homes_of(marks, trust)[0].copied < 0.3


def test_runs_are_the_segments_of_the_largest_sum():
    rng = np.random.default_rng(3)
    for _ in range(20):
        gains = rng.normal(-0.3, 1.0, 60)
        start = int(rng.integers(40))
        gains[start : start + 12] += 2.0
        sums = {(a, b): gains[a : b + 1].sum() for a in range(60) for b in range(a + 4, 60)}
        best = max(sums, key=sums.__getitem__)
        found = max(find_runs(gains, 1, threshold=8.0), key=lambda run: run.weight)
        assert (found.first, found.last) == best
        assert found.weight == pytest.approx(sums[best])


def test_heavier_runs_win_and_far_offsets_need_votes():
    light, heavy = Run(0, 10, 1, 5.0), Run(8, 20, 2, 9.0)
    assert heaviest_runs([light, heavy]) == [heavy]
    rows = np.arange(100)
    assert 40 in voted_offsets(rows, rows + 40, 1000)
    assert voted_offsets(rows, np.full(100, -1), 1000) == [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5]


def test_noise_is_surely_wrong_and_atypical_or_likely_wrong_and_absurd():
    p, trust, density = np.array(
        [
            (1e-3, 0.01, 5e-3),
            (1e-3, 0.01, 0.5),
            (1e-3, 0.04, 0.5),
            (1e-3, 0.3, 1e-5),
            (1e-3, 0.3, 5e-3),
            (1e-3, 0.7, 1e-5),
            (0.5, 0.3, 1e-5),
        ]
    ).T[:, :, None]
    shape = p.shape
    seen = Inspection(
        np.zeros(shape, dtype=np.int8), p, trust, np.zeros(shape, dtype=bool), np.log(density), np.full(shape, -1)
    )
    found = np.array(["", *KINDS])[_first_verdicts(seen, 0.01).kinds[:, 0]]
    assert found.tolist() == ["noise", "swap", "", "noise", "", "", ""]


def test_an_odd_item_is_no_noise_where_noise_leaves_values_of_its_own(clean):
    """Counts of items that are far out are counts all the same; noise on them is not."""
    rng = np.random.default_rng(4)
    counts = np.round(clean["image"] + 4.0).clip(0, 9)
    given = {"counts": counts.copy(), "text": clean["text"], "sound": clean["sound"]}
    odd, noisy = np.arange(5), np.arange(100, 130)
    given["counts"][odd] = rng.choice([0.0, 9.0], (5, counts.shape[1]))
    alone = audit(given).kinds[odd, 0]
    given["counts"][noisy] = counts.mean(axis=0) + 4 * counts.std(axis=0) * rng.standard_normal((30, counts.shape[1]))
    found = audit(given)
    assert (found.kinds[noisy, 0] == "noise").mean() > 0.95
    assert (alone == "noise").sum() >= 3  # nothing else says here what noise looks like
    assert (found.kinds[odd, 0] != "noise").all()
    assert (found.p_values[odd, 0] < 0.01).sum() >= 3  # they are no less suspicious for that


def test_rows_of_known_values_that_are_wrong_are_not_taken_for_right(clean):
    """Another item's counts are known values too: no noise, but no reason to believe them either."""
    rng = np.random.default_rng(4)
    counts = np.round(clean["image"] + 4.0).clip(0, 9)
    given = {"counts": counts.copy(), "text": clean["text"], "sound": clean["sound"]}
    mixed_up, noisy = np.arange(20), np.arange(100, 130)
    given["counts"][mixed_up] = rng.permuted(counts[mixed_up], axis=1)
    given["counts"][noisy] = counts.mean(axis=0) + 4 * counts.std(axis=0) * rng.standard_normal((30, counts.shape[1]))
    found = audit(given)
    assert (found.trust[mixed_up, 0] < 0.5).mean() > 0.8
    repaired = found.apply("repair")["counts"][mixed_up]
    assert (repaired != given["counts"][mixed_up]).any(axis=1).mean() > 0.8
