"""One page over a model and an index: search, damage, health of the data, model; no network needed.

`app.py` holds the routes, one file each what they answer; nothing here computes what the library does not.
"""
