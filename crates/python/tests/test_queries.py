"""LAQ, and what a long query shows."""

import datetime
import io
import time

import pytest

import atoll
from atoll import _progress


@pytest.fixture
def db():
    with atoll.open(threads=2, memory_limit=512 << 20) as db:
        db.script("create table fish (name varchar, length double)")
        db.executemany("insert into fish values ($1, $2)", [("blenny", 0.1), ("wrasse", 0.4), ("wrasse", 0.3)])
        yield db


def test_laq(db):
    result = db.laq("large = filter(fish.length > 0.2)\nreturn(fish.name, count(krao(large, fish.name)) as seen)")
    assert result.columns == ["name", "seen"] and result.fetchall() == [("wrasse", 2)]
    assert result.arrow().num_rows == 1, "and again"
    assert db.sql("select seen from result").fetchone() == (2,), "it is a frame, too"
    assert "filter" in db.explain_laq("return(sum(fish.length))") or db.explain_laq("return(sum(fish.length))")
    assert "rows" in db.explain_laq("return(sum(fish.length))", analyze=True)


def test_laq_that_is_wrong(db):
    with pytest.raises(atoll.ProgrammingError, match="line 1, column 17: `fish` has no attribute `lenght`"):
        db.laq("return(sum(fish.lenght))")
    for text in ["", "select 1", "return(", "return(sum(nothing.x))"]:
        with pytest.raises(atoll.ProgrammingError):
            db.laq(text)
    assert db.laq("return(count(fish.length) as n)").fetchall() == [(3,)], "and goes on"


def test_sessions_have_a_time_zone_and_values_are_in_utc(db):
    db.script("set timezone = 'Europe/Berlin'; set datestyle = 'German'")
    utc = datetime.datetime(2024, 6, 30, 22, tzinfo=datetime.timezone.utc)
    row = db.sql("select t, t::text, extract(hour from t) from (select '2024-07-01'::timestamptz as t) s").fetchone()
    assert row[0] == utc and row[1] == "01.07.2024 00:00:00 CEST" and row[2] == 0
    assert db.sql("show timezone").fetchone() == ("Europe/Berlin",)
    db.script("reset timezone; reset datestyle")
    assert db.sql("select '2024-07-01'::timestamptz::text").fetchone() == ("2024-07-01 00:00:00+00",)


class Terminal(io.StringIO):
    def isatty(self):
        return True


LONG = "select count(*) from generate_series(1, 30000) a(x), generate_series(1, 30000) b(y) where x * y % 7 = 3"


def test_long_queries_show_their_seconds(db, monkeypatch):
    monkeypatch.setattr(_progress, "_wished", None)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    began = time.monotonic()
    # However fast the machine is, the statement is stopped by what is told.
    told = []

    def tell(seconds):
        told.append(seconds)
        if len(told) == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        while time.monotonic() - began < 60:
            db._session().query(LONG.replace("30000", "300000"), None, [], tell).fill(1, tell)
    assert told[0] >= 2.0
    assert terminal.getvalue() == ""
    with _progress.waiting("the query") as wait:
        assert wait is not None
        wait(2.04)
    text = terminal.getvalue()
    assert "the query: 2.0 s, Ctrl-C stops it" in text and text.endswith("\r\x1b[K")
    assert db.sql("select 1").fetchall() == [(1,)]


def test_nobody_is_told_where_nobody_sees(monkeypatch):
    monkeypatch.setattr(_progress, "_wished", None)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with _progress.waiting("x") as wait:
        assert wait is None
    monkeypatch.setattr("sys.stderr", None)
    with _progress.waiting("x") as wait:
        assert wait is None
    monkeypatch.setattr("sys.stderr", Terminal())
    atoll.progress(False)
    with _progress.waiting("x") as wait:
        assert wait is None
    atoll.progress(True)
    with _progress.waiting("x") as wait:
        assert wait is not None


def test_infinite_dates_are_no_objects(db):
    infinite = db.sql("select date 'infinity' as day, timestamp '-infinity' as at")
    with pytest.raises(atoll.DataError, match="infinite"):
        infinite.fetchall()
    assert db.sql("select (date 'infinity')::text, isfinite(timestamptz '-infinity')").fetchone() == ("infinity", False)
    table = db.sql("select date 'infinity' as day").arrow()
    assert table.column(0).cast("int32").to_pylist() == [2**31 - 1]
