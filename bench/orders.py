#!/usr/bin/env python3
"""How good the order of joins is: the rows that all joins of a query make, beside the fewest of many orders drawn at random.

    python3 bench/orders.py STORE [--suite job|tpch|stats|ssb] [--tries 30] [--queries 1a,2b] [--atoll PROGRAM] [--seconds]

With `--seconds`: how much the order matters. The slowest of all orders is set beside the fastest, each the faster of two runs; an
order that takes longer than --timeout counts as that.

Rows are counted by `explain (analyze, format json)`: those that leave each join, of build sides too. An order that takes longer than
--timeout counts as none. The last line tells how many queries are within twice the fewest rows, and the worst.
"""

import argparse
import json
import pathlib
import statistics
import sys

import engines
import machine
import serial

LEAST = 1000  # rows that a query may make in any case: fewer say nothing


def joined(node):
    """Rows that leave the joins of a step and of those below."""
    operators = [one for one in node.get("Operators", []) if not one["Name"].startswith("read ")]
    rows = 0
    for place, one in enumerate(operators):
        if one["Name"].startswith("dot stage"):
            after = operators[place + 1 : place + 2]
            rows += after[0].get("Rows", 0) if after else 0
    return rows + sum(joined(below) for below in node.get("Plans") or [])


def counted(process, text, limit):
    answer = process.ask(f"explain (analyze, format json) {text.strip().rstrip(';')};\n", limit)
    return joined(json.loads(answer["rows"][0][0])[0]["Plan"])


def timed(process, text, limit):
    line = f"{text.strip().rstrip(';')};\n"
    return min(float(process.ask(line, limit)["seconds"]) for _ in range(2))


def run(given, texts, seed, measured=counted):
    """The rows for each query, by orders of this seed; without those that take too long, for which the process ends."""
    command = [given.atoll, "sql", given.store, "--threads", "2", "--json", "--planning", "each", "--read-only"]
    if seed is not None:
        command += ["--any-join-order", str(seed)]
    process, found = None, {}
    for name, text in texts.items():
        process = process or engines.Process("atoll", command, pathlib.Path("/tmp/atoll-orders.log"))
        try:
            found[name] = measured(process, text, given.timeout)
        except engines.Failed:
            process.close()
            process = None
    if process:
        process.close()
    return found


def spread(given, texts):
    """Prints how many times the seconds of the fastest order the slowest one takes."""
    all_orders = [run(given, texts, seed, timed) for seed in [None, *range(given.tries)]]
    ratios = {}
    for name in texts:
        seconds = [found.get(name, given.timeout) for found in all_orders]
        ratios[name] = max(seconds) / min(seconds)
        late = sum(name not in found for found in all_orders)
        print(f"{name:8} {1000 * min(seconds):8.1f} to {1000 * max(seconds):8.1f} ms, chosen {1000 * seconds[0]:8.1f}: {ratios[name]:.2f}{f', {late} too long' if late else ''}")
    worst = max(ratios, key=ratios.get)
    within = sum(ratio <= 3 for ratio in ratios.values())
    print(f"{within} of {len(ratios)} within 3 times the fastest order, geometric mean {statistics.geometric_mean(ratios.values()):.2f}, worst {worst} {ratios[worst]:.1f}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("store")
    options.add_argument("--suite", default="job")
    options.add_argument("--queries")
    options.add_argument("--tries", type=int, default=30)
    options.add_argument("--seconds", action="store_true", help="how much the order matters")
    options.add_argument("--timeout", type=int, default=3, help="seconds")
    options.add_argument("--atoll", default="target/release/atoll")
    options.add_argument("--out", help="write the results here, as JSON")
    given = options.parse_args()
    texts = serial.texts(given.suite)
    if given.queries:
        texts = {name: texts[name] for name in given.queries.split(",")}
    if given.seconds:
        return spread(given, texts)
    ours, best = run(given, texts, None), {}
    for seed in range(given.tries):
        for name, rows in run(given, texts, seed).items():
            best[name] = min(rows, best.get(name, rows))
    ratios = {}
    for name, rows in ours.items():
        fewest = min(best.get(name, rows), rows)
        ratios[name] = max(rows, LEAST) / max(fewest, LEAST)
        print(f"{name:8} {rows:12} rows, fewest {fewest:12}: {ratios[name]:.2f}")
    near = sum(ratio <= 2 for ratio in ratios.values())
    worst = max(ratios, key=ratios.get)
    print(f"{near} of {len(ratios)} within twice the fewest, median {statistics.median(ratios.values()):.2f}, worst {worst} {ratios[worst]:.1f}")
    if given.out:
        text = {"machine": machine.describe(), "suite": given.suite, "tries": given.tries, "ours": ours, "best": best}
        pathlib.Path(given.out).write_text(json.dumps(text, indent=1) + "\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
