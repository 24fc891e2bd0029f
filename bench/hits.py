"""One wide table of visits to pages, as web analytics has it, and 36 queries in the manner of ClickBench: many groups by
numbers and by texts, different values, searches in texts, ten rows of millions. Atoll and DuckDB in turn, hot, each its
own store.

    bench/.venv/bin/python bench/hits.py [--rows 5000000] [--repeat 5] [--threads 2] [--seed 1] [--atoll PATH] [--data DIRECTORY]

The data are made here, skewed, from a seed: the same seed gives the same rows with the same version of DuckDB, and their
digest stands in the results. What is compared are ratios within a run, and each answer with DuckDB's. Every single timing
goes to bench/results, with date, machine, commit and versions.
The exit status is 1 when an answer was missing or not DuckDB's.
"""

import argparse
import datetime
import hashlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent

TABLE = """
select case when random() < 0.01 then (random() * 30)::smallint else 0 end as adv,
  (case when random() < 0.3 then 1920 else 1000 + random() * 900 end)::smallint as width,
  (pow(random(), 3) * 1000000)::bigint * 7919 + 12345678901 as userid,
  timestamp '2013-07-01' + to_seconds((i / 100.0)::bigint) as eventtime,
  date '2013-07-01' + (i / 300000)::int as eventdate,
  (random() * 5000)::int as regionid, (pow(random(), 2) * 9000)::int as counterid, (random() * 255)::smallint as osid,
  case when random() < 0.85 then '' else 'phrase ' || (pow(random(), 3) * 200000)::int || ' about things' end as searchphrase,
  'http://example' || (pow(random(), 2) * 3000)::int || '.com/page/' || (pow(random(), 3) * 300000)::int
    || (case when random() < 0.02 then '?google=1' else '' end) as url,
  case when random() < 0.9 then '' else 'Model ' || (random() * 150)::int end as phone,
  i::bigint * 1000003 as watchid, random() < 0.5 as isrefresh, (random() * 4000000000)::bigint as clientip
from range({rows}) as all_rows(i)
"""

QUERIES = """
select count(*) from hits
select count(*) from hits where adv <> 0
select sum(adv), count(*), avg(width) from hits
select avg(userid) from hits
select count(distinct userid) from hits
select count(distinct searchphrase) from hits
select min(eventdate), max(eventdate) from hits
select adv, count(*) from hits where adv <> 0 group by adv order by count(*) desc
select regionid, count(distinct userid) as u from hits group by regionid order by u desc, regionid limit 10
select regionid, sum(adv), count(*) as c, avg(width), count(distinct userid) from hits group by regionid order by c desc, regionid limit 10
select phone, count(distinct userid) as u from hits where phone <> '' group by phone order by u desc, phone limit 10
select searchphrase, count(*) as c from hits where searchphrase <> '' group by searchphrase order by c desc, searchphrase limit 10
select searchphrase, count(distinct userid) as u from hits where searchphrase <> '' group by searchphrase order by u desc, searchphrase limit 10
select osid, searchphrase, count(*) as c from hits where searchphrase <> '' group by osid, searchphrase order by c desc, searchphrase, osid limit 10
select userid, count(*) from hits group by userid order by count(*) desc, userid limit 10
select userid, searchphrase, count(*) from hits group by userid, searchphrase order by count(*) desc, userid, searchphrase limit 10
select userid, extract(minute from eventtime) as m, searchphrase, count(*) from hits group by userid, m, searchphrase order by count(*) desc, userid, m, searchphrase limit 10
select userid from hits where userid = 12345678901
select count(*) from hits where url like '%google%'
select searchphrase, min(url), count(*) as c from hits where url like '%google%' and searchphrase <> '' group by searchphrase order by c desc, searchphrase limit 10
select * from hits where url like '%google%' order by eventtime, watchid limit 10
select searchphrase from hits where searchphrase <> '' order by eventtime, watchid limit 10
select searchphrase from hits where searchphrase <> '' order by searchphrase limit 10
select counterid, avg(length(url)) as l, count(*) as c from hits where url <> '' group by counterid having count(*) > 1000 order by l desc, counterid limit 25
select sum(width), sum(width + 1), sum(width + 2), sum(width + 3), sum(width + 4), sum(width + 5), sum(width + 6), sum(width + 7), sum(width + 8), sum(width + 9) from hits
select osid, clientip, count(*) as c, sum(isrefresh::int), avg(width) from hits where searchphrase <> '' group by osid, clientip order by c desc, osid, clientip limit 10
select watchid, clientip, count(*) as c, sum(isrefresh::int), avg(width) from hits group by watchid, clientip order by c desc, watchid, clientip limit 10
select url, count(*) as c from hits group by url order by c desc, url limit 10
select clientip, clientip - 1, clientip - 2, clientip - 3, count(*) as c from hits group by clientip, clientip - 1, clientip - 2, clientip - 3 order by c desc, clientip limit 10
select url, count(*) as v from hits where counterid = 62 and eventdate >= date '2013-07-01' and eventdate <= date '2013-07-31' and isrefresh = false and url <> '' group by url order by v desc, url limit 10
select date_trunc('minute', eventtime) as m, count(*) as v from hits where counterid = 62 and eventdate >= date '2013-07-14' and eventdate <= date '2013-07-15' group by m order by m limit 10 offset 100
select eventdate, count(*), avg(width) from hits group by eventdate order by eventdate
select searchphrase, min(url), count(*) as c, count(distinct userid) from hits where url not like '%.com/page/1%' and searchphrase <> '' group by searchphrase order by c desc, searchphrase limit 10
select regexp_replace(url, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1') as k, avg(length(url)) as l, count(*) as c, min(url) from hits where url <> '' group by k having count(*) > 1000 order by l desc, k limit 25
select 1, url, count(*) as c from hits group by 1, url order by c desc, url limit 10
select counterid, case when adv = 0 and osid = 0 then searchphrase else '' end as src, url as dst, count(*) as v from hits where eventdate >= date '2013-07-03' and isrefresh = false group by counterid, src, dst order by v desc, counterid, src, dst limit 10 offset 100
"""


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="draws the rows (default 1)")
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "target/release/atoll")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "bench/data")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results", help="where raw results go")
    return parser.parse_args(arguments)


