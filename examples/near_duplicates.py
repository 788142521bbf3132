"""All pairs of near-duplicates, without comparing all with all."""

import numpy as np

import quorumhash as qh

digits = qh.load_dataset("digits")
rng = np.random.default_rng(0)
copied = rng.choice(len(digits.views), 50, replace=False)
views = {name: np.vstack([digits.views[name], 1.01 * digits.views[name][copied]]) for name in digits.views}

hasher = qh.QuorumHasher(n_bits=128).fit(digits.views)
index = qh.HammingIndex(n_bits=128)
index.add(hasher.transform(views))

pairs = index.pairs(radius=4)  # entry i: the items after the i-th that are near it
first, second = np.repeat(index.ids, pairs.counts()), pairs.ids
vectors = hasher.embed(views)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
is_copy = (vectors[first] * vectors[second]).sum(axis=1) > 0.999  # codes propose, vectors decide

true = set(zip(copied, range(len(digits.views), len(vectors)), strict=True))
found = set(zip(first[is_copy], second[is_copy], strict=True))
print(f"{len(first)} pairs within 4 of 128 bits, {len(found)} of them copies; {len(true & found)} of 50 copies found")
