"""Data frames by the PostgreSQL protocol: ibis, polars, pandas, and DuckDB's extension; and what SQLAlchemy reads of the catalog, as Superset does."""
import datetime, decimal

from clients.server import same

D = decimal.Decimal
UTC = datetime.timezone.utc
DAY = datetime.date(2026, 11, 25)
MOMENT = datetime.datetime(2026, 11, 25, 1, 2, 3, 500000)


def uri(port, driver="postgresql"):
    return f"{driver}://ann@127.0.0.1:{port}/atoll"


def fill(port):
    """A table of 1000 rows with a column of each type, of which every seventh row has NULLs alone."""
    import psycopg

    with psycopg.connect(host="127.0.0.1", port=port, user="ann", dbname="atoll", autocommit=True) as db:
        db.execute("drop table if exists frame")
        db.execute("create table frame (n int primary key, l bigint, d double precision, p numeric(10,2), t varchar, y date, m timestamp, z timestamptz, b boolean, a int[], j jsonb)")
        db.execute("insert into frame select x, x * 10000000000, x / 4.0, x / 4.0, 'row ' || x, date '2026-11-25', timestamp '2026-11-25 01:02:03.5', "
                   "timestamptz '2026-11-25 01:02:03.5+00', x % 2 = 0, array[x, null], '{\"k\": [1]}' from generate_series(1, 1000) s(x) where x % 7 > 0")
        db.execute("insert into frame (n) select x from generate_series(1, 1000) s(x) where x % 7 = 0")


def ibis(port, *_):
    import ibis

    fill(port)
    db = ibis.postgres.connect(host="127.0.0.1", port=port, user="ann", database="atoll")
    same("frame" in db.list_tables(), True, "list_tables")
    frame = db.table("frame")
    kinds = {name: str(kind) for name, kind in frame.schema().items()}
    wanted = {"n": "!int32", "l": "int64", "d": "float64", "p": "decimal(10, 2)", "t": "string", "y": "date", "m": "timestamp(6)", "z": "timestamp('UTC', 6)", "b": "boolean",
              "a": "array<int32>", "j": "jsonb"}
    same({name: kinds[name] for name in wanted}, wanted, "schema")
    found = frame.filter(frame.n <= 8).order_by("n").execute().to_dict("records")
    same([row["n"] for row in found], list(range(1, 9)), "rows")
    same((found[0]["l"], found[0]["p"], found[0]["t"], str(found[0]["y"])[:10], found[0]["m"].to_pydatetime(), found[0]["b"]), (10000000000, D("0.25"), "row 1", str(DAY), MOMENT, False), "values")
    same(found[6]["t"] is None or found[6]["t"] != found[6]["t"], True, "NULL")
    by = frame.group_by(frame.b).aggregate(total=frame.p.sum(), rows=frame.count(), mean=frame.d.mean()).order_by(frame.b.asc(nulls_first=True))
    same([(row["b"], row["rows"]) for row in by.execute().to_dict("records")], [(None, 142), (False, 429), (True, 429)], "group_by")
    joined = frame.join(frame.view(), [("n", "n")]).count().execute()
    same(int(joined), 1000, "join")
    window = frame.mutate(rank=ibis.row_number().over(order_by=frame.n.desc())).filter(lambda t: t["rank"] < 3).select("n", "rank").order_by("rank")
    same(window.execute().values.tolist(), [[1000, 0], [999, 1], [998, 2]], "window")
    texts = frame.filter(frame.t.contains("99") & frame.y.year().isin([2026])).select(u=frame.t.upper(), w=frame.y.truncate("W")).order_by("u").limit(1).execute()
    same((texts.u[0], str(texts.w[0])[:10]), ("ROW 199", "2026-11-23"), "functions")
    whole = frame.order_by("n").select("n", "t").to_pyarrow()
    same((whole.num_rows, whole.column("n").to_pylist()[:3]), (1000, [1, 2, 3]), "to_pyarrow")
    batches = list(frame.select("n").to_pyarrow_batches(chunk_size=300))
    same(sum(batch.num_rows for batch in batches), 1000, "to_pyarrow_batches")
    # `db.sql` needs `create temporary view`, which there is not yet either.
    with db.raw_sql("select count(*) as c from frame") as cursor:
        same(cursor.fetchall(), [(1000,)], "raw_sql")
    with db.raw_sql("drop table if exists ibis_made; drop table if exists ibis_frame"):
        pass
    db.create_table("ibis_made", frame.select("n", "t"))
    same(int(db.table("ibis_made").count().execute()), 1000, "create_table")
    import pandas

    db.create_table("ibis_frame", pandas.DataFrame({"a": [1, 2], "b": ["x", None]}))
    made = db.table("ibis_frame").order_by("a").execute()
    same((made.a.tolist(), made.b[0], bool(made.b.isna()[1])), ([1, 2], "x", True), "a frame")
    db.insert("ibis_frame", pandas.DataFrame({"a": [3], "b": ["z"]}))
    same(int(db.table("ibis_frame").count().execute()), 3, "insert")
    db.disconnect()


