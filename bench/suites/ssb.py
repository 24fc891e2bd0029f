"""The star schema benchmark: one table of order lines, four around it, 13 queries. Size 1: 6 million lines."""

import math

import numpy
import pyarrow

from suites.draw import take

REGIONS = {
    "AFRICA": "ALGERIA ETHIOPIA KENYA MOROCCO MOZAMBIQUE", "AMERICA": "ARGENTINA BRAZIL CANADA PERU UNITED_STATES",
    "ASIA": "CHINA INDIA INDONESIA JAPAN VIETNAM", "EUROPE": "FRANCE GERMANY ROMANIA RUSSIA UNITED_KINGDOM",
    "MIDDLE EAST": "EGYPT IRAN IRAQ JORDAN SAUDI_ARABIA",
}
NATIONS = [(nation.replace("_", " "), region) for region, names in REGIONS.items() for nation in names.split()]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
COLORS = "almond azure beige black blue brown coral cream cyan green grey ivory khaki lime navy olive pink plum red tan".split()
MONTHS = "January February March April May June July August September October November December".split()


def tables(draw, size):
    customers, suppliers = max(int(30_000 * size), 50), max(int(2_000 * size), 50)
    parts = int(200_000 * (1 + math.log2(size))) if size > 1 else max(int(200_000 * size), 1_000)
    dates = calendar()
    yield "dates", dates
    yield "customer", people(draw.of("customer"), "c", "Customer", customers, c_mktsegment=SEGMENTS)
    yield "supplier", people(draw.of("supplier"), "s", "Supplier", suppliers)
    yield "part", wares(draw.of("part"), parts)
    yield "lineorder", lines(draw.of("lineorder"), int(6_000_000 * size), customers, suppliers, parts, dates["d_datekey"].to_numpy())


