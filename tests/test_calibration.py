"""Honest odds and p-values: mixtures with a known share of mismatches, a truncated exponential, curves that rise."""

import numpy as np
import pytest
from scipy.stats import expon, norm

from quorumhash.calibration import (
    FEWEST_ROWS,
    FIRST_SHARE,
    SMALLEST_SHARE,
    Calibration,
    Curve,
    _truncated_scale,
    calibrate,
    check_curve,
    curve_of_upper_tail,
    log_p_rows,
)
from quorumhash.errors import ModelFileError

RIGHT, WRONG = norm(4, 2), norm(-4, 2)  # log f0 / f1 = 2 t, and a slope of at most 1 is allowed
MILD_RIGHT, MILD_WRONG = norm(1, 2), norm(-3, 2)  # log f0 / f1 = t + 1


def mixture(share, n_rows=6_000, right=RIGHT, wrong=WRONG, seed=0):
    """Votes of real rows of which a share is wrong, which ones, and votes of mismatches."""
    rng = np.random.default_rng(seed)
    is_wrong = rng.random(n_rows) < share
    real = np.where(is_wrong, wrong.rvs(n_rows, random_state=rng), right.rvs(n_rows, random_state=rng))
    return real, is_wrong, wrong.rvs(n_rows, random_state=rng)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.4])
def test_the_share_of_mismatches_is_recovered(share):
    real, _, fake = mixture(share)
    assert calibrate(real, fake).wrong_share == pytest.approx(share, rel=0.25, abs=0.005)


def test_no_mismatches_give_the_smallest_share():
    real, _, fake = mixture(0.0)
    assert calibrate(real, fake).wrong_share <= 2 * SMALLEST_SHARE


def p_values(share, votes):
    """P-values (8, n) by eight calibrations: one of them may be off by what its own share of mismatches is off."""
    return np.exp([log_p_rows(calibrate(*mixture(share, seed=seed)[::2]).curve, votes) for seed in range(8)])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("level", [0.01, 0.05])
def test_p_values_of_right_rows_are_uniform(share, level):
    p = p_values(share, RIGHT.rvs(20_000, random_state=9))
    assert 0.6 * level < np.mean(p < level) < 1.7 * level


def test_p_values_of_right_rows_are_uniform_each_time_where_all_rows_are_right():
    shares = np.mean(p_values(0.0, RIGHT.rvs(20_000, random_state=9)) < 0.01, axis=1)
    assert shares.min() > 0.006
    assert shares.max() < 0.016


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_mismatches_have_small_p_values(share):
    assert np.mean(p_values(share, WRONG.rvs(5_000, random_state=9)) < 0.01) > 0.85


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_odds_are_honest(share):
    """Among rows given about the same posterior that share of them is right."""
    real, is_wrong, fake = mixture(share, 20_000, MILD_RIGHT, MILD_WRONG)
    got = calibrate(real, fake)
    posterior = 1 / (1 + np.exp(-(got.slope * real + got.log_odds)))
    assert got.slope == pytest.approx(1.0, abs=0.1)
    for low, high in ((0.2, 0.5), (0.5, 0.8), (0.8, 0.95)):
        among = (posterior > low) & (posterior < high)
        assert among.sum() > 50
        assert np.mean(~is_wrong[among]) == pytest.approx(posterior[among].mean(), abs=0.12)


def test_votes_that_tell_nothing_leave_the_odds_alone():
    rng = np.random.default_rng(0)
    got = calibrate(rng.standard_normal(3_000), rng.standard_normal(3_000))
    odds = got.slope * np.array([-2.0, 2.0]) + got.log_odds
    assert np.ptp(odds) < 0.5


def test_rows_that_were_ruled_out_do_not_count():
    real, _, fake = mixture(0.1, 2_000)
    holed = np.concatenate([real, np.full(500, np.nan)]), np.concatenate([np.full(300, np.nan), fake])
    first, second = calibrate(real, fake), calibrate(*holed)
    assert first.slope == second.slope
    np.testing.assert_array_equal(first.curve.log_p, second.curve.log_p)


