"""The driver with a client of every day: Python's ADBC driver manager, which loads the library as programs in Go, R and C++ do.

./test-adbc runs it: ATOLL_LIBRARY is the library, by the name libatoll.so.
"""
import datetime
import decimal
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import adbc_driver_manager
import pyarrow
from adbc_driver_manager import dbapi

LIBRARY = os.environ["ATOLL_LIBRARY"]
ENDLESS = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3"


def connect(path=None, autocommit=False, **options):
    settings = {"atoll.threads": "2", **{f"atoll.{key}": str(value) for key, value in options.items()}}
    if path is not None:
        settings["path"] = str(path)
    return dbapi.connect(driver=LIBRARY, db_kwargs=settings, autocommit=autocommit)


class Driver(unittest.TestCase):
    def setUp(self):
        self.db = connect()
        self.addCleanup(self.db.close)

    def rows(self, text, parameters=None, db=None):
        with (db or self.db).cursor() as cursor:
            cursor.execute(text, parameters)
            return cursor.fetchall()

    def run_(self, text, db=None):
        with (db or self.db).cursor() as cursor:
            cursor.execute(text)
            return cursor.rowcount

    def test_entry_points_and_names(self):
        for entrypoint in [None, "AdbcAtollInit", "AdbcDriverInit"]:
            with dbapi.connect(driver=LIBRARY, entrypoint=entrypoint) as db:
                self.assertEqual(self.rows("select 6 * 7", db=db), [(42,)])
        with self.assertRaises(dbapi.Error):
            dbapi.connect(driver=LIBRARY, entrypoint="AdbcNothingInit")

    def test_a_manifest_names_the_driver(self):
        with tempfile.TemporaryDirectory() as folder:
            manifest = pathlib.Path(folder, "atoll.toml")
            manifest.write_text(f'manifest_version = 1\nname = "Atoll"\n\n[Driver]\nshared = "{LIBRARY}"\n')
            code = f"""
from adbc_driver_manager import dbapi
for words in [dict(driver="atoll", uri="file://{folder}/s.atoll"), dict(driver="atoll://{folder}/s.atoll")]:
    with dbapi.connect(**words) as db, db.cursor() as cursor:
        cursor.execute("create table if not exists t (a int)")
        cursor.execute("insert into t values (1)")
        db.commit()
        cursor.execute("select count(*) from t")
        print(cursor.fetchone()[0], end="")
"""
            environment = {**os.environ, "ADBC_DRIVER_PATH": folder}
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
            self.assertEqual((done.stdout, done.stderr), ("12", ""))

    def test_values_come_back(self):
        row = (1, "é'?$1", decimal.Decimal("-12.50"), datetime.date(2026, 11, 25), 0.1, True, b"\x00\xff", datetime.datetime(2026, 11, 25, 1, 2, 3, 500000), 2**40, datetime.time(1, 2, 3))
        self.run_("create table t (a int, b varchar, c decimal(10,2), d date, e double, f boolean, g bytea, h timestamp, i bigint, j time)")
        marks = ", ".join("?" * len(row))
        with self.db.cursor() as cursor:
            cursor.execute(f"insert into t values ({marks})", row)
            cursor.execute(f"insert into t select {marks}", row)
            nothing = (None,) * len(row)
            cursor.executemany(f"insert into t values ({marks})", [row, nothing])
        self.assertEqual(self.rows("select * from t where a = ?", (1,)), [row] * 3)
        self.assertEqual(self.rows("select count(*) from t where b is null"), [(1,)])

    def test_executemany(self):
        self.run_("create table t (a bigint, b varchar)")
        with self.db.cursor() as cursor:
            begun = time.perf_counter()
            cursor.executemany("insert into t values (?, ?)", [(n, f"text {n}") for n in range(100_000)])
            seconds = time.perf_counter() - begun
            self.assertEqual(cursor.rowcount, 100_000)
            cursor.executemany("update t set b = ? where a = ?", [("x", 1), ("y", 2), ("z", -1)])
            self.assertEqual(cursor.rowcount, 2)
        self.assertEqual(self.rows("select count(*), max(a) from t where b like 'text%'"), [(99_998, 99_999)])
        print(f"executemany of 100,000 rows: {seconds:.2f} s", file=sys.stderr)

    def test_arrow_tables_and_streams(self):
        with self.db.cursor() as cursor:
            cursor.execute("select x, 'fish ' || x as name from generate_series(1, 100000) a(x)")
            table = cursor.fetch_arrow_table()
            self.assertEqual((table.num_rows, table.column_names), (100_000, ["x", "name"]))
            self.assertEqual(table.schema.field("name").type, pyarrow.string())
            cursor.execute("select x from generate_series(1, 400000000) a(x)")
            reader = cursor.fetch_record_batch()
            self.assertGreater(reader.read_next_batch().num_rows, 0)
            reader.close()
            cursor.execute("select x from generate_series(1, 3) a(x)")
            self.assertEqual(cursor.fetchone(), (1,))
            self.assertEqual(cursor.fetchmany(5), [(2,), (3,)])
            self.assertEqual(cursor.description[0][0], "x")

    def test_rowcount_of_commands(self):
        self.assertEqual(self.run_("create table t (a int)"), -1)
        self.assertEqual(self.run_("insert into t values (1), (2), (3)"), 3)
        self.assertEqual(self.run_("delete from t where a > 1"), 2)
        with self.db.cursor() as cursor:
            cursor.executescript("insert into t values (7); insert into t values (8)")
        self.assertEqual(self.rows("select sum(a) from t"), [(16,)])

    def test_parameters_and_schemas_before_running(self):
        self.run_("create table t (a int, b varchar)")
        with self.db.cursor() as cursor:
            schema = cursor.adbc_prepare("select a, b from t where a = ? and b = ?")
            self.assertEqual(schema.types, [pyarrow.int32(), pyarrow.string()])
            schema = cursor.adbc_execute_schema("select a, b from t")
            self.assertEqual(schema.names, ["a", "b"])

    def test_ingest(self):
        table = pyarrow.table({"name": ["blenny", None, "wrasse"], "length": [0.1, 0.2, None], "kind": pyarrow.array(["a", "b", "a"]).dictionary_encode()})
        with self.db.cursor() as cursor:
            self.assertEqual(cursor.adbc_ingest("fish", table), 3)
            self.assertEqual(cursor.adbc_ingest("fish", table, mode="append"), 3)
            self.assertEqual(cursor.adbc_ingest("fish", table.to_reader(max_chunksize=1), mode="create_append"), 3)
            with self.assertRaises(dbapi.Error):
                cursor.adbc_ingest("fish", table, mode="create")
            self.db.rollback()
            cursor.adbc_ingest("fish", table)
            self.db.commit()
            self.assertEqual(cursor.adbc_ingest("fish", table.slice(0, 1), mode="replace"), 1)
            self.assertEqual(cursor.adbc_ingest("own", table, temporary=True), 3)
        self.assertEqual(self.rows("select count(*) from fish"), [(1,)])
        self.assertEqual(self.rows("select count(*) from own where kind = 'a'"), [(2,)])

    def test_a_million_rows_in_and_out(self):
        table = pyarrow.table({"a": range(1_000_000), "b": [f"text {n % 1000}" for n in range(1_000_000)]})
        with self.db.cursor() as cursor:
            begun = time.perf_counter()
            cursor.adbc_ingest("t", table)
            between = time.perf_counter()
            cursor.execute("select a, b from t order by a")
            found = cursor.fetch_arrow_table()
            ended = time.perf_counter()
        self.assertTrue(found.equals(table))
        print(f"a million rows: {between - begun:.2f} s in, {ended - between:.2f} s sorted and out", file=sys.stderr)

    def test_transactions(self):
        with tempfile.TemporaryDirectory() as folder:
            with connect(pathlib.Path(folder, "s.atoll")) as db, db.adbc_clone() as other:
                self.run_("create table t (a int)", db)
                self.run_("insert into t values (1)", db)
                with self.assertRaises(dbapi.ProgrammingError):
                    self.rows("select * from t", db=other)
                other.rollback()
                db.commit()
                self.assertEqual(self.rows("select count(*) from t", db=other), [(1,)])
                other.rollback()
                self.run_("delete from t", db)
                db.rollback()
                self.assertEqual(self.rows("select count(*) from t", db=db), [(1,)])
                self.assertEqual(db.adbc_connection.get_option("adbc.connection.autocommit"), "false")
            with connect(pathlib.Path(folder, "s.atoll"), autocommit=True, read_only="true") as db:
                self.assertEqual(self.rows("select a from t", db=db), [(1,)])
                with self.assertRaises(dbapi.Error):
                    self.run_("insert into t values (2)", db)
            self.assertFalse([name for name in os.listdir(folder) if "tmp" in name])

    def test_errors(self):
        for text, kind, code in [
            ("selec 1", dbapi.ProgrammingError, "42601"),
            ("select * from nothing", dbapi.ProgrammingError, "42P01"),
            ("select 1 / 0", dbapi.DataError, "22012"),
        ]:
            with self.assertRaises(kind) as raised:
                self.rows(text)
            self.assertEqual(raised.exception.sqlstate, code, text)
            self.db.rollback()
        self.run_("create table t (a int primary key)")
        self.run_("insert into t values (1)")
        with self.assertRaises(dbapi.IntegrityError) as raised:
            self.run_("insert into t values (1)")
        self.assertEqual(raised.exception.sqlstate, "23505")

    def test_an_error_in_the_middle_of_a_stream(self):
        self.run_("create table t as select x from generate_series(1, 200000) a(x)")
        with self.db.cursor() as cursor:
            with self.assertRaises(dbapi.DataError) as raised:
                cursor.execute("select 100 / (199999 - x) from t")
                while cursor.fetchmany(20_000):
                    pass
            self.assertEqual(raised.exception.sqlstate, "22012")
            self.assertEqual(raised.exception.status_code, adbc_driver_manager.AdbcStatusCode.INVALID_DATA)

    def test_cancel(self):
        with self.db.cursor() as cursor:
            timer = threading.Timer(0.3, cursor.adbc_cancel)
            timer.start()
            begun = time.perf_counter()
            with self.assertRaises(dbapi.OperationalError) as raised:
                cursor.execute(ENDLESS)
                cursor.fetchall()
            timer.join()
            self.assertEqual(raised.exception.sqlstate, "57014")
            self.assertLess(time.perf_counter() - begun, 20)
        self.db.rollback()
        self.assertEqual(self.rows("select 1"), [(1,)])

    def test_what_there_is(self):
        self.run_("create table reef (id int primary key, name varchar)")
        self.run_("create table fish (reef int references reef (id))")
        info = self.db.adbc_get_info()
        self.assertEqual((info["vendor_name"], info["driver_name"]), ("Atoll", "ADBC driver of Atoll"))
        self.assertEqual(info["driver_adbc_version"], 1_001_000)
        found = self.db.adbc_get_objects(depth="all").read_all().to_pylist()
        self.assertEqual([catalog["catalog_name"] for catalog in found], ["atoll"])
        (schema,) = found[0]["catalog_db_schemas"]
        tables = {table["table_name"]: table for table in schema["db_schema_tables"]}
        self.assertEqual(set(tables), {"reef", "fish"})
        self.assertEqual([column["column_name"] for column in tables["reef"]["table_columns"]], ["id", "name"])
        (key,) = tables["fish"]["table_constraints"]
        self.assertEqual(key["constraint_column_usage"], [{"fk_catalog": "atoll", "fk_db_schema": "public", "fk_table": "reef", "fk_column_name": "id"}])
        found = self.db.adbc_get_objects(depth="tables", table_name_filter="r%").read_all().to_pylist()
        self.assertEqual([t["table_name"] for t in found[0]["catalog_db_schemas"][0]["db_schema_tables"]], ["reef"])
        self.assertEqual(self.db.adbc_get_table_types(), ["TABLE", "VIEW", "MATERIALIZED VIEW"])
        self.assertEqual(self.db.adbc_get_table_schema("reef"), pyarrow.schema([pyarrow.field("id", pyarrow.int32(), nullable=False), ("name", pyarrow.string())]))
        statistics = self.db.adbc_get_statistics().read_all().to_pylist()
        rows = {s["table_name"]: s["statistic_value"] for s in statistics[0]["catalog_db_schemas"][0]["db_schema_statistics"]}
        self.assertEqual(rows, {"reef": 0, "fish": 0})

    def test_threads_and_connections(self):
        self.run_("create table t (a int)")
        self.db.commit()
        failures = []

        def work(number):
            try:
                with self.db.adbc_clone() as db, db.cursor() as cursor:
                    for n in range(20):
                        cursor.execute("insert into t values (?)", (number * 100 + n,))
                        db.commit()
                        cursor.execute("select count(*) from t where a / 100 = ?", (number,))
                        assert cursor.fetchone() == (n + 1,)
                        db.commit()
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.rows("select count(*) from t"), [(80,)])

    def test_what_is_misused_is_an_error(self):
        handle = adbc_driver_manager.AdbcDatabase(driver=LIBRARY)
        connection = adbc_driver_manager.AdbcConnection(handle)
        statement = adbc_driver_manager.AdbcStatement(connection)
        with self.assertRaises(adbc_driver_manager.Error):
            statement.execute_query()
        with self.assertRaises(adbc_driver_manager.NotSupportedError):
            statement.set_substrait_plan(b"\x00")
            statement.execute_query()
        with self.assertRaises(adbc_driver_manager.Error):
            statement.set_options(**{"adbc.ingest.mode": "sideways"})
        for thing in [statement, connection, handle]:
            thing.close()
        for key in ["username", "atoll.nothing"]:
            with self.assertRaises(adbc_driver_manager.NotSupportedError):
                adbc_driver_manager.AdbcDatabase(driver=LIBRARY, **{key: "1"})

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_a_forked_process_is_refused(self):
        child = os.fork()
        if child == 0:
            try:
                self.rows("select 1")
            except dbapi.Error as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_temporary_store_goes(self):
        with tempfile.TemporaryDirectory() as folder:
            code = f"""
from adbc_driver_manager import dbapi
import os
with dbapi.connect(driver={LIBRARY!r}) as db, db.cursor() as cursor:
    cursor.execute("create table t (a int)")
    db.commit()
    assert os.listdir({folder!r})
print(len(os.listdir({folder!r})))
"""
            done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True)
            self.assertEqual((done.stdout, done.stderr), ("0\n", ""))


