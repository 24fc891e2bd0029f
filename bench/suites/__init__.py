"""Suites of queries over rows that are drawn here, from a seed. `suite.py` runs them.

A suite is a module with

* `tables(draw, size)`, which yields pairs of a table's name and its rows as a PyArrow table, one after another, so that no
  more than one is in memory; `size` 1 is what the module's first lines say;
* `QUERIES`, texts by name, each ordered completely or not at all; where an engine needs other words, a mapping of engines
  to texts, with the others' under `""`;
* on wish `TYPES`, for columns that are text in the files: by table and column, the type that Atoll and DuckDB keep it as.
"""

NAMES = {
    "h2o": "groups and joins of the db-benchmark",
    "ssb": "the star schema benchmark",
    "job": "the Join Order Benchmark's schema and shapes of joins",
    "stats": "STATS-CEB's schema, counts of many-to-many joins",
    "times": "time series: devops, last points, as-of joins, windows",
    "json": "documents in one column: JSONBench's queries and more",
}
MODULES = {"json": "documents", "stats": "forum"}
