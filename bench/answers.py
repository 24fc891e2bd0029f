#!/usr/bin/env python3
"""Digests of the published TPC-H answers, and the comparison of a result with them.

    answers.py generate PUBLISHED AGREED   # -> crates/atoll/tests/answers/tpch.digest
    answers.py check SCALE QUERY FILE.csv  # one result against its digest
    answers.py --self-test

PUBLISHED and AGREED are folders of sf{0.01,0.1,1}/qNN.csv ('|' between fields): the published answers, and what the
peers agree on (`bench/run --write-results AGREED`). What a digest is, precisely, and why there are two sources:
crates/atoll/tests/answers/README.md. Needs nothing but Python.
"""

import argparse
import csv
import pathlib
import re
import sys
from dataclasses import dataclass, field
from decimal import Context, Decimal

DIGESTS = pathlib.Path(__file__).resolve().parent.parent / "crates/atoll/tests/answers/tpch.digest"
SCALES = ("0.01", "0.1", "1")
# Sums here are exact: more digits than any of them has.
EXACT = Context(prec=80)
# Absolute tolerance of averages and ratios; beyond 1e5 the relative one (1e-9) takes over.
TOLERANCE = "0.0001"

# Per query: the kind of each column, and the positions (from 0) that ORDER BY names, in its order.
# t text, d date, n exact number, a approximate number (average or ratio)
KINDS = {
    1: ("t t n n n n a a a n", (0, 1)),
    2: ("n t t n t t t t", (0, 2, 1, 3)),
    3: ("n n d n", (1, 2)),
    4: ("t n", (0,)),
    5: ("t n", (1,)),
    6: ("n", ()),
    7: ("t t n n", (0, 1, 2)),
    8: ("n a", (0,)),
    9: ("t n n", (0, 1)),
    10: ("n t n n t t t t", (2,)),
    11: ("n n", (1,)),
    12: ("t n n", (0,)),
    13: ("n n", (1, 0)),
    14: ("a", ()),
    15: ("n t t t n", (0,)),
    16: ("t t n n", (3, 0, 1, 2)),
    17: ("a", ()),
    18: ("t n n d n n", (4, 3)),
    19: ("n", ()),
    20: ("t t", (0,)),
    21: ("t n", (1, 0)),
    22: ("t n n", (0,)),
}
# Positions that hold, or depend on, the random text of addresses and comments, where the published answers come from
# other data than the specification's generator writes.
OTHER_TEXT = {2: {5, 7}, 10: {5, 7}, 13: {0, 1}, 15: {2}, 20: {1}}
WORDS = {"t": "text", "d": "date", "n": "number", "a": "approximate"}


def kinds(query):
    return [WORDS[k] for k in KINDS[query][0].split()]


def published(query: int) -> list:
    """Positions of the exact columns that are compared with the published answers."""
    return [i for i, kind in enumerate(kinds(query))
            if kind != "approximate" and i not in OTHER_TEXT.get(query, ())]


def fnv(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


NUMBER = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*?)0*)?")


def canonical(value, kind: str) -> str:
    """One exact value as text. None is the empty string."""
    if value is None:
        return ""
    text = str(value)
    if kind == "date":
        return text[:10] if re.fullmatch(r"\d{4}-\d\d-\d\d([ T]00:00:00(\.0+)?)?", text) else text
    if kind != "number" or text == "":
        return text
    found = NUMBER.fullmatch(text)
    if not found or not any(c.isdigit() for c in text):  # exponents, infinities: not exact, so never equal
        return "?" + text
    sign, whole, fraction = found.groups()
    number = (whole or "0") + ("." + fraction if fraction else "")
    return "-" + number if sign == "-" and number != "0" else number


def hash_lines(lines) -> str:
    return f"{fnv(''.join(line + chr(10) for line in lines).encode()):016x}"


@dataclass
class Column:
    name: str
    kind: str
    hash: str = "-"  # exact kinds
    sum: str = "-"  # numbers of both sorts
    weighted: str = "-"  # approximate
    tolerance: str = "-"  # approximate
    nulls: int = 0


@dataclass
class Digest:
    rows: int
    hash: str
    order: str
    published: str
    columns: list = field(default_factory=list)


