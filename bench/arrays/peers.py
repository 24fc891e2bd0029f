"""One peer in a process of its own: a line of the standard input is a query, its answer the seconds and the sum of the bits.

    peers.py NAME DIRECTORY SIDE CHUNKS THREADS

What the queries are says arrays.py. A peer that has no such operator answers `no`.
"""

import functools
import os
import pathlib
import shutil
import sys
import time

NAME, DIRECTORY, SIDE, CHUNKS, THREADS = sys.argv[1:6]
for setting in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLOSC_NTHREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[setting] = THREADS
DIRECTORY, SIDE, THREADS = pathlib.Path(DIRECTORY), int(SIDE), int(THREADS)
CHUNKS = tuple(int(length) for length in CHUNKS.split(","))
CUT = SIDE - SIDE // 8

import numpy  # noqa: E402, after the settings


def raw():
    return numpy.memmap(DIRECTORY / "array.raw", dtype="<f8", mode="r", shape=(SIDE,) * 3)


def bits(values):
    values = numpy.ascontiguousarray(values, dtype="<f8")
    with numpy.errstate(over="ignore"):
        return int(values.view("<u8").sum(dtype="u8"))


def timed(work):
    begun = time.perf_counter()
    values = work()
    return time.perf_counter() - begun, bits(values)


def ranges(words):
    return tuple(slice(*map(int, word.split(":"))) for word in words)


def axes(kept):
    return tuple(at for at in range(3) if str(at) not in kept)


class Peer:
    """An array on disk, in the peer's own form."""

    array = None

    def load(self):
        if not self.path().exists():
            self.store(raw(), self.path(), "none")
        return 0.0, 0

    def path(self):
        return DIRECTORY / f"{'x'.join(map(str, CHUNKS))}.{NAME}"

    def close(self):
        self.array = None
        return 0.0, 0

    def open(self):
        self.close()
        begun = time.perf_counter()
        self.array = self.opened(self.path())
        return time.perf_counter() - begun, 0

    def box(self, of):
        return self.array[of]

    def read(self, *words):
        of = ranges(words)
        return timed(lambda: self.box(of))

    def slices(self, file):
        seconds, total = 0.0, 0
        for line in open(file):
            of = ranges(line.split())
            more, one = timed(lambda: self.box(of))
            seconds, total = seconds + more, (total + one) % 2**64
        return seconds, total

    def write(self, packing, append=False):
        path = DIRECTORY / f"written.{NAME}"
        if not append:
            remove(path)
        part = numpy.array(raw()[CUT:] if append else raw()[:CUT])
        begun = time.perf_counter()
        if append:
            self.extend(part, path)
        else:
            self.store(part, path, packing)
        seconds = time.perf_counter() - begun
        return seconds, bits(self.opened(path)[(slice(0, SIDE),) * 3]) if append else 0

    def append(self, packing):
        return self.write(packing, append=True)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Memmap(Peer):
    """NumPy over the plain file, in row-major order."""

    def load(self):
        return 0.0, 0

    def path(self):
        return DIRECTORY / "array.raw"

    def opened(self, path):
        return numpy.memmap(path, dtype="<f8", mode="r", shape=(SIDE,) * 3)

    def box(self, of):
        return numpy.array(self.array[of])


class InMemory(Peer):
    """NumPy over an array in memory: operators. A window is a sum of moved copies, one dimension after the other."""

    def load(self):
        return 0.0, 0

    def open(self):
        self.array = numpy.array(raw())
        return 0.0, 0

    def box(self, of):
        return numpy.array(self.array[of])

    def reduce(self, function, *kept):
        work = {"avg": numpy.mean, "max": numpy.max}[function]
        return timed(lambda: work(self.array, axis=axes(kept)))

    def regrid(self, by):
        by, few = int(by), SIDE // int(by)
        return timed(lambda: self.array.reshape(few, by, few, by, few, by).mean(axis=(1, 3, 5)))

    def window(self, function, around):
        around = int(around)
        return timed(lambda: self.moved(function, around))

    def moved(self, function, around):
        join = {"avg": numpy.add, "max": numpy.maximum}[function]
        values, counts = self.array, numpy.ones((1, 1, 1))
        for axis in range(3):
            before, values = values, values.copy()
            for by in range(1, around + 1):
                near, far = [slice(None)] * 3, [slice(None)] * 3
                near[axis], far[axis] = slice(None, -by), slice(by, None)
                near, far = tuple(near), tuple(far)
                join(values[near], before[far], out=values[near])
                join(values[far], before[near], out=values[far])
            at = numpy.arange(SIDE)
            lengths = numpy.minimum(SIDE, at + around + 1) - numpy.maximum(0, at - around)
            counts = counts * lengths.reshape([-1 if of == axis else 1 for of in range(3)])
        if function == "avg":
            values /= counts
        return values


