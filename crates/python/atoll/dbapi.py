"""The interface of PEP 249, for programs that know no other.

>>> import atoll.dbapi
>>> connection = atoll.dbapi.connect()
>>> cursor = connection.cursor()
>>> _ = cursor.execute("create table fish (name varchar, length double)")
>>> _ = cursor.executemany("insert into fish values (?, ?)", [("blenny", 0.1), ("wrasse", 0.4)])
>>> connection.commit()
>>> cursor.execute("select name from fish where length > ?", [0.2]).fetchall()
[('wrasse',)]
>>> connection.close()

A transaction begins with the first statement, and ends with `commit` or `rollback`. Threads may share the module, but not connections.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import _atoll
from ._atoll import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from ._database import Database, executed_many
from ._result import Result

__all__ = [
    "BINARY",
    "Binary",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "ROWID",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
"""The version of the interface."""
threadsafety = 1
"""Threads may share the module, and not connections."""
paramstyle = "qmark"
"""Parameters are written `?`."""


class Warning(Exception):  # noqa: A001, the name is that of PEP 249
    """Nothing raises it: PEP 249 wants it to be there."""


Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The day of a time in seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day of a time in seconds since 1970."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Day and time of a time in seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])


class _Kind:
    """What the types of a column are compared with: `cursor.description[0][1] == STRING`."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __eq__(self, other: object) -> bool:
        # "decimal(10,2)", "timestamp(3) with time zone" and "tinyint unsigned" are known by their first words.
        return other is self or (isinstance(other, str) and other.replace("(", " ").partition(" ")[0] in self._names)

    def __hash__(self) -> int:
        return hash(self._names)


STRING = _Kind("varchar")
"""Texts."""
BINARY = _Kind("bytea")
"""Bytes."""
NUMBER = _Kind("tinyint", "smallint", "integer", "bigint", "real", "double", "decimal", "boolean")
"""Numbers."""
DATETIME = _Kind("date", "time", "timestamp", "interval")
"""Days and times."""
ROWID = _Kind()
"""Numbers of rows, which no column has."""


