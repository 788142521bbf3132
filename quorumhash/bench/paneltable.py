"""A table of a TOML file, read key by key; what is wrong is one sentence that names the file and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Never

from quorumhash.errors import ParameterError


class PanelTable:
    """A table and where it stands; every key that is asked for is remembered, `finish` refuses the others."""

    def __init__(self, path: Path, place: str, values: dict[str, Any]) -> None:
        self.path = path
        self.place = place
        self.values = values
        self.asked: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default it must be there."""
        return str(self._take(key, default, lambda value: isinstance(value, str) and bool(value), "a text"))

    def flag(self, key: str) -> bool:
        """True or false, false where it is not there."""
        return bool(self._take(key, False, lambda value: isinstance(value, bool), "true or false"))

    def number(self, key: str, default: float) -> float:
        """A number from 0 to 1."""
        return float(self._take(key, default, _is_share, "a number from 0 to 1"))

    def count(self, key: str, smallest: int) -> int:
        """A whole number that must be there."""
        return int(self._take(key, None, lambda v: _is_count(v, smallest), f"a whole number from {smallest} up"))

    def counts(self, key: str, default: tuple[int, ...] | None, smallest: int) -> tuple[int, ...]:
        """Whole numbers, at least one of them."""
        is_fine = _list_of(lambda value: _is_count(value, smallest))
        return tuple(self._take(key, default, is_fine, f"a list of whole numbers from {smallest} up"))

    def shares(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Numbers from 0 to 1."""
        return tuple(map(float, self._take(key, default, _list_of(_is_share), "a list of numbers from 0 to 1")))

    def texts(self, key: str, default: tuple[str, ...] | None) -> tuple[str, ...]:
        """Texts, at least one of them."""
        return tuple(self._take(key, default, _list_of(lambda value: isinstance(value, str)), "a list of texts"))

    def names(self, key: str, among: Collection[str], default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Texts out of a list."""
        is_fine = _list_of(lambda value: isinstance(value, str) and value in among)
        return tuple(self._take(key, default, is_fine, f"a list out of {', '.join(map(str, among))}"))

    def plain(self, key: str) -> dict[str, Any]:
        """A table of plain values that are passed on, empty where it is not there."""
        return dict(self._take(key, {}, _is_plain_table, "a table of texts, numbers, true, false, lists and tables"))

    def inner(self, key: str) -> PanelTable:
        """A table in this one, empty where it is not there."""
        values = self._take(key, {}, lambda value: isinstance(value, dict), "a table")
        return PanelTable(self.path, self._place_of(key), values)

    def inners(self, key: str) -> dict[str, PanelTable]:
        """A table of tables by name, which must be there."""
        tables = self._take(key, None, _is_table_of_tables, "a table of tables")
        return {name: PanelTable(self.path, f"{self._place_of(key)}.{name}", values) for name, values in tables.items()}

    def rows(self, key: str) -> list[PanelTable]:
        """The tables of a list, which must be there."""
        tables = self._take(key, None, _list_of(lambda value: isinstance(value, dict)), f"[[{key}]] tables")
        return [PanelTable(self.path, f"{self._place_of(key)}[{i}]", values) for i, values in enumerate(tables)]

    def rest(self) -> dict[str, Any]:
        """Everything that was not asked for."""
        rest = {key: value for key, value in self.values.items() if key not in self.asked}
        self.asked |= set(rest)
        return rest

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        unknown = sorted(set(self.values) - self.asked)
        if unknown:
            known = ", ".join(sorted(self.asked))
            self.refuse(unknown[0], f"is no key of a benchmark here; the keys are {known}")

    def refuse(self, key: str, reason: str) -> Never:
        """Raise an error about a key."""
        raise ParameterError(f"{self.path}: {self._place_of(key)} {reason}.")

    def _take(self, key: str, default: Any, is_fine: Callable[[Any], bool], must_be: str) -> Any:
        self.asked.add(key)
        if key not in self.values:
            if default is None:
                self.refuse(key, f"is missing; it must be {must_be}")
            return default
        value = self.values[key]
        if not is_fine(value):
            self.refuse(key, f"must be {must_be}, got {value!r}")
        return value

    def _place_of(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def read_table(path: Path) -> PanelTable:
    """The whole file as a table."""
    try:
        return PanelTable(path, "", tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is no readable TOML ({error}); mend that place.") from error
    except OSError as error:
        raise ParameterError(f"{path} cannot be read ({error.strerror or error}); name a benchmark's file.") from error


def _list_of(is_fine: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: isinstance(values, list) and len(values) > 0 and all(map(is_fine, values))


def _is_count(value: Any, smallest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= smallest


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_table_of_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())


def _is_plain_table(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_plain, value.values()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return _is_plain_table(value) or isinstance(value, str | int | float | bool)
