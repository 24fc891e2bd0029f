"""Makes the folders and files beside this one. Needs zarr 3.4 and numpy 2: python make.py

Every array has the shape (5, 4), and in cell (y, x) the value 4 * y + x, but for the cells of rows 0 and 1 and columns
2 and 3, which were never written and have the fill value.
"""

import os
import shutil

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

HERE = os.path.dirname(os.path.abspath(__file__))


def fill(array):
    values = np.arange(20).reshape(5, 4)
    array[2:, :] = values[2:, :].astype(array.dtype)
    array[:2, :2] = values[:2, :2].astype(array.dtype)


def make(name, **options):
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    array = zarr.create_array(store=path, shape=(5, 4), chunks=(2, 2), **options)
    fill(array)


def key(name, separator):
    return {"name": name, "separator": separator}


make("v2-gzip", zarr_format=2, dtype="<i2", compressors=numcodecs.GZip(5), fill_value=7, order="C",
     attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})
make("v2-f-big", zarr_format=2, dtype=">f4", compressors=numcodecs.Zstd(3), fill_value=float("nan"), order="F",
     chunk_key_encoding=key("v2", "/"))
make("v2-zlib-null", zarr_format=2, dtype="|u1", compressors=numcodecs.Zlib(1), fill_value=None)
make("v2-blosc", zarr_format=2, dtype="<f8", compressors=numcodecs.Blosc(), fill_value=0)
make("v3-zstd", zarr_format=3, dtype="float64", compressors=ZstdCodec(level=3), fill_value=float("-inf"),
     dimension_names=["y", "x"])
make("v3-turned", zarr_format=3, dtype="int32", filters=[TransposeCodec(order=(1, 0))],
     serializer=BytesCodec(endian="big"), compressors=[GzipCodec(level=1), Crc32cCodec()], fill_value=-1,
     chunk_key_encoding=key("default", "."))
make("v3-plain", zarr_format=3, dtype="uint64", compressors=None, fill_value=2**64 - 1,
     chunk_key_encoding=key("v2", "."))
make("v3-shards", zarr_format=3, dtype="float32", shards=(4, 4), compressors=None, fill_value=0)

# Groups as xarray writes data sets: a packed variable, its coordinates, and another of other dimensions.
for version in (2, 3):
    path = os.path.join(HERE, f"v{version}-group")
    shutil.rmtree(path, ignore_errors=True)
    group = zarr.open_group(path, mode="w", zarr_format=version)
    fill_value = {"fill_value": -1} if version == 2 else {"fill_value": 0}
    names = lambda *of: {"attributes": {"_ARRAY_DIMENSIONS": list(of)}} if version == 2 else {"dimension_names": of}
    made = group.create_array("t", shape=(2, 3), chunks=(1, 3), dtype="<i2", compressors=None, **fill_value, **names("time", "x"))
    made[:] = np.array([[0, 10, -1], [20, 30, 40]])
    made.attrs.update({"scale_factor": 0.5, "add_offset": 100.0, "coordinates": "where"})
    if version == 3:
        made.attrs.update({"_FillValue": -1})
    made = group.create_array("time", shape=(2,), chunks=(2,), dtype="<i8", compressors=None, fill_value=None if version == 2 else 0, **names("time"))
    made[:] = [24, 30]
    made.attrs.update({"units": "hours since 2024-01-01", "calendar": "proleptic_gregorian"})
    made = group.create_array("x", shape=(3,), chunks=(3,), dtype="<f8", compressors=None, fill_value=float("nan"), **names("x"))
    made[:] = [0.5, 1.5, 2.5]
    made = group.create_array("where", shape=(3,), chunks=(3,), dtype="<f4", compressors=None, fill_value=0, **names("x"))
    made[:] = [7, 8, 9]

numbers = (np.arange(2003, dtype="<u4") ** 2) % 997
for name, codec, shuffle, block in [("blosclz", "blosclz", 1, 4096), ("lz4", "lz4", 1, 4096), ("zlib-plain", "zlib", 0, 0),
                                    ("zstd", "zstd", 1, 0), ("zstd-bits", "zstd", 2, 2048)]:
    packed = numcodecs.Blosc(cname=codec, clevel=5, shuffle=shuffle, blocksize=block).encode(numbers)
    with open(os.path.join(HERE, "blosc", name), "wb") as file:
        file.write(packed)

values = np.arange(20).reshape(5, 4)
np.save(os.path.join(HERE, "rows.npy"), values.astype("<i8"))
np.save(os.path.join(HERE, "columns.npy"), np.asfortranarray(values.astype(">f4")))
np.savez(os.path.join(HERE, "two.npz"), first=values.astype("<u2"), second=values > 3)
np.savez_compressed(os.path.join(HERE, "packed.npz"), only=values)
