"""Tables, imports, and statements for many rows."""

import datetime
from decimal import Decimal

import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import atoll


@pytest.fixture
def db():
    with atoll.open(threads=2, memory_limit=512 << 20) as db:
        db.sql("create table t (a bigint primary key, b varchar default 'none', c decimal(10,2))")
        yield db


def test_a_table_is_what_it_is_now(db):
    table = db.table("t")
    assert (table.name, table.columns, len(table)) == ("t", ["a", "b", "c"], 0)
    assert table.types == ["bigint", "varchar", "decimal(10,2)"]
    db.sql("insert into t values (1, 'one', 1.5)")
    assert table.fetchall() == list(table) == [(1, "one", Decimal("1.50"))]
    assert table.schema.names == ["a", "b", "c"] and table.schema.field("a").type == pyarrow.int64()
    assert table.arrow().num_rows == len(table.df()) == len(table.pl()) == len(table.numpy()["a"]) == 1
    assert pyarrow.table(table).equals(table.arrow())
    assert repr(table) == "t (a bigint, b varchar, c decimal(10,2)), 1 rows"
    assert "<td>one</td>" in table._repr_html_()
    db.sql('create table "Odd ""name" as select 1 as x')
    assert db.table('Odd "name').fetchall() == [(1,)]
    with pytest.raises(atoll.ProgrammingError, match='relation "nothing" does not exist'):
        db.table("nothing")


def test_append(db):
    table = db.table("t")
    assert table.append(pyarrow.table({"C": ["2.5"], "a": [1]})) == 1
    assert table.append(pandas.DataFrame({"a": [2, 3], "b": ["two", None]})) == 2
    assert table.append(polars.DataFrame({"x": [4], "y": ["four"], "z": [Decimal("4.25")]}), by_position=True) == 1
    assert table.append({"a": numpy.arange(5, 8)}) == 3
    assert table.append(db.sql("select max(a) + 1 as a from t")) == 1
    assert sorted(table.fetchall()) == [
        (1, "none", Decimal("2.50")),
        (2, "two", None),
        (3, None, None),
        (4, "four", Decimal("4.25")),
        *((a, "none", None) for a in range(5, 9)),
    ]


def test_append_refuses_with_names(db):
    table = db.table("t")
    for frame, kind, text in [
        (pyarrow.table({"a": [1], "d": [2]}), atoll.ProgrammingError, 'table "t" has no column "d"; it has a, b, c'),
        (pyarrow.table({"b": ["x"]}), atoll.IntegrityError, "a"),
        (pyarrow.table({"a": [1, 1]}), atoll.IntegrityError, "a"),
        ([1, 2], atoll.InterfaceError, "append takes a data frame, and this is a list"),
    ]:
        with pytest.raises(kind, match=text):
            table.append(frame)
    with pytest.raises(atoll.ProgrammingError, match="3 columns, and the frame has 1"):
        table.append(pyarrow.table({"a": [1]}), by_position=True)
    with pytest.raises(atoll.Error):
        table.append(pyarrow.table({"a": ["no number"]}))
    with pytest.raises(ZeroDivisionError), db.transaction():
        table.append({"a": numpy.arange(10)})
        assert len(table) == 10
        raise ZeroDivisionError
    assert len(table) == 0


def test_many_rows_are_appended(db):
    frame = pyarrow.table({"a": numpy.arange(500_000), "b": [f"text {n}" for n in range(500_000)]})
    assert db.table("t").append(frame) == 500_000
    assert db.sql("select count(*), sum(a), max(b) from t").fetchone() == (500_000, sum(range(500_000)), "text 99999")


def test_import(db, tmp_path):
    for part in range(2):
        rows = pyarrow.table({"x": [part * 10 + n for n in range(3)], "y": ["a", None, "c"]})
        pyarrow.parquet.write_table(rows, tmp_path / f"{part}.parquet")
    assert db.import_("p", tmp_path / "*.parquet", progress=False) == 6
    assert db.sql("select sum(x), count(y) from p").fetchone() == (36, 4)
    with pytest.raises(atoll.Error, match="p"):
        db.import_("p", tmp_path / "0.parquet")
    assert db.import_("p", [tmp_path / "0.parquet"], append=True) == 3
    assert db.import_("p", [str(tmp_path / "0.parquet")], replace=True) == 3
    assert len(db.table("p")) == 3

    (tmp_path / "x.txt").write_text("1;'a;b'\n2;-\n")
    options = dict(format="csv", delimiter=";", quote="'", header=False, null="-", schema="n int, s varchar", primary_key=["n"])
    assert db.import_("c", tmp_path / "x.txt", **options) == 2
    assert db.sql("select * from c order by n").fetchall() == [(1, "a;b"), (2, None)]
    (tmp_path / "bad.csv").write_text("n,s\n3,x\nfour,y\n")
    with pytest.raises(atoll.DataError, match=r"bad.csv:3"):
        db.import_("c", tmp_path / "bad.csv", append=True)
    assert len(db.table("c")) == 2


