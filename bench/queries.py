"""The 22 TPC-H queries and their parameters, as the specification's substitution rules draw them.

One text goes to every engine. Dates that the specification writes as date plus interval are computed here, because
not every engine folds (or parses) intervals. An engine that needs another text for a query has it in DIALECTS.
"""

import datetime
import random

COLORS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse 
chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest 
frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light 
lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale 
papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky 
slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow 
""".split()
TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
REGIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
NATIONS = sorted(nation for nations in REGIONS.values() for nation in nations)


def months(year: int, month: int, plus: int = 0) -> str:
    """The first day of a month, `plus` months later."""
    count = year * 12 + month - 1 + plus
    return f"{count // 12:04}-{count % 12 + 1:02}-01"


def span(year: int, month: int, length: int) -> dict:
    return {"date": months(year, month), "end": months(year, month, length)}


def random_month(pick, first: tuple, last: tuple) -> tuple:
    count = pick.randint(first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return count // 12, count % 12 + 1


def brand(pick) -> str:
    return f"Brand#{pick.randint(1, 5)}{pick.randint(1, 5)}"


def words(pick, *lists) -> str:
    return " ".join(pick.choice(words_) for words_ in lists)


def ship_before(days: int) -> dict:
    return {"date": str(datetime.date(1998, 12, 1) - datetime.timedelta(days))}


def market(pick) -> dict:
    region = pick.choice(sorted(REGIONS))
    return {"region": region, "nation": pick.choice(REGIONS[region]), "type": words(pick, *TYPES)}


def pair(names, values) -> dict:
    return dict(zip(names, values))


# query -> a function of (a random generator, the scale)
DRAW = {
    1: lambda r, s: ship_before(r.randint(60, 120)),
    2: lambda r, s: {"size": r.randint(1, 50), "metal": r.choice(TYPES[2]), "region": r.choice(sorted(REGIONS))},
    3: lambda r, s: {"segment": r.choice(SEGMENTS), "date": f"1995-03-{r.randint(1, 31):02}"},
    4: lambda r, s: span(*random_month(r, (1993, 1), (1997, 10)), 3),
    5: lambda r, s: {"region": r.choice(sorted(REGIONS)), **span(r.randint(1993, 1997), 1, 12)},
    6: lambda r, s: {**span(r.randint(1993, 1997), 1, 12), **around(r.randint(2, 9)), "quantity": r.randint(24, 25)},
    7: lambda r, s: pair(("nation1", "nation2"), r.sample(NATIONS, 2)),
    8: lambda r, s: market(r),
    9: lambda r, s: {"color": r.choice(COLORS)},
    10: lambda r, s: span(*random_month(r, (1993, 2), (1995, 1)), 3),
    11: lambda r, s: {"nation": r.choice(NATIONS), "fraction": f"{0.0001 / float(s):.10f}"},
    12: lambda r, s: {**pair(("mode1", "mode2"), r.sample(MODES, 2)), **span(r.randint(1993, 1997), 1, 12)},
    13: lambda r, s: {"word1": r.choice(("special", "pending", "unusual", "express")),
                      "word2": r.choice(("packages", "requests", "accounts", "deposits"))},
    14: lambda r, s: span(*random_month(r, (1993, 1), (1997, 12)), 1),
    15: lambda r, s: span(*random_month(r, (1993, 1), (1997, 10)), 3),
    16: lambda r, s: {"brand": brand(r), "type": words(r, *TYPES[:2]),
                      "sizes": ", ".join(map(str, r.sample(range(1, 51), 8)))},
    17: lambda r, s: {"brand": brand(r), "container": words(r, *CONTAINERS)},
    18: lambda r, s: {"quantity": r.randint(312, 315)},
    19: lambda r, s: quantities(r.randint(1, 10), r.randint(10, 20), r.randint(20, 30), [brand(r) for _ in range(3)]),
    20: lambda r, s: {"color": r.choice(COLORS), "nation": r.choice(NATIONS), **span(r.randint(1993, 1997), 1, 12)},
    21: lambda r, s: {"nation": r.choice(NATIONS)},
    22: lambda r, s: {"codes": codes(r.sample(range(10, 35), 7))},
}


def around(hundredths: int) -> dict:
    return {"low": f"{(hundredths - 1) / 100:.2f}", "high": f"{(hundredths + 1) / 100:.2f}"}


def quantities(q1, q2, q3, brands) -> dict:
    return {**pair(("brand1", "brand2", "brand3"), brands),
            "q1": q1, "q1b": q1 + 10, "q2": q2, "q2b": q2 + 10, "q3": q3, "q3b": q3 + 10}


def codes(numbers) -> str:
    return ", ".join(f"'{n}'" for n in numbers)


VALIDATION = {
    1: ship_before(90),
    2: {"size": 15, "metal": "BRASS", "region": "EUROPE"},
    3: {"segment": "BUILDING", "date": "1995-03-15"},
    4: span(1993, 7, 3),
    5: {"region": "ASIA", **span(1994, 1, 12)},
    6: {**span(1994, 1, 12), **around(6), "quantity": 24},
    7: {"nation1": "FRANCE", "nation2": "GERMANY"},
    8: {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"},
    9: {"color": "green"},
    10: span(1993, 10, 3),
    # The published answers take this fraction at every scale.
    11: {"nation": "GERMANY", "fraction": "0.0001000000"},
    12: {"mode1": "MAIL", "mode2": "SHIP", **span(1994, 1, 12)},
    13: {"word1": "special", "word2": "requests"},
    14: span(1995, 9, 1),
    15: span(1996, 1, 3),
    16: {"brand": "Brand#45", "type": "MEDIUM POLISHED", "sizes": "49, 14, 23, 45, 19, 3, 36, 9"},
    17: {"brand": "Brand#23", "container": "MED BOX"},
    18: {"quantity": 300},
    19: quantities(1, 10, 20, ("Brand#12", "Brand#23", "Brand#34")),
    20: {"color": "forest", "nation": "CANADA", **span(1994, 1, 12)},
    21: {"nation": "SAUDI ARABIA"},
    22: {"codes": codes((13, 31, 23, 29, 30, 18, 17))},
}

# LIMIT of the query, where it has one: rows tied with the last may be any of them.
LIMITS = {2: 100, 3: 10, 10: 20, 18: 100, 21: 100}

TEXT = {
    1: """
