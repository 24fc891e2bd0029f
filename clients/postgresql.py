"""Programs of PostgreSQL: psql's commands that describe, pg_dump, pgbench, vacuumdb; and those that stand on it: pgcli, Django, dbt."""
import json, os, pwd, shutil, subprocess, sys, tempfile

from clients.server import Server, find, same

HERE = os.path.dirname(os.path.abspath(__file__))

FIXTURE = """
drop schema if exists described cascade; create schema described; set search_path = described;
create table reef (id serial primary key, name varchar(40) not null default 'x', born date, note text, area numeric(9,2) check (area > 0));
create table fish (no int, reef int references reef(id) on delete cascade, tags text[], seen timestamp default now(), primary key (no, reef), constraint fish_u unique (no));
create view big as select id, name from reef where id > 5;
create index fish_i on fish (seen desc nulls last);
create index fish_some on fish (no) where no > 0 and reef is not null;
create type pair as (a integer, b text);
create type mood as enum ('sad', 'ok');
create domain pos as int check (value > 0);
create table en (m mood, p pos, g int generated always as identity, h int generated always as (1) stored);
create sequence sq start 5;
create materialized view mv as select count(*) as c from reef;
comment on table reef is 'reefs'; comment on column reef.name is $$its name$$;
comment on constraint fish_u on fish is 'each once'; comment on index fish_i is 'by time';
create table moods (m mood not null default 'ok', at timestamptz default current_timestamp, pairs pair);
insert into reef (name, born) values ('one', '2024-01-01'), ('it''s', null);
insert into fish values (1, 1, '{a,b}', '2024-01-01');
insert into en (m, p) values ('ok', 3), (null, null);
select nextval('sq');
"""


def options(port):
    return ["-h", "127.0.0.1", "-p", str(port), "-U", "ann"]


def done(words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=600, **more)


def passes(words, **more):
    told = done(words, **more)
    assert told.returncode == 0, f"{words}: {told.stderr}{told.stdout}"
    return told.stdout


