"""Every metric against a plain loop, and the averages over ties against all orders of the tied items."""

import doctest
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumhash import evaluation
from quorumhash.errors import ParameterError
from quorumhash.evaluation import (
    chance_precision,
    distinct_codes,
    lookup_precision,
    mean_average_precision,
    nearest_rows,
    neighbour_recall,
    precision_at,
    precision_recall,
    shared_labels,
    tie_list_size,
    true_neighbours,
)

# ---------------------------------------------------------------- plain loops


def average_precision_of(ranking, depth):
    """Average precision of one list of True and False, in the order of the ranking."""
    found, total = 0, 0.0
    for rank, is_relevant in enumerate(ranking[:depth], start=1):
        if is_relevant:
            found += 1
            total += found / rank
    return total / min(depth, sum(ranking))


def all_rankings(relevance, distances):
    """Every order of one query's items that the distances allow."""
    groups = [
        [is_relevant for is_relevant, other in zip(relevance, distances, strict=True) if other == distance]
        for distance in sorted(set(distances))
    ]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [is_relevant for order in orders for is_relevant in order]


def mean_over_rankings(measure, relevance, distances):
    return float(np.mean([measure(ranking) for ranking in all_rankings(relevance, distances)]))


def brute_force_map(relevance, distances, depth):
    scores = [
        mean_over_rankings(lambda ranking: average_precision_of(ranking, depth), r, d)
        for r, d in zip(relevance, distances, strict=True)
        if any(r)
    ]
    return float(np.mean(scores))


@st.composite
def small_cases(draw):
    """(relevance, distances) of a few queries with many ties; the first query has a relevant item."""
    n_queries, n_items = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    flags = st.lists(st.booleans(), min_size=n_items, max_size=n_items)
    numbers = st.lists(st.integers(0, 3), min_size=n_items, max_size=n_items)
    relevance = draw(st.lists(flags, min_size=n_queries, max_size=n_queries))
    relevance[0][draw(st.integers(0, n_items - 1))] = True
    return relevance, draw(st.lists(numbers, min_size=n_queries, max_size=n_queries))


@pytest.fixture
def case():
    """Relevance and Hamming distances of 20 queries and 150 items, with many ties; query 3 has no relevant item."""
    rng = np.random.default_rng(3)
    relevance = rng.random((20, 150)) < 0.2
    relevance[3] = False
    return relevance, np.maximum(rng.binomial(16, 0.5, (20, 150)) - 2 * relevance, 0)


# ---------------------------------------------------------------- mean average precision


@settings(max_examples=80, deadline=None)
@given(small_cases())
def test_map_is_the_mean_over_all_orders_of_tied_items(sample):
    relevance, distances = sample
    expected = brute_force_map(relevance, distances, depth=len(distances[0]))
    assert mean_average_precision(relevance, distances) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=80, deadline=None)
@given(small_cases(), st.integers(1, 8))
def test_map_at_depth_is_the_mean_over_all_orders_of_tied_items(sample, depth):
    relevance, distances = sample
    expected = brute_force_map(relevance, distances, depth)
    assert mean_average_precision(relevance, distances, depth=depth) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("depth", [None, 5, 40])
def test_map_agrees_with_random_orders_of_tied_items(case, depth):
    relevance, distances = case[0][:3], case[1][:3]
    rng = np.random.default_rng(0)
    n_draws, samples = 2_000, []
    for _ in range(n_draws):
        orders = np.lexsort((rng.random(distances.shape), distances), axis=1)
        rankings = np.take_along_axis(relevance, orders, axis=1).tolist()
        samples.append(np.mean([average_precision_of(ranking, depth or 150) for ranking in rankings]))
    error = np.std(samples) / math.sqrt(n_draws)
    assert abs(mean_average_precision(relevance, distances, depth) - np.mean(samples)) < 4 * error
    assert error < 1e-2


def test_map_without_ties_is_the_textbook_formula(case):
    relevance = case[0]
    distances = np.random.default_rng(1).random(relevance.shape)
    rankings = [relevance[query, np.argsort(distances[query])].tolist() for query in range(20) if query != 3]
    expected = np.mean([average_precision_of(ranking, 150) for ranking in rankings])
    assert mean_average_precision(relevance, distances) == pytest.approx(expected, rel=1e-12)


def test_perfect_ranking_has_map_of_exactly_one_at_every_depth(case):
    relevance = case[0]
    order = np.argsort(~relevance, axis=1).argsort(axis=1)  # relevant items first, no ties
    for depth in (None, 1, 10, 1_000):
        assert mean_average_precision(relevance, ~relevance * 3, depth) == 1.0
        assert mean_average_precision(relevance, order * 0.5, depth) == 1.0


