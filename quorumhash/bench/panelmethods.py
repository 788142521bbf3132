"""The methods of a benchmark's TOML file: the rows of its tables, checked against what this version has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from quorumhash.bench.paneltable import PanelTable
from quorumhash.bench.peers import PEERS
from quorumhash.bench.settings import AUTO, CHANCE, EQUAL, FLOAT, HASHER, ORACLE, PEER
from quorumhash.bench.weighting import WEIGHER
from quorumhash.hashers import HASHERS

FLOAT_UNDAMAGED = "float_undamaged"
ROLES = (HASHER, FLOAT, FLOAT_UNDAMAGED, ORACLE, CHANCE, PEER)
NORMALISED = "row_normalised"


@dataclass(frozen=True)
class Method:
    """A row of the panel's tables; own ones are compared with the best of the rivals."""

    name: str
    role: str
    hasher: str  # of a peer: its name in PEERS
    parameters: dict[str, Any]
    weights: tuple[str, ...]
    is_own: bool
    is_told_sources: bool
    seeds: tuple[int, ...]  # empty: those of the grid
    is_row_normalised: bool = False
    family: str = ""  # what the variants of one table of the file share

    @property
    def is_rival(self) -> bool:
        """Whether own methods are compared with it."""
        return self.role == HASHER and not self.is_own


def read_methods(table: PanelTable, skipped: list[str]) -> tuple[Method, ...]:
    """The methods of the file in its order, less those that this version does not have; `skipped` is told of them."""
    methods = tuple(_methods(table, skipped))
    names = [method.name for method in methods]
    if twice := sorted(name for name in set(names) if names.count(name) > 1):
        table.refuse("methods", f"must have a name each, got {twice[0]!r} twice")
    return methods


def _methods(table: PanelTable, skipped: list[str]) -> Iterator[Method]:
    rows = table.rows("methods")
    named = {str(row.values.get("hasher")) for row in rows if row.values.get("role", HASHER) == HASHER}
    for row in rows:
        if not row.flag("every_other"):
            yield from _method(row, skipped)
            continue
        weights, without = _weights(row, skipped), row.texts("without", ())
        seeds = row.counts("seeds", (), smallest=0)
        row.finish()
        for name in sorted(set(HASHERS) - named - {*without}):
            yield Method(name, HASHER, name, {}, weights, False, False, seeds)


def _method(row: PanelTable, skipped: list[str]) -> Iterator[Method]:
    name, role, hasher = row.text("name"), row.text("role", HASHER), ""
    if role not in ROLES:
        row.refuse("role", f"must be one of {', '.join(ROLES)}, got {role!r}")
    if role in (HASHER, ORACLE):
        hasher = row.text("hasher")
    if role == PEER and (hasher := row.text("peer")) not in PEERS:
        row.refuse("peer", f"must be one of {', '.join(PEERS)}, got {hasher!r}")
    parameters, weights = row.plain("parameters"), _weights(row, skipped)
    seeds = row.counts("seeds", (), smallest=0)
    method = Method(
        name, role, hasher, parameters, weights, row.flag("own"), row.flag("told_sources"), seeds, row.flag(NORMALISED),
        family=name,
    )  # fmt: skip
    variants = [_variant(method, inner) for inner in row.rows("tried")] if "tried" in row else [method]
    if "crossed" in row:
        variants = [_variant(variant, inner) for variant in variants for inner in _crossed(row)]
    row.finish()
    if role in (HASHER, ORACLE) and hasher not in HASHERS:
        skipped.append(f"{name} is left out: the hasher {hasher!r} is not in this version")
        return
    accepted = set(HASHERS[hasher]().get_params()) - {"n_bits", "random_state"} if hasher in HASHERS else set()
    for variant in variants:
        if unknown := sorted(set(variant.parameters) - accepted):
            known = f"the parameters of {hasher!r} are {', '.join(sorted(accepted))}" if accepted else "it has none"
            row.refuse("parameters", f"has {unknown[0]!r}; {known}")
    yield from variants


def _crossed(row: PanelTable) -> Iterator[PanelTable]:
    """A table of parameters for every combination of the values that `crossed` lists by name."""
    lists = row.plain("crossed")
    for name, values in lists.items():
        if not isinstance(values, list) or not values:
            row.refuse("crossed", f"must have a list of values for {name}, got {values!r}")
    for combination in product(*lists.values()):
        yield PanelTable(row.path, f"{row.place}.crossed", dict(zip(lists, combination, strict=True)))


def _variant(method: Method, table: PanelTable) -> Method:
    """The method with the parameters of one entry of `tried`, which are in its name."""
    is_normalised = table.flag(NORMALISED) or method.is_row_normalised
    parameters = PanelTable(table.path, table.place, {"parameters": table.rest()}).plain("parameters")
    words = [f"{key}={value}" for key, value in parameters.items()] + [NORMALISED] * table.flag(NORMALISED)
    return replace(
        method,
        name=", ".join([method.name, *words]),
        parameters=method.parameters | parameters,
        is_row_normalised=is_normalised,
    )


def _weights(row: PanelTable, skipped: list[str]) -> tuple[str, ...]:
    weights = row.names("weights", among=(EQUAL, AUTO), default=(EQUAL,))
    if AUTO in weights and WEIGHER not in HASHERS:
        skipped.append(f"rows on weighted views are left out: the hasher {WEIGHER!r} is not in this version")
        weights = tuple(name for name in weights if name != AUTO)
    return weights
