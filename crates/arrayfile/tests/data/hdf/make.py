"""Makes the files beside this one. Needs h5py 3.16, netCDF4 1.7 and numpy 2: python make.py

Cell number i of an array, in row-major order, has the value (7 * i + 3) % 100, but where a comment says otherwise.
"""

import os

import h5py
import netCDF4
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def values(shape, dtype):
    count = int(np.prod(shape, dtype=np.int64))
    return ((7 * np.arange(count) + 3) % 100).reshape(shape).astype(dtype)


def path(name):
    return os.path.join(HERE, name)


with h5py.File(path("types.h5"), "w") as f:
    for kind in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]:
        for order, end in [("<", "little"), (">", "big")]:
            f.create_dataset(f"{end}/{kind}", data=values((3, 5), order + kind))
    f.create_dataset("bool", data=values((3, 5), "i4") % 2 == 0)
    kind = h5py.enum_dtype({"low": 3, "mid": 10, "high": 77}, basetype="u1")
    f.create_dataset("enum", data=values((3, 5), "u1"), dtype=kind)
    f["committed"] = np.dtype(">i2")
    f.create_dataset("of_committed", data=values((3, 5), "i2"), dtype=f["committed"])
    f.create_dataset("half", data=values((3, 5), "f2"))
    f.create_dataset("complex", data=values((3, 5), "c8"))
    f.create_dataset("text", data=["one", "two"])
    f.create_dataset("fixed", data=np.array([b"one", b"two"]))
    f.create_dataset("lists", (2,), dtype=h5py.vlen_dtype("i4"))
    f.create_dataset("arrays", (2,), dtype=np.dtype(("i4", (3,))))
    f.create_dataset("scalar", data=7)
    f.create_dataset("null", data=h5py.Empty("f4"))
    f.create_dataset("none", shape=(0, 4), dtype="f4", maxshape=(None, 4))
    f["same"] = f["bool"]
    f["soft"] = h5py.SoftLink("/bool")
    f["ring/again"] = f["/"]


def layouts(f, old):
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((3, 5))
    made = h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I32BE, space, dcpl=compact)
    h5py.Dataset(made)[...] = values((3, 5), "i4")
    f.create_dataset("contiguous", data=values((7, 5), "i4"))
    f.create_dataset("untouched", shape=(7, 5), dtype="i4", fillvalue=-5)
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_chunk((3, 2))
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    made = h5py.h5d.create(f.id, b"early", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((7, 5)), dcpl=early)
    h5py.Dataset(made)[...] = values((7, 5), "i4")
    for name, more in {
        "plain": {},
        "gzip": {"compression": "gzip"},
        "shuffled": {"compression": "gzip", "shuffle": True},
        "summed": {"fletcher32": True},
        "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf", "shuffle": True},
    }.items():
        f.create_dataset(f"chunks/{name}", data=values((7, 5), ">i4"), chunks=(3, 2), **more)
        if old and name != "all":
            continue
        f.create_dataset(f"grows/{name}", data=values((7, 5), "i4"), chunks=(3, 2), maxshape=(7, None), **more)
        f.create_dataset(f"both/{name}", data=values((7, 5), "i4"), chunks=(3, 2), maxshape=(None, None), **more)
        f.create_dataset(f"one/{name}", data=values((7, 5), "i4"), chunks=(7, 5), **more)
    # Only rows 3 to 5 and columns 2 and 3 were written; elsewhere is -1.
    for name, most in [("holes", None), ("growing_holes", (None, 5)), ("both_holes", (None, None))]:
        part = f.create_dataset(name, shape=(7, 5), dtype="i4", chunks=(3, 2), fillvalue=-1, maxshape=most)
        part[3:6, 2:4] = values((7, 5), "i4")[3:6, 2:4]
    # The fourth row of chunks went when it was made shorter.
    cut = f.create_dataset("shortened", data=values((12, 5), "i4"), chunks=(3, 2), maxshape=(None, 5))
    cut.resize((7, 5))
    attributes = f.create_dataset("described", data=values((7, 5), "i4"))
    for at in range(20):
        attributes.attrs[f"note_{at}"] = "x" * 10
    attributes.attrs["scale_factor"] = 0.5


with h5py.File(path("earliest.h5"), "w", libver="earliest") as f:
    layouts(f, True)
with h5py.File(path("latest.h5"), "w", libver="latest", userblock_size=512) as f:
    layouts(f, False)
with h5py.File(path("v110.h5"), "w", libver=("v110", "v110")) as f:
    # More chunks than an index has in a page.
    f.create_dataset("fixed", data=values((1100,), "u1"), chunks=(1,))
    part = f.create_dataset("fixed_part", shape=(3000,), dtype="u1", chunks=(1,), fillvalue=9)
    part[1500:1510] = values((3000,), "u1")[1500:1510]
    f.create_dataset("growing", data=values((2, 300), "u1"), chunks=(1, 1), maxshape=(2, None))
    grown = f.create_dataset("growing_part", shape=(140000,), dtype="u1", chunks=(1,), maxshape=(None,), fillvalue=9)
    grown[135000:135010] = values((140000,), "u1")[135000:135010]
    f.create_dataset("tree", data=values((12, 12), "u1"), chunks=(1, 1), maxshape=(None, None))
    f.create_dataset("may_grow", data=values((4, 4), "u1"), chunks=(2, 2), maxshape=(9, 9))

