"""Reads the files of a study. Each key has a type, and unknown keys are errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tcplab._core import ConfigError


class Table:
    """A table of a file. The reader takes each key; `finish` refuses keys that nobody took."""

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._left = dict(content)

    @classmethod
    def of_file(cls, path: Path) -> Table:
        try:
            return cls(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        except FileNotFoundError:
            raise ConfigError(f"{path}: there is no such file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from None

    def wrong(self, key: str, what: str) -> ConfigError:
        return ConfigError(f"{self.where}: {key}: {what}")

    def take(self, key: str, kinds: tuple[type, ...], what: str, *, needed: bool) -> Any:
        value = self._left.pop(key, None)
        if value is None and not needed:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.wrong(key, f"{what} is needed")
        return value

    def text(self, key: str) -> str:
        return str(self.take(key, (str,), "a text", needed=True))

    def maybe(self, key: str) -> str | None:
        value: str | None = self.take(key, (str,), "a text", needed=False)
        return value

    def choice(self, key: str, of: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in of:
            raise self.wrong(key, f"{value!r} is none of {', '.join(of)}")
        return value

    def whole(self, key: str) -> int:
        return int(self.take(key, (int,), "a whole number", needed=True))

    def truth(self, key: str, *, default: bool = False) -> bool:
        value = self.take(key, (bool,), "true or false", needed=False)
        return default if value is None else bool(value)

    def number(self, key: str) -> float | None:
        value = self.take(key, (int, float), "a number", needed=False)
        return None if value is None else float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.take(key, (list,), "a list of texts", needed=False) or []
        if not all(isinstance(one, str) for one in value):
            raise self.wrong(key, "a list of texts is needed")
        return tuple(value)

    def list_of(self, key: str) -> list[Any]:
        return list(self.take(key, (list,), "a list", needed=True))

    def plain(self, key: str) -> dict[str, Any]:
        return dict(self.take(key, (dict,), "a table", needed=False) or {})

    def table(self, key: str) -> Table | None:
        value = self.take(key, (dict,), "a table", needed=False)
        return None if value is None else Table(value, f"{self.where}: {key}")

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        for name, content in self.plain(key).items():
            if not isinstance(content, dict):
                raise self.wrong(f"{key}.{name}", "a table is needed")
            yield name, Table(content, f"{self.where}: {key}.{name}")

    def has(self, key: str) -> bool:
        """Whether a key exists that has not been taken yet."""
        return key in self._left

    def holds(self, key: str, kind: type) -> bool:
        """Whether a key exists with a value of this type."""
        return isinstance(self._left.get(key), kind)

    def entries(self, key: str) -> Iterator[Table]:
        found = self.take(key, (list,), "a list of tables", needed=False) or []
        for number, content in enumerate(found):
            if not isinstance(content, dict):
                raise self.wrong(key, "a list of tables is needed")
            own = content.get("id", number)
            yield Table(content, f"{self.where}: {key} {own}")

    def finish(self) -> None:
        for key in self._left:
            raise self.wrong(key, "there is no such key here")
