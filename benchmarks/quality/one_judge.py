"""Quorum for scripts that fit it often on the same rows: the judge, most of the cost of a fit, is learned once."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, ClassVar

import numpy as np

from quorumhash import QuorumHasher

KEPT = 2  # judges: with sources and without


class OneJudge(QuorumHasher):
    """The same codes as QuorumHasher: worth of views, dial and bits have no say in trust and repair."""

    known: ClassVar[OrderedDict[str, Any]] = OrderedDict()

    def _judge(self, sample: Any, present: Any, engine: Any) -> Any:
        seen = hashlib.sha256(repr((list(sample), self.sources, self.n_components)).encode())
        for part in (*sample.values(), present):
            seen.update(np.ascontiguousarray(part))
        key = seen.hexdigest()
        if key not in self.known:
            self.known[key] = super()._judge(sample, present, engine)
            while len(self.known) > KEPT:
                self.known.popitem(last=False)
        return self.known[key]
