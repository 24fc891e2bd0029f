"""Arrays on disk and in memory: boxes, slices, aggregates, windows and writes, by Atoll and by its peers in turn.

    bench/arrays/run [--mb 1024] [--rows boxes,slices] [--peers tiledb,zarrs] [--repeat 5] [--cold] [--threads 2]

The array has three dimensions and doubles, multiples of 1/256, so that sums are the same in whatever order they are made. Each
engine has a process of its own and stores the array in its own form, in chunks of one shape, not compressed. A query's result
is one array in the engine's memory. Engines take turns, and who begins changes each time; the first answer of each warms up, is
compared and is not counted: every engine must give the same bits. With --cold, an engine closes its array before each query,
what the page cache has of its files is dropped, and it opens it again; only the query is timed. An engine whose first answer
takes longer than --limit seconds is asked no more, and its figure is that one. Every timing goes to bench/results, together
with those of other rows that were measured on that day with --into.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import machine  # noqa: E402

OURS = ["atoll"]
BOXES = ["zarrs", "tiledb", "blosc2", "zarr", "memmap", "duckdb"]
FOLDS = ["atoll, a tenth in the pool", "numpy", "dask", "blosc2", "duckdb"]
WINDOWS = ["atoll, a tenth in the pool", "numpy", "scipy", "dask"]
WRITERS = ["zarrs", "tiledb", "blosc2", "zarr"]
GRIDS = {100: (4, 5, 5), 210: (5, 6, 7), 500: (5, 10, 10), 1000: (10, 10, 10)}
USUAL = 210
BARS = {
    "boxes": "in each faster than zarrs, tiledb and blosc2; 2x in the mean",
    "slices": "5x zarr; faster than tiledb and zarrs",
    "reductions": "1.5x numpy; a tenth in the pool: at least dask",
    "regrid": "1.5x numpy; a tenth in the pool: at least dask",
    "windows": "1.5x numpy; a tenth in the pool: at least dask",
    "chunks": "time grows by less than 10 %",
    "writes": "no slower than zarrs and tiledb",
}


def side_of(mb):
    """Cells along each dimension: a multiple of 8, so that eighths and boxes of four are whole."""
    return round((mb * 2**20 / 8) ** (1 / 3) / 8) * 8


def chunk_of(side, chunks):
    return tuple(-(-side // count) for count in GRIDS[chunks])


def part_of(ranges, share, ends):
    """A box within `ranges` that has about `share` of its cells, and leaves out no more at either end than `ends` allow."""
    lengths = [end - start for start, end in ranges]

    def cut(by):
        return [min(int(by * length), first + last) for length, (first, last) in zip(lengths, ends)]

    def left(by):
        cells = 1.0
        for length, less in zip(lengths, cut(by)):
            cells *= (length - less) / length
        return cells

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle) > share else (low, middle)
    box = []
    for (start, end), less, (first, last) in zip(ranges, cut(low), ends):
        before = min(first, round(less * first / max(1, first + last)))
        box.append((start + before, end - (less - before)))
    return box


def boxes(side, chunks):
    """The seven queries of the experiment: one chunk as it is; a single chunk, a fifth of the chunks and all of them, of which
    20 % (low) or 70 % (high) of the cells are filtered out."""
    chunk = chunk_of(side, chunks)
    one = [(length, 2 * length) for length in chunk]
    few = [one[0]] + [(0, side)] * 2
    every = [(0, side)] * 3
    anywhere = [(length // 2, length // 2) for length in chunk]

    # Every chunk must keep a cell.
    def ends(ranges):
        return [(length - 1, (end - start - 1) % length) for length, (start, end) in zip(chunk, ranges)]

    found = {"EQ": one}
    for name, ranges in (("SC", one), ("FC", few), ("MC", every)):
        for share, kind in ((0.8, "low"), (0.3, "high")):
            borders = anywhere if name == "SC" else ends(ranges)
            if name == "FC":
                borders[0] = anywhere[0]
            found[f"{name} {kind}"] = part_of(ranges, share, borders)
    return found


def words(box):
    return " ".join(f"{start}:{end}" for start, end in box)


def rows_of(side, args, wanted):
    """Name, group, number of chunks, question, who answers."""
    rows = []
    for name, box in boxes(side, USUAL).items():
        rows.append((name, "boxes", USUAL, f"read {words(box)}", BOXES))
    rows.append((f"{args.slices:,} slices of 64 x 64 x 8", "slices", USUAL, f"slices {args.data / 'slices.txt'}", BOXES))
    for function in ("avg", "max"):
        for kept in ((0,), (2,), (0, 1), (1, 2)):
            name = f"{function} by {', '.join('xyz'[at] for at in kept)}"
            rows.append((name, "reductions", USUAL, f"reduce {function} {' '.join(map(str, kept))}", FOLDS))
    rows.append(("avg of 4 x 4 x 4", "regrid", USUAL, "regrid 4", FOLDS))
    for function, around in (("avg", 1), ("avg", 4), ("max", 4)):
        size = 2 * around + 1
        name = f"{function} of windows of {size} x {size} x {size}"
        rows.append((name, "windows", USUAL, f"window {function} {around}", WINDOWS))
    box = words([(side * 16 // 100, side * 84 // 100)] * 3)
    for chunks in GRIDS:
        rows.append((f"31 % of an array of {chunks} chunks", "chunks", chunks, f"read {box}", []))
    for packing in ("none", "zstd"):
        name = "not compressed" if packing == "none" else "zstd 3, bytes shuffled"
        rows.append((f"write, {name}", "writes", USUAL, f"write {packing}", WRITERS))
        rows.append((f"append, {name}", "writes", USUAL, f"append {packing}", WRITERS))
    return [row for row in rows if wanted is None or row[1] in wanted]


def make(folder, side, slices):
    """The array: layers that rise and fall, and noise of eight bits; and where the slices are."""
    import numpy

    path = folder / "array.raw"
    if not path.exists() or path.stat().st_size != side**3 * 8:
        random = numpy.random.default_rng(1)
        y, z = numpy.meshgrid(numpy.arange(side), numpy.arange(side), indexing="ij")
        with open(path, "wb") as file:
            for x in range(side):
                depth = z + 20 * numpy.sin(x / 40) * numpy.cos(y / 60)
                speed = 1500 + 250 * numpy.floor(depth / 40) + random.random((side, side))
                file.write((numpy.round(speed * 256) / 256).astype("<f8").tobytes())
    random = numpy.random.default_rng(2)
    shape = [min(side, length) for length in (64, 64, 8)]
    starts = [random.integers(0, side - length + 1, slices) for length in shape]
    lines = [words([(at, at + length) for at, length in zip(one, shape)]) for one in zip(*starts)]
    (folder / "slices.txt").write_text("\n".join(lines) + "\n")


class Engine:
    """A process that answers a line at a time."""

    def __init__(self, name, chunks, args, side):
        self.name, self.failed, self.missing = name, None, None
        chunk = ",".join(map(str, chunk_of(side, chunks)))
        data = str(args.data)
        if name.startswith("atoll"):
            pool = args.mb // 10 if "tenth" in name else 2 * args.mb + 256
            command = [args.atoll, data, str(side), chunk, str(args.threads), str(pool)]
        elif name == "zarrs":
            command = [args.zarrs, data, str(side), chunk]
        else:
            command = [sys.executable, str(HERE / "peers.py"), name, data, str(side), chunk, str(args.threads)]
        self.files = self.of(name, "x".join(map(str, chunk_of(side, chunks))), args.data)
        settings = {**os.environ, "RAYON_NUM_THREADS": str(args.threads)}
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings)
            first = "ready" if name.startswith("atoll") else self.process.stdout.readline().strip()
        except OSError as error:
            first = f"no {error}"
        if first != "ready":
            self.missing = first.removeprefix("no ") or "it ended"

    @staticmethod
    def of(name, chunk, folder):
        ending = "atoll" if name.startswith("atoll") else {"zarrs": "zarr", "dask": "zarr"}.get(name, name)
        plain = {"memmap", "numpy", "scipy"}
        return folder / ("array.raw" if name in plain else f"{chunk}.{ending}")

    def ask(self, line):
        """Seconds and the sum of the bits; what is wrong otherwise."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("no "):
            raise ValueError(answer.removeprefix("no ") or "it ended")
        seconds, total = answer.split()
        return float(seconds), int(total)

    def forget(self):
        """Drops what the page cache has of its files; what is not written yet is written before."""
        files = [self.files] if self.files.is_file() else [path for path in self.files.rglob("*") if path.is_file()]
        for path in files:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def end(self):
        if self.missing is None:
            self.process.stdin.close()
            self.process.wait()