def folder(given):
    """Where the data are: another table, other rows or another seed lie elsewhere."""
    kind = hashlib.sha256(TABLE.encode()).hexdigest()[:8]
    return given.data / f"hits{given.rows}-seed{given.seed}-{kind}"


def generate(path, rows, seed):
    """Writes the rows as Parquet. One thread draws them, in their order: so the seed decides."""
    import duckdb

    with duckdb.connect() as made:
        made.execute("set threads = 1")
        made.execute(f"select setseed({seed % 1_000_003 / 1_000_003!r})")
        new = path.with_suffix(".new")
        made.execute(f"copy ({TABLE.format(rows=rows)}) to '{new}' (format parquet)")
    new.rename(path)


def digest(path):
    """What the rows are, whatever the file looks like: of two runs with one digest the data were the same."""
    import duckdb

    with duckdb.connect() as asked:
        names = [row[0] for row in asked.execute(f"describe select * from '{path}'").fetchall()]
        texts = ", ".join(f"coalesce({name}::varchar, '')" for name in names)
        sums = f"select sum(('0x' || md5(concat_ws('|', {texts}))[:12])::bigint), count(*) from '{path}'"
        found = asked.execute(sums).fetchone()
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def stores(given):
    """The same rows in a store of each, made once."""
    import duckdb

    where = folder(given)
    where.mkdir(parents=True, exist_ok=True)
    parquet, own, peer = where / "hits.parquet", where / "hits.atoll", where / "hits.duckdb"
    if not parquet.exists():
        generate(parquet, given.rows, given.seed)
        own.unlink(missing_ok=True)
        peer.unlink(missing_ok=True)
    if not own.exists():
        subprocess.run([given.atoll, "import", own, "hits", parquet], check=True, stderr=subprocess.DEVNULL)
    if not peer.exists():
        with duckdb.connect(str(peer)) as made:
            made.execute(f"create table hits as from '{parquet}'")
    return parquet, own, peer


def plain(value):
    """As both engines say it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    try:
        number = float(value)
        # Whole numbers that come as text or float are compared to their last digit, others to nine.
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else f"{number:.9g}"
    except (TypeError, ValueError, OverflowError):
        return str(value).replace("T", " ").removesuffix(".000000").removesuffix(".0")


class Atoll:
    """One process that is asked all queries; its seconds are its own, from the text to the last row."""

    def __init__(self, given, store):
        command = [given.atoll, "sql", store, "--threads", str(given.threads), "--json"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, sql):
        self.process.stdin.write(sql + ";\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "rows" not in answer:
            return None, answer.get("error", "no answer")
        return answer["seconds"], answer["rows"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Duckdb:
    """DuckDB in this process."""

    def __init__(self, given, store):
        import duckdb

        self.database = duckdb.connect(str(store), read_only=True)
        self.database.execute(f"set threads = {given.threads}")

    def ask(self, sql):
        begun = time.perf_counter()
        wanted = self.database.sql(sql).to_arrow_table()
        seconds = time.perf_counter() - begun
        return seconds, [list(row) for row in zip(*(column.to_pylist() for column in wanted.columns))]

    def close(self):
        self.database.close()


def same(rows, wanted):
    first, second = (sorted([plain(value) for value in row] for row in one) for one in (rows, wanted))
    return first == second


def measure(number, sql, engines, repeat):
    """One query, the engines in turn; repeat 0 warms up, is checked, and does not count."""
    timing = {"query": number, "sql": sql, "seconds": {name: [] for name in engines}, "wrong": None}
    for turn in range(repeat + 1):
        answers = {}
        # Who begins changes each time.
        for name in sorted(engines, reverse=bool(turn % 2)):
            seconds, rows = engines[name].ask(sql)
            answers[name] = rows
            if seconds is None:
                timing["wrong"] = f"{name}: {rows}"
                return timing
            if turn:
                timing["seconds"][name].append(seconds)
        if not same(answers["atoll"], answers["duckdb"]):
            timing["wrong"] = "answers differ"
    return timing


def summarise(timings):
    """Medians and how many times Atoll's time DuckDB took, of the queries that were answered right."""
    ratios = {}
    for timing in timings:
        if timing["wrong"] is None and all(timing["seconds"].values()):
            own, peer = (statistics.median(timing["seconds"][name]) for name in ("atoll", "duckdb"))
            ratios[timing["query"]] = peer / own
    mean = math.exp(statistics.fmean(map(math.log, ratios.values()))) if ratios else None
    return {"duckdb_over_atoll": ratios, "geometric_mean": mean, "queries": len(ratios), "of": len(timings),
            "duckdb_faster": sorted(query for query, ratio in ratios.items() if ratio < 1)}


