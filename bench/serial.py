#!/usr/bin/env python3
"""The serial share of each query: how much of its work is done while only one thread of the process has any.

    python3 bench/serial.py STORE [--suite tpch|ssb|job|stats|h2o|times] [--queries 1,4-6] [--threads 16] [--atoll PROGRAM]

A query runs again and again for some seconds with as many threads as a larger machine would give it; meanwhile the states of all threads are
looked at every two milliseconds. A thread that runs or could run counts. With n of them a machine of c cores does min(n, c) seconds of work
a second, so the serial share is the time with exactly one over the work done. Plans are kept, as the query is the same each time: planning
is not part of it. A share of s lets n threads be at most 1 / (s + (1 - s) / n) times as fast as one.
"""

import argparse
import importlib
import json
import os
import pathlib
import statistics
import sys
import threading
import time

import engines
import machine
import queries
import suite
import suites

EVERY = 0.002
CORES = len(os.sched_getaffinity(0))


class Watch(threading.Thread):
    """Counts the threads of a process that have work, again and again."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.folder, self.stop, self.counts = f"/proc/{pid}/task", False, []

    def run(self):
        while not self.stop:
            self.counts.append(self.working())
            time.sleep(EVERY)

    def working(self):
        found = 0
        for task in os.listdir(self.folder):
            try:
                with open(f"{self.folder}/{task}/stat", "rb") as stat:
                    found += stat.read().rsplit(b") ", 1)[1][:1] == b"R"
            except OSError:
                pass
        return found

    def share(self):
        alone = sum(count == 1 for count in self.counts)
        work = sum(min(count, CORES) for count in self.counts)
        return alone / work if work else 0.0


def texts(name):
    """The queries of a suite, as Atoll is given them."""
    if name == "tpch":
        return {str(n): queries.text(n, queries.parameters(n, 0, "1", 1), "atoll") for n in range(1, 23)}
    module = importlib.import_module(f"suites.{suites.MODULES.get(name, name)}")
    return {query: suite.wording(text, "atoll") for query, text in module.QUERIES.items()}


def measured(process, text, seconds):
    ask = text.strip().rstrip(";") + ";\n"
    for _ in range(3):
        once = float(process.ask(ask, 120)["wall"])
    watch = Watch(process.child.pid)
    watch.start()
    begun, times = time.monotonic(), []
    while time.monotonic() - begun < seconds:
        times.append(float(process.ask(ask, 120)["wall"]))
    watch.stop = True
    watch.join()
    return {"share": watch.share(), "seconds": statistics.median(times), "samples": len(watch.counts), "first": once}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("store")
    options.add_argument("--suite", default="tpch")
    options.add_argument("--queries")
    options.add_argument("--threads", type=int, default=16)
    options.add_argument("--seconds", type=float, default=2, help="for each query")
    options.add_argument("--atoll", default="target/release/atoll")
    options.add_argument("--out", help="write the results here, as JSON")
    given = options.parse_args()
    all_texts = texts(given.suite)
    names = given.queries.split(",") if given.queries else list(all_texts)
    log = pathlib.Path("/tmp/atoll-serial.log")
    process = engines.Process("atoll", [given.atoll, "sql", given.store, "--threads", str(given.threads), "--json"], log)
    results = {}
    for name in names:
        result = results[name] = measured(process, all_texts[name], given.seconds)
        print(f"{name:8} {result['seconds'] * 1000:9.1f} ms   serial {result['share'] * 100:5.1f} %", flush=True)
    process.close()
    shares = sorted(result["share"] for result in results.values())
    under = sum(share < 0.02 for share in shares)
    print(f"{under} of {len(shares)} under 2 %; median {statistics.median(shares) * 100:.1f} %, most {shares[-1] * 100:.1f} %")
    if given.out:
        text = {"machine": machine.describe(), "suite": given.suite, "threads": given.threads, "results": results}
        pathlib.Path(given.out).write_text(json.dumps(text, indent=1) + "\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
