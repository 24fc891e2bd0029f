"""Data frames that statements read by name."""

import gc
import os
import signal
import threading
import time
import weakref
from decimal import Decimal

import numpy
import pandas
import polars
import pyarrow
import pytest

import atoll

GLOBAL = pyarrow.table({"a": [1, 2, 3]})


@pytest.fixture
def db():
    with atoll.open(threads=2, memory_limit=512 << 20) as db:
        db.script("create table t (a bigint, b varchar); insert into t values (1, 'one'), (2, 'two')")
        yield db


def frames():
    table = pyarrow.table({"a": [2, 3], "b": ["deux", None]})
    return {
        "pyarrow table": table,
        "pyarrow batch": table.to_batches()[0],
        "pyarrow reader": table.to_reader(),
        "pandas": pandas.DataFrame({"a": [2, 3], "b": ["deux", None]}),
        "polars": polars.DataFrame({"a": [2, 3], "b": ["deux", None]}),
        "polars lazy": polars.LazyFrame({"a": [2, 3], "b": ["deux", None]}),
        "numpy": {"a": numpy.array([2, 3]), "b": numpy.array(["deux", None], dtype=object)},
    }


@pytest.mark.parametrize("kind", frames())
def test_frames_are_read_by_the_names_of_variables(db, kind):
    df = frames()[kind]
    result = db.sql("select t.b, df.b from df join t on df.a = t.a")
    assert result.fetchall() == [("two", "deux")]
    if kind != "pyarrow reader":
        assert db.sql("select a, b from df order by a").fetchall() == [(2, "deux"), (3, None)]


def test_names_are_found_where_they_are_meant(db):
    a = polars.DataFrame({"x": [7]})
    t = pyarrow.table({"a": [100]})
    assert db.sql("select count(*) from t").fetchone() == (2,), "a table of the store comes before a variable"
    assert db.sql("select a from GLOBAL order by a").fetchall() == [(1,), (2,), (3,)]
    assert db.sql('select a from "GLOBAL" limit 1').fetchall() == [(1,)]
    assert db.sql("with a as (select 5 as x) select x from a").fetchall() == [(5,)]
    assert db.sql("select x from a where x = $1", [7]).fetchall() == [(7,)]

    def inner():
        return db.sql("select x from a").fetchall()

    with pytest.raises(atoll.ProgrammingError, match='relation "a" does not exist'):
        inner()
    assert (len(a), len(t)) == (1, 1)


def test_frames_that_are_given(db):
    frame = polars.DataFrame({"x": [7]})
    assert db.sql("select x from f", tables={"f": frame}).fetchall() == [(7,)]
    assert db.sql("select x from F", tables={"F": frame}).fetchall() == [(7,)]
    assert db.sql('select x from "F"', tables={"F": frame}).fetchall() == [(7,)]
    with pytest.raises(atoll.ProgrammingError, match="name of a table"):
        db.sql("select a from t", tables={"t": frame})
    with pytest.raises(atoll.InterfaceError, match=r"tables\['f'\] is a int"):
        db.sql("select x from f", tables={"f": 5})
    with pytest.raises(atoll.ProgrammingError, match='relation "f" does not exist'):
        db.sql("select x from f")


def test_errors_name_the_variable_and_its_type(db):
    df = [1, 2, 3]
    with pytest.raises(atoll.ProgrammingError, match='relation "df" does not exist.*the variable df is a list: what is read'):
        db.sql("select * from df")
    df = {"a": numpy.zeros((2, 2))}
    with pytest.raises(atoll.DataError, match="the variable df, a dict, cannot be read as a table"):
        db.sql("select * from df")
    assert df


def test_a_variable_is_no_hindrance(db):
    x = 3
    generate_series = pyarrow.table({"a": [1]})
    db.sql("create table x (a int)")
    assert db.sql("select count(*) from generate_series(1, 5)").fetchone() == (5,)
    assert x and generate_series


