"""Items without a picture, queries with text alone: what is missing is predicted from what is there."""

import numpy as np

import quorumhash as qh

rng = np.random.default_rng(0)
kinds = rng.integers(0, 8, 800)
meaning = 2 * rng.standard_normal((8, 10))[kinds] + rng.standard_normal((800, 10))
items = {
    name: meaning @ rng.standard_normal((10, width)) + 3 * rng.standard_normal((800, width))
    for name, width in {"image": 64, "text": 32, "audio": 16}.items()
}
items["image"][rng.random(800) < 0.3] = np.nan  # a third of the items have no image

hasher = qh.QuorumHasher(n_bits=64).fit(items)
index = qh.HammingIndex(n_bits=64)
index.add(hasher.transform(items), model=hasher)

for views in (["image", "text", "audio"], ["text", "audio"], ["text"]):
    query = {name: items[name][:100] for name in views}
    found = kinds[index.search(hasher.transform(query), k=11).ids[:, 1:]]
    print(f"queries with {', '.join(views):18}: {(found == kinds[:100, None]).mean():.0%} of ten are of the same kind")
