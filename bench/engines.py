"""The engines as the runner sees them: a process each, asked one thing at a time."""

import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import time

from schema import TABLES, create

HERE = pathlib.Path(__file__).resolve().parent
TICK = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """An engine said no, died, or took too long."""


class Process:
    """A child that answers each line with a line, and sleeps in between."""

    def __init__(self, name, command, log):
        self.name, self.log = name, log
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=open(log, "a"), text=True, bufsize=1)
        self.busy_cpu = 0.0
        self.begun = time.monotonic()

    def ask(self, line, limit):
        """Sends a line; the answer as an object, with `wall`, the seconds until its first byte came."""
        before, begun = self.cpu(), time.perf_counter()
        try:
            self.child.stdin.write(line)
            self.child.stdin.flush()
        except (BrokenPipeError, OSError) as error:
            raise Failed(f"{self.name} is gone ({error}); see {self.log.name}") from None
        if not select.select([self.child.stdout], [], [], limit)[0]:
            self.child.kill()
            self.child.wait()
            raise Failed(f"{self.name} did not answer within {limit} s")
        wall = time.perf_counter() - begun
        answer = self.child.stdout.readline()
        if not answer:
            raise Failed(f"{self.name} ended with status {self.child.wait()}; see {self.log.name}")
        self.busy_cpu += self.cpu() - before
        try:
            answer = json.loads(answer, parse_float=str)
        except ValueError:
            raise Failed(f"{self.name} answered no JSON: {answer[:200]!r}") from None
        if "error" in answer:
            raise Failed(str(answer["error"])[:500])
        return {**answer, "wall": wall}

    def stat(self):
        try:
            return pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        except OSError:
            return None

    def cpu(self):
        stat = self.stat()
        return (int(stat[11]) + int(stat[12])) / TICK if stat else 0.0

    def usage(self):
        """Peak memory, and the share of a core that was used while nothing was asked."""
        status = {}
        try:
            for line in pathlib.Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
                key, _, value = line.partition(":")
                status[key] = value.split()
        except OSError:
            pass
        peak = int(status["VmHWM"][0]) * 1024 if "VmHWM" in status else None
        idle = max(0.0, self.cpu() - self.busy_cpu) / max(1e-9, time.monotonic() - self.begun)
        return {"peak_memory_bytes": peak, "idle_cpu": idle}

    def close(self):
        try:
            self.child.stdin.close()
            self.child.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()


class Peer:
    """An engine that worker.py knows."""

    def __init__(self, name, options, data, stores):
        self.name, self.data, self.store = name, data, stores / name
        self.threads, self.limit, self.log = options.threads, options.limit, stores / f"{name}.log"
        self.process = None

    def start(self):
        self.process = Process(self.name, [sys.executable, str(HERE / "worker.py"), self.name, str(self.data),
                                           str(self.store), str(self.threads)], self.log)

    def send(self, **request):
        return self.process.ask(json.dumps(request) + "\n", self.limit)

    def load(self):
        self.start()
        try:
            answer = self.send(do="load")
        finally:
            self.close()
        return {"seconds": float(answer["seconds"]), "bytes": answer["bytes"]}

    def open(self):
        self.start()
        return {k: v for k, v in self.send(do="open").items() if k not in ("wall", "seconds")}

    def query(self, sql):
        return self.send(do="query", sql=sql)

    def close(self):
        if self.process:
            self.process.close()
            self.process = None
            # What DuckDB had spilled when it was killed: gigabytes.
            shutil.rmtree(self.store.with_suffix(".duckdb.tmp"), ignore_errors=True)


class Atoll(Peer):
    """The `atoll` program; its seconds for a query are its own, from the text to the last row."""

    def __init__(self, name, options, data, stores):
        super().__init__(name, options, data, stores)
        earlier = name == "before"
        self.program = options.before if earlier else options.atoll
        self.store = stores / f"{name}.atoll"
        self.options = ["--executor", options.executor] if options.executor else []

    def files(self):
        return [self.store, self.store.with_name(self.store.name + ".log")]

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        with open(self.log, "a") as log:
            log.write(done.stderr)
        if done.returncode:
            raise Failed(f"atoll {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def load(self):
        """One process creates the tables with their keys, then one each imports a table; all are timed."""
        for file in self.files():
            file.unlink(missing_ok=True)
        schema = self.store.with_name("schema.sql")
        schema.write_text("".join(create(table, keys=True) + ";\n" for table in TABLES))
        begun = time.perf_counter()
        self.call("sql", self.store, "-f", schema)
        for table in TABLES:
            self.call("import", self.store, table, self.data / f"{table}.parquet")
        seconds = time.perf_counter() - begun
        sizes = [file.stat() for file in self.files() if file.exists()]
        return {"seconds": seconds, "bytes": sum(s.st_size for s in sizes),
                "disk_bytes": sum(s.st_blocks * 512 for s in sizes)}

    def open(self):
        command = [self.program, "sql", str(self.store), "--threads", str(self.threads), "--json", *self.options]
        self.process = Process(self.name, command, self.log)
        self.query("select 1")
        return {"version": self.call("--version").strip().removeprefix("atoll ")}

    def query(self, sql):
        answer = self.process.ask(sql + ";\n", self.limit)
        answer["types"] = [column["type"] for column in answer["columns"]]
        answer["columns"] = [column["name"] for column in answer["columns"]]
        return answer


def engine(name, options, data, stores):
    return (Atoll if name in ("atoll", "before") else Peer)(name, options, data, stores)


LOADED = ("atoll", "before", "duckdb", "hyper", "chdb")  # those that have a store to build
NAMES = ("atoll", "before", "duckdb", "duckdb-parquet", "hyper", "datafusion", "polars", "chdb")
TITLES = {"atoll": "Atoll", "before": "Atoll, built before", "duckdb": "DuckDB", "duckdb-parquet": "DuckDB, Parquet", "datafusion": "DataFusion, Parquet",
          "polars": "Polars, in memory", "chdb": "chDB, MergeTree", "hyper": "Hyper"}


def generate(scale, folder):
    """TPC-H data as Parquet, written once."""
    if all((folder / f"{table}.parquet").exists() for table in TABLES):
        return
    program = pathlib.Path(sys.executable).with_name("tpchgen-cli")
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    subprocess.run([program, "parquet", "-s", scale, "-o", part, "--quiet"], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def warm(folder):
    """Reads the input once, so that the first load does not pay for the disk."""
    return sum(len(file.read_bytes()) for file in sorted(folder.glob("*.parquet")))
