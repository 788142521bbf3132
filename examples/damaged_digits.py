"""A fifth of all views belong to other items: how well do codes still find digits of the same kind?"""

import quorumhash as qh

digits = qh.load_dataset("digits")
relevance = qh.shared_labels(digits.labels[digits.query_rows], digits.labels[digits.database_rows])

for kind in (None, "swap"):
    views = digits.views if kind is None else qh.damage(digits.views, kind, rate=0.2, random_state=0)
    for hasher in (qh.ITQHasher(n_bits=32), qh.QuorumHasher(n_bits=32, objective="groups")):
        hasher.fit(views[digits.train_rows])
        codes, queries = (hasher.transform(views[rows]) for rows in (digits.database_rows, digits.query_rows))
        score = qh.mean_average_precision(relevance, qh.hamming_distances(queries, codes))
        print(f"{kind or 'undamaged':10} {type(hasher).__name__:14} MAP {score:.3f}")
