"""What the package hands to other libraries."""

import datetime
from decimal import Decimal

import numpy
import pandas
import polars
import pyarrow
import pytest

import atoll

TEXT = "a text that is too long to stand in a view"


@pytest.fixture
def db():
    with atoll.open(threads=2, memory_limit=512 << 20) as db:
        db.sql("create table t (a bigint, b varchar, c decimal(10,2), d date, e double, f boolean, g bytea)")
        db.sql("insert into t values ($1, $2, $3, $4, $5, $6, $7)", [1, TEXT, Decimal("2.50"), datetime.date(2026, 11, 25), 1.5, True, b"\0x"])
        db.sql("insert into t (a) values (2)")
        yield db


def test_arrow(db):
    result = db.sql("select * from t order by a")
    table = result.arrow()
    table.validate(full=True)
    assert table.to_pylist()[0] == dict(zip("abcdefg", (1, TEXT, Decimal("2.50"), datetime.date(2026, 11, 25), 1.5, True, b"\0x")))
    assert table.to_pylist()[1] == {"a": 2, **dict.fromkeys("bcdefg")}
    assert result.arrow().equals(table), "and again"
    assert pyarrow.table(result).equals(table)
    assert table.schema.field("b").type == pyarrow.string()


def test_many_rows_with_nulls(db):
    text = "select x, case when x % 3 = 0 then null else x::varchar end as s from generate_series(1, 100000) s(x) order by x"
    table = db.sql(text).arrow()
    table.validate(full=True)
    assert table.num_rows == 100000
    assert table["s"].null_count == 33333
    assert table["s"][99999].as_py() == "100000"
    with db.sql(text).reader() as reader:
        rows = sum(batch.num_rows for batch in reader)
    assert rows == 100000


def test_a_reader_takes_the_rows(db):
    result = db.sql("select x from generate_series(1, 100000) s(x)")
    reader = result.reader()
    with pytest.raises(atoll.InterfaceError):
        result.fetchall()
    assert reader.read_all().num_rows == 100000


def test_pandas_polars_numpy(db):
    result = db.sql("select a, b, c, e from t order by a")
    frame = result.df()
    assert isinstance(frame, pandas.DataFrame) and frame["b"][0] == TEXT and frame["c"][0] == Decimal("2.50")
    frame = result.pl()
    assert isinstance(frame, polars.DataFrame) and frame.row(0) == (1, TEXT, Decimal("2.50"), 1.5)
    columns = result.numpy()
    assert columns["a"].dtype == numpy.int64 and columns["a"].tolist() == [1, 2]
    assert columns["c"][0] == 2.5 and columns["c"].mask.tolist() == [False, True]
    assert len(result.fetchall()) == 2


def test_decimals_that_are_no_numbers_do_not_leave(db):
    result = db.sql("select 'NaN'::numeric as n")
    for leave in (result.arrow, result.df, result.pl, result.numpy):
        with pytest.raises(Exception, match='column "n" holds NaN'):
            leave()
    assert numpy.isnan(db.sql("select 'NaN'::numeric::double as n").numpy()["n"][0])


def test_nothing(db):
    table = db.sql("select a, b from t where a > 100").arrow()
    assert table.num_rows == 0 and table.column_names == ["a", "b"]


def test_a_stream_that_is_not_read_ends_its_statement(db):
    db.sql("select x from generate_series(1, 10000000) s(x)").__arrow_c_stream__()
    assert db.sql("select 1").fetchall() == [(1,)]


def test_the_driver_manager_of_adbc_finds_the_driver(tmp_path):
    manager = pytest.importorskip("adbc_driver_manager.dbapi")
    with manager.connect(driver=atoll.adbc_driver(), db_kwargs={"path": str(tmp_path / "reef.atoll")}) as db, db.cursor() as cursor:
        cursor.adbc_ingest("fish", pyarrow.table({"name": ["blenny", "wrasse"], "length": [0.1, 0.4]}))
        cursor.execute("select name from fish where length > ?", (0.2,))
        assert cursor.fetch_arrow_table().to_pylist() == [{"name": "wrasse"}]
        db.commit()
    with atoll.open(tmp_path / "reef.atoll") as db:
        assert db.sql("select count(*) from fish").fetchall() == [(2,)]