def test_frames_are_written_to_tables_and_not_written_to(db):
    df = pandas.DataFrame({"a": [3, 4], "b": ["three", "four"]})
    assert db.sql("insert into t select * from df").changed == 2
    db.sql("create table df as select a + 1 as a from df")
    assert db.sql("select max(a) from df").fetchone() == (5,), "now it is a table"
    frame = df
    for text in ["insert into frame values (1, 'x')", "delete from frame", "update frame set a = 1", "drop table frame"]:
        with pytest.raises(atoll.ProgrammingError, match='(relation|table) "frame" does not exist'):
            db.sql(text)
    with pytest.raises(atoll.ProgrammingError, match='(relation|table) "frame" does not exist'):
        db.sql("create view v as select * from frame")
    assert len(frame) == 2


def test_frames_within_a_transaction(db):
    df = pyarrow.table({"a": [9], "b": ["nine"]})
    with pytest.raises(ZeroDivisionError), db.transaction():
        assert db.sql("insert into t select * from df").changed == 1
        assert db.sql("select count(*) from df join t using (a)").fetchone() == (1,)
        raise ZeroDivisionError
    assert db.sql("select count(*) from t").fetchone() == (2,)


def test_types(db):
    import datetime
    from decimal import Decimal

    columns = {
        "i8": pyarrow.array([1, None], pyarrow.int8()),
        "u32": pyarrow.array([4_000_000_000, None], pyarrow.uint32()),
        "f32": pyarrow.array([0.5, None], pyarrow.float32()),
        "text": pyarrow.array(["a long text that lies in a buffer", None], pyarrow.large_string()),
        "view": pyarrow.array(["v", None], pyarrow.string_view()),
        "coded": pyarrow.array(["x", None]).dictionary_encode(),
        "money": pyarrow.array([Decimal("1.25"), None], pyarrow.decimal128(10, 2)),
        "day": pyarrow.array([datetime.date(2026, 11, 25), None], pyarrow.date32()),
        "moment": pyarrow.array([datetime.datetime(2026, 11, 25, 1, 2, 3), None], pyarrow.timestamp("ns")),
        "flag": pyarrow.array([True, None]),
        "raw": pyarrow.array([b"\0x", None], pyarrow.binary()),
        "nothing": pyarrow.nulls(2),
    }
    df = pyarrow.table(columns)
    first = db.sql("select * from df where i8 = 1").fetchall()
    expected = [column[0].as_py() for column in columns.values()]
    expected[8] = datetime.datetime(2026, 11, 25, 1, 2, 3)
    assert first == [tuple(expected)]
    assert db.sql("select * from df where i8 is null").fetchall() == [(None,) * len(columns)]
    back = db.sql("select * from df where i8 = 1").arrow()
    assert back["text"][0].as_py() == "a long text that lies in a buffer"


def test_structs_and_numbers_without_a_sign(db):
    kind = pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.string())])
    df = pyarrow.table(
        {
            "id": pyarrow.array([1, 2, 3]),
            "big": pyarrow.array([2**64 - 1, 2**63, None], pyarrow.uint64()),
            "s": pyarrow.array([{"a": 1, "b": "x"}, {"a": None, "b": "y z"}, None], kind),
            "l": pyarrow.array([[{"a": 1, "b": "p"}, None], [], None], pyarrow.list_(kind)),
        }
    )
    wanted = [tuple(row.values()) for row in df.to_pylist()]
    assert db.sql("select * from df order by id").fetchall() == wanted
    db.sql("create table nested as select * from df")
    assert db.sql("select * from nested order by id").fetchall() == wanted
    assert db.sql("select * from nested order by id").arrow().to_pylist() == df.to_pylist()
    assert db.sql("select id from df where s.b = 'x' or big = 9223372036854775808 order by id").fetchall() == [(1,), (2,)]
    assert db.sql("select id, l[1].b from nested order by id").fetchall() == [(1, "p"), (2, None), (3, None)]


