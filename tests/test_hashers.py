"""The contract of every hasher in HASHERS, on real digits."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import quorumhash as qh
from quorumhash.codes import hamming_distances, unpack_bits
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.evaluation import chance_precision, shared_labels
from quorumhash.modelfile import read_model, write_model

pytestmark = pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
N_BITS = 13  # no multiple of 8
N_ROWS = 300
QUICK = {"max_iter": 6, "n_steps": 10}
LIMITED = {"itq", "rmvh"}  # to the number of features or rows
DRAWS_NOTHING = {"pcah", "sh"}  # the seed has no say


@pytest.fixture(scope="module")
def digits():
    return qh.load_dataset("digits")


@pytest.fixture(scope="module")
def train(digits):
    return digits.views[digits.train_rows[:N_ROWS]]


@pytest.fixture(scope="module")
def queries(digits):
    return digits.views[digits.query_rows[:60]]


def make(name, n_bits=N_BITS, **more):
    hasher = qh.HASHERS[name](n_bits=n_bits)
    quick = {key: value for key, value in QUICK.items() if key in hasher.get_params()}
    return hasher.set_params(**{**quick, **more})


@pytest.fixture(scope="module", params=sorted(qh.HASHERS))
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name, train):
    return make(name).fit(train)


def test_codes_are_packed_bits_of_the_scores(fitted, queries):
    scores = fitted.decision_function(queries)
    assert scores.shape == (60, N_BITS)
    assert scores.dtype == np.float64
    codes = fitted.transform(queries)
    assert codes.shape == (60, 2)
    assert codes.dtype == np.uint8
    bits = fitted.transform(queries, packed=False)
    np.testing.assert_array_equal(bits, scores >= 0)
    np.testing.assert_array_equal(unpack_bits(codes, N_BITS), bits)


@pytest.mark.parametrize("n_bits", [1, 9, 64])
def test_any_number_of_bits(name, train, n_bits):
    assert make(name, n_bits).fit(train).transform(train).shape == (N_ROWS, -(-n_bits // 8))


def test_same_seed_same_bits_other_seed_others(name, fitted, train):
    first, again = fitted.transform(train), make(name).fit(train).transform(train)
    np.testing.assert_array_equal(first, again)
    other = make(name, random_state=1).fit(train).transform(train)
    assert (other != first).any() == (name not in DRAWS_NOTHING)


def test_threads_and_blocks_do_not_change_the_bits(name, fitted, train):
    scores = fitted.decision_function(train)
    for engine in (ThreadsEngine(1), ThreadsEngine(3), ThreadsEngine(2, block_rows=25)):
        other = make(name).fit(train, engine=engine).decision_function(train, engine=engine)
        clear = np.abs(scores) > 1e-4 * scores.std(axis=0)
        assert ((scores >= 0) == (other >= 0))[clear].all()


def test_new_items_need_no_refit_and_do_not_depend_on_their_company(fitted, queries):
    together = fitted.decision_function(queries)[:20]
    alone = np.vstack([fitted.decision_function(queries[[i]]) for i in range(20)])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_better_than_chance(name, digits):
    hasher = make(name, 32).fit(digits.views[digits.train_rows])
    relevance = shared_labels(digits.labels[digits.query_rows], digits.labels[digits.database_rows])
    distances = hamming_distances(
        hasher.transform(digits.views[digits.query_rows]), hasher.transform(digits.views[digits.database_rows])
    )
    assert qh.mean_average_precision(relevance, distances) > 3 * chance_precision(relevance)


def test_permuting_the_items_permutes_the_codes(fitted, queries):
    order = np.random.default_rng(0).permutation(len(queries))
    np.testing.assert_allclose(
        fitted.decision_function(queries[order]), fitted.decision_function(queries)[order], atol=1e-5
    )


def test_order_of_the_views_in_a_query_does_not_matter(fitted, queries):
    turned = {view: queries[view] for view in reversed(queries.names)}
    np.testing.assert_array_equal(fitted.transform(turned), fitted.transform(queries))


def test_any_subset_of_views_may_be_given(fitted, queries):
    for kept in (["pixels"], ["gradients", "profiles"]):
        short = fitted.decision_function({view: queries[view] for view in kept})
        spelt_out = fitted.decision_function({view: queries[view] if view in kept else None for view in queries})
        nan_rows = {view: queries[view] if view in kept else np.full_like(queries[view], np.nan) for view in queries}
        np.testing.assert_array_equal(short, spelt_out)
        np.testing.assert_allclose(short, fitted.decision_function(nan_rows), atol=1e-6)
        assert np.isfinite(short).all()


def test_missing_values_and_views_in_fit(name, digits, train, queries):
    holes = qh.damage(qh.damage(train, "drop_view", rate=0.2), "drop_values", rate=0.1)
    assert any(holes.is_incomplete(view) for view in holes)
    hasher = make(name).fit(holes)
    relevance = shared_labels(digits.labels[digits.query_rows[:60]], digits.labels[digits.train_rows[:N_ROWS]])
    distances = hamming_distances(hasher.transform(queries), hasher.transform(holes))
    assert qh.mean_average_precision(relevance, distances) > 1.5 * chance_precision(relevance)


def test_kinds_of_input_give_the_same_codes(fitted, queries):
    expected = fitted.decision_function(queries)
    kinds = [
        {view: np.asfortranarray(queries[view]) for view in queries},
        {view: scipy.sparse.csr_matrix(queries[view]) for view in queries},
        {view: queries[view].astype(np.float32) for view in queries},
        {view: pd.DataFrame(queries[view]) for view in queries},
    ]
    for kind in kinds:
        np.testing.assert_allclose(fitted.decision_function(kind), expected, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.uint8])
def test_number_types(name, train, dtype):
    views = {view: np.round(train[view] * 3).astype(dtype) for view in ("pixels", "profiles")}
    as_float = {view: matrix.astype(np.float64) for view, matrix in views.items()}
    np.testing.assert_array_equal(make(name).fit(views).transform(views), make(name).fit(as_float).transform(as_float))


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (lambda v: {"colour": v["pixels"]}, "view 'colour' is unknown to this .*Hasher: it was fitted on 'pixels'"),
        (lambda v: {"pixels": v["pixels"][:, :5]}, "X has 5 features, but .*Hasher is expecting 64 features"),
        (lambda v: {"pixels": v["pixels"] * np.inf}, "view 'pixels', row 0"),
        (lambda v: {"pixels": v["pixels"], "profiles": v["profiles"][:3]}, "view 'profiles' has 3 rows"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_wrong_views_are_refused_in_transform(fitted, queries, bad, sentence):
    with pytest.raises(qh.ViewsError, match=sentence):
        fitted.transform(bad(queries))


@pytest.mark.parametrize("n_bits", [0, -3, 2.5, "64", None, True, 1025])
def test_bad_numbers_of_bits(name, train, n_bits):
    with pytest.raises(qh.ParameterError, match=r"n_bits of .*Hasher must be a whole number from 1 to 1024"):
        make(name, n_bits).fit(train)


def test_refusals_come_with_a_reason(name, train):
    if not qh.HASHERS[name].uses_pairs:
        with pytest.raises(qh.RefusedError, match="learns without pairs"):
            make(name).fit(train, similar_pairs=np.array([[0, 1]]))
    with pytest.raises(qh.RefusedError, match="n_samples=1"):
        make(name).fit(train[:1])
    with pytest.raises(qh.ParameterError, match="engine must be"):
        make(name).fit(train, engine="gpu")


@pytest.mark.parametrize("random_state", [-1, 1.5, "a", 2**32])
def test_bad_random_states(name, train, random_state):
    with pytest.raises(qh.ParameterError, match="random_state must be a whole number from 0"):
        make(name, random_state=random_state).fit(train)


def test_generators_and_none_are_random_states(name, train):
    for random_state in (None, np.random.default_rng(0), np.random.RandomState(0)):
        make(name, random_state=random_state).fit(train)


def test_bad_budgets_rows_and_labels_are_refused_at_once(name, fitted, train, queries):
    with pytest.raises(qh.ParameterError, match="memory_budget must be a number of bytes, got '1GB'"):
        make(name).fit(train, memory_budget="1GB")
    with pytest.raises(qh.ViewsError, match="no rows to encode"):
        fitted.transform(queries[[]])


def test_columns_of_a_dict_of_frames_are_remembered(name, train):
    frame = pd.DataFrame(train["pixels"]).add_prefix("p")
    hasher = make(name).fit({"pixels": frame, "profiles": train["profiles"]})
    with pytest.raises(qh.ViewsError, match="view 'pixels' has columns p63"):
        hasher.transform({"pixels": frame[frame.columns[::-1]]})


def test_handles_says_why_not(train):
    for name in qh.HASHERS:
        fits, _ = make(name).handles(train)
        assert fits
        fits, reason = make(name, 1_024).handles(train)
        assert fits == (name not in LIMITED)
        if not fits:
            assert "got 1024" in reason
            with pytest.raises(qh.RefusedError, match="cannot face this setting"):
                make(name, 1_024).fit(train)


def test_not_fitted(name, queries):
    with pytest.raises(NotFittedError):
        make(name).transform(queries)
    with pytest.raises(NotFittedError):
        make(name).save("nowhere.qh")


def test_clone_and_parameters(name):
    hasher = make(name, random_state=3)
    twin = clone(hasher)
    assert twin.get_params() == hasher.get_params()
    assert twin.set_params(n_bits=5).n_bits == 5


def test_model_files_round_trip(fitted, queries, tmp_path):
    path = tmp_path / "items.qh"
    fitted.save(path)
    loaded = qh.load(path)
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.decision_function(queries), fitted.decision_function(queries))
    assert loaded.fingerprint() == fitted.fingerprint()
    loaded.save(tmp_path / "again.qh")
    assert (tmp_path / "again.qh").read_bytes() == path.read_bytes()


def test_the_same_fit_has_the_same_fingerprint(name, fitted, train):
    first, again = make(name).fit(train), fitted
    assert first.fingerprint() == again.fingerprint()
    if "verbose" in first.get_params():
        assert first.set_params(verbose=True).fingerprint() == again.fingerprint()


def test_a_model_file_without_its_history_is_read(fitted, queries, tmp_path):
    fitted.save(tmp_path / "items.qh")
    read = read_model(tmp_path / "items.qh")
    state = {key: value for key, value in read.state.items() if key not in fitted.told}
    write_model(tmp_path / "older.qh", read.kind, read.parameters, state)
    np.testing.assert_array_equal(qh.load(tmp_path / "older.qh").transform(queries), fitted.transform(queries))


def test_fingerprints_tell_models_apart(name, fitted, train):
    other = make(name, random_state=5).fit(train[:250])
    assert other.fingerprint() != fitted.fingerprint()
    if name in DRAWS_NOTHING:
        assert make(name, random_state=5).fit(train).fingerprint() == fitted.fingerprint()
    else:
        assert make(name, random_state=5).fit(train).fingerprint() != fitted.fingerprint()


def test_two_thousand_mutated_model_files(name, train, tmp_path):
    """No crash, none accepted silently."""
    small = make(name, 8, **({"n_kernel_landmarks": 16} if name == "rmvh" else {})).fit(train[:60])
    path = tmp_path / "small.qh"
    small.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for trial in range(2_000 // len(qh.HASHERS) + 1):
        data = bytearray(whole)
        place = int(rng.integers(len(data)))
        if trial % 3 == 0:
            data[place] ^= 1 << int(rng.integers(8))
        elif trial % 3 == 1:
            del data[place:]
        else:
            data[place:place] = bytes(rng.integers(0, 256, int(rng.integers(1, 9)), dtype=np.uint8))
        path.write_bytes(data)
        with pytest.raises(qh.ModelFileError):
            qh.load(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c.update(kind="OtherHasher"), "OtherHasher, which this version does not know"),
        (lambda c: c["state"].pop("view_widths_"), "does not fit .*missing .*view_widths_"),
        (lambda c: c["state"].update(extra_=1), "unknown .*extra_"),
        (lambda c: c["parameters"].update(colour=1), "parameters .* does not know"),
    ],
)
def test_well_formed_files_that_do_not_fit_are_refused(fitted, tmp_path, change, sentence):
    fitted.save(tmp_path / "items.qh")
    read = read_model(tmp_path / "items.qh")
    content = {"kind": read.kind, "parameters": dict(read.parameters), "state": dict(read.state)}
    change(content)
    write_model(tmp_path / "changed.qh", **content)
    with pytest.raises(qh.ModelFileError, match=sentence):
        qh.load(tmp_path / "changed.qh")


def test_unknown_parts_are_never_made(fitted, tmp_path):
    fitted.save(tmp_path / "items.qh")
    read = read_model(tmp_path / "items.qh")
    state = dict(read.state) | {fitted.learned[0]: {"part": "Popen", "args": "ls"}}
    write_model(tmp_path / "changed.qh", read.kind, read.parameters, state)
    with pytest.raises(qh.ModelFileError, match="unknown part 'Popen'"):
        qh.load(tmp_path / "changed.qh")


def test_model_files_hold_numbers_only(fitted, tmp_path):
    fitted.save(tmp_path / "items.qh")
    with zipfile.ZipFile(tmp_path / "items.qh") as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["kind"] == type(fitted).__name__
        for member in archive.namelist()[1:]:
            np.load(io.BytesIO(archive.read(member)), allow_pickle=False)


def test_score_needs_labels(name, fitted, digits, train):
    labels = digits.labels[digits.train_rows[:N_ROWS]]
    hasher = make(name).fit(train, labels)
    assert 0.1 < hasher.score(train[:50], labels[:50]) <= 1
    texts = np.array([f"digit {label}" for label in labels])
    assert make(name).fit(train, texts).score(train[:50], texts[:50]) == pytest.approx(
        hasher.score(train[:50], labels[:50])
    )
    with pytest.raises(qh.ParameterError, match="fit\\(X, y\\) with labels"):
        fitted.score(train[:50], labels[:50])
    with pytest.raises(qh.ParameterError, match="labels must have one entry per row"):
        make(name).fit(train, labels[:7])


def test_grid_search_and_cross_validation_on_views(name, digits, train):
    labels = digits.labels[digits.train_rows[:N_ROWS]]
    quick = clone(make(name))
    search = GridSearchCV(quick, {"n_bits": [4, 24]}, cv=2, refit=False).fit(train, labels)
    assert search.best_params_["n_bits"] in (4, 24)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert np.isfinite(cross_validate(quick, train, labels, cv=2)["test_score"]).all()


def test_pipeline(name, train):
    pipeline = make_pipeline(FunctionTransformer(), make(name))
    assert pipeline.fit(train).transform(train).shape == (N_ROWS, 2)


def test_frames_with_column_groups(name, train):
    frame = pd.concat([pd.DataFrame(train[v]).add_prefix(f"{v}__") for v in ("pixels", "profiles")], axis=1)
    hasher = make(name).fit(frame)
    expected = make(name).fit({v: train[v] for v in ("pixels", "profiles")}).transform({"profiles": train["profiles"]})
    np.testing.assert_array_equal(hasher.transform(frame.filter(like="profiles__")), expected)
    turned = frame[frame.columns[::-1]]
    with pytest.raises(qh.ViewsError, match="view 'profiles' has columns profiles__45"):
        hasher.transform(turned)


def test_a_frame_without_groups_remembers_its_columns(name, train, tmp_path):
    frame = pd.DataFrame(train["pixels"]).add_prefix("p")
    hasher = make(name).fit(frame)
    assert list(hasher.feature_names_in_) == list(frame.columns)
    hasher.save(tmp_path / "items.qh")
    with pytest.raises(qh.ViewsError, match="feature names"):
        qh.load(tmp_path / "items.qh").transform(frame.rename(columns={"p0": "q0"}))


def test_progress_goes_to_the_error_stream_and_only_on_request(train, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then writes as to a terminal
    make("rmvh", verbose=True).fit(train)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "objective" in shown.err
    make("rmvh").fit(train)
    assert capsys.readouterr().err == ""


def test_a_failed_fit_leaves_the_hasher_as_it_was(fitted, name, train, queries):
    failed = make(name)
    with pytest.raises(qh.RefusedError):
        failed.fit(train[:1])
    with pytest.raises(NotFittedError):
        failed.transform(queries)
    hasher = make(name).fit(train)
    with pytest.raises(qh.QuorumHashError):
        hasher.set_params(n_bits=0).fit({"other": queries["pixels"]})
    np.testing.assert_array_equal(hasher.transform(queries), fitted.transform(queries))


def test_what_was_learned_decides_not_what_is_set_later(name, train, queries, tmp_path):
    hasher = make(name).fit(train)
    before = hasher.fingerprint()
    hasher.set_params(n_bits=5)
    assert hasher.transform(queries).shape == (60, 2)
    assert len(hasher.get_feature_names_out()) == 2
    assert hasher.fingerprint() == before
    hasher.save(tmp_path / "items.qh")
    assert qh.load(tmp_path / "items.qh").transform(queries).shape == (60, 2)


def test_pandas_output(name, train, queries):
    hasher = make(name).fit(train).set_output(transform="pandas")
    assert isinstance(hasher.transform(queries), pd.DataFrame)
    with pytest.raises(qh.ParameterError, match="packed=False gives plain arrays"):
        hasher.transform(queries, packed=False)


def test_queries_far_outside_the_training_data_get_codes(fitted, queries):
    far = {view: queries[view] * 1e60 for view in queries}
    assert fitted.transform(far).shape == (60, 2)


def broken_parts(value):
    """Every array of a learned value cut short by a row, one at a time."""
    if isinstance(value, np.ndarray):
        if value.size:  # of an array without entries nothing is left to break
            yield value[:-1]
            yield value.astype(np.int64 if value.dtype.kind == "f" else np.float64)
            yield np.full(value.shape, np.nan)
    elif isinstance(value, dict):
        for key, item in value.items():
            parts = list(broken_parts(item))
            # a view may have any number of mass points: with one fewer it is another model, and whole
            yield from ({**value, key: broken} for broken in (parts[1:] if key == "mass_points" else parts))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from ([*value[:i], broken, *value[i + 1 :]] for broken in broken_parts(item))
    elif isinstance(value, int | float | str):
        yield None


def test_signed_files_whose_parts_do_not_fit_are_refused(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)  # hundreds of files that no crash has to leave whole
    fitted.save(tmp_path / "items.qh")
    read = read_model(tmp_path / "items.qh")
    count = 0
    for name in ("view_widths_", "n_features_in_", "n_bits_", *fitted.learned):
        for broken in broken_parts(read.state[name]):
            write_model(tmp_path / "broken.qh", read.kind, read.parameters, {**read.state, name: broken})
            with pytest.raises(qh.ModelFileError):
                qh.load(tmp_path / "broken.qh")
            count += 1
    assert count > 10
