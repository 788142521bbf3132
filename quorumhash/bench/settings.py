"""What one run is: a method with its parameters, on a dataset damaged in one way.

What stands in a table's row (`role` of a setting):

    hasher   codes of a method
    oracle   codes of a method that is told the damage: every damaged (item, view) pair is made missing before it looks
    chance   random codes
    float    exact search on the joined, scaled views, no codes
    peer     what is no hasher of this library, see bench/peers.py; the setting's `hasher` is its name
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

CLEAN = "clean"
BOTH, QUERIES, DATABASE = "both", "queries", "database"  # where damage falls; training rows go with the database
EQUAL, AUTO, AUTO_JOINED = "equal", "auto", "auto, joined"  # views as they are; weighted; weighted, as one view
HASHER, ORACLE, CHANCE, FLOAT, PEER = "hasher", "oracle", "chance", "float", "peer"
CODELESS = (FLOAT, PEER)  # their rankings are measured at once, no codes are kept
UNSIZED_PEERS = ("sign", "sign_rescored")  # as many bits as features, whatever is asked for
# left out of keys where false or empty: older runs keep theirs
ADDED_LATER = ("is_row_normalised", "is_validation", "is_by_labels", "dataset_options")

DatasetKey = tuple[str, str, int | None, bool]


@dataclass(frozen=True)
class Setting:
    """One run; see the module for roles. `label` is how tables call the method, and changes nothing.

    A validation run asks for training rows in place of the queries, so that parameters can be chosen by it. A run
    that is judged by labels alone keeps codes and no more. `dataset_options` are those of the dataset's loader.

    >>> Setting("itq", 64, "swap", rate=0.2, dataset="digits").where
    'both'
    """

    hasher: str
    n_bits: int
    damage: str = CLEAN
    rate: float = 0.2
    parameters: Mapping[str, Any] = field(default_factory=dict)
    random_state: int = 0
    dataset: str = ""
    max_rows: int | None = None
    where: str = BOTH
    damage_options: Mapping[str, Any] = field(default_factory=dict)
    role: str = HASHER
    weights: str = EQUAL
    is_told_sources: bool = False
    is_row_normalised: bool = False
    is_validation: bool = False
    is_by_labels: bool = False
    dataset_options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


def simplest(setting: Setting) -> Setting:
    """The same run without what has no say in it, so that equal runs are known as such.

    >>> simplest(Setting("itq", 64, "zero", rate=0.0, where="queries")).damage
    'clean'
    """
    if setting.role == CHANCE or setting.damage == CLEAN or setting.rate == 0:
        role = HASHER if setting.role == ORACLE else setting.role
        setting = replace(setting, damage=CLEAN, rate=0.0, where=BOTH, damage_options={}, role=role)
    if setting.role in (CHANCE, FLOAT):
        setting = replace(setting, hasher="", parameters={}, is_row_normalised=False)
    if setting.role in (CHANCE, FLOAT):
        setting = replace(setting, weights=EQUAL)
    if setting.role in (CHANCE, *CODELESS):
        setting = replace(setting, is_told_sources=False)
    if setting.role == PEER and setting.hasher in UNSIZED_PEERS:
        setting = replace(setting, n_bits=0)
    if setting.role == FLOAT:
        setting = replace(setting, n_bits=0, random_state=0 if setting.damage == CLEAN else setting.random_state)
    return replace(setting, rate=float(setting.rate))


def plain_setting(setting: Setting) -> dict[str, Any]:
    """The simplest form of the setting as plain values, without its label."""
    plain = asdict(simplest(setting))
    left_out = {"label", *(name for name in ADDED_LATER if not plain[name])}
    return {name: value for name, value in plain.items() if name not in left_out}


def run_key(setting: Setting) -> str:
    """64 hex digits that two settings share when they are the same run.

    >>> run_key(Setting("itq", 64, "zero", rate=0.0)) == run_key(Setting("itq", 64, label="ours"))
    True
    """
    return hashlib.sha256(json.dumps(plain_setting(setting), sort_keys=True).encode()).hexdigest()


def damage_key(setting: Setting) -> str:
    """A text that two settings share when they are about the same damaged data."""
    run = simplest(setting)
    options = json.dumps(dict(run.damage_options), sort_keys=True)
    return repr((*dataset_key(run), run.damage, run.rate, run.where, options, run.random_state))


def dataset_key(setting: Setting) -> DatasetKey:
    """What two settings share when they are about the same rows, damaged or not."""
    options = json.dumps(dict(setting.dataset_options), sort_keys=True)
    return setting.dataset, options, setting.max_rows, setting.is_validation
