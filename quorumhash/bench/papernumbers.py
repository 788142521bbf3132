"""Numbers that the source paper prints: precision of lookups (its table 1) and seconds (its table 2), by dataset.

Its other results are figures, of which no numbers are given.
"""

from __future__ import annotations

BITS = (8, 32, 48, 128)
OURS = "Ours"

# method -> percent at 8, 32, 48 and 128 bits, mean and standard deviation
LOOKUP: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {
    "cifar10": {
        "mfh": ((23.31, 0.71), (28.19, 0.48), (26.38, 0.68), (23.68, 0.71)),
        "chms": ((25.61, 0.22), (31.80, 0.66), (26.54, 0.52), (19.38, 0.84)),
        "ckh": ((31.75, 0.53), (32.05, 0.72), (37.32, 0.76), (34.45, 0.81)),
        "ssh": ((27.34, 0.46), (35.78, 0.68), (29.36, 0.63), (27.52, 0.72)),
        "mvlh": ((32.27, 0.41), (40.24, 0.63), (44.81, 0.46), (42.06, 0.62)),
        OURS: ((36.73, 0.41), (47.63, 0.52), (51.22, 0.36), (46.57, 0.44)),
    },
    "nuswide": {
        "mfh": ((23.52, 0.72), (26.49, 0.85), (33.55, 0.49), (34.97, 0.81)),
        "chms": ((27.54, 0.41), (30.22, 0.92), (28.24, 0.96), (27.52, 1.12)),
        "ckh": ((29.72, 0.43), (37.84, 0.63), (33.56, 0.82), (34.42, 1.32)),
        "ssh": ((28.95, 0.46), (33.42, 0.88), (30.05, 0.71), (29.21, 0.98)),
        "mvlh": ((31.92, 0.62), (39.05, 0.87), (40.31, 0.52), (36.12, 0.70)),
        OURS: ((34.21, 0.48), (46.35, 0.47), (44.33, 0.34), (43.08, 0.32)),
    },
}

# method -> seconds of training, and of the test of one item, at 64 bits
SECONDS: dict[str, dict[str, tuple[float, float]]] = {
    "cifar10": {
        "mfh": (32.8, 6.4e-5), "chms": (29.8, 4.7e-5), "ssh": (23.6, 1.3e-5), "ckh": (10.7, 2.3e-6),
        "mvlh": (20.4, 2.2e-6), OURS: (14.1, 2.6e-6),
    },
    "nuswide": {
        "mfh": (41.6, 8.5e-5), "chms": (37.2, 7.8e-5), "ssh": (31.7, 2.4e-5), "ckh": (15.3, 3.2e-6),
        "mvlh": (28.1, 4.3e-6), OURS: (19.2, 3.5e-6),
    },
}  # fmt: skip


def printed_name(method: str) -> str:
    """How the paper calls a method of ours, whatever its parameters: rmvh is its own, the others bear their names.

    >>> printed_name("rmvh, published"), printed_name("mvlh"), printed_name("mfh, published")
    ('Ours', 'mvlh', 'mfh')
    """
    return OURS if method.startswith("rmvh") else method.partition(",")[0]


def printed_lookup(dataset: str, method: str, n_bits: int) -> tuple[float, float] | None:
    """Percent and its standard deviation, None where the paper prints none.

    >>> printed_lookup("cifar10", "rmvh, tuned", 48)
    (51.22, 0.36)
    """
    row = LOOKUP.get(dataset, {}).get(printed_name(method))
    return row[BITS.index(n_bits)] if row and n_bits in BITS else None


def printed_seconds(dataset: str, method: str) -> tuple[float, float] | None:
    """Seconds of training and of the test of one item, None where the paper prints none.

    >>> printed_seconds("nuswide", "ckh")
    (15.3, 3.2e-06)
    """
    return SECONDS.get(dataset, {}).get(printed_name(method))
