"""The self-test of `suite.py`: what needs no engine; the suites themselves where NumPy and PyArrow are installed."""

import collections
import datetime
import json
import pathlib
import tempfile

import frame
import machine
import suite
import suites


def answer(types, *rows):
    return {"types": types.split(), "rows": [list(row) for row in rows]}


def answers():
    one = answer("bigint varchar double", [1, "a", "0.1"], [2, "b", "2.0"])
    assert not suite.difference(one, answer("int64 string double", [2, "b", 2], [1, "a", "0.1000000000001"]), False)
    assert "order" in suite.difference(one, answer("int64 string double", [2, "b", 2], [1, "a", "0.1"]), True)
    assert suite.difference(one, answer("int64 string double", [1, "a", "0.1"], [2, "b", "2.001"]), True)
    assert "rows" in suite.difference(one, answer("int64 string double", [1, "a", "0.1"]), False)
    assert "columns" in suite.difference(one, answer("int64", [1]), False)
    exact = answer("decimal(38,2)", ["1234567890123.10"])
    assert not suite.difference(exact, answer("decimal128(38,1)", ["1234567890123.1"]), False)
    assert suite.difference(exact, answer("decimal128(38,2)", ["1234567890123.11"]), False), "decimals are exact"
    assert suite.difference(answer("varchar", ["007"]), answer("string", ["7"]), False), "a text of digits is a text"
    moment = answer("timestamp timestamptz date", ["2020-01-02T03:04:05.120000", "2020-01-02T00:00:00Z", "2020-01-02"])
    same = ["2020-01-02 03:04:05.12", "2020-01-02 00:00:00+00:00", "2020-01-02 00:00:00"]
    assert not suite.difference(moment, answer("timestamp[us] timestamp[us] date32", same), True)
    assert not suite.difference(answer("double", ["NaN"]), answer("double", ["nan"]), True)
    assert not suite.difference(answer("bigint", [None]), answer("int64", [None]), True)
    assert suite.difference(answer("bigint", [None]), answer("int64", [0]), True)
    assert suite.is_ordered("select 1 order by 1") and not suite.is_ordered("select f(x) over (order by y) from t")


def choices():
    names = ["q1", "q2", "q3.1", "q4"]
    assert suite.chosen(names, None) == names and suite.chosen(names, "q4,q1-q3.1") == names
    assert suite.wording("select\n 1", "duckdb") == "select 1"
    words = {"": "own", "duckdb": "peer"}
    assert [suite.wording(words, engine) for engine in ("atoll", "before", "duckdb-parquet", "polars")] == ["own", "own", "peer", "own"]
    assert suite.wording({"duckdb": "only"}, "atoll") is None
    assert suite.elsewhere(["--suite", "job"]) is None and suite.elsewhere(["--help"]) is None
    assert suite.elsewhere(["--suite=tpcds", "--peers=duckdb"])[1:] == [str(suite.HERE / "tpcds.py")]
    assert suite.elsewhere(["--suite", "tpch", "--peers", "duckdb", "--scale", "1"])[2:] == ["--engines", "atoll,duckdb", "--scale", "1"]
    assert suite.elsewhere(["--repeat", "2", "--suite", "clickbench"])[1:] == [str(suite.HERE / "hits.py"), "--repeat", "2"]
    given = suite.options(["--suite", "ssb", "--size", "0.50"])
    assert (given.peers, given.size) == (["duckdb"], "0.5")
    assert suite.options(["--suite", "ssb", "--peers", "none"]).peers == []


class Engine:
    """Answers what it is told to, in a tenth of its number of seconds."""

    process = collections.namedtuple("Process", "child")(None)

    def __init__(self, name, number, *rows):
        self.name, self.number, self.rows = name, number, rows

    def query(self, _):
        return {**answer("bigint", *self.rows), "seconds": self.number / 10, "wall": 0.0}


def turns():
    own, peer, wrong = Engine("atoll", 1, [1]), Engine("duckdb", 4, [1]), Engine("atoll", 1, [2])
    said, frame.say = frame.say, lambda *_: None
    try:
        right = suite.measure("a", "select 1", [own, peer], 3, 0)
        differs = suite.measure("b", "select 1", [wrong, peer], 3, 0)
        speechless = suite.measure("c", {"duckdb": "select 1"}, [own, peer], 1, 0)
    finally:
        frame.say = said
    summary = frame.summarise({}, right + differs + speechless, ["atoll", "duckdb"])
    assert len(right) == 8 and summary["ratios"]["duckdb"]["queries"] == 1
    assert abs(summary["ratios"]["duckdb"]["geometric_mean"] - 0.25) < 1e-9
    assert "not what duckdb" in next(t for t in differs if t["engine"] == "atoll")["wrong"]
    assert [t["engine"] for t in speechless if "error" in t] == ["atoll"], "asked once"
    assert [bar["passed"] for bar in suite.bars(summary, "job", True)] == [True, True]
    assert [bar["passed"] for bar in suite.bars({"ratios": {}}, "job", True) + suite.bars(summary, "job", False)] == [None] * 4
    assert set(suite.BARS) == set(suites.NAMES)
    begun = datetime.datetime(2026, 1, 2, 3, 4, 5)
    with tempfile.TemporaryDirectory() as where:
        path = frame.save({"machine": machine.describe(), "summary": summary}, begun, pathlib.Path(where), "job-")
        assert path.name.startswith("2026-01-02T030405-job-") and json.loads(path.read_text())["summary"]


def made():
    """Every suite has rows, which the seed decides, and texts for each engine."""
    try:
        import duckdb
        from suites.draw import Draw
    except ImportError:
        print("suite: NOT CHECKED that a seed gives the same rows, duckdb, numpy or pyarrow is not installed")
        return
    for name in suites.NAMES:
        one = suite.module(name)
        first, again, other = ({table: rows for table, rows in one.tables(Draw(seed), 0.001)} for seed in (1, 1, 2))
        assert all(rows.num_rows and rows.equals(again[table]) for table, rows in first.items()), name
        assert any(not rows.equals(other[table]) for table, rows in first.items()), name
        with duckdb.connect() as asked:
            for table, rows in first.items():
                own = one.__dict__.get("TYPES", {}).get(table, {})
                asked.register("rows", rows)
                listed = ", ".join(f"{column}::{kinds[1]} as {column}" for column, kinds in own.items()) or "*"
                asked.execute(f"create table {table} as select {listed} from rows")
            for query, words in one.QUERIES.items():
                texts = [suite.wording(words, engine) for engine in ("atoll", "duckdb")]
                assert all(text and ";" not in text and "--" not in text for text in texts), query
                asked.execute(f"explain {texts[1]}")


def run():
    answers()
    choices()
    turns()
    made()
    print("suite: self-test passed")