with h5py.File(path("scales.h5"), "w") as f:
    f["depth"] = [0.0, 10.0, 25.0]
    f["x"] = np.array([0.1, 0.2, 0.3, 0.4, 0.5], "f4")
    f["depth"].make_scale("depth of water")
    f["x"].make_scale("x")
    for name in ["salt", "warmth"]:
        f[name] = values((3, 5), "f4")
        f[name].dims[0].attach_scale(f["depth"])
        f[name].dims[1].attach_scale(f["x"])
        f[name].dims[1].label = "east"


def weather(file, form):
    text = {"units": "degrees_north"}
    with netCDF4.Dataset(path(file), "w", format=form) as f:
        f.createDimension("time", None)
        f.createDimension("lat", 3)
        f.createDimension("lon", 5)
        f.createDimension("bound", 2)
        time = f.createVariable("time", "i4", ("time",))
        time.units = "hours since 1900-01-01"
        lat = f.createVariable("lat", "f4", ("lat",))
        lat.setncatts(text)
        lat.bounds = "lat_bnds"
        lon = f.createVariable("lon", "f8", ("lon",))
        f.createVariable("lat_bnds", "f4", ("lat", "bound"))[:] = 0
        crs = f.createVariable("crs", "i4")
        crs[...] = 0
        t2m = f.createVariable("t2m", "i2", ("time", "lat", "lon"), fill_value=-32767)
        t2m.scale_factor, t2m.add_offset = 0.5, 200.0
        t2m.grid_mapping = "crs"
        wind = f.createVariable("wind", "f4", ("time", "lat", "lon"))
        wind.missing_value = np.float32(3)
        flags = f.createVariable("flags", "i1", ("time", "lat", "lon"))
        flags.setncattr("_Unsigned", "true")
        time[:] = [10, 16]
        lat[:] = [50.25, 50.0, 49.75]
        lon[:] = [-10.5, -10.0, -9.0, -8.5, 0.0]
        for variable in [t2m, wind, flags]:
            variable.set_auto_maskandscale(False)
        packed = values((2, 3, 5), "i2")
        packed[1, 2, 4] = -32767
        t2m[:] = packed
        wind[:] = values((2, 3, 5), "f4")
        # Those above 50 are negative as they are stored.
        flags[:] = (values((2, 3, 5), "i2") * 2).astype("u1").astype("i1")


weather("weather4.nc", "NETCDF4")
weather("weather1.nc", "NETCDF3_CLASSIC")
weather("weather2.nc", "NETCDF3_64BIT_OFFSET")
weather("weather5.nc", "NETCDF3_64BIT_DATA")

with netCDF4.Dataset(path("groups.nc"), "w") as f:
    for name in ["surface", "deep"]:
        group = f.createGroup(name)
        group.createDimension("x", 4)
        group.createVariable("heat", "f4", ("x",), zlib=True)[:] = values((4,), "f4")
    f["deep"].createVariable("name", str, ("x",))[:] = np.array(["a", "b", "c", "d"], dtype=object)
with netCDF4.Dataset(path("records.nc"), "w", format="NETCDF3_CLASSIC") as f:
    # The only variable with records: they are not filled up.
    f.createDimension("t", None)
    f.createDimension("x", 3)
    f.createVariable("odd", "i1", ("t", "x"))[:] = values((5, 3), "i1")
    f.createDimension("length", 4)
    f.createVariable("name", "S1", ("length",))[:] = list("abcd")
with netCDF4.Dataset(path("unordered.nc"), "w", format="NETCDF3_CLASSIC") as f:
    for name, places in [("up", [3.0, 1.0, 2.0]), ("far", [1e300, 2e300]), ("gap", [1.0, 3.0, -9.0])]:
        f.createDimension(name, len(places))
        variable = f.createVariable(name, "f8", (name,), fill_value=-9.0 if name == "gap" else None)
        variable[:] = places
    f.createVariable("v", "i2", ("up", "far", "gap"))[:] = values((3, 2, 3), "i2")

with h5py.File(path("links.h5"), "w", libver="latest") as f:
    g = f.create_group("g")
    real = g.create_dataset("real", data=np.arange(6, dtype="i4").reshape(2, 3))
    f["soft"] = h5py.SoftLink("/g/real")
    g["near"] = h5py.SoftLink("real")
    f["folder"] = h5py.SoftLink("/g")
    f["hard"] = real
    f["dangling"] = h5py.SoftLink("/nowhere")
    f["ext"] = h5py.ExternalLink("other.h5", "/x")
with h5py.File(path("elsewhere.h5"), "w", libver="latest") as f:
    f["ext"] = h5py.ExternalLink("other.h5", "/x")
