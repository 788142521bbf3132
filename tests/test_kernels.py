"""The kernels in C against the definition, bit by bit, without Python around them: also those of a processor that is
not here, whose programs QEMU runs. That shows what they answer, not how fast they are.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NATIVE = ROOT / "quorumhash" / "_native"
BITS = (*range(1, 18), 31, 32, 33, 63, 64, 65, 127, 128, 129, 247, 248, 249, 255, 256, 257, 511, 1000, 1023, 1024)

ARM = ("aarch64-linux-gnu-gcc", "qemu-aarch64")
ARM_LIBRARIES = "/usr/aarch64-linux-gnu"


def build(folder, compiler, *flags, kernels=NATIVE / "kernels.c"):
    """The program tests/native/definition.c with the library's C files, or with other kernels."""
    program = folder / "definition"
    sources = [kernels, *(NATIVE / f"{name}.c" for name in ("multiindex", "scan", "sweep", "weighted", "words"))]
    command = [compiler, *flags, f"-I{NATIVE}", ROOT / "tests/native/definition.c", *sources, "-o", program, "-lm"]
    return program, subprocess.run(command, capture_output=True, text=True)


def checks(*command, bits=BITS):
    """Comparisons that each kernel passed, by its name."""
    done = subprocess.run([*command, *map(str, bits)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: int(n) for name, n in (line.split() for line in done.stdout.splitlines())}


@pytest.fixture
def compiler():
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    return found or pytest.skip("no C compiler on the PATH")


@pytest.fixture
def arm():
    """Compiler and emulator of the other processor."""
    if not all(map(shutil.which, ARM)):
        pytest.skip(f"{' or '.join(ARM)} is not on the PATH (Debian: apt-get install gcc-aarch64-linux-gnu qemu-user)")
    return ARM


def test_kernels_of_this_processor_are_the_definition(compiler, tmp_path):
    program, built = build(tmp_path, compiler, "-O2")
    assert built.returncode == 0, built.stderr
    passed = checks(program)
    assert "portable" in passed
    assert len(set(passed.values())) == 1  # no kernel was asked less than another
    assert min(passed.values()) > 1_000_000


@pytest.mark.extra
def test_kernels_read_and_write_nothing_outside_their_arrays(compiler, tmp_path):
    program, built = build(tmp_path, compiler, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    if built.returncode:
        pytest.skip("the compiler has no sanitizers")
    assert "portable" in checks("env", "ASAN_OPTIONS=detect_leaks=0", program)


@pytest.mark.extra
@pytest.mark.parametrize("level", ["-O0", "-O3"])  # without optimisation every read is made, wanted or not
def test_neon_is_the_definition_under_emulation(arm, tmp_path, level):
    program, built = build(tmp_path, arm[0], level, "-Wall", "-Wextra", "-Werror")
    assert built.returncode == 0, built.stderr
    passed = checks(arm[1], "-L", ARM_LIBRARIES, program, bits=BITS if level == "-O3" else (9, 64, 256))
    assert set(passed) == {"neon", "portable"}
    assert passed["neon"] == passed["portable"]


@pytest.mark.extra
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("vcntq_u8(veorq_u8(plane, query))", "vcntq_u8(vandq_u8(plane, query))"),
        ("vshrq_n_u8(plane, 4)", "vshrq_n_u8(plane, 5)"),
        ("vqaddq_u8(sums[i], vqtbl1q_u8(of_high", "vaddq_u8(sums[i], vqtbl1q_u8(of_high"),
        ("early && neon_nearest(sums) > probes[p]->limit", "early && neon_nearest(sums) >= probes[p]->limit"),
        ("if (neon_nearest(sums) > probes[p]->limit) continue", "if (neon_nearest(sums) >= probes[p]->limit) continue"),
        ("vst1q_u8(lanes + 16 * i, sums[i])", "vst1q_u8(lanes + 16 * i, sums[i & 2])"),
    ],
)
def test_a_wrong_neon_kernel_is_found(arm, tmp_path, right, wrong):
    text = (NATIVE / "kernels.c").read_text()
    assert text.count(right) == 1
    changed = tmp_path / "kernels.c"
    changed.write_text(text.replace(right, wrong))
    program, built = build(tmp_path, arm[0], "-O1", kernels=changed)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([arm[1], "-L", ARM_LIBRARIES, program, "9", "64"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("neon, ")
