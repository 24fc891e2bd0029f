#!/usr/bin/env python3
"""The Python package beside DuckDB's: TPC-H to Arrow, data frames grouped, the time of the import, the size of the wheel.

    bench/python.py --wheel dist/atoll-*.whl [--scale 1] [--repeat 5] [--threads 2] [--frame 10000000]

Makes a virtual environment in bench/.python with the wheel, DuckDB, pandas, Polars and pyarrow as `requirements.txt` pins
them. Each package has a process of its own; they take turns, and who begins changes each time. Seconds run from the text
of a query to a table of Arrow; the first answer warms up, is compared and is not counted. DuckDB gets the tables of the
specification's generator from Atoll, through Arrow, into a database file. Every timing goes to bench/results.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
ENVIRONMENT = HERE / ".python"
PEERS = ["duckdb", "pandas", "polars", "pyarrow", "numpy"]
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
FRAMES = {
    "pandas, integers": "select k, count(*) as n, sum(v) as s, avg(v) as a from frame group by k order by k",
    "pandas, texts": "select t, count(*) as n, sum(v) as s, avg(v) as a from frame group by t order by t",
    "pandas, filtered": "select count(*) as n, sum(v) as s from frame where k < 100 and v > 0.5",
    "polars, integers": "select k, count(*) as n, sum(v) as s, avg(v) as a from polar group by k order by k",
}


def frames(rows):
    import numpy
    import pandas
    import polars

    random = numpy.random.default_rng(7)
    keys = random.integers(0, 1000, rows)
    frame = pandas.DataFrame({"k": keys, "v": random.random(rows)})
    # Multiples of 1/1024: sums are the same in whatever order they are made.
    frame["v"] = (frame["v"] * 1024).round() / 1024
    frame["t"] = pandas.Series([f"key {key}" for key in range(1000)]).take(keys).array
    return {"frame": frame, "polar": polars.from_pandas(frame[["k", "v"]])}


class Atoll:
    def __init__(self, store, threads):
        import atoll

        self.database = atoll.open(store, threads=threads)

    def ask(self, text, frames):
        return self.database.sql(text, tables=frames).arrow() if frames else self.database.sql(text).arrow()

    def hand_over(self, table):
        return self.database.sql(f"select * from {table}").arrow()


class DuckDB:
    def __init__(self, store, threads):
        import duckdb

        self.connection = duckdb.connect(store, config={"threads": threads})

    def ask(self, text, frames):
        # As its users write: the names of frames are found in the scope around.
        frame, polar = (frames or {}).get("frame"), (frames or {}).get("polar")  # noqa: F841
        return self.connection.sql(text).to_arrow_table()

    def take(self, name, table):
        self.connection.register("given", table)
        self.connection.execute(f"create or replace table {name} as select * from given")
        self.connection.unregister("given")


def serve(engine, store, threads, rows):
    """One engine: a line of JSON in, a line out."""
    engine = {"atoll": Atoll, "duckdb": DuckDB}[engine](store, threads)
    made = None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("frames") and made is None:
            made = frames(rows)
        began = time.perf_counter()
        table = engine.ask(asked["text"], made if asked.get("frames") else None)
        seconds = time.perf_counter() - began
        answer = {"seconds": seconds, "rows": table.num_rows}
        if asked.get("keep"):
            answer["answer"] = json.loads(json.dumps([list(row.values()) for row in table.to_pylist()], default=str))
        print(json.dumps(answer), flush=True)


class Child:
    def __init__(self, engine, store, options):
        command = [sys.executable, __file__, "--serve", engine, "--store", store, "--threads", str(options.threads),
                   "--frame", str(options.frame)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, **asked):
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"python.py: an engine ended while it was asked {asked['text']!r}")
        return json.loads(line)


def close(one, other):
    """Whether two values are the same, up to the last digits of what is computed."""
    if one == other or one is None or other is None:
        return one == other
    try:
        one, other = float(one), float(other)
    except (TypeError, ValueError):
        return str(one).rstrip() == str(other).rstrip()
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-4)


def same(one, other):
    one, other = (sorted(rows, key=lambda row: [str(value)[:8] for value in row]) for rows in (one, other))
    return len(one) == len(other) and all(len(a) == len(b) and all(map(close, a, b)) for a, b in zip(one, other))


def measure(name, asked, children, repeat, results):
    first = {engine: child.ask(keep=True, **asked(0)) for engine, child in children.items()}
    if not same(first["atoll"]["answer"], first["duckdb"]["answer"]):
        raise SystemExit(f"python.py: {name}: the answers differ: {first}"[:3000])
    times = {engine: [] for engine in children}
    for turn in range(repeat):
        order = list(children) if turn % 2 else list(children)[::-1]
        for engine in order:
            times[engine].append(children[engine].ask(**asked(turn + 1))["seconds"])
    ours, theirs = (statistics.median(times[engine]) for engine in ("atoll", "duckdb"))
    results.append({"query": name, "seconds": times, "ratio": theirs / ours})
    print(f"{name:20} {ours * 1e3:9.1f} ms {theirs * 1e3:9.1f} ms   {theirs / ours:6.2f}", flush=True)


def import_seconds(module, repeat=9):
    taken = []
    for _ in range(repeat):
        for code in (f"import {module}", ""):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken[0::2]) - statistics.median(taken[1::2])


def set_up(wheel):
    """An environment with the wheel and the peers, in which this file goes on."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pins = dict(line.split("==") for line in (HERE / "requirements.txt").read_text().split() if "==" in line)
    wanted = [f"{name}=={pins[name]}" for name in PEERS]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel], check=True)
    os.execv(python, [str(python), *sys.argv])