def sql(port, text, name="atoll"):
    return passes([find("psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", *options(port), "-d", name], input=text)


def describe(port, *_):
    """Every command of psql's manual that describes something."""
    program = find("psql")
    if not program:
        return "psql is not installed"
    sql(port, FIXTURE)
    failed = []
    for command in open(os.path.join(HERE, "psql_commands.txt")).read().splitlines():
        told = done([program, "-X", *options(port), "-d", "atoll", "-c", "set search_path = described", "-c", command])
        if "ERROR" in told.stderr + told.stdout:
            failed.append(f"{command}: {told.stderr}")
    assert not failed, "\n".join(failed)
    told = passes([program, "-X", *options(port), "-d", "atoll", "-c", "set search_path = described", "-c", "\\d+ fish", "-c", "\\d reef", "-c", "\\df lower", "-c", "\\sv big", "-c", "\\d fish_some", "-c", "\\di fish_*", "-c", "\\dd", "-c", "\\dT+ pair", "-c", "\\d moods", "-c", "\\d+ big"])
    shown = [
        'btree, for table "described.fish", predicate (no > 0 AND reef IS NOT NULL)',
        '"fish_some" btree (no) WHERE no > 0 AND reef IS NOT NULL',
        "fish_some | index",
        "table constraint | each once",
        "tuple",
        "'ok'::mood",
        "CURRENT_TIMESTAMP",
        "FROM reef",
    ]
    for text in [*shown, '"fish_pkey" PRIMARY KEY', 'FOREIGN KEY (reef) REFERENCES reef(id) ON DELETE CASCADE', 'TABLE "fish" CONSTRAINT "fish_reef_fkey"', "character varying(40)", "lower", "id > 5"]:
        assert text in told, f"{text}\n{told}"
    sql(port, "drop schema described cascade")


def dump(port, atoll, folder):
    """pg_dump, psql restoring into another store, pg_dump of that: the same text; and through PostgreSQL, where one can be started."""
    program = find("pg_dump")
    if not program:
        return "pg_dump is not installed"

    def dumped(words):
        lines = passes([program, "--no-owner", "--no-privileges", *words]).splitlines()
        # Newer ones write a key of their own.
        return [line for line in lines if not line.startswith(("--", "\\restrict", "\\unrestrict")) and line]

    first = Server(atoll, os.path.join(folder, "dumped.atoll"))
    sql(first.port, FIXTURE.replace("described", "kept"))
    own = dumped([*options(first.port), "atoll"])
    assert "\ta integer," in own and "COMMENT ON CONSTRAINT fish_u ON kept.fish IS 'each once';" in own, "\n".join(own)
    second = Server(atoll, os.path.join(folder, "restored.atoll"))
    sql(second.port, "\n".join(own))
    again = dumped([*options(second.port), "atoll"])
    same(again, own, "the dump of what was restored")
    rows = "select (select count(*) from kept.reef), (select tags from kept.fish), (select max(g) from kept.en), nextval('kept.sq')"
    same(sql(second.port, rows), "2|{a,b}|2|6\n", "rows")
    with tempfile.TemporaryDirectory() as place:
        if started := postgresql(place):
            passes([find("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", place, "-U", "ann", "-d", "postgres"], input="\n".join(own))
            there = dumped(["-h", place, "-U", "ann", "postgres"])
            third = Server(atoll, os.path.join(folder, "back.atoll"))
            sql(third.port, "\n".join(there))
            same(sql(third.port, rows), "2|{a,b}|2|6\n", "rows that came back")
            third.end()
            started.terminate()
            started.wait(30)
        else:
            print("     PostgreSQL cannot be started here: its part is not run")
    for server in [first, second]:
        same(server.end(), 0, "the end after SIGTERM")


def postgresql(place):
    """A server of PostgreSQL of its own, whose user is ann; none where there is no such program."""
    program, make = find("postgres"), find("initdb")
    if not (program and make):
        return None
    who = {}
    if os.geteuid() == 0:
        # It refuses to be run by root.
        nobody = pwd.getpwnam("nobody")
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "cwd": place}
        os.chown(place, nobody.pw_uid, nobody.pw_gid)
    data = os.path.join(place, "data")
    passes([make, "-D", data, "-U", "ann", "-A", "trust", "-E", "UTF8", "--locale=C"], **who)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([program, "-D", data, "-k", place, "-c", "listen_addresses="], **quiet, **who)
    for _ in range(100):
        if done([find("psql"), "-h", place, "-U", "ann", "-d", "postgres", "-c", "select 1"]).returncode == 0:
            return server
        server.poll()
        subprocess.run(["sleep", "0.1"])
    server.kill()
    return None


def bench(port, *_):
    """pgbench with the tables that it makes, and vacuumdb."""
    program = find("pgbench")
    if not program:
        return "pgbench is not installed"
    passes([program, "-i", "-s", "1", *options(port), "atoll"])
    passes([program, "-i", "-s", "1", "-I", "dtGvpf", *options(port), "atoll"])
    for mode in ["tpcb-like", "simple-update", "select-only"]:
        told = passes([program, "-n", "-b", mode, "-c", "1", "-t", "20", *options(port), "atoll"])
        assert "transactions actually processed: 20/20" in told, told
    same(sql(port, "select count(*), sum(abalance) = (select sum(delta) from pgbench_history) from pgbench_accounts"), "100000|t\n", "balances")
    vacuum = find("vacuumdb")
    if vacuum:
        passes([vacuum, *options(port), "atoll"])
        passes([vacuum, "-z", "-t", "pgbench_accounts", *options(port), "atoll"])
        passes([vacuum, "--analyze-in-stages", *options(port), "atoll"])
    sql(port, "drop table pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history cascade")


def pgcli(port, *_):
    """What pgcli asks for its completion, and some of its commands."""
    from pgcli.pgexecute import PGExecute
    from pgspecial.main import PGSpecial

    sql(port, FIXTURE)
    shell = PGExecute("atoll", "ann", "none", "127.0.0.1", str(port), "")
    special = PGSpecial()
    list(shell.run("set search_path = described"))
    same("described" in shell.schemata(), True, "schemata")
    same({"reef", "fish"} <= {name for schema, name in shell.tables() if schema == "described"}, True, "tables")
    same(("described", "big") in list(shell.views()), True, "views")
    same([own[2] for own in shell.table_columns() if tuple(own[:2]) == ("described", "reef")], ["id", "name", "born", "note", "area"], "columns")
    same([own[2] for own in shell.view_columns() if tuple(own[:2]) == ("described", "big")], ["id", "name"], "columns of views")
    same([(key.childtable, key.parenttable) for key in shell.foreignkeys() if key.childschema == "described"], [("fish", "reef")], "foreign keys")
    same({"mood", "pos"} <= {name for schema, name in shell.datatypes() if schema == "described"}, True, "types")
    same(any(function.func_name == "lower" for function in shell.functions()), True, "functions")
    same("atoll" in shell.databases(), True, "databases")
    shell.search_path(), list(shell.casing())
    for command in ["\\d", "\\dt", "\\d reef", "\\d fish", "\\dn", "\\du", "\\df lower", "\\dT", "\\l", "\\di", "\\dv", "\\ds", "select 1"]:
        for title, rows, headers, status, *_ in shell.run(command, pgspecial=special, on_error_resume=False):
            list(rows or [])
    sql(port, "drop schema described cascade")


def django(port, *_):
    told = done([sys.executable, os.path.join(HERE, "django", "orm.py"), str(port)])
    assert told.returncode == 0, told.stderr + told.stdout


def dbt(port, _, folder):
    """All kinds of models, seeds, snapshots, tests and documents; twice, and anew."""
    program = os.path.join(os.path.dirname(sys.executable), "dbt")
    place = os.path.join(folder, "dbt")
    shutil.copytree(os.path.join(HERE, "dbt"), place, dirs_exist_ok=True)
    words = ["--project-dir", place, "--profiles-dir", place, "--target-path", os.path.join(place, "target")]
    environment = {**os.environ, "ATOLL_PORT": str(port), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    for command in [["build"], ["build"], ["build", "--full-refresh"], ["docs", "generate"]]:
        passes([program, "--no-use-colors", *command, *words], env=environment)
    same(sql(port, "select reef, fish from dbt_reefs.by_reef order by reef; select count(*) from dbt_reefs.fish_snapshot"), "1|2\n2|1\n3\n", "rows")
    nodes = json.load(open(os.path.join(place, "target", "catalog.json")))["nodes"]
    same([column["name"] for column in nodes["model.reefs.by_reef"]["columns"].values()], ["reef", "fish", "weight"], "the catalog")
    same(nodes["model.reefs.stg_fish"]["metadata"]["comment"], "the fish", "comments")
    sql(port, "drop schema dbt_reefs cascade")


TESTS = {"describe": describe, "dump": dump, "bench": bench, "pgcli": pgcli, "django": django, "dbt": dbt}
NEEDS = {"pgcli": ["pgcli"], "django": ["django", "psycopg"], "dbt": ["dbt"]}
PACKAGES = {"pgcli": "pgcli", "django": "Django", "dbt": "dbt-postgres"}
