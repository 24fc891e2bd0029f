-- What Superset asks a PostgreSQL server, besides what SQLAlchemy reads (which the test of SQLAlchemy's inspector asks). Only the statements are
-- recorded, from superset/db_engine_specs/postgres.py and from what its charts become.

-- for: whether the server is there
SELECT 1;
-- wanted: 1

-- for: the list of databases
SELECT datname FROM pg_database
WHERE datistemplate = false;
-- wanted: atoll

-- for: the session, so that its statement can be stopped
SELECT pg_backend_pid();
-- rows: 1

-- for: stopping a statement of another session
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid='0';
-- rows: 0

-- for: the schema of a tab in SQL Lab
set search_path = "sea";

-- for: a table of that schema
SELECT * FROM reef LIMIT 101;
-- rows: 0

-- for: back
set search_path = "public";

-- for: the cost of a statement
EXPLAIN SELECT * FROM sea.reef;

-- for: a chart over time
SELECT DATE_TRUNC('day', at) AS __timestamp, AVG(length) AS "AVG(length)" FROM public.coast WHERE at >= TO_TIMESTAMP('2026-11-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND at < TO_TIMESTAMP('2026-11-26 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', at) ORDER BY "AVG(length)" DESC LIMIT 50000;
-- rows: 0

-- for: a filter over days
SELECT name AS name, sum(length) AS "SUM(length)" FROM public.coast WHERE at >= TO_DATE('2026-11-01', 'YYYY-MM-DD') GROUP BY name HAVING sum(length) > 0 ORDER BY "SUM(length)" DESC LIMIT 1000;
-- rows: 0

-- for: a column that counts seconds
SELECT (timestamp 'epoch' + 86400 * interval '1 second') AS a;
-- wanted: 1970-01-02 00:00:00
