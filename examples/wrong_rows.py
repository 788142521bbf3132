"""Which rows of which view are wrong? Find them, and compare with what was done to the data."""

import numpy as np

import quorumhash as qh
from quorumhash.corruption import damage_with_mask

digits = qh.load_dataset("digits")
damaged = damage_with_mask(digits.views, "noise", rate=0.1, random_state=0)
trust = qh.QuorumHasher(n_bits=32).fit(damaged.views).reliability(damaged.views)  # p-values (items, views)

found = trust < 0.01  # meant to raise one per cent of false alarms
for place, name in enumerate(damaged.views.names):
    was, told = damaged.mask[:, place], found[:, place]
    print(f"{name:12} {was.sum():4} damaged, {(was & told).sum():4} found, {(~was & told).sum():3} false alarms")
item, view = np.unravel_index(np.nanargmin(trust), trust.shape)
print(f"the worst: {damaged.views.names[view]} of item {item}, which was damaged: {damaged.mask[item, view]}")
