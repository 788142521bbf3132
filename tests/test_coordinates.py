"""A view in a few coordinates: against plain principal components, with missing values, far rows and constants."""

import numpy as np
import pytest

from quorumhash.coordinates import (
    COMPLETION_SHRINKAGE,
    coordinate_rows,
    default_n_components,
    emptied_rows,
    scaled_and_completed,
    signature_rows,
)
from quorumhash.describing import N_PLAIN, N_SIGNATURE, describe, learn_components

rng = np.random.default_rng(0)


def low_rank(n_rows, n_features=30, rank=3, noise=0.05, seed=0):
    draw = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).standard_normal((rank, n_features))
    return 5.0 + draw.standard_normal((n_rows, rank)) @ loadings + noise * draw.standard_normal((n_rows, n_features))


def with_holes(rows, rate=0.25, seed=1):
    holes = np.random.default_rng(seed).random(rows.shape) < rate
    return np.where(holes, np.nan, rows), holes


def same_span(first, second):
    """The smallest cosine between two spaces: 1 where they are one."""
    return np.linalg.svd(first.T @ second, compute_uv=False).min()


def test_complete_rows_get_plain_principal_components():
    X = rng.standard_normal((400, 12)) * np.linspace(3, 1, 12) + 7
    new = rng.standard_normal((50, 12)) * np.linspace(3, 1, 12) + 7
    components = learn_components(X, 4)
    centred = X - X.mean(0)
    size = np.sqrt((centred**2).sum() / len(X))
    _, values, right = np.linalg.svd(centred / size, full_matrices=False)
    got = coordinate_rows(components, scaled_and_completed(components, new))
    wanted = (new - X.mean(0)) / size @ right[:4].T
    np.testing.assert_allclose(np.abs(got), np.abs(wanted), atol=1e-9)
    np.testing.assert_allclose(components.variances, values[:4] ** 2 / len(X), rtol=1e-9)


def test_all_components_keep_distances_up_to_one_factor():
    X = rng.standard_normal((100, 9)) * np.linspace(1, 50, 9)
    components = learn_components(X, 128)
    rows = coordinate_rows(components, scaled_and_completed(components, X))
    ratios = np.linalg.norm(rows[1:] - rows[:-1], axis=1) / np.linalg.norm(X[1:] - X[:-1], axis=1)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)
    assert np.mean((rows**2).sum(1)) == pytest.approx(1)


@pytest.mark.parametrize("is_new", [False, True])
def test_completion_beats_the_mean_by_far(is_new):
    rows = low_rank(600)
    given, _ = with_holes(rows)
    components = learn_components(given, 3)
    if is_new:
        rows = low_rank(300, seed=5)
        given, _ = with_holes(rows, seed=6)
    holes = np.isnan(given)
    completed = scaled_and_completed(components, given) / components.scaling.factor + components.scaling.mean
    wrong = np.sqrt(np.mean((completed - rows)[holes] ** 2))
    by_mean = np.sqrt(np.mean((np.broadcast_to(np.nanmean(given, axis=0), rows.shape) - rows)[holes] ** 2))
    assert wrong < 0.2 * by_mean
    np.testing.assert_allclose(completed[~holes], rows[~holes], rtol=1e-9)


@pytest.mark.parametrize("n_components", [4, 12])
def test_completion_is_the_conditional_mean(n_components):
    """Of a Gaussian; written out row by row. Conjugate gradients end in as many steps as a row has gaps."""
    rows = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 12)) + 0.3 * rng.standard_normal((400, 12))
    components = learn_components(rows, n_components)
    new = 2.0 * rng.standard_normal((40, 12))
    gaps = rng.permuted(np.tile(np.arange(12) < 5, (40, 1)), axis=1)
    values = scaled_and_completed(components, np.where(gaps, np.nan, new))
    whole = scaled_and_completed(components, new)
    variances, basis = components.variances, components.directions
    spreads = 1.0 / components.levels
    noise = max((spreads**2).sum() - variances.sum(), 0.0) / max(12 - n_components, 1)
    noise += COMPLETION_SHRINKAGE * variances.mean()
    covariance = (basis * variances) @ basis.T + noise * np.eye(12)
    for got, row, m in zip(values, whole, gaps, strict=True):
        np.testing.assert_array_equal(got[~m], row[~m])
        told = covariance[m][:, ~m] @ np.linalg.solve(covariance[~m][:, ~m], row[~m])
        np.testing.assert_allclose(got[m], told, atol=1e-8)