def test_worst_ranking_and_all_tied():
    assert mean_average_precision([[False, False, True]], [[0, 1, 2]]) == pytest.approx(1 / 3)
    assert mean_average_precision([[False, False, True]], [[0, 1, 2]], depth=2) == 0.0
    assert mean_average_precision([[True, False, False]], [[7, 7, 7]]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_map_leaves_out_queries_without_relevant_items(case):
    relevance, distances = case
    kept = np.delete(np.arange(20), 3)
    assert mean_average_precision(relevance, distances) == mean_average_precision(relevance[kept], distances[kept])
    with pytest.raises(ParameterError, match="relevance must be True for some item"):
        mean_average_precision(relevance[3:4], distances[3:4])


def test_depth_beyond_the_database_changes_nothing(case):
    assert mean_average_precision(*case, depth=150) == mean_average_precision(*case)
    assert mean_average_precision(*case, depth=10_000) == mean_average_precision(*case)


# ---------------------------------------------------------------- what holds for all


METRICS = {
    "map": mean_average_precision,
    "map@7": lambda relevance, distances: mean_average_precision(relevance, distances, depth=7),
    "precision": lambda relevance, distances: precision_at(relevance, distances, 9),
    "curve": lambda relevance, distances: precision_recall(relevance, distances).recall.tolist(),
    "lookup": lambda relevance, distances: lookup_precision(relevance, distances, radius=5)[0],
    "ties": lambda relevance, distances: tie_list_size(distances),
}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_order_of_the_database_does_not_matter(metric, case):
    relevance, distances = case
    columns = np.random.default_rng(2).permutation(150)
    assert metric(relevance[:, columns], distances[:, columns]) == pytest.approx(
        metric(relevance, distances), rel=1e-12
    )


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.float32, np.float64])
def test_type_of_the_distances_does_not_matter(metric, dtype, case):
    relevance, distances = case
    assert metric(relevance, distances.astype(dtype)) == pytest.approx(metric(relevance, distances), rel=1e-12)


@pytest.mark.parametrize("metric", [METRICS["map"], METRICS["precision"], METRICS["curve"]])
@pytest.mark.parametrize("shift", [-100, 2**40])
def test_only_the_order_of_distances_counts(metric, shift, case):
    relevance, distances = case
    assert metric(relevance, distances + shift) == metric(relevance, distances)
    assert metric(relevance, distances * 10**6 + shift) == pytest.approx(metric(relevance, distances), rel=1e-12)


def test_small_integers_do_not_overflow():
    far = np.array([[-100, 100]], dtype=np.int8)
    assert mean_average_precision([[False, True]], far) == 0.5


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_blocks_do_not_matter(metric, case, monkeypatch):
    whole = metric(*case)
    monkeypatch.setattr(evaluation, "BLOCK_VALUES", 450)
    assert metric(*case) == pytest.approx(whole, rel=1e-12)


def test_infinite_distance_is_last():
    assert mean_average_precision([[True, False, False]], [[np.inf, 1.0, 2.0]]) == pytest.approx(1 / 3)


# ---------------------------------------------------------------- precision and recall


@settings(max_examples=60, deadline=None)
@given(small_cases(), st.integers(1, 6))
def test_precision_at_is_the_mean_over_all_orders_of_tied_items(sample, n):
    relevance, distances = sample
    n = min(n, len(distances[0]))
    rows = zip(relevance, distances, strict=True)
    expected = np.mean([mean_over_rankings(lambda ranking: sum(ranking[:n]) / n, r, d) for r, d in rows])
    assert precision_at(relevance, distances, n) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(small_cases())
def test_curve_is_the_mean_over_all_orders_of_tied_items(sample):
    relevance, distances = sample
    curve = precision_recall(relevance, distances)
    rows = [(r, d) for r, d in zip(relevance, distances, strict=True) if any(r)]
    assert curve.n_first.tolist() == list(range(1, len(distances[0]) + 1))
    for place, n in enumerate(curve.n_first):
        precision = np.mean([mean_over_rankings(lambda ranking, n=n: sum(ranking[:n]) / n, r, d) for r, d in rows])
        recall = np.mean(
            [mean_over_rankings(lambda ranking, n=n: sum(ranking[:n]) / sum(ranking), r, d) for r, d in rows]
        )
        assert curve.precision[place] == pytest.approx(precision, abs=1e-12)
        assert curve.recall[place] == pytest.approx(recall, abs=1e-12)


def test_curve_has_few_points_from_first_item_to_all():
    rng = np.random.default_rng(0)
    curve = precision_recall(rng.random((4, 5_000)) < 0.1, rng.integers(0, 60, (4, 5_000)))
    assert 80 < len(curve.n_first) <= 101
    assert curve.n_first[0] == 1
    assert curve.n_first[-1] == 5_000
    assert np.all(np.diff(curve.recall) >= 0)
    assert curve.recall[-1] == 1.0
    assert curve.precision[0] == pytest.approx(0.1, abs=0.1)


