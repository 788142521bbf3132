"""One page over a model and an index: search, damage, health of the data, the model; on this machine, without a network.

`app.py` holds the routes, one file each what they answer; nothing here computes what the library does not.
"""