def test_directions_learned_with_holes_are_those_of_the_whole():
    rows = low_rank(600)
    whole, holed = learn_components(rows, 3), learn_components(with_holes(rows)[0], 3)
    assert same_span(whole.directions, holed.directions) > 0.999


def test_rows_are_completed_one_by_one():
    """What a row becomes does not depend on the other rows of its block."""
    given, _ = with_holes(low_rank(200))
    components = learn_components(given, 3)
    together = scaled_and_completed(components, given)
    for row in (0, 17, 199):
        np.testing.assert_allclose(scaled_and_completed(components, given[row : row + 1])[0], together[row], rtol=1e-12)


def test_a_row_of_which_almost_nothing_is_left_stays_near_the_data():
    components = learn_components(with_holes(low_rank(600))[0], 3)
    alone = np.full((30, 30), np.nan)
    alone[np.arange(30), np.arange(30)] = low_rank(30, seed=8)[np.arange(30), np.arange(30)]
    lengths = np.linalg.norm(scaled_and_completed(components, alone), axis=1)
    known = np.linalg.norm(scaled_and_completed(components, low_rank(300, seed=9)), axis=1)
    assert lengths.max() < 1.5 * known.max()


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6, 1e12, 1e38])
def test_one_wild_row_moves_neither_scale_nor_directions(size):
    """Found at 1e4: the mean that far rows are measured from was theirs."""
    rows = low_rank(500)
    clean = learn_components(rows, 3)
    rows[7] = np.random.default_rng(2).standard_normal(rows.shape[1]) * size
    wild = learn_components(rows, 3)
    assert wild.scaling.factor == pytest.approx(clean.scaling.factor, rel=0.05)
    np.testing.assert_allclose(wild.scaling.mean, clean.scaling.mean, atol=0.1)
    assert same_span(clean.directions, wild.directions) > 0.99


def test_one_wild_row_with_holes_around_it():
    given, _ = with_holes(low_rank(500))
    given[:, 4] = np.nan  # a feature that no row has
    clean = learn_components(given, 3)
    given[7] = 1e9
    wild = learn_components(given, 3)
    assert wild.scaling.factor == pytest.approx(clean.scaling.factor, rel=0.05)
    others = np.arange(30) != 4
    assert same_span(clean.directions[others], wild.directions[others]) > 0.99


@pytest.mark.parametrize("value", [0.0, -3.5, 1e9])
def test_a_constant_view_has_one_coordinate_which_is_zero(value):
    components = learn_components(np.full((40, 5), value), 8)
    assert components.directions.shape == (5, 1)
    rows = scaled_and_completed(components, np.full((3, 5), value))
    assert (coordinate_rows(components, rows) == 0).all()
    assert np.isfinite(signature_rows(components, rows)).all()


def test_a_constant_feature_says_nothing():
    X = rng.standard_normal((200, 6))
    X[:, 2] = 4.0
    components = learn_components(X, 6)
    assert components.directions.shape == (6, 5)
    np.testing.assert_allclose(components.directions[2], 0, atol=1e-9)
    moved = X[:5].copy()
    moved[:, 2] = 40.0
    before, after = (signature_rows(components, scaled_and_completed(components, part)) for part in (X[:5], moved))
    np.testing.assert_allclose(before, after, atol=1e-9)


def test_rows_that_hold_one_value_all_over_are_as_empty_as_zeros():
    given = rng.standard_normal((6, 17))
    given[1], given[3, :16], given[4] = 7.0, 2.0, 3.0
    given[4, 5] = np.nan
    before = given.copy()
    got = emptied_rows(given)
    assert (got[1] == 0).all()
    others = [0, 2, 3, 4, 5]
    np.testing.assert_array_equal(got[others], given[others])
    np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(emptied_rows(given[:, :15]), given[:, :15])  # few values may be alike by chance


