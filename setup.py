"""The optional extension in C, built with the stable ABI of Python 3.11; pyproject.toml says everything else."""

from setuptools import Extension, setup

NATIVE = "quorumhash/_native"
SOURCES = ("kernels", "module", "multiindex", "scan", "sweep", "weighted", "words")

setup(
    ext_modules=[
        Extension(
            "quorumhash._native._hamming",
            [f"{NATIVE}/{name}.c" for name in SOURCES],
            depends=[f"{NATIVE}/hamming.h", f"{NATIVE}/sweep.h"],
            extra_compile_args=["-O3", "-ffp-contract=off"],  # no fused operations: the same bits on every processor
            optional=True,  # without a compiler NumPy gives the same answers
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
