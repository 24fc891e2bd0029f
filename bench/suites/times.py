"""Time series as PostgreSQL users ask them: TSBS's devops queries, last points in five spellings, buckets, moving averages,
gaps, tops of groups, as-of joins. Size 1: 100 hosts that report each 10 seconds for three days (2.6 million rows, in
their order of arrival), 20,000 events on them, and of a market 500,000 quotes and 50,000 trades."""

import numpy
import pyarrow

from suites.draw import moments, take

BEGIN = "2016-01-01"
METRICS = ("usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq")


def tables(draw, size):
    hosts, steps = max(int(100 * size), 10), 3 * 8640
    yield "tags", machines(draw.of("tags"), hosts)
    yield "cpu", readings(draw.of("cpu"), hosts, steps)
    yield "events", events(draw.of("events"), int(20_000 * size), hosts, steps * 10)
    symbols = [f"S{n:03}" for n in range(100)]
    yield "quotes", market(draw.of("quotes"), int(500_000 * size), symbols, "bid", "ask")
    yield "trades", market(draw.of("trades"), int(50_000 * size), symbols, "price", "amount")


def machines(draw, hosts):
    texts = lambda word, end: take([f"{word}{n}" for n in range(end)], draw.below(end, hosts))  # noqa: E731
    return pyarrow.table({
        "id": numpy.arange(hosts, dtype="int32"), "hostname": pyarrow.array([f"host_{n}" for n in range(hosts)]),
        "region": draw.choice(["eu-central-1", "us-east-1", "us-west-2", "ap-south-1"], hosts), "datacenter": texts("dc-", 8),
        "rack": texts("rack-", 40), "os": draw.choice(["Ubuntu16.10", "Ubuntu15.10", "Debian9"], hosts),
        "team": draw.choice(["SF", "LON", "NYC", "CHI"], hosts), "service": texts("service-", 20),
    })


def readings(draw, hosts, steps):
    """A walk for each host and metric, at the moments that all share; one in 500 is missing, in runs."""
    runs = draw.chance(0.0005, (steps, hosts))
    missing = runs.copy()
    for after in range(1, 4):
        missing[after:] |= runs[:-after]
    here = ~missing.ravel()
    host = numpy.tile(numpy.arange(hosts, dtype="int32"), steps)[here]
    columns = {"time": moments(BEGIN, numpy.repeat(numpy.arange(steps) * 10, hosts)[here]), "tags_id": host,
               "hostname": take([f"host_{n}" for n in range(hosts)], host)}
    for metric in METRICS:
        walk = numpy.cumsum(draw.random.normal(0, 1, (steps, hosts)), axis=0) + draw.random.random(hosts) * 100
        # Reflected at 0 and 100, so that it stays a share of the time.
        folded = 100 - numpy.abs(100 - walk % 200)
        columns[metric] = numpy.round(folded.ravel()[here], 2)
    return pyarrow.table(columns)


def events(draw, rows, hosts, seconds):
    when = numpy.sort(draw.random.random(rows)) * seconds
    return pyarrow.table({
        "id": numpy.arange(rows, dtype="int32"), "time": moments(BEGIN, when), "tags_id": draw.zipf(hosts, rows, 0.7).astype("int32"),
        "kind": draw.choice(["deploy", "restart", "alarm", "login"], rows, [1, 1, 4, 10]), "seconds": draw.below(600, rows).astype("int32"),
    })


def market(draw, rows, symbols, first, second):
    symbol = draw.zipf(len(symbols), rows, 0.9, scattered=False)
    price = numpy.round(20 + symbol + draw.random.normal(0, 2, rows), 2)
    return pyarrow.table({
        "time": moments(BEGIN, numpy.sort(draw.random.random(rows)) * 86_400), "symbol": take(symbols, symbol), first: price,
        second: numpy.round(price + draw.random.random(rows), 2) if second == "ask" else draw.below(1_000, rows) + 1,
    })


def every(template, metrics=METRICS):
    return ", ".join(template.format(m=metric) for metric in metrics)


