"""The threads engine with a bar: the same results, every row told once a pass."""

import numpy as np

import quorumhash as qh
from quorumhash.engines.watched import WatchedEngine, watched


def test_every_pass_tells_all_its_rows_and_changes_no_bit():
    views = np.random.default_rng(0).standard_normal((700, 20))
    passes = []

    def begin(n_rows):
        passes.append([n_rows, 0])

        def done(n_done):
            passes[-1][1] += n_done

        return done

    plain = qh.ITQHasher(16).fit(views)
    seen = qh.ITQHasher(16).fit(views, engine=WatchedEngine(begin))
    assert seen.fingerprint() == plain.fingerprint()
    assert len(passes) > 2
    assert all(total == told == 700 for total, told in passes)


def test_other_engines_are_left_alone():
    with watched("nowhere", "fit") as engine:
        assert engine == "nowhere"
