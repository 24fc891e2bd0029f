-- What Rails 7 sends: its migrations, and what it asks about tables.
-- for: drop table if exists rails_1,
drop table if exists rails_1, schema_migrations, ar_internal_metadata cascade;

-- for: create type rails_mood as enum
create type rails_mood as enum ('sad', 'ok');

-- for: create table rails_2 (id bigserial
create table rails_2 (id bigserial primary key, rails_1_id bigint);

-- for: create table rails_1 (id bigserial
create table rails_1 ("id" bigserial primary key, "email" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) without time zone NOT NULL, data jsonb default '{}', "n" integer default 0 not null, "price" decimal(10,2), active boolean default true);

-- for: alter table rails_2 add constraint
alter table "rails_2" add constraint "fk_rails_x" foreign key ("rails_1_id") references "rails_1" ("id");

-- for: CREATE UNIQUE INDEX index_users_on_email ON
CREATE UNIQUE INDEX "index_users_on_email" ON "rails_1" ("email");

-- for: CREATE INDEX CONCURRENTLY index_users_on_n ON
CREATE INDEX CONCURRENTLY "index_users_on_n" ON "rails_1" USING btree ("n");

-- for: ALTER TABLE rails_1 ADD login
ALTER TABLE "rails_1" ADD "login" character varying(255);

-- for: ALTER TABLE rails_1 ALTER COLUMN
ALTER TABLE "rails_1" ALTER COLUMN "login" SET DEFAULT 'x';

-- for: ALTER TABLE rails_1 ALTER COLUMN (2)
ALTER TABLE "rails_1" ALTER COLUMN "login" TYPE text;

-- for: ALTER TABLE rails_1 RENAME COLUMN
ALTER TABLE "rails_1" RENAME COLUMN "login" TO "log";

-- for: ALTER TABLE rails_1 DROP COLUMN
ALTER TABLE "rails_1" DROP COLUMN "log";

-- for: CREATE TABLE schema_migrations (version character
CREATE TABLE "schema_migrations" ("version" character varying NOT NULL PRIMARY KEY);

-- for: CREATE TABLE ar_internal_metadata (key character
CREATE TABLE "ar_internal_metadata" ("key" character varying NOT NULL PRIMARY KEY, "value" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL);

-- for: ALTER INDEX index_users_on_n RENAME TO
ALTER INDEX "index_users_on_n" RENAME TO "index_n";

-- for: DROP INDEX index_n
DROP INDEX "index_n";

-- for: SELECT t.oid, t.typname, t.typelem, t.typdelim,
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'text', 'varchar', 'char', 'name', 'bpchar', 'bool', 'bit', 'varbit', 'date', 'money', 'bytea', 'point', 'hstore', 'json', 'jsonb', 'cidr', 'inet', 'uuid', 'xml', 'tsvector', 'macaddr', 'citext', 'ltree', 'line', 'lseg', 'box', 'path', 'polygon', 'circle', 'numeric', 'interval', 'time', 'timestamp', 'timestamptz', 'timestamp');

-- for: SELECT t.oid, t.typname, t.typelem, t.typdelim, (2)
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typtype IN ('r', 'e', 'd');

-- for: SELECT t.oid, t.typname, t.typelem, t.typdelim, (3)
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typelem IN (16, 17, 18, 19, 20, 21, 23, 25, 26, 114);

-- for: SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin,
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated as attgenerated FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation WHERE a.attrelid = '"rails_1"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
-- holds: numeric(10,2)
-- holds: email|text

-- for: SELECT a.attname FROM ( SELECT
SELECT a.attname FROM ( SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index WHERE indrelid = '"rails_1"'::regclass AND indisprimary ) i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] ORDER BY i.idx;
-- wanted: id

-- for: SELECT distinct i.relname, d.indisunique, d.indkey,
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid, ARRAY( SELECT pg_get_indexdef(d.indexrelid, k + 1, true) FROM generate_subscripts(d.indkey, 1) AS k ORDER BY k ) AS columns FROM pg_class t INNER JOIN pg_index d ON t.oid = d.indrelid INNER JOIN pg_class i ON d.indexrelid = i.oid LEFT JOIN pg_namespace n ON n.oid = t.relnamespace WHERE i.relkind IN ('i', 'I') AND d.indisprimary = 'f' AND t.relname = 'rails_1' AND n.nspname = ANY (current_schemas(false)) ORDER BY i.relname;
-- holds: index_users_on_email

-- for: SELECT conname, pg_get_constraintdef(c.oid, true) AS
SELECT conname, pg_get_constraintdef(c.oid, true) AS constraintdef, c.convalidated AS valid FROM pg_constraint c JOIN pg_class t ON c.conrelid = t.oid JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.contype = 'c' AND t.relname = 'rails_1' AND n.nspname = ANY (current_schemas(false));

-- for: SELECT t2.oid::regclass::text AS to_table, a1.attname
SELECT t2.oid::regclass::text AS to_table, a1.attname AS column, a2.attname AS primary_key, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid, c.condeferrable AS deferrable, c.condeferred AS deferred, c.conkey, c.confkey, c.conrelid, c.confrelid FROM pg_constraint c JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid JOIN pg_namespace t3 ON c.connamespace = t3.oid WHERE c.contype = 'f' AND t1.relname = 'rails_2' AND t3.nspname = ANY (current_schemas(false)) ORDER BY c.conname;
-- column: to_table = rails_1

-- for: SELECT c.relname FROM pg_class c
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','v','m','p','f') ORDER BY 1;

-- for: SELECT pg_get_serial_sequence('rails_1', 'id')
SELECT pg_get_serial_sequence('"rails_1"', 'id');
-- wanted: public.rails_1_id_seq

-- for: SELECT type.typname AS name, type.OID
SELECT type.typname AS name, type.OID AS oid, n.nspname AS schema, array_agg(enum.enumlabel ORDER BY enum.enumsortorder) AS value FROM pg_enum AS enum JOIN pg_type AS type ON (type.oid = enum.enumtypid) JOIN pg_namespace n ON type.typnamespace = n.oid WHERE n.nspname = ANY (current_schemas(false)) GROUP BY type.OID, n.nspname, type.typname;
-- holds: rails_mood

-- for: SELECT extname FROM pg_extension
SELECT extname FROM pg_extension;

-- for: SELECT attr.attname, nsp.nspname, seq.relname FROM
SELECT attr.attname, nsp.nspname, seq.relname FROM pg_class seq, pg_attribute attr, pg_depend dep, pg_constraint cons, pg_namespace nsp WHERE seq.oid = dep.objid AND seq.relkind = 'S' AND attr.attrelid = dep.refobjid AND attr.attnum = dep.refobjsubid AND attr.attrelid = cons.conrelid AND attr.attnum = cons.conkey[1] AND seq.relnamespace = nsp.oid AND cons.contype = 'p' AND dep.classid = 'pg_class'::regclass AND dep.refobjid = '"rails_1"'::regclass;
-- wanted: id|public|rails_1_id_seq

-- for: drop table rails_2, rails_1, schema_migrations,
drop table rails_2, rails_1, schema_migrations, ar_internal_metadata;

-- for: drop type rails_mood
drop type rails_mood;

-- for: migrations that run alone
SELECT pg_try_advisory_lock(2053462845);
-- wanted: true

-- for: who holds that lock
SELECT mode, granted, classid, objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
-- wanted: ExclusiveLock|true|0|2053462845

-- for: the end of migrations
SELECT pg_advisory_unlock(2053462845);
-- wanted: true
