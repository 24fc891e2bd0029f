"""Databases and their transactions."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from . import _atoll
from ._result import Result

_open: weakref.WeakSet[Database] = weakref.WeakSet()


def open(
    path: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> Database:
    """Opens the store `path`, or creates it.

    Without a path the database lies in a temporary folder, which goes when it is closed. `threads` is the number of
    workers, by default one for each cpu; `memory_limit` is in bytes, by default three quarters of the memory.

    Raises `OperationalError` if the file is no store, is damaged, or is written by another process.
    """
    return Database(path, read_only, threads=threads, memory_limit=memory_limit)


class _Session:
    """The session of a thread; it ends with the thread."""

    def __init__(self, core: Any) -> None:
        self.query, self.script = core.query, core.script
        self.interrupt, self.close = core.interrupt, core.close


class Database:
    """An open database. Any number of threads may use it: each has a session, and so a transaction, of its own."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        *,
        threads: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self._process = os.getpid()
        self._folder: str | None = None
        if path is None:
            if read_only:
                raise _atoll.InterfaceError("a database in memory is empty: read_only needs a path")
            self._folder = tempfile.mkdtemp(prefix="atoll-")
            path = os.path.join(self._folder, "memory.atoll")
        try:
            self._core = _atoll.Database(os.fspath(path), read_only, threads, memory_limit)
        except BaseException:
            self._remove()
            raise
        self._sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._results: weakref.WeakSet[Result] = weakref.WeakSet()
        self._local = threading.local()
        _open.add(self)

    def sql(self, text: str, parameters: Sequence[Any] | None = None) -> Result:
        """Runs one statement, whose parameters are `$1`, `$2`, ..., and returns its rows as they come.

        Ctrl-C stops it. Raises `ProgrammingError` for wrong SQL, and the other errors of this package.
        """
        values = None if parameters is None else list(parameters)
        result = Result(self._session().query(text, values))
        self._results.add(result)
        return result

    def script(self, text: str) -> None:
        """Runs all statements of `text`, which semicolons separate."""
        self._session().script(text)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Database]:
        """The statements of this thread within `with` are one transaction: kept as a whole, or after an exception not."""
        session = self._session()
        session.script("begin")
        try:
            yield self
        except BaseException:
            session.script("rollback")
            raise
        session.script("commit")

    def explain(self, text: str, analyze: bool = False) -> str:
        """What the database would do for a query; with `analyze`, what it did, and for how long."""
        how = "explain analyze " if analyze else "explain "
        return "\n".join(row[0] for row in self.sql(how + text).fetchall())

    def tables(self) -> dict[str, int]:
        """The tables by name, with their rows."""
        return dict(self._core.tables())

    def interrupt(self) -> None:
        """Stops what runs in this database, in whichever thread: it raises `KeyboardInterrupt` there."""
        for session in list(self._sessions):
            session.interrupt()

    def close(self) -> None:
        """Closes the database. Transactions in progress are rolled back; what was not fetched is gone."""
        if os.getpid() != self._process:
            return
        for some in [*self._results, *self._sessions]:
            some.close()
        self._core.close()
        self._remove()

    def _session(self) -> Any:
        session = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = _Session(self._core.session())
            self._sessions.add(session)
        return session

    def _remove(self) -> None:
        if self._folder is not None and os.getpid() == self._process:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@atexit.register
def _close_all() -> None:
    for database in list(_open):
        with contextlib.suppress(_atoll.Error):
            database.close()