class Scipy(InMemory):
    """scipy.ndimage over an array in memory; at the edges it repeats values, so that its answers are not compared."""

    def reduce(self, function, *kept):
        raise NotImplementedError("reduce")

    regrid = slices = read = reduce

    def window(self, function, around):
        from scipy import ndimage
        work = {"avg": ndimage.uniform_filter, "max": ndimage.maximum_filter}[function]
        size = 2 * int(around) + 1
        seconds, _ = timed(lambda: work(self.array, size=size, mode="nearest"))
        return seconds, -1


class Zarr(Peer):
    def __init__(self):
        import zarr
        self.zarr = zarr
        zarr.config.set({"threading.max_workers": THREADS, "async.concurrency": 2 * THREADS})

    def store(self, values, path, packing):
        codecs = None
        if packing == "zstd":
            codecs = self.zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle="shuffle")
        array = self.zarr.create_array(
            str(path), shape=values.shape, chunks=CHUNKS, dtype="<f8", compressors=codecs)
        array[:] = values

    def opened(self, path):
        return self.zarr.open_array(str(path), mode="r")

    def extend(self, values, path):
        self.zarr.open_array(str(path), mode="r+").append(values, axis=0)


class Dask(Peer):
    """xarray with dask over the chunks that zarr-python wrote: chunk by chunk, so that the array need not fit in memory."""

    def __init__(self):
        import dask
        import xarray
        self.dask, self.xarray = dask, xarray
        dask.config.set(scheduler="threads", num_workers=THREADS)

    def path(self):
        return DIRECTORY / f"{'x'.join(map(str, CHUNKS))}.zarr"

    def load(self):
        if not self.path().exists():
            raise NotImplementedError("zarr has to be loaded before")
        return 0.0, 0

    def opened(self, path):
        import dask.array
        return self.xarray.DataArray(dask.array.from_zarr(str(path)), dims=("0", "1", "2"))

    def box(self, of):
        return self.array[of].values

    def slices(self, file):
        raise NotImplementedError("slices")

    def reduce(self, function, *kept):
        work = {"avg": self.array.mean, "max": self.array.max}[function]
        return timed(lambda: work(dim=[str(at) for at in axes(kept)]).values)

    def regrid(self, by):
        by = int(by)
        return timed(lambda: self.array.coarsen({"0": by, "1": by, "2": by}).mean().values)

    def window(self, function, around):
        size = 2 * int(around) + 1
        windows = self.array.rolling({"0": size, "1": size, "2": size}, center=True, min_periods=1)
        work = {"avg": windows.mean, "max": windows.max}[function]
        return timed(lambda: work().values)


class TileDb(Peer):
    def __init__(self):
        import tiledb
        self.tiledb = tiledb
        self.context = tiledb.Ctx({
            "sm.compute_concurrency_level": str(THREADS), "sm.io_concurrency_level": str(THREADS),
            "sm.memory_budget": str(16 << 30), "sm.tile_cache_size": "0"})

    def store(self, values, path, packing):
        db = self.tiledb
        filters = [db.ByteShuffleFilter(), db.ZstdFilter(level=3)] if packing == "zstd" else []
        dimensions = [
            db.Dim(name=str(at), domain=(0, SIDE - 1), tile=min(length, SIDE), dtype="uint64", ctx=self.context)
            for at, length in enumerate(CHUNKS)]
        attribute = db.Attr(name="", dtype="float64", filters=filters, ctx=self.context)
        schema = db.ArraySchema(domain=db.Domain(*dimensions, ctx=self.context), attrs=[attribute], ctx=self.context)
        db.DenseArray.create(str(path), schema, ctx=self.context)
        with db.open(str(path), "w", ctx=self.context) as array:
            array[0:len(values)] = values

    def opened(self, path):
        return self.tiledb.open(str(path), "r", ctx=self.context)

    def close(self):
        if self.array is not None:
            self.array.close()
        self.array = None
        return 0.0, 0

    def extend(self, values, path):
        with self.tiledb.open(str(path), "w", ctx=self.context) as array:
            array[SIDE - len(values):SIDE] = values


