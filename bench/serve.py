#!/usr/bin/env python3
"""`atoll serve` beside PostgreSQL and DuckDB behind a server: what the wire costs, many clients, small queries, rows in and out.

    bench/serve.py [--atoll target/release/atoll] [--rows queries,clients,small,out,in] [--repeat 5] [--seconds 15]

Makes a virtual environment in bench/.serve with psycopg, DuckDB, Buenavista (which puts PostgreSQL's protocol before DuckDB)
and what makes the data. PostgreSQL is that of the machine (apt-get install postgresql postgresql-contrib), with a cluster of
its own. Servers take turns, and only the one that is asked runs. Every timing goes to bench/results.

  queries   TPC-H at --scale 1: psycopg, binary, and Flight SQL, to the last row, over the time of `atoll sql` for the same text; beside that
            what the driver of Flight takes to close the statement, and what its calls take where the server does nothing (canned.py).
            `atoll sql` tells its seconds from the text to the last row; it writes rows as JSON while they come, which counts for those
            of Q11 and Q16 (about 1,000 and 18,000 rows), where the wire has less to add. Each is asked with other parameters
            first, so that none has the processor's caches of the one before; what is added is the median of differences within a turn
  clients   22 queries of TPC-H at --mixed 0.1 in any order, by pgbench with 1, 16, 64 and 256 clients: queries a second, latencies
  small     prepared statements of one client, by pgbench: a row by its key, a sum over a few rows, a statement without a table
  out       a million rows: psycopg in binary, copy (psycopg, psql, a client that only takes bytes), Flight SQL (beside copying the same
            bytes in memory)
  in        100,000 rows: one by one in a transaction, executemany, copy; a million by copy
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
ENVIRONMENT = HERE / ".serve"
NEEDS = ["psycopg[binary]==3.3.9", "buenavista==0.5.0", "adbc-driver-flightsql==1.13.0", "adbc-driver-manager==1.13.0"]
PINNED = ["duckdb", "numpy", "pandas", "pyarrow", "python-dateutil", "tpchgen-cli"]
SMALL = {
    "a row by its key": "\\set k random(1, 1500000)\nselect o_totalprice, o_orderdate from orders where o_orderkey = :k;\n",
    "a sum over four orders": "\\set k random(1, 149000)\nselect count(*), sum(l_extendedprice) from lineitem where l_orderkey between :k and :k + 16;\n",
    "no table": "\\set k random(1, 1000)\nselect :k + 1;\n",
}
MILLION = """create table million as select cast(o_orderkey * 8 + l_linenumber as bigint) as id, cast(l_partkey as integer) as part,
cast(l_extendedprice as double precision) as price, l_shipmode as mode, l_shipdate as day from lineitem join orders on o_orderkey = l_orderkey
order by 1 limit 1000000"""


def set_up():
    """An environment in which this file goes on."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pins = dict(line.split("==") for line in (HERE / "requirements.txt").read_text().split() if "==" in line)
    wanted = NEEDS + [f"{name}=={pins[name]}" for name in PINNED]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)
    os.execv(python, [str(python), *sys.argv])


class Run:
    """The servers, one of which is up at a time, and what was measured."""

    def __init__(self, options, folder, names):
        import servers

        self.options, self.results = options, {}
        self.servers = {}
        for name in names:
            (folder / name).mkdir(parents=True, exist_ok=True)
            self.servers[name] = servers.SERVERS[name](folder / name, options)

    def load(self, data):
        for server in self.servers.values():
            server.load(data)

    def turns(self, repeat):
        """Each server, up and running, `repeat` times; who begins changes."""
        for turn in range(repeat):
            names = list(self.servers)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                server = self.servers[name]
                server.run()
                try:
                    yield turn, server
                finally:
                    server.stop()


def connect(server, **more):
    import psycopg

    return psycopg.connect(server.address(), autocommit=True, **more)