def connect(
    database: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    autocommit: bool = False,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> Connection:
    """Opens a store, or creates it; without a path, or with ":memory:", one that goes when the connection is closed.

    With `autocommit` each statement is a transaction of its own, unless `begin` has begun one.
    """
    opened = Database(database, read_only, threads=threads, memory_limit=memory_limit)
    return Connection(opened, autocommit, owned=True)


class Connection:
    """A session of a database: `connect(...)`, or `Connection(db)` for a database that is open."""

    def __init__(self, database: Database, autocommit: bool = False, *, owned: bool = False) -> None:
        self._database = database
        self._owned = owned
        self._session: Any = database._new_session()
        self.autocommit = autocommit

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Runs a statement in a new cursor, and returns the cursor."""
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        """Keeps what was done since the last commit."""
        self._end("commit")

    def rollback(self) -> None:
        """Undoes what was done since the last commit."""
        self._end("rollback")

    def close(self) -> None:
        """Closes it; what was not committed is undone."""
        if self._session is None:
            return
        self._session.close()
        self._session = None
        if self._owned:
            self._database.close()

    def _open(self) -> Any:
        if self._session is None:
            raise InterfaceError("the connection is closed")
        return self._session

    def _begin(self) -> Any:
        session = self._open()
        if not self.autocommit and not session.in_transaction:
            session.script("begin")
        return session

    def _end(self, how: str) -> None:
        session = self._open()
        if session.in_transaction:
            session.script(how)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Commits, or rolls back after an exception, and closes."""
        try:
            if self._session is not None:
                self._end("commit" if kind is None else "rollback")
        finally:
            self.close()

    Error = Error
    Warning = Warning
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError


class Cursor:
    """Runs statements and fetches their rows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._closed = False
        self._result: Result | None = None
        self._changed: int | None = None

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]] | None:
        """Name and SQL type of each column of the result; None of a statement that returns no rows."""
        if self._result is None or not self._result.columns:
            return None
        return [(name, kind, *(None,) * 5) for name, kind in zip(self._result.columns, self._result.types)]

    @property
    def rowcount(self) -> int:
        """How many rows the last statement has written; -1 if it wrote none, or is not known."""
        return -1 if self._changed is None else self._changed

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Runs one statement, whose parameters are `?`, and returns this cursor."""
        self._forget()
        text, count = numbered(operation)
        values = None if parameters is None else list(parameters)
        if count and len(values or ()) != count:
            raise ProgrammingError(f"the statement has {count} parameters, and {len(values or ())} are given")
        session = self.connection._begin()
        self._result = Result(session.query(text, values if count else None, [], None))
        self._changed = self._result.changed
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Any]]) -> Cursor:
        """Runs one statement with each of the parameters, and returns this cursor."""
        self._forget()
        text, count = numbered(operation)
        rows = [list(row) for row in seq_of_parameters]
        for row in rows:
            if len(row) != count:
                raise ProgrammingError(f"the statement has {count} parameters, and {len(row)} are given")
        session = self.connection._begin()
        self._changed = executed_many(session, text, rows) if rows else 0
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, `arraysize` of them unless a number is given."""
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._rows().fetchall()

    def fetch_arrow_table(self) -> Any:
        """All rows as a `pyarrow.Table`."""
        return self._rows().arrow()

    def fetch_df(self) -> Any:
        """All rows as a pandas data frame."""
        return self._rows().df()

    def close(self) -> None:
        """Closes it, and stops its statement if that still runs."""
        self._forget(closing=True)
        self._closed = True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def _rows(self) -> Result:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self._result is None or not self._result.columns:
            raise ProgrammingError("there are no rows: execute a query first")
        return self._result

    def _forget(self, closing: bool = False) -> None:
        if self._closed and not closing:
            raise InterfaceError("the cursor is closed")
        if self._result is not None:
            self._result.close()
        self._result, self._changed = None, None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def numbered(text: str) -> tuple[str, int]:
    """A statement with `$1`, `$2` and so on in the places of `?`, and how many there are. Texts, quoted names and comments
    stay as they are.

    >>> numbered("select ?, '?', \\"?\\" -- ?\\nfrom t where a = ?")
    ('select $1, \\'?\\', "?" -- ?\\nfrom t where a = $2', 2)
    """
    parts, count, at = [], 0, 0
    while at < len(text):
        end = _end_of_part(text, at)
        part = text[at:end]
        if part == "?":
            count += 1
            part = f"${count}"
        parts.append(part)
        at = end
    return "".join(parts), count


def _end_of_part(text: str, at: int) -> int:
    """The end of what begins there: a text, a quoted name, a comment, or one character."""
    begins = text[at]
    if text.startswith("--", at):
        end = text.find("\n", at)
    elif text.startswith("/*", at):
        return _end_of_comment(text, at)
    elif begins in "'\"":
        escapes = begins == "'" and at > 0 and text[at - 1] in "eE" and not (at > 1 and (text[at - 2].isalnum() or text[at - 2] == "_"))
        return _end_of_quoted(text, at, escapes)
    elif begins == "$":
        name = text[at + 1 :].partition("$")[0]
        if not (name == "" or name.isidentifier()) or at + 1 + len(name) >= len(text):
            return at + 1
        tag = f"${name}$"
        end = text.find(tag, at + len(tag))
        return len(text) if end < 0 else end + len(tag)
    else:
        return at + 1
    return len(text) if end < 0 else end


def _end_of_quoted(text: str, at: int, escapes: bool) -> int:
    quote, at = text[at], at + 1
    while at < len(text):
        if escapes and text[at] == "\\":
            at += 2
        elif text[at] != quote:
            at += 1
        elif text.startswith(quote * 2, at):
            at += 2
        else:
            return at + 1
    return len(text)


def _end_of_comment(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    return len(text)