def digest(query: int, names, rows) -> Digest:
    """`rows`: lists of str, int, Decimal, float or None, as the engine gave them, in its order."""
    column_kinds = kinds(query)
    if len(names) != len(column_kinds) or any(len(row) != len(names) for row in rows):
        raise ValueError(f"query {query} has {len(column_kinds)} columns, the result has {len(names)}")
    exact = [i for i, kind in enumerate(column_kinds) if kind != "approximate"]

    def line(row, positions):
        return "|".join(canonical(row[i], column_kinds[i]) for i in positions)

    ranked = sorted(rows, key=lambda row: line(row, exact).encode())
    result = Digest(
        rows=len(rows),
        hash=hash_lines(line(row, exact) for row in ranked),
        order=hash_lines(line(row, KINDS[query][1]) for row in rows),
        published=hash_published(query, rows),
    )
    for i, (name, kind) in enumerate(zip(names, column_kinds)):
        column = Column(name, kind, nulls=sum(row[i] is None or row[i] == "" for row in rows))
        if kind == "approximate":
            numbers = [Decimal(str(row[i])) if row[i] not in (None, "") else None for row in ranked]
            column.sum = total(v for v in numbers if v is not None)
            column.weighted = total(EXACT.multiply(n, v) for n, v in enumerate(numbers, 1) if v is not None)
            column.tolerance = TOLERANCE
        else:
            values = [canonical(row[i], kind) for row in rows]
            column.hash = hash_lines(sorted(values, key=str.encode))
            if kind == "number" and not any(v.startswith("?") for v in values):
                column.sum = total(Decimal(v) for v in values if v)
        result.columns.append(column)
    return result


def hash_published(query: int, rows) -> str:
    if query in OTHER_TEXT and not published(query):
        return "-"
    column_kinds = kinds(query)
    lines = ("|".join(canonical(row[i], column_kinds[i]) for i in published(query)) for row in rows)
    return hash_lines(sorted(lines, key=str.encode))


def total(values) -> str:
    sum_ = Decimal(0)
    for value in values:
        sum_ = EXACT.add(sum_, value)
    return canonical(format(sum_, "f"), "number")


def close(got: str, wanted: str, absolute: Decimal) -> bool:
    difference = abs(Decimal(got) - Decimal(wanted))
    return difference <= max(absolute, Decimal("1e-9") * abs(Decimal(wanted)))


