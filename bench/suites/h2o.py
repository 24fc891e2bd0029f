"""The db-benchmark's groups and joins. Size 1: 10 million rows, 100 groups in the small columns, tables of 10, 10,000 and
10 million rows to join. Answers of many rows are folded to one, by something of every column, so that what is measured is
the query and not the reading of its rows."""

import numpy
import pyarrow

from suites.draw import take

GROUPS = 100


def tables(draw, size):
    rows = int(10_000_000 * size)
    yield "x", grouped(draw.of("x"), rows)
    keys = {"small": max(rows // 1_000_000, 1), "medium": max(rows // 1_000, 1), "big": rows}
    yield "j", joined(draw.of("j"), rows, keys)
    for table, level in (("small", 1), ("medium", 2), ("big", 3)):
        yield table, looked_up(draw.of(table), table, level, keys)


def grouped(draw, rows):
    many = max(rows // GROUPS, 1)
    few = [f"id{n:03}" for n in range(1, GROUPS + 1)]
    return pyarrow.table({
        "id1": take(few, draw.below(GROUPS, rows)), "id2": take(few, draw.below(GROUPS, rows)),
        "id3": take([f"id{n:010}" for n in range(1, many + 1)], draw.below(many, rows)),
        "id4": (draw.below(GROUPS, rows) + 1).astype("int32"), "id5": (draw.below(GROUPS, rows) + 1).astype("int32"),
        "id6": (draw.below(many, rows) + 1).astype("int32"), "v1": (draw.below(5, rows) + 1).astype("int32"),
        "v2": (draw.below(15, rows) + 1).astype("int32"), "v3": numpy.round(draw.random.random(rows) * 100, 6),
    })


def joined(draw, rows, keys):
    """Nine of ten of its keys are in the table that it is joined with."""
    drawn = [draw.below(max(end * 10 // 9, 2), rows) + 1 for end in keys.values()]
    columns = {f"id{n}": ids.astype("int32") for n, ids in enumerate(drawn, 1)}
    columns |= {f"id{n}": take([f"id{k}" for k in range(ids.max() + 1)], ids) for n, ids in enumerate(drawn, 4)}
    return pyarrow.table({**columns, "v1": numpy.round(draw.random.random(rows) * 100, 6)})


def looked_up(draw, table, level, keys):
    """A table of each key of its level once, in no order, with keys of the levels above it."""
    ends = list(keys.values())
    own = draw.random.permutation(ends[level - 1]) + 1
    ids = [*(draw.below(end, len(own)) + 1 for end in ends[:level - 1]), own]
    columns = {f"id{n}": values.astype("int32") for n, values in enumerate(ids, 1)}
    columns |= {f"id{n}": take([f"id{k}" for k in range(values.max() + 1)], values) for n, values in enumerate(ids, 4)}
    return pyarrow.table({**columns, "v2": numpy.round(draw.random.random(len(own)) * 100, 6)})


def joins(condition, *columns, kind="join"):
    sums = ", ".join(f"sum({column})" for column in columns)
    table = condition.split(".")[0]
    return f"select count(*), sum(v1), sum(v2), {sums} from j {kind} {table} on {condition}"


QUERIES = {
    "g1": "select id1, sum(v1) as v1 from x group by id1 order by id1",
    "g2": "select count(*), sum(v1), min(id1), max(id2) from (select id1, id2, sum(v1) as v1 from x group by id1, id2) as g",
    "g3": "select count(*), sum(v1), sum(v3), min(id3) from (select id3, sum(v1) as v1, avg(v3) as v3 from x group by id3) as g",
    "g4": "select id4, avg(v1) as v1, avg(v2) as v2, avg(v3) as v3 from x group by id4 order by id4",
    "g5": """select count(*), sum(v1), sum(v2), sum(v3), sum(id6)
        from (select id6, sum(v1) as v1, sum(v2) as v2, sum(v3) as v3 from x group by id6) as g""",
    "g6": """select count(*), sum(m), sum(s), sum(id4), sum(id5) from (select id4, id5,
        percentile_cont(0.5) within group (order by v3) as m, stddev(v3) as s from x group by id4, id5) as g""",
    "g7": "select count(*), sum(r), max(id3) from (select id3, max(v1) - min(v2) as r from x group by id3) as g",
    "g8": """select count(*), sum(v3), sum(id6) from (select id6, v3 from (select id6, v3, row_number() over
        (partition by id6 order by v3 desc) as place from x where v3 is not null) as placed where place <= 2) as g""",
    # Of a column that is the same in all rows of a group, DuckDB says NaN, PostgreSQL NULL.
    "g9": {engine: f"""select count(*), sum({r2}), min(id2), sum(id4)
        from (select id2, id4, power(corr(v1, v2), 2) as r2 from x group by id2, id4) as g"""
           for engine, r2 in (("", "r2"), ("duckdb", "case when isnan(r2) then null else r2 end"))},
    "g10": """select count(*), sum(v3), sum(n), min(id1), min(id2), min(id3), sum(id4), sum(id5), sum(id6)
        from (select id1, id2, id3, id4, id5, id6, sum(v3) as v3, count(*) as n from x group by id1, id2, id3, id4, id5, id6) as g""",
    "j1": joins("small.id1 = j.id1", "j.id3", "small.id1"),
    "j2": joins("medium.id2 = j.id2", "j.id3", "medium.id1"),
    "j3": joins("medium.id2 = j.id2", "j.id3", "medium.id1", kind="left join"),
    "j4": joins("medium.id5 = j.id5", "j.id3", "medium.id1"),
    "j5": joins("big.id3 = j.id3", "big.id2", "big.id1"),
}
