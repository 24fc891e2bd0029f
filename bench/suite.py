"""A suite of queries over rows drawn from a seed: Atoll and its peers in turn, hot, each its own store, answers compared.

    bench/run --suite h2o|ssb|job|stats|times|json [--peers duckdb,datafusion,polars,before] [--size 1] [--queries q1,q4-q6]
    bench/run --suite tpch|tpcds|clickbench ...      # those with a program of their own: tpch.py, tpcds.py, hits.py

The rows are made on the first run, and kept in bench/data by suite, size, seed and generator; their digest stands in the
results. A query's seconds go from its text to its last row; its time is the median of the repeats, where repeat 0 warms up
and does not count. In each repeat every engine runs once, and who begins changes. Every single timing goes to bench/results,
with date, machine, commit, versions and texts. A query that takes a peer longer than --limit counts nowhere.
The exit status is 1 when an answer of Atoll's was missing, or another than the first peer's.
"""

import argparse
import ast
import datetime
import hashlib
import importlib
import json
import os
import pathlib
import re
import shutil
import sys
import time
from decimal import Decimal, InvalidOperation

import engines
import frame
import hits
import machine
import suites

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
OTHERS = {"tpch": "tpch.py", "tpcds": "tpcds.py", "clickbench": "hits.py"}
PEERS = [name for name in engines.NAMES if name not in ("atoll", "chdb")]
# DuckDB's time over Atoll's: the geometric mean at least, the worst query at least.
BARS = {"h2o": (2, 0.7), "ssb": (2, 0.7), "job": (2, 0.7), "stats": (2, 0.7), "times": (2, 0.8), "json": (2, 0.8)}
RELATIVE, ABSOLUTE = Decimal("1e-9"), Decimal("1e-9")


def options(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/run --suite", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    named = "; ".join(f"{name}: {what}" for name, what in suites.NAMES.items())
    parser.add_argument("--suite", required=True, choices=[*suites.NAMES, *OTHERS], help=named)
    parser.add_argument("--peers", default="duckdb", help=f"of {', '.join(PEERS)} (default duckdb); none for Atoll alone")
    parser.add_argument("--size", default="1", help="how many times the rows that the suite's module says (default 1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (default 2)")
    parser.add_argument("--repeat", type=int, default=5, help="timed repeats (default 5)")
    parser.add_argument("--queries", help="some of them, by name: q1,q4-q6 (default all)")
    parser.add_argument("--seed", type=int, default=1, help="draws the rows (default 1)")
    parser.add_argument("--limit", type=float, default=60, help="seconds an engine may take for one answer (default 60)")
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "target/release/atoll", help="the program")
    parser.add_argument("--before", type=pathlib.Path, metavar="PROGRAM", help="an Atoll built before: the peer `before`")
    parser.add_argument("--executor", help="how Atoll runs queries (default: as it does by itself)")
    parser.add_argument("--data", type=pathlib.Path, default=HERE / "data", help="folder for rows and stores")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results", help="folder for the JSON")
    parser.add_argument("--strict", action="store_true", help="exit with 3 when a bar is missed")
    given = parser.parse_args(arguments)
    given.peers = [name for name in given.peers.split(",") if name not in ("", "none")]
    if given.before and "before" not in given.peers:
        given.peers.append("before")
    unknown = [name for name in given.peers if name not in PEERS]
    if unknown:
        parser.error(f"no peer {unknown[0]!r}: there are {', '.join(PEERS)}")
    if "before" in given.peers and not given.before:
        parser.error("the peer before needs --before PROGRAM")
    given.size = f"{float(given.size):g}"
    given.atoll = given.atoll.resolve()
    return given


def module(name):
    return importlib.import_module(f"suites.{suites.MODULES.get(name, name)}")


def chosen(names, text):
    """Those of `names` that `text` lists, in the order of the suite; a range goes from one of them to another."""
    if text is None:
        return list(names)
    order, found = list(names), set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in names or (last or first) not in names:
            sys.exit(f"bench: no query {part!r}: there are {', '.join(order)}")
        found.update(order[order.index(first):order.index(last or first) + 1])
    return [name for name in order if name in found]


def wording(query, engine):
    """The text of a query for an engine, on one line."""
    if not isinstance(query, str):
        own = "atoll" if engine == "before" else "duckdb" if engine.startswith("duckdb") else engine
        query = query.get(own, query.get(""))
    return query and " ".join(query.split())


