"""The rows of a statement."""

from __future__ import annotations

import html
import sys
from typing import TYPE_CHECKING, Any

from . import _progress

if TYPE_CHECKING:
    from . import _atoll

# More rows than there are.
_ALL = sys.maxsize
# Rows that are shown.
_SHOWN = 10


class Result:
    """The rows of a statement, which come when they are asked for.

    `arrow`, `df`, `pl`, `numpy` and the fetching functions keep the rows, so all of them may be called, and again.
    `reader` and other libraries that read this as an Arrow stream take those rows away that have not come yet: for
    results larger than memory.
    """

    def __init__(self, rows: _atoll.Rows) -> None:
        self._rows = rows
        self._next = 0
        # How many rows have come, and whether that is all.
        self._there = (0, False)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._rows.columns]

    @property
    def types(self) -> list[str]:
        """The SQL types of the columns."""
        return [kind for _, kind in self._rows.columns]

    @property
    def changed(self) -> int | None:
        """How many rows the statement has written; None if it writes none."""
        return self._rows.changed

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream; a requested schema is not looked at, as the interface allows."""
        return self._rows.stream()

    def reader(self) -> Any:
        """A `pyarrow.RecordBatchReader`, which hands the rows over as they come."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    def arrow(self) -> Any:
        """All rows as a `pyarrow.Table`."""
        self._fill(_ALL)
        return self.reader().read_all()

    def df(self, **options: Any) -> Any:
        """All rows as a pandas data frame. The options are those of `pyarrow.Table.to_pandas`."""
        return self.arrow().to_pandas(**options)

    def pl(self) -> Any:
        """All rows as a polars data frame."""
        import polars

        self._fill(_ALL)
        return polars.DataFrame(self)

    def numpy(self) -> dict[str, Any]:
        """Each column as a NumPy array, masked where it has NULLs. Decimals become floats."""
        import numpy
        import pyarrow

        columns = {}
        for field, column in zip(self.arrow().schema, self.arrow().columns):
            if pyarrow.types.is_decimal(field.type):
                column = column.cast(pyarrow.float64())
            values = column.to_numpy()
            if column.null_count:
                values = numpy.ma.masked_array(values, column.is_null().to_numpy())
            columns[field.name] = values
        return columns

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most so many."""
        there, _ = self._fill(self._next + size)
        start, self._next = self._next, min(self._next + size, there)
        return self._rows.tuples(start, self._next)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that were not fetched yet."""
        there, _ = self._fill(_ALL)
        start, self._next = self._next, there
        return self._rows.tuples(start, there)

    def show(self, rows: int = _SHOWN) -> None:
        """Prints the first rows."""
        print(self._text(rows))

    def close(self) -> None:
        """Gives up the rows, and stops the statement if it still runs."""
        self._rows.close()

    def _fill(self, rows: int) -> tuple[int, bool]:
        there, whole = self._there
        if not whole and there < rows:
            with _progress.waiting("the rows") as tell:
                self._there = self._rows.fill(rows, tell)
        return self._there

    def _first(self, rows: int) -> tuple[list[tuple[Any, ...]], str]:
        there, whole = self._fill(rows + 1)
        more = "" if whole and there <= rows else "more rows follow"
        return self._rows.tuples(0, min(rows, there)), more

    def _text(self, rows: int) -> str:
        if not self.columns:
            return "done" if self.changed is None else f"{self.changed} rows changed"
        first, more = self._first(rows)
        lines = [self.columns, *([_shown(value) for value in row] for row in first)]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        told = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        told.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*told, more] if more else told)

    def __repr__(self) -> str:
        return self._text(_SHOWN)

    def _repr_html_(self) -> str:
        if not self.columns:
            return f"<p>{html.escape(self._text(0))}</p>"
        first, more = self._first(_SHOWN)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(value))}</td>" for value in row) + "</tr>" for row in first
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return table + (f"<p>{more}</p>" if more else "")


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(value)
