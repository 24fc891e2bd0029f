"""Arrays of a store as a dataset of xarray: `xarray.open_dataset("reef.atoll", engine="atoll")`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from . import _atoll, _database
from ._array import Array

_MISSING = ("raise", "nan")


class AtollBackendEntrypoint(BackendEntrypoint):
    """Opens a store for reading; of its arrays only the cells that are asked for are read.

    >>> import os, tempfile, xarray, atoll
    >>> path = os.path.join(tempfile.mkdtemp(), "reef.atoll")
    >>> with atoll.open(path) as db:
    ...     db.script("create array depth (lat numeric dimension (1.5, 2, 7.25), year dimension [2000:2004], m double)")
    ...     rows = [(lat, year, lat * 10 + year - 2000) for lat in (1.5, 2, 7.25) for year in range(2000, 2005)]
    ...     _ = db.executemany("insert into depth values ($1, $2, $3)", rows)
    >>> with xarray.open_dataset(path, engine=AtollBackendEntrypoint) as reef:
    ...     reef["m"].sel(lat=2, year=slice(2001, 2003)).values.tolist()
    [21.0, 22.0, 23.0]
    """

    description = "Arrays of Atoll's stores, a file each"
    url = "https://docs.xarray.dev/en/stable/internals/how-to-add-new-backend.html"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "array", "missing")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        array: str | None = None,
        missing: str = "raise",
    ) -> xarray.Dataset:
        """The array `array` of a store, which may be left out where there is one only: a variable for each attribute.

        Floats that are null, and those of cells that do not exist, are NaN. Where whole numbers or truth values are, reading
        them is an error, unless `missing` is "nan": then all of them are floats.
        """
        if missing not in _MISSING:
            raise ValueError(f"missing={missing!r}: there are {' and '.join(map(repr, _MISSING))}")
        path = os.fspath(filename_or_obj)
        if not os.path.exists(path):
            # A store that is opened is made where there is none.
            raise FileNotFoundError(f"there is no store {path}")
        database = _database.open(path, read_only=True)
        try:
            opened = database.array(_chosen(database, array, path))
            dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
            said = opened.metadata
            variables = {
                name: (opened.dims, indexing.LazilyIndexedArray(_Values(opened, name, missing == "nan")), said.get(name, {}))
                for name in opened.attributes
                if name not in dropped
            }
            coords = {
                name: (name, values, said.get(name, {})) for name, values in opened.coords.items() if name not in dropped
            }
            dataset = xarray.Dataset(variables, coords=coords, attrs={**opened.attrs, "array": opened.name})
        except BaseException:
            database.close()
            raise
        dataset.set_close(database.close)
        return dataset

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is the path of a file that ends in `.atoll`."""
        return isinstance(filename_or_obj, (str, os.PathLike)) and os.fspath(filename_or_obj).endswith(".atoll")


def _chosen(database: _database.Database, array: str | None, path: str) -> str:
    if array is not None:
        return array
    names = database.arrays()
    if len(names) == 1:
        return names[0]
    there = f"has the arrays {', '.join(names)}: choose one, array={names[0]!r}" if names else "has no arrays"
    raise _atoll.ProgrammingError(f"{path} {there}")


class _Values(BackendArray):
    """An attribute, whose values are read when they are asked for."""

    def __init__(self, array: Array, attribute: str, floats: bool) -> None:
        self._array = Array(array._core, array.name, attribute)
        kind = self._array.dtype
        self.shape = array.shape
        self.dtype = numpy.dtype(numpy.float64) if floats and kind.kind != "f" else kind

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        values: Any = self._array.positions[key]
        if isinstance(values, numpy.ma.MaskedArray):
            if self.dtype.kind != "f":
                raise _atoll.DataError(
                    f"attribute '{self._array.attribute}' of array '{self._array.name}' is null in cells that are read, or"
                    f" they do not exist, and a {self.dtype} cannot say so: open it with missing='nan', as floats"
                )
            floats: Any = values.astype(self.dtype)
            return floats.filled(numpy.nan)
        return numpy.asarray(values, self.dtype)