def test_precision_counts_queries_without_relevant_items(case):
    relevance, distances = case
    every = [precision_at(relevance[[i]], distances[[i]], 9) for i in range(20)]
    assert every[3] == 0.0
    assert precision_at(relevance, distances, 9) == pytest.approx(np.mean(every))


@pytest.mark.parametrize("radius", [0, 2, 5, 6.5, 100])
def test_lookup_is_the_plain_loop(case, radius):
    precisions, empty = [], 0
    for flags, row in zip(*case, strict=True):
        found = [flag for flag, distance in zip(flags, row, strict=True) if distance <= radius]
        empty += not found
        precisions.append(sum(found) / len(found) if found else 0.0)
    precision, empty_share = lookup_precision(*case, radius=radius)
    assert precision == pytest.approx(np.mean(precisions))
    assert empty_share == empty / 20


def test_lookup_radius_is_two_unless_told():
    assert lookup_precision([[True, False, False]], [[2, 2, 3]]) == (0.5, 0.0)


def test_tie_list_and_chance_are_the_plain_loops(case):
    relevance, distances = case
    assert tie_list_size(distances) == np.mean([list(row).count(min(row)) for row in distances])
    assert chance_precision(relevance) == pytest.approx(sum(map(sum, relevance.tolist())) / 3_000)
    assert chance_precision(relevance) == pytest.approx(precision_at(relevance, np.zeros((20, 150)), 9))


# ---------------------------------------------------------------- labels, ids, neighbours, codes


def test_shared_labels_of_integers():
    queries, database = [0, 2, -1, 5], [2, 0, -1, 2, -3]
    expected = [[q == d and q >= 0 for d in database] for q in queries]
    assert shared_labels(queries, database).tolist() == expected
    assert shared_labels(queries, database).dtype == bool


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float64])
def test_shared_labels_of_many_hot_rows(dtype):
    rng = np.random.default_rng(0)
    queries, database = (rng.random((6, 4)) < 0.4).astype(dtype), (rng.random((9, 4)) < 0.4).astype(dtype)
    queries[0] = 0
    expected = [[any(a and b for a, b in zip(q, d, strict=True)) for d in database] for q in queries]
    assert shared_labels(queries, database).tolist() == expected
    assert not shared_labels(queries, database)[0].any()


def test_many_labels_in_uint8_do_not_overflow():
    assert shared_labels(np.ones((1, 256), dtype=np.uint8), np.ones((1, 256), dtype=np.uint8)).all()


def ids(n_columns):
    return st.lists(st.lists(st.integers(-3, 6), min_size=n_columns, max_size=n_columns), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5).flatmap(ids), st.integers(1, 4).flatmap(ids))
def test_neighbour_recall_is_the_plain_loop_over_sets(found, true):
    expected = np.mean([len(set(f) & set(t)) / len(set(t)) for f, t in zip(found, true, strict=True)])
    assert neighbour_recall(found, true) == pytest.approx(expected)


def test_neighbour_recall_keeps_large_ids_apart():
    found, true = np.array([[2**62 + 1]], dtype=np.uint64), np.array([[2**62]], dtype=np.int64)
    assert neighbour_recall(found, true) == 0.0
    assert neighbour_recall(found, true + 1) == 1.0


@settings(max_examples=60, deadline=None)
@given(small_cases(), st.integers(1, 6))
def test_nearest_rows_go_by_distance_then_by_column(sample, k):
    distances = sample[1]
    k = min(k, len(distances[0]))
    expected = [sorted(range(len(row)), key=lambda column: (row[column], column))[:k] for row in distances]
    assert nearest_rows(distances, k).tolist() == expected