class Blosc(Peer):
    def __init__(self):
        import blosc2
        self.blosc2 = blosc2
        blosc2.set_nthreads(THREADS)

    def store(self, values, path, packing):
        cparams = {"clevel": 0, "nthreads": THREADS}
        if packing == "zstd":
            cparams = {"codec": self.blosc2.Codec.ZSTD, "clevel": 3, "nthreads": THREADS}
        array = self.blosc2.empty(values.shape, dtype="<f8", chunks=CHUNKS, urlpath=str(path), mode="w", cparams=cparams)
        array[:] = values

    def opened(self, path):
        return self.blosc2.open(str(path), mode="r")

    def extend(self, values, path):
        array = self.blosc2.open(str(path), mode="a")
        before = array.shape[0]
        array.resize((before + values.shape[0],) + array.shape[1:])
        array[before:] = values

    def reduce(self, function, *kept):
        work = {"avg": self.array.mean, "max": self.array.max}[function]
        return timed(lambda: work(axis=axes(kept)))


class DuckDb(Peer):
    """A table of coordinates and values, in the order of the array."""

    def __init__(self):
        import duckdb
        self.duckdb = duckdb

    def load(self):
        if self.path().exists():
            return 0.0, 0
        with self.duckdb.connect(str(self.path()), config={"threads": THREADS}) as session:
            session.execute("create table t(x smallint, y smallint, z smallint, v double)")
            values = raw()
            y, z = numpy.divmod(numpy.arange(SIDE * SIDE), SIDE)
            y, z = y.astype("i2"), z.astype("i2")
            for x in range(SIDE):
                rows = {"x": numpy.full(SIDE * SIDE, x, dtype="i2"), "y": y, "z": z, "v": values[x].ravel()}
                session.register("rows", rows)
                session.execute("insert into t select * from rows")
        return 0.0, 0

    def opened(self, path):
        return self.duckdb.connect(str(path), read_only=True, config={"threads": THREADS})

    def close(self):
        if self.array is not None:
            self.array.close()
        self.array = None
        return 0.0, 0

    def box(self, of):
        within = " and ".join(
            f"{name} between {one.start} and {one.stop - 1}" for name, one in zip("xyz", of))
        return self.array.execute(f"select v from t where {within}").fetchnumpy()["v"]

    def grouped(self, function, keys):
        text = ", ".join(keys)
        text = f"select {function}(v) r from t group by {text} order by {text}"
        return timed(lambda: self.array.execute(text).fetchnumpy()["r"])

    def reduce(self, function, *kept):
        return self.grouped(function, ["xyz"[int(at)] for at in kept])

    def regrid(self, by):
        return self.grouped("avg", [f"{name} // {by}" for name in "xyz"])

    def write(self, packing, append=False):
        raise NotImplementedError("write")


PEERS = {
    "memmap": Memmap, "numpy": InMemory, "scipy": Scipy, "zarr": Zarr, "dask": Dask, "tiledb": TileDb,
    "blosc2": Blosc, "duckdb": DuckDb,
}


def main():
    try:
        peer = PEERS[NAME]()
    except ImportError as error:
        print(f"no {error}", flush=True)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        try:
            work = getattr(peer, word, None)
            if work is None:
                raise NotImplementedError(word)
            seconds, total = functools.partial(work, *rest)()
            print(seconds, total, flush=True)
        except Exception as error:  # noqa: BLE001, whatever it is, the peer has not answered
            print("no", type(error).__name__, " ".join(str(error).split())[:200], flush=True)


if __name__ == "__main__":
    main()