@pytest.mark.parametrize(
    ("n_real", "n_fake"), [(0, 0), (FEWEST_ROWS - 1, 500), (500, FEWEST_ROWS - 1)], ids=["none", "real", "fake"]
)
def test_few_rows_give_the_default_which_doubts_nothing(n_real, n_fake):
    rng = np.random.default_rng(0)
    got = calibrate(rng.standard_normal(n_real), rng.standard_normal(n_fake) - 5)
    assert (got.slope, got.log_odds, got.wrong_share) == (0.5, Calibration().log_odds, FIRST_SHARE)
    assert (log_p_rows(got.curve, np.array([-1e9, -5.0, 0.0, 5.0])) == 0).all()


def test_equal_votes_give_the_default():
    assert calibrate(np.zeros(100), np.zeros(100)).wrong_share == FIRST_SHARE


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("n_rows", [FEWEST_ROWS, 300])
def test_curves_rise_and_go_on_below_their_first_point(share, n_rows):
    real, _, fake = mixture(share, n_rows)
    curve = calibrate(real, fake).curve
    check_curve(curve)
    assert (np.diff(curve.log_p) > 0).all()
    p = log_p_rows(curve, np.linspace(real.min() - 5, real.max() + 5, 200))
    assert (np.diff(p) >= 0).all()
    assert p[0] < p[20]
    assert p[-1] == pytest.approx(0, abs=0.05)


def test_curves_with_ties_rise():
    rng = np.random.default_rng(0)
    check_curve(calibrate(rng.integers(0, 3, 300).astype(float), rng.integers(-3, 1, 300).astype(float)).curve)


def test_a_curve_that_falls_back_is_refused():
    with pytest.raises(ModelFileError):
        check_curve(Curve(np.array([0.0, 0.0]), np.array([-1.0, 0.0])))


@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 2.0])
def test_the_scale_of_a_truncated_exponential_is_found(scale):
    width = 3.0
    inside = expon(scale=scale)
    mean = inside.expect(lambda t: t, lb=0, ub=width, conditional=True)
    assert _truncated_scale(mean, width) == pytest.approx(scale, rel=1e-3)


def test_a_flat_window_has_no_scale_beyond_its_width():
    assert _truncated_scale(1.5, 3.0) == 3.0
    assert _truncated_scale(2.5, 3.0) == 3.0


def test_the_upper_tail_of_an_exponential_is_its_survival_function():
    """P-values far beyond the window, where hardly a value was seen, follow from the rate within it."""
    values = expon(scale=0.7).rvs(20_000, random_state=0)
    curve = curve_of_upper_tail(values, (1.0, 4.0))
    at = np.array([0.3, 1.0, 2.0, 4.0, 8.0])
    np.testing.assert_allclose(log_p_rows(curve, -at), expon(scale=0.7).logsf(at), rtol=0.08)


def test_what_lies_above_the_window_does_not_bend_the_tail():
    clean = expon(scale=0.7).rvs(20_000, random_state=0)
    noisy = np.concatenate([clean, np.full(8_000, 30.0)])
    at = -np.array([0.5, 2.0, 6.0])
    first, second = (log_p_rows(curve_of_upper_tail(part, (1.0, 4.0)), at) for part in (clean, noisy))
    np.testing.assert_allclose(first, second, rtol=0.02)
    assert log_p_rows(curve_of_upper_tail(noisy, (1.0, 4.0)), np.array([-30.0]))[0] < np.log(1e-6)


def test_few_values_give_a_cautious_tail_that_rises():
    curve = curve_of_upper_tail(np.empty(0), (1.0, 4.0))
    check_curve(curve)
    assert log_p_rows(curve, np.array([0.0]))[0] == 0
    assert log_p_rows(curve, np.array([-4.0]))[0] < np.log(0.01)
