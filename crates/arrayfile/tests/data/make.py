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

values = np.arange(20).reshape(5, 4)
np.save(os.path.join(HERE, "rows.npy"), values.astype("<i8"))
np.save(os.path.join(HERE, "columns.npy"), np.asfortranarray(values.astype(">f4")))
np.savez(os.path.join(HERE, "two.npz"), first=values.astype("<u2"), second=values > 3)
np.savez_compressed(os.path.join(HERE, "packed.npz"), only=values)
