#!/usr/bin/env python3
"""TPC-H against the peers. Started by `bench/run`; README.md beside this file says what is measured and how."""

import argparse
import datetime
import pathlib
import sys

import answers
import compare
import engines
import machine
import queries
import report
from frame import ask, print_bars, print_table, rotated, save, say, show_progress, summarise

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# name, what is measured, at most
BARS = (
    ("worst query against DataFusion on Parquet", "worst atoll/datafusion", 1.0),
    ("geometric mean against DataFusion on Parquet", "mean atoll/datafusion", 1 / 1.5),
    ("worst query against DuckDB", "worst atoll/duckdb", 1 / 0.9),
    ("geometric mean against DuckDB", "mean atoll/duckdb", 1 / 2),
    ("seconds to load against DuckDB", "load atoll/duckdb", 3.0),
    ("bytes stored against DuckDB", "bytes atoll/duckdb", 1.5),
)


def arguments():
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--scale", default="1", help="TPC-H scale factor (default 1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (default 2)")
    parser.add_argument("--repeat", type=int, default=5, help="timed repeats, each with other parameters (default 5)")
    parser.add_argument("--load-repeat", type=int, default=3, help="timed loads of Atoll and DuckDB (default 3)")
    parser.add_argument("--engines", default="atoll,duckdb,datafusion,polars,chdb", help=f"of {', '.join(engines.NAMES)}")
    parser.add_argument("--queries", default="1-22", help="for instance 1,6,9-12")
    parser.add_argument("--seed", type=int, default=1, help="draws the parameters (default 1)")
    parser.add_argument("--parameters", choices=("drawn", "fixed"), default="drawn",
                        help="drawn anew for each repeat, or those of validation each time, as of a page that is drawn again (default drawn)")
    parser.add_argument("--limit", type=float, default=600, help="seconds an engine may take for one request")
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "target/release/atoll", help="the program")
    parser.add_argument("--before", type=pathlib.Path, metavar="PROGRAM",
                        help="an Atoll built before, which is the engine `before`: what a change costs, in one run")
    parser.add_argument("--executor", help="how Atoll runs queries (default: as it does by itself)")
    parser.add_argument("--data", type=pathlib.Path, default=HERE / "data", help="folder for data and stores")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results", help="folder for the JSON and the report")
    parser.add_argument("--write-results", type=pathlib.Path, metavar="DIR",
                        help="also write what the engines agree on for the validation parameters, as DIR/sfSCALE/qNN.csv")
    parser.add_argument("--strict", action="store_true", help="exit with 3 when a bar is missed")
    options = parser.parse_args()
    options.engines = options.engines.split(",")
    unknown = [name for name in options.engines if name not in engines.NAMES]
    if unknown:
        parser.error(f"no engine {unknown[0]!r}: there are {', '.join(engines.NAMES)}")
    options.queries = numbers(parser, options.queries)
    try:
        options.scale = f"{float(options.scale):g}"
    except ValueError:
        parser.error(f"--scale {options.scale}: not a number")
    if "atoll" in options.engines and not options.atoll.exists():
        parser.error(f"no program at {options.atoll}: build it (cargo build --release) or give --atoll PATH, "
                     "or leave it out: --engines duckdb,datafusion,polars,chdb")
    if ("before" in options.engines) != (options.before is not None and options.before.exists()):
        parser.error("the engine before and --before PROGRAM go together: --engines atoll,before --before PROGRAM")
    options.atoll = options.atoll.resolve()
    options.before = options.before and options.before.resolve()
    return options


def numbers(parser, text):
    result = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            result += range(int(first), int(last or first) + 1)
    except ValueError:
        parser.error(f"--queries {text}: not a list of numbers")
    if not result or not set(result) <= set(queries.TEXT):
        parser.error(f"--queries {text}: the queries are 1 to 22")
    return result


def load(peers, options):
    """Loads: Atoll and DuckDB several times in turn, others with a store once. The last store stays."""
    loads = {peer.name: [] for peer in peers if peer.name in engines.LOADED}
    for repeat in range(max(1, options.load_repeat)):
        for peer in rotated(peers, repeat):
            if peer.name not in loads or (peer.name == "chdb" and repeat):
                continue
            done = peer.load()
            loads[peer.name].append(done)
            say(f"load {repeat + 1}: {peer.name:10} {done['seconds']:8.2f} s {done['bytes'] / 1e6:10.1f} MB")
    return loads


def measure(peers, options):
    """Every query: repeat by repeat, each engine once, in rotating order. Repeat 0 warms up and is checked, not counted."""
    timings = []
    agreed = {}
    for query in options.queries:
        for repeat in range(options.repeat + 1):
            drawn = repeat if options.parameters == "drawn" else 0
            values = queries.parameters(query, drawn, options.scale, options.seed)
            results = {}
            for position, peer in enumerate(rotated(peers, query + repeat)):
                entry = {"query": query, "repeat": repeat, "engine": peer.name, "position": position}
                timings.append(entry)
                results[peer.name] = (ask(peer, queries.text(query, values, peer.name), entry), entry)
            agreed[query, repeat] = check(query, repeat, results, options)
        show_progress(query, timings)
    return timings, agreed


