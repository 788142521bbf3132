"""Findings in words: a shifted join, another version, and what single rows of a view have in common."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorumhash.auditreport import KINDS, WHOLE_TABLE, Finding

Positions = npt.NDArray[np.int64]

WORDS = {
    "swap": "hold the data of another item",
    "noise": "hold values unlike any other row and do not go with the item's other views",
    "placeholder": "hold a row that many items share: a placeholder or default",
    "zero": "are all zeros",
    "constant": "hold one value throughout",
    "missing": "are missing",
}


def shift_finding(name: str, rows: Positions, first: int, last: int, offset: int, n_rows: int) -> Finding:
    """A run of rows whose join is off."""
    near = {-1: "the row before", 1: "the row after"}
    whose = near.get(offset) or f"the row {abs(offset)} places {'further on' if offset > 0 else 'back'}"
    sentence = (
        f"view {name!r}, rows {first} to {last}: each holds the data of {whose} (offset {offset:+d}), "
        "a join that is off."
    )
    return Finding("shift", name, rows, sentence, first, last, offset, len(rows) / n_rows)


def version_finding(name: str, rows: Positions, n_rows: int) -> Finding:
    """A group of rows that another model made."""
    share = len(rows) / n_rows
    sentence = (
        f"view {name!r}: {len(rows)} rows ({100 * share:.2g} %) between row {rows[0]} and row {rows[-1]} go with "
        "the other views in a way of their own, as if another model had made them."
    )
    return Finding("model_version", name, rows, sentence, share=share)


def row_findings(names: tuple[str, ...], kinds: npt.NDArray[np.str_], partners: Positions) -> list[Finding]:
    """One finding per view and kind of single rows, the one about most rows first."""
    found = []
    for m, name in enumerate(names):
        for kind in (kind for kind in KINDS if kind not in WHOLE_TABLE):
            rows = np.flatnonzero(kinds[:, m] == kind)
            if not len(rows):
                continue
            share = len(rows) / len(kinds)
            which = f"{len(rows)} row(s) ({100 * share:.2g} %)"
            sentence = f"view {name!r}: {which} {WORDS[kind]}{_instance(rows, partners[:, m])}."
            found.append(Finding(kind, name, rows, sentence, share=share))
    return sorted(found, key=lambda finding: -len(finding.rows))


def _instance(rows: Positions, partners: Positions) -> str:
    with_partner = rows[partners[rows, 0] >= 0]
    if not len(with_partner):
        return f", the first is row {rows[0]}"
    return f", such as row {with_partner[0]}, whose data belong to row {partners[with_partner[0], 0]}"