def polars(port, *_):
    import polars
    import sqlalchemy

    fill(port)
    query = "select n, l, d, p, t, y, m, b from frame order by n"
    engine = sqlalchemy.create_engine(uri(port, "postgresql+psycopg"))
    with engine.connect() as db:
        frames = {"read_database": polars.read_database(query, db)}
        some = polars.read_database("select n, t from frame where n < :most order by n", db, execute_options={"parameters": {"most": 4}})
        same(some.rows(), [(1, "row 1"), (2, "row 2"), (3, "row 3")], "parameters")
        pieces = [piece.height for piece in polars.read_database(query, db, iter_batches=True, batch_size=300)]
        same(pieces, [300, 300, 300, 100], "iter_batches")
    frames["connectorx"] = polars.read_database_uri(query, uri(port), engine="connectorx")
    parts = polars.read_database_uri(query.replace(" order by n", ""), uri(port), engine="connectorx", partition_on="n", partition_num=4)
    frames["connectorx in parts"] = parts.sort("n")
    try:
        import adbc_driver_postgresql  # noqa: F401

        frames["adbc"] = polars.read_database_uri(query, uri(port), engine="adbc")
    except ImportError:
        print("     NOT RUN  polars by adbc-driver-postgresql, which cannot be installed")
    for name, frame in frames.items():
        same(frame.shape, (1000, 8), name)
        first = frame.row(0, named=True)
        same((first["n"], first["l"], first["d"], float(first["p"]), first["t"], first["y"], first["m"], first["b"]), (1, 10000000000, 0.25, 0.25, "row 1", DAY, MOMENT, False), name)
        same(frame.row(6)[1:], (None,) * 7, f"{name}: NULLs")
        # Decimals of adbc-driver-postgresql are texts, of a type that Polars does not add up.
        prices = sum(float(price) for price in frame["p"].to_list() if price is not None)
        same((frame["l"].sum(), round(prices, 2)), (429429 * 10**10, 107357.25), f"{name}: sums")
    with engine.begin() as db:
        made = polars.DataFrame({"a": [1, 2, None], "b": ["x", "é'", None], "c": [DAY, None, DAY], "d": [0.5, None, 1.5]})
        db.execute(sqlalchemy.text("drop table if exists polars_made"))
    made.write_database("polars_made", uri(port, "postgresql+psycopg"), engine="sqlalchemy")
    with engine.connect() as db:
        same(polars.read_database("select * from polars_made", db).rows(), made.rows(), "write_database")
    engine.dispose()