def test_import_refuses(db, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n")
    for options, text in [
        ({"format": "xlsx"}, "no format"),
        ({"compression": "rar"}, "no compression"),
        ({"delimiter": "ab"}, "delimiter: give one ASCII character"),
        ({"append": True, "replace": True}, "exclude each other"),
    ]:
        with pytest.raises(atoll.InterfaceError, match=text):
            db.import_("n", file, **options)
    with pytest.raises(atoll.DataError, match="nowhere.csv"):
        db.import_("n", tmp_path / "nowhere.csv")
    with db.transaction(), pytest.raises(atoll.InterfaceError, match="transaction of its own"):
        db.import_("n", file)
    assert db.tables() == {"t": 0}


def test_import_tells_how_far_it_is(db, tmp_path, capsys):
    file = tmp_path / "x.csv"
    file.write_text("a\n" + "\n".join(map(str, range(1_000_000))) + "\n")
    told = []
    assert db.import_("n", file, progress=lambda rows, share: told.append((rows, share))) == 1_000_000
    assert told == sorted(told) and all(share is None or 0 <= share <= 1 for _, share in told)

    def stop(rows, share):
        raise ZeroDivisionError

    if told:
        with pytest.raises(ZeroDivisionError):
            db.import_("m", file, progress=stop)
        assert "m" not in db.tables()
    db.import_("n", file, replace=True)
    assert capsys.readouterr().err == "", "nobody sees a bar here"


def test_the_bar(capsys):
    from atoll._progress import Bar

    bar = Bar("fish")
    bar(5, 0.5)
    assert capsys.readouterr().err == "", "too soon"
    bar._begun -= 10
    bar(5, 0.5)
    bar(1234, None)
    bar.close()
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown == ["", "fish [" + "#" * 15 + "." * 15 + "]  50%, 5 rows", "fish: 1,234 rows", ""]


def test_executemany(db):
    rows = [(n, f"row {n}", Decimal(n) / 4) for n in range(1000)]
    assert db.executemany("insert into t values ($1, $2, $3)", rows) == 1000
    assert db.sql("select * from t order by a").fetchall() == [(a, b, c.quantize(Decimal("0.01"))) for a, b, c in rows]
    assert db.executemany("update t set b = $2 where a = $1", [(1, "x"), (2, None), (5000, "y")]) == 2
    assert db.executemany("delete from t where a = $1", ([n] for n in range(10))) == 10
    assert db.executemany("insert into t (b, a) values ($2, $1)", [(-1, "minus")]) == 1
    assert db.sql("select b from t where a = -1").fetchone() == ("minus",)
    assert db.executemany("insert into t values ($1)", []) == 0


def test_executemany_is_all_or_nothing(db):
    with pytest.raises(atoll.IntegrityError):
        db.executemany("insert into t (a) values ($1)", [(1,), (2,), (1,)])
    assert len(db.table("t")) == 0
    db.sql("insert into t (a) values (12)")
    with pytest.raises(atoll.DataError):
        db.executemany("update t set a = a / $1", [(2,), (0,)])
    assert db.table("t").fetchall() == [(12, "none", None)]
    with pytest.raises(atoll.ProgrammingError):
        db.executemany("insert into t values ($1, $2)", [(1, "a"), (2,)])
    assert len(db.table("t")) == 1


def test_executemany_takes_all_types(db):
    db.sql("create table k (a bigint, b double, c boolean, d bytea, e date, f time, g timestamp, h varchar, i decimal(12,3))")
    row = (
        1,
        float("1e-5"),
        True,
        b"\0\xff",
        datetime.date(2026, 11, 25),
        datetime.time(1, 2, 3, 500),
        datetime.datetime(2026, 11, 25, 1, 2, 3, 4),
        "x'y",
        Decimal("1.125"),
    )
    none = (None,) * len(row)
    text = "insert into k values (" + ", ".join(f"${n + 1}" for n in range(len(row))) + ")"
    assert db.executemany(text, [row, none]) == 2
    assert db.sql("select * from k order by a").fetchall() == [row, none]
    # Values of several types in a column are written row by row.
    assert db.executemany("insert into k (b) values ($1)", [(1,), (2.5,), (Decimal("3.5"),)]) == 3
    assert db.sql("select sum(b) from k where b >= 1").fetchone() == (7.0,)


def test_executemany_within_a_transaction(db):
    with pytest.raises(ZeroDivisionError), db.transaction():
        assert db.executemany("insert into t (a) values ($1)", [(1,), (2,)]) == 2
        assert len(db.table("t")) == 2
        raise ZeroDivisionError
    assert len(db.table("t")) == 0


def test_tables_of_schemas(db):
    db.script("create schema sea; create table sea.fish (n bigint); insert into sea.fish values (1)")
    fish = db.table("sea.fish")
    assert fish.append(pyarrow.table({"n": [2, 3]})) == 2
    assert len(fish) == 3 and sorted(fish.fetchall()) == [(1,), (2,), (3,)]
    assert db.tables()["sea.fish"] == 3
    db.sql('create table "sea.fish" (m bigint)')
    assert db.table("sea.fish").columns == ["m"]
    with pytest.raises(atoll.ProgrammingError):
        db.table("sea.nothing")
