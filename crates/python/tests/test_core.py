"""What needs nothing but Python."""

import ctypes
import datetime
import os
import signal
import tempfile
import threading
import time
import unittest
from decimal import Decimal

import atoll

ENDLESS = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3"


class Core(unittest.TestCase):
    def setUp(self):
        self.db = atoll.open(threads=2, memory_limit=512 << 20)
        self.addCleanup(self.db.close)

    def test_the_version_is_told(self):
        self.assertRegex(atoll.__version__, r"^\d+\.\d+\.\d+$")

    def test_a_database_in_memory_leaves_no_file(self):
        with atoll.open(":memory:") as db:
            db.sql("create table t (a int)")
            self.assertEqual(db.tables(), {"t": 0})
        self.assertFalse(os.path.exists(":memory:"))

    def test_rows_come_back(self):
        self.db.sql("create table t (a bigint, b varchar, c decimal(10,2), d date, e double, f boolean, g timestamp)")
        moment = datetime.datetime(2026, 11, 25, 1, 2, 3, 500000)
        row = (1, "x'y", Decimal("2.50"), datetime.date(2026, 11, 25), 1.5, True, moment)
        inserted = self.db.sql("insert into t values ($1, $2, $3, $4, $5, $6, $7)", row)
        self.assertEqual(inserted.changed, 1)
        self.db.sql("insert into t (a) values (2)")
        result = self.db.sql("select * from t order by a")
        self.assertEqual(result.columns, list("abcdefg"))
        self.assertEqual(result.types[2], "decimal(10,2)")
        self.assertEqual(result.fetchone(), row)
        self.assertEqual(result.fetchall(), [(2,) + (None,) * 6])
        self.assertIsNone(result.fetchone())
        self.assertEqual(self.db.tables(), {"t": 2})
        many = Decimal("0.12345678901234567890")
        self.assertEqual(self.db.sql("select $1", [many]).fetchone(), (many,))

    def test_decimals_may_be_no_numbers(self):
        nan, above, none = self.db.sql("select 'NaN'::numeric, 'inf'::numeric, null::numeric(50, 0)").fetchone()
        self.assertTrue(nan.is_nan() and none is None)
        self.assertEqual(above, Decimal("Infinity"))
        self.db.sql("create table wide (n numeric(50, 0))")
        self.db.sql("insert into wide values ($1), ($2)", [Decimal("NaN"), Decimal(10**40)])
        self.assertEqual(self.db.sql("select n::text from wide order by n").fetchall(), [(str(10**40),), ("NaN",)])

    def test_the_adbc_driver_is_in_the_module(self):
        library = ctypes.CDLL(atoll.adbc_driver())
        # A version that there is not is refused, so nothing else is touched.
        for entry in (library.AdbcAtollInit, library.AdbcDriverInit):
            self.assertNotEqual(entry(1, None, None), 0)

    def test_parts_of_a_result(self):
        result = self.db.sql("select x from generate_series(1, 20000) s(x) order by x")
        self.assertEqual(result.fetchmany(2), [(1,), (2,)])
        self.assertIn("more rows follow", repr(result))
        self.assertIn("<td>10</td>", result._repr_html_())
        self.assertNotIn("<td>11</td>", result._repr_html_())
        self.assertEqual(len(result.fetchall()), 19998)

    def test_errors_have_types(self):
        for text, kind in [
            ("selct 1", atoll.ProgrammingError),
            ("select nothing from nowhere", atoll.ProgrammingError),
            ("select 1/0", atoll.DataError),
            ("create function f() returns int as 'select 1' language sql", atoll.NotSupportedError),
        ]:
            with self.assertRaises(kind, msg=text):
                self.db.sql(text).fetchall()
        with self.assertRaises(atoll.NotSupportedError):
            self.db.sql("select $1", [object()])
        self.assertTrue(issubclass(atoll.DataError, atoll.DatabaseError))

    def test_transactions(self):
        self.db.sql("create table t (a int)")
        with self.assertRaises(ZeroDivisionError), self.db.transaction():
            self.db.sql("insert into t values (1)")
            self.assertEqual(self.db.sql("select count(*) from t").fetchone(), (1,))
            raise ZeroDivisionError
        self.assertEqual(self.db.sql("select count(*) from t").fetchone(), (0,))
        with self.db.transaction():
            self.db.sql("insert into t values (1)")
        self.assertEqual(self.db.sql("select count(*) from t").fetchone(), (1,))

    def test_a_file_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "reef.atoll")
            with atoll.open(path, threads=2) as db:
                db.script("create table t (a int); insert into t values (7)")
            with atoll.open(path, read_only=True, threads=2) as db:
                self.assertEqual(db.sql("from t").fetchall(), [(7,)])
                with self.assertRaises(atoll.Error):
                    db.sql("insert into t values (8)")
            with self.assertRaises(atoll.InterfaceError):
                db.sql("from t")

    def test_control_c_stops_a_query(self):
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            self.db.sql(ENDLESS).fetchall()
        self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(self.db.sql("select 1").fetchall(), [(1,)])

    def test_threads_run_beside_each_other(self):
        self.db.sql("create table t (a int)")
        counted = []

        def work(number):
            self.db.sql("insert into t values ($1)", [number])
            counted.append(self.db.sql("select count(*) from t").fetchone()[0])

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(counted), 8)
        self.assertEqual(self.db.sql("select count(*) from t").fetchone(), (8,))

    def test_the_interpreter_is_released(self):
        ticks = []
        stop = threading.Timer(0.5, self.db.interrupt)
        ticker = threading.Timer(0.1, lambda: ticks.append(time.monotonic()))
        begun = time.monotonic()
        stop.start()
        ticker.start()
        with self.assertRaises(KeyboardInterrupt):
            self.db.sql(ENDLESS).fetchall()
        self.assertLess(ticks[0] - begun, 0.4)

    def test_a_fork_is_told(self):
        child = os.fork()
        if child == 0:
            try:
                self.db.sql("select 1")
                os._exit(1)
            except atoll.InterfaceError as error:
                os._exit(0 if "forked" in str(error) else 2)
            except BaseException:
                os._exit(3)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.db.sql("select 1").fetchall(), [(1,)])


if __name__ == "__main__":
    unittest.main()
