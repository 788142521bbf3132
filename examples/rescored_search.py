"""Codes find candidates, scores rank them, vectors on disk settle the order; how much does each step find?"""

import numpy as np

import quorumhash as qh

digits = qh.load_dataset("digits")
database, queries = digits.views[digits.database_rows], digits.views[digits.query_rows]
hasher = qh.QuorumHasher(n_bits=64).fit(database)
np.save("vectors.npy", hasher.embed(database).astype(np.float16))
vectors, wanted = np.load("vectors.npy", mmap_mode="r"), hasher.embed(queries)

index = qh.HammingIndex(n_bits=64)
index.add(hasher.transform(database), model=hasher)
by_code = index.search(hasher.transform(queries), k=10)
by_score = index.search(hasher.decision_function(queries), k=10)
rescored = index.rescore(vectors, index.search(hasher.decision_function(queries), k=100), wanted, k=10)

lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
true = np.argsort(-(wanted @ vectors.T.astype(np.float32)) / lengths, axis=1)[:, :10]
for name, found in (("codes", by_code), ("scores", by_score), ("scores, 100 rescored", rescored)):
    print(f"{name:22} {qh.neighbour_recall(found.ids, true):.0%} of the ten nearest by vectors")