def kind(made):
    """What makes the rows: another generator makes others, another text of a query does not."""
    parts = []
    for file in (pathlib.Path(made.__file__), HERE / "suites/draw.py"):
        for statement in ast.parse(file.read_text()).body:
            targets = getattr(statement, "targets", [])
            if not any(getattr(target, "id", "").startswith("QUERIES") for target in targets):
                parts.append(ast.dump(statement))
    return hashlib.sha256("".join(parts[1:]).encode()).hexdigest()[:8]


def generate(made, name, folder, given):
    """The rows as Parquet, written once."""
    import pyarrow.parquet

    from suites.draw import Draw

    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    (part / "parquet").mkdir(parents=True)
    (part / "stores").mkdir()
    digests = {}
    for table, rows in made.tables(Draw(given.seed), float(given.size)):
        file = part / "parquet" / f"{table}.parquet"
        pyarrow.parquet.write_table(rows, file)
        digests[table] = {"rows": rows.num_rows, "digest": hits.digest(file)}
        frame.say(f"{name}: {table}, {rows.num_rows} rows")
        del rows
    (part / "digests.json").write_text(json.dumps(digests, indent=1) + "\n")
    part.rename(folder)


class Atoll(engines.Atoll):
    """The program with a store of the suite's tables, made once; keys are not declared."""

    def __init__(self, name, given, where, types):
        super().__init__(name, given, where / "parquet", where / "stores")
        self.types = types

    def load(self):
        for file in self.files():
            file.unlink(missing_ok=True)
        begun = time.perf_counter()
        for file in sorted(self.data.glob("*.parquet")):
            if own := self.types.get(file.stem):
                columns = ", ".join(f"{column} {kinds[0]}" for column, kinds in own.items())
                casts = ", ".join(f"{column}::{kinds[0]}" for column, kinds in own.items())
                self.call("sql", self.store, "--create",
                          f"create table {file.stem} ({columns}); insert into {file.stem} select {casts} from '{file}'")
            else:
                self.call("import", self.store, file.stem, file)
        return {"seconds": time.perf_counter() - begun, "bytes": sum(f.stat().st_size for f in self.files() if f.exists())}


class Peer(engines.Peer):
    """An engine of worker.py; of those only DuckDB has a store of its own."""

    def __init__(self, name, given, where, types):
        super().__init__(name, given, where / "parquet", where / "stores")
        self.types = types

    def files(self):
        return [self.store.with_suffix(".duckdb")] if self.name == "duckdb" else []

    def load(self):
        import duckdb

        begun = time.perf_counter()
        with duckdb.connect(str(self.files()[0])) as made:
            for file in sorted(self.data.glob("*.parquet")):
                own = self.types.get(file.stem, {})
                listed = ", ".join(f"{column}::{kinds[1]} as {column}" for column, kinds in own.items()) or "*"
                made.execute(f"create table {file.stem} as select {listed} from '{file}'")
        return {"seconds": time.perf_counter() - begun, "bytes": self.files()[0].stat().st_size}


def stores(peers, where):
    """Stores that are not there yet are made; what that took is kept beside them."""
    loads = {}
    for peer in peers:
        kept = where / "stores" / f"{peer.name}.json"
        if peer.files() and (not kept.exists() or not peer.files()[0].exists()):
            for file in peer.files():
                file.unlink(missing_ok=True)
            kept.write_text(json.dumps(peer.load()))
        if kept.exists():
            loads[peer.name] = [json.loads(kept.read_text())]
    return loads


def number(value):
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None


def cell(value, types):
    """A value as it is compared: numbers as numbers, moments without what says nothing."""
    if value is None or isinstance(value, bool):
        return value
    if any(re.match(r"u?int|bigint|smallint|hugeint|decimal|numeric|double|real|float", name) for name in types):
        found = number(value)
        if found is not None:
            return found
    text = str(value) if not isinstance(value, (dict, list)) else json.dumps(value, sort_keys=True)
    if re.match(r"\d{4}-\d\d-\d\d[T ]", text):
        text = re.sub(r"(\.\d*?)0+$", r"\1", re.sub(r"(Z|\+00(:00)?)$", "", text.replace("T", " "))).rstrip(".")
        text = text.removesuffix(" 00:00:00")
    return text


