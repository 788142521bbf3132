"""What speaks against a row by itself: mass points, density."""

import numpy as np
import pytest

from quorumhash.calibration import curve_of_upper_tail, log_p_rows
from quorumhash.coordinates import scaled_and_completed, signature_rows
from quorumhash.describing import describe
from quorumhash.evidence import NOWHERE, _as_unseen, _whitened_view, density_deviations, learn_view, log_lengths
from quorumhash.masspoints import is_mass_point, learn_mass_points
from quorumhash.trustlearning import BULK

# mass points


def everyone(n_rows, n_views=2):
    return np.ones((n_rows, n_views), dtype=bool)


def learned_masses(signatures, present, empties=None):
    return learn_mass_points(signatures, [part.shape[1] for part in signatures], present, empties)


def crowded(signatures, present, view):
    probes, points = learned_masses(signatures, present)[view]
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
    assert len(learned_masses(signatures, present)[0][1]) == 0
    signatures[0][600:700] = 0.0
    assert len(learned_masses(signatures, present)[0][1]) > 0


def test_a_constant_view_is_no_mass_point():
    rng = np.random.default_rng(0)
    assert not crowded([np.zeros((500, 3)), rng.standard_normal((500, 4))], everyone(500), 0).any()


@pytest.mark.parametrize("n_values", [2, 4])
def test_a_view_that_has_but_a_few_values_has_no_mass_points(n_values):
    rng = np.random.default_rng(0)
    signatures = [rng.integers(n_values, size=(1_000, 1)).astype(float), rng.standard_normal((1_000, 4))]
    assert not crowded(signatures, everyone(1_000), 0).any()
    signatures[0][:50] += rng.standard_normal((50, 1))  # one in twenty is something else: then they are
    assert crowded(signatures, everyone(1_000), 0)[50:].all()


def test_a_row_of_zeros_is_a_mass_point_before_it_was_ever_seen():
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 6)), rng.standard_normal((1_000, 4))]
    empties = [np.full(6, -1.5), np.full(4, 2.5)]
    for m, (probes, points) in enumerate(learned_masses(signatures, everyone(1_000), empties)):
        np.testing.assert_array_equal(
            is_mass_point(np.stack([empties[m], signatures[m][0]]), probes, points), [True, False]
        )
    signatures[0][7] = empties[0]  # one item is made of zeros, by nature it seems
    assert len(learned_masses(signatures, everyone(1_000), empties)[0][1]) == 0


def test_mass_points_are_known_by_the_signature_not_by_the_grain():
    """Of copies of one row half may show another grain."""
    rng = np.random.default_rng(0)
    signatures = [rng.standard_normal((1_000, 9)), rng.standard_normal((1_000, 4))]
    signatures[0][:100, :6] = 0.5
    probes, points = learn_mass_points(signatures, [6, 4], everyone(1_000))[0]
    np.testing.assert_array_equal(np.flatnonzero(is_mass_point(signatures[0], probes, points)), np.arange(100))


# density


def structured(n_rows, seed, n_features=40, rank=8):
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).standard_normal((rank, n_features))
    return rng.standard_normal((n_rows, rank)) @ loadings + 0.3 * rng.standard_normal((n_rows, n_features))


def noise_like(rows, n_rows, seed):
    return rows.mean(0) + 2 * rows.std(0) * np.random.default_rng(seed).standard_normal((n_rows, rows.shape[1]))


def learned_density(rows):
    """From raw rows to deviations of any rows, every row trusted alike."""
    components, signatures, _ = describe(rows, np.ones(len(rows), dtype=bool), 32)
    probes, points = learn_mass_points([signatures], [components.n_signature], everyone(len(rows), 1))[0]
    usable = ~is_mass_point(signatures, probes, points)
    view, _ = learn_view(signatures, components.n_signature, np.ones(len(rows)), usable, (probes, points))
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


def test_lengths_of_seen_rows_are_those_by_whitening_without_them():
    """Of 60 rows with 20 features every row shortens itself; brute force leaves each out in turn."""
    rng = np.random.default_rng(0)
    rows, weights = rng.standard_normal((60, 20)), rng.uniform(0.2, 1.0, 60)
    nothing = np.zeros((20, 3)), np.empty((0, 3))
    seen = _as_unseen(log_lengths(_whitened_view(rows, 20, weights, *nothing), rows), weights)[:, 0]
    alone = np.empty(60)
    for i in range(60):
        without = _whitened_view(rows, 20, np.where(np.arange(60) == i, 0.0, weights), *nothing)
        alone[i] = log_lengths(without, rows[i : i + 1])[0, 0]
    plain = log_lengths(_whitened_view(rows, 20, weights, *nothing), rows)[:, 0]
    assert np.abs(seen - alone).mean() < 0.15 * np.abs(plain - alone).mean()


@pytest.mark.parametrize("n_features", [100, 300])
def test_of_few_rows_new_ones_look_no_stranger_than_those_learned_from(n_features):
    """Fewer rows than features: directions in which seen rows hardly vary are no such directions for new ones."""
    rows = structured(1_250, 0, n_features)
    deviations, view = learned_density(rows[:250])
    assert (view.limits == NOWHERE).all()
    assert np.mean(deviations(rows[250:]) > BULK[1]) < 0.03
    assert np.mean(deviations(noise_like(rows, 500, 5)) > BULK[1]) > 0.97


def test_rows_without_weight_are_no_cluster_of_their_own():
    """They are the only ones that whitening has not seen."""
    rows = np.random.default_rng(0).standard_normal((400, 120))
    weights = np.where(np.arange(400) < 350, 1.0, 1e-6)
    usable, nothing = np.ones(400, dtype=bool), (np.zeros((120, 3)), np.empty((0, 3)))
    view, own = learn_view(rows, 120, weights, usable, nothing)
    assert (view.limits == NOWHERE).all()
    assert abs(np.median(own[350:]) - np.median(own[:350])) < 1.0


def test_of_fewer_rows_than_columns_those_that_vary_most_are_whitened():
    rows = np.random.default_rng(0).standard_normal((40, 100)) * np.geomspace(1, 0.01, 100)
    weights, nothing = np.full(40, 0.9), (np.zeros((100, 3)), np.empty((0, 3)))
    view = _whitened_view(rows, 100, weights, *nothing)
    assert np.flatnonzero(np.abs(view.whitening).sum(axis=1)).tolist() == sorted(
        np.argsort(-rows.var(axis=0))[: int(36 / 1.5)].tolist()
    )
    many = np.random.default_rng(0).standard_normal((400, 100))
    assert np.abs(_whitened_view(many, 100, np.ones(400), *nothing).whitening).sum(axis=1).all()