DAY = "time >= timestamp '2016-01-02 00:00:00' and time < timestamp '2016-01-03 00:00:00'"
HOUR = "time >= timestamp '2016-01-02 04:10:00' and time < timestamp '2016-01-02 05:10:00'"
HALF = "time >= timestamp '2016-01-01 08:30:00' and time < timestamp '2016-01-01 20:30:00'"
EIGHT = "hostname in ('host_1', 'host_2', 'host_3', 'host_4', 'host_5', 'host_6', 'host_7', 'host_8')"
# Buckets of other lengths than a unit's: the engines have other names for the function.
FIVE = {"": "date_bin('5 minutes', time, timestamp '2016-01-01')", "duckdb": "time_bucket(interval '5 minutes', time, timestamp '2016-01-01')"}


def binned(text):
    return {engine: text.format(bin=name) for engine, name in FIVE.items()}


QUERIES = {
    # TSBS devops.
    "single1": f"select date_trunc('minute', time) as t, max(usage_user) from cpu where hostname = 'host_7' and {HOUR} group by 1 order by 1",
    "single12": f"select date_trunc('minute', time) as t, max(usage_user) from cpu where hostname = 'host_7' and {HALF} group by 1 order by 1",
    "single8": f"select date_trunc('minute', time) as t, max(usage_user) from cpu where {EIGHT} and {HOUR} group by 1 order by 1",
    "single5of8": f"select date_trunc('minute', time) as t, {every('max({m})', METRICS[:5])} from cpu where {EIGHT} and {HOUR} group by 1 order by 1",
    "maxall1": f"select date_trunc('hour', time) as t, {every('max({m})')} from cpu where hostname = 'host_3' and {HALF} group by 1 order by 1",
    "maxall8": f"select date_trunc('hour', time) as t, {every('max({m})')} from cpu where {EIGHT} and {HALF} group by 1 order by 1",
    "double1": f"select date_trunc('hour', time) as t, hostname, avg(usage_user) from cpu where {HALF} group by 1, 2 order by 1, 2",
    "double5": f"select date_trunc('hour', time) as t, hostname, {every('avg({m})', METRICS[:5])} from cpu where {DAY} group by 1, 2 order by 1, 2",
    "doubleall": f"""with hourly as (select date_trunc('hour', time) as t, tags_id, {every('avg({m}) as {m}')} from cpu where {DAY} group by 1, 2)
        select t, tags.hostname, {every('{m}')} from hourly join tags on hourly.tags_id = tags.id order by t, tags.hostname""",
    "high1": f"select * from cpu where usage_user > 90.0 and {HALF} and hostname = 'host_9' order by time",
    "highall": f"select count(*), avg(usage_system), max(time) from cpu where usage_user > 90.0 and {HALF}",
    "orderlimit": """select date_trunc('minute', time) as t, max(usage_user) from cpu where time < timestamp '2016-01-03 11:00:00'
        group by t order by t desc limit 5""",
    # The last point of each host.
    "last_on": "select distinct on (hostname) hostname, time, usage_user, usage_system from cpu order by hostname, time desc",
    "last_lateral": """select t.hostname, c.time, c.usage_user from tags as t cross join lateral (select time, usage_user from cpu
        where cpu.tags_id = t.id order by time desc limit 1) as c order by t.hostname""",
    "last_number": """select hostname, time, usage_user from (select hostname, time, usage_user,
        row_number() over (partition by hostname order by time desc) as n from cpu) as r where n = 1 order by hostname""",
    "last_max": """select c.hostname, c.time, c.usage_user from cpu as c join (select tags_id, max(time) as time from cpu group by tags_id) as m
        on m.tags_id = c.tags_id and m.time = c.time order by c.hostname""",
    "last_array": "select hostname, (array_agg(usage_user order by time desc))[1] as last from cpu group by hostname order by hostname",
    "last_scalar": """select t.hostname, (select usage_user from cpu as c where c.tags_id = t.id order by c.time desc limit 1) as last
        from tags as t order by t.hostname""",
    "last_where": f"select distinct on (tags_id) tags_id, time, usage_idle from cpu where {HALF} and usage_user > 50 order by tags_id, time desc",
    "first_hour": f"""select distinct on (hostname, date_trunc('hour', time)) hostname, date_trunc('hour', time) as t, usage_user
        from cpu where {DAY} order by hostname, date_trunc('hour', time), time""",
    "open_close": f"""select tags_id, date_trunc('hour', time) as t, (array_agg(usage_user order by time))[1] as open, max(usage_user) as high,
        min(usage_user) as low, (array_agg(usage_user order by time desc))[1] as close from cpu where {DAY} group by 1, 2 order by 1, 2""",
    # Tops of groups.
    "top_number": """select hostname, time, usage_user from (select hostname, time, usage_user,
        row_number() over (partition by hostname order by usage_user desc, time) as n from cpu) as r where n <= 3
        order by hostname, usage_user desc, time""",
    "top_lateral": f"""select t.hostname, c.time, c.usage_user from tags as t cross join lateral (select time, usage_user from cpu
        where cpu.tags_id = t.id and {HALF} order by usage_user desc, time limit 3) as c order by t.hostname, c.usage_user desc, c.time""",
    "top_rank": f"""select t, hostname, load, place from (select t, hostname, load, rank() over (partition by t order by load desc, hostname) as place
        from (select date_trunc('hour', time) as t, hostname, avg(usage_user) as load from cpu where {DAY} group by 1, 2) as a) as r
        where place <= 5 order by t, place""",
    # Buckets.
    "bin5": binned("select {bin} as t, avg(usage_user), max(usage_system) from cpu group by 1 order by 1"),
    "bin5host": binned("select count(*), sum(a), max(t) from (select {bin} as t, hostname, avg(usage_user) as a from cpu group by 1, 2) as b"),
    "epoch5": """select floor(extract(epoch from time) / 300) as bucket, avg(usage_user), min(usage_idle), count(*) from cpu
        group by 1 order by 1""",
    "histogram": """select hostname, least(floor(usage_user / 10), 9)::int as bucket, count(*) from cpu group by 1, 2 order by 1, 2""",
    "hour_of_day": """select extract(hour from time) as h, extract(dow from time) as d, avg(usage_user), stddev(usage_user) from cpu
        group by 1, 2 order by 1, 2""",
    "quantiles": f"""select date_trunc('hour', time) as t, percentile_cont(0.5) within group (order by usage_user) as half,
        percentile_cont(0.95) within group (order by usage_user) as most from cpu where {DAY} group by 1 order by 1""",
    "rollup": f"""select region, datacenter, count(*), avg(usage_user) from cpu join tags on cpu.tags_id = tags.id where {DAY}
        group by rollup (region, datacenter) order by region nulls last, datacenter nulls last""",
    "busy_hosts": binned("""select {bin} as t, count(distinct hostname) from cpu where usage_user > 80 group by 1 order by 1"""),
    "filtered": """select date_trunc('hour', time) as t, count(*) filter (where usage_user > 90) as high, count(*) filter (where usage_idle < 10) as full_,
        avg(usage_user) filter (where usage_iowait < 50) as calm from cpu group by 1 order by 1""",
    "filled": """select g.t, coalesce(n, 0) as n from generate_series(timestamp '2016-01-01', timestamp '2016-01-03 23:50:00', interval '10 minutes') as g(t)
        left join (select date_trunc('hour', time) as t, count(*) as n from events where kind = 'deploy' group by 1) as e on e.t = g.t order by g.t""",
    # Windows.
    "moving_rows": """select count(*), max(a), min(a), sum(a) from (select avg(usage_user) over
        (partition by hostname order by time rows between 5 preceding and current row) as a from cpu) as w""",
    "moving_range": f"""select count(*), max(a), sum(a) from (select avg(usage_user) over
        (partition by hostname order by time range between interval '1 minute' preceding and current row) as a from cpu where {DAY}) as w""",
    "moving_max": f"""select count(*), sum(a) from (select max(usage_user) over
        (partition by tags_id order by time rows between 59 preceding and current row) as a from cpu where {DAY}) as w""",
    "running": """select count(*), max(a), avg(a) from (select sum(usage_user) over (partition by hostname order by time) as a from cpu) as w""",
    "change": """select hostname, max(d), min(d) from (select hostname, usage_user - lag(usage_user) over (partition by hostname order by time) as d
        from cpu) as w group by hostname order by hostname""",
    "gaps": """select hostname, time, before from (select hostname, time, lag(time) over (partition by hostname order by time) as before from cpu) as w
        where time - before > interval '40 seconds' order by hostname, time""",
    "weighted": f"""select tags_id, sum(usage_user * s) / sum(s) as a from (select tags_id, usage_user, extract(epoch from
        (lead(time) over (partition by tags_id order by time) - time)) as s from cpu where {DAY}) as w group by tags_id order by tags_id""",
    "sessions": """select tags_id, count(*) as sessions from (select tags_id, sum(fresh) over (partition by tags_id order by time, id) as session
        from (select id, tags_id, time, case when time - lag(time) over (partition by tags_id order by time, id) < interval '10 minutes' then 0 else 1 end as fresh
        from events) as f) as s group by tags_id order by tags_id""",
    "hot_runs": f"""select count(*), max(n) from (select tags_id, grp, count(*) as n from (select tags_id, usage_user > 80 as hot,
        row_number() over (partition by tags_id order by time) - row_number() over (partition by tags_id, usage_user > 80 order by time) as grp
        from cpu where {DAY}) as r where hot group by tags_id, grp) as runs""",
    "edges": f"""select count(*), sum(f), sum(l) from (select distinct tags_id, date_trunc('hour', time) as t,
        first_value(usage_user) over w as f, last_value(usage_user) over w as l from cpu where {DAY}
        window w as (partition by tags_id, date_trunc('hour', time) order by time rows between unbounded preceding and unbounded following)) as e""",
    "day_on_day": """with hourly as (select tags_id, date_trunc('hour', time) as t, avg(usage_user) as a from cpu group by 1, 2)
        select n.tags_id, max(n.a - o.a) from hourly as n join hourly as o on o.tags_id = n.tags_id and n.t = o.t + interval '1 day'
        group by n.tags_id order by n.tags_id""",
    "correlated": "select hostname, corr(usage_user, usage_system), regr_slope(usage_user, usage_idle) from cpu group by hostname order by hostname",
    # Rows that are near in time.
    "asof_lateral": """select count(*), sum(q.bid), sum(t.amount) from trades as t left join lateral (select bid from quotes
        where quotes.symbol = t.symbol and quotes.time <= t.time order by quotes.time desc limit 1) as q on true""",
    "asof_scalar": """select symbol, sum(amount * bid) from (select symbol, amount, (select bid from quotes as q where q.symbol = t.symbol
        and q.time <= t.time order by q.time desc limit 1) as bid from trades as t) as b group by symbol order by symbol""",
    "asof_join": {"": """select t.symbol, sum(t.amount * q.bid) from trades as t left join lateral (select bid from quotes
        where quotes.symbol = t.symbol and quotes.time <= t.time order by quotes.time desc limit 1) as q on true group by 1 order by 1""",
        "duckdb": """select t.symbol, sum(t.amount * q.bid) from trades as t asof left join quotes as q
        on q.symbol = t.symbol and q.time <= t.time group by 1 order by 1"""},
    "near_events": """select e.kind, count(*), avg(c.usage_user) from events as e join cpu as c on c.tags_id = e.tags_id
        and c.time >= e.time and c.time < e.time + interval '5 minutes' where e.kind in ('deploy', 'restart') group by e.kind order by e.kind""",
    "before_event": """select e.kind, avg(c.usage_user) from events as e cross join lateral (select usage_user from cpu
        where cpu.tags_id = e.tags_id and cpu.time <= e.time order by cpu.time desc limit 1) as c where e.kind = 'alarm' group by e.kind order by e.kind""",
    "silent": """select t.hostname from tags as t where not exists (select 1 from events as e where e.tags_id = t.id
        and e.time >= timestamp '2016-01-03 23:00:00') order by t.hostname""",
    "busiest_of_service": f"""select service, date_trunc('hour', time) as t, avg(usage_user) as a from cpu join tags on tags.id = cpu.tags_id
        where {DAY} and region = 'us-east-1' group by 1, 2 order by a desc, service, t limit 10""",
}