def near(one, other):
    if not isinstance(one, Decimal) or not isinstance(other, Decimal):
        return one == other
    if not one.is_finite() or not other.is_finite():
        return str(one) == str(other)
    return abs(one - other) <= max(ABSOLUTE, RELATIVE * max(abs(one), abs(other)))


def difference(got, wanted, ordered):
    """What differs between two answers, in words; empty when they are the same. Doubles may differ by a billionth."""
    width = len(wanted["types"])
    if len(got["types"]) != width:
        return f"{len(got['types'])} columns, {width} wanted"
    types = list(zip(got["types"], wanted["types"]))
    about = [any(re.match("double|real|float", name) for name in pair) for pair in types]
    first, second = ([[cell(v, t) for v, t in zip(row, types)] for row in answer["rows"]] for answer in (got, wanted))
    if len(first) != len(second):
        return f"{len(first)} rows, {len(second)} wanted"

    def rank(row):
        exact = [str(v) if not isinstance(v, Decimal) else f"{v.normalize():f}" for v, a in zip(row, about) if not a]
        return exact, [f"{v:.6g}" if isinstance(v, Decimal) else str(v) for v, a in zip(row, about) if a]

    def first_apart(one, other):
        for row, wants in zip(one, other):
            if not all(near(v, w) if a else v == w for v, w, a in zip(row, wants, about)):
                return f"row {shown(row)} stands where {shown(wants)} is wanted"
        return ""

    apart = first_apart(first, second)
    if not apart:
        return ""
    unordered = first_apart(sorted(first, key=rank), sorted(second, key=rank))
    return unordered or (ordered and f"the rows are right, but not in the order of ORDER BY: {apart}") or ""


def shown(row):
    return "(" + ", ".join(str(value) for value in row)[:150] + ")"


def is_ordered(sql):
    """Whether ORDER BY stands outside all parentheses."""
    depth, outer = 0, []
    for letter in sql:
        depth += (letter == "(") - (letter == ")")
        outer.append(letter if depth == 0 else " ")
    return "order by" in "".join(outer).lower()


def measure(name, query, peers, repeat, turn_of):
    """One query, repeat by repeat, each engine once. An engine that fails is not asked again."""
    timings, failed = [], set()
    for turn in range(repeat + 1):
        answers = {}
        for position, peer in enumerate(frame.rotated(peers, turn_of + turn)):
            if peer.name in failed:
                continue
            entry = {"query": name, "repeat": turn, "engine": peer.name, "position": position}
            timings.append(entry)
            sql = wording(query, peer.name)
            if sql is None:
                entry["error"] = "has no words for it"
            else:
                answers[peer.name] = frame.ask(peer, sql, entry), entry
            if "error" in entry:
                failed.add(peer.name)
                frame.say(f"{name}: {peer.name} ERROR: {entry['error'][:300]}")
        check(name, query, answers)
    return timings


def check(name, query, answers):
    """Answers are compared with those of the first peer that has one, DuckDB if it is among them."""
    order = sorted((one for one in answers if answers[one][0]), key=lambda one: (one != "duckdb", one in ("atoll", "before")))
    for one in order[1:]:
        answer, entry = answers[one]
        found = difference(answer, answers[order[0]][0], is_ordered(wording(query, one)))
        if found:
            entry["wrong"] = f"not what {order[0]} answers: {found}"
            frame.say(f"{name}: {one} DIFFERS from {order[0]}: {found}")


def note_usage(peers, usage):
    """Keeps the most memory that each engine has taken, whether or not it was started again."""
    for peer in peers:
        if peer.process:
            found = peer.process.usage()
            found["peak_memory_bytes"] = max(found["peak_memory_bytes"] or 0, usage.get(peer.name, found)["peak_memory_bytes"] or 0)
            usage[peer.name] = found


def described(where, given, loads, versions, texts, usage, timings, begun):
    return {
        "benchmark": given.suite, "date": begun.isoformat(timespec="seconds"), "machine": machine.describe(),
        **machine.commit(ROOT), "size": given.size, "seed": given.seed, "threads": given.threads, "repeat": given.repeat,
        "limit_seconds": given.limit, "data": json.loads((where / "digests.json").read_text()), "versions": versions,
        "python": sys.version.split()[0], "loads": loads, "usage": usage, "queries": texts, "timings": timings,
    }