def calendar():
    days = numpy.arange(numpy.datetime64("1992-01-01"), numpy.datetime64("1999-01-01"))
    months = days.astype("datetime64[M]")
    year = days.astype("datetime64[Y]").astype(int) + 1970
    month = months.astype(int) % 12 + 1
    day = (days - months).astype(int) + 1
    of_year = (days - days.astype("datetime64[Y]")).astype(int) + 1
    return pyarrow.table({
        "d_datekey": (year * 10_000 + month * 100 + day).astype("int32"), "d_date": pyarrow.array(days.astype(str)),
        "d_month": take(MONTHS, month - 1), "d_year": year.astype("int32"), "d_yearmonthnum": (year * 100 + month).astype("int32"),
        "d_yearmonth": pyarrow.array([f"{MONTHS[m - 1][:3]}{y}" for y, m in zip(year, month)]),
        "d_daynuminyear": of_year.astype("int32"), "d_weeknuminyear": ((of_year - 1) // 7 + 1).astype("int32"),
    })


def people(draw, prefix, word, rows, **more):
    nation, city = draw.below(25, rows), draw.below(10, rows)
    cities = [f"{name[:9]:9}{n}" for name, _ in NATIONS for n in range(10)]
    return pyarrow.table({
        f"{prefix}_{word[:4].lower()}key": numpy.arange(1, rows + 1, dtype="int32"),
        f"{prefix}_name": pyarrow.array([f"{word}#{n:09}" for n in range(1, rows + 1)]),
        f"{prefix}_city": take(cities, nation * 10 + city), f"{prefix}_nation": take([name for name, _ in NATIONS], nation),
        f"{prefix}_region": take([region for _, region in NATIONS], nation),
        **{name: take(values, draw.below(len(values), rows)) for name, values in more.items()},
    })


def wares(draw, rows):
    maker, category, brand = draw.below(5, rows), draw.below(5, rows), draw.below(40, rows)
    brands = [f"MFGR#{m}{c}{b}" for m in range(1, 6) for c in range(1, 6) for b in range(1, 41)]
    return pyarrow.table({
        "p_partkey": numpy.arange(1, rows + 1, dtype="int32"), "p_mfgr": take([f"MFGR#{m}" for m in range(1, 6)], maker),
        "p_category": take([f"MFGR#{m}{c}" for m in range(1, 6) for c in range(1, 6)], maker * 5 + category),
        "p_brand1": take(brands, (maker * 5 + category) * 40 + brand), "p_color": take(COLORS, draw.below(len(COLORS), rows)),
        "p_size": (draw.below(50, rows) + 1).astype("int32"),
    })


def lines(draw, rows, customers, suppliers, parts, dates):
    """In the order of orders, whose dates are in none: four lines of an order in the mean."""
    order = numpy.sort(draw.below(max(rows // 4, 1), rows))
    day = dates[draw.below(len(dates) - 150, rows // 4 + 1)[order]]
    customer = draw.below(customers, rows // 4 + 1)[order] + 1
    quantity, discount = draw.below(50, rows) + 1, draw.below(11, rows)
    price = quantity * (90_000 + draw.below(110_000, rows)) // 100
    first = numpy.concatenate([[True], order[1:] != order[:-1]])
    return pyarrow.table({
        "lo_orderkey": order + 1, "lo_linenumber": place(first).astype("int32"), "lo_custkey": customer.astype("int32"),
        "lo_partkey": (draw.below(parts, rows) + 1).astype("int32"), "lo_suppkey": (draw.below(suppliers, rows) + 1).astype("int32"),
        "lo_orderdate": day.astype("int32"), "lo_quantity": quantity.astype("int32"), "lo_extendedprice": price.astype("int32"),
        "lo_discount": discount.astype("int32"), "lo_revenue": (price * (100 - discount) // 100).astype("int32"),
        "lo_supplycost": (price * 6 // (10 * quantity)).astype("int32"), "lo_tax": draw.below(9, rows).astype("int32"),
    })


def place(first):
    """The place of each row in its run: 1 where `first` is true, one more in each row that follows."""
    at = numpy.arange(len(first))
    return at - numpy.maximum.accumulate(numpy.where(first, at, 0)) + 1


STAR = "lo_orderdate = d_datekey and lo_partkey = p_partkey and lo_suppkey = s_suppkey"
BRANDS = "select sum(lo_revenue), d_year, p_brand1 from lineorder, dates, part, supplier where " + STAR
TRADE = "from customer, lineorder, supplier, dates where lo_custkey = c_custkey and lo_suppkey = s_suppkey and lo_orderdate = d_datekey"
PROFIT = "sum(lo_revenue - lo_supplycost) as profit from dates, customer, supplier, part, lineorder where lo_custkey = c_custkey and " + STAR
DISCOUNT = "select sum(lo_extendedprice * lo_discount) as revenue from lineorder, dates where lo_orderdate = d_datekey"
BY_BRAND = "group by d_year, p_brand1 order by d_year, p_brand1"
BY_CITY = "group by c_city, s_city, d_year order by d_year, revenue desc, c_city, s_city"
CITIES = "(c_city = 'UNITED KI1' or c_city = 'UNITED KI5') and (s_city = 'UNITED KI1' or s_city = 'UNITED KI5')"
QUERIES = {
    "q1.1": f"{DISCOUNT} and d_year = 1993 and lo_discount between 1 and 3 and lo_quantity < 25",
    "q1.2": f"{DISCOUNT} and d_yearmonthnum = 199401 and lo_discount between 4 and 6 and lo_quantity between 26 and 35",
    "q1.3": f"{DISCOUNT} and d_weeknuminyear = 6 and d_year = 1994 and lo_discount between 5 and 7 and lo_quantity between 26 and 35",
    "q2.1": f"{BRANDS} and p_category = 'MFGR#12' and s_region = 'AMERICA' {BY_BRAND}",
    "q2.2": f"{BRANDS} and p_brand1 between 'MFGR#2221' and 'MFGR#2228' and s_region = 'ASIA' {BY_BRAND}",
    "q2.3": f"{BRANDS} and p_brand1 = 'MFGR#2239' and s_region = 'EUROPE' {BY_BRAND}",
    "q3.1": f"""select c_nation, s_nation, d_year, sum(lo_revenue) as revenue {TRADE} and c_region = 'ASIA' and s_region = 'ASIA'
        and d_year >= 1992 and d_year <= 1997
        group by c_nation, s_nation, d_year order by d_year, revenue desc, c_nation, s_nation""",
    "q3.2": f"""select c_city, s_city, d_year, sum(lo_revenue) as revenue {TRADE} and c_nation = 'UNITED STATES'
        and s_nation = 'UNITED STATES' and d_year >= 1992 and d_year <= 1997 {BY_CITY}""",
    "q3.3": f"""select c_city, s_city, d_year, sum(lo_revenue) as revenue {TRADE} and {CITIES}
        and d_year >= 1992 and d_year <= 1997 {BY_CITY}""",
    "q3.4": f"select c_city, s_city, d_year, sum(lo_revenue) as revenue {TRADE} and {CITIES} and d_yearmonth = 'Dec1997' {BY_CITY}",
    "q4.1": f"""select d_year, c_nation, {PROFIT} and c_region = 'AMERICA' and s_region = 'AMERICA'
        and (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2') group by d_year, c_nation order by d_year, c_nation""",
    "q4.2": f"""select d_year, s_nation, p_category, {PROFIT} and c_region = 'AMERICA' and s_region = 'AMERICA'
        and (d_year = 1997 or d_year = 1998) and (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2')
        group by d_year, s_nation, p_category order by d_year, s_nation, p_category""",
    "q4.3": f"""select d_year, s_city, p_brand1, {PROFIT} and c_region = 'AMERICA' and s_nation = 'UNITED STATES'
        and (d_year = 1997 or d_year = 1998) and p_category = 'MFGR#14'
        group by d_year, s_city, p_brand1 order by d_year, s_city, p_brand1""",
}