def test_slices_and_many_chunks(db):
    whole = pyarrow.table({"a": numpy.arange(300_000), "b": [None if n % 3 else f"text {n}" for n in range(300_000)]})
    df = pyarrow.concat_tables([whole.slice(7, 100_000), whole.slice(5, 0), whole.slice(100_007, 199_993)])
    found = db.sql("select count(*), sum(a), min(a), count(b), max(b) from df").fetchone()
    numbers = range(7, 300_000)
    texts = [f"text {n}" for n in numbers if n % 3 == 0]
    assert found == (len(numbers), sum(numbers), 7, len(texts), max(texts))


def test_a_reader_is_read_once_and_its_errors_come_through(db):
    def batches(last):
        schema = pyarrow.schema([("a", pyarrow.int64())])

        def made():
            for n in range(10):
                yield pyarrow.record_batch([pyarrow.array([n] * 1000, pyarrow.int64())], schema)
            if last:
                raise last

        return pyarrow.RecordBatchReader.from_batches(schema, made())

    df = batches(None)
    assert db.sql("select sum(a) from df").fetchone() == (45_000,)
    df = batches(None)
    with pytest.raises(atoll.Error, match="df: was read already"):
        db.sql("select count(*) from df x, df y where x.a = y.a").fetchall()
    df = batches(ValueError("the generator has failed"))
    with pytest.raises(atoll.Error, match="the generator has failed"):
        db.sql("select sum(a) from df").fetchall()
    assert db.sql("select 1").fetchall() == [(1,)]


def test_results_are_frames(db):
    result = db.sql("select a from t")
    assert db.sql("select sum(a) from result").fetchone() == (3,)
    assert len(result.fetchall()) == 2, "and are still there"
    reader = db.sql("select x from generate_series(1, 200000) s(x)").reader()
    assert db.sql("select sum(x) from reader").fetchone() == (200_000 * 200_001 // 2,)


def test_control_c_stops_a_query_over_a_frame(db):
    df = pyarrow.table({"a": numpy.arange(3_000_000)})
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        db.sql("select count(*) from df x, df y where x.a * y.a % 7 = 3").fetchall()
    assert time.monotonic() - begun < 10
    assert db.sql("select count(*) from df").fetchone() == (3_000_000,)


def test_the_interpreter_is_released(db):
    ticks = []

    def batches():
        for n in range(20):
            time.sleep(0.02)
            yield pyarrow.record_batch({"a": pyarrow.array([n])})

    df = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("a", pyarrow.int64())]), batches())
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(1)

    ticker = threading.Thread(target=tick)
    ticker.start()
    assert db.sql("select sum(a) from df").fetchone() == (190,)
    stop.set()
    ticker.join()
    assert len(ticks) > 10


def test_frames_are_let_go(db):
    class Owner:
        pass

    def run():
        owner = Owner()
        memory = (bytes(800_000), owner)
        array = numpy.frombuffer(memory[0], numpy.int64)
        df = pyarrow.table({"a": array})
        assert db.sql("select count(*) from df").fetchone() == (100_000,)
        return weakref.ref(owner)

    gone = run()
    before = pyarrow.total_allocated_bytes()
    for _ in range(20):
        df = pyarrow.table({"a": list(range(10_000))})
        assert db.sql("select count(*) from df").fetchone() == (10_000,)
    del df
    gc.collect()
    assert gone() is None
    assert pyarrow.total_allocated_bytes() <= before + 200_000


