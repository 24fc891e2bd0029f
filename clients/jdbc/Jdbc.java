// pgjdbc against a server: java -cp postgresql.jar Jdbc.java PORT. Says what is not as PostgreSQL has it, and ends with 1 then.

import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Objects;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

public class Jdbc {
    static String address;

    static int failed;

    public static void main(String[] words) throws Exception {
        address = "jdbc:postgresql://127.0.0.1:" + words[0] + "/atoll";
        for (String mode : new String[] {"extended", "extendedForPrepared", "simple", "extendedCacheEverything"}) {
            with(db -> types(db, mode), "types, " + mode, "preferQueryMode", mode);
        }
        with(Jdbc::prepared, "prepared");
        with(Jdbc::changing, "changing");
        with(Jdbc::portals, "portals");
        with(Jdbc::besidePortals, "beside portals");
        with(Jdbc::transactions, "transactions");
        with(Jdbc::errors, "errors");
        with(Jdbc::levels, "levels");
        with(Jdbc::autosave, "autosave", "prepareThreshold", "1", "autosave", "always");
        with(db -> batches(db, "jdbc_batch"), "batches");
        with(db -> batches(db, "jdbc_rewritten"), "rewritten batches", "reWriteBatchedInserts", "true");
        with(Jdbc::lists, "lists");
        with(Jdbc::generated, "generated keys");
        with(Jdbc::copies, "copies");
        with(Jdbc::session, "session");
        with(Jdbc::cancel, "cancel");
        with(Jdbc::timeout, "timeout");
        with(Jdbc::many, "many");
        System.exit(failed);
    }

    interface Test {
        void run(Connection db) throws Exception;
    }

    /** Runs a test with a connection of its own; the others go on if it fails. */
    static void with(Test test, String name, String... options) {
        try (Connection db = connect(options)) {
            test.run(db);
        } catch (Throwable e) {
            failed = 1;
            StackTraceElement[] stack = e.getStackTrace();
            String place = Arrays.stream(stack).filter(at -> at.getClassName().equals("Jdbc")).map(at -> " at " + at.getLineNumber()).skip(
                e instanceof AssertionError ? 1 : 0).findFirst().orElse("");
            System.err.println(name + place + ": " + e);
        }
    }

    static Connection connect(String... options) throws SQLException {
        Properties all = new Properties();
        all.setProperty("user", "ann");
        for (int i = 0; i < options.length; i += 2) {
            all.setProperty(options[i], options[i + 1]);
        }
        return DriverManager.getConnection(address, all);
    }

    static void same(Object found, Object wanted, String what) {
        boolean equal = found instanceof byte[] bytes && wanted instanceof byte[] others ? Arrays.equals(bytes, others)
            : found instanceof Object[] list && wanted instanceof Object[] other ? Arrays.deepEquals(list, other)
            : Objects.equals(found, wanted);
        if (!equal) {
            throw new AssertionError(what + ": found " + text(found) + ", wanted " + text(wanted));
        }
    }

    static String text(Object value) {
        return value instanceof Object[] list ? Arrays.deepToString(list)
            : value instanceof byte[] bytes ? Arrays.toString(bytes)
            : value + (value == null ? "" : " of " + value.getClass().getSimpleName());
    }

    interface Work {
        void run() throws Exception;
    }

    /** That the work fails with this code. */
    static void fails(String code, String what, Work work) throws Exception {
        try {
            work.run();
        } catch (SQLException e) {
            same(e.getSQLState(), code, what + " (" + e.getMessage() + ")");
            return;
        }
        throw new AssertionError(what + ": it does not fail");
    }

    static void run(Connection db, String... texts) throws SQLException {
        try (Statement statement = db.createStatement()) {
            for (String text : texts) {
                statement.execute(text);
            }
        }
    }

    static Object one(Connection db, String text) throws SQLException {
        try (Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            same(rows.next(), true, text);
            return rows.getObject(1);
        }
    }