select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
       avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc,
       count(*) as count_order
from lineitem
where l_shipdate <= date '{date}'
group by l_returnflag, l_linestatus
order by l_returnflag, l_linestatus""",
    2: """
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part, supplier, partsupp, nation, region
where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = {size} and p_type like '%{metal}'
  and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = '{region}'
  and ps_supplycost = (
    select min(ps_supplycost)
    from partsupp, supplier, nation, region
    where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
      and n_regionkey = r_regionkey and r_name = '{region}')
order by s_acctbal desc, n_name, s_name, p_partkey
limit 100""",
    3: """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem
where c_mktsegment = '{segment}' and c_custkey = o_custkey and l_orderkey = o_orderkey
  and o_orderdate < date '{date}' and l_shipdate > date '{date}'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate
limit 10""",
    4: """
select o_orderpriority, count(*) as order_count
from orders
where o_orderdate >= date '{date}' and o_orderdate < date '{end}'
  and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
group by o_orderpriority
order by o_orderpriority""",
    5: """
select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, supplier, nation, region
where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
  and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = '{region}'
  and o_orderdate >= date '{date}' and o_orderdate < date '{end}'
group by n_name
order by revenue desc""",
    6: """
select sum(l_extendedprice * l_discount) as revenue
from lineitem
where l_shipdate >= date '{date}' and l_shipdate < date '{end}'
  and l_discount between {low} and {high} and l_quantity < {quantity}""",
    7: """
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from (
  select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year,
         l_extendedprice * (1 - l_discount) as volume
  from supplier, lineitem, orders, customer, nation n1, nation n2
  where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
    and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
    and ((n1.n_name = '{nation1}' and n2.n_name = '{nation2}') or (n1.n_name = '{nation2}' and n2.n_name = '{nation1}'))
    and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
group by supp_nation, cust_nation, l_year
order by supp_nation, cust_nation, l_year""",
    8: """
select o_year, sum(case when nation = '{nation}' then volume else 0 end) / sum(volume) as mkt_share
from (
  select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, n2.n_name as nation
  from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
  where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey
    and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = '{region}'
    and s_nationkey = n2.n_nationkey and o_orderdate between date '1995-01-01' and date '1996-12-31'
    and p_type = '{type}') as all_nations
group by o_year
order by o_year""",
    9: """
select nation, o_year, sum(amount) as sum_profit
from (
  select n_name as nation, extract(year from o_orderdate) as o_year,
         l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
  from part, supplier, lineitem, partsupp, orders, nation
  where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
    and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%{color}%') as profit
group by nation, o_year
order by nation, o_year desc""",
    10: """
select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name, c_address, c_phone,
       c_comment
from customer, orders, lineitem, nation
where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '{date}' and o_orderdate < date '{end}'
  and l_returnflag = 'R' and c_nationkey = n_nationkey
group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
order by revenue desc
limit 20""",
    11: """
select ps_partkey, sum(ps_supplycost * ps_availqty) as value
from partsupp, supplier, nation
where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{nation}'
group by ps_partkey
having sum(ps_supplycost * ps_availqty) > (
  select sum(ps_supplycost * ps_availqty) * {fraction}
  from partsupp, supplier, nation
  where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{nation}')
order by value desc""",
    12: """
select l_shipmode,
       sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) as high_line_count,
       sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end) as low_line_count
from orders, lineitem
where o_orderkey = l_orderkey and l_shipmode in ('{mode1}', '{mode2}') and l_commitdate < l_receiptdate
  and l_shipdate < l_commitdate and l_receiptdate >= date '{date}' and l_receiptdate < date '{end}'
group by l_shipmode
order by l_shipmode""",
    13: """
select c_count, count(*) as custdist
from (
  select c_custkey, count(o_orderkey) as c_count
  from customer left outer join orders on c_custkey = o_custkey and o_comment not like '%{word1}%{word2}%'
  group by c_custkey) as c_orders
group by c_count
order by custdist desc, c_count desc""",
    14: """
select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
       / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from lineitem, part
where l_partkey = p_partkey and l_shipdate >= date '{date}' and l_shipdate < date '{end}'""",
    15: """
with revenue as (
  select l_suppkey as supplier_no, sum(l_extendedprice * (1 - l_discount)) as total_revenue
  from lineitem
  where l_shipdate >= date '{date}' and l_shipdate < date '{end}'
  group by l_suppkey)
select s_suppkey, s_name, s_address, s_phone, total_revenue
from supplier, revenue
where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue)
order by s_suppkey""",
    16: """
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
from partsupp, part
where p_partkey = ps_partkey and p_brand <> '{brand}' and p_type not like '{type}%' and p_size in ({sizes})
  and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p_brand, p_type, p_size
