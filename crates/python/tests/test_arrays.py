"""Arrays, graphs and machines."""

import json
import os
import subprocess
import sys
from decimal import Decimal

import numpy
import pytest
import xarray

import atoll
from atoll import _program
from atoll._xarray import AtollBackendEntrypoint


@pytest.fixture
def db():
    with atoll.open(threads=2, memory_limit=512 << 20) as db:
        db.script(
            """create array temperature (lat numeric dimension (2.5, 1.25, -7), station dimension [0:1], year dimension [1990:2024], celsius double, certain boolean);
            insert into temperature
                select lat, station, year, lat * 1000 + station * 100 + (year - 1990), year % 2 = 0
                from (select 2.5 as lat union all select 1.25 union all select -7) a, generate_series(0, 1) b(station), generate_series(1990, 2024) c(year)"""
        )
        yield db


def expected():
    lat = numpy.array([2.5, 1.25, -7])[:, None, None]
    station, year = numpy.arange(2)[None, :, None], numpy.arange(35)[None, None, :]
    return lat * 1000 + station * 100 + year


def test_what_it_is(db):
    array = db.array("temperature", "celsius")
    assert array.dims == ("lat", "station", "year") and array.shape == (3, 2, 35) and array.ndim == 3
    assert array.attributes == ("celsius", "certain") and array.attribute == "celsius"
    assert array.dtype == numpy.float64 and db.array("temperature", "certain").dtype == numpy.bool_
    assert array.coords["lat"].tolist() == [2.5, 1.25, -7] and array.coords["year"].tolist() == list(range(1990, 2025))
    assert repr(array) == "array temperature [lat: 3, station: 2, year: 35] of celsius float64, certain bool"


def test_coordinates(db):
    array, all_of_it = db.array("temperature", "celsius"), expected()
    numpy.testing.assert_array_equal(array[...], all_of_it)
    numpy.testing.assert_array_equal(array.to_numpy(), all_of_it)
    numpy.testing.assert_array_equal(numpy.asarray(array), all_of_it)
    numpy.testing.assert_array_equal(array[2.5:1.25, :, 2000:2020], all_of_it[0:2, :, 10:31])
    numpy.testing.assert_array_equal(array[1.25:2.5], all_of_it[0:2], "in either order")
    numpy.testing.assert_array_equal(array[Decimal("-7"), 1], all_of_it[2, 1])
    numpy.testing.assert_array_equal(array["-7", ..., 2024], all_of_it[2, :, 34])
    numpy.testing.assert_array_equal(array[..., numpy.int64(1990) : numpy.float64(1991)], all_of_it[..., 0:2])
    assert array[1.25, 0, 1990] == 1250.0
    numpy.testing.assert_array_equal(db.array("temperature", "certain")[2.5, 0, 2000:2003], [True, False, True, False])


def test_positions(db):
    at, all_of_it = db.array("temperature", "celsius").positions, expected()
    for key in [
        (slice(0, 2), slice(None), slice(10, 20)),
        (-1, 1),
        (..., -1),
        (slice(None, None, -1), 0, slice(3, 30, 7)),
        (slice(None), 0, slice(30, 3, -4)),
        (slice(2, 2),),
        (slice(5, 9), 0),
        (1, 1, 1),
        (),
    ]:
        numpy.testing.assert_array_equal(at[key], all_of_it[key], str(key))


def test_errors_name_array_and_dimension(db):
    array = db.array("temperature", "celsius")
    with pytest.raises(IndexError, match="array 'temperature'.*1989.*'year'"):
        array[..., 1989:2000]
    with pytest.raises(IndexError, match="'lat'"):
        array[2]
    with pytest.raises(IndexError, match="has 3 dimensions .* and 4 parts"):
        array[1, 2, 3, 4]
    with pytest.raises(IndexError, match="position 3 is not in dimension 'lat'"):
        array.positions[3]
    with pytest.raises(IndexError, match="without a step"):
        array[..., 1990:2000:2]
    with pytest.raises(atoll.ProgrammingError, match="there is no array 'nothing'"):
        db.array("nothing")
    with pytest.raises(atoll.ProgrammingError, match="no attribute 'x'; it has 'celsius', 'certain'"):
        db.array("temperature", "x")
    with pytest.raises(atoll.ProgrammingError, match="several attributes"):
        db.array("temperature")[...]


