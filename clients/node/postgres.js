// node-postgres against a server: node postgres.js PORT. Says what is not as PostgreSQL has it, and ends with 1 then.
'use strict'

const assert = require('node:assert/strict')
const { pipeline } = require('node:stream/promises')
const { Readable } = require('node:stream')
const { Client, Pool, types } = require('pg')
const Cursor = require('pg-cursor')
const { from: copyFrom, to: copyTo } = require('pg-copy-streams')

const at = { host: '127.0.0.1', port: Number(process.argv[2]), user: 'ann', database: 'atoll' }
const LONG = 'select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3'
let failed = 0

async function test(name, work, options = {}) {
  const db = new Client({ ...at, ...options })
  try {
    await db.connect()
    await work(db)
  } catch (e) {
    failed = 1
    const place = /postgres\.js:(\d+)/.exec(e.stack || '')
    console.error(`${name}${place ? ` at ${place[1]}` : ''}: ${e.code || ''} ${e.message}`)
  } finally {
    await db.end().catch(() => {})
  }
}

async function fails(code, promise) {
  await assert.rejects(promise, (e) => {
    assert.equal(e.code, code, e.message)
    return true
  })
}

const one = async (db, text, values) => Object.values((await db.query(text, values)).rows[0])[0]

async function values(db) {
  await db.query('drop table if exists node_types')
  await db.query('create table node_types (n int, l bigint, d double precision, p numeric(12,3), t text, y date, m timestamp, z timestamptz, b boolean, g bytea, ' +
    'u uuid, j jsonb, k json, a int[], x text[], h time)')
  const moment = new Date('2026-11-25T01:02:03.456Z')
  const row = [1, '9223372036854775807', 0.1, '-123456789.125', "é' \\ \" \t漢字 🐟", '2026-11-25', moment, moment, true, Buffer.from([0, 1, 255, 39, 92]),
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', { a: [1, null, 'x'] }, { b: 2 }, [1, null, 3], ['a,b', null, '"', 'NULL', ''], '23:59:59.123456']
  const places = row.map((_, i) => `$${i + 1}`).join(', ')
  // What has a name is prepared once and run with other values.
  for (let n = 0; n < 8; n++) {
    await db.query({ name: 'insert', text: `insert into node_types values (${places})`, values: [n, ...row.slice(1)] })
  }
  await db.query(`insert into node_types values (${places})`, [100, ...row.slice(1).map(() => null)])
  for (let n = 0; n < 8; n++) {
    const found = (await db.query({ name: 'select', text: 'select * from node_types where n = $1 and u = $2 and t = $3', values: [n, row[10], row[4]] })).rows
    assert.equal(found.length, 1)
    const { n: number, l, d, p, t, m, z, b, g, u, j, k, a, x, h, y } = found[0]
    assert.deepEqual([number, l, d, p, t], [n, ...row.slice(1, 5)])
    assert.equal(z.getTime(), moment.getTime())
    // A timestamp has no zone; the driver reads it as local time.
    assert.equal(m.getTime(), new Date(2026, 10, 25, moment.getHours(), 2, 3, 456).getTime())
    assert.equal(y.getDate(), 25)
    assert.equal(b, true)
    assert.deepEqual([...g], [0, 1, 255, 39, 92])
    assert.deepEqual([u, j, k, a, x, h], row.slice(10))
  }
  const nulls = (await db.query('select * from node_types where n = 100')).rows[0]
  assert.deepEqual(Object.values(nulls), [100, ...row.slice(1).map(() => null)])
  assert.equal(await one(db, 'select count(*) from node_types where n = any($1)', [[1, 2, 55]]), '2')
  assert.equal(await one(db, 'select count(*) from node_types where u = any($1::uuid[])', [[row[10]]]), '8')
  assert.equal(await one(db, 'select count(*) from node_types where j @> $1', [{ a: [1] }]), '8')
  assert.equal(await one(db, "select count(*) from node_types where j ->> $1 = '[1, null, \"x\"]'", ['a']), '8')
  assert.equal(await one(db, 'select count(*) from node_types where a @> $1', [[3]]), '8')
  assert.equal(await one(db, 'select count(*) from node_types where z = $1 and d < $2 and p < $3 and b = $4 and y >= $5', [moment, 0.2, '0', true, '2026-11-01']), '8')
  assert.equal(await one(db, 'select count(*) from node_types where g = $1', [row[9]]), '8')
  const fields = (await db.query('select n, l, p, u, j, a, z from node_types limit 0')).fields.map((field) => field.dataTypeID)
  assert.deepEqual(fields, [types.builtins.INT4, types.builtins.INT8, types.builtins.NUMERIC, types.builtins.UUID, types.builtins.JSONB, 1007, types.builtins.TIMESTAMPTZ])
}

async function statements(db) {
  await db.query('drop table if exists node_t; create table node_t (a int primary key, b text not null)')
  const done = await db.query("insert into node_t values (1, 'x'), (2, 'y')")
  assert.deepEqual([done.command, done.rowCount], ['INSERT', 2])
  const made = await db.query('insert into node_t values ($1, $2) returning a + 1 as next', [3, 'z'])
  assert.deepEqual(made.rows, [{ next: made.rows[0].next }])
  assert.equal(Number(made.rows[0].next), 4)
  const several = await db.query('select 1 as one; select 2 as two')
  assert.deepEqual(several.map((result) => Object.keys(result.rows[0])[0]), ['one', 'two'])
  const arrays = await db.query({ text: 'select a, b from node_t order by a', rowMode: 'array' })
  assert.deepEqual(arrays.rows, [[1, 'x'], [2, 'y'], [3, 'z']])
  await db.query('begin')
  await db.query('delete from node_t where a = $1', [1])
  await fails('23505', db.query("insert into node_t values (2, 'y')"))
  await fails('25P02', db.query('select 1'))
  await db.query('rollback')
  assert.equal(await one(db, 'select count(*) from node_t'), '3')
  await fails('42P01', db.query('select * from nothing'))
  await fails('42703', db.query('select nothing from node_t'))
  await fails('42601', db.query('selec 1'))
  await fails('22012', db.query('select 1 / (a - a) from node_t'))
  await fails('22P02', db.query('select $1::int', ['fish']))
  await fails('23502', db.query('insert into node_t values ($1, $2)', [9, null]))
  await fails('08P01', db.query('select $1::int', [1, 2]))
  assert.equal((await db.query('select * from node_t where a = $1', [-1])).rowCount, 0)
}

async function batch(db) {
  await db.query('drop table if exists node_batch; create table node_batch (a int, b text)')
  await db.query('begin')
  for (let n = 0; n < 500; n++) {
    await db.query('insert into node_batch values ($1, $2)', [n, `row ${n}`])
  }
  await db.query('commit')
  await db.query('insert into node_batch select * from unnest($1::int[], $2::text[])', [[1000, 1001], ['many', null]])
  const rows = [...Array(300).keys()]
  await db.query(`insert into node_batch values ${rows.map((n) => `($${2 * n + 1}, $${2 * n + 2})`).join(', ')}`, rows.flatMap((n) => [2000 + n, 'wide']))
  assert.equal(await one(db, "select count(*) || ' ' || count(distinct b) || ' ' || sum(a) from node_batch"), `802 502 ${124750 + 2001 + 644850}`)
}

async function cursors(db) {
  await db.query('begin')
  const cursor = db.query(new Cursor('select x from generate_series(1, $1) a(x) order by x', [10000]))
  let sum = 0
  for (let rows = await cursor.read(7); rows.length; rows = await cursor.read(777)) {
    sum += rows.reduce((all, row) => all + Number(row.x), 0)
  }
  assert.equal(sum, 50005000)
  const left = db.query(new Cursor('select x from generate_series(1, 100000000) a(x)'))
  assert.equal((await left.read(10)).length, 10)
  await left.close()
  assert.equal(await one(db, 'select 1 as one'), '1')
  await db.query('commit')
}

async function copies(db) {
  await db.query('drop table if exists node_copy; create table node_copy (a int, b text)')
  function * lines() {
    for (let n = 0; n < 20000; n++) {
      yield `${n}\t${n % 3 ? `row\\t${n}` : '\\N'}\n`
    }
  }
  const into = db.query(copyFrom('copy node_copy from stdin'))
  await pipeline(Readable.from(lines()), into)
  assert.equal(into.rowCount, 20000)
  let out = ''
  for await (const piece of db.query(copyTo('copy (select * from node_copy where a < 3 order by a) to stdout with (format csv)'))) {
    out += piece
  }
  assert.equal(out, '0,\n1,row\t1\n2,row\t2\n')
  await fails('22P02', pipeline(Readable.from(['x\ty\n']), db.query(copyFrom('copy node_copy from stdin'))))
  assert.equal(await one(db, 'select count(*) from node_copy'), '20000')
}

async function stopping(db) {
  const pid = await one(db, 'select pg_backend_pid()')
  assert.equal(Number(pid), db.processID)
  const other = new Client(at)
  await other.connect()
  setTimeout(() => other.query(`select pg_cancel_backend(${pid})`), 300)
  await fails('57014', db.query(LONG))
  await other.end()
  await db.query('set statement_timeout = 200')
  await fails('57014', db.query(LONG))
  await db.query('reset statement_timeout')
  assert.equal(await one(db, "select 'on'"), 'on')
}

async function pool() {
  const all = new Pool({ ...at, max: 8 })
  const found = await Promise.all([...Array(200).keys()].map((n) => all.query('select $1::int + 1 as n', [n])))
  assert.deepEqual(found.map((result) => Number(result.rows[0].n)), [...Array(200).keys()].map((n) => n + 1))
  await all.end()
}

async function notices(db) {
  const told = []
  db.on('notice', (notice) => told.push(notice.message))
  await db.query('drop table if exists node_noted; create table node_noted (a int)')
  await db.query('create index node_noted_a on node_noted (a)')
  assert.match(told.join(), /is a name only/)
  assert.equal(await one(db, 'select application_name from pg_stat_activity where pid = $1', [db.processID]), 'fisher')
}

async function main() {
  await test('values', values)
  await test('statements', statements)
  await test('batch', batch)
  await test('cursors', cursors)
  await test('copies', copies)
  await test('stopping', stopping)
  await test('pool', pool)
  await test('notices', notices, { application_name: 'fisher' })
  await test('a timeout of the connection', async (db) => fails('57014', db.query(LONG)), { statement_timeout: 300 })
  process.exit(failed)
}

main()