def test_nearest_rows_of_many_items_in_blocks(case, monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_VALUES", 450)
    for distances in (case[1], case[1].astype(np.uint8), case[1] * 0.5):
        assert np.array_equal(nearest_rows(distances, 40), np.argsort(distances, axis=1, kind="stable")[:, :40])


def plain_neighbours(queries, database, k):
    squared = [((database - query) ** 2).sum(axis=1) for query in queries]
    return np.stack([np.argsort(row, kind="stable")[:k] for row in squared])


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("k", [1, 7, 300])
def test_true_neighbours_are_exact(offset, k, monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_VALUES", 1_000)
    rng = np.random.default_rng(0)
    queries, database = rng.standard_normal((10, 6)) + offset, rng.standard_normal((300, 6)) + offset
    assert np.array_equal(true_neighbours(queries, database, k), plain_neighbours(queries, database, k))


def test_true_neighbours_among_equals_take_the_lowest_row():
    rng = np.random.default_rng(0)
    database = np.repeat(rng.standard_normal((40, 33)), 5, axis=0)[rng.permutation(200)]
    queries = database[:20] + 1e-3 * rng.standard_normal((20, 33))
    assert np.array_equal(true_neighbours(queries, database, 12), plain_neighbours(queries, database, 12))


def test_true_neighbours_survive_one_enormous_row():
    rng = np.random.default_rng(0)
    database = rng.standard_normal((50, 4))
    database[7] = 1e9
    assert np.array_equal(true_neighbours(database[:5], database, 50), plain_neighbours(database[:5], database, 50))


def test_true_neighbours_of_integers_and_float32():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 255, (60, 5)).astype(np.uint8)
    assert np.array_equal(true_neighbours(points, points, 4), plain_neighbours(points * 1.0, points * 1.0, 4))
    assert np.array_equal(true_neighbours(points.astype(np.float32), points, 4), true_neighbours(points, points, 4))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, bool])
def test_distinct_codes_is_the_size_of_the_set_of_rows(dtype):
    codes = np.random.default_rng(0).integers(0, 2, (40, 4)).astype(dtype)
    assert distinct_codes(codes) == len({tuple(row) for row in codes.tolist()})
    assert isinstance(distinct_codes(codes), int)


# ---------------------------------------------------------------- refusals


REFUSED = {
    "other shape": (lambda: mean_average_precision([[True]], [[1, 2]]), r"shape \(1, 2\) of distances, got \(1, 1\)"),
    "one dimension": (lambda: mean_average_precision([True], [1]), r"\(n_queries, n_items\).*got bool of shape \(1,\)"),
    "no query": (lambda: chance_precision(np.empty((0, 3), dtype=bool)), "not empty"),
    "text": (lambda: tie_list_size([["a"]]), "distances must be numbers"),
    "NaN": (lambda: tie_list_size([[1.0, np.nan]]), "got NaN"),
    "graded relevance": (lambda: chance_precision([[0.0, 0.5]]), "True or False"),
    "depth 0": (lambda: mean_average_precision([[True]], [[1]], depth=0), "depth must be an integer from 1"),
    "depth 2.5": (lambda: mean_average_precision([[True]], [[1]], depth=2.5), "depth must be an integer from 1"),
    "n too large": (lambda: precision_at([[True]], [[1]], n=2), "n must be an integer from 1 to 1, got 2"),
    "no relevant item": (lambda: precision_recall([[False]], [[1]]), "got False throughout"),
    "k too large": (lambda: nearest_rows([[1, 2]], k=3), "k must be an integer from 1 to 2, got 3"),
    "k of 0": (lambda: true_neighbours([[1.0]], [[1.0]], k=0), "k must be an integer from 1 to 1, got 0"),
    "widths": (lambda: true_neighbours([[1.0]], [[1.0, 2.0]], k=1), "width of queries must be 2, got 1"),
    "missing value": (lambda: true_neighbours([[np.nan]], [[1.0]], k=1), "must be finite"),
    "rows of ids": (lambda: neighbour_recall([[1]], [[1], [2]]), "as many rows as true_ids, 2, got 1"),
    "no true ids": (lambda: neighbour_recall([[1]], np.empty((1, 0), dtype=int)), "true_ids"),
    "float ids": (lambda: neighbour_recall([[1.5]], [[1]]), "found_ids must be integers"),
    "float labels": (lambda: shared_labels([1.5], [1]), "labels of shape .* must be integers"),
    "label shapes": (lambda: shared_labels([1], [[1]]), "labels must be both"),
    "label widths": (lambda: shared_labels([[1]], [[1, 0]]), "labels must be both"),
    "label values": (lambda: shared_labels([[1]], [[2]]), "must be 0 or 1"),
    "flat codes": (lambda: distinct_codes([1, 2]), "codes must be integers of shape"),
}


@pytest.mark.parametrize(("call", "sentence"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=sentence) as caught:
        call()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_examples_in_the_docstrings_run():
    result = doctest.testmod(evaluation)
    assert result.attempted >= 11
    assert result.failed == 0


def test_precision_and_recall_at_given_cut_offs_are_those_of_the_curve():
    rng = np.random.default_rng(0)
    relevance, distances = rng.random((5, 80)) < 0.3, rng.integers(0, 9, (5, 80))
    whole, some = precision_recall(relevance, distances), precision_recall(relevance, distances, [1, 20, 80])
    assert some.n_first.tolist() == [1, 20, 80]
    assert some.precision[1] == pytest.approx(precision_at(relevance[relevance.any(axis=1)], distances, 20))
    assert some.recall[-1] == whole.recall[-1] == 1
