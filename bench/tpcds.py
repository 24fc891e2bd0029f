"""TPC-DS, all 99 queries: Atoll and DuckDB in turn, hot, each its own store, and on wish an Atoll that was built before.

    bench/.venv/bin/python bench/tpcds.py [--scale 1] [--repeat 5] [--threads 2] [--queries 1,24,64-72] [--before PROGRAM]

Rows and texts of queries come from the generator that DuckDB publishes as a package (bench/.tpcds, made on the first run;
of another version of DuckDB than the one that is measured). Keys are not declared. What is compared are ratios within a
run, and each answer with DuckDB's. Every single timing goes to bench/results, with date, machine, commit and versions.
The exit status is 1 when an answer was missing or not DuckDB's.
"""

import argparse
import datetime
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import venv

import hits
import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
GENERATOR = ("duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5")

# Run by the generator's own Python: rows as Parquet, texts as JSON.
MAKE = """
import json, pathlib, sys
import duckdb, duckdb_extension_tpcds
where, scale = pathlib.Path(sys.argv[1]), sys.argv[2]
extension = next(pathlib.Path(duckdb_extension_tpcds.__file__).parent.rglob("tpcds.duckdb_extension"))
made = duckdb.connect(config={"allow_unsigned_extensions": True})
made.execute(f"load '{extension}'")
made.execute(f"call dsdgen(sf={scale})")
for (table,) in made.execute("select table_name from duckdb_tables()").fetchall():
    made.execute(f"copy {table} to '{where / table}.parquet' (format parquet)")
queries = dict(made.execute("select query_nr, query from tpcds_queries()").fetchall())
(where / "queries.json").write_text(json.dumps(queries))
"""


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="1")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--queries", default="1-99", help="for instance 1,24,64-72")
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "target/release/atoll")
    parser.add_argument("--before", type=pathlib.Path, metavar="PROGRAM", help="an Atoll built before, measured beside")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "bench/data")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results", help="where raw results go")
    given = parser.parse_args(arguments)
    given.scale = f"{float(given.scale):g}"
    given.queries = numbers(given.queries)
    return given


def numbers(text):
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def generate(where, scale):
    """Rows and queries, written once, by a Python of the generator's own."""
    own = ROOT / "bench/.tpcds"
    python = own / "bin/python"
    if not python.exists():
        venv.create(own, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *GENERATOR], check=True)
    part = where.with_name(where.name + ".part")
    part.mkdir(parents=True, exist_ok=True)
    subprocess.run([python, "-c", MAKE, part, scale], check=True)
    part.rename(where)


def stores(given):
    """The same rows in a store of each, made once."""
    import duckdb

    where = given.data / f"tpcds{given.scale}"
    if not where.exists():
        generate(where, given.scale)
    own, peer = where / "tpcds.atoll", where / "tpcds.duckdb"
    files = sorted(where.glob("*.parquet"))
    if not own.exists():
        part = where / "part.atoll"
        part.unlink(missing_ok=True)
        for file in files:
            subprocess.run([given.atoll, "import", part, file.stem, file], check=True, stderr=subprocess.DEVNULL)
        part.rename(own)
        log = part.with_name(part.name + ".log")
        if log.exists():
            log.rename(own.with_name(own.name + ".log"))
    if not peer.exists():
        with duckdb.connect(str(peer)) as made:
            for file in files:
                made.execute(f"create table {file.stem} as from '{file}'")
    return where, own, peer


def one_line(text):
    """A statement as it is sent, without its comments, which would go on to the end of it."""
    return re.sub("--[^\n]*", "", text).strip().removesuffix(";").replace("\n", " ")


def measure(number, sql, engines, repeat):
    """One query, the engines in turn; repeat 0 warms up, is checked, and does not count."""
    timing = {"query": number, "seconds": {name: [] for name in engines}, "wrong": None}
    for turn in range(repeat + 1):
        answers = {}
        # Who begins changes each time.
        for name in sorted(engines, reverse=bool(turn % 2)):
            seconds, answers[name] = engines[name].ask(sql)
            if seconds is None:
                timing["wrong"] = f"{name}: {answers[name]}"
                return timing
            if turn:
                timing["seconds"][name].append(seconds)
        for name in engines:
            if turn == 0 and not hits.same(answers[name], answers["duckdb"]):
                timing["wrong"] = f"{name}: another answer than DuckDB's"
    return timing