def wheel_size(package):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package]
        subprocess.run(command, check=True)
        return max(path.stat().st_size for path in pathlib.Path(folder).iterdir())


def prepare(options, folder):
    """A store with the tables of TPC-H, and a database of DuckDB with the same rows."""
    program = ENVIRONMENT / "bin" / "atoll"
    store = str(folder / f"tpch-{options.scale}.atoll")
    subprocess.run([str(program), "quickstart", "--scale", options.scale, "--json"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    database = str(folder / "tpch.duckdb")
    ours, theirs = Atoll(store, options.threads), DuckDB(database, options.threads)
    for table in TABLES:
        theirs.take(table, ours.hand_over(table))
    theirs.connection.close()
    return {"atoll": store, "duckdb": database}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel")
    parser.add_argument("--scale", default="1")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--frame", type=int, default=10_000_000, help="rows of the data frames")
    parser.add_argument("--folder", type=pathlib.Path, help="for the stores [default: a temporary one]")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.store, options.threads, options.frame)
    if not options.wheel:
        parser.error("--wheel: the file that `./package wheel` made")
    if pathlib.Path(sys.prefix) != ENVIRONMENT:
        set_up(options.wheel)
    import machine
    import queries

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        stores = prepare(options, folder)
        children = {engine: Child(engine, store, options) for engine, store in stores.items()}
        results = []
        print(f"{'':20} {'atoll':>12} {'duckdb':>12}   duckdb/atoll")
        for query in range(1, 23):
            def asked(turn, query=query):
                return {"text": queries.text(query, queries.parameters(query, turn, options.scale, 1))}
            measure(f"Q{query}", asked, children, options.repeat, results)
        ratios = [result["ratio"] for result in results]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"22 queries, geometric mean {mean:.2f}, least {min(ratios):.2f}")
        for name, text in FRAMES.items():
            measure(name, lambda _, text=text: {"text": text, "frames": True}, children, options.repeat, results)
    imports = {module: import_seconds(module) for module in ("atoll", "duckdb")}
    sizes = {"atoll": pathlib.Path(options.wheel).stat().st_size, "duckdb": wheel_size("duckdb")}
    print("import: " + ", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in imports.items()))
    print("wheel: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items()))
    described = machine.describe()
    now = datetime.datetime.now(datetime.timezone.utc)
    path = HERE / "results" / f"{now:%Y-%m-%dT%H%M%S}-python-{machine.slug(described)}.json"
    path.write_text(json.dumps({"machine": described, "wheel": pathlib.Path(options.wheel).name,
                                "options": {name: getattr(options, name) for name in ("scale", "repeat", "threads", "frame")},
                                "mean": mean, "results": results, "imports": imports, "wheels": sizes}, indent=1))
    print(f"wrote {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
