"""One engine in a process of its own, driven by one JSON object a line on standard input; one line answers each.

    worker.py ENGINE DATA STORE THREADS

DATA is the folder of Parquet files, STORE a path this engine may write. Requests: {"do": "open"}, {"do": "load"},
{"do": "query", "sql": ...}. Answers: {"seconds", ...} or {"error"}. A query's seconds go from its text to its last row
in Arrow, planning included. Between requests the process sleeps in read().
"""

import json
import os
import pathlib
import shutil
import sys
import time

from schema import TABLES, create


def files(data):
    """The tables of a folder: one Parquet file each."""
    return [(file.stem, file) for file in sorted(data.glob("*.parquet"))]


class Duckdb:
    """Tables loaded into DuckDB's own file."""

    def __init__(self, data, store, threads):
        self.data, self.store, self.threads = data, store.with_suffix(".duckdb"), threads

    def connect(self, read_only):
        import duckdb
        self.db = duckdb.connect(str(self.store), read_only=read_only, config={"threads": self.threads})
        return {"version": duckdb.__version__}

    def load(self):
        import duckdb  # noqa: F401  the time to import a library is no load time
        for path in (self.store, self.store.with_suffix(".duckdb.wal")):
            path.unlink(missing_ok=True)
        begun = time.perf_counter()
        self.connect(False)
        for table in TABLES:
            self.db.execute(create(table, keys=False))
            self.db.execute(f"insert into {table} from read_parquet('{self.data / table}.parquet')")
        self.db.execute("checkpoint")
        self.db.close()
        return {"seconds": time.perf_counter() - begun, "bytes": self.store.stat().st_size}

    def open(self):
        return self.connect(True)

    def query(self, sql):
        return self.db.sql(sql).to_arrow_table()


class DuckdbParquet(Duckdb):
    """DuckDB over views of the Parquet files."""

    def open(self):
        import duckdb
        self.db = duckdb.connect(config={"threads": self.threads})
        for table, file in files(self.data):
            self.db.execute(f"create view {table} as from read_parquet('{file}')")
        return {"version": duckdb.__version__}


class Datafusion:
    """DataFusion over the Parquet files, statistics collected at registration."""

    def __init__(self, data, store, threads):
        self.data, self.threads = data, threads
        os.environ["TOKIO_WORKER_THREADS"] = str(threads)

    def open(self):
        import datafusion
        config = (datafusion.SessionConfig().with_target_partitions(self.threads)
                  .set("datafusion.execution.collect_statistics", "true")
                  .set("datafusion.execution.parquet.pushdown_filters", "false"))
        self.context = datafusion.SessionContext(config)
        for table, file in files(self.data):
            self.context.register_parquet(table, str(file))
        return {"version": datafusion.__version__}

    def query(self, sql):
        frame = self.context.sql(sql)
        return frame.to_arrow_table()


class Polars:
    """Polars SQL over frames loaded into memory."""

    def __init__(self, data, store, threads):
        self.data = data
        os.environ["POLARS_MAX_THREADS"] = str(threads)

    def open(self):
        import polars
        self.context = polars.SQLContext({
            table: polars.read_parquet(file).rechunk().lazy() for table, file in files(self.data)})
        return {"version": polars.__version__, "threads": polars.thread_pool_size()}

    def query(self, sql):
        return self.context.execute(sql, eager=True).to_arrow()