def line(timing, ratio):
    if ratio is None:
        return f"{timing['query']:3}  {timing['wrong']}  {timing['sql'][:90]}"
    own, peer = (statistics.median(timing["seconds"][name]) * 1e3 for name in ("atoll", "duckdb"))
    return f"{timing['query']:3} {own:9.1f} {peer:9.1f} {ratio:6.2f}x  {timing['sql'][:90]}"


def save(result, begun, where):
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"{begun:%Y-%m-%dT%H%M%S}-hits-{machine.slug(result['machine'])}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def main():
    given = options()
    import duckdb

    parquet, own, peer = stores(given)
    described = machine.describe()
    begun = datetime.datetime.now(datetime.timezone.utc)
    engines = {"atoll": Atoll(given, own), "duckdb": Duckdb(given, peer)}
    timings = []
    try:
        for number, sql in enumerate(QUERIES.strip().splitlines()):
            timings.append(measure(number, sql, engines, given.repeat))
            print(line(timings[-1], summarise(timings[-1:])["duckdb_over_atoll"].get(number)), flush=True)
    finally:
        for engine in engines.values():
            engine.close()
    version = machine.output(given.atoll, "--version").removeprefix("atoll ")
    summary = summarise(timings)
    path = save({
        "benchmark": "hits", "date": begun.isoformat(timespec="seconds"), "machine": described, **machine.commit(ROOT),
        "rows": given.rows, "seed": given.seed, "data_digest": digest(parquet), "threads": given.threads,
        "repeat": given.repeat, "versions": {"atoll": version, "duckdb": duckdb.__version__},
        "python": sys.version.split()[0], "summary": summary, "timings": timings,
    }, begun, given.results)
    if summary["geometric_mean"] is not None:
        print(f"DuckDB's time, times Atoll's: geometric mean {summary['geometric_mean']:.2f} of {summary['queries']} queries; "
              f"DuckDB is faster for {len(summary['duckdb_faster'])}")
    print(f"wrote {path}")
    return 0 if summary["queries"] == summary["of"] else 1


def self_test():
    """Run by `python3 bench/hits.py --self-test`: what needs no engine."""
    assert same([[1, "a"], [2, None]], [[2, None], [1, "a"]]) and not same([[1234567]], [[1234568]])
    assert same([["2.50"]], [[2.5]]) and same([["3"]], [[3.0]]) and not same([[0.1]], [[0.11]])
    assert same([[1 / 3]], [[0.33333333333]]) and not same([[1]], [[1], [1]])
    right = {"query": 0, "sql": "", "seconds": {"atoll": [1.0, 3.0, 2.0], "duckdb": [4.0, 4.0, 4.0]}, "wrong": None}
    wrong = {**right, "query": 1, "wrong": "answers differ"}
    summary = summarise([right, wrong])
    assert summary["duckdb_over_atoll"] == {0: 2.0} and (summary["queries"], summary["of"]) == (1, 2)
    assert summarise([wrong])["geometric_mean"] is None, "nothing measured is no figure"
    one, other = (folder(options(["--seed", seed])) for seed in ("1", "2"))
    assert one != other and one != folder(options(["--rows", "7"])), "data of another seed are other data"
    import tempfile

    with tempfile.TemporaryDirectory() as where:
        begun = datetime.datetime(2026, 1, 2, 3, 4, 5)
        path = save({"machine": machine.describe(), **machine.commit(ROOT)}, begun, pathlib.Path(where))
        kept = json.loads(path.read_text())
        assert path.name.startswith("2026-01-02T030405-hits-") and "commit" in kept and kept["machine"]["cpu"]
        generated(pathlib.Path(where))
    print("hits: self-test passed")


def generated(where):
    """The seed decides the rows; checked where DuckDB is installed."""
    try:
        import duckdb  # noqa: F401
    except ImportError:
        print("hits: NOT CHECKED that a seed gives the same rows, duckdb is not installed")
        return
    digests = []
    for number, seed in enumerate((1, 1, 2)):
        path = where / f"{number}.parquet"
        generate(path, 20_000, seed)
        digests.append(digest(path))
    assert digests[0] == digests[1] != digests[2], digests


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        sys.exit(main())
