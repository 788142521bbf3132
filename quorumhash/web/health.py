"""The health of the data: the audit of the stored items, done once, in the background, and told in plain numbers."""

from __future__ import annotations

import csv
import io
import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.auditing import audit
from quorumhash.auditreport import AuditReport
from quorumhash.errors import QuorumHashError
from quorumhash.web.collection import Collection

N_BINS = 20  # of a histogram of p-values
MOST_SHOWN = 60
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")  # at the start of a cell, spreadsheets take it for a formula

Rows = npt.NDArray[np.int64]


class Health:
    """The audit of a collection's stored items; begun by the first question."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.seconds = 0.0
        self._rows: Rows = np.flatnonzero(np.isin(collection.row_ids, collection.ids))
        self._report: AuditReport | None = None
        self._fault = "" if collection.views is not None else "give the items' views with --views to see their health."
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the audit, if it was not started."""
        with self._lock:
            if self._thread is None and not self._fault:
                self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Until the audit is done."""
        self.begin()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        started = time.perf_counter()
        assert self.collection.views is not None, "begin asks for it"
        try:
            self._report = audit(self.collection.views[self._rows])
        except QuorumHashError as error:
            self._fault = str(error)
        except Exception as error:  # a thread has nobody to tell
            self._fault = f"the audit failed ({type(error).__name__}); run `quorumhash audit` to see why."
        self.seconds = time.perf_counter() - started

    def told(self) -> dict[str, Any]:
        """The state, and once it is there, what was found."""
        self.begin()
        report = self._report
        if report is None:
            return {"state": "unavailable" if self._fault else "running", "reason": self._fault}
        kinds = report.kinds[report.kinds != ""]
        names, counts = np.unique(kinds, return_counts=True)
        return {
            "state": "done",
            "reason": "",
            "seconds": round(self.seconds, 2),
            "n_items": len(self._rows),
            "n_damaged": int((report.kinds != "").any(axis=1).sum()),
            "kinds": {str(names[i]): int(counts[i]) for i in np.argsort(-counts)},
            "findings": [
                {"kind": f.kind, "view": f.view, "sentence": f.sentence, "n_rows": len(f.rows)} for f in report.findings
            ],
            "views": [self._view(report, m) for m in range(len(report.names))],
            "suspicious": [self._pair(report, *pair) for pair in _most_suspicious(report)],
        }

    def _view(self, report: AuditReport, m: int) -> dict[str, Any]:
        values = report.p_values[:, m]
        counts, _ = np.histogram(values[~np.isnan(values)], bins=N_BINS, range=(0, 1))
        found, times = np.unique(report.kinds[:, m], return_counts=True)
        return {
            "view": report.names[m],
            "n_there": int((~np.isnan(values)).sum()),
            "histogram": counts.tolist(),
            "kinds": {str(kind): int(n) for kind, n in zip(found, times, strict=True) if kind},
        }

    def _pair(self, report: AuditReport, row: int, m: int) -> dict[str, Any]:
        value = report.p_values[row, m]
        return {
            **self.collection.told(self._item(row)),
            "view": report.names[m],
            "kind": str(report.kinds[row, m]),
            "p_value": None if np.isnan(value) else float(value),
            "partners": [self.collection.told(self._item(int(r))) for r in report.partners[row, m] if r >= 0],
        }

    def _item(self, row: int) -> int:
        return int(self.collection.row_ids[self._rows[row]])

    def csv(self) -> str | None:
        """A line for each damaged view of an item; None where the audit is not done."""
        report, text = self._report, io.StringIO()
        if report is None:
            return None
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(["item", "name", "view", "kind", "p_value", "partners"])
        for row, m in np.argwhere(report.kinds != ""):
            pair = self._pair(report, int(row), int(m))
            partners = " ".join(str(partner["id"]) for partner in pair["partners"])
            p_value = "" if pair["p_value"] is None else f"{pair['p_value']:.6g}"
            writer.writerow([pair["id"], _cell(pair["name"]), _cell(pair["view"]), pair["kind"], p_value, partners])
        return text.getvalue()


def _most_suspicious(report: AuditReport) -> list[tuple[int, int]]:
    """Damaged (row, view) pairs: of every kind in turn, the smallest p-value first; missing ones are left out."""
    values = np.where(np.isnan(report.p_values), 1.0, report.p_values)
    queues = []
    for kind in np.unique(report.kinds[(report.kinds != "") & (report.kinds != "missing")]):
        pairs = np.argwhere(report.kinds == kind)
        has_partner = report.partners[pairs[:, 0], pairs[:, 1], 0] >= 0
        order = np.lexsort([values[pairs[:, 0], pairs[:, 1]], ~has_partner])
        queues.append([(int(row), int(m)) for row, m in pairs[order]])
    queues.sort(key=len, reverse=True)
    turns = [queue[turn] for turn in range(max(map(len, queues), default=0)) for queue in queues if turn < len(queue)]
    return turns[:MOST_SHOWN]


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_MARKS) else text
