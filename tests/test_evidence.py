"""What speaks for and against a row: likelihood ratios against scipy, mass points, density."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from quorumhash.calibration import curve_of_upper_tail, log_p_rows
from quorumhash.coordinates import learn_components, scaled_and_completed, signature_rows
from quorumhash.evidence import (
    LARGEST_EVIDENCE,
    NOWHERE,
    density_deviations,
    learn_pair,
    learn_view,
)
from quorumhash.evidence import pair_evidence as evidence_of
from quorumhash.masspoints import is_mass_point, learn_mass_points
from quorumhash.trustlearning import BULK

CORRELATIONS = np.array([0.8, 0.5, 0.2, 0.0])


def gaussian_pair(n_rows, seed=0):
    """Two views of 4 features with known canonical correlations, each mixed by a matrix of its own."""
    rng = np.random.default_rng(seed)
    u, own = rng.standard_normal((2, n_rows, 4))
    v = CORRELATIONS * u + np.sqrt(1 - CORRELATIONS**2) * own
    turns = [np.linalg.qr(np.random.default_rng(s).standard_normal((4, 4)))[0] for s in (7, 8)]
    return u, v, [u @ turns[0] + 1.0, v @ turns[1] - 2.0]


def gaussian_ratio(u, v, correlations):
    """The log of the joint normal density over the product of the two, summed over variates, by scipy."""
    total = np.zeros(len(u))
    for j, r in enumerate(correlations):
        both = np.stack([u[:, j], v[:, j]], axis=1)
        total += multivariate_normal([0, 0], [[1, r], [r, 1]]).logpdf(both)
        total -= norm.logpdf(u[:, j]) + norm.logpdf(v[:, j])
    return total


def test_pair_evidence_is_the_ratio_of_normal_densities_in_the_learned_variates():
    _, _, views = gaussian_pair(20_000)
    pair = learn_pair(1, 0, views, [4, 4], np.ones(20_000))
    u = views[1][:500] @ pair.left - pair.left_offset
    v = views[0][:500] @ pair.right - pair.right_offset
    r = pair.square / pair.product * 2
    wanted = np.clip(gaussian_ratio(u, v, r), -LARGEST_EVIDENCE, LARGEST_EVIDENCE)
    np.testing.assert_allclose(evidence_of(pair, views[1][:500], views[0][:500]), wanted, atol=1e-9)
    assert pair.base == pytest.approx(-0.5 * np.log(1 - r**2).sum())


def test_pair_evidence_is_near_that_of_the_true_model():
    u, v, views = gaussian_pair(20_000)
    pair = learn_pair(1, 0, views, [4, 4], np.ones(20_000))
    found = np.zeros(4)
    found[: len(pair.product)] = pair.square / pair.product * 2
    np.testing.assert_allclose(found, CORRELATIONS, atol=0.03)
    wanted = gaussian_ratio(u, v, CORRELATIONS)
    got = evidence_of(pair, views[1], views[0])
    assert np.sqrt(np.mean((got - wanted) ** 2)) < 0.1 * wanted.std()


def test_matching_rows_speak_for_and_mismatched_rows_against():
    _, _, views = gaussian_pair(5_000)
    pair = learn_pair(1, 0, views, [4, 4], np.ones(5_000))
    right = evidence_of(pair, views[1], views[0])
    wrong = evidence_of(pair, views[1], np.roll(views[0], 1, axis=0))
    assert right.mean() > 0 > wrong.mean()
    assert np.mean(np.exp(wrong)) == pytest.approx(1, abs=0.1)  # the mean likelihood ratio under the other model


def test_independent_views_tell_nothing():
    """By chance alone two views of 10 and 12 features seem to tell about 10 * 12 / (2 * 400) of each other."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        views = [rng.standard_normal((400, 10)), rng.standard_normal((400, 12))]
        assert learn_pair(1, 0, views, [10, 12], np.ones(400)).base < 0.3 * 10 * 12 / (2 * 400)


def test_rows_of_no_weight_teach_nothing():
    _, _, views = gaussian_pair(2_000)
    weights = np.ones(2_000)
    weights[1_500:] = 0
    spoiled = [views[0].copy(), views[1].copy()]
    spoiled[0][1_500:] = 1e3
    clean = learn_pair(1, 0, [v[:1_500] for v in views], [4, 4], np.ones(1_500))
    weighted = learn_pair(1, 0, spoiled, [4, 4], weights)
    rows = views[1][:50], views[0][:50]
    np.testing.assert_allclose(evidence_of(weighted, *rows), evidence_of(clean, *rows), atol=1e-8)


def test_evidence_is_bounded_however_far_out_a_row_lies():
    _, _, views = gaussian_pair(1_000)
    pair = learn_pair(1, 0, views, [4, 4], np.ones(1_000))
    far = evidence_of(pair, 1e6 * views[1], 1e6 * views[0])
    assert np.abs(far).max() <= LARGEST_EVIDENCE


# mass points


def everyone(n_rows, n_views=2):
    return np.ones((n_rows, n_views), dtype=bool)


def crowded(signatures, present, view):
    probes, points = learn_mass_points(signatures, present)[view]
    return is_mass_point(signatures[view], probes, points)


@pytest.mark.parametrize("value", [0.0, 3.7])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.7])
def test_zeros_and_placeholders_are_mass_points(value, rate):
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 6)), rng.standard_normal((1_000, 4))]
    hit = rng.random(1_000) < rate
    signatures[0][hit] = value
    np.testing.assert_array_equal(crowded(signatures, everyone(1_000), 0), hit)
    assert not crowded(signatures, everyone(1_000), 1).any()


