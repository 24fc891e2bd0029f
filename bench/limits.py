#!/usr/bin/env python3
"""What each operator has in memory under a small limit: a process for each query over ten million rows, the peak of its
resident set beside what it may have, and its time beside that without a limit.

    python3 bench/limits.py --atoll target/release/atoll [--rows 10000000] [--limit 64] [--only PART] [--executor stream]

A query is within its limit if the process stays below 1.2 times the limit and the 128 MiB of the program (atoll::BASE_BYTES).
The exit status is 1 if one is not, or fails.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import machine

BASE = 128
LONGEST = 300  # seconds for a query
FACTOR = 1.2

TABLES = """
create table t (id bigint not null, k bigint, d double, s varchar, n bigint, few varchar, day date);
insert into t select value, (value * 7919) % {rows}, value / 3.0,
  'a text of the row with the number ' || ((value * 31) % {rows}), value % 100,
  'label ' || value % 50, date '2020-01-01' + (value % 1500)::int
  from generate_series(0, {rows} - 1) g(value);
create table doc (id bigint, j jsonb);
insert into doc select value, ('{{"a": ' || value || ', "b": "text ' || value % 1000 || '"}}')::jsonb
  from generate_series(0, {rows} / 10 - 1) g(value);
"""

QUERIES = {
    "scan": "select sum(d), max(s), count(*) from t where n < 90",
    "result": "select * from t",
    "sort by a number": "select * from t order by k",
    "sort by a text": "select * from t order by s",
    "top 100": "select * from t order by s limit 100",
    "top 3 by group": "select * from (select *, row_number() over (partition by n order by k) r from t) where r <= 3",
    "groups by a number": "select k, sum(d), count(*) from t group by k",
    "groups by a text": "select s, count(*) from t group by s",
    "groups by a text and a number": "select s, n, max(d) from t group by s, n",
    "groups with distinct": "select n, count(distinct s) from t group by n",
    "count distinct": "select count(distinct s), count(distinct k) from t",
    "rollup": "select n, few, k % 1000, sum(d) from t group by rollup (n, few, k % 1000)",
    "string_agg": "select k / 10, string_agg(few, ',') from t group by k / 10",
    "median": "select n, percentile_cont(0.5) within group (order by d) from t group by n",
    "median of all": "select percentile_cont(0.5) within group (order by d) from t",
    "quantile of texts": "select percentile_disc(0.5) within group (order by s) from t",
    "quantiles of texts by group": "select n % 4, percentile_disc(0.9) within group (order by s) from t group by n % 4",
    "mode": "select n, mode() within group (order by few) from t group by n",
    "distinct": "select distinct s, n from t",
    "distinct on": "select distinct on (n) * from t order by n, k",
    "join by a number": "select count(*), min(a.d + b.d) from t a join t b on a.id = b.k",
    "join by a text": "select count(*), min(a.d + b.d) from t a join t b on a.s = b.s",
    "join that keeps texts": "select count(*), min(a.s || b.s) from t a join t b on a.s = b.s",
    "left join": "select count(b.id), count(*) from t a left join t b on a.id = b.k + 100",
    "full join": "select count(a.id), count(b.id) from t a full join t b on a.id = b.k + 100",
    "semi join": "select count(*) from t a where exists (select 1 from t b where b.s = a.s and b.n < 50)",
    "anti join": "select count(*) from t a where not exists (select 1 from t b where b.s = a.s and b.n < 50)",
    "band join": "select count(*) from t a join t b on b.id between a.id and a.id + 2",
    "as-of join": "select count(b.id) from t a asof left join t b on a.n = b.n and a.id >= b.k",
    "intersect": "select count(*) from (select s, n from t intersect select s, n from t where n < 60)",
    "except": "select count(*) from (select s, n from t except select s, n from t where n < 60)",
    "union": "select count(*) from (select s from t union select few from t)",
    "window, running sum": "select id, sum(d) over (order by k) from t",
    "window, running sum by group": "select id, sum(d) over (partition by n order by k) from t",
    "window, lag": "select id, lag(d) over (order by k) from t",
    "window, moving average": "select id, avg(d) over (order by k rows between 10 preceding and current row) from t",
    "window, running average": "select id, avg(d) over (order by k) from t",
    "window, share of all": "select id, d / sum(d) over () from t",
    "window, share of a group": "select id, d / sum(d) over (partition by n) from t",
    "window, rank": "select id, rank() over (order by s) from t",
    "window, percent_rank": "select id, percent_rank() over (order by k) from t",
    "window, cume_dist": "select id, cume_dist() over (order by k) from t",
    "window, ntile": "select id, ntile(4) over (order by k) from t",
    "window, last of a group": "select id, last_value(d) over (partition by n order by k "
    "rows between unbounded preceding and unbounded following) from t",
    "recursion": "with recursive r(i) as (select 1 union all select i + 1 from r where i < 1000) "
    "select count(*) from r, t where t.n = r.i",
    "unnest": "select count(*) from t, unnest(array[n, n + 1, n + 2]) u(x)",
    "documents": "select j ->> 'b', count(*), sum((j ->> 'a')::bigint) from doc group by 1",
    "cross join": "select count(*) from (select a.id, b.k from t a, t b limit 20000000)",
    "create table as": "create table copied as select * from t order by s",
    "update": "update t set d = d + 1 where n < 50",
    "delete": "delete from t where k < 1000000",
}
WRITES = ("create", "update", "delete")


def run(atoll, store, query, extra):
    """Seconds, peak of resident memory in MiB, and the message if it failed."""
    command = [atoll, "sql", store, query, "--format", "csv", "--threads", "2", *extra]
    with tempfile.TemporaryFile() as errors:
        begun = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        late = threading.Timer(LONGEST, child.kill)
        late.start()
        _, status, usage = os.wait4(child.pid, 0)
        late.cancel()
        seconds = time.monotonic() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        message = errors.read().decode(errors="replace").strip()
    return seconds, usage.ru_maxrss / 1024, (message or f"killed after {LONGEST} s") if child.returncode else None


def filled(atoll, folder, rows):
    store = str(folder / "limits.atoll")
    subprocess.run([atoll, "sql", store, "--create", TABLES.format(rows=rows)], check=True, stdout=subprocess.DEVNULL)
    return store


def measured(given, store, name, query):
    writes = query.startswith(WRITES)
    limited = [f"--memory-limit={given.limit}MiB", *(["--executor", given.executor] if given.executor else [])]
    used = store
    if writes:
        used = store + ".written"
        for file in (store, store + ".log"):
            subprocess.run(["cp", "--reflink=auto", file, file.replace(store, used)], check=True)
    seconds, peak, failed = run(given.atoll, used, query, limited)
    free = None
    if not writes and not given.no_free:
        free, _, _ = run(given.atoll, store, query, [])
    return {"name": name, "query": query, "seconds": seconds, "peak": peak, "failed": failed, "free": free}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--atoll", default="target/release/atoll")
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--limit", type=int, default=64, help="MiB")
    options.add_argument("--executor", choices=["fused", "stream", "staged"])
    options.add_argument("--only", default="", help="queries whose name has this")
    options.add_argument("--no-free", action="store_true", help="do not run them without a limit")
    options.add_argument("--out", help="write the results here, as JSON")
    given = options.parse_args()
    most = given.limit * FACTOR + BASE
    print(f"{given.rows} rows, limit {given.limit} MiB: a process may have {most:.0f} MiB")
    results = []
    with tempfile.TemporaryDirectory(prefix="atoll-limits-") as folder:
        store = filled(given.atoll, pathlib.Path(folder), given.rows)
        for name, query in QUERIES.items():
            if given.only not in name:
                continue
            result = measured(given, store, name, query)
            results.append(result)
            slower = f"{result['seconds'] / result['free']:6.1f}x" if result["free"] else "       "
            state = "FAILED" if result["failed"] else "OVER" if result["peak"] > most else ""
            print(f"{name:32} {result['peak']:7.0f} MiB {result['seconds']:8.2f} s {slower}  {state}", flush=True)
            if result["failed"]:
                print("    " + result["failed"].splitlines()[0][:200])
    bad = [r["name"] for r in results if r["failed"] or r["peak"] > most]
    print(f"{len(results) - len(bad)} of {len(results)} within the limit")
    if given.out:
        text = {"machine": machine.describe(), "rows": given.rows, "limit": given.limit, "results": results}
        pathlib.Path(given.out).write_text(json.dumps(text, indent=1) + "\n")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
