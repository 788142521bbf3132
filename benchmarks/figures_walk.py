"""The new user's walk: every step of the README and the five-minute start with its seconds."""

from __future__ import annotations

from figures_table import results, table


def walk() -> str:
    report = results("walk")
    rows = [
        [
            f"`{step['step']}`" if step["is_typed"] else step["step"],
            f"{step['seconds']:.1f}",
            f"{step['cpu_seconds']:.1f}",
        ]
        for step in report["steps"]
    ]
    machine = report["provenance"]
    where = f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"
    busy = (
        f"load average {report['load_average_before']} before and {report['load_average_after']} after, from other work"
    )
    total = sum(step["seconds"] for step in report["steps"])
    note = f"{report['date']}; {where}; {busy}; {total / 60:.0f} minutes in all. `{report['command']}`"
    return table(["step", "seconds", "of computing"], rows) + f"\n{note}\n"


FIGURES = {"walk": walk}
