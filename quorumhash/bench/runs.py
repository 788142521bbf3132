"""Stored runs: one file each, whole or not there at all; every metric is derived from them afterwards.

A run file is a .npz archive (no pickle) named by what was run and the first digits of the key, the SHA-256 of its
setting. It holds

    database_codes, query_codes   packed codes, uint8; empty where a method refused, failed or has no codes
    rescored                      int32 (q, 10), where the hasher has `embed`
    reliability, damaged_queries  float16 (q, n_views) and, as bits in a row, the mask of the same shape
    manifest                      JSON as bytes: key, setting, seconds, refusal, error, measures, history of
                                  sweeps (not in files before version 0.1), provenance
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.atomic import replacing
from quorumhash.bench.settings import CODELESS, Setting, plain_setting, run_key, simplest
from quorumhash.codes import n_bytes
from quorumhash.errors import ParameterError, RunFileError
from quorumhash.experiment import N_TRUE_NEIGHBOURS, Outcome

FORMAT = 1
SUFFIX = ".run.npz"
N_KEY_DIGITS = 12
UNREADABLE = (ValueError, TypeError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)


@dataclass(frozen=True)
class Run:
    """What a run file holds: the outcome and where it comes from."""

    outcome: Outcome
    provenance: dict[str, str]


def run_path(folder: Path, setting: Setting) -> Path:
    """Where the run of this setting is stored."""
    run = simplest(setting)
    words = (run.dataset, run.hasher or run.role, run.damage, f"{run.n_bits}bits", f"seed{run.random_state}")
    name = "_".join(re.sub(r"[^a-z0-9]+", "-", word.lower()) for word in words)
    return folder / f"{name}_{run_key(setting)[:N_KEY_DIGITS]}{SUFFIX}"


def write_run(folder: Path, outcome: Outcome, provenance: dict[str, str]) -> Path:
    """Store the outcome, whole or not at all."""
    manifest = {
        "format": FORMAT,
        "key": run_key(outcome.setting),
        "setting": plain_setting(outcome.setting),
        "label": outcome.setting.label,
        "seed": outcome.setting.random_state,
        "fit_seconds": outcome.fit_seconds,
        "encode_seconds": outcome.encode_seconds,
        "refusal": outcome.refusal,
        "error": outcome.error,
        "measures": outcome.measures,
        "history": [_plain(sweep) for sweep in outcome.history],
        "provenance": provenance,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "manifest": np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8),
        "database_codes": outcome.database_codes,
        "query_codes": outcome.query_codes,
    }
    if outcome.rescored is not None:
        arrays["rescored"] = outcome.rescored
    if outcome.reliability is not None and outcome.damaged_queries is not None:
        arrays["reliability"] = outcome.reliability
        arrays["damaged_queries"] = np.packbits(outcome.damaged_queries)
    path = run_path(folder, outcome.setting)
    try:
        with replacing(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written ({error.strerror or error}): give a folder that may be written to."
        ) from error
    return path


def read_run(path: Path, setting: Setting) -> Run:
    """The run of this setting; a file that is damaged, or of another setting, is an error that says so."""
    try:
        with zipfile.ZipFile(path) as archive:
            _require(archive.testzip() is None)  # every checksum
        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        manifest = json.loads(arrays["manifest"].tobytes())
        _require(manifest["format"] == FORMAT and manifest["key"] == run_key(setting))
        _require(manifest["setting"] == json.loads(json.dumps(plain_setting(setting))))
        return Run(_checked_outcome(manifest, arrays, setting), dict(manifest["provenance"]))
    except FileNotFoundError:
        raise RunFileError(f"there is no file {path}.") from None
    except UNREADABLE as error:
        raise RunFileError(f"{path} is damaged or of another setting; run the benchmark again.") from error


def n_stored(folder: Path, settings: Iterable[Setting]) -> int:
    """How many of these runs have a file; `read_run` says whether it is whole."""
    return sum(run_path(folder, setting).is_file() for setting in settings)


def _checked_outcome(manifest: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], setting: Setting) -> Outcome:
    codes = arrays["database_codes"], arrays["query_codes"]
    is_empty = bool(manifest["refusal"] or manifest["error"]) or simplest(setting).role in CODELESS
    for part in codes:
        _require(part.dtype == np.uint8 and part.ndim == 2 and (len(part) == 0) == is_empty)
        _require(is_empty or part.shape[1] == n_bytes(setting.n_bits))
    rescored, reliability, damaged = arrays.get("rescored"), arrays.get("reliability"), None
    if rescored is not None:
        _require(rescored.dtype == np.int32 and rescored.shape == (len(codes[1]), N_TRUE_NEIGHBOURS))
        _require(((rescored >= 0) & (rescored < len(codes[0]))).all())
    if reliability is not None:
        _require(reliability.dtype == np.float16 and reliability.ndim == 2 and len(reliability) == len(codes[1]))
        bits = np.unpackbits(arrays["damaged_queries"], count=reliability.size)
        damaged = bits.astype(bool).reshape(reliability.shape)
    return Outcome(
        setting, *codes, float(manifest["fit_seconds"]), float(manifest["encode_seconds"]),
        history=list(manifest.get("history", [])),
        refusal=str(manifest["refusal"]), error=str(manifest["error"]), rescored=rescored, reliability=reliability,
        damaged_queries=damaged, measures={name: float(value) for name, value in manifest["measures"].items()},
    )  # fmt: skip


def _plain(sweep: dict[str, float] | float) -> dict[str, float]:
    """What a sweep tells, by name; of most hashers that is the objective alone."""
    told = sweep if isinstance(sweep, dict) else {"objective": sweep}
    return {name: float(value) for name, value in told.items()}


def _require(is_met: Any) -> None:
    if not is_met:
        raise ValueError("the parts of the run do not fit each other")
