"""What an audit found: p-values, kinds and partners of every view of every row, and findings in words."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quorumhash.atomic import replacing
from quorumhash.correction import Verdicts, corrected_views
from quorumhash.errors import ParameterError
from quorumhash.judging import Judge
from quorumhash.views import Views

if TYPE_CHECKING:
    from rich.table import Table

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

KINDS = ("shift", "model_version", "swap", "noise", "placeholder", "zero", "constant", "missing")
WHOLE_TABLE = ("shift", "model_version")  # kinds that are findings about a range or a group, not about single rows
MOST_ROWS_SHOWN = 1_000  # of a finding, in the JSON


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, in one sentence; first and last row and offset where it is a range, None elsewhere.

    Row i of a finding with an offset holds the data of row i + offset. `share` is that of the rows of the table.
    """

    kind: str
    view: str
    rows: Rows
    sentence: str
    first: int | None = None
    last: int | None = None
    offset: int | None = None
    share: float = 0.0


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What `audit` found.

    Attributes
    ----------
    names : list of str
        Views; the columns of everything below.
    p_values : float array (n, n_views)
        The share of undamaged rows that would look at least as suspicious; NaN where a view is absent.
    kinds : str array (n, n_views)
        "" where nothing is wrong, else shift, model_version, swap, noise, placeholder, zero, constant or missing.
    partners : int64 array (n, n_views, 5)
        Rows that the view of a swap or shift belongs to, best first; -1 where there is none.
    findings : list of Finding
        Whole-table findings first, then those about most rows.
    trust : float array (n, n_views)
        The posterior that the view is right; 0 where there is nothing to believe.

    Examples
    --------
    >>> import quorumhash as qh
    >>> digits = qh.load_dataset("digits")
    >>> report = qh.audit(qh.damage(digits.views, "shift", rate=0.1, random_state=0))
    >>> print(report.findings[0].sentence)
    view 'frequencies', rows 723 to 902: each holds the data of the row before (offset -1), a join that is off.
    """

    names: list[str]
    p_values: FloatArray
    kinds: npt.NDArray[np.str_]
    partners: Rows
    findings: list[Finding]
    false_alarms: float
    trust: FloatArray
    overlap: FloatArray  # (n_views, n_views) how much more often than by chance two views name the same neighbours
    views: Views = field(repr=False)
    judge: Judge = field(repr=False)

    def __len__(self) -> int:
        return len(self.kinds)

    def summary(self) -> list[dict[str, Any]]:
        """One dict per view: name, n_rows, missing, suspicious, kinds (share of each), overlap (with others)."""
        described = []
        for m, name in enumerate(self.names):
            shares = {kind: float(np.mean(self.kinds[:, m] == kind)) for kind in KINDS}
            there = ~np.isnan(self.p_values[:, m])
            low = float(np.mean(self.p_values[there, m] < self.false_alarms)) if there.any() else 0.0
            described.append(
                {
                    "name": name,
                    "n_rows": len(self),
                    "missing": shares["missing"],
                    "suspicious": low,
                    "kinds": shares,
                    "overlap": {n: float(self.overlap[m, k]) for k, n in enumerate(self.names) if k != m},
                }
            )
        return described

    def apply(self, how: str = "repair") -> Views:
        """Views with what was found put right.

        "drop": every damaged view becomes missing; for a QuorumHasher, which repairs by itself. An item keeps at least
        one view: the one with the largest p-value. "repair": every view that is not surely right (trust below 0.95), or
        missing, becomes what is expected: as much of its own as it is trusted, the rest as the item's other views
        predict; for hashers that take views for right. "swap": misplaced views go back to the rows they belong to, and
        what is left is repaired.
        """
        if how not in ("drop", "repair", "swap"):
            raise ParameterError(f"apply takes 'drop', 'repair' or 'swap', got {how!r}.")
        verdicts = Verdicts(self.kinds, self.p_values, self.trust, self.partners[:, :, 0])
        return corrected_views(self.views, self.judge, verdicts, how)

    def to_json(self) -> str:
        """Findings, summary, and every damaged pair of row and view, as one JSON object."""
        facts = {
            "n_rows": len(self),
            "names": self.names,
            "false_alarms": self.false_alarms,
            "findings": [_plain_finding(finding) for finding in self.findings],
            "summary": self.summary(),
            "pairs": [dict(zip(PAIR_FIELDS, pair, strict=True)) for pair in self._pairs()],
        }
        return json.dumps(facts)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """One line per damaged pair of row and view: row, view, kind, p_value, partners; whole or not at all."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(PAIR_FIELDS)
        writer.writerows((*pair[:-1], " ".join(map(str, pair[-1]))) for pair in self._pairs())
        with _writing(path) as file:
            file.write(text.getvalue().encode())

    def to_html(self, path: str | os.PathLike[str], images: Any = None) -> None:
        """One page that refers to nothing outside itself; `images`: a folder of pictures, or one picture per row."""
        from quorumhash.auditpage import audit_page
        from quorumhash.report import write_report

        write_report(path, audit_page(self, images))

    def table(self) -> Table:
        """The findings as a table for the terminal, whole-table findings first."""
        from rich.table import Table
        from rich.text import Text

        drawn = Table(
            "kind", "view", "rows", "share", "what was found", title=f"{len(self):,} rows", title_justify="left"
        )
        for finding in self.findings:
            share = f"{100 * finding.share:.2f} %"
            drawn.add_row(finding.kind, Text(finding.view), f"{len(finding.rows):,}", share, Text(finding.sentence))
        if not self.findings:
            drawn.add_row("", "", "0", "", "nothing is wrong at this rate of false alarms")
        return drawn

    def _pairs(self) -> list[tuple[Any, ...]]:
        rows, columns = np.nonzero(self.kinds != "")
        found = []
        for row, m in zip(rows.tolist(), columns.tolist(), strict=True):
            p_value = self.p_values[row, m]
            partners = [int(j) for j in self.partners[row, m] if j >= 0]
            p_shown = None if np.isnan(p_value) else float(f"{p_value:.3g}")
            found.append((row, self.names[m], str(self.kinds[row, m]), p_shown, partners))
        return found


PAIR_FIELDS = ("row", "view", "kind", "p_value", "partners")


def _plain_finding(finding: Finding) -> Mapping[str, Any]:
    return {
        "kind": finding.kind,
        "view": finding.view,
        "sentence": finding.sentence,
        "n_rows": len(finding.rows),
        "rows": finding.rows[:MOST_ROWS_SHOWN].tolist(),
        "first": finding.first,
        "last": finding.last,
        "offset": finding.offset,
        "share": finding.share,
    }


def _writing(path: str | os.PathLike[str]) -> Any:
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise ParameterError(f"{os.fspath(path)!r} cannot be written: give a file name in a folder that exists.")
    return replacing(path)
