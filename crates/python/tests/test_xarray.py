"""Stores as datasets of xarray."""

import numpy
import pytest
import xarray

import atoll
from atoll._xarray import AtollBackendEntrypoint


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "reef.atoll")
    with atoll.open(path, threads=2) as db:
        db.script("create array depth (lat numeric dimension (50.5, 50.25, 50), year dimension [2000:2024], m double, n bigint)")
        rows = [(lat, year, lat * (year - 2000), year) for lat in (50.5, 50.25, 50.0) for year in range(2000, 2025)]
        db.executemany("insert into depth values ($1, $2, $3, $4)", rows)
    return path


def test_a_store_is_opened_and_read_where_it_is_asked(store):
    with xarray.open_dataset(store, engine=AtollBackendEntrypoint) as reef:
        assert reef.sizes == {"lat": 3, "year": 25} and set(reef.data_vars) == {"m", "n"}
        assert reef["m"].dtype == numpy.float64 and reef["n"].dtype == numpy.int64
        assert not reef["m"].variable._in_memory
        assert reef["m"].sel(lat=50.25, year=slice(2001, 2003)).values.tolist() == [50.25, 100.5, 150.75]
        assert reef["n"].isel(lat=-1, year=[0, 7, 3]).values.tolist() == [2000, 2007, 2003]
        assert reef["n"].isel(year=slice(None, None, -12)).values[0].tolist() == [2024, 2012, 2000]
        assert float(reef["m"].sum()) == sum(lat * year for lat in (50.5, 50.25, 50.0) for year in range(25))
        assert reef["lat"].values.tolist() == [50.5, 50.25, 50.0]
    with xarray.open_dataset(store, engine=AtollBackendEntrypoint, drop_variables="n") as reef:
        assert set(reef.data_vars) == {"m"}
    with atoll.open(store) as db:
        assert db.arrays() == ["depth"], "it was closed"


def test_it_is_found_by_its_name(store):
    with xarray.open_dataset(store, engine="atoll") as reef:
        assert float(reef["m"][0, 2]) == 101.0
    with xarray.open_dataset(store) as reef:
        assert reef.attrs == {"array": "depth"}, "and by the name of the file"


def test_cells_that_are_not_there(store):
    with atoll.open(store) as db:
        db.sql("update depth set m = null, n = null where lat = 50 and year = 2000")
    with xarray.open_dataset(store, engine=AtollBackendEntrypoint) as reef:
        assert numpy.isnan(reef["m"].sel(lat=50, year=2000)) and reef["n"].sel(lat=50.5).dtype == numpy.int64
        with pytest.raises(atoll.DataError, match="missing='nan'"):
            reef["n"].load()
    with xarray.open_dataset(store, engine=AtollBackendEntrypoint, missing="nan") as reef:
        assert reef["n"].dtype == numpy.float64 and int(numpy.isnan(reef["n"]).sum()) == 1


def test_several_arrays_and_none(store, tmp_path):
    with atoll.open(store) as db:
        db.script("create array other (x dimension [0:1], v double)")
    with pytest.raises(atoll.ProgrammingError, match="has the arrays depth, other: choose one"):
        xarray.open_dataset(store, engine=AtollBackendEntrypoint)
    with xarray.open_dataset(store, engine=AtollBackendEntrypoint, array="other") as other:
        assert list(other.dims) == ["x"]
    with pytest.raises(atoll.ProgrammingError):
        xarray.open_dataset(store, engine=AtollBackendEntrypoint, array="third")
    with pytest.raises(FileNotFoundError):
        xarray.open_dataset(str(tmp_path / "none.atoll"), engine=AtollBackendEntrypoint)
    with pytest.raises(ValueError, match="missing="):
        xarray.open_dataset(store, engine=AtollBackendEntrypoint, missing="zero")
    empty = str(tmp_path / "empty.atoll")
    atoll.open(empty).close()
    with pytest.raises(atoll.ProgrammingError, match="has no arrays"):
        xarray.open_dataset(empty, engine=AtollBackendEntrypoint)
    assert AtollBackendEntrypoint().guess_can_open("a.atoll") and not AtollBackendEntrypoint().guess_can_open("a.nc")
