"""What all benchmarks of queries share: engines in turn, answers kept or refused, medians, ratios, the table, the file.

A timing is one query of one repeat by one engine: `query`, `repeat`, `engine`, `position` in the turn, and `seconds`, or
`error` when there was no answer, and `wrong` when it was not the right one.
"""

import json
import math
import statistics
import sys

import engines
import machine


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def rotated(items, by):
    by %= len(items)
    return items[by:] + items[:by]


def ask(peer, sql, entry):
    """The answer, or None and why there is none in `entry`. An engine that died is started again for its next request."""
    try:
        if peer.process is None:
            peer.open()
        answer = peer.query(sql)
    except engines.Failed as error:
        entry["error"] = str(error)
        if peer.process and peer.process.child.poll() is not None:
            peer.close()
        return None
    entry.update(seconds=float(answer["seconds"]), wall=answer["wall"], rows=len(answer["rows"]))
    entry.update({key: answer[key] for key in ("bytes", "ran_on") if key in answer})
    return answer


def show_progress(query, timings):
    mine = [t for t in timings if t["query"] == query and "seconds" in t]
    names = dict.fromkeys(t["engine"] for t in timings)
    parts = [f"{name} {median_of(mine, name) * 1e3:.1f}" for name in sorted(names) if median_of(mine, name)]
    say(f"q{query} ms: " + ", ".join(parts))


def median_of(timings, name):
    """Of the repeats that count (of repeat 0 when there are no others)."""
    for counted in (True, False):
        seconds = [t["seconds"] for t in timings if t["engine"] == name and (t["repeat"] > 0) == counted and "seconds" in t]
        if seconds:
            return statistics.median(seconds)
    return None


def summarise(loads, timings, names):
    rows = []
    for query in dict.fromkeys(t["query"] for t in timings):
        mine = [t for t in timings if t["query"] == query]
        row = {"query": query, "engines": {}}
        for name in names:
            own = [t for t in mine if t["engine"] == name]
            counted = [t["seconds"] for t in own if "seconds" in t and t["repeat"] > 0]
            row["engines"][name] = {
                "seconds": median_of(mine, name),
                "least": min(counted, default=None), "most": max(counted, default=None),
                "first": next((t.get("seconds") for t in own if t["repeat"] == 0), None),
                "wrong": next((t["wrong"] for t in own if "wrong" in t), None),
                "error": next((t["error"] for t in own if "error" in t), None),
            }
        rows.append(row)
    ratios = {}
    if "atoll" in names:
        for peer in names:
            if peer != "atoll":
                each = {r["query"]: ratio(r["engines"]["atoll"], r["engines"][peer]) for r in rows}
                each = {query: value for query, value in each.items() if value}
                if each:
                    worst = max(each, key=each.get)
                    mean = math.exp(statistics.fmean(map(math.log, each.values())))
                    ratios[peer] = {"geometric_mean": mean, "worst_query": worst, "worst": each[worst], "queries": len(each)}
    stored = {name: {key: statistics.median(l[key] for l in list_) for key in list_[0]} for name, list_ in loads.items() if list_}
    return {"queries": rows, "ratios": ratios, "loads": stored}


def ratio(mine, theirs):
    """A time counts only when every answer was there and right."""
    if any(e["seconds"] is None or e["wrong"] or e["error"] for e in (mine, theirs)):
        return None
    return mine["seconds"] / theirs["seconds"]


def print_table(summary, names):
    print(f"{'query':>8} " + " ".join(f"{name:>17}" for name in names) + "   ms, and how many times Atoll's")
    for row in summary["queries"]:
        cells = []
        for name in names:
            own = row["engines"][name]
            factor = ratio(own, row["engines"]["atoll"]) if "atoll" in names and name != "atoll" else None
            if own["error"] or own["wrong"]:
                cells.append(f"{'WRONG' if own['wrong'] else 'error':>17}")
            else:
                cells.append(f"{own['seconds'] * 1e3:9.1f}" + (f"{factor:7.2f}x" if factor else " " * 8))
        print(f"{row['query']:>8} " + " ".join(cells))
    for peer, found in summary["ratios"].items():
        print(f"Atoll / {peer}: geometric mean {found['geometric_mean']:.3f} (Atoll {1 / found['geometric_mean']:.2f} times as "
              f"fast) over {found['queries']} queries; worst q{found['worst_query']}: {found['worst']:.2f}")
    for name, stored in summary["loads"].items():
        print(f"load {name}: {stored['seconds']:.2f} s, {stored['bytes'] / 1e6:.1f} MB")


def print_bars(found):
    for bar in found:
        verdict = {None: "not measured", True: "passed", False: "MISSED"}[bar["passed"]]
        value = f"{bar['ratio']:.3f}" if bar["ratio"] else "-"
        print(f"bar: {bar['name']}: {value}, at most {bar['at_most']:.3f}: {verdict}")


def save(result, begun, folder, kind=""):
    """Writes all of a run under its date and machine; the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{begun:%Y-%m-%dT%H%M%S}-{kind}{machine.slug(result['machine'])}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path