def check(query, repeat, results, options):
    """Marks wrong answers; the answer of the reference when all agree. DuckDB is the reference, or the first peer."""
    order = sorted(results, key=lambda name: (name != "duckdb", name == "atoll"))
    good = [name for name in order if results[name][0]]
    if repeat == 0 and options.scale in answers.SCALES and not options.write_results:
        digests = answers.read()
        for name in good:
            answer, entry = results[name]
            problems = answers.verify(options.scale, query, answer["columns"], answer["rows"], digests)
            if problems:
                entry["wrong"] = "not the published answer: " + "; ".join(problems)
    for name in good[1:]:
        answer, entry = results[name]
        found = compare.difference(query, answer["rows"], results[good[0]][0]["rows"])
        if found:
            entry.setdefault("wrong", f"not what {good[0]} answers: {found}")
    for name in order:
        entry = results[name][1]
        for word in ("error", "wrong"):
            if word in entry:
                say(f"q{query:02} repeat {repeat} {name} {word.upper()}: {entry[word]}")
    if len(good) == len(order) and not any("wrong" in results[name][1] for name in order):
        return results[good[0]][0]
    return None


def bars(ratios, loads, count):
    found = {}
    for peer in ("datafusion", "duckdb"):
        if ratios.get(peer, {}).get("queries") == count == len(queries.TEXT):
            found[f"worst atoll/{peer}"] = ratios[peer]["worst"]
            found[f"mean atoll/{peer}"] = ratios[peer]["geometric_mean"]
    if "atoll" in loads and "duckdb" in loads:
        found["load atoll/duckdb"] = loads["atoll"]["seconds"] / loads["duckdb"]["seconds"]
        found["bytes atoll/duckdb"] = loads["atoll"]["bytes"] / loads["duckdb"]["bytes"]
    return [{"name": name, "ratio": found.get(key), "at_most": limit,
             "passed": found[key] <= limit if key in found else None} for name, key, limit in BARS]


def write_results(folder, scale, agreed):
    folder = folder / f"sf{scale}"
    folder.mkdir(parents=True, exist_ok=True)
    missing = []
    for (query, repeat), answer in agreed.items():
        if repeat == 0 and answer is None:
            missing.append(query)
        elif repeat == 0:
            lines = [answer["columns"]] + [["" if v is None else str(v) for v in row] for row in answer["rows"]]
            (folder / f"q{query:02}.csv").write_text("".join("|".join(line) + "\n" for line in lines))
    if missing:
        sys.exit(f"the engines do not agree on queries {missing}: nothing written for these")
    say(f"wrote {folder}")


def main():
    options = arguments()
    data = options.data / f"sf{options.scale}"
    stores = data / "stores"
    data.mkdir(parents=True, exist_ok=True)
    engines.generate(options.scale, data / "parquet")
    stores.mkdir(exist_ok=True)
    raw = engines.warm(data / "parquet")
    described = machine.describe()
    if described["load_average"][0] > 0.5:
        say(f"note: the machine is busy (load {described['load_average'][0]:.1f}), figures will be too high")
    peers = [engines.engine(name, options, data / "parquet", stores) for name in options.engines]
    begun = datetime.datetime.now(datetime.timezone.utc)
    try:
        loads = load(peers, options)
        versions = {peer.name: peer.open() for peer in peers}
        timings, agreed = measure(peers, options)
        usage = {peer.name: peer.process.usage() for peer in peers if peer.process}
    except engines.Failed as error:
        sys.exit(f"bench: {error}")
    finally:
        for peer in peers:
            peer.close()
    summary = summarise(loads, timings, options.engines)
    summary["bars"] = bars(summary["ratios"], summary["loads"], len(summary["queries"]))
    result = {
        "benchmark": "tpch", "date": begun.isoformat(timespec="seconds"), "machine": described, **machine.commit(ROOT),
        "scale": options.scale, "threads": options.threads, "repeat": options.repeat, "seed": options.seed,
        "parameters": options.parameters,
        "parquet_bytes": raw, "versions": versions, "python": sys.version.split()[0], "usage": usage, "loads": loads,
        "summary": summary, "timings": timings,
    }
    print_table(summary, options.engines)
    print_bars(summary["bars"])
    for name, used in usage.items():
        if used["idle_cpu"] > 0.02:
            print(f"note: {name} used {used['idle_cpu']:.0%} of a core while it was asked nothing")
    if options.write_results:
        write_results(options.write_results, options.scale, agreed)
    path = save(result, begun, options.results)
    path.with_suffix(".html").write_text(report.page(result))
    print(f"wrote {path} and the report {path.with_suffix('.html').name}")
    if any("wrong" in t or "error" in t for t in timings):
        sys.exit("bench: wrong or missing answers, see above")
    if options.strict and any(bar["passed"] is False for bar in summary["bars"]):
        sys.exit(3)


if __name__ == "__main__":
    main()
