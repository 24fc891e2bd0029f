-- What Grafana's PostgreSQL data source asks, in its settings, its query builder and its panels. Only the statements are recorded, from
-- grafana-postgresql-datasource (postgresMetaQuery.ts) and from what its macros become.

-- for: whether the server is there
SELECT 1;
-- wanted: 1

-- for: the version
SELECT current_setting('server_version_num')::int/100 as version;
-- wanted: 1500

-- for: TimescaleDB
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';
-- rows: 0

-- for: the list of schemas
SELECT schema_name AS "name"
    FROM information_schema.schemata
    WHERE schema_name NOT IN ('information_schema',
                              'pg_catalog',
                              'pg_toast',
                              '_timescaledb_cache',
                              '_timescaledb_catalog',
                              '_timescaledb_internal',
                              '_timescaledb_config',
                              'timescaledb_information',
                              'timescaledb_experimental')
    ORDER BY schema_name;
-- column: name = public
-- column: name = sea

-- for: the tables of a schema
SELECT quote_ident(table_name) AS "table"
      FROM information_schema.tables
      WHERE quote_ident(table_schema) = 'sea'
      ORDER BY 1;
-- column: table = fish
-- column: table = large

-- for: the list of tables
SELECT
    CASE WHEN 
          quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )
      THEN quote_ident(table_name)
      ELSE quote_ident(table_schema) || '.' || quote_ident(table_name)
    END AS "table"
    FROM information_schema.tables
    WHERE quote_ident(table_schema) NOT IN ('information_schema',
                             'pg_catalog',
                             '_timescaledb_cache',
                             '_timescaledb_catalog',
                             '_timescaledb_internal',
                             '_timescaledb_config',
                             'timescaledb_information',
                             'timescaledb_experimental')
    ORDER BY CASE WHEN 
          quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          ) THEN 0 ELSE 1 END, 1;
-- column: table = coast
-- column: table = sea.reef

-- for: the columns of a table of the search path
SELECT quote_ident(column_name) AS "column", data_type AS "type"
    FROM information_schema.columns
    WHERE
      CASE WHEN array_length(parse_ident('coast'),1) = 2
        THEN quote_ident(table_schema) = (parse_ident('coast'))[1]
          AND quote_ident(table_name) = (parse_ident('coast'))[2]
        ELSE quote_ident(table_name) = 'coast'
          AND 
          quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )
      END;
-- rows: 3
-- column: column = length
-- column: type = double precision

-- for: the columns of a table of another schema
SELECT quote_ident(column_name) AS "column", data_type AS "type"
    FROM information_schema.columns
    WHERE
      CASE WHEN array_length(parse_ident('sea.reef'),1) = 2
        THEN quote_ident(table_schema) = (parse_ident('sea.reef'))[1]
          AND quote_ident(table_name) = (parse_ident('sea.reef'))[2]
        ELSE quote_ident(table_name) = 'sea.reef'
          AND 
          quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )
      END;
-- rows: 5

-- for: a panel: $__timeGroup, $__timeFilter, $__time
SELECT floor(extract(epoch from at)/300)*300 AS "time", avg(length) AS "value", name AS metric FROM coast WHERE at BETWEEN '2026-11-25T00:00:00Z' AND '2026-11-26T00:00:00Z' GROUP BY 1, name ORDER BY 1;
-- rows: 0

-- for: a panel: $__timeGroup in newer versions, $__timeFrom
SELECT date_bin('300 seconds', at, TIMESTAMP '1970-01-01') AS "time", count(*) FROM coast WHERE at >= '2026-11-25T00:00:00Z' GROUP BY 1 ORDER BY 1;
-- rows: 0

-- for: a panel: $__unixEpochFilter
SELECT at AS "time", length FROM coast WHERE extract(epoch from at) >= 1764028800 AND extract(epoch from at) <= 1764115200 LIMIT 50;
-- rows: 0
