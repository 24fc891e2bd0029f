"""The eight TPC-H tables: columns, primary keys, foreign keys. Parents come before children."""

TABLES = {
    "region": (
        "r_regionkey bigint, r_name varchar, r_comment varchar",
        "r_regionkey", {}),
    "nation": (
        "n_nationkey bigint, n_name varchar, n_regionkey bigint, n_comment varchar",
        "n_nationkey", {"n_regionkey": "region (r_regionkey)"}),
    "supplier": (
        "s_suppkey bigint, s_name varchar, s_address varchar, s_nationkey bigint, s_phone varchar, "
        "s_acctbal decimal(15, 2), s_comment varchar",
        "s_suppkey", {"s_nationkey": "nation (n_nationkey)"}),
    "part": (
        "p_partkey bigint, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size integer, "
        "p_container varchar, p_retailprice decimal(15, 2), p_comment varchar",
        "p_partkey", {}),
    "partsupp": (
        "ps_partkey bigint, ps_suppkey bigint, ps_availqty integer, ps_supplycost decimal(15, 2), ps_comment varchar",
        "ps_partkey, ps_suppkey", {"ps_partkey": "part (p_partkey)", "ps_suppkey": "supplier (s_suppkey)"}),
    "customer": (
        "c_custkey bigint, c_name varchar, c_address varchar, c_nationkey bigint, c_phone varchar, "
        "c_acctbal decimal(15, 2), c_mktsegment varchar, c_comment varchar",
        "c_custkey", {"c_nationkey": "nation (n_nationkey)"}),
    "orders": (
        "o_orderkey bigint, o_custkey bigint, o_orderstatus varchar, o_totalprice decimal(15, 2), o_orderdate date, "
        "o_orderpriority varchar, o_clerk varchar, o_shippriority integer, o_comment varchar",
        "o_orderkey", {"o_custkey": "customer (c_custkey)"}),
    "lineitem": (
        "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer, l_quantity decimal(15, 2), "
        "l_extendedprice decimal(15, 2), l_discount decimal(15, 2), l_tax decimal(15, 2), l_returnflag varchar, "
        "l_linestatus varchar, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar, "
        "l_shipmode varchar, l_comment varchar",
        "l_orderkey, l_linenumber",
        {"l_orderkey": "orders (o_orderkey)", "l_partkey": "part (p_partkey)", "l_suppkey": "supplier (s_suppkey)",
         "l_partkey, l_suppkey": "partsupp (ps_partkey, ps_suppkey)"}),
}


def columns(table: str) -> str:
    """The columns, none of them nullable."""
    # The comma inside decimal(15, 2) does not end a column.
    return ", ".join(f"{column} not null" for column in TABLES[table][0].replace("(15, ", "(15,").split(", "))


def create(table: str, keys: bool) -> str:
    """CREATE TABLE, with or without the keys declared."""
    _, primary, foreign = TABLES[table]
    parts = [columns(table)]
    if keys:
        parts.append(f"primary key ({primary})")
        parts += [f"foreign key ({own}) references {parent}" for own, parent in foreign.items()]
    return f"create table {table} ({', '.join(parts)})"