def main():
    given = options()
    made = module(given.suite)
    where = given.data / f"{given.suite}-{given.size}-seed{given.seed}-{kind(made)}"
    if not where.exists():
        generate(made, given.suite, where, given)
    names = ["atoll", *given.peers]
    types = getattr(made, "TYPES", {})
    peers = [(Atoll if name in ("atoll", "before") else Peer)(name, given, where, types) for name in names]
    loads = stores(peers, where)
    begun = datetime.datetime.now(datetime.timezone.utc)
    timings, usage, queries = [], {}, chosen(made.QUERIES, given.queries)
    try:
        versions = {peer.name: peer.open() for peer in peers}
        for turn, name in enumerate(queries):
            timings += measure(name, made.QUERIES[name], peers, given.repeat, turn)
            frame.show_progress(name, timings)
            note_usage(peers, usage)
    except engines.Failed as error:
        sys.exit(f"bench: {error}")
    finally:
        for peer in peers:
            peer.close()
    texts = {name: {engine: wording(made.QUERIES[name], engine) for engine in names} for name in queries}
    summary = frame.summarise(loads, timings, names)
    frame.print_table(summary, names)
    print_losers(summary, given.peers)
    summary["bars"] = bars(summary, given.suite, set(queries) == set(made.QUERIES))
    frame.print_bars(summary["bars"])
    peaks = {name: used["peak_memory_bytes"] for name, used in usage.items() if used["peak_memory_bytes"]}
    print("peak memory: " + ", ".join(f"{name} {peak / 1e6:.0f} MB" for name, peak in peaks.items()))
    result = described(where, given, loads, versions, texts, usage, timings, begun)
    path = frame.save({**result, "summary": summary}, begun, given.results, f"{given.suite}-")
    print(f"wrote {path}")
    bad = [t for t in timings if "wrong" in t or ("error" in t and t["engine"] == "atoll")]
    for query in dict.fromkeys(t["query"] for t in bad):
        first = next(t for t in bad if t["query"] == query)
        print(f"WRONG OR MISSING {query} ({first['engine']}): {first.get('wrong') or first['error']}"[:400])
    return 1 if bad else 3 if given.strict and any(bar["passed"] is False for bar in summary["bars"]) else 0


def bars(summary, name, all_asked):
    """As `frame.print_bars` shows them, Atoll's time over DuckDB's; nothing is passed or missed when queries were left out."""
    found, (mean, worst) = summary["ratios"].get("duckdb") if all_asked else None, BARS[name]
    rows = (("geometric mean against DuckDB", "geometric_mean", 1 / mean), ("worst query against DuckDB", "worst", 1 / worst))
    return [{"name": title, "ratio": found and found[key], "at_most": limit, "passed": found and found[key] <= limit} for title, key, limit in rows]


def print_losers(summary, peers):
    """The queries for which a peer takes less than 0.8 of Atoll's time, the worst first."""
    for peer in peers:
        ratios = {row["query"]: frame.ratio(row["engines"][peer], row["engines"]["atoll"]) for row in summary["queries"]}
        slow = sorted((ratio, query) for query, ratio in ratios.items() if ratio and ratio < 0.8)
        print(f"{peer} takes less than 0.8 of Atoll's time: " + (", ".join(f"{query} {ratio:.2f}" for ratio, query in slow) or "never"))


def elsewhere(arguments):
    """Suites with a program of their own: its options, with the peers as it calls them."""
    arguments = [part for word in arguments for part in (word.split("=", 1) if re.match("--(suite|peers)=", word) else [word])]
    if "--suite" not in arguments[:-1]:
        return None
    at = arguments.index("--suite")
    name, rest = arguments[at + 1], arguments[:at] + arguments[at + 2:]
    if name not in OTHERS:
        return None
    if "--peers" in rest:
        at = rest.index("--peers")
        peers = rest[at + 1]
        rest[at:at + 2] = ["--engines", f"atoll,{peers}"] if name == "tpch" else []
        if name != "tpch" and peers != "duckdb":
            sys.exit(f"bench: {OTHERS[name]} has one peer, duckdb")
    return [sys.executable, str(HERE / OTHERS[name]), *rest]


def self_test():
    """Run by `python3 bench/suite.py --self-test`: what needs no engine."""
    import suite_test

    suite_test.run()


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif command := elsewhere(sys.argv[1:]):
        os.execv(command[0], command)
    else:
        sys.exit(main())