def measure(row, engines, args):
    """All timings of a row, by engine, and those that answered otherwise than ours."""
    name, group, _, question, _ = row
    times, sums = {engine.name: [] for engine in engines}, {}
    asked = list(engines)
    for repeat in range(args.repeat + 1):
        if not asked:
            break
        for engine in asked[repeat % len(asked):] + asked[:repeat % len(asked)]:
            if engine not in asked:
                continue
            try:
                if args.cold and group != "writes":
                    engine.ask("close")
                    engine.forget()
                    engine.ask("open")
                if question.startswith("append"):
                    engine.ask(question.replace("append", "write"))
                seconds, total = engine.ask(question)
            except ValueError as error:
                times[engine.name] = str(error)
                asked.remove(engine)
                continue
            if repeat == 0:
                sums[engine.name] = total
                if seconds > args.limit and engine.name not in OURS:
                    times[engine.name] = [seconds]
                    asked.remove(engine)
            else:
                times[engine.name].append(seconds)
    wrong = [of for of, total in sums.items() if total not in (-1, sums.get("atoll"))]
    return times, wrong


def report(row, times, cold):
    medians = {name: statistics.median(all) for name, all in times.items() if isinstance(all, list) and all}
    ours = medians.get("atoll")
    shown = []
    for name, all in times.items():
        if name not in medians:
            shown.append(f"{name} -")
        elif name == "atoll":
            shown.append(f"atoll {ours * 1e3:.1f} ms")
        else:
            once = " (once)" if len(all) == 1 else ""
            shown.append(f"{name} {medians[name] / ours:.2f}x{once}" if ours else name)
    print(f"{row[0]}{' (cold)' if cold else ''}: " + ", ".join(shown), flush=True)