def pandas(port, *_):
    import pandas
    import sqlalchemy

    fill(port)
    for driver in ["psycopg", "psycopg2", "pg8000"]:
        try:
            engine = sqlalchemy.create_engine(uri(port, f"postgresql+{driver}"))
        except ImportError:
            print(f"     NOT RUN  pandas by {driver}, which cannot be installed")
            continue
        frame = pandas.read_sql("select n, l, d, p, t, y, m, z, b from frame order by n", engine)
        same((len(frame), frame.l.sum(), frame.t[0], frame.y[0], frame.m[0].to_pydatetime(), frame.z[0].to_pydatetime()), (1000, 429429 * 10**10, "row 1", DAY, MOMENT, MOMENT.replace(tzinfo=UTC)),
             f"read_sql by {driver}")
        same(int(frame.t.isna().sum()), 142, f"NULLs by {driver}")
        some = pandas.read_sql(sqlalchemy.text("select n from frame where t = :name"), engine, params={"name": "row 8"})
        same(some.n.tolist(), [8], f"parameters by {driver}")
        same(sum(len(piece) for piece in pandas.read_sql("select * from frame", engine, chunksize=128)), 1000, f"chunksize by {driver}")
        same(len(pandas.read_sql_table("frame", engine, columns=["n", "t"], index_col="n")), 1000, f"read_sql_table by {driver}")
        made = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "é'", None], "c": pandas.to_datetime(["2026-11-25"] * 3), "d": [0.5, None, 1.5], "e": [True, False, True]})
        for method in [None, "multi"]:
            made.to_sql("pandas_made", engine, index=False, if_exists="replace", method=method)
            made.to_sql("pandas_made", engine, index=False, if_exists="append", method=method)
            back = pandas.read_sql("select * from pandas_made order by a", engine)
            same((len(back), back.a.tolist(), back.b.tolist()[2:4], back.c[0], back.e.tolist()[:3]), (6, [1, 1, 2, 2, 3, 3], ["é'", "é'"], made.c[0], [True, True, False]), f"to_sql by {driver}, {method}")
        engine.dispose()


def inspector(port, *_):
    """What SQLAlchemy knows of tables: Superset, Airflow, dbt and Alembic ask so."""
    import sqlalchemy as sa

    for driver in ["psycopg", "psycopg2"]:
        try:
            engine = sa.create_engine(uri(port, f"postgresql+{driver}"))
        except ImportError:
            print(f"     NOT RUN  SQLAlchemy by {driver}, which cannot be installed")
            continue
        with engine.begin() as db:
            for text in ["drop schema if exists inspected cascade", "create schema inspected",
                         "create table inspected.reef (id bigint generated always as identity primary key, name varchar not null unique, area numeric(10,2) default 1.5 check (area > 0), "
                         "tags int[], about jsonb, at timestamptz)",
                         "create table inspected.fish (reef bigint references inspected.reef (id) on delete cascade, place int, name text, primary key (reef, place))",
                         "create index fish_by_name on inspected.fish (name)", "create view inspected.large as select id, name from inspected.reef where area > 100",
                         "comment on table inspected.reef is 'Where fish live'", "comment on column inspected.reef.area is 'in hectares'"]:
                db.execute(sa.text(text))
        look = sa.inspect(engine)
        same(set(look.get_schema_names()) >= {"inspected", "public"}, True, "schemas")
        same(sorted(look.get_table_names("inspected")), ["fish", "reef"], "tables")
        same(look.get_view_names("inspected"), ["large"], "views")
        same("area > (100)::numeric" in look.get_view_definition("large", "inspected"), True, "the text of a view")
        same(look.get_foreign_table_names("inspected"), [], "foreign tables")
        same((look.has_table("reef", "inspected"), look.has_table("nothing", "inspected")), (True, False), "has_table")
        columns = {column["name"]: column for column in look.get_columns("reef", "inspected")}
        kinds = {name: column["type"].compile(dialect=engine.dialect) for name, column in columns.items()}
        same(kinds, {"id": "BIGINT", "name": "TEXT", "area": "NUMERIC(10, 2)", "tags": "INTEGER[]", "about": "JSONB", "at": "TIMESTAMP WITH TIME ZONE"}, "types of columns")
        same((columns["id"]["nullable"], columns["id"]["identity"]["always"], columns["area"]["default"], columns["area"]["comment"]), (False, True, "1.5", "in hectares"), "columns")
        same(look.get_pk_constraint("fish", "inspected")["constrained_columns"], ["reef", "place"], "a primary key")
        keys = look.get_foreign_keys("fish", "inspected")
        same([(key["constrained_columns"], key["referred_schema"], key["referred_table"], key["referred_columns"], key["options"]) for key in keys],
             [(["reef"], "inspected", "reef", ["id"], {"ondelete": "CASCADE"})], "foreign keys")
        same([(index["name"], index["column_names"], index["unique"]) for index in look.get_indexes("fish", "inspected")], [("fish_by_name", ["name"], False)], "indexes")
        same([key["column_names"] for key in look.get_unique_constraints("reef", "inspected")], [["name"]], "unique constraints")
        same([check["sqltext"] for check in look.get_check_constraints("reef", "inspected")], ["area > 0::numeric"], "checks")
        same(look.get_table_comment("reef", "inspected")["text"], "Where fish live", "a comment")
        both = sa.MetaData()
        both.reflect(engine, schema="inspected")
        same(sorted(both.tables), ["inspected.fish", "inspected.reef"], "reflect")
        fish, reef = both.tables["inspected.fish"], both.tables["inspected.reef"]
        with engine.begin() as db:
            made = db.execute(reef.insert().returning(reef.c.id), {"name": "north"}).scalar()
            db.execute(fish.insert(), [{"reef": made, "place": 1, "name": "blenny"}, {"reef": made, "place": 2, "name": "crab"}])
            found = db.execute(sa.select(reef.c.name, sa.func.count()).join(fish).group_by(reef.c.name)).all()
            same([tuple(row) for row in found], [("north", 2)], "reflected tables")
        made = sa.Table("inspected_made", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(20), index=True), sa.Column("at", sa.DateTime(timezone=True)))
        made.metadata.drop_all(engine)
        made.metadata.create_all(engine)
        with engine.begin() as db:
            db.execute(made.insert(), [{"name": "a"}, {"name": "b"}])
            same(db.execute(sa.select(sa.func.max(made.c.id))).scalar(), 2, "a serial key")
        made.metadata.drop_all(engine)
        engine.dispose()