def test_a_small_feature_is_heard_in_the_signature():
    """Features at unit spread each: what has a thousandth of the variance moves the signature like any other."""
    X = rng.standard_normal((500, 5)) * np.array([1, 1, 1, 1, 1e-3])
    components = learn_components(X, 5)
    base = np.zeros((1, 5))
    steps = []
    for feature in (0, 4):
        moved = base.copy()
        moved[0, feature] = 2 * X[:, feature].std()
        rows = [signature_rows(components, scaled_and_completed(components, part)) for part in (base, moved)]
        steps.append(np.linalg.norm(rows[1] - rows[0]))
    assert steps[1] == pytest.approx(steps[0], rel=0.01)


def test_grain_is_where_the_view_hardly_varies():
    X = rng.standard_normal((600, 200)) @ rng.standard_normal((200, 200))
    components = learn_components(X, 20)
    np.testing.assert_allclose(components.grain.T @ components.grain, np.eye(components.grain.shape[1]), atol=1e-9)
    assert components.n_signature == N_SIGNATURE
    rows = signature_rows(components, scaled_and_completed(components, X))
    spreads = rows.var(axis=0)
    assert np.median(spreads[20:N_SIGNATURE]) > 2 * spreads[N_SIGNATURE:].max()
    assert learn_components(X[:, :10], 20).grain.shape == (10, 0)


@pytest.mark.parametrize("n_rows", [300, 1_000])
def test_described_rows_vary_in_the_grain_as_new_ones_do(n_rows):
    """Along the model's own grain the rows it was learned from would hardly vary."""
    X = rng.standard_normal((n_rows + 1_000, 200)) @ rng.standard_normal((200, 200))
    present = np.ones(n_rows, dtype=bool)
    present[:5] = False
    components, signature, coordinates = describe(X[:n_rows], present, 20)
    new = scaled_and_completed(components, X[n_rows:])
    spreads = [part[:, N_SIGNATURE:].std(axis=0).mean() for part in (signature[5:], signature_rows(components, new))]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.1)
    own = signature_rows(components, scaled_and_completed(components, X[:n_rows]))
    assert own[5:][::2, N_SIGNATURE:].std(axis=0).mean() < 0.8 * spreads[1]
    np.testing.assert_array_equal(signature[:, :N_SIGNATURE], own[:, :N_SIGNATURE])
    np.testing.assert_array_equal(signature[6::2], own[6::2])
    np.testing.assert_array_equal(
        coordinates, coordinate_rows(components, scaled_and_completed(components, X[:n_rows]))
    )


def test_half_of_a_long_signature_is_the_view_as_it_is_and_of_one_size_with_the_rest():
    """Features of falling worth, as embeddings have them: at unit spread the many last ones would be all."""
    X = rng.standard_normal((900, 300)) * np.geomspace(1, 1e-4, 300)
    components = learn_components(X, 128)
    assert components.plain.shape[1] == N_PLAIN == components.signature.shape[1]
    rows = signature_rows(components, scaled_and_completed(components, X))
    plain, levelled = rows[:, :N_PLAIN], rows[:, N_PLAIN:N_SIGNATURE]
    assert np.square(plain).mean() == pytest.approx(np.square(levelled).mean(), rel=0.05)
    told = np.linalg.lstsq(rows[:, :N_SIGNATURE], X[:, :40], rcond=None)[0]
    assert np.square(rows[:, :N_SIGNATURE] @ told - X[:, :40]).sum() < 0.05 * np.square(X[:, :40]).sum()
    short = learn_components(X[:, :N_SIGNATURE], 128)  # nothing is left out, and nothing needs to be said twice
    assert short.plain.shape[1] == 0
    assert short.n_signature == N_SIGNATURE


def test_components_of_all_views_together_stay_bounded():
    for n_views in (1, 3, 8, 20, 64, 65):
        assert 16 <= default_n_components(n_views) <= 128
        assert default_n_components(n_views) * n_views <= 1024 or default_n_components(n_views) == 16
