"""The benchmark: a list of settings is planned, run, stored, measured and shown, each by a file of its own.

A stored run is raw codes, so a new metric needs no new run and a new page no new metric. `quorumhash.experiment` makes
one run; everything that makes many of them is here.
"""
