// What pgjdbc says of tables, columns, keys and types, which it reads from pg_catalog: java -cp postgresql.jar Metadata.java PORT.
// Tools such as DBeaver, DbVisualizer, Metabase and Spark ask for these.

import java.sql.*;
import java.util.ArrayList;
import java.util.List;

public class Metadata {
    static int failed;
    static DatabaseMetaData meta;

    public static void main(String[] words) throws Exception {
        try (Connection db = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + words[0] + "/atoll?user=ann");
                Statement statement = db.createStatement()) {
            for (String text : new String[] {"drop schema if exists meta cascade", "create schema meta",
                "create table meta.reef (id bigint generated always as identity primary key, name varchar not null unique, area numeric(10,2) default 1.5, "
                    + "seen date, at timestamptz, tags text[], about jsonb, code uuid, data bytea, ok boolean)",
                "create table meta.fish (reef bigint references meta.reef (id) on delete cascade, place int, name text, primary key (reef, place))",
                "create index fish_by_name on meta.fish (name)", "create view meta.large as select id, name from meta.reef where area > 100",
                "comment on table meta.reef is 'Where fish live'", "comment on column meta.reef.area is 'in hectares'"}) {
                statement.execute(text);
            }
            meta = db.getMetaData();
            all();
        }
        System.exit(failed);
    }

    interface Rows {
        ResultSet get() throws SQLException;
    }

    /** That the columns of these names hold the rows, in their order; or that these are among them. */
    static void rows(String what, boolean exactly, Rows from, String columns, String... wanted) {
        try (ResultSet rows = from.get()) {
            List<String> found = new ArrayList<>();
            while (rows.next()) {
                StringBuilder row = new StringBuilder();
                for (String column : columns.split(" ")) {
                    row.append(row.isEmpty() ? "" : " ").append(rows.getString(column));
                }
                found.add(row.toString());
            }
            if (exactly ? !found.equals(List.of(wanted)) : !found.containsAll(List.of(wanted))) {
                complain(what + ":\n  found  " + (found.size() > 40 ? found.subList(0, 40) + "..." : found) + "\n  wanted " + List.of(wanted));
            }
        } catch (SQLException e) {
            complain(what + ": " + e);
        }
    }

    static void complain(String text) {
        failed = 1;
        System.err.println(text);
    }

    static void all() throws SQLException {
        if (!meta.getDatabaseProductName().equals("PostgreSQL") || meta.getDatabaseMajorVersion() < 12 || !meta.getUserName().equals("ann")) {
            complain("server: " + meta.getDatabaseProductName() + " " + meta.getDatabaseProductVersion() + " " + meta.getUserName());
        }
        rows("getCatalogs", true, () -> meta.getCatalogs(), "TABLE_CAT", "atoll");
        rows("getSchemas", false, () -> meta.getSchemas(), "TABLE_SCHEM", "meta", "public", "pg_catalog");
        rows("getSchemas of a pattern", true, () -> meta.getSchemas(null, "met%"), "TABLE_SCHEM", "meta");
        rows("getTableTypes", false, () -> meta.getTableTypes(), "TABLE_TYPE", "TABLE", "VIEW");
        rows("getTables", true, () -> meta.getTables(null, "meta", "%", new String[] {"TABLE", "VIEW"}), "TABLE_SCHEM TABLE_NAME TABLE_TYPE REMARKS",
            "meta fish TABLE null", "meta reef TABLE Where fish live", "meta large VIEW null");
        rows("getTables of all kinds", false, () -> meta.getTables(null, "meta", null, null), "TABLE_NAME TABLE_TYPE", "fish_by_name INDEX", "large VIEW", "reef TABLE");
        rows("getTables of a name", true, () -> meta.getTables("atoll", "meta", "re_f", null), "TABLE_NAME", "reef");
        rows("getColumns", true, () -> meta.getColumns(null, "meta", "reef", "%"), "COLUMN_NAME DATA_TYPE TYPE_NAME COLUMN_SIZE DECIMAL_DIGITS IS_NULLABLE COLUMN_DEF REMARKS",
            "id -5 int8 19 0 NO null null", "name 12 text 2147483647 0 NO null null", "area 2 numeric 10 2 YES 1.5 in hectares",
            "seen 91 date 13 0 YES null null", "at 93 timestamptz 35 6 YES null null", "tags 2003 _text 2147483647 0 YES null null",
            "about 1111 jsonb 2147483647 0 YES null null", "code 1111 uuid 2147483647 0 YES null null", "data -2 bytea 2147483647 0 YES null null", "ok -7 bool 1 0 YES null null");
        rows("getColumns: made by itself", true, () -> meta.getColumns(null, "meta", "reef", "id"), "COLUMN_NAME IS_AUTOINCREMENT", "id YES");
        rows("getColumns of a view", true, () -> meta.getColumns(null, "meta", "large", null), "COLUMN_NAME TYPE_NAME ORDINAL_POSITION", "id int8 1", "name text 2");
        rows("getPrimaryKeys", true, () -> meta.getPrimaryKeys(null, "meta", "fish"), "COLUMN_NAME KEY_SEQ PK_NAME", "reef 1 fish_pkey", "place 2 fish_pkey");
        rows("getImportedKeys", true, () -> meta.getImportedKeys(null, "meta", "fish"), "PKTABLE_SCHEM PKTABLE_NAME PKCOLUMN_NAME FKTABLE_NAME FKCOLUMN_NAME KEY_SEQ DELETE_RULE UPDATE_RULE FK_NAME PK_NAME",
            "meta reef id fish reef 1 0 3 fish_reef_fkey reef_pkey");
        rows("getExportedKeys", true, () -> meta.getExportedKeys(null, "meta", "reef"), "FKTABLE_NAME FKCOLUMN_NAME", "fish reef");
        rows("getCrossReference", true, () -> meta.getCrossReference(null, "meta", "reef", null, "meta", "fish"), "FKTABLE_NAME FKCOLUMN_NAME", "fish reef");
        rows("getIndexInfo", true, () -> meta.getIndexInfo(null, "meta", "fish", false, true), "NON_UNIQUE INDEX_NAME ORDINAL_POSITION COLUMN_NAME",
            "f fish_pkey 1 reef", "f fish_pkey 2 place", "t fish_by_name 1 name");
        rows("getIndexInfo of unique ones", true, () -> meta.getIndexInfo(null, "meta", "reef", true, true), "INDEX_NAME COLUMN_NAME", "reef_name_key name", "reef_pkey id");
        rows("getBestRowIdentifier", true, () -> meta.getBestRowIdentifier(null, "meta", "reef", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME", "id");
        rows("getTypeInfo", false, () -> meta.getTypeInfo(), "TYPE_NAME DATA_TYPE", "int4 4", "int8 -5", "numeric 2", "text 12", "timestamptz 93", "jsonb 1111", "uuid 1111", "_int4 2003");
        rows("getTablePrivileges", false, () -> meta.getTablePrivileges(null, "meta", "reef"), "TABLE_NAME PRIVILEGE", "reef SELECT", "reef INSERT");
        rows("getColumnPrivileges", false, () -> meta.getColumnPrivileges(null, "meta", "reef", "id"), "COLUMN_NAME PRIVILEGE", "id SELECT");
        rows("getFunctions", true, () -> meta.getFunctions(null, "meta", "%"), "FUNCTION_NAME");
        rows("getFunctionColumns", true, () -> meta.getFunctionColumns(null, "meta", "%", "%"), "COLUMN_NAME");
        rows("getProcedures", true, () -> meta.getProcedures(null, "meta", "%"), "PROCEDURE_NAME");
        rows("getProcedureColumns", true, () -> meta.getProcedureColumns(null, "meta", "%", "%"), "COLUMN_NAME");
        rows("getUDTs", true, () -> meta.getUDTs(null, "meta", "%", null), "TYPE_NAME");
        rows("getVersionColumns", false, () -> meta.getVersionColumns(null, "meta", "reef"), "COLUMN_NAME");
        rows("getClientInfoProperties", false, () -> meta.getClientInfoProperties(), "NAME", "ApplicationName");
        if (meta.getMaxColumnNameLength() != 63 || !meta.getSQLKeywords().contains("ilike")) {
            complain("getSQLKeywords: " + meta.getSQLKeywords());
        }
        try (Statement statement = meta.getConnection().createStatement(); ResultSet rows = statement.executeQuery("select id, name, area from meta.reef")) {
            ResultSetMetaData columns = rows.getMetaData();
            if (!columns.getTableName(1).equals("reef") || !columns.isAutoIncrement(1) || columns.isNullable(2) != ResultSetMetaData.columnNoNulls) {
                complain("ResultSetMetaData: table " + columns.getTableName(1) + ", auto " + columns.isAutoIncrement(1) + ", nullable " + columns.isNullable(2));
            }
        } catch (SQLException e) {
            complain("ResultSetMetaData: " + e);
        }
    }
}