class Example(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cc"), "there is no compiler of C")
    def test_the_program_in_c(self):
        include = pathlib.Path(adbc_driver_manager.__file__).parent
        here = pathlib.Path(__file__).parent
        with tempfile.TemporaryDirectory() as folder:
            words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", here.parent / "include", "-I", include, here / "c/reef.c"]
            subprocess.run([*words, "-L", os.path.dirname(LIBRARY), "-latoll", "-o", f"{folder}/reef"], check=True)
            environment = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(LIBRARY)}
            done = subprocess.run([f"{folder}/reef"], env=environment, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("3 rows\nnorth 12\nwest 23\nstatus 3, SQLSTATE 42703\n", ""))


class Guide(unittest.TestCase):
    def test_the_examples_run(self):
        """The examples in Python of docs/guides/adbc.md print what stands behind their `print`s."""
        guide = pathlib.Path(__file__).parents[3] / "docs" / "guides" / "adbc.md"
        blocks = re.findall(r"^```python\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
        self.assertTrue(blocks)
        wanted = [line.split("#", 1)[1].strip() for block in blocks for line in block.splitlines() if "print(" in line]
        with tempfile.TemporaryDirectory() as folder:
            code = "\n".join(blocks).replace("dist/libatoll.so", LIBRARY)
            done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        self.assertEqual((done.stdout.splitlines(), done.stderr), (wanted, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
