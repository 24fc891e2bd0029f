"""Data frames that statements read by name."""

import gc
import os
import signal
import threading
import time
import weakref

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

    with pytest.raises(atoll.ProgrammingError, match='no table "a"'):
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
    with pytest.raises(atoll.ProgrammingError, match='no table "f"'):
        db.sql("select x from f")


def test_errors_name_the_variable_and_its_type(db):
    df = [1, 2, 3]
    with pytest.raises(atoll.ProgrammingError, match='no table "df".*the variable df is a list: what is read'):
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
        with pytest.raises(atoll.ProgrammingError, match='no table "frame"'):
            db.sql(text)
    with pytest.raises(atoll.ProgrammingError, match='no table "frame"'):
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