def wide(rows=70_001):
    """A frame of every kind of column that is read as it lies, and others."""
    random = numpy.random.default_rng(3)
    moments = numpy.datetime64("2026-01-01", "ns") + numpy.arange(rows) * numpy.timedelta64(1_000_000_007, "ns")
    moments[::5] = numpy.datetime64("NaT")
    floats = random.random(rows)
    floats[::7] = numpy.nan
    texts = numpy.array([f"text {n % 1000} of some length" for n in range(rows)], dtype=object)
    texts[::11] = None
    texts[5], texts[6] = numpy.nan, pandas.NA
    frame = pandas.DataFrame({"i": numpy.arange(rows), "f": floats, "m": moments, "b": numpy.arange(rows) % 3 == 0})
    frame["i8"] = (numpy.arange(rows) % 200 - 100).astype("int8")
    frame["u2"] = (numpy.arange(rows) % 60_000).astype("uint16")
    frame["f4"] = floats.astype("float32")
    frame["o"] = pandas.Series(texts, dtype=object)
    frame["s"] = pandas.Series([None if n % 13 == 0 else f"väx {n}" for n in range(rows)])
    frame["c"] = pandas.Categorical([f"label {n % 7}" for n in range(rows)])
    frame["n"] = pandas.array([None if n % 17 == 0 else n for n in range(rows)], dtype="Int64")
    frame["d"] = [None if n % 2 else n * 0.5 for n in range(rows)]
    return frame


def test_pandas_gives_what_pyarrow_makes_of_it(db):
    df = wide()
    arrow = pyarrow.Table.from_pandas(df)
    for columns in ["*", "i", "f, o", "c, s, m", "n, d, b, i8, u2, f4"]:
        ours = db.sql(f"select {columns} from df").arrow()
        theirs = db.sql(f"select {columns} from arrow").arrow()
        assert ours.schema.equals(theirs.schema)
        for one, other in zip(ours.columns, theirs.columns):
            assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))
    asked = "select {key}, count(*), count(f), sum(i), max(o), min(m) from {name} group by {key} order by {key}"
    for key in ["b", "i8", "u2", "o", "c", "s"]:
        ours = db.sql(asked.format(key=key, name="df")).fetchall()
        theirs = db.sql(asked.format(key=key, name="arrow")).fetchall()
        assert ours == theirs, key


def test_slices_views_and_orders_of_columns(db):
    square = numpy.arange(30_000, dtype="float64").reshape(10_000, 3)
    square[3, 1] = numpy.nan
    df = pandas.DataFrame(square, columns=["a", "b", "c"])
    assert db.sql("select sum(a), count(b), max(c) from df").fetchone() == (sum(range(0, 30_000, 3)), 9_999, 29_999.0)
    df = df[::-2]
    assert db.sql("select min(a), max(c), count(*) from df").fetchone() == (3.0, 29_999.0, 5_000)
    arrays = {"x": numpy.arange(100)[::-3], "y": numpy.arange(200, dtype="int32")[::-1][::6]}
    assert db.sql("select sum(x), max(y), count(*) from arrays").fetchone() == (sum(range(0, 100, 3)), 199, 34)
    wrong = {"x": numpy.arange(3), "y": numpy.arange(4)}
    with pytest.raises(atoll.DataError, match='"y" has 4 rows and others have 3'):
        db.sql("select * from wrong")
    swapped = {"x": numpy.arange(5).astype(">i8")}
    assert db.sql("select sum(x) from swapped").fetchone() == (10,)
    masked = {"x": numpy.ma.masked_array([1, 2, 3], [False, True, False])}
    assert db.sql("select sum(x), count(x) from masked").fetchone() == (4, 2)
    nan = {"x": numpy.array([1.0, numpy.nan])}
    assert db.sql("select count(x) from nan").fetchone() == (2,), "NaN of NumPy is a number"


def test_an_index_that_says_something_is_a_column(db):
    df = pandas.DataFrame({"a": [1, 2]}, index=pandas.Index(["x", "y"], name="key"))
    assert db.sql("select key, a from df order by a").fetchall() == [("x", 1), ("y", 2)]
    df = pandas.DataFrame({"a": [1, 2]}, index=[7, 9])
    assert db.sql("select __index_level_0__ from df order by a").fetchall() == [(7,), (9,)]
    df = pandas.DataFrame({"a": [3, 1, 2]})[1:]
    assert db.sql("select * from df order by a").arrow().column_names == ["a"]
    df = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(atoll.Error, match='two columns "a"'):
        db.sql("select * from df")
    df = pandas.DataFrame({3: [1]})
    assert db.sql('select "3" from df').fetchall() == [(1,)]
    df = pandas.DataFrame({"a": []}, dtype=object)
    assert db.sql("select count(a), max(a) from df").fetchone() == (0, None)


