"""scikit-learn's own checks, on 2-D arrays."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import quorumhash as qh

# bits stay below the two features and few rows that the checks use
MAIN = [  # one of each way to fit and to encode; all hashers share one base class
    qh.QuorumHasher(n_bits=3),
    qh.ITQHasher(n_bits=1),
    qh.ConsensusHasher(n_bits=1, max_iter=3),
    qh.LSHHasher(n_bits=3),
    qh.AnchorGraphHasher(n_bits=3),
    qh.VoteHasher(n_bits=3),
    qh.CKHHasher(n_bits=3),
]
OTHERS = [
    qh.KLSHHasher(n_bits=3),
    qh.SpectralHasher(n_bits=3),
    qh.PCAHasher(n_bits=3),
    qh.InductiveManifoldHasher(n_bits=3),
    qh.KernelITQHasher(n_bits=3),
    qh.EPAMHHasher(n_bits=3),
    qh.RepairITQHasher(n_bits=3),
    qh.KnnRepairITQHasher(n_bits=3),
    qh.GCCAHasher(n_bits=3),
    qh.RobustPCAHasher(n_bits=3),
    qh.ViewSelectHasher(n_bits=3),
    qh.MFHHasher(n_bits=3),
    qh.CHMSHasher(n_bits=3, max_iter=3),
    qh.SSHHasher(n_bits=3),
    qh.MVLHHasher(n_bits=3, max_iter=3),
]


OF_FLOAT32 = (
    qh.ConsensusHasher,
    qh.KLSHHasher,
    qh.KernelITQHasher,
    qh.AnchorGraphHasher,
    qh.InductiveManifoldHasher,
    qh.VoteHasher,
    qh.ViewSelectHasher,
    qh.CKHHasher,
    qh.MVLHHasher,
)


def explained(estimator):
    """The only check not always passed, and why."""
    if isinstance(estimator, OF_FLOAT32):
        return {
            "check_methods_subset_invariance": (
                "distances are float32, and BLAS rounds a product of one row otherwise than one of many: scores agree "
                "to 2e-6, the check wants 1e-7; tests/test_hashers.py checks the same to 1e-5"
            )
        }
    return {}


@pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
@parametrize_with_checks(MAIN, expected_failed_checks=explained)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.extra  # needs none, but takes a minute
@pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
@parametrize_with_checks(OTHERS, expected_failed_checks=explained)
def test_scikit_learn_checks_of_the_others(estimator, check):
    check(estimator)


def test_every_hasher_is_checked():
    assert {type(estimator) for estimator in [*MAIN, *OTHERS]} == set(qh.HASHERS.values())