    static PGobject json(String type, String text) throws SQLException {
        PGobject made = new PGobject();
        made.setType(type);
        made.setValue(text);
        return made;
    }

    /** All types both ways, as many times as make the driver prepare the statement and take binary. */
    static void types(Connection db, String mode) throws Exception {
        run(db, "drop table if exists jdbc_types", "create table jdbc_types (n int, s smallint, i int, l bigint, r real, d double precision, p numeric(12,3), t text, "
            + "v varchar(20), y date, m timestamp, z timestamptz, h time, b boolean, g bytea, u uuid, j jsonb, k json)");
        UUID uuid = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        byte[] bytes = {0, 1, (byte) 0xff, 39, 92, 10};
        OffsetDateTime moment = OffsetDateTime.of(2026, 11, 25, 1, 2, 3, 123456000, ZoneOffset.UTC);
        LocalDateTime local = LocalDateTime.of(1969, 12, 31, 23, 59, 59, 999999000);
        String odd = "é' \\ \" \t漢字 🐟";
        int rounds = 8;
        try (PreparedStatement insert = db.prepareStatement("insert into jdbc_types values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (int n = 0; n < rounds; n++) {
                insert.setInt(1, n);
                insert.setShort(2, Short.MIN_VALUE);
                insert.setInt(3, Integer.MAX_VALUE);
                insert.setLong(4, Long.MIN_VALUE + n);
                insert.setFloat(5, 0.1f);
                insert.setDouble(6, 1e300);
                insert.setBigDecimal(7, new BigDecimal("-123456789.125"));
                insert.setString(8, odd);
                insert.setString(9, "");
                insert.setObject(10, LocalDate.of(1, 1, 1));
                insert.setObject(11, local);
                insert.setObject(12, moment);
                insert.setObject(13, LocalTime.of(23, 59, 59, 123456000));
                insert.setBoolean(14, n % 2 == 0);
                insert.setBytes(15, bytes);
                insert.setObject(16, uuid);
                insert.setObject(17, json("jsonb", "{\"a\": [1, null]}"));
                insert.setObject(18, json("json", "{\"b\":2}"));
                same(insert.executeUpdate(), 1, mode + ": rows inserted");
            }
            int[] kinds = {Types.SMALLINT, Types.INTEGER, Types.BIGINT, Types.REAL, Types.DOUBLE, Types.NUMERIC, Types.VARCHAR, Types.VARCHAR, Types.DATE,
                Types.TIMESTAMP, Types.TIMESTAMP_WITH_TIMEZONE, Types.TIME, Types.BOOLEAN, Types.BINARY, Types.OTHER, Types.OTHER, Types.OTHER};
            insert.setInt(1, 1000);
            for (int i = 0; i < kinds.length; i++) {
                insert.setNull(i + 2, kinds[i]);
            }
            same(insert.executeUpdate(), 1, mode + ": nulls inserted");
        }
        try (PreparedStatement select = db.prepareStatement("select * from jdbc_types where n = ? and l = ? and t = ? and u = ? and z = ? and p = ? and y < ?")) {
            for (int n = 0; n < rounds; n++) {
                select.setInt(1, n);
                select.setLong(2, Long.MIN_VALUE + n);
                select.setString(3, odd);
                select.setObject(4, uuid);
                select.setObject(5, moment.withOffsetSameInstant(ZoneOffset.ofHours(5)));
                select.setBigDecimal(6, new BigDecimal("-123456789.125"));
                select.setObject(7, LocalDate.of(2026, 1, 1));
                try (ResultSet rows = select.executeQuery()) {
                    String what = mode + ", execution " + n;
                    same(rows.next(), true, what);
                    same(rows.getShort("s"), Short.MIN_VALUE, what);
                    same(rows.getInt("i"), Integer.MAX_VALUE, what);
                    same(rows.getLong("l"), Long.MIN_VALUE + n, what);
                    same(rows.getFloat("r"), 0.1f, what);
                    same(rows.getDouble("d"), 1e300, what);
                    same(rows.getBigDecimal("p"), new BigDecimal("-123456789.125"), what);
                    same(rows.getString("t"), odd, what);
                    same(rows.getString("v"), "", what);
                    same(rows.getObject("y", LocalDate.class), LocalDate.of(1, 1, 1), what);
                    same(rows.getObject("m", LocalDateTime.class), local, what);
                    same(rows.getObject("z", OffsetDateTime.class).toInstant(), moment.toInstant(), what);
                    same(rows.getObject("h", LocalTime.class), LocalTime.of(23, 59, 59, 123456000), what);
                    same(rows.getBoolean("b"), n % 2 == 0, what);
                    same(rows.getBytes("g"), bytes, what);
                    same(rows.getObject("u"), uuid, what);
                    same(rows.getString("j"), "{\"a\": [1, null]}", what);
                    same(rows.getString("k"), "{\"b\":2}", what);
                    same(rows.next(), false, what);
                }
            }
        }
        try (Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery("select * from jdbc_types where n = 1000")) {
            same(rows.next(), true, "the row of nulls");
            ResultSetMetaData meta = rows.getMetaData();
            for (int i = 2; i <= meta.getColumnCount(); i++) {
                same(rows.getObject(i), null, mode + ": " + meta.getColumnName(i));
            }
            // A varchar with a length is told as such.
            String[] names = {"int4", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "date", "timestamp", "timestamptz", "time", "bool",
                "bytea", "uuid", "jsonb", "json"};
            for (int i = 1; i <= names.length; i++) {
                same(meta.getColumnTypeName(i), names[i - 1], mode + ": type of " + meta.getColumnName(i));
            }
            same(meta.getPrecision(7) + " " + meta.getScale(7), "12 3", mode + ": numeric(12,3)");
        }
    }

