"""What the package needs of the database, and nothing for people."""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, final

__all__ = [
    "Array",
    "DataError",
    "Database",
    "DatabaseError",
    "Error",
    "Frame",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Rows",
    "Session",
    "topology",
]

class Error(Exception):
    """The base of all errors."""

class InterfaceError(Error):
    """The package is used wrongly: closed, forked."""

class DatabaseError(Error):
    """The base of errors of the database."""

class DataError(DatabaseError):
    """A value that does not fit its type."""

class OperationalError(DatabaseError):
    """Files, disk, memory, other writers."""

class IntegrityError(DatabaseError):
    """A constraint would be violated."""

class InternalError(DatabaseError):
    """A defect of the database."""

class ProgrammingError(DatabaseError):
    """Wrong SQL: syntax, names, types."""

class NotSupportedError(DatabaseError):
    """Understood, and not supported."""

class _LoadOptions(TypedDict):
    """The options of a load; all are there."""

    schema: str | None
    primary_key: list[str]
    declare_keys: bool
    foreign_keys: list[tuple[list[str], str, list[str]]]
    format: str | None
    delimiter: str | None
    quote: str | None
    escape: str | None
    header: bool | None
    null: list[str]
    compression: str | None
    hive: bool | None
    append: bool
    replace: bool

@final
class Database:
    def __new__(
        cls, path: str, read_only: bool, threads: int | None, memory_limit: int | None
    ) -> Database: ...
    def session(self) -> Session: ...
    def tables(self) -> list[tuple[str, int]]: ...
    def array(self, name: str) -> Array: ...
    def load(
        self,
        table: str,
        files: Sequence[str],
        options: _LoadOptions,
        tell: Callable[[int, float | None], Any] | None,
    ) -> tuple[int, int, float]: ...
    def close(self) -> None: ...

@final
class Session:
    @property
    def in_transaction(self) -> bool: ...
    def missing(self, text: str) -> list[str]: ...
    def query(
        self, text: str, parameters: Sequence[Any] | None, tables: Sequence[tuple[str, Frame]]
    ) -> Rows: ...
    def each(self, text: str, rows: Sequence[Sequence[Any]]) -> int: ...
    def at_once(self, text: str, name: str, rows: Sequence[Sequence[Any]]) -> int | None: ...
    def script(self, text: str) -> None: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...

@final
class Rows:
    @property
    def columns(self) -> list[tuple[str, str]]: ...
    @property
    def changed(self) -> int | None: ...
    def fill(self, rows: int) -> tuple[int, bool]: ...
    def tuples(self, start: int, end: int) -> list[tuple[Any, ...]]: ...
    def stream(self) -> object: ...
    def close(self) -> None: ...

@final
class Frame:
    def __new__(cls, capsule: object, held: bool) -> Frame: ...
    @property
    def columns(self) -> list[str]: ...

@final
class Array:
    @property
    def dimensions(self) -> list[tuple[str, int]]: ...
    @property
    def attributes(self) -> list[tuple[str, str]]: ...
    def coordinates(self, dimension: int, start: int, end: int) -> tuple[list[str], bool]: ...
    def between(self, dimension: int, one: str | None, other: str | None) -> tuple[int, int]: ...
    def position(self, dimension: int, coordinate: str) -> int: ...
    def read(
        self, attribute: int, ranges: Sequence[tuple[int, int]]
    ) -> tuple[bytearray, bytearray | None]: ...
    def close(self) -> None: ...

def topology(
    spec: str,
) -> tuple[str, list[tuple[int, int, list[list[int]], int, int | None]], list[list[int]], str]: ...
