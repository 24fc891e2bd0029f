// pgx 5 and database/sql against a server: go run . PORT. Says what is not as PostgreSQL has it, and ends with 1 then.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

const long = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3"

var (
	ctx    = context.Background()
	at     string
	failed bool
)

func main() {
	at = "host=127.0.0.1 user=ann dbname=atoll sslmode=disable port=" + os.Args[1]
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		test("types, "+mode, " default_query_exec_mode="+mode, func(db *pgx.Conn) { types(db, mode) })
	}
	test("untyped parameters", "", untyped)
	test("transactions", "", transactions)
	test("errors", "", codes)
	test("changing", "", changing)
	test("batches", "", batches)
	test("copies", "", copies)
	test("stopping", "", stopping)
	test("database/sql", "", standard)
	test("pool", "", pool)
	if failed {
		os.Exit(1)
	}
}

// test runs one with a connection of its own; the others go on if it fails.
func test(name, options string, work func(*pgx.Conn)) {
	defer func() {
		if trouble := recover(); trouble != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, trouble)
		}
	}()
	db, err := pgx.Connect(ctx, at+options)
	must(err, "connect")
	defer db.Close(ctx)
	work(db)
}

func must(err error, what string) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", what, err))
	}
}

func same(found, wanted any, what string) {
	if !reflect.DeepEqual(found, wanted) {
		panic(fmt.Sprintf("%s: found %#v, wanted %#v", what, found, wanted))
	}
}

// fails is for an error with that code.
func fails(code string, err error, what string) {
	var told *pgconn.PgError
	if !errors.As(err, &told) || told.Code != code {
		panic(fmt.Sprintf("%s: found %v, wanted %s", what, err, code))
	}
}

func run(db *pgx.Conn, texts ...string) {
	for _, text := range texts {
		_, err := db.Exec(ctx, text)
		must(err, text)
	}
}

func one[T any](db *pgx.Conn, text string, values ...any) T {
	var found T
	must(db.QueryRow(ctx, text, values...).Scan(&found), text)
	return found
}

func numeric(text string) pgtype.Numeric {
	var number pgtype.Numeric
	must(number.Scan(text), text)
	return number
}

type row struct {
	N int32
	S int16
	L int64
	R float32
	D float64
	P pgtype.Numeric
	T string
	Y time.Time
	M time.Time
	Z time.Time
	B bool
	G []byte
	U pgtype.UUID
	J map[string]any
	A []int32
	X []string
	H pgtype.Time
}

func types(db *pgx.Conn, mode string) {
	run(db, "drop table if exists go_types", "create table go_types (n int, s smallint, l bigint, r real, d double precision, p numeric(12,3), t text, y date, m timestamp, "+
		"z timestamptz, b boolean, g bytea, u uuid, j jsonb, a int[], x text[], h time)")
	moment := time.Date(2026, 11, 25, 1, 2, 3, 123456000, time.UTC)
	var uuid pgtype.UUID
	must(uuid.Scan("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), "uuid")
	wanted := row{0, -32768, -9223372036854775808, 0.1, 1e300, numeric("-123456789.125"), "é' \\ \" \t漢字 🐟", time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), moment, moment,
		true, []byte{0, 1, 255, 39, 92}, uuid, map[string]any{"a": []any{1.0, nil, "x"}}, []int32{1, 2, 3}, []string{"a,b", "\"", "NULL", ""}, pgtype.Time{Microseconds: 86399123456, Valid: true}}
	var about any = wanted.J
	if mode == "exec" || mode == "simple_protocol" {
		// Where nobody asks the server for types, a map has none.
		about = `{"a": [1, null, "x"]}`
	}
	for n := int32(0); n < 8; n++ {
		_, err := db.Exec(ctx, "insert into go_types values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)", n, wanted.S, wanted.L, wanted.R, wanted.D,
			wanted.P, wanted.T, wanted.Y, wanted.M, wanted.Z, wanted.B, wanted.G, wanted.U, about, wanted.A, wanted.X, wanted.H)
		must(err, "insert")
	}
	_, err := db.Exec(ctx, "insert into go_types (n, l, p, t, z, u, j, a) values ($1, $2, $3, $4, $5, $6, $7, $8)", 100, nil, nil, nil, nil, nil, nil, nil)
	must(err, "nulls")
	for n := int32(0); n < 8; n++ {
		rows, err := db.Query(ctx, "select * from go_types where n = $1 and t = $2 and z = $3", n, wanted.T, moment.In(time.FixedZone("east", 5*3600)))
		must(err, "select")
		found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[row])
		must(err, "a row")
		found.Z, wanted.N = found.Z.UTC(), n
		same(found, wanted, fmt.Sprintf("%s, execution %d", mode, n))
	}
	var nothing *string
	must(db.QueryRow(ctx, "select t from go_types where n = 100").Scan(&nothing), "null")
	same(nothing, (*string)(nil), "null")
	same(one[int64](db, "select count(*) from go_types where l is null and p is null and u is null and j is null and a is null"), int64(1), "nulls")
}