    static void prepared(Connection db) throws Exception {
        try (PreparedStatement select = db.prepareStatement("select ?::int + 1, ?::text, x from generate_series(1, ?) a(x) order by x limit ? offset ?")) {
            select.unwrap(PGStatement.class).setPrepareThreshold(3);
            for (int n = 0; n < 20; n++) {
                select.setInt(1, n);
                select.setString(2, "row " + n);
                select.setInt(3, 10 + n);
                select.setInt(4, 2);
                select.setLong(5, n);
                try (ResultSet rows = select.executeQuery()) {
                    same(rows.next(), true, "row");
                    same(rows.getInt(1) + rows.getString(2) + rows.getInt(3), (n + 1) + "row " + n + (n + 1), "prepared, execution " + n);
                    same(rows.next() && !rows.next(), true, "two rows");
                }
            }
            same(select.unwrap(PGStatement.class).isUseServerPrepare(), true, "prepared by the server");
        }
    }

    /** What is prepared lives through changes of its table. */
    static void changing(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_changing", "create table jdbc_changing (a int)", "insert into jdbc_changing values (1)");
        try (PreparedStatement select = db.prepareStatement("select * from jdbc_changing where a = ?")) {
            for (int n = 0; n < 12; n++) {
                if (n == 8) {
                    run(db, "alter table jdbc_changing add column b int default 7");
                }
                select.setInt(1, 1);
                try (ResultSet rows = select.executeQuery()) {
                    same(rows.next(), true, "execution " + n);
                    same(rows.getMetaData().getColumnCount(), n < 8 ? 1 : 2, "columns after a change");
                } catch (SQLException e) {
                    // The first execution after a change may say so; the driver prepares the statement again for the next.
                    same(n + " " + e.getSQLState(), "8 0A000", "a changed table: " + e.getMessage());
                }
            }
        }
        try (PreparedStatement select = db.prepareStatement("select a from jdbc_changing where a = ? and b > ?")) {
            ParameterMetaData parameters = select.getParameterMetaData();
            same(parameters.getParameterCount() + parameters.getParameterTypeName(1), "2int4", "types of parameters");
            same(select.getMetaData().getColumnTypeName(1), "int4", "types of columns before execution");
        }
    }

