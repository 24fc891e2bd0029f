"""Whether two results of one query are equal.

Integers, text, dates and decimals: exactly. Averages and ratios: within 0.01, or 1e-9 relative. Rows: in any order where
ORDER BY leaves ties, and where LIMIT cuts through a tie, any of the tied rows.
"""

from decimal import Decimal

from answers import KINDS, canonical, kinds
from queries import DRAW, LIMITS, TEXT, VALIDATION, parameters, text

ABSOLUTE, RELATIVE = Decimal("0.01"), Decimal("1e-9")


def near(a, b) -> bool:
    if a in (None, "") or b in (None, ""):
        return a in (None, "") and b in (None, "")
    a, b = Decimal(str(a)), Decimal(str(b))
    return abs(a - b) <= max(ABSOLUTE, RELATIVE * max(abs(a), abs(b)))


class Result:
    def __init__(self, query: int, rows):
        self.query, self.kinds = query, kinds(query)
        if any(len(row) != len(self.kinds) for row in rows):
            raise ValueError(f"{len(rows[0])} columns, {len(self.kinds)} wanted")
        self.exact = [i for i, kind in enumerate(self.kinds) if kind != "approximate"]
        self.rows = rows
        self.ranked = sorted(rows, key=self.line)

    def line(self, row):
        return "|".join(canonical(row[i], self.kinds[i]) for i in self.exact)

    def keys(self):
        """What ORDER BY names, row by row."""
        return ["|".join(canonical(row[i], self.kinds[i]) for i in KINDS[self.query][1]) for row in self.rows]

    def without_last_tie(self):
        keys = self.keys()
        return Result(self.query, [row for row, key in zip(self.rows, keys) if key != keys[-1]])


def difference(query: int, got_rows, wanted_rows) -> str:
    """What differs, in words; empty when the results are equal."""
    try:
        got, wanted = Result(query, got_rows), Result(query, wanted_rows)
    except ValueError as error:
        return str(error)
    found = rows_differ(got, wanted)
    if found and len(got.rows) == len(wanted.rows) == LIMITS.get(query) and got.keys() == wanted.keys():
        found = rows_differ(got.without_last_tie(), wanted.without_last_tie())
    if not found and got.keys() != wanted.keys():
        found = "the rows are right, but not in the order of ORDER BY"
    return found


def rows_differ(got: Result, wanted: Result) -> str:
    if len(got.rows) != len(wanted.rows):
        return f"{len(got.rows)} rows, {len(wanted.rows)} wanted"
    for g, w in zip(got.ranked, wanted.ranked):
        if got.line(g) != wanted.line(w):
            return f"row {got.line(g)[:120]!r} stands where {wanted.line(w)[:120]!r} is wanted"
        for i, kind in enumerate(got.kinds):
            if kind == "approximate" and not near(g[i], w[i]):
                return f"{g[i]} where {w[i]} is wanted"
    return ""


def self_test():
    """Run by `python3 bench/compare.py`."""
    three = [["1", "9.50", "1995-03-01", "0"], ["2", "8", "1995-03-02", "0"], ["3", "8.0", "1995-03-02", "0"]]
    assert not difference(3, three, three)
    assert not difference(3, [three[0], three[2], three[1]], three), "ties in any order"
    assert "order" in difference(3, three[::-1], three)
    assert "rows" in difference(3, three[:2], three)
    assert difference(3, [three[0], three[1], ["4", "8", "1995-03-02", "0"]], three), "a tie that no limit cuts"
    full = [[str(n), str(100 - n), "1995-03-01", "0"] for n in range(9)]
    assert not difference(3, full + [["77", "1", "1995-03-01", "0"]], full + [["78", "1.0", "1995-03-01", "0"]])
    assert difference(3, full + [["77", "2", "1995-03-01", "0"]], full + [["78", "1", "1995-03-01", "0"]])
    assert not difference(17, [["348406.05"]], [[348406.0542857]]) and difference(17, [["348406.1"]], [[348406.05]])
    assert difference(17, [[None]], [["0"]]) and not difference(17, [[None]], [[None]])
    for query in TEXT:
        drawn = [text(query, parameters(query, repeat, "1", 1)) for repeat in range(6)]
        assert drawn == [text(query, parameters(query, repeat, "1", 1)) for repeat in range(6)], "the seed decides"
        assert len(set(drawn)) > 1 and "{" not in drawn[0] + drawn[1], query
    assert set(TEXT) == set(DRAW) == set(VALIDATION) == set(KINDS) == set(range(1, 23))
    print("compare: self-test passed")


if __name__ == "__main__":
    self_test()