// untyped has parameters whose types the statement tells.
func untyped(db *pgx.Conn) {
	types(db, "before")
	var uuid pgtype.UUID
	must(uuid.Scan("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), "uuid")
	for n := 0; n < 8; n++ {
		same(one[int64](db, "select count(*) from go_types where u = $1", uuid), int64(8), "uuid = $1")
		same(one[int64](db, "select count(*) from go_types where u = $1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), int64(8), "uuid = a text")
		same(one[int64](db, "select count(*) from go_types where n = any($1)", []int32{1, 2, 55}), int64(2), "any($1)")
		same(one[int64](db, "select count(*) from go_types where t = any($1)", []string{"é' \\ \" \t漢字 🐟"}), int64(8), "any of texts")
		same(one[int64](db, "select count(*) from go_types where a @> $1", []int32{3}), int64(8), "@> $1")
		same(one[int64](db, "select count(*) from go_types where j @> $1", map[string]any{"a": []int{1}}), int64(8), "jsonb @> $1")
		same(one[int64](db, "select count(*) from go_types where p < $1 and d > $2 and s = $3 and z between $4 and $5", numeric("0"), 1.5, -32768,
			time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)), int64(8), "several")
		same(one[int64](db, "select count(*) from go_types where n in ($1, $2) and t like $3 and b = $4", 1, 2, "%🐟", true), int64(2), "in, like")
		same(one[string](db, "select coalesce($1, 'none')", nil), "none", "coalesce")
		same(one[string](db, "select $1::text || $2", "a", "b"), "ab", "||")
	}
	sent, err := db.Prepare(ctx, "told", "select n, l, p, u, j, a from go_types where u = $1 and n = $2 and y > $3 and a = $4")
	must(err, "prepare")
	same(sent.ParamOIDs, []uint32{pgtype.UUIDOID, pgtype.Int4OID, pgtype.DateOID, pgtype.Int4ArrayOID}, "types of parameters")
	var oids []uint32
	for _, field := range sent.Fields {
		oids = append(oids, field.DataTypeOID)
	}
	same(oids, []uint32{pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.UUIDOID, pgtype.JSONBOID, pgtype.Int4ArrayOID}, "types of columns")
}

func transactions(db *pgx.Conn) {
	run(db, "drop table if exists go_t", "create table go_t (a int primary key, b text)")
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(err, "begin")
	_, err = tx.Exec(ctx, "insert into go_t values ($1, $2)", 1, "x")
	must(err, "insert")
	inner, err := tx.Begin(ctx)
	must(err, "savepoint")
	_, err = inner.Exec(ctx, "insert into go_t values (1, 'y')")
	fails("23505", err, "a key twice")
	_, err = inner.Exec(ctx, "select 1")
	fails("25P02", err, "after an error")
	must(inner.Rollback(ctx), "rollback to the savepoint")
	must(tx.Commit(ctx), "commit")
	same(one[int64](db, "select count(*) from go_t"), int64(1), "commit")
	tx, err = db.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	must(err, "begin read only")
	_, err = tx.Exec(ctx, "delete from go_t")
	fails("25006", err, "a change in a transaction that only reads")
	must(tx.Rollback(ctx), "rollback")
	// Rows are read in pieces by a cursor of SQL or not at all; while they are, the connection is busy.
	rows, err := db.Query(ctx, "select x from generate_series(1, 100000) a(x)")
	must(err, "rows")
	same(rows.Next(), true, "a row")
	_, err = db.Exec(ctx, "select 1")
	same(err != nil && strings.Contains(err.Error(), "conn busy"), true, "busy")
	rows.Close()
	run(db, "select 1")
}

func codes(db *pgx.Conn) {
	run(db, "drop table if exists go_codes", "create table go_codes (a int primary key, b int check (b > 0), c text not null)", "insert into go_codes values (1, 1, 'x')")
	for text, code := range map[string]string{"insert into go_codes values (1, 1, 'x')": "23505", "insert into go_codes values (2, 0, 'x')": "23514", "insert into go_codes values (2, 1, null)": "23502",
		"select * from nothing": "42P01", "select nothing from go_codes": "42703", "selec 1": "42601", "select 1 / (a - 1) from go_codes": "22012", "select 'x'::int": "22P02",
		"select nothing(1)": "42883", "create table go_codes (a int)": "42P07", "select 9223372036854775807 + a from go_codes": "22003", "select a from go_codes group by b": "42803"} {
		_, err := db.Exec(ctx, text)
		fails(code, err, text)
	}
	_, err := db.Exec(ctx, "select a from go_codes where nothing = 1")
	var told *pgconn.PgError
	same(errors.As(err, &told) && told.Position == 30, true, fmt.Sprintf("the place of an error: %v", told))
}

// changing alters the table of statements that are prepared.
func changing(db *pgx.Conn) {
	run(db, "drop table if exists go_changing", "create table go_changing (a int)", "insert into go_changing values (1)")
	for n := 0; n < 6; n++ {
		if n == 3 {
			run(db, "alter table go_changing add column b int default 7")
		}
		rows, err := db.Query(ctx, "select * from go_changing where a = $1", 1)
		must(err, "select")
		found, err := pgx.CollectRows(rows, pgx.RowToMap)
		if n == 3 && err != nil {
			// The first execution may say so, and the driver forgets the statement then.
			fails("0A000", err, "a changed table")
			continue
		}
		must(err, fmt.Sprintf("execution %d", n))
		same(len(found[0]), map[bool]int{true: 1, false: 2}[n < 3], fmt.Sprintf("columns, execution %d", n))
	}
}

func batches(db *pgx.Conn) {
	run(db, "drop table if exists go_batch", "create table go_batch (a int primary key, b text)")
	batch := &pgx.Batch{}
	for n := 0; n < 1000; n++ {
		batch.Queue("insert into go_batch values ($1, $2)", n, fmt.Sprint("row ", n))
	}
	var sum int64
	batch.Queue("select sum(a) from go_batch").QueryRow(func(row pgx.Row) error { return row.Scan(&sum) })
	must(db.SendBatch(ctx, batch).Close(), "a batch")
	same(sum, int64(499500), "what a batch has inserted")
	batch = &pgx.Batch{}
	batch.Queue("insert into go_batch values ($1, $2)", 5000, "new")
	batch.Queue("insert into go_batch values ($1, $2)", 7, "again")
	fails("23505", db.SendBatch(ctx, batch).Close(), "a key twice")
	same(one[int64](db, "select count(*) from go_batch"), int64(1000), "a batch is one transaction")
}

func copies(db *pgx.Conn) {
	run(db, "drop table if exists go_copy", "create table go_copy (a int, b text, p numeric(12,3), y date, z timestamptz, f double precision, o boolean, u uuid, l int[])")
	moment := time.Date(2026, 11, 25, 1, 2, 3, 0, time.UTC)
	columns := []string{"a", "b", "p", "y", "z", "f", "o", "u", "l"}
	count, err := db.CopyFrom(ctx, pgx.Identifier{"go_copy"}, columns, pgx.CopyFromSlice(5000, func(n int) ([]any, error) {
		var name any
		if n%3 != 0 {
			name = fmt.Sprint("row\t", n)
		}
		return []any{n, name, numeric("1.5"), moment, moment, float64(n) / 4, n%2 == 0, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", []int32{int32(n), 2}}, nil
	}))
	must(err, "CopyFrom")
	same(count, int64(5000), "CopyFrom")
	same(one[string](db, "select count(*) || ' ' || count(b) || ' ' || sum(p) || ' ' || sum(f) || ' ' || count(distinct u) || ' ' || sum(l[1]) from go_copy where y = '2026-11-25' and z = '2026-11-25 01:02:03+00'"),
		"5000 3333 7500.000 3124375 1 12497500", "what was copied")
	var out bytes.Buffer
	_, err = db.PgConn().CopyTo(ctx, &out, "copy (select a, b, o from go_copy where a < 3 order by a) to stdout with (format csv)")
	must(err, "CopyTo")
	same(out.String(), "0,,t\n1,row\t1,f\n2,row\t2,t\n", "what was copied out")
	_, err = db.PgConn().CopyFrom(ctx, strings.NewReader("x\ty\n"), "copy go_copy (a, b) from stdin")
	fails("22P02", err, "a wrong copy")
	same(one[int64](db, "select count(*) from go_copy"), int64(5000), "after a wrong copy")
}

func stopping(db *pgx.Conn) {
	run(db, "set statement_timeout = 200")
	_, err := db.Exec(ctx, long)
	fails("57014", err, "statement_timeout")
	run(db, "reset statement_timeout")
	other, err := pgx.Connect(ctx, at)
	must(err, "connect")
	defer other.Close(ctx)
	time.AfterFunc(300*time.Millisecond, func() { _, _ = other.Exec(ctx, fmt.Sprintf("select pg_cancel_backend(%d)", db.PgConn().PID())) })
	_, err = db.Exec(ctx, long)
	fails("57014", err, "pg_cancel_backend")
	time.AfterFunc(300*time.Millisecond, func() { _ = db.PgConn().CancelRequest(ctx) })
	_, err = db.Exec(ctx, long)
	fails("57014", err, "a request to cancel")
	soon, stop := context.WithTimeout(ctx, 200*time.Millisecond)
	defer stop()
	_, err = db.Exec(soon, long)
	same(errors.Is(err, context.DeadlineExceeded), true, "a context that ends")
}

func standard(*pgx.Conn) {
	db, err := sql.Open("pgx", at)
	must(err, "open")
	defer db.Close()
	_, err = db.Exec("drop table if exists go_sql")
	must(err, "drop")
	_, err = db.Exec("create table go_sql (a bigint, b text, z timestamptz, f double precision)")
	must(err, "create")
	insert, err := db.Prepare("insert into go_sql values ($1, $2, $3, $4)")
	must(err, "prepare")
	moment := time.Date(2026, 11, 25, 1, 2, 3, 0, time.UTC)
	for n := int64(0); n < 10; n++ {
		result, err := insert.Exec(n, sql.NullString{String: "x", Valid: n%2 == 0}, moment, float64(n)/8)
		must(err, "insert")
		count, _ := result.RowsAffected()
		same(count, int64(1), "rows")
	}
	rows, err := db.Query("select a, b, z, f from go_sql where a >= $1 and z = $2 order by a", 8, moment)
	must(err, "select")
	defer rows.Close()
	for n := int64(8); rows.Next(); n++ {
		var (
			a    int64
			b    sql.NullString
			z    time.Time
			half float64
		)
		must(rows.Scan(&a, &b, &z, &half), "scan")
		same([]any{a, b.Valid, z.UTC(), half}, []any{n, n%2 == 0, moment, float64(n) / 8}, "a row")
	}
	kinds, err := rows.ColumnTypes()
	_ = kinds
	must(rows.Err(), "rows")
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	must(err, "begin")
	_, err = tx.Exec("delete from go_sql")
	must(err, "delete")
	must(tx.Rollback(), "rollback")
	var count int
	must(db.QueryRow("select count(*) from go_sql").Scan(&count), "count")
	same(count, 10, "rollback")
}

func pool(*pgx.Conn) {
	all, err := pgxpool.New(ctx, at+" pool_max_conns=8")
	must(err, "pool")
	defer all.Close()
	var waiting sync.WaitGroup
	troubles := make(chan error, 200)
	for n := 0; n < 200; n++ {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			var found int
			if err := all.QueryRow(ctx, "select $1::int + 1", n).Scan(&found); err != nil || found != n+1 {
				troubles <- fmt.Errorf("%d: %d, %w", n, found, err)
			}
		}()
	}
	waiting.Wait()
	select {
	case err := <-troubles:
		panic(err)
	default:
	}
}
