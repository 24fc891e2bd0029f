"""Answers queries by DuckDB: `peer.py FOLDER`, tables as FOLDER/*.parquet, a query a line of standard input.

One line of JSON per query: {"rows": [[cell, ...], ...]} or {"error": text}. A cell is null, a text, or {"float": text}.
"""

import decimal
import glob
import json
import os
import sys

import duckdb


def cell(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return str(value)


def main(folder):
    connection = duckdb.connect()
    for path in glob.glob(os.path.join(folder, "*.parquet")):
        name = os.path.splitext(os.path.basename(path))[0]
        connection.execute(f"create table {name} as select * from read_parquet('{path}')")
    for query in sys.stdin:
        try:
            rows = connection.execute(query).fetchall()
            answer = {"rows": [[cell(value) for value in row] for row in rows]}
        except duckdb.Error as error:
            answer = {"error": str(error).splitlines()[0]}
        print(json.dumps(answer), flush=True)


main(sys.argv[1])
