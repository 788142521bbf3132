"""An index in a file: add, change, remove, read from another process; what returned survives kill -9."""

import subprocess
import sys

import numpy as np

import quorumhash as qh

digits = qh.load_dataset("digits")
hasher = qh.ITQHasher(n_bits=64).fit(digits.views)
codes = hasher.transform(digits.views)
hasher.save("digits.qh")

with qh.HammingIndex.open("digits.qhx", n_bits=64) as index:
    index.add(codes, ids=np.arange(len(codes)) + 1_000, model=hasher)
    index.remove([1_000, 1_001])
    index.update(codes[:1], ids=[1_002])
    print(index, "nearest to the first digit:", index.search(codes[:1], k=3).ids[0])

reader = "import quorumhash as qh; print(qh.HammingIndex.open('digits.qhx', readonly=True))"
print("another process:", subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True).stdout.strip())

try:
    qh.HammingIndex.open("digits.qhx").add(codes[:1], ids=[1_002])
except qh.ParameterError as error:
    print("refused:", error)