def test_nulls_and_cells_that_are_not_there_are_masked(db):
    db.script(
        """create array few (x dimension [0:9], v integer) sparse; insert into few values (2, 20), (5, 50);
        create array some (x dimension [0:3], v double); insert into some values (0, 1), (1, null), (2, 3), (3, 4)"""
    )
    few = db.array("few")[...]
    assert few.mask.tolist() == [x not in (2, 5) for x in range(10)] and few.compressed().tolist() == [20, 50]
    assert db.array("some")[...].mask.tolist() == [False, True, False, False]
    assert numpy.isnan(db.array("some").to_xarray().values).tolist() == [False, True, False, False]
    assert not isinstance(db.array("some")[2:3], numpy.ma.MaskedArray)


def test_an_array_stays_as_it_was(db):
    array = db.array("temperature", "celsius")
    db.sql("update temperature set celsius = 0")
    assert array[2.5, 0, 1991] == 2501.0 and db.array("temperature", "celsius")[2.5, 0, 1991] == 0.0
    array.close()
    with pytest.raises(atoll.InterfaceError, match="the array is closed"):
        array[...]


def test_xarray(db):
    data = db.array("temperature", "celsius").to_xarray()
    assert isinstance(data, xarray.DataArray) and data.dims == ("lat", "station", "year") and data.name == "temperature"
    assert data.sel(lat=-7, station=1, year=2000).item() == -6890.0
    both = db.array("temperature").to_xarray()
    assert isinstance(both, xarray.Dataset) and list(both) == ["celsius", "certain"]


def zarr_of_a_sea(folder):
    """A group of Zarr as xarray writes it: heat over time and x, with what is said of all of them."""

    def write(name, data):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())

    def array(name, shape, kind, said, values):
        layout = {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": kind, "compressor": None, "fill_value": None, "order": "C", "filters": None}
        write(f"{name}/.zarray", layout)
        write(f"{name}/.zattrs", said)
        write(f"{name}/{'.'.join('0' for _ in shape)}", numpy.array(values, kind).tobytes())

    write(".zgroup", {"zarr_format": 2})
    write(".zattrs", {"title": "A sea", "edition": 3})
    said = {"_ARRAY_DIMENSIONS": ["time", "x"], "units": "K", "flags": [1, 2.5], "long_name": "heat of the säa"}
    array("heat", [3, 2], "<f8", said, [[1, 2], [3, 4], [5, 6]])
    said = {"_ARRAY_DIMENSIONS": ["time"], "units": "hours since 2000-01-01", "calendar": "proleptic_gregorian"}
    array("time", [3], "<i8", said, [0, 6, 12])
    return folder


def test_what_is_said_of_arrays(tmp_path):
    store, folder = str(tmp_path / "sea.atoll"), zarr_of_a_sea(tmp_path / "sea.zarr")
    start = [sys.executable, os.path.abspath(_program.__file__)]
    ran = subprocess.run([*start, "import", store, "sea", str(folder)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran
    of_heat = {"units": "K", "flags": [1, 2.5], "long_name": "heat of the säa"}
    of_time = {"units": "hours since 2000-01-01", "calendar": "proleptic_gregorian"}
    with atoll.open(store, threads=2) as db:
        sea = db.array("sea")
        assert sea.attrs == {"title": "A sea", "edition": 3}
        assert sea.metadata == {"time": of_time, "heat": of_heat}
        data = sea.to_xarray()
        assert data.attrs == of_heat and data.coords["time"].attrs == of_time
        assert xarray.decode_cf(data.to_dataset())["time"].values[1] == numpy.datetime64("2000-01-01T06:00")
        db.script("create array plain (x dimension [0:1], v double)")
        assert db.array("plain").attrs == {} and db.array("plain").metadata == {}
    with xarray.open_dataset(store, engine=AtollBackendEntrypoint, array="sea") as opened:
        assert opened.attrs == {"title": "A sea", "edition": 3, "array": "sea"}
        assert opened["heat"].attrs == of_heat and opened["time"].attrs == of_time


def test_closing_the_database_closes_arrays():
    with atoll.open(threads=2, memory_limit=512 << 20) as db:
        db.script("create array a (x dimension [0:3], v double); insert into a values (1, 5)")
        array = db.array("a")
    with pytest.raises(atoll.InterfaceError):
        array[...]


def test_topology():
    machine = atoll.topology("2x2")
    assert [node.cpus for node in machine.nodes] == [[0, 1], [2, 3]]
    assert machine.distances[0][0] == 10 and machine.distances[0][1] > 10
    assert "\n" in str(machine) and "<pre>" in machine._repr_html_()
    here = atoll.topology()
    assert here.name == "live" and sum(node.memory_bytes for node in here.nodes) > 0 and here.nodes[0].cpus
    with pytest.raises(atoll.InterfaceError, match="opteron"):
        atoll.topology("opteron")
