"""One wide table of visits to pages, as web analytics has it, and 36 queries in the manner of ClickBench: many groups by
numbers and by texts, different values, searches in texts, ten rows of millions. Atoll and DuckDB in turn, hot, each its
own store.

    bench/.venv/bin/python bench/hits.py [--rows 5000000] [--repeat 5] [--threads 2] [--atoll PATH] [--data DIRECTORY]

The data are made here, skewed, without a seed: what is compared are ratios within a run, and each answer with DuckDB's.
The exit status is 1 when an answer was missing or not DuckDB's.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import duckdb

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


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "target/release/atoll")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "bench/data")
    return parser.parse_args()


def stores(given):
    """The same rows in a store of each, made once."""
    folder = given.data / f"hits{given.rows}"
    folder.mkdir(parents=True, exist_ok=True)
    parquet, own, peer = folder / "hits.parquet", folder / "hits.atoll", folder / "hits.duckdb"
    if not parquet.exists():
        duckdb.connect().execute(f"copy ({TABLE.format(rows=given.rows)}) to '{parquet}' (format parquet)")
        own.unlink(missing_ok=True)
        peer.unlink(missing_ok=True)
    if not own.exists():
        subprocess.run([given.atoll, "import", own, "hits", parquet], check=True, stderr=subprocess.DEVNULL)
    if not peer.exists():
        with duckdb.connect(str(peer)) as made:
            made.execute(f"create table hits as from '{parquet}'")
    return own, peer


def plain(value):
    """As both engines say it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value).replace("T", " ").removesuffix(".000000").removesuffix(".0")


def main():
    given = options()
    own, peer = stores(given)
    command = [given.atoll, "sql", own, "--threads", str(given.threads), "--json"]
    atoll = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    other = duckdb.connect(str(peer), read_only=True)
    other.execute(f"set threads = {given.threads}")
    ratios, wrong = [], 0
    for number, sql in enumerate(QUERIES.strip().splitlines()):
        times = ([], [])
        for repeat in range(given.repeat + 1):
            atoll.stdin.write(sql + ";\n")
            atoll.stdin.flush()
            answer = json.loads(atoll.stdout.readline())
            begun = time.perf_counter()
            wanted = other.sql(sql).to_arrow_table()
            seconds = time.perf_counter() - begun
            if "rows" not in answer:
                break
            if repeat:
                times[0].append(answer["seconds"] * 1e3)
                times[1].append(seconds * 1e3)
        rows = sorted([plain(value) for value in row] for row in answer.get("rows", []))
        expected = zip(*(column.to_pylist() for column in wanted.columns))
        same = rows == sorted([plain(value) for value in row] for row in expected)
        wrong += not same
        if not times[0]:
            print(f"{number:3}  no answer: {answer.get('error')}")
            continue
        own_ms, peer_ms = map(statistics.median, times)
        ratios.append(peer_ms / own_ms)
        said = "" if same else "ANSWERS DIFFER  "
        print(f"{number:3} {own_ms:9.1f} {peer_ms:9.1f} {ratios[-1]:6.2f}x  {said}{sql[:90]}", flush=True)
    print(f"DuckDB's time, times Atoll's: geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")
    atoll.stdin.close()
    atoll.wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