def test_columns_of_objects(db):
    mixed = ["text"] * 5000
    mixed[4321] = 7
    df = pandas.DataFrame({"good": numpy.arange(5000), "mixed": pandas.Series(mixed, dtype=object)})
    assert db.sql("select sum(good) from df").fetchone() == (sum(range(5000)),), "a column that is not read does not matter"
    assert db.sql("select count(*) from df").fetchone() == (5000,)
    with pytest.raises(atoll.DataError, match="the variable df, a pandas.*cannot be read as a table"):
        db.sql("select mixed from df")
    from decimal import Decimal

    df = pandas.DataFrame({"money": [Decimal("1.25"), None, Decimal("3.50")], "lone": pandas.Series(["a", "\ud800", "b"], dtype=object)})
    assert db.sql("select sum(money) from df").fetchone() == (Decimal("4.75"),)
    with pytest.raises(atoll.Error, match="surrogates not allowed"):
        db.sql("select lone from df").fetchall()

    class Text(str):
        pass

    df = pandas.DataFrame({"t": pandas.Series([Text("one"), numpy.str_("two"), None], dtype=object)})
    assert db.sql("select t from df order by t").fetchall() == [("one",), ("two",), (None,)]


def test_arrays_are_not_copied_and_are_let_go(db):
    array = numpy.arange(1_000_000)
    df = {"a": array}
    before = pyarrow.total_allocated_bytes()
    assert db.sql("select sum(a) from df").fetchone() == (499_999_500_000,)
    assert pyarrow.total_allocated_bytes() == before
    gone = weakref.ref(array)
    del array, df
    db.sql("select 1").fetchall()
    gc.collect()
    assert gone() is None


def test_threads_may_use_the_interpreter_while_texts_are_read(db):
    df = pandas.DataFrame({"t": pandas.Series([f"text {n % 100}" for n in range(500_000)], dtype=object)})
    found = []

    def ask():
        found.append(db.sql("select t, count(*) from f group by t order by t", tables={"f": df}).fetchall())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(rows == found[0] for rows in found) and found[0][0] == ("text 0", 5_000)


def test_which_columns_a_statement_may_read():
    from atoll._frames import _may_be_read

    text = 'select t.a, sum("b c") from f where d > 1'
    assert [_may_be_read(name, text) for name in ["a", "A", "b c", "D"]] == [True] * 4
    assert not _may_be_read("s", text) and not _may_be_read("e", text)
    assert _may_be_read('x"y', 'select "x""y" from f') and not _may_be_read("x", "select count( * ) from f")
    assert _may_be_read("x", "select * from f") and _may_be_read("x", "select f.* from f") and _may_be_read("x", None)


def test_maps_and_decimals_of_many_digits(db):
    kind = pyarrow.map_(pyarrow.string(), pyarrow.int64())
    maps = pyarrow.array([[("a", 1), ("b", None)], [], None], kind)
    wide = [Decimal("12345678901234567890123456789012345678901234.25"), None, Decimal("-0.50")]
    frame = pyarrow.table({"m": maps, "n": pyarrow.array(wide, pyarrow.decimal256(50, 2))})
    db.sql("create table kept as select * from frame")
    assert db.sql("select m, n from kept").fetchall() == [
        ({"a": 1, "b": None}, wide[0]),
        ({}, None),
        (None, wide[2]),
    ]
    back = db.sql("select m, n from kept").arrow()
    assert back.column("m").to_pylist() == maps.to_pylist()
    assert back.column("n").to_pylist() == wide
    assert db.sql("select m['a'], n + 1 from kept where n < 0").fetchall() == [(None, Decimal("0.50"))]
    with pytest.raises(atoll.Error, match="twice"):
        twice = pyarrow.table({"m": pyarrow.array([[("a", 1), ("a", 2)]], kind)})
        db.sql("create table broken as select * from twice")