def flight(server):
    import adbc_driver_flightsql.dbapi

    return adbc_driver_flightsql.dbapi.connect(f"grpc://127.0.0.1:{server.flight}", autocommit=True)


def timed_flight(connection, text):
    """Seconds to the last row of a query, and until its cursor is closed too: the driver asks the server to forget the
    statement then, and collects its own garbage twice."""
    began = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(text)
        cursor.fetch_arrow_table()
        last = time.perf_counter() - began
    return last, time.perf_counter() - began


def driver_alone(folder):
    """What `timed_flight` takes where the server does nothing."""
    import adbc_driver_flightsql.dbapi
    import servers

    port = servers.free_port()
    with open(folder / "canned.log", "a") as log:
        process = subprocess.Popen([sys.executable, str(HERE / "canned.py"), str(port)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 60
        while time.monotonic() < limit and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        with adbc_driver_flightsql.dbapi.connect(f"grpc://127.0.0.1:{port}", autocommit=True) as connection:
            times = [timed_flight(connection, "select 1") for _ in range(105)][5:]
    finally:
        process.kill()
        process.wait()
    return [statistics.median(values) for values in zip(*times)]


def fetch_flight(connection, text):
    """The rows of a query as an Arrow table."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetch_arrow_table()


def seconds(work, *arguments):
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


# --- what the wire costs

def queries(run, folder):
    import engines
    import queries as texts

    options = run.options
    server = run.servers["atoll"]
    words = [options.atoll, "sql", str(server.store), "--threads", str(options.threads), "--json"]
    inside = engines.Process("atoll sql", words, folder / "inside.log")
    server.run()
    found = []
    try:
        with connect(server) as connection, connection.cursor(binary=True) as cursor, flight(server) as arrow:
            def wire(text):
                cursor.execute(text)
                return cursor.fetchall()

            ways = [("wire", lambda text: seconds(wire, text)), ("inside", lambda text: float(inside.ask(text + ";\n", 600)["seconds"])),
                    ("flight", lambda text: timed_flight(arrow, text))]
            alone = driver_alone(folder)
            for number in range(1, 23):
                times = {"wire": [], "flight": [], "closed": [], "inside": []}
                for turn in range(options.repeat + 1):
                    # Each is asked with other parameters first: the process that was asked before has its data in the processor's caches.
                    other, text = (texts.text(number, texts.parameters(number, at, options.scale, 1)) for at in (turn + options.repeat + 1, turn))
                    for name, way in ways[turn % 3:] + ways[:turn % 3]:
                        way(other)
                        taken = way(text)
                        if name == "flight":
                            taken, closed = taken
                            if turn:
                                times["closed"].append(closed)
                        if turn:
                            times[name].append(taken)
                middle = {name: statistics.median(values) for name, values in times.items()}
                added = {name: statistics.median(a - b for a, b in zip(times[name], times["inside"])) for name in ("wire", "flight", "closed")}
                found.append({"query": number, "seconds": times, "added": added, "driver alone": alone})
                print(f"Q{number:<3} inside {middle['inside'] * 1e3:8.2f} ms, psycopg adds {added['wire'] * 1e3:6.2f} ms, Flight {added['flight'] * 1e3:6.2f} ms"
                      f" and {(added['closed'] - added['flight']) * 1e3:.2f} ms to close", flush=True)
    finally:
        server.stop()
        inside.close()
    whole = {name: sum(statistics.median(result["seconds"][name]) for result in found) for name in ("wire", "flight", "closed", "inside")}
    for name, called in (("wire", "psycopg"), ("flight", "Flight SQL"), ("closed", "Flight SQL, with closing")):
        print(f"22 queries: inside {whole['inside'] * 1e3:.0f} ms, by {called} {whole[name] / whole['inside'] * 100:.1f} % of it;"
              f" one adds {statistics.median(result['added'][name] for result in found) * 1e3:.2f} ms in the median")
    print(f"the driver of Flight SQL, where the server does nothing: {alone[0] * 1e3:.2f} ms to the last row, {alone[1] * 1e3:.2f} ms with closing")
    return found


# --- pgbench

def pgbench(server, folder, scripts, clients, seconds_, mode="simple"):
    """Latencies in seconds of each statement, by client; and statements a second."""
    import servers

    for log in folder.glob("log.*"):
        log.unlink()
    words = [servers.postgres_program("pgbench"), "-n", "-h", "127.0.0.1", "-p", str(server.port), "-U", server.user, "-c", str(clients), "-j", "1",
             "-T", str(seconds_), "-M", mode, "-l", "--log-prefix", str(folder / "log"), "--random-seed", "7"]
    for script in scripts:
        words += ["-f", str(script)]
    done = subprocess.run([*words, server.user], capture_output=True, text=True, env={**os.environ, "PGSSLMODE": "disable"})
    if done.returncode or "aborted" in done.stderr:
        raise SystemExit(f"serve.py: pgbench with {server.name}: {done.stderr.strip()[-500:]}")
    latencies, first, last = {}, math.inf, 0.0
    for log in folder.glob("log.*"):
        for line in log.read_text().splitlines():
            client, _, micros, _, epoch, fraction = line.split()[:6]
            end = int(epoch) + int(fraction) / 1e6
            latencies.setdefault(int(client), []).append(int(micros) / 1e6)
            first, last = min(first, end - int(micros) / 1e6), max(last, end)
    count = sum(map(len, latencies.values()))
    return latencies, count / (last - first)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def clients(run, folder):
    import queries as texts

    scripts = []
    for number in range(1, 23):
        script = folder / f"q{number}.sql"
        script.write_text(texts.text(number, texts.parameters(number, 0, run.options.mixed, 1)).strip().rstrip(";") + ";\n")
        scripts.append(script)
    found = []
    for count in run.options.clients:
        for turn, server in run.turns(run.options.repeat):
            with connect(server) as connection:  # warms up
                for script in scripts:
                    connection.execute(script.read_text().strip().rstrip(";"))
            latencies, rate = pgbench(server, folder, scripts, count, run.options.seconds)
            whole = [value for values in latencies.values() for value in values]
            least = min((len(latencies.get(client, [])) for client in range(count)), default=0)
            found.append({"clients": count, "turn": turn, "server": server.name, "rate": rate, "median": statistics.median(whole),
                          "p99": percentile(whole, 0.99), "most": max(whole), "fewest": least, "mean count": len(whole) / count, "memory": server.memory()})
        for name in run.servers:
            of = [result for result in found if result["clients"] == count and result["server"] == name]
            told = {field: statistics.median(result[field] for result in of) for field in ("rate", "median", "p99", "most", "fewest", "mean count", "memory")}
            print(f"{count:4} clients, {name:10} {told['rate']:8.1f} queries a second, median {told['median'] * 1e3:8.1f} ms, p99 {told['p99'] * 1e3:8.1f} ms, "
                  f"longest {told['most'] * 1e3:8.1f} ms, a client has {told['fewest']:.0f} of {told['mean count']:.1f} at least, {told['memory'] / 1e6:.0f} MB", flush=True)
    return found


def small(run, folder):
    found = []
    for name, text in SMALL.items():
        script = folder / "small.sql"
        script.write_text(text)
        for turn, server in run.turns(run.options.repeat):
            if server.name == "duckdb":  # Buenavista does not do pgbench's prepared statements
                continue
            latencies, rate = pgbench(server, folder, [script], 1, max(2, run.options.seconds // 5), "prepared")
            whole = [value for values in latencies.values() for value in values]
            found.append({"statement": name, "turn": turn, "server": server.name, "rate": rate, "median": statistics.median(whole), "p99": percentile(whole, 0.99)})
        for server in sorted({result["server"] for result in found}):
            of = [result for result in found if result["server"] == server and result["statement"] == name]
            print(f"{name:25} {server:10} median {statistics.median(r['median'] for r in of) * 1e3:7.3f} ms, p99 {statistics.median(r['p99'] for r in of) * 1e3:7.3f} ms", flush=True)
    return found


# --- rows out and in

def fetch_binary(connection):
    with connection.cursor(binary=True) as cursor:
        cursor.execute("select * from million")
        assert len(cursor.fetchall()) == 1_000_000


def copy_out(connection):
    with connection.cursor() as cursor, cursor.copy("copy million to stdout") as copy:
        return sum(len(part) for part in copy)


def copy_by_psql(connection):
    info = connection.info
    words = ["psql", "-q", "-h", info.host, "-p", str(info.port), "-U", info.user, "-d", info.dbname, "-c", "copy million to stdout"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PGSSLMODE": "disable"})


def copy_bare(connection):
    """The bytes of a copy as they come, looked at by nobody: what the server alone takes."""
    info = connection.info
    with socket.create_connection((info.host, info.port)) as bare:
        words = b"\0".join([b"user", info.user.encode(), b"database", info.dbname.encode(), b"", b""])
        bare.sendall(struct.pack("!ii", len(words) + 8, 196608) + words)
        ready, buffer, tail = b"Z\0\0\0\x05I", bytearray(1 << 20), b""
        for text in (None, b"copy million to stdout\0"):
            if text:
                bare.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
            while not tail.endswith(ready):
                count = bare.recv_into(buffer)
                if not count:
                    raise SystemExit("serve.py: the server has closed the connection")
                tail = (tail + bytes(buffer[max(0, count - 6):count]))[-6:]
            tail = b""


def out(run, folder):
    ways = {"psycopg, binary": fetch_binary, "copy, by psycopg": copy_out, "copy, by psql": copy_by_psql, "copy, bytes alone": copy_bare}
    found = by_turns(run, ways, "million rows out", before=lambda c: (c.execute("drop table if exists million"), c.execute(MILLION)))
    return found + by_flight(run)


def by_flight(run):
    """The million rows by Flight SQL, in turn with a copy of the table that came: what memory alone takes."""
    import pyarrow

    server, found = run.servers["atoll"], []
    server.run()
    try:
        with flight(server) as connection:
            for turn in range(run.options.repeat + 1):
                began = time.perf_counter()
                table = fetch_flight(connection, "select * from million")
                taken = time.perf_counter() - began
                assert table.num_rows == 1_000_000
                target = pyarrow.FixedSizeBufferWriter(pyarrow.allocate_buffer(2 * table.nbytes + (1 << 20)))
                began = time.perf_counter()
                with pyarrow.ipc.new_stream(target, table.schema) as writer:
                    writer.write_table(table)
                copied = time.perf_counter() - began
                if turn:
                    found.append({"way": "flight", "turn": turn, "server": "atoll", "seconds": taken, "copy": copied, "bytes": table.nbytes})
    finally:
        server.stop()
    took, copy = (statistics.median(result[field] for result in found) for field in ("seconds", "copy"))
    size = found[0]["bytes"]
    print(f"million rows out, Flight SQL: atoll {took * 1e3:.0f} ms, {size / took / 1e9:.2f} GB/s; one copy of the {size / 1e6:.0f} MB takes {copy * 1e3:.0f} ms,"
          f" {copy / took * 100:.0f} % of it", flush=True)
    return found


ROWS = [(number, (number * 7919) % 100003, number / 8, f"key {number % 1000}") for number in range(100_000)]


def one_by_one(connection):
    connection.execute("truncate given")
    with connection.transaction(), connection.cursor() as cursor:
        for row in ROWS:
            cursor.execute("insert into given values (%s, %s, %s, %s)", row, prepare=True)


def many(connection):
    connection.execute("truncate given")
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany("insert into given values (%s, %s, %s, %s)", ROWS)


def copy_rows(connection, times=1):
    lines = "".join("\t".join(map(str, row)) + "\n" for row in ROWS).encode()
    connection.execute("truncate given")

    def copy():
        with connection.cursor().copy("copy given from stdin") as copy:
            for _ in range(times):
                copy.write(lines)
    return seconds(copy)


def into(run, folder):
    ways = {"one by one": one_by_one, "executemany": many, "copy": copy_rows, "copy, a million": lambda connection: copy_rows(connection, 10)}
    table = "create table given (id bigint not null, k integer, v double precision, t varchar)"
    return by_turns(run, ways, "100,000 rows in", before=lambda c: (c.execute("drop table if exists given"), c.execute(table)))


def by_turns(run, ways, what, before):
    found = []
    for turn, server in run.turns(run.options.repeat):
        if server.name == "duckdb":
            continue
        with connect(server) as connection:
            before(connection)
            for name, way in ways.items():
                began = time.perf_counter()
                told = way(connection)
                taken = told if isinstance(told, float) else time.perf_counter() - began
                found.append({"way": name, "turn": turn, "server": server.name, "seconds": taken})
    for name in ways:
        took = {server: statistics.median(r["seconds"] for r in found if r["way"] == name and r["server"] == server) for server in {r["server"] for r in found}}
        ratio = f"; PostgreSQL takes {took['postgresql'] / took['atoll']:.2f} times as long" if len(took) == 2 else ""
        print(f"{what}, {name:18} " + ", ".join(f"{server} {value * 1e3:.0f} ms" for server, value in sorted(took.items())) + ratio, flush=True)
    return found


KINDS = {"queries": queries, "clients": clients, "small": small, "out": out, "in": into}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atoll", default=str(HERE.parent / "target/release/atoll"))
    parser.add_argument("--rows", default=",".join(KINDS))
    parser.add_argument("--servers", default="atoll,postgresql,duckdb")
    parser.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 16, 64, 256])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=15, help="of each run of pgbench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scale", default="1")
    parser.add_argument("--mixed", default="0.1", help="scale of `clients` and `small`")
    parser.add_argument("--folder", type=pathlib.Path, help="for data and stores [default: a temporary one]")
    options = parser.parse_args()
    unknown = [name for name in options.rows.split(",") if name not in KINDS]
    if unknown:
        parser.error(f"--rows: there is no {unknown[0]!r}, but {', '.join(KINDS)}")
    if pathlib.Path(sys.prefix) != ENVIRONMENT:
        set_up()
    import engines
    import machine
    import servers

    random.seed(7)
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        for kind in options.rows.split(","):
            scale = options.mixed if kind in ("clients", "small") else options.scale
            folder = (options.folder or pathlib.Path(temporary)) / f"serve-{scale}"
            scratch = folder / "scratch"
            scratch.mkdir(parents=True, exist_ok=True)
            data = folder / "data"
            engines.generate(scale, data)
            names = ["atoll"] if kind == "queries" else options.servers.split(",")
            if kind in ("out", "in"):
                names = [name for name in names if name != "duckdb"]
            run = Run(options, folder, names)
            try:
                run.load(data)
                print(f"-- {kind}, TPC-H at scale {scale}", flush=True)
                results[kind] = KINDS[kind](run, scratch)
            except servers.Failed as failed:
                raise SystemExit(f"serve.py: {failed}") from None
    described = machine.describe()
    now = datetime.datetime.now(datetime.timezone.utc)
    path = HERE / "results" / f"{now:%Y-%m-%dT%H%M%S}-serve-{machine.slug(described)}.json"
    told = {name: getattr(options, name) for name in ("repeat", "seconds", "threads", "scale", "mixed", "servers")}
    path.write_text(json.dumps({"machine": described, "commit": machine.commit(HERE.parent), "options": told, "results": results}, indent=1))
    print(f"wrote {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
