"""What the page answers, without a server: search, damage, health, facts about the bits."""

import csv
import io
import sys
from itertools import pairwise

import numpy as np
import pytest
from webcollection import N_STORED, small_collection

import quorumhash as qh
from quorumhash.errors import MissingExtraError, ParameterError
from quorumhash.web import answers, health
from quorumhash.web.app import require_server
from quorumhash.web.collection import UnknownItemError, learn_rival
from quorumhash.web.damagelab import DamageLab, Dose
from quorumhash.web.modelfacts import model_facts
from quorumhash.web.opening import Files, open_collection


@pytest.fixture(scope="module")
def collection():
    return small_collection()


@pytest.fixture(scope="module")
def lab(collection):
    return DamageLab(collection, learn_rival(collection, "lsh"))


def brute_force(collection, code, leave_out=None):
    """(distance, id) of every stored item, nearest first, ties by id."""
    bits = np.unpackbits(collection.codes, axis=1) != np.unpackbits(code)
    pairs = zip(bits.sum(axis=1).tolist(), collection.ids.tolist(), strict=True)
    return sorted(pair for pair in pairs if pair[1] != leave_out)


@pytest.mark.parametrize("item", [0, 500, 10 * N_STORED + 30])
def test_search_finds_the_nearest_and_leaves_the_item_out(collection, item):
    expected = brute_force(collection, collection.code(item), item)
    found = answers.search_item(collection, item, 7, None)
    assert [(match["distance"], match["id"]) for match in found["matches"]] == expected[:7]
    assert found["n_found"] == 7
    within = answers.search_item(collection, item, 7, 9)
    assert [(match["distance"], match["id"]) for match in within["matches"]] == [e for e in expected if e[0] <= 9]


