"""The results of one run as a page: self-contained HTML, inline SVG, light and dark, narrow screens."""

import html
import math

from engines import TITLES

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1c2230; --faint: #667085; --line: #d5dae3; --panel: #f6f7f9;
  --good: #14784a; --bad: #b42318; --atoll: #0b7285; --before: #868e96; --duckdb: #d69e00; --duckdb-parquet: #a97c10; --datafusion: #5b5bd6;
  --polars: #c2255c; --chdb: #868e96; --hyper: #2b8a3e; }
@media (prefers-color-scheme: dark) { :root { --ground: #12151c; --text: #e4e7ee; --faint: #98a2b3; --line: #333a48;
  --panel: #1a1f29; --good: #4cc38a; --bad: #ff8a7a; --atoll: #3bc9db; --before: #adb5bd; --duckdb: #ffd43b; --duckdb-parquet: #c9a227;
  --datafusion: #9d9dff; --polars: #f06595; --chdb: #adb5bd; --hyper: #8ce99a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: .3rem 0; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
p { margin: .4rem 0; } .faint, figcaption { color: var(--faint); font-size: .85rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; } .wrap td:first-child { white-space: normal; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: .8rem; }
figure { margin: 0; padding: .5rem .7rem; background: var(--panel); border-radius: .4rem; }
svg { display: block; width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: var(--text); }
svg .faint { fill: var(--faint); font-size: 11px; } svg line { stroke: var(--line); } svg .range { stroke: var(--text); opacity: .6; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
"""
WIDTH, LEFT, ROW, TOP = 360, 118, 19, 16


def text(value):
    return html.escape(str(value))


def duration(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"


class Scale:
    """Seconds to pixels, logarithmic, the same for every query."""

    def __init__(self, seconds):
        self.low = math.floor(math.log10(min(seconds)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(seconds))))

    def x(self, seconds):
        share = (math.log10(seconds) - self.low) / (self.high - self.low)
        return LEFT + max(0.0, min(1.0, share)) * (WIDTH - LEFT - 62)

    def ticks(self):
        return [10.0**power for power in range(self.low, self.high + 1)]


def figure(row, names, scale):
    height = TOP + ROW * len(names) + 4
    parts = []
    for tick in scale.ticks():
        x = scale.x(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 3}" y2="{height}"/>'
                     f'<text class="faint" x="{x:.1f}" y="{TOP - 6}" text-anchor="middle">{duration(tick)}</text>')
    for i, name in enumerate(names):
        y = TOP + ROW * i
        own = row["engines"][name]
        parts.append(f'<text x="0" y="{y + 13}">{text(TITLES[name])}</text>')
        fault = "wrong" if own["wrong"] else "error" if own["error"] else None
        if fault or own["seconds"] is None:
            parts.append(f'<text x="{LEFT + 4}" y="{y + 13}" style="fill:var(--bad)">{fault or "not run"}</text>')
            continue
        end = scale.x(own["seconds"])
        parts.append(f'<rect x="{LEFT}" y="{y + 3}" width="{max(1.0, end - LEFT):.1f}" height="{ROW - 6}" rx="2" '
                     f'style="fill:var(--{name})"/>')
        label = end
        if own["least"] is not None:
            label = max(end, scale.x(own["most"]))
            parts.append(f'<line class="range" x1="{scale.x(own["least"]):.1f}" x2="{label:.1f}" '
                         f'y1="{y + ROW / 2:.1f}" y2="{y + ROW / 2:.1f}"/>')
        parts.append(f'<text x="{label + 4:.1f}" y="{y + 13}">{duration(own["seconds"])}</text>')
    described = ", ".join(f"{TITLES[n]} {duration(row['engines'][n]['seconds'])}" for n in names if row["engines"][n]["seconds"])
    return (f'<figure><figcaption>Query {row["query"]}</figcaption><svg viewBox="0 0 {WIDTH} {height}" role="img" '
            f'aria-label="{text(described)}">{"".join(parts)}</svg></figure>')


def table(head, rows, kind=""):
    cells = "".join(f"<th>{text(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table class="{kind}"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def verdict(bar):
    if bar["passed"] is None:
        return '<span class="faint">not measured</span>'
    return '<span class="good">passed</span>' if bar["passed"] else '<span class="bad">missed</span>'


def summary_tables(summary):
    parts = []
    if summary["ratios"]:
        rows = [(text(TITLES[peer]), f"{r['geometric_mean']:.3f}", f"{1 / r['geometric_mean']:.2f}",
                 f"q{r['worst_query']}: {r['worst']:.2f}", r["queries"]) for peer, r in summary["ratios"].items()]
        parts += ["<h2>Atoll against each peer</h2><p class=\"faint\">Ratios of seconds, Atoll to peer: below 1 Atoll is faster.</p>",
                  table(("peer", "geometric mean", "times as fast", "worst query", "queries"), rows)]
        rows = [(text(b["name"]), f"{b['ratio']:.3f}" if b["ratio"] else "-", f"{b['at_most']:.3f}", verdict(b))
                for b in summary["bars"]]
        parts += ["<h2>Bars</h2>", table(("what", "ratio", "at most", ""), rows, "wrap")]
    if summary["loads"]:
        rows = [(text(TITLES[n]), f"{v['seconds']:.2f} s", f"{v['bytes'] / 1e6:.1f} MB") for n, v in summary["loads"].items()]
        parts += ["<h2>Load and size</h2>", table(("engine", "load", "stored"), rows)]
    return parts


def query_table(summary, names):
    rows = []
    for row in summary["queries"]:
        cells = [f"{row['query']}"]
        for name in names:
            own = row["engines"][name]
            if own["wrong"] or own["error"] or own["seconds"] is None:
                cells.append(f'<span class="bad" title="{text(own["wrong"] or own["error"])}">'
                             f'{"wrong" if own["wrong"] else "error"}</span>')
            else:
                cells.append(f"{own['seconds'] * 1e3:.1f}")
        rows.append(cells)
    return table(["query"] + [TITLES[n] for n in names], rows)


def page(result):
    summary = result["summary"]
    names = list(dict.fromkeys(t["engine"] for t in result["timings"]))
    names.sort(key=lambda n: list(TITLES).index(n))
    seconds = [t["seconds"] for t in result["timings"] if "seconds" in t]
    scale = Scale(seconds or [1.0])
    m = result["machine"]
    where = (f"{m['cpu']}, {m['usable_cpus']} of {m['cpus']} processors, {m['memory_bytes'] / 2**30:.0f} GiB, "
             f"{len(m['topology']['nodes']) or 1} NUMA node(s), Linux {m['kernel']}{', virtual machine' if m['hypervisor'] else ''}")
    engines = " · ".join(f"{TITLES[n].split(',')[0]} {v.get('version', '')}" for n, v in result["versions"].items())
    changed = " with uncommitted changes" if result["changed"] else ""
    parameters = "the same parameters" if result.get("parameters") == "fixed" else "parameters drawn anew"
    parts = [
        f"<h1>TPC-H at scale {text(result['scale'])}, {result['threads']} threads</h1>",
        f'<p>{text(result["date"])} · {text(where)}</p>',
        f'<p class="faint">{text(engines)} · commit {text((result["commit"] or "unknown")[:12])}{changed} · load before: '
        f'{m["load_average"][0]:.2f}</p>',
        f'<p class="faint">Hot; median of {result["repeat"]} repeats with {parameters}, engines in turn. Seconds run '
        "from the query's text to its last row, planning included. Bars are medians, thin lines reach from the least to the "
        "most; the scale is logarithmic.</p>",
        *summary_tables(summary),
        '<h2>Queries</h2><div class="grid">', *(figure(row, names, scale) for row in summary["queries"]), "</div>",
        "<h2>Milliseconds</h2>", query_table(summary, names),
    ]
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
            f'initial-scale=1"><title>Atoll: TPC-H scale {text(result["scale"])}</title><style>{STYLE}</style></head>'
            f'<body>{"".join(parts)}</body></html>\n')
