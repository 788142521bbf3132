"""The optional extension in C, built with the stable ABI of Python 3.11; pyproject.toml says everything else."""

from setuptools import Extension, setup

NATIVE = "quorumhash/_native"

setup(
    ext_modules=[
        Extension(
            "quorumhash._native._hamming",
            [f"{NATIVE}/{name}.c" for name in ("kernels", "module", "multiindex", "scan", "weighted", "words")],
            depends=[f"{NATIVE}/hamming.h"],
            extra_compile_args=["-O3"],
            optional=True,  # without a compiler NumPy gives the same answers
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
