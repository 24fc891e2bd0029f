"""Arrays of a database."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from . import _atoll

# Positions from a first to before a last, and whether the dimension stays in the result.
_Range = tuple[int, int, bool]


class Array:
    """An array of a database as it was when it was asked for: `db.array("temperature")`.

    In brackets stand coordinates. `temperature[50:45, :, 2000:2020]` is what lies from one coordinate to the other, *both
    included* and in either order, as in `.loc` of pandas and `.sel` of xarray; a single coordinate takes its dimension away;
    `...` stands for all dimensions that are not named. In the brackets of `positions` stand positions as in NumPy: from 0 on,
    to before the last, from the end if negative, with a step.

    >>> import atoll
    >>> db = atoll.open()
    >>> db.script("create array depth (lat numeric dimension (1.5, 2, 7.25), year dimension [2000:2004], m double)")
    >>> rows = [(lat, year, lat * 10 + year - 2000) for lat in (1.5, 2, 7.25) for year in range(2000, 2005)]
    >>> db.executemany("insert into depth values ($1, $2, $3)", rows)
    15
    >>> depth = db.array("depth")
    >>> depth.dims, depth.shape, depth.dtype
    (('lat', 'year'), (3, 5), dtype('float64'))
    >>> depth[2, 2001:2003]
    array([21., 22., 23.])
    >>> depth.positions[1, 1:3]
    array([21., 22.])
    """

    def __init__(self, core: _atoll.Array, name: str, attribute: str | None) -> None:
        self._core = core
        self._name = name
        self._types = dict(core.attributes)
        if attribute is not None and attribute not in self._types:
            raise _atoll.ProgrammingError(f"array '{name}' has no attribute '{attribute}'; it has {self._listed()}")
        if attribute is None and len(self._types) == 1:
            attribute = next(iter(self._types))
        self._attribute = attribute
        self.positions = Positions(self._at_positions)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def attribute(self) -> str | None:
        """The attribute whose values are read; None if there are several and none was chosen."""
        return self._attribute

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes."""
        return tuple(self._types)

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(name for name, _ in self._core.dimensions)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each dimension has."""
        return tuple(length for _, length in self._core.dimensions)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self._core.dimensions)

    @property
    def dtype(self) -> Any:
        """NumPy's type of the values."""
        import numpy

        return numpy.dtype(self._types[self._chosen()])

    @property
    def attrs(self) -> dict[str, Any]:
        """What is said of the array as a whole, such as its title: a text, a number, or a list of them under each name. It
        comes with files of Zarr, HDF5 and NetCDF."""
        return self._said(None)

    @property
    def metadata(self) -> dict[str, dict[str, Any]]:
        """What is said of dimensions and attributes, such as their units, by the names of those of which something is said."""
        parts = {name: self._said(name) for name in (*self.dims, *self._types)}
        return {name: said for name, said in parts.items() if said}

    @property
    def coords(self) -> dict[str, Any]:
        """The coordinates of each dimension as a NumPy array: whole numbers, or the nearest floats of what was written."""
        return {name: self._coordinates(at, 0, length) for at, (name, length) in enumerate(self._core.dimensions)}

    def __getitem__(self, key: Any) -> Any:
        """The values at some coordinates, as a NumPy array, masked where cells are null or do not exist."""
        return self._values(self._ranges(key, self._of_coordinates))

    def _at_positions(self, key: Any) -> Any:
        steps: list[slice] = []

        def ranged(at: int, part: Any) -> _Range:
            length = self.shape[at]
            if isinstance(part, slice):
                start, stop, step = part.indices(length)
                count = len(range(start, stop, step))
                low = min(start, start + (count - 1) * step) if count else 0
                high = max(start, start + (count - 1) * step) + 1 if count else 0
                steps.append(slice(None, None, step))
                return low, high, True
            position = operator.index(part)
            if not -length <= position < length:
                raise IndexError(
                    f"position {position} is not in dimension '{self.dims[at]}' of array '{self._name}', which has {length}"
                )
            return position % length, position % length + 1, False

        values = self._values(self._ranges(key, ranged))
        return values[tuple(steps)] if any(step.step not in (None, 1) for step in steps) else values

    def close(self) -> None:
        """Gives it up; its pages may then be written over."""
        self._core.close()

    def to_numpy(self) -> Any:
        """All values."""
        return self[...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        values = self[...]
        return values if dtype is None else values.astype(dtype)

    def to_xarray(self) -> Any:
        """All of it with its coordinates: an `xarray.DataArray` of the chosen attribute, or else an `xarray.Dataset` of all.
        Where cells are null or do not exist stands NaN."""
        import numpy
        import xarray

        def filled(values: Any) -> Any:
            if not isinstance(values, numpy.ma.MaskedArray):
                return values
            kind = values.dtype if values.dtype.kind == "f" else numpy.dtype("float64")
            floats: Any = values.astype(kind)
            return floats.filled(numpy.nan)

        def data(name: str) -> Any:
            return filled(Array(self._core, self._name, name)[...])

        coords = {name: (name, values, self._said(name)) for name, values in self.coords.items()}
        if self._attribute is not None:
            values, attrs = data(self._attribute), self._said(self._attribute)
            return xarray.DataArray(values, coords=coords, dims=self.dims, name=self._name, attrs=attrs)
        variables = {name: (self.dims, data(name), self._said(name)) for name in self._types}
        return xarray.Dataset(variables, coords=coords, attrs=self.attrs)

    def __repr__(self) -> str:
        dimensions = ", ".join(f"{name}: {length}" for name, length in self._core.dimensions)
        attributes = ", ".join(f"{name} {kind}" for name, kind in self._types.items())
        return f"array {self._name} [{dimensions}] of {attributes}"

    def _said(self, part: str | None) -> dict[str, Any]:
        return {name: values[0] if len(values) == 1 else values for name, values in self._core.said(part)}

    def _values(self, ranges: list[_Range]) -> Any:
        import numpy

        chosen = self._chosen()
        number = list(self._types).index(chosen)
        kept = tuple(end - start for start, end, stays in ranges if stays)
        raw, flags = self._core.read(number, [(start, end) for start, end, _ in ranges])
        values: Any = numpy.frombuffer(raw, self._types[chosen]).reshape(kept)
        if flags is not None:
            there = numpy.frombuffer(flags, numpy.uint8).reshape(kept)
            if not there.all():
                values = numpy.ma.masked_array(values, there == 0)
        return values[()] if not kept else values

    def _ranges(self, key: Any, ranged: Callable[[int, Any], _Range]) -> list[_Range]:
        parts = list(key) if isinstance(key, tuple) else [key]
        named = sum(part is not Ellipsis for part in parts)
        if named > self.ndim or len(parts) - named > 1:
            raise IndexError(
                f"array '{self._name}' has {self.ndim} dimensions ({', '.join(self.dims)}), and {named} parts are given"
            )
        if len(parts) == named:
            parts.append(Ellipsis)
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (self.ndim - named)
        return [ranged(at, part) for at, part in enumerate(parts)]

    def _of_coordinates(self, at: int, part: Any) -> _Range:
        if not isinstance(part, slice):
            position = self._core.position(at, _written(part))
            return position, position + 1, False
        if part.step is not None:
            raise IndexError("coordinates are taken without a step: use .positions, or a step on the result")
        bounds = [None if bound is None else _written(bound) for bound in (part.start, part.stop)]
        start, end = self._core.between(at, *bounds)
        return start, end, True

    def _coordinates(self, at: int, start: int, end: int) -> Any:
        import numpy

        texts, whole = self._core.coordinates(at, start, end)
        return numpy.array([int(text) if whole else float(text) for text in texts], numpy.int64 if whole else numpy.float64)

    def _chosen(self) -> str:
        if self._attribute is None:
            raise _atoll.ProgrammingError(
                f"array '{self._name}' has several attributes: {self._listed()}; choose one, db.array(name, attribute)"
            )
        return self._attribute

    def _listed(self) -> str:
        return ", ".join(f"'{name}'" for name in self._types)


class Positions:
    """The values of an array by positions, as NumPy counts them."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __getitem__(self, key: Any) -> Any:
        return self._read(key)


def _written(coordinate: Any) -> str:
    """A coordinate as it is written: floats with the fewest digits that give them back."""
    if isinstance(coordinate, str):
        return coordinate
    if isinstance(coordinate, Decimal):
        return format(coordinate, "f")
    try:
        return str(operator.index(coordinate))
    except TypeError:
        return format(Decimal(str(coordinate)), "f")