def test_two_placeholders_are_both_found():
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 6)), rng.standard_normal((1_000, 4))]
    signatures[0][:100], signatures[0][100:250] = 0.5, -2.0
    np.testing.assert_array_equal(np.flatnonzero(crowded(signatures, everyone(1_000), 0)), np.arange(250))


def test_near_duplicates_count_and_near_neighbours_do_not():
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 6)), rng.standard_normal((1_000, 4))]
    signatures[0][:100] = signatures[0][0] + 1e-7 * rng.standard_normal((100, 6))
    signatures[0][100:200] = signatures[0][100] + 0.1 * rng.standard_normal((100, 6))
    found = crowded(signatures, everyone(1_000), 0)
    assert found[:100].mean() > 0.95
    assert not found[100:].any()


def test_items_that_are_copies_in_all_views_are_no_mass_point():
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 6)), rng.standard_normal((1_000, 4))]
    for part in signatures:
        part[:200] = part[0]
    for view in (0, 1):
        assert not crowded(signatures, everyone(1_000), view).any()


def test_a_view_of_few_values_by_nature_has_no_mass_points():
    rng = np.random.default_rng(0)
    signatures = [np.eye(8)[rng.integers(8, size=1_000)], rng.standard_normal((1_000, 4))]
    assert not crowded(signatures, everyone(1_000), 0).any()


def test_a_few_equal_rows_are_no_mass_point():
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 6)), rng.standard_normal((1_000, 4))]
    signatures[0][:3] = 0.0
    assert not crowded(signatures, everyone(1_000), 0).any()


def test_absent_rows_are_not_counted():
    """Absent rows are zeros by then; zeros among those present are none the less."""
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 6)), rng.standard_normal((1_000, 4))]
    present = everyone(1_000)
    present[:600, 0] = False
    signatures[0][:600] = 0.0
    assert len(learn_mass_points(signatures, present)[0][1]) == 0
    signatures[0][600:700] = 0.0
    assert len(learn_mass_points(signatures, present)[0][1]) > 0


def test_a_constant_view_is_no_mass_point():
    rng = np.random.default_rng(0)
    assert not crowded([np.zeros((500, 3)), rng.standard_normal((500, 4))], everyone(500), 0).any()


# density


def structured(n_rows, seed, n_features=40, rank=8):
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).standard_normal((rank, n_features))
    return rng.standard_normal((n_rows, rank)) @ loadings + 0.3 * rng.standard_normal((n_rows, n_features))


def noise_like(rows, n_rows, seed):
    return rows.mean(0) + 2 * rows.std(0) * np.random.default_rng(seed).standard_normal((n_rows, rows.shape[1]))


def learned_density(rows):
    """From raw rows to deviations of any rows, every row trusted alike."""
    components = learn_components(rows, 32)
    signatures = signature_rows(components, scaled_and_completed(components, rows))
    probes, points = learn_mass_points([signatures], everyone(len(rows), 1))[0]
    usable = ~is_mass_point(signatures, probes, points)
    view, own = learn_view(signatures, components.n_signature, np.ones(len(rows)), usable, (probes, points))
    np.testing.assert_array_equal(own, density_deviations(view, signatures))
    return lambda new: density_deviations(view, signature_rows(components, scaled_and_completed(components, new))), view


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("n_features", [40, 150])
def test_noise_at_twice_the_spread_lies_far_above_the_bulk(rate, n_features):
    rows = structured(2_000, 0, n_features)
    hit = np.random.default_rng(1).random(2_000) < rate
    rows[hit] = noise_like(rows, hit.sum(), 2)
    deviations, _ = learned_density(rows)
    clean = deviations(structured(2_000, 3, n_features))
    noisy = deviations(noise_like(structured(2_000, 4, n_features), 500, 5))
    assert np.quantile(noisy, 0.01) > np.quantile(clean, 0.99)
    assert noisy.min() > BULK[1]
    assert np.mean(clean > BULK[1]) < 0.02


def test_noise_is_told_from_rows_of_independent_features_too():
    """Only the length is left to tell it by."""
    rng = np.random.default_rng(0)
    deviations, _ = learned_density(rng.standard_normal((2_000, 30)))
    clean, noisy = deviations(rng.standard_normal((2_000, 30))), deviations(2 * rng.standard_normal((500, 30)))
    assert np.mean(noisy > np.quantile(clean, 0.99)) > 0.97


@pytest.mark.parametrize("degrees", [3, 5])
def test_heavy_tails_are_not_called_noise_wholesale(degrees):
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((8, 40))

    def draw(n_rows):
        scale = np.sqrt(rng.chisquare(degrees, n_rows) / degrees)[:, None]
        return (rng.standard_normal((n_rows, 8)) @ loadings + 0.3 * rng.standard_normal((n_rows, 40))) / scale

    rows = draw(3_000)
    deviations, view = learned_density(rows)
    assert (view.limits == NOWHERE).all()
    curve = curve_of_upper_tail(deviations(rows), BULK)
    assert np.mean(log_p_rows(curve, -deviations(draw(3_000))) < np.log(0.01)) < 0.06


def test_deviations_do_not_depend_on_the_scale_of_a_view():
    rows, new = structured(800, 0), structured(100, 1)
    first, second = learned_density(rows)[0](new), learned_density(1e6 * rows)[0](1e6 * new)
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_a_single_row_and_constant_rows_deviate_from_nothing():
    for rows in (np.zeros((50, 3)), np.ones((2, 4))):
        deviations, _ = learned_density(rows)
        assert np.isfinite(deviations(rows)).all()
        assert deviations(rows).max() < BULK[0]
