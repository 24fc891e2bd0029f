"""Tables of a database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _atoll, _frames
from ._result import Result

if TYPE_CHECKING:
    from ._database import Database

# What a statement calls the frame that it appends.
_FRAME = "the frame"


class Table:
    """A table of a database, or a view, which is only read.

    Nothing is kept of it here: what is asked for is read then, within the transaction of the thread if there is one.

    >>> import atoll, numpy
    >>> db = atoll.open()
    >>> _ = db.sql("create table fish (name varchar, length double)")
    >>> fish = db.table("fish")
    >>> fish.append({"length": numpy.array([0.1, 0.4]), "name": numpy.array(["blenny", "wrasse"])})
    2
    >>> len(fish), fish.columns, fish.types
    (2, ['name', 'length'], ['varchar', 'double'])
    >>> fish.fetchall()
    [('blenny', 0.1), ('wrasse', 0.4)]
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name
        self._text = _quoted(name)
        try:
            self._rows(0)
        except _atoll.ProgrammingError:
            schema, point, base = name.partition(".")
            if not point:
                raise
            self._text = f"{_quoted(schema)}.{_quoted(base)}"
            self._rows(0)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return self._rows(0).columns

    @property
    def types(self) -> list[str]:
        """The SQL types of its columns."""
        return self._rows(0).types

    @property
    def schema(self) -> Any:
        """Its columns as a `pyarrow.Schema`."""
        return self._rows(0).reader().schema

    def append(self, frame: Any, *, by_position: bool = False) -> int:
        """Appends the rows of a data frame, all or none, and returns how many there were.

        A frame is whatever a statement reads as a table. Its columns go to those of their names, in any order and case;
        columns of the table that it lacks get their default, or NULL. With `by_position` names do not matter, and there
        are as many columns as in the table. Values are converted as `insert` converts them.

        Raises `ProgrammingError` for a column that the table has not, `DataError` for a value that does not fit,
        `IntegrityError` where a constraint would be violated.
        """
        rows = _frames.given(frame, "append takes")
        own = self.columns
        if by_position:
            if len(own) != len(rows.columns):
                raise _atoll.ProgrammingError(
                    f'table "{self._name}" has {len(own)} columns, and the frame has {len(rows.columns)}'
                )
            targets = own
        else:
            targets = [self._column(name, own) for name in rows.columns]
        into = ", ".join(_quoted(name) for name in targets)
        values = ", ".join(_quoted(name) for name in rows.columns)
        text = f"insert into {self._text} ({into}) select {values} from {_quoted(_FRAME)}"
        return self._database._query(text, tables={_FRAME: rows}).changed or 0

    def result(self) -> Result:
        """All rows, as they come."""
        return self._rows(None)

    def arrow(self) -> Any:
        """All rows as a `pyarrow.Table`."""
        return self.result().arrow()

    def df(self, **options: Any) -> Any:
        """All rows as a pandas data frame. The options are those of `pyarrow.Table.to_pandas`."""
        return self.result().df(**options)

    def pl(self) -> Any:
        """All rows as a polars data frame."""
        return self.result().pl()

    def numpy(self) -> dict[str, Any]:
        """Each column as a NumPy array; see `Result.numpy`."""
        return self.result().numpy()

    def reader(self) -> Any:
        """A `pyarrow.RecordBatchReader`, which hands the rows over as they come."""
        return self.result().reader()

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        return self.result().fetchall()

    def show(self, rows: int = 10) -> None:
        """Prints the first rows."""
        self.result().show(rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.result().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        row = self._database._query(f"select count(*) from {self._text}").fetchone()
        return int(row[0]) if row else 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        result = self.result()
        while rows := result.fetchmany(10_000):
            yield from rows

    def __repr__(self) -> str:
        columns = zip(self.columns, self.types)
        return f"{self._name} ({', '.join(f'{name} {kind}' for name, kind in columns)}), {len(self)} rows"

    def _repr_html_(self) -> str:
        return self.result()._repr_html_()

    def _rows(self, limit: int | None) -> Result:
        end = "" if limit is None else f" limit {limit}"
        return self._database._query(f"select * from {self._text}{end}")

    def _column(self, name: str, own: list[str]) -> str:
        if name in own:
            return name
        alike = [column for column in own if column.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        raise _atoll.ProgrammingError(
            f'table "{self._name}" has no column "{name}"; it has {", ".join(own)}. by_position=True does not look at names'
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