    /** Rows in pieces, and the end of a portal in the middle. */
    static void portals(Connection db) throws Exception {
        db.setAutoCommit(false);
        for (int size : new int[] {1, 50, 1000, 100_000}) {
            int rounds = size == 1 ? 2000 : 250_000;
            try (PreparedStatement select = db.prepareStatement("select x, 'row ' || x from generate_series(1, ?) a(x) order by x")) {
                select.setFetchSize(size);
                select.setInt(1, rounds);
                try (ResultSet rows = select.executeQuery()) {
                    long sum = 0;
                    int count = 0;
                    while (rows.next()) {
                        sum += rows.getInt(1);
                        count++;
                        if (count % 997 == 0) {
                            same(rows.getString(2), "row " + count, "row of a portal");
                        }
                    }
                    same(sum, (long) rounds * (rounds + 1) / 2, "sum of " + count + " rows in pieces of " + size);
                }
                try (ResultSet rows = select.executeQuery()) {
                    same(rows.next(), true, "a portal that is left in the middle");
                }
            }
        }
        db.commit();
        db.setAutoCommit(true);
    }

    /** Other statements while a portal is open. */
    static void besidePortals(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_beside", "create table jdbc_beside (n int)");
        db.setAutoCommit(false);
        try (PreparedStatement outer = db.prepareStatement("select x from generate_series(1, 2000) a(x) order by x");
                PreparedStatement inner = db.prepareStatement("select y from generate_series(1, ?) b(y) order by y");
                PreparedStatement insert = db.prepareStatement("insert into jdbc_beside values (?)")) {
            outer.setFetchSize(100);
            inner.setFetchSize(3);
            try (ResultSet rows = outer.executeQuery()) {
                for (int n = 1; rows.next(); n++) {
                    same(rows.getInt(1), n, "the outer portal");
                    if (n % 50 == 0) {
                        inner.setInt(1, 10);
                        try (ResultSet others = inner.executeQuery()) {
                            for (int m = 1; m <= 5; m++) {
                                same(others.next() && others.getInt(1) == m, true, "the inner portal");
                            }
                        }
                        insert.setInt(1, n);
                        same(insert.executeUpdate(), 1, "an insert beside a portal");
                    }
                }
            }
        }
        db.commit();
        same(one(db, "select count(*) from jdbc_beside"), 40L, "what was inserted beside a portal");
        // A portal holds what was there when it was opened.
        try (Statement outer = db.createStatement()) {
            outer.setFetchSize(5);
            try (ResultSet rows = outer.executeQuery("select n from jdbc_beside order by n")) {
                same(rows.next(), true, "open");
                run(db, "delete from jdbc_beside");
                int count = 1;
                while (rows.next()) {
                    count++;
                }
                same(count, 40, "rows of a portal whose rows were deleted");
            }
        }
        db.rollback();
        same(one(db, "select count(*) from jdbc_beside"), 40L, "rollback");
        db.rollback();
        db.setAutoCommit(true);
    }

    static void transactions(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_t", "create table jdbc_t (a int primary key, b int check (b > 0), c text not null)");
        db.setAutoCommit(false);
        run(db, "insert into jdbc_t values (1, 1, 'x')");
        Savepoint point = db.setSavepoint("here");
        fails("23505", "a key twice", () -> run(db, "insert into jdbc_t values (1, 1, 'x')"));
        fails("25P02", "after an error", () -> run(db, "select 1"));
        db.rollback(point);
        run(db, "insert into jdbc_t values (2, 1, 'x')");
        db.commit();
        same(one(db, "select count(*) from jdbc_t"), 2L, "after a savepoint");
        db.rollback();
    }

