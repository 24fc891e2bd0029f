"""Data frames that statements read by the names of Python's variables."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from . import _atoll
from ._result import Result

_READ = (
    "what is read as a table is a pandas or polars data frame, a pyarrow table, batch or reader, a dict of NumPy arrays, "
    "a result of this package, or anything else with __arrow_c_stream__"
)
# Names as a statement may write them. Quotes may stand around them, and are no part of the variable's name.
_WORDS = re.compile(r"[^\W\d]\w*")

# Names of columns that may stand without quotes, and more.
_NAMED = re.compile(r"\w+")
# What counts rows, whatever their columns.
_COUNTS = re.compile(r"\(\s*\*\s*\)")


def explicit(tables: Mapping[str, Any], names: list[str], text: str) -> dict[str, Any]:
    """The frames that were given, by the names that a statement has for them: some of `names`, or else their own."""
    found = {}
    for name, value in tables.items():
        frame = of(value, text) if _is_frame(value) else None
        if frame is None:
            raise _atoll.InterfaceError(f"tables[{name!r}] is a {_type(value)}: {_READ}")
        meant = name if name in names or name.lower() not in names else name.lower()
        found[meant] = frame
    return found


def given(value: Any, taker: str) -> Any:
    """A value as a frame; an error, which begins with `taker`, if it is none."""
    frame = of(value) if _is_frame(value) else None
    if frame is None:
        raise _atoll.InterfaceError(f"{taker} a data frame, and this is a {_type(value)}: {_READ}")
    return frame


class Variables:
    """The variables of a caller that a statement may mean."""

    def __init__(self, text: str, depth: int) -> None:
        """Those of the function `depth` calls above, and of its module, whose names stand in `text`."""
        self._text = text
        self._named: dict[str, Any] = {}
        try:
            caller = sys._getframe(depth + 1)
        except ValueError:
            # Called by something that is not Python.
            return
        variables, outside = caller.f_locals, caller.f_globals
        for word in dict.fromkeys(_WORDS.findall(text)):
            if word in variables:
                self._named[word] = variables[word]
            elif word in outside:
                self._named[word] = outside[word]

    def any(self) -> bool:
        """Whether one of them may be read as a table."""
        return any(_is_frame(value) for value in self._named.values())

    def frames(self, names: list[str]) -> dict[str, Any]:
        """The frames behind some names of tables, which are in lower case unless the statement quotes them."""
        found = {}
        for name in names:
            word = self._variable(name)
            if word is not None and _is_frame(self._named[word]):
                try:
                    found[name] = of(self._named[word], self._text)
                except Exception as error:
                    kind = _type(self._named[word])
                    text = f"the variable {word}, a {kind}, cannot be read as a table: {error}"
                    raise _atoll.DataError(text) from error
        return found

    def explained(self, error: Exception) -> Exception:
        """The error of a table that is not there, with a word on the variable of that name if there is one."""
        named = re.match(r'relation "(.*?)" does not exist', str(error))
        word = self._variable(named[1]) if named else None
        if word is None or _is_frame(self._named[word]):
            return error
        return type(error)(f"{error}; the variable {word} is a {_type(self._named[word])}: {_READ}")

    def _variable(self, name: str) -> str | None:
        if name in self._named:
            return name
        alike = [word for word in self._named if word.lower() == name]
        return alike[0] if len(alike) == 1 else None


def of(value: Any, text: str | None = None) -> Any:
    """A value as a frame; None if it is none. `text` is the statement that reads it, if there is one."""
    if isinstance(value, _atoll.Frame):
        return value
    if isinstance(value, Result):
        # The rows stay for whoever fetches them.
        value._fill(sys.maxsize)
        return _atoll.Frame(value.__arrow_c_stream__(), True)
    if _library(value) == "polars" and type(value).__name__ == "LazyFrame":
        value = value.collect()
    if _is_arrays(value):
        return _of_arrays(value, text)
    if _library(value) == "pandas" and type(value).__name__ == "DataFrame":
        return _of_pandas(value, text)
    if hasattr(value, "__arrow_c_stream__"):
        return _atoll.Frame(value.__arrow_c_stream__(), _may_be_read_again(value))
    if hasattr(value, "__arrow_c_array__"):
        import pyarrow

        return _atoll.Frame(pyarrow.table(pyarrow.record_batch(value)).__arrow_c_stream__(), True)
    return None


def _of_arrays(arrays: dict[str, Any], text: str | None) -> Any:
    """A dict of NumPy arrays as a frame."""
    first = next(iter(arrays.values()))
    builder = _atoll.FrameBuilder(len(first) if first.ndim else 0)
    for name, array in arrays.items():
        if array.ndim != 1:
            raise ValueError(f"the array {name!r} has {array.ndim} dimensions, and a column has one")
        array = _native(array)
        # Those of other classes, such as masked ones, mean something by it.
        if type(array).__name__ != "ndarray" or not builder.add_array(name, array, (), _may_be_read(name, text)):
            _add(builder, name, array)
    return builder.build()


def _of_pandas(frame: Any, text: str | None) -> Any:
    """A data frame of pandas as a frame: arrays of NumPy and Arrow as they lie there. An index that is more than the
    numbers of the rows is columns, too."""
    pandas = sys.modules["pandas"]
    missing = (pandas.NA, pandas.NaT)
    builder = _atoll.FrameBuilder(len(frame))

    def add(name: str, column: Any) -> None:
        # A type of pandas itself is no type of NumPy.
        if _library(column.dtype) == "numpy":
            column = _native(column.to_numpy())
            if builder.add_array(name, column, missing, _may_be_read(name, text)):
                return
        _add(builder, name, column, from_pandas=True)

    for name, column in frame.items():
        add(str(name), column)
    index = frame.index
    if not isinstance(index, pandas.RangeIndex):
        for at, name in enumerate(index.names):
            add(f"__index_level_{at}__" if name is None else str(name), index.get_level_values(at))
    return builder.build()


def _native(array: Any) -> Any:
    """An array of NumPy in the byte order of this machine, in which all but a few are."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _add(builder: Any, name: str, values: Any, **options: Any) -> None:
    """Adds a column that Arrow has to make, or has made already."""
    import pyarrow

    column = pyarrow.array(values, **options)
    builder.add_stream(pyarrow.table([column], [name]).__arrow_c_stream__())


def _may_be_read(column: str, text: str | None) -> bool:
    """Whether a statement may read a column: it names it, or all of them."""
    if text is None:
        return True
    written = column.replace('"', '""').lower()
    named = written in _NAMED.findall(text.lower()) if _NAMED.fullmatch(written) else written in text.lower()
    # `count(*)` is not meant.
    return named or "*" in _COUNTS.sub("", text)


def _is_frame(value: Any) -> bool:
    if isinstance(value, type):
        return False
    if isinstance(value, _atoll.Frame):
        return True
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return _library(value) != "polars" or type(value).__name__ != "Series"
    return _is_arrays(value) or (
        type(value).__name__ in ("DataFrame", "LazyFrame") and _library(value) in ("pandas", "polars")
    )


def _is_arrays(value: Any) -> bool:
    """Whether it is a dict of NumPy arrays, by name."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(name, str) for name in value)
        and all(_library(array) == "numpy" and hasattr(array, "dtype") for array in value.values())
    )


def _may_be_read_again(value: Any) -> bool:
    """Whether all of it is in memory. Of what is not known to be, the rows are drawn as the statement asks for them."""
    return _library(value) in ("pandas", "polars") or (
        _library(value) == "pyarrow" and type(value).__name__ in ("Table", "RecordBatch", "ChunkedArray", "StructArray")
    )


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _type(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
