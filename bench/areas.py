"""Which statements of PostgreSQL's regression scripts are of the areas that Atoll's SQL is for.

The scripts mix areas: `update` tests partitions and triggers, `rangefuncs` functions that it writes, `create_index` points and
boxes. `mark` says of each statement whether it is outside: it is when it writes something of an area left out, when it names
what such a statement made (a partitioned table, a function in C), and when it stands in a transaction that such a statement has
aborted. All other statements count, whatever they need.
"""

import re

# The scripts about what Atoll's SQL is for: queries, changes, definitions, types, functions, transactions. What is about
# server programming, roles, partitions, inheritance, text search, geometry, XML, network addresses, replication, or the
# inside of PostgreSQL is left out.
SCRIPTS = """
boolean char name varchar text int2 int4 int8 float4 float8 bit numeric uuid enum strings numerology date time timetz
timestamp timestamptz interval horology regex comments expressions unicode copy copyselect copydml insert insert_conflict
create_misc create_table create_type create_schema create_index create_view constraints select drop_if_exists errors
select_into select_distinct select_distinct_on select_implicit select_having subselect union case join aggregates
transactions random arrays update delete namespace matview tablesample groupingsets identity generated join_hash
create_table_like misc merge misc_functions tsrf incremental_sort select_views foreign_key window functional_deps equivclass
json jsonb limit copy2 temp domain rangefuncs prepare truncate alter_table sequence rowtypes returning with fast_default
""".split()

# What is made, changed, dropped and commented on by those who program a server.
PROGRAMS = (r"function|procedure|routine|(or replace )?(constraint )?trigger|(or replace )?rule|aggregate|operator( class| family)?|cast|"
            r"(trusted )?(procedural )?language|event trigger|conversion|collation|access method|statistics|extension|foreign|server|"
            r"publication|subscription|transform|text search \w+|policy|tablespace|database")
# What is left out, by how it is written. A type of geometry counts where it stands as a type, as columns are called `path`, too.
SHAPES = "point|box|lseg|path|polygon|circle"
OUTSIDE = [(reason, re.compile(pattern, re.I)) for reason, pattern in (
    ("server programming", rf"^\s*(create (or replace )?|alter |drop |comment on )({PROGRAMS})\b|^\s*(do|call|notify|listen)\b|"
                           r"\b(enable|disable) (always |replica )?(trigger|rule)\b|^\s*(alter|drop) .*\bdepends on extension\b"),
    ("partitions", r"^\s*create .*\bpartition (by|of)\b|\b(attach|detach) partition\b|\btableoid\b"),
    ("inheritance", r"^\s*create .*\binherits\b|^\s*alter .*\binherit\b|\bno inherit\b"),
    ("geometry", rf"\b({SHAPES})\s*'|::\s*({SHAPES})\b|\bas ({SHAPES})\s*\)|^\s*(create|alter) .*\b\w+ ({SHAPES})\s*[,)\[]|"
                 rf"\b({SHAPES})\(|<->|\busing (gist|spgist|gin|brin|hash)\b"),
    ("types of networks, XML, text search, money, bits", r"\b(inet|cidr|macaddr8?|xml|tsvector|tsquery|money|pg_lsn|varbit)\b|\bbit( varying)?\s*\(|"
                                                         r"\bb'[01]|\bx'[0-9a-f]|\b(to_tsvector|to_tsquery|ts_\w+|json_to_tsvector|jsonb_to_tsvector|xml\w+)\b"),
    ("range types", r"\b(int4|int8|num|ts|tstz|date)(multi)?range\b|\bas range\b"),
)]

MADE = re.compile(
    r"^\s*create (?:or replace )?(?:(?:global|local) )?(?:temp |temporary |unlogged )?(?:recursive )?(?:constraint )?"
    r"(?:table|view|materialized view|function|procedure|aggregate|type|domain|trigger|rule|operator)\s+(?:if not exists )?\"?([\w.]+)", re.I)


def code(sql):
    """A statement without its comments and its texts."""
    sql = re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql, flags=re.S)
    sql = re.sub(r"(\$\w*\$).*?\1", "''", sql, flags=re.S)
    sql = re.sub(r"'(?:[^']|'')*'", lambda text: text.group() if len(text.group()) < 40 and re.search(r"[bBxX]$", sql[:text.start()]) else "''", sql)
    return re.sub(r"\s+", " ", sql)


def written(sql):
    """The area left out that a statement is written in, if any."""
    return next((reason for reason, pattern in OUTSIDE if pattern.search(sql)), None)


def mark(told):
    """Says of the statements of one script, in their order, why each is outside of the areas: sets its `outside` to that or None."""
    made, aborted = {}, None
    for one in told:
        sql = code(one["sql"])
        reason = written(sql)
        name = MADE.search(sql)
        name = name and name.group(1).lower().split(".")[-1]
        if reason is None:
            names = sorted(set(re.findall(r"\w+", sql.lower())) - {name})
            reason = next((f"needs {made[other]}" for other in names if other in made), None)
        if reason is None and one["state"] == "25P02":
            reason = aborted
        elif one["state"] not in ("00000", "?"):
            aborted = reason and (reason if reason.startswith("after ") else f"after {reason}")
        if name and reason is None:
            made.pop(name, None)
        elif name:
            made[name] = reason.removeprefix("after ").removeprefix("needs ")
        one["outside"] = reason
    return told


def self_test():
    """Run by `bench/regress --self-test`."""
    def reasons(*statements):
        return [one["outside"] for one in mark([{"sql": sql, "state": state} for sql, state in statements])]
    assert reasons(("create table p (a int) partition by list (a)", "0A000"), ("select * from P", "42P01"), ("create table p (a int)", "00000"),
                   ("select sum(a) over (partition by a) from p", "00000")) == ["partitions", "needs partitions", None, None]
    assert reasons(("create function f() returns int as $$ select 1 $$ language sql", "0A000"), ("select 'f', 1 -- f", "00000"), ("select f()", "42883"),
                   ("select 1", "25P02"), ("select nothing", "42703"), ("select 1", "25P02")) == [
        "server programming", None, "needs server programming", "after needs server programming", None, None]
    assert reasons(("select '(1,2)'::point", "X"), ("create table b (c box, d int)", "X"), ("select b'01'", "X"), ("select 'point'", "00000"),
                   ("with g(id, path) as (select 1, array[1]) select path from g order by path", "00000")) == [
        "geometry", "geometry", "types of networks, XML, text search, money, bits", None, None]