def duckdb(port, *_):
    """DuckDB with its extension for PostgreSQL, from a package: reading, inserting, and updates and deletes by `ctid`."""
    import importlib.metadata

    import duckdb

    db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    try:
        files = importlib.metadata.files("duckdb-extension-postgres-scanner") or []
        path = next(str(file.locate()) for file in files if str(file).endswith(".duckdb_extension"))
        db.execute(f"load '{path}'")
    except (importlib.metadata.PackageNotFoundError, StopIteration, duckdb.Error) as e:
        return f"DuckDB's extension postgres cannot be loaded: {e}"
    fill(port)
    db.execute(f"attach 'host=127.0.0.1 port={port} user=ann dbname=atoll' as atoll (type postgres)")
    same(db.execute("select count(*), sum(l), count(t) from atoll.frame").fetchone(), (1000, 429429 * 10**10, 858), "DuckDB")
    db.execute("create or replace table atoll.public.duck (a integer, b varchar, c double, d timestamp, e integer[])")
    db.execute("insert into atoll.public.duck values (1, 'x', 0.5, '2026-11-25', [1, 2]), (2, 'y', null, null, null), (3, 'z', 1, null, [])")
    rows = [(1, "x", 0.5, datetime.datetime(2026, 11, 25), [1, 2]), (2, "y", None, None, None), (3, "z", 1.0, None, [])]
    same(db.execute("select * from atoll.public.duck order by a").fetchall(), rows, "rows")
    same(db.execute("update atoll.public.duck set b = 'w', c = 2 where a >= 2").fetchone(), (2,), "update")
    same(db.execute("delete from atoll.public.duck where a = 3").fetchone(), (1,), "delete")
    same(db.execute("select a, b, c from atoll.public.duck order by a").fetchall(), [(1, "x", 0.5), (2, "w", 2.0)], "what is left")
    db.execute("drop table atoll.public.duck")