def self_test():
    for mb in (1, 64, 256, 1024, 4096):
        side = side_of(mb)
        assert side % 8 == 0 and abs(side**3 * 8 / (mb << 20) - 1) < 0.25, mb
        chunk = chunk_of(side, USUAL)
        found = boxes(side, USUAL)
        assert len(found) == 7
        counts = {}
        for name, box in found.items():
            assert all(0 <= start < end <= side for start, end in box), name
            counts[name] = 1
            for (start, end), length in zip(box, chunk):
                counts[name] *= (end - 1) // length - start // length + 1
        every = 1
        for length in chunk:
            every *= -(-side // length)
        assert counts["EQ"] == counts["SC low"] == counts["SC high"] == 1, counts
        assert counts["FC low"] == counts["FC high"] == every // -(-side // chunk[0]), counts
        assert counts["MC low"] == counts["MC high"] == every, counts
        if mb >= 256:
            cells = {name: 1 for name in found}
            for name, box in found.items():
                for start, end in box:
                    cells[name] *= end - start
            whole = {"SC": cells["EQ"], "FC": chunk[0] * side**2, "MC": side**3}
            for name in found:
                if name != "EQ":
                    share = cells[name] / whole[name[:2]]
                    assert abs(share - (0.8 if "low" in name else 0.3)) < 0.05, (mb, name, share)
    print("self-test passed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mb", type=int, default=1024, help="bytes of the array; 4096 for the larger one")
    parser.add_argument("--rows", help="of " + ", ".join(BARS))
    parser.add_argument("--peers", help="only these, and Atoll")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--slices", type=int, default=1000)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--atoll", default=str(ROOT / "target/release/examples/arrays"))
    parser.add_argument("--zarrs", default=str(HERE / "zarrs/target/release/zarrs-bench"))
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "bench/data/arrays")
    parser.add_argument("--into", type=pathlib.Path, help="results that these are added to")
    parser.add_argument("--load", action="store_true", help="only store the array in every form")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    side = side_of(args.mb)
    args.data = args.data / str(args.mb)
    args.data.mkdir(parents=True, exist_ok=True)
    make(args.data, side, args.slices)
    rows = rows_of(side, args, args.rows and args.rows.split(","))
    engines, results, wrong, missing = {}, [], [], {}

    def engine(name, chunks):
        if (name, chunks) not in engines:
            one = Engine(name, chunks, args, side)
            for line in ("load", "open"):
                if one.missing is None:
                    try:
                        one.ask(line)
                    except ValueError as error:
                        one.missing = str(error)
                        one.process.kill()
            if one.missing is not None:
                missing[name] = one.missing
                print(f"NOT RUN: {name}: {one.missing}", file=sys.stderr, flush=True)
            engines[name, chunks] = one
        return engines[name, chunks]

    described = machine.describe()
    now = datetime.datetime.now(datetime.timezone.utc)
    path = args.into or ROOT / f"bench/results/{now:%Y-%m-%d}-arrays-{machine.slug(described)}.json"
    kept = json.loads(path.read_text())["runs"] if path.exists() else []
    versions = machine.output(sys.executable, "-m", "pip", "list", "--format", "freeze").split()

    def save():
        """After each row, so that what was measured is kept whatever comes."""
        run = {"date": now.isoformat(), "machine": described, "source": machine.commit(ROOT), "side": side,
               "chunk": chunk_of(side, USUAL), "threads": args.threads, "repeat": args.repeat, "missing": missing,
               "results": results}
        path.write_text(json.dumps({"versions": versions, "runs": [*kept, run]}, indent=1) + "\n")

    for row in rows:
        peers = [name for name in row[4] if args.peers is None or name in args.peers.split(",")]
        # zarrs and dask read what zarr-python has written.
        if {"zarrs", "dask"} & set(peers):
            engine("zarr", row[2])
        there = [engine(name, row[2]) for name in OURS + peers]
        if there[0].missing is not None:
            return 1
        if args.load:
            continue
        times, differ = measure(row, [one for one in there if one.missing is None], args)
        wrong += [(row[0], name) for name in differ]
        results.append({"row": row[0], "group": row[1], "chunks": row[2], "cold": args.cold, "mb": args.mb,
                        "seconds": times, "bar": BARS[row[1]], "differ": differ})
        save()
        report(row, times, args.cold)
    for one in engines.values():
        one.end()
    if args.load:
        return 0
    print(path)
    for row, name in wrong:
        print(f"WRONG: {name} answers '{row}' otherwise than Atoll", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