def summarise(timings, name):
    """How many times the time of `name` each of the others took, of the queries that were answered right."""
    summary = {}
    right = [timing for timing in timings if timing["wrong"] is None]
    for other in (right[0]["seconds"] if right else ()):
        if other != name:
            times = lambda timing, of: statistics.median(timing["seconds"][of])  # noqa: E731
            ratios = {timing["query"]: times(timing, other) / times(timing, name) for timing in right}
            summary[other] = {"geometric_mean": math.exp(statistics.fmean(map(math.log, ratios.values()))), "ratios": ratios,
                              "worst": min(ratios, key=ratios.get)}
    return {"queries": len(right), "of": len(timings), "others": summary}


def line(timing):
    if timing["wrong"]:
        return f"{timing['query']:3}  {timing['wrong'][:150]}"
    medians = {name: statistics.median(seconds) * 1e3 for name, seconds in timing["seconds"].items()}
    shown = "  ".join(f"{name} {value:8.1f} ms" for name, value in medians.items())
    return f"{timing['query']:3}  {shown}  {medians['duckdb'] / medians['atoll']:6.2f}x"


def main():
    given = options()
    import duckdb

    where, own, peer = stores(given)
    texts = {int(number): sql for number, sql in json.loads((where / "queries.json").read_text()).items()}
    begun = datetime.datetime.now(datetime.timezone.utc)
    engines = {"atoll": hits.Atoll(given, own), "duckdb": hits.Duckdb(given, peer)}
    if given.before:
        engines["before"] = hits.Atoll(argparse.Namespace(**{**vars(given), "atoll": given.before}), own)
    timings = []
    try:
        for number in given.queries:
            sql = one_line(texts[number])
            timings.append(measure(number, sql, engines, given.repeat))
            print(line(timings[-1]), flush=True)
    finally:
        for engine in engines.values():
            engine.close()
    versions = {"atoll": machine.output(given.atoll, "--version").removeprefix("atoll "), "duckdb": duckdb.__version__}
    if given.before:
        versions["before"] = machine.output(given.before, "--version").removeprefix("atoll ")
    summary = summarise(timings, "atoll")
    described = machine.describe()
    given.results.mkdir(parents=True, exist_ok=True)
    path = given.results / f"{begun:%Y-%m-%dT%H%M%S}-tpcds-{machine.slug(described)}.json"
    path.write_text(json.dumps({
        "benchmark": "tpcds", "date": begun.isoformat(timespec="seconds"), "machine": described, **machine.commit(ROOT),
        "scale": given.scale, "threads": given.threads, "repeat": given.repeat, "versions": versions, "generator": GENERATOR,
        "python": sys.version.split()[0], "summary": summary, "timings": timings,
    }, indent=1) + "\n")
    for other, found in summary["others"].items():
        print(f"{other}'s time, times Atoll's: geometric mean {found['geometric_mean']:.2f} of {summary['queries']} queries, "
              f"worst query {found['worst']}: {found['ratios'][found['worst']]:.2f}")
    print(f"wrote {path}")
    return 0 if summary["queries"] == summary["of"] else 1


def self_test():
    """Run by `python3 bench/tpcds.py --self-test`: what needs no engine."""
    assert numbers("1,3-5") == [1, 3, 4, 5] and options([]).queries == list(range(1, 100))
    right = {"query": 1, "seconds": {"atoll": [1.0, 3.0, 2.0], "duckdb": [4.0, 4.0, 4.0]}, "wrong": None}
    slow = {"query": 2, "seconds": {"atoll": [2.0], "duckdb": [1.0]}, "wrong": None}
    wrong = {**right, "query": 3, "wrong": "duckdb: no"}
    summary = summarise([right, slow, wrong], "atoll")
    found = summary["others"]["duckdb"]
    assert (summary["queries"], summary["of"]) == (2, 3)
    assert found["ratios"] == {1: 2.0, 2: 0.5} and found["worst"] == 2 and abs(found["geometric_mean"] - 1) < 1e-9
    assert one_line("select 1 -- one;\n  + 2;\n") == "select 1    + 2"
    assert summarise([wrong], "atoll")["others"] == {}, "nothing measured is no figure"
    assert "2.00x" in line(right) and "duckdb: no" in line(wrong)
    print("tpcds: self-test passed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        sys.exit(main())
