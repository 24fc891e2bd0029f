"""The interface of PEP 249."""

import datetime
import inspect

import pytest

import atoll
from atoll import dbapi


@pytest.fixture
def connection():
    with dbapi.connect(threads=2, memory_limit=512 << 20) as connection:
        connection.execute("create table t (a int primary key, b varchar)")
        connection.commit()
        yield connection


def test_the_module_has_what_pep_249_wants():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    assert issubclass(dbapi.IntegrityError, dbapi.DatabaseError) and issubclass(dbapi.DatabaseError, dbapi.Error)
    assert issubclass(dbapi.InterfaceError, dbapi.Error) and issubclass(dbapi.Warning, Exception)
    assert dbapi.Date(2026, 11, 25) == datetime.date(2026, 11, 25)
    assert dbapi.DateFromTicks(0).year in (1969, 1970) and dbapi.Binary(b"x") == b"x"
    assert isinstance(dbapi.TimeFromTicks(0), datetime.time) and isinstance(dbapi.TimestampFromTicks(0), datetime.datetime)
    for name in dbapi.__all__:
        assert hasattr(dbapi, name), name
    for kind in (dbapi.Connection, dbapi.Cursor):
        for name, member in vars(kind).items():
            if not name.startswith("_") and inspect.isfunction(member):
                assert member.__doc__, name


def test_rows(connection):
    cursor = connection.cursor()
    assert cursor.description is None and cursor.rowcount == -1
    assert cursor.execute("insert into t values (?, ?)", (1, "it's ?")).rowcount == 1
    assert cursor.executemany("insert into t values (?, ?)", [(2, None), (3, "x")]).rowcount == 2
    assert cursor.description is None
    with pytest.raises(dbapi.ProgrammingError, match="no rows"):
        cursor.fetchall()
    cursor.execute("select a, b from t where a >= ? order by a", [1])
    assert [column[:2] for column in cursor.description] == [("a", "integer"), ("b", "varchar")]
    assert cursor.description[0][1] == dbapi.NUMBER and cursor.description[1][1] == dbapi.STRING
    assert cursor.description[0][1] != dbapi.STRING
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.fetchone() == (1, "it's ?")
    assert cursor.fetchmany() == [(2, None)] and cursor.fetchmany(5) == [(3, "x")]
    assert cursor.fetchone() is None and cursor.fetchall() == []
    assert list(connection.execute("select a from t order by a desc")) == [(3,), (2,), (1,)]
    assert connection.execute("from t").fetch_arrow_table().num_rows == 3
    assert len(connection.execute("from t").fetch_df()) == 3


def test_transactions(connection):
    connection.execute("insert into t values (1, 'x')")
    connection.rollback()
    assert connection.execute("select count(*) from t").fetchone() == (0,)
    connection.execute("insert into t values (1, 'x')")
    connection.commit()
    connection.commit()
    with pytest.raises(dbapi.IntegrityError):
        connection.execute("insert into t values (1, 'again')")
    with pytest.raises(dbapi.Error):
        connection.execute("select 1")
    connection.rollback()
    assert connection.execute("select count(*) from t").fetchone() == (1,)


def test_with_commits_or_rolls_back(tmp_path):
    path = tmp_path / "x.atoll"
    with dbapi.connect(path, threads=2) as connection:
        connection.execute("create table t (a int)")
    with pytest.raises(ZeroDivisionError), dbapi.connect(path, threads=2) as connection:
        connection.execute("insert into t values (1)")
        raise ZeroDivisionError
    with dbapi.connect(path, threads=2, autocommit=True) as connection:
        assert connection.execute("from t").fetchall() == []
        connection.execute("insert into t values (2)")
        connection.rollback()
        assert connection.execute("from t").fetchall() == [(2,)]
    with dbapi.connect(path, read_only=True, threads=2) as connection:
        assert connection.execute("from t").fetchall() == [(2,)]
    with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
        connection.cursor()


def test_connections_of_one_database():
    with atoll.open(threads=2, memory_limit=512 << 20) as db:
        one, other = dbapi.Connection(db), dbapi.Connection(db)
        one.execute("create table t (a int)")
        one.commit()
        one.execute("insert into t values (1)")
        assert other.execute("select count(*) from t").fetchone() == (0,)
        one.commit()
        other.rollback()
        assert other.execute("select count(*) from t").fetchone() == (1,)
        one.close()
        one.close()
        assert db.sql("from t").fetchall() == [(1,)]


def test_misuse(connection):
    cursor = connection.cursor()
    for text, values in [("select ?", []), ("select ?", None), ("select ?, ?", [1])]:
        with pytest.raises(dbapi.ProgrammingError, match="are given"):
            cursor.execute(text, values)
    with pytest.raises(dbapi.ProgrammingError):
        cursor.executemany("insert into t values (?, ?)", [(1, "x"), (2,)])
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
        cursor.execute("select 1")
    assert connection.Error is dbapi.Error


@pytest.mark.parametrize(
    ("text", "wanted", "count"),
    [
        ("a = ? and b = ?", "a = $1 and b = $2", 2),
        ("'?' || ?", "'?' || $1", 1),
        ("'it''s ?' || ?", "'it''s ?' || $1", 1),
        (r"e'\'?' || ?", r"e'\'?' || $1", 1),
        (r"'\' || ?", r"'\' || $1", 1),
        ('"a?""b" = ?', '"a?""b" = $1', 1),
        ("/* ? /* ? */ ? */ ?", "/* ? /* ? */ ? */ $1", 1),
        ("-- ?\n?", "-- ?\n$1", 1),
        ("$$?$$ || $x$ ? $$ ? $x$ || ?", "$$?$$ || $x$ ? $$ ? $x$ || $1", 1),
        ("'open ?", "'open ?", 0),
        ("-- ?", "-- ?", 0),
        ("", "", 0),
    ],
)
def test_question_marks_are_numbered(text, wanted, count):
    assert dbapi.numbered(text) == (wanted, count)