def test_codes_are_those_of_the_items(collection):
    for match in answers.search_item(collection, 20, 5, None)["matches"]:
        assert bytes.fromhex(match["code"]) == collection.codes[match["id"] // 10].tobytes()
        assert match["label"] == str(collection.labels[match["id"] // 10])


def test_new_items_are_encoded_from_their_views(collection):
    item = 10 * (N_STORED + 3)
    told = answers.one_item(collection, item)
    assert not told["is_stored"]
    expected = collection.hasher.transform(collection.views[[N_STORED + 3]])[0]
    assert bytes.fromhex(told["code"]) == expected.tobytes()


def test_choices_are_repeatable_and_may_be_of_new_items_only(collection):
    first = answers.some_items(collection, 5, seed=3)
    assert first == answers.some_items(collection, 5, seed=3) != answers.some_items(collection, 5, seed=4)
    assert not any(item["is_stored"] for item in answers.some_items(collection, 50, 0, only_new=True))


def test_unknown_items_are_refused(collection, lab):
    for ask in (
        answers.one_item,
        lambda c, i: answers.search_item(c, i, 3, None),
        lambda c, i: lab.tried(i, Dose(), 3),
    ):
        with pytest.raises(UnknownItemError, match="got 7"):
            ask(collection, 7)


def test_pictures_are_refused_where_views_are_not_made_from_them(collection):
    with pytest.raises(ParameterError, match="pick a stored item"):
        answers.search_picture(collection, np.zeros((8, 8, 3), dtype=np.uint8), 3, None)


def test_no_damage_changes_nothing(lab, collection):
    answer = lab.tried(100, Dose(), 10)
    assert [view["state"] for view in answer["views"]] == ["intact"] * 4
    for method in answer["methods"]:
        assert method["flipped"] == 0
        assert method["kept"] == 1.0
        assert method["precision"] == method["precision_before"]


def test_damage_is_what_it_says(lab, collection):
    """Swapped views are another item's, noise is added, left out is left out, the rest is untouched."""
    dose = Dose(swapped=1, noisy=1, missing=1, strength=2.0, draw=5)
    damaged, told = lab._damaged(10, dose)
    states = {fact["view"]: fact for fact in told}
    assert sorted(fact["state"] for fact in told) == ["intact", "missing", "noisy", "swapped"]
    for name, fact in states.items():
        before = collection.views[name][10]
        if fact["state"] == "missing":
            assert damaged.matrix(name) is None
        elif fact["state"] == "swapped":
            assert fact["partner"] != 100
            np.testing.assert_array_equal(damaged[name][0], collection.views[name][fact["partner"] // 10])
        elif fact["state"] == "intact":
            np.testing.assert_array_equal(damaged[name][0], before)
        else:
            spread = collection.views[name].std(axis=0)
            z = (damaged[name][0] - before)[spread > 0] / spread[spread > 0]
            assert 1.2 < z.std() < 2.8


def test_a_slider_moves_one_view_at_a_time(lab):
    hit = []
    for n in range(5):
        _, told = lab._damaged(10, Dose(swapped=n, draw=1))
        hit.append({fact["view"] for fact in told if fact["state"] == "swapped"})
    assert [len(views) for views in hit] == [0, 1, 2, 3, 4]
    assert all(fewer < more for fewer, more in pairwise(hit))


def test_one_view_is_always_left(lab):
    _, told = lab._damaged(10, Dose(missing=4))
    assert [fact["state"] for fact in told].count("missing") == 3


def test_precision_is_the_share_of_the_items_label(lab, collection):
    method = lab.tried(100, Dose(swapped=2, draw=1), 8)["methods"][0]
    labels = [match["label"] for match in method["matches"]]
    assert method["precision"] == labels.count(str(collection.labels[10])) / 8


def test_bits_are_described_as_numpy_describes_them(collection):
    facts = model_facts(collection)
    bits = np.unpackbits(collection.codes, axis=1).astype(float)
    np.testing.assert_allclose(facts["balance"], bits.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(facts["correlation"], np.corrcoef(bits.T), atol=1e-3)
    far = (bits[:, None] != bits[None]).sum(axis=2)[~np.eye(len(bits), dtype=bool)]
    shares = np.bincount(far, minlength=33) / len(far)
    np.testing.assert_allclose(np.array(facts["distances"]) / sum(facts["distances"]), shares, atol=0.02)


def test_history_is_told_where_a_method_has_sweeps():
    hasher = qh.ConsensusHasher(8, max_iter=3)
    facts = model_facts(small_collection(hasher))
    assert facts["history"]["objective"] == [row["objective"] for row in hasher.history_]


def test_health_tells_what_the_audit_found(collection):
    checked = health.Health(collection)
    assert checked.csv() is None
    assert checked.told()["state"] == "running"
    checked.wait()
    told = checked.told()
    report = qh.audit(collection.views[:N_STORED])
    assert told["state"] == "done"
    assert told["n_damaged"] == int((report.kinds != "").any(axis=1).sum()) > 0
    assert sum(told["kinds"].values()) == int((report.kinds != "").sum())
    for view, values in zip(told["views"], report.p_values.T, strict=True):
        assert view["histogram"] == [
            int(((values >= i / 20) & ((values < (i + 1) / 20) | (i == 19))).sum()) for i in range(20)
        ]
    for pair in told["suspicious"]:
        row, m = pair["id"] // 10, report.names.index(pair["view"])
        assert pair["kind"] == report.kinds[row, m]
        assert [partner["id"] for partner in pair["partners"]] == [10 * r for r in report.partners[row, m] if r >= 0]
    lines = list(csv.DictReader(io.StringIO(checked.csv())))
    assert len(lines) == int((report.kinds != "").sum())


def test_a_name_is_no_formula_in_a_spreadsheet():
    assert health._cell("=1+1") == "'=1+1"
    assert health._cell("cat.png") == "cat.png"


def test_without_views_only_stored_codes_are_searched(tmp_path):
    full = small_collection()
    full.hasher.save(tmp_path / "items.qh")
    with qh.HammingIndex.open(tmp_path / "items.qhx", 32) as index:
        index.add(full.codes, full.ids, model=full.hasher)
    bare = open_collection(Files(tmp_path / "items.qh", tmp_path / "items.qhx"))
    assert answers.search_item(bare, 50, 5, None)["matches"][0]["id"] == brute_force(full, full.codes[5], 50)[0][1]
    assert learn_rival(bare) is None
    assert health.Health(bare).told()["state"] == "unavailable"
    np.savez(tmp_path / "views.npz", **dict(full.views.items()))
    np.save(tmp_path / "ids.npy", full.row_ids[::-1])
    files = Files(tmp_path / "items.qh", tmp_path / "items.qhx", [str(tmp_path / "views.npz")], tmp_path / "ids.npy")
    turned = open_collection(files)
    np.testing.assert_array_equal(turned.item_views(0)["pixels"][0], full.views["pixels"][-1])


def test_without_the_extra_the_page_says_what_to_install(monkeypatch):
    for package in ("fastapi", "uvicorn", "PIL"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'quorumhash\[serve\]'"):
        require_server()


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    full = small_collection()
    full.hasher.save(tmp_path / "items.qh")
    qh.ITQHasher(32, random_state=1).fit(full.views[:50]).save(tmp_path / "other.qh")
    with qh.HammingIndex.open(tmp_path / "items.qhx", 32) as index:
        index.add(full.codes, model=full.hasher)
    qh.HammingIndex.open(tmp_path / "empty.qhx", 32).close()
    np.save(tmp_path / "short.npy", np.arange(3))
    model, index = tmp_path / "items.qh", tmp_path / "items.qhx"
    wrong = {
        "holds codes of another model": Files(tmp_path / "other.qh", index),
        "holds no items": Files(model, tmp_path / "empty.qhx"),
        "--labels must have one entry for each of 160 rows": Files(model, index, labels=tmp_path / "short.npy"),
        "--ids must be 160 different whole numbers": Files(model, index, ids=tmp_path / "short.npy"),
        "--images must be a folder": Files(model, index, images=tmp_path / "nowhere"),
        "holds no picture": Files(model, index, images=tmp_path),
        "pictures can be uploaded where the model has views of gist": Files(model, index, upload_side=32),
    }
    for sentence, files in wrong.items():
        with pytest.raises(ParameterError, match=sentence):
            open_collection(files)
