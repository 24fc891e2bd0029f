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
    "FrameBuilder",
    "Governor",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "Pinned",
    "ProgrammingError",
    "Rows",
    "Session",
    "__version__",
    "command",
    "locate",
    "topology",
]

__version__: str

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
    def arrays(self) -> list[str]: ...
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
        self,
        text: str,
        parameters: Sequence[Any] | None,
        tables: Sequence[tuple[str, Frame]],
        tell: Callable[[float], Any] | None,
    ) -> Rows: ...
    def laq(
        self, text: str, explain: bool, analyze: bool, tell: Callable[[float], Any] | None
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
    def fill(
        self, rows: int, tell: Callable[[float], Any] | None = None
    ) -> tuple[int, bool]: ...
    def tuples(self, start: int, end: int) -> list[tuple[Any, ...]]: ...
    def stream(self) -> object: ...
    def close(self) -> None: ...

@final
class Frame:
    def __new__(cls, capsule: object, held: bool) -> Frame: ...
    @property
    def columns(self) -> list[str]: ...

@final
class FrameBuilder:
    def __new__(cls, rows: int) -> FrameBuilder: ...
    def add_array(
        self, name: str, array: Any, missing: tuple[Any, ...], asked: bool
    ) -> bool: ...
    def add_stream(self, capsule: object) -> None: ...
    def build(self) -> Frame: ...

@final
class Array:
    @property
    def dimensions(self) -> list[tuple[str, int]]: ...
    @property
    def attributes(self) -> list[tuple[str, str]]: ...
    def said(self, part: str | None) -> list[tuple[str, list[str | bool | int | float | None]]]: ...
    def coordinates(self, dimension: int, start: int, end: int) -> tuple[list[str], bool]: ...
    def between(self, dimension: int, one: str | None, other: str | None) -> tuple[int, int]: ...
    def position(self, dimension: int, coordinate: str) -> int: ...
    def read(
        self, attribute: int, ranges: Sequence[tuple[int, int]]
    ) -> tuple[bytearray, bytearray | None]: ...
    def close(self) -> None: ...

class _GovernOptions(TypedDict):
    """What is governed, and how; all are there."""

    pid: int | None
    name: str | None
    cgroup: str | None
    unit: str | None
    mode: str
    sensor: str | None
    throughput: str | None
    min_cores: int | None
    max_cores: int | None
    reserve: int | None
    period: float | None
    actuator: str
    migrate: bool
    dry_run: bool
    guard: list[str]

@final
class Governor:
    def __new__(cls, options: _GovernOptions) -> Governor: ...
    @property
    def running(self) -> bool: ...
    def decisions(self) -> tuple[list[str], int]: ...
    def told(self) -> tuple[list[str], str | None, tuple[str, bool] | None]: ...
    def stop(self) -> None: ...

class _PinOptions(TypedDict):
    """Where threads are to be; all are there."""

    cpus: str | None
    nodes: list[int] | None
    strategy: str | None
    threads: int | None
    pid: int | None

@final
class Pinned:
    def __new__(cls, options: _PinOptions) -> Pinned: ...
    @property
    def cpus(self) -> list[list[int]]: ...
    def undo(self) -> None: ...

def locate(pid: int, addresses: int | None) -> str: ...
def command(arguments: Sequence[str], file: str | None, again: Sequence[str]) -> None: ...
def topology(
    spec: str,
) -> tuple[str, list[tuple[int, int, list[list[int]], int, int | None]], list[list[int]], str]: ...