order by supplier_cnt desc, p_brand, p_type, p_size""",
    17: """
select sum(l_extendedprice) / 7.0 as avg_yearly
from lineitem, part
where p_partkey = l_partkey and p_brand = '{brand}' and p_container = '{container}'
  and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    18: """
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as sum_quantity
from customer, orders, lineitem
where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > {quantity})
  and c_custkey = o_custkey and o_orderkey = l_orderkey
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
order by o_totalprice desc, o_orderdate
limit 100""",
    19: """
select sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem, part
where (p_partkey = l_partkey and p_brand = '{brand1}' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
    and l_quantity >= {q1} and l_quantity <= {q1b} and p_size between 1 and 5
    and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
  or (p_partkey = l_partkey and p_brand = '{brand2}' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
    and l_quantity >= {q2} and l_quantity <= {q2b} and p_size between 1 and 10
    and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
  or (p_partkey = l_partkey and p_brand = '{brand3}' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
    and l_quantity >= {q3} and l_quantity <= {q3b} and p_size between 1 and 15
    and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')""",
    20: """
select s_name, s_address
from supplier, nation
where s_suppkey in (
    select ps_suppkey
    from partsupp
    where ps_partkey in (select p_partkey from part where p_name like '{color}%')
      and ps_availqty > (
        select 0.5 * sum(l_quantity)
        from lineitem
        where l_partkey = ps_partkey and l_suppkey = ps_suppkey
          and l_shipdate >= date '{date}' and l_shipdate < date '{end}'))
  and s_nationkey = n_nationkey and n_name = '{nation}'
order by s_name""",
    21: """
select s_name, count(*) as numwait
from supplier, lineitem l1, orders, nation
where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
  and l1.l_receiptdate > l1.l_commitdate
  and exists (
    select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
  and not exists (
    select * from lineitem l3
    where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate)
  and s_nationkey = n_nationkey and n_name = '{nation}'
group by s_name
order by numwait desc, s_name
limit 100""",
    22: """
select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from (
  select substring(c_phone from 1 for 2) as cntrycode, c_acctbal
  from customer
  where substring(c_phone from 1 for 2) in ({codes})
    and c_acctbal > (
      select avg(c_acctbal) from customer
      where c_acctbal > 0.00 and substring(c_phone from 1 for 2) in ({codes}))
    and not exists (select * from orders where o_custkey = c_custkey)) as custsale
group by cntrycode
order by cntrycode""",
}

# Where one engine needs another text, for the same result.
DIALECTS = {
    # ClickHouse sums no rows to 0, SQL to NULL.
    "chdb": {query: TEXT[query].replace("sum(", "sumOrNull(", 1) for query in (17, 19)},
}


def parameters(query: int, repeat: int, scale: str, seed: int) -> dict:
    """Repeat 0 has the validation parameters, the others are drawn: the same seed draws the same ones."""
    if repeat == 0:
        return VALIDATION[query]
    return DRAW[query](random.Random(f"{seed}/{query}/{repeat}"), scale)


def text(query: int, values: dict, engine: str = "") -> str:
    """The query as this engine is given it."""
    return DIALECTS.get(engine, {}).get(query, TEXT[query]).format(**values).strip()