class Chdb:
    """chDB (ClickHouse in the process) over MergeTree tables sorted by their primary keys."""

    SETTINGS = {
        "max_threads": None,  # the number of threads
        "join_use_nulls": 1,  # outer joins give NULL, as SQL says, not the type's default
        "use_query_cache": 0,
    }

    def __init__(self, data, store, threads):
        self.data, self.store, self.threads = data, store.with_suffix(".chdb"), threads

    def session(self):
        import chdb
        from chdb import session
        self.db = session.Session(str(self.store))
        self.db.query("create database if not exists tpch")
        self.db.query("use tpch")
        for name, value in {**self.SETTINGS, "max_threads": self.threads}.items():
            self.db.query(f"set {name} = {value}")
        return {"version": chdb.__version__, "clickhouse": str(chdb.engine_version)}

    def load(self):
        import chdb  # noqa: F401
        shutil.rmtree(self.store, ignore_errors=True)
        begun = time.perf_counter()
        self.session()
        for table, (_, primary, _) in TABLES.items():
            columns = create(table, keys=False)
            for sql, own in (("varchar", "String"), ("bigint", "Int64"), ("integer", "Int32")):
                columns = columns.replace(sql, own)
            self.db.query(f"{columns} engine = MergeTree order by ({primary})")
            self.db.query(f"insert into {table} select * from file('{self.data / table}.parquet', Parquet)")
            self.db.query(f"optimize table {table} final")
        seconds = time.perf_counter() - begun
        # The folder also holds parts that are already merged, and ClickHouse's own logs.
        size = self.db.query("select sum(bytes_on_disk) from system.parts where active and database = 'tpch'", "CSV")
        self.db.close()
        return {"seconds": seconds, "bytes": int(size.bytes())}

    def open(self):
        return self.session()

    def query(self, sql):
        import pyarrow
        answer = self.db.query(sql, "Arrow")
        return pyarrow.ipc.open_file(pyarrow.BufferReader(answer.bytes())).read_all()


class Hyper:
    """Hyper, as Tableau's package has it, with tables in a file of its own. Its rows come as Python's tuples."""

    def __init__(self, data, store, threads):
        self.data, self.store, self.threads = data, store.with_suffix(".hyper"), threads
        self.process = None

    def connect(self, mode):
        import tableauhyperapi as hyper
        if self.process is None:
            parameters = {"hard_concurrent_query_thread_limit": str(self.threads), "log_config": "",
                          "default_database_version": "4"}
            self.process = hyper.HyperProcess(hyper.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=parameters)
        self.db = hyper.Connection(self.process.endpoint, str(self.store), getattr(hyper.CreateMode, mode))
        return {"version": hyper.__version__}

    def load(self):
        import tableauhyperapi  # noqa: F401
        begun = time.perf_counter()
        self.connect("CREATE_AND_REPLACE")
        for table in TABLES:
            # Keys are not its to declare: it has none but assumed ones.
            self.db.execute_command(create(table, keys=False))
            self.db.execute_command(f"insert into {table} (select * from external('{self.data / table}.parquet'))")
        self.db.close()
        self.process.close()
        self.process = None
        return {"seconds": time.perf_counter() - begun, "bytes": self.store.stat().st_size}

    def open(self):
        return self.connect("NONE")

    def query(self, sql):
        """Its rows; columns are made of them when the clock has stopped."""
        with self.db.execute_query(sql) as result:
            names = [column.name.unescaped for column in result.schema.columns]
            types = [str(column.type) for column in result.schema.columns]
            return Rows(names, types, list(result))


class Rows:
    """An answer that came as rows."""

    def __init__(self, names, types, rows):
        self.column_names, self.types, self.rows = names, types, rows


ENGINES = {"hyper": Hyper, "duckdb": Duckdb, "duckdb-parquet": DuckdbParquet, "datafusion": Datafusion, "polars": Polars, "chdb": Chdb}


def plain(value):
    if value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, bytes):
        return value.decode()
    return repr(value) if isinstance(value, float) else str(value)


def rows_of(table):
    """Rows of plain values: decimals, dates and floats as strings."""
    return [list(map(plain, row)) for row in zip(*(column.to_pylist() for column in table.columns))]


def answer(engine, request):
    if request["do"] == "load":
        return engine.load()
    if request["do"] == "open":
        begun = time.perf_counter()
        return {"seconds": time.perf_counter() - begun, **(engine.open() or {})}
    begun = time.perf_counter()
    table = engine.query(request["sql"])
    seconds = time.perf_counter() - begun
    if isinstance(table, Rows):
        rows = [list(map(plain, row)) for row in table.rows]
        return {"seconds": seconds, "columns": table.column_names, "types": table.types, "rows": rows}
    return {"seconds": seconds, "columns": table.column_names,
            "types": [str(column.type) for column in table.schema], "rows": rows_of(table)}


def main():
    name, data, store, threads = sys.argv[1:]
    # Libraries that print do not disturb the protocol.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = ENGINES[name](pathlib.Path(data), pathlib.Path(store), int(threads))
    for line in sys.stdin:
        try:
            reply = answer(engine, json.loads(line))
        except BaseException as error:  # polars panics are no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            reply = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(reply) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
