"""Servers that speak PostgreSQL's protocol, each in a folder of its own: Atoll, PostgreSQL, and DuckDB behind Buenavista."""

import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

from schema import TABLES, columns, create

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = 300


class Failed(Exception):
    """A server does not start, or a program that is needed is missing."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def postgres_program(name):
    found = [shutil.which(name), *sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))]
    path = next((path for path in reversed(found) if path), None)
    if not path:
        raise Failed(f"{name} is not installed: apt-get install postgresql postgresql-contrib")
    return path


class Server:
    """A process that listens on `port` of this machine."""

    user = "postgres"

    def __init__(self, folder, options):
        self.folder, self.options, self.port, self.process = folder, options, free_port(), None

    def start(self, command):
        import psycopg

        log = open(self.folder / f"{self.name}.log", "a")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        limit = time.monotonic() + 60
        while time.monotonic() < limit and self.process.poll() is None:
            try:
                psycopg.connect(self.address(), connect_timeout=1).close()
                return
            except psycopg.OperationalError:  # not yet, or it recovers
                time.sleep(0.1)
        raise Failed(f"{self.name} does not start; see {log.name}")

    def address(self):
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname={self.user} sslmode=disable"

    def memory(self):
        """Bytes that the server's processes have for themselves or share, each page once."""
        total = 0
        for pid in [self.process.pid, *children(self.process.pid)]:
            try:
                lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
        return total

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def children(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


class Atoll(Server):
    name = "atoll"

    def __init__(self, folder, options):
        super().__init__(folder, options)
        self.flight = free_port()

    def load(self, data):
        self.store = self.folder / "bench.atoll"
        if self.store.exists():
            return
        schema = self.folder / "schema.sql"
        schema.write_text("".join(create(table, keys=True) + ";\n" for table in TABLES))
        self.call("sql", self.store, "-f", schema)
        for table in TABLES:
            self.call("import", self.store, table, data / f"{table}.parquet")

    def call(self, *arguments):
        done = subprocess.run([self.options.atoll, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"atoll {arguments[0]}: {done.stderr.strip()[-300:]}")

    def run(self):
        words = [self.options.atoll, "serve", self.store, "--listen", f"127.0.0.1:{self.port}", "--threads", self.options.threads]
        self.start([*map(str, words), "--flight", f"127.0.0.1:{self.flight}", "--max-connections", str(CLIENTS)])


class PostgreSQL(Server):
    """A cluster of its own, with the memory that one would give it on this machine and all else as installed."""

    name = "postgresql"
    # An index for each foreign key, as a schema has that is used with these queries.
    INDEXES = ("lineitem (l_partkey, l_suppkey)", "lineitem (l_suppkey)", "orders (o_custkey)", "partsupp (ps_suppkey)", "customer (c_nationkey)",
               "supplier (s_nationkey)", "nation (n_regionkey)", "lineitem (l_shipdate)", "orders (o_orderdate)")

    def as_postgres(self, *words):
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *words] if os.geteuid() == 0 else list(words)

    def load(self, data):
        self.cluster = self.folder / "postgresql"
        made = not self.cluster.exists()
        if made:
            self.cluster.mkdir(mode=0o700)
            for folder in [self.folder, *self.folder.parents]:
                folder.stat().st_mode & 0o1 or folder.chmod(folder.stat().st_mode | 0o111)
            if os.geteuid() == 0:
                shutil.chown(self.cluster, "postgres", "postgres")
            words = [postgres_program("initdb"), "-D", str(self.cluster), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
            subprocess.run(self.as_postgres(*words), check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.run()
        try:
            if made:
                self.fill(data)
        finally:
            self.stop()

    def fill(self, data):
        import psycopg
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet

        with psycopg.connect(self.address(), autocommit=True) as connection:
            for table, (_, primary, _) in TABLES.items():
                connection.execute(f"create table {table} ({columns(table)})")
                rows = pyarrow.parquet.read_table(data / f"{table}.parquet")
                # CSV is not written of views of texts.
                plain = [field.with_type(pyarrow.string()) if field.type == pyarrow.string_view() else field for field in rows.schema]
                rows = rows.cast(pyarrow.schema(plain))
                with connection.cursor().copy(f"copy {table} from stdin (format csv)") as copy:
                    pyarrow.csv.write_csv(rows, Lines(copy), pyarrow.csv.WriteOptions(include_header=False))
                connection.execute(f"alter table {table} add primary key ({primary})")
            for index in self.INDEXES:
                connection.execute(f"create index on {index}")
            connection.execute("vacuum analyze")

    def run(self):
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": CLIENTS,
                    "shared_buffers": "4GB", "work_mem": "64MB", "effective_cache_size": "12GB", "random_page_cost": "1.1", "max_wal_size": "8GB"}
        words = [postgres_program("postgres"), "-D", str(self.cluster)]
        for name, value in settings.items():
            words += ["-c", f"{name}={value}"]
        self.start(self.as_postgres(*words))


class Lines:
    """A file that copies what is written to it."""

    def __init__(self, copy):
        self.copy, self.closed = copy, False

    def write(self, part):
        self.copy.write(bytes(part))
        return len(part)

    def flush(self):
        pass

    def close(self):
        self.closed = True


class DuckDB(Server):
    """DuckDB has no server of its own; Buenavista puts PostgreSQL's protocol before it, in Python."""

    name = "duckdb"

    def load(self, data):
        import duckdb

        self.store = self.folder / "bench.duckdb"
        if self.store.exists():
            return
        with duckdb.connect(str(self.store)) as connection:
            for table in TABLES:
                connection.execute(f"create table {table} ({columns(table)})")
                connection.execute(f"insert into {table} from read_parquet('{data / table}.parquet')")

    def run(self):
        self.start([sys.executable, __file__, str(self.store), str(self.port), str(self.options.threads)])


class Renamed:
    """A connection of DuckDB 2 under the names that Buenavista calls."""

    def __init__(self, connection):
        self.connection = connection

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def cursor(self):
        return Renamed(self.connection.cursor())

    def fetch_record_batch(self):
        return self.connection.to_arrow_reader()


def duckdb_server(store, port, threads):
    import duckdb
    from buenavista.examples import duckdb_postgres

    connection = duckdb.connect(store, config={"threads": int(threads)})
    server = duckdb_postgres.create(Renamed(connection), ("127.0.0.1", int(port)))
    server.request_queue_size = CLIENTS
    server.socket.listen(CLIENTS)
    server.serve_forever()


SERVERS = {server.name: server for server in (Atoll, PostgreSQL, DuckDB)}

if __name__ == "__main__":
    duckdb_server(*sys.argv[1:])