    static void errors(Connection db) throws Exception {
        fails("23514", "check", () -> run(db, "insert into jdbc_t values (3, 0, 'x')"));
        fails("23502", "not null", () -> run(db, "insert into jdbc_t values (3, 1, null)"));
        fails("42P01", "an unknown table", () -> run(db, "select * from nothing"));
        fails("42703", "an unknown column", () -> run(db, "select nothing from jdbc_t"));
        fails("42601", "syntax", () -> run(db, "selec 1"));
        fails("22012", "division by zero", () -> run(db, "select 1 / (a - 1) from jdbc_t"));
        fails("22003", "a number that is too large", () -> run(db, "select 9223372036854775807 + a from jdbc_t"));
        fails("22P02", "no number", () -> run(db, "select 'fish'::int"));
        fails("42883", "an unknown function", () -> run(db, "select nothing(1)"));
        fails("42P07", "a table that is there", () -> run(db, "create table jdbc_t (a int)"));
        try {
            run(db, "select a from jdbc_t where nothing = 1");
            throw new AssertionError("an unknown column is known");
        } catch (PSQLException e) {
            same(e.getServerErrorMessage().getPosition(), 28, "the place of an error");
        }
    }

    static void levels(Connection db) throws Exception {
        db.setReadOnly(true);
        db.setAutoCommit(false);
        same(one(db, "select count(*) from jdbc_t"), 2L, "read only");
        fails("25006", "a change in a transaction that only reads", () -> run(db, "delete from jdbc_t"));
        db.rollback();
        db.setAutoCommit(true);
        db.setReadOnly(false);
        for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ}) {
            db.setTransactionIsolation(level);
            db.setAutoCommit(false);
            run(db, "update jdbc_t set b = b + 1");
            db.commit();
            db.setAutoCommit(true);
        }
        same(one(db, "select min(b) from jdbc_t"), 3, "updates in both levels");
        db.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
    }

    static void autosave(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_saved", "create table jdbc_saved (a int primary key)");
        db.setAutoCommit(false);
        try (PreparedStatement insert = db.prepareStatement("insert into jdbc_saved values (?)")) {
            for (int n = 0; n < 10; n++) {
                insert.setInt(1, n / 2);
                if (n % 2 == 0) {
                    same(insert.executeUpdate(), 1, "autosave");
                } else {
                    fails("23505", "a key twice", insert::executeUpdate);
                }
            }
        }
        db.commit();
        same(one(db, "select count(*) from jdbc_saved"), 5L, "autosave kept what was right");
        db.rollback();
    }

    static void batches(Connection db, String table) throws Exception {
        run(db, "drop table if exists " + table, "create table " + table + " (a int primary key, b text, c numeric(10,2))");
        try (PreparedStatement insert = db.prepareStatement("insert into " + table + " values (?, ?, ?)")) {
            for (int n = 0; n < 1000; n++) {
                insert.setInt(1, n);
                insert.setString(2, n % 3 == 0 ? null : "row " + n);
                insert.setBigDecimal(3, BigDecimal.valueOf(n, 2));
                insert.addBatch();
            }
            int[] counts = insert.executeBatch();
            same(counts.length, 1000, "counts of a batch");
            // What is rewritten into few statements has no count for each.
            same(counts[0] == 1 || counts[0] == Statement.SUCCESS_NO_INFO, true, "a count");
            same(one(db, "select count(*) || ' ' || count(b) || ' ' || sum(c) from " + table), "1000 666 4995.00", "a batch");
            insert.setInt(1, 1000);
            insert.setString(2, "new");
            insert.setBigDecimal(3, BigDecimal.ONE);
            insert.addBatch();
            insert.setInt(1, 7);
            insert.addBatch();
            fails("23505", "a key twice in a batch", insert::executeBatch);
        }
        same(one(db, "select count(*) from " + table), 1000L, "a batch is one transaction");
        try (Statement statement = db.createStatement()) {
            statement.addBatch("update " + table + " set b = 'x' where a < 10");
            statement.addBatch("delete from " + table + " where a >= 990");
            same(Arrays.toString(statement.executeBatch()), "[10, 10]", "a batch of texts");
        }
    }

    static void lists(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_lists", "create table jdbc_lists (n int, a int[], t text[], d double precision[], m int[][])");
        try (PreparedStatement insert = db.prepareStatement("insert into jdbc_lists values (?, ?, ?, ?, ?)")) {
            for (int n = 0; n < 8; n++) {
                insert.setInt(1, n);
                insert.setArray(2, db.createArrayOf("int4", new Integer[] {1, null, n}));
                insert.setArray(3, db.createArrayOf("text", new String[] {"a,b", null, "\"", "NULL", ""}));
                insert.setArray(4, db.createArrayOf("float8", new Double[] {}));
                insert.setArray(5, db.createArrayOf("int4", new Integer[][] {{1, 2}, {3, 4}}));
                same(insert.executeUpdate(), 1, "a list");
            }
        }
        try (PreparedStatement select = db.prepareStatement("select a, t, d, m from jdbc_lists where n = any(?) order by n")) {
            for (int n = 0; n < 8; n++) {
                select.setArray(1, db.createArrayOf("int4", new Integer[] {n, 100}));
                try (ResultSet rows = select.executeQuery()) {
                    same(rows.next(), true, "any");
                    same(rows.getArray(1).getArray(), new Integer[] {1, null, n}, "int[], execution " + n);
                    same(rows.getArray(2).getArray(), new String[] {"a,b", null, "\"", "NULL", ""}, "text[], execution " + n);
                    same(rows.getArray(3).getArray(), new Double[] {}, "an empty list");
                    same(rows.getArray(4).getArray(), new Integer[][] {{1, 2}, {3, 4}}, "int[][], execution " + n);
                    same(rows.next(), false, "any");
                }
            }
        }
    }

    static void generated(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_keys", "create table jdbc_keys (id bigint generated always as identity primary key, name text)");
        try (PreparedStatement insert = db.prepareStatement("insert into jdbc_keys (name) values (?)", Statement.RETURN_GENERATED_KEYS)) {
            for (long n = 1; n <= 7; n++) {
                insert.setString(1, "name " + n);
                same(insert.executeUpdate(), 1, "a row");
                try (ResultSet keys = insert.getGeneratedKeys()) {
                    same(keys.next(), true, "a key");
                    same(keys.getLong("id"), n, "the key that was made");
                }
            }
        }
        try (PreparedStatement insert = db.prepareStatement("insert into jdbc_keys (name) values (?)", new String[] {"id"})) {
            for (int n = 0; n < 3; n++) {
                insert.setString(1, "more");
                insert.addBatch();
            }
            insert.executeBatch();
            HashSet<Long> found = new HashSet<>();
            try (ResultSet keys = insert.getGeneratedKeys()) {
                while (keys.next()) {
                    found.add(keys.getLong(1));
                }
            }
            same(found, new HashSet<>(Arrays.asList(8L, 9L, 10L)), "keys of a batch");
        }
    }

    static void copies(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_copy", "create table jdbc_copy (a int, b text)");
        CopyManager copies = db.unwrap(PGConnection.class).getCopyAPI();
        same(copies.copyIn("copy jdbc_copy from stdin with (format csv)", new StringReader("1,one\n2,\"a, b\"\n3,\n")), 3L, "copy in");
        CopyIn in = copies.copyIn("copy jdbc_copy (a, b) from stdin");
        for (int n = 10; n < 5010; n++) {
            byte[] line = (n + "\trow\\t" + n + "\n").getBytes(StandardCharsets.UTF_8);
            in.writeToCopy(line, 0, line.length);
        }
        same(in.endCopy(), 5000L, "copy in, line by line");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        same(copies.copyOut("copy (select * from jdbc_copy where a < 12 order by a) to stdout with (format csv, header)", out), 5L, "copy out");
        same(out.toString(StandardCharsets.UTF_8), "a,b\n1,one\n2,\"a, b\"\n3,\n10,row\t10\n11,row\t11\n", "what was copied out");
        CopyIn left = copies.copyIn("copy jdbc_copy from stdin");
        left.writeToCopy("999999\tx\n".getBytes(StandardCharsets.UTF_8), 0, 9);
        left.cancelCopy();
        same(one(db, "select count(*) from jdbc_copy where a = 999999"), 0L, "a copy that was given up");
        fails("22P02", "a wrong line", () -> copies.copyIn("copy jdbc_copy from stdin", new StringReader("x\ty\n")));
        same(one(db, "select count(*) from jdbc_copy"), 5003L, "after a wrong copy");
    }

    static void session(Connection db) throws Exception {
        same(db.isValid(5), true, "isValid");
        same(db.getCatalog() + " " + db.getSchema(), "atoll public", "where it is");
        run(db, "create schema if not exists jdbc_schema");
        db.setSchema("jdbc_schema");
        same(db.getSchema(), "jdbc_schema", "setSchema");
        db.setSchema("public");
        db.setClientInfo("ApplicationName", "fisher");
        same(one(db, "select application_name from pg_stat_activity where pid = " + one(db, "select pg_backend_pid()")), "fisher", "ApplicationName");
        try (Statement statement = db.createStatement()) {
            same(statement.execute("select 1 as a; select 2 as b, 3; update jdbc_t set b = b where false"), true, "several statements");
            same(statement.getResultSet().getMetaData().getColumnCount(), 1, "first");
            same(statement.getMoreResults(), true, "second");
            same(statement.getResultSet().getMetaData().getColumnCount(), 2, "second");
            same(statement.getMoreResults() || statement.getUpdateCount() != 0, false, "third");
            statement.setMaxRows(7);
            int count = 0;
            try (ResultSet rows = statement.executeQuery("select * from generate_series(1, 1000)")) {
                while (rows.next()) {
                    count++;
                }
            }
            same(count, 7, "setMaxRows");
        }
        try (Statement statement = db.createStatement()) {
            statement.execute("create table if not exists jdbc_noted (a int)");
            statement.execute("drop index if exists jdbc_noted_a");
            statement.execute("create index jdbc_noted_a on jdbc_noted (a)");
            same(statement.getWarnings() != null && statement.getWarnings().getMessage().contains("is a name only"), true, "a notice");
        }
    }

    static final String LONG = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";

    static void cancel(Connection db) throws Exception {
        try (Statement statement = db.createStatement()) {
            Thread other = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    statement.cancel();
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            });
            other.start();
            fails("57014", "cancel", () -> statement.executeQuery(LONG));
            other.join();
            same(one(db, "select 1"), 1L, "after a cancel");
        }
    }

    static void timeout(Connection db) throws Exception {
        try (Statement statement = db.createStatement()) {
            statement.setQueryTimeout(1);
            fails("57014", "setQueryTimeout", () -> statement.executeQuery(LONG));
            statement.setQueryTimeout(0);
            statement.execute("set statement_timeout = 300");
            fails("57014", "statement_timeout", () -> statement.executeQuery(LONG));
            statement.execute("reset statement_timeout");
            same(one(db, "select 1"), 1L, "after a timeout");
        }
    }

    /** Threads with connections of their own. */
    static void many(Connection all) throws Exception {
        run(all, "drop table if exists jdbc_many", "create table jdbc_many (n int)");
        Thread[] threads = new Thread[8];
        Throwable[] troubles = new Throwable[threads.length];
        for (int t = 0; t < threads.length; t++) {
            int own = t;
            threads[t] = new Thread(() -> {
                try (Connection db = connect(); PreparedStatement insert = db.prepareStatement("insert into jdbc_many values (?)")) {
                    for (int n = 0; n < 25; n++) {
                        insert.setInt(1, own * 1000 + n);
                        insert.executeUpdate();
                    }
                } catch (Throwable e) {
                    troubles[own] = e;
                }
            });
            threads[t].start();
        }
        for (int t = 0; t < threads.length; t++) {
            threads[t].join();
            same(troubles[t], null, "a thread");
        }
        same(one(all, "select count(distinct n) from jdbc_many"), 200L, "rows of eight threads");
    }
}