def compare(got: Digest, wanted: Digest) -> list:
    """What differs, in words; empty when the results are equal."""
    problems = []
    if got.rows != wanted.rows:
        problems.append(f"{got.rows} rows, {wanted.rows} wanted")
    for g, w in zip(got.columns, wanted.columns):
        if g.nulls != w.nulls:
            problems.append(f"{w.name}: {g.nulls} nulls, {w.nulls} wanted")
        if w.kind == "approximate":
            n = wanted.rows
            tolerance = Decimal(w.tolerance)
            if not (close(g.sum, w.sum, n * tolerance) and close(g.weighted, w.weighted, n * (n + 1) // 2 * tolerance)):
                problems.append(f"{w.name}: sum {g.sum}, {w.sum} wanted")
        elif g.hash != w.hash:
            sums = f" (sum {g.sum}, {w.sum} wanted)" if w.kind == "number" else ""
            problems.append(f"{w.name}: other values{sums}")
    if not problems and got.hash != wanted.hash:
        problems.append("the columns are right one by one, but their values stand in other rows")
    if not problems and got.order != wanted.order:
        problems.append("the rows are right, but not in the order of ORDER BY")
    return problems


def write(path: pathlib.Path, digests: dict):
    lines = [
        "# Digests of the published TPC-H answers. Written by bench/answers.py; the README beside this file defines them.",
        "# query  SCALE QUERY ROWS HASH ORDER PUBLISHED",
        "# column SCALE QUERY POSITION NAME KIND NULLS HASH SUM WEIGHTED TOLERANCE SOURCE",
    ]
    for (scale, query), d in digests.items():
        lines.append(f"query {scale} {query} {d.rows} {d.hash} {d.order} {d.published}")
        for i, c in enumerate(d.columns):
            source = "agreed" if i in OTHER_TEXT.get(query, ()) else "published"
            lines.append(f"column {scale} {query} {i} {c.name} {c.kind} {c.nulls} {c.hash} {c.sum} {c.weighted} "
                         f"{c.tolerance} {source}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def read(path: pathlib.Path = DIGESTS) -> dict:
    digests = {}
    for line in path.read_text().splitlines():
        word, *rest = line.split(" ")
        if word == "query":
            scale, query, rows, hash_, order, published_ = rest
            digests[scale, int(query)] = Digest(int(rows), hash_, order, published_)
        elif word == "column":
            scale, query, position, name, kind, nulls, *more = rest
            columns = digests[scale, int(query)].columns
            assert len(columns) == int(position), line
            columns.append(Column(name, kind, more[0], more[1], more[2], more[3], int(nulls)))
        else:
            assert word == "#", line
    return digests


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)
    # A line that is empty is one NULL, not no row.
    return names, [[v if v != "" else None for v in row] if row else [None] for row in rows]


def verify(scale: str, query: int, names, rows, digests=None) -> list:
    """Compares a result of the validation parameters with the published answer."""
    wanted = (digests or read())[scale, query]
    try:
        return compare(digest(query, names, rows), wanted)
    except ValueError as error:
        return [str(error)]


def same_as_published(query: int, agreed: Digest, answer: Digest) -> list:
    """What differs in the columns that do not depend on the random text."""
    problems = []
    if agreed.published != "-":
        if agreed.rows != answer.rows or agreed.published != answer.published:
            problems.append("rows")
        if set(KINDS[query][1]) <= set(published(query)) and agreed.order != answer.order:
            problems.append("order")
    approximate = [i for i, kind in enumerate(kinds(query)) if kind == "approximate"]
    if approximate:
        problems += compare(agreed, answer)
    return problems


def generate(published_: pathlib.Path, agreed: pathlib.Path):
    digests = {}
    for scale in SCALES:
        for query in KINDS:
            file = pathlib.Path(f"sf{scale}", f"q{query:02}.csv")
            names, rows = read_csv(agreed / file)
            digests[scale, query] = digest(query, names, rows)
            problems = same_as_published(query, digests[scale, query], digest(query, *read_csv(published_ / file)))
            if problems:
                sys.exit(f"{agreed / file} differs from the published answer: {'; '.join(problems)}")
    write(DIGESTS, digests)
    print(f"{DIGESTS}: {len(digests)} answers, {DIGESTS.stat().st_size} bytes")


def self_test():
    for text, value in (("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)):
        assert fnv(text.encode()) == value, text
    for text, wanted in (("380456.00", "380456"), ("-0.00", "0"), ("-0.50", "-0.5"), (".5", "0.5"), ("007", "7"),
                         ("+12.340", "12.34"), ("100", "100"), ("1e5", "?1e5"), ("", ""), ("NaN", "?NaN")):
        assert canonical(text, "number") == wanted, (text, canonical(text, "number"))
    assert canonical("1995-03-11 00:00:00", "date") == "1995-03-11"
    # The example of the README.
    names = ["c_count", "custdist"]
    example = digest(13, names, [["0", "500"], ["10", "69"], ["9", "69.0"]])
    assert (example.rows, example.hash, example.order) == (3, "8fb3d15fe8a28c68", "a8ac246b1d131f7a"), example
    # Each sort of error is seen.
    for wrong in ([["0", "500"], ["10", "69"]], [["0", "500"], ["10", "69"], ["9", "68"]],
                  [["0", "69"], ["10", "500"], ["9", "69"]], [["10", "69"], ["0", "500"], ["9", "69"]],
                  [["0", "500"], ["10", None], ["9", "69"]]):
        assert compare(digest(13, names, wrong), example), wrong
    ratio = digest(8, ["o_year", "mkt_share"], [["1995", "0.0344358904"], ["1996", "0.0414855213"]])
    assert not compare(digest(8, ["y", "s"], [["1995", 0.03444], ["1996", 0.04149]]), ratio)
    for wrong in ([["1995", 0.0414855], ["1996", 0.0344359]], [["1995", 0.035], ["1996", 0.0415]]):
        assert compare(digest(8, ["y", "s"], wrong), ratio), wrong
    digests = read()
    assert set(digests) == {(scale, query) for scale in SCALES for query in KINDS}
    for (_, query), d in digests.items():
        assert [c.kind for c in d.columns] == kinds(query)
    print(f"answers: self-test passed, {len(digests)} digests")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    commands = parser.add_subparsers(dest="command")
    write_ = commands.add_parser("generate")
    write_.add_argument("published", type=pathlib.Path)
    write_.add_argument("agreed", type=pathlib.Path)
    check = commands.add_parser("check")
    check.add_argument("scale", choices=SCALES)
    check.add_argument("query", type=int, choices=list(KINDS))
    check.add_argument("file")
    options = parser.parse_args()
    if options.self_test:
        self_test()
    elif options.command == "generate":
        generate(options.published, options.agreed)
    elif options.command == "check":
        problems = verify(options.scale, options.query, *read_csv(options.file))
        print("\n".join(problems) or "equal")
        sys.exit(bool(problems))
    else:
        parser.error("say what to do")


if __name__ == "__main__":
    main()
