"""Databases and their transactions."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _atoll, _frames, _progress
from ._array import Array
from ._graph import Graph
from ._result import Result
from ._table import Table

# An insert of a row of parameters and nothing else: many rows of them can be read from one table.
_INSERT = re.compile(
    r"\s*(insert\s+into\s[^()'$;]+?(?:\([^()'$;]*\)\s*)?)\bvalues\s*\(\s*(\$\d+(?:\s*,\s*\$\d+)*)\s*\)\s*;?\s*", re.IGNORECASE
)
# What that table is called.
_PARAMETERS = "the parameters"

_open: weakref.WeakSet[Database] = weakref.WeakSet()


def open(
    path: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
) -> Database:
    """Opens the store `path`, or creates it.

    Without a path, or with ":memory:", the database lies in a temporary folder, which goes when it is closed. `threads` is the number of
    workers, by default one for each cpu; `memory_limit` is in bytes, by default three quarters of the memory.

    Raises `OperationalError` if the file is no store, is damaged, or is written by another process.
    """
    return Database(path, read_only, threads=threads, memory_limit=memory_limit)


class _Session:
    """The session of a thread; it ends with the thread."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.query, self.script, self.missing = core.query, core.script, core.missing
        self.each, self.at_once, self.laq = core.each, core.at_once, core.laq
        self.interrupt, self.close = core.interrupt, core.close

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction of several statements is in progress."""
        return bool(self._core.in_transaction)


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
        if path is None or path == ":memory:":
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
        self._results: weakref.WeakSet[Any] = weakref.WeakSet()
        self._local = threading.local()
        _open.add(self)

    def sql(
        self,
        text: str,
        parameters: Sequence[Any] | None = None,
        *,
        tables: Mapping[str, Any] | None = None,
    ) -> Result:
        """Runs one statement, whose parameters are `$1`, `$2`, ..., and returns its rows as they come.

        A name that no table, view or array has may be that of a data frame: one of `tables`, or else a variable of the
        caller, local before global. Statements read frames and do not write to them; nothing of them is copied.

        >>> import atoll, numpy
        >>> db = atoll.open()
        >>> fish = {"name": numpy.array(["blenny", "wrasse"]), "length": numpy.array([0.1, 0.4])}
        >>> db.sql("select name from fish where length > $1", [0.2]).fetchall()
        [('wrasse',)]
        >>> db.sql("select count(*) from f", tables={"f": fish}).fetchone()
        (2,)

        Ctrl-C stops it. Raises `ProgrammingError` for wrong SQL, and the other errors of this package.
        """
        return self._sql(text, parameters, tables, 2)

    def _query(self, text: str, tables: Mapping[str, Any] | None = None) -> Result:
        """Runs a statement of this package's own, in which no variable of anybody is meant."""
        with _progress.waiting("the query") as tell:
            result = Result(self._session().query(text, None, list((tables or {}).items()), tell))
        self._results.add(result)
        return result

    def _sql(
        self,
        text: str,
        parameters: Sequence[Any] | None,
        tables: Mapping[str, Any] | None,
        depth: int,
    ) -> Result:
        values = None if parameters is None else list(parameters)
        session = self._session()
        frames: dict[str, Any] = {}
        variables = _frames.Variables(text, depth)
        if tables or variables.any():
            missing = session.missing(text)
            frames = _frames.explicit(tables or {}, missing, text)
            frames.update(variables.frames([name for name in missing if name not in frames]))
        try:
            with _progress.waiting("the query") as tell:
                result = Result(session.query(text, values, list(frames.items()), tell))
        except _atoll.ProgrammingError as error:
            raise variables.explained(error) from None
        self._results.add(result)
        return result

    def laq(self, text: str) -> Result:
        """Runs a program in LAQ, in which a query is linear algebra on the tables, and returns its rows.

        >>> import atoll
        >>> db = atoll.open()
        >>> db.script("create table fish (name varchar, length double)")
        >>> _ = db.executemany("insert into fish values ($1, $2)", [("blenny", 0.1), ("wrasse", 0.4), ("wrasse", 0.3)])
        >>> db.laq("return(fish.name, sum(krao(filter(fish.length > 0.2), fish.name, fish.length)) as length)").fetchall()
        [('wrasse', 0.7)]

        Ctrl-C stops it. Raises `ProgrammingError`, with the line and column, for a text that is no program or whose matrices
        do not fit each other.
        """
        return self._laq(text, False, False)

    def explain_laq(self, text: str, analyze: bool = False) -> str:
        """The matrices of a program in LAQ with their shapes, and its pipelines; with `analyze`, how running it went."""
        return "\n".join(row[0] for row in self._laq(text, not analyze, analyze).fetchall())

    def _laq(self, text: str, explain: bool, analyze: bool) -> Result:
        with _progress.waiting("the program") as tell:
            result = Result(self._session().laq(text, explain, analyze, tell))
        self._results.add(result)
        return result

    def executemany(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs one statement with each of `rows` for its parameters, in one transaction: all are done, or none.

        Returns how many rows were written. Rows of `insert into table [(columns)] values ($1, $2, ...)` are appended at
        once, which is much faster than one after the other.

        >>> import atoll
        >>> db = atoll.open()
        >>> _ = db.sql("create table fish (name varchar, length double)")
        >>> db.executemany("insert into fish values ($1, $2)", [("blenny", 0.1), ("wrasse", None)])
        2
        """
        values = [list(row) for row in rows]
        if not values:
            return 0
        session = self._session()
        with contextlib.nullcontext() if session.in_transaction else self.transaction():
            return executed_many(session, text, values)

    def table(self, name: str) -> Table:
        """A table or a view, by its name as it is: `db.table("fish").append(frame)`, `len(db.table("fish"))`. `db.table("sea.fish")`
        is the one in the schema `sea`, unless a table has that name.

        Raises `ProgrammingError` if there is none.
        """
        return Table(self, name)

    def array(self, name: str, attribute: str | None = None) -> Array:
        """An array as the last commit left it, or a version of one ("depth@monday"), to be read like one of NumPy.

        `attribute` is which values are read; that is only needed where there are several. What a transaction in progress has
        changed is not seen. Raises `ProgrammingError` if there is none of that name.
        """
        array = Array(self._core.array(name), name, attribute)
        self._results.add(array)
        return array

    def graph(self, name: str) -> Graph:
        """A graph, by its name: `db.graph("web").bfs(42)`. Raises `ProgrammingError` if there is none."""
        return Graph(self, name)

    def import_(
        self,
        table: str,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        schema: str | None = None,
        primary_key: Sequence[str] = (),
        declare_keys: bool = False,
        foreign_keys: Sequence[tuple[Sequence[str], str, Sequence[str]]] = (),
        format: str | None = None,
        delimiter: str | None = None,
        quote: str | None = None,
        escape: str | None = None,
        header: bool | None = None,
        null: Sequence[str] = (),
        compression: str | None = None,
        hive: bool | None = None,
        append: bool = False,
        replace: bool = False,
        progress: bool | Callable[[int, float | None], Any] | None = None,
    ) -> int:
        """Loads files into a table, as `atoll import` does, in one transaction, and returns how many rows there were.

        `files` are paths or patterns such as "data/*.csv.gz". The table is made if it is not there; one with rows is
        refused unless `append` or `replace` says what becomes of them. What files are and which types their columns have is
        found out unless options say it: `schema` is a `create table` or its list of columns; a foreign key is its columns,
        the table that they refer to, and its columns; `quote=""` means that there are no quotes.

        `progress` is a function of the rows so far and of the share that is done (None if unknown), or whether there is a
        bar; by default there is one in terminals and notebooks.

        Ctrl-C stops it, and nothing of it is kept. Raises `DataError` for a file that cannot be read or does not fit, with
        its line.
        """
        if self._session().in_transaction:
            raise _atoll.InterfaceError("import_ is a transaction of its own: commit the one in progress first")
        given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        options: _atoll._LoadOptions = {
            "schema": schema,
            "primary_key": [primary_key] if isinstance(primary_key, str) else list(primary_key),
            "declare_keys": declare_keys,
            "foreign_keys": [(list(columns), parent, list(of)) for columns, parent, of in foreign_keys],
            "format": format,
            "delimiter": delimiter,
            "quote": quote,
            "escape": escape,
            "header": header,
            "null": [null] if isinstance(null, str) else list(null),
            "compression": compression,
            "hive": hive,
            "append": append,
            "replace": replace,
        }
        tell = _progress.of(progress, table)
        try:
            rows, _, _ = self._core.load(table, [os.fspath(file) for file in given], options, tell)
        finally:
            if isinstance(tell, _progress.Bar):
                tell.close()
        return int(rows)

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

    def explain(self, text: str, analyze: bool = False, *, tables: Mapping[str, Any] | None = None) -> str:
        """What the database would do for a query; with `analyze`, what it did, and for how long."""
        how = "explain analyze " if analyze else "explain "
        return "\n".join(row[0] for row in self._sql(how + text, None, tables, 2).fetchall())

    def tables(self) -> dict[str, int]:
        """The tables by name, with their rows."""
        return dict(self._core.tables())

    def arrays(self) -> list[str]:
        """The names of the arrays."""
        return list(self._core.arrays())

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

    def _new_session(self) -> Any:
        """A session beside those of the threads: for the modules of this package."""
        session = _Session(self._core.session())
        self._sessions.add(session)
        return session

    def _session(self) -> Any:
        session = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = self._new_session()
        return session

    def _remove(self) -> None:
        if self._folder is not None and os.getpid() == self._process:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def executed_many(session: Any, text: str, rows: list[list[Any]]) -> int:
    """Runs a statement with each of `rows`, of which there is one at least, and returns how many rows were written."""
    bulk = _bulk(text, len(rows[0]))
    written = None if bulk is None else session.at_once(bulk, _PARAMETERS, rows)
    return int(session.each(text, rows) if written is None else written)


def _bulk(text: str, width: int) -> str | None:
    """The statement that inserts all rows of parameters from one table; None if `text` is no plain insert of one row."""
    insert = _INSERT.fullmatch(text)
    if insert is None:
        return None
    numbers = [int(number.strip()[1:]) for number in insert[2].split(",")]
    if set(numbers) != set(range(1, width + 1)):
        return None
    columns = ", ".join(f'"{number}"' for number in numbers)
    return f'{insert[1]}\nselect {columns} from "{_PARAMETERS}"'


@atexit.register
def _close_all() -> None:
    for database in list(_open):
        with contextlib.suppress(_atoll.Error):
            database.close()
