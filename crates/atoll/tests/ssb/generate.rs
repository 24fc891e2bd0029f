//! The tables of the Star Schema Benchmark (O'Neil et al., 2009), small: the same columns, keys and ranges of values, other
//! random numbers than its generator draws.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};

const MONTHS: [(&str, i64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

/// Regions and their nations.
const REGIONS: [(&str, [&str; 5]); 5] = [
    (
        "AFRICA",
        ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    ),
    (
        "AMERICA",
        ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"],
    ),
    ("ASIA", ["INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"]),
    (
        "EUROPE",
        ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"],
    ),
    (
        "MIDDLE EAST",
        ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
    ),
];

/// Rows by table.
pub struct Sizes {
    pub lineorder: usize,
    pub customer: usize,
    pub supplier: usize,
    pub part: usize,
}

/// A table: how it is declared, and its rows.
pub struct Table {
    pub name: &'static str,
    pub create: &'static str,
    pub rows: RecordBatch,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

fn ints(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// All five tables.
pub fn tables(sizes: &Sizes) -> Vec<Table> {
    let mut random = Random(1);
    let days = days();
    vec![
        Table {
            name: "dates",
            create: "create table dates (d_datekey bigint not null, d_year bigint not null, d_yearmonthnum bigint not null, d_yearmonth varchar not null, d_weeknuminyear bigint not null, primary key (d_datekey))",
            rows: batch(vec![
                ("d_datekey", ints(days.iter().map(|d| d.key))),
                ("d_year", ints(days.iter().map(|d| d.key / 10_000))),
                ("d_yearmonthnum", ints(days.iter().map(|d| d.key / 100))),
                ("d_yearmonth", texts(days.iter().map(|d| d.month.clone()))),
                ("d_weeknuminyear", ints(days.iter().map(|d| d.week))),
            ]),
        },
        Table {
            name: "customer",
            create: "create table customer (c_custkey bigint not null, c_city varchar not null, c_nation varchar not null, c_region varchar not null, primary key (c_custkey))",
            rows: places(
                ["c_custkey", "c_city", "c_nation", "c_region"],
                sizes.customer,
                &mut random,
            ),
        },
        Table {
            name: "supplier",
            create: "create table supplier (s_suppkey bigint not null, s_city varchar not null, s_nation varchar not null, s_region varchar not null, primary key (s_suppkey))",
            rows: places(
                ["s_suppkey", "s_city", "s_nation", "s_region"],
                sizes.supplier,
                &mut random,
            ),
        },
        Table {
            name: "part",
            create: "create table part (p_partkey bigint not null, p_mfgr varchar not null, p_category varchar not null, p_brand1 varchar not null, primary key (p_partkey))",
            rows: parts(sizes.part, &mut random),
        },
        Table {
            name: "lineorder",
            create: "create table lineorder (lo_orderkey bigint not null, lo_custkey bigint not null, lo_partkey bigint not null, lo_suppkey bigint not null, lo_orderdate bigint not null, lo_quantity bigint not null, lo_extendedprice bigint not null, lo_discount bigint not null, lo_revenue bigint not null, lo_supplycost bigint not null, foreign key (lo_custkey) references customer, foreign key (lo_partkey) references part, foreign key (lo_suppkey) references supplier, foreign key (lo_orderdate) references dates)",
            rows: lineorder(sizes, &days, &mut random),
        },
    ]
}

/// One day of the seven years.
struct Day {
    /// As yyyymmdd.
    key: i64,
    month: String,
    week: i64,
}

fn days() -> Vec<Day> {
    let mut all = Vec::new();
    for year in 1992..=1998 {
        let mut of_year = 0;
        for (number, (name, length)) in MONTHS.iter().enumerate() {
            let leap = i64::from(number == 1 && year % 4 == 0);
            for day in 1..=length + leap {
                all.push(Day {
                    key: year * 10_000 + (number as i64 + 1) * 100 + day,
                    month: format!("{name}{year}"),
                    week: of_year / 7 + 1,
                });
                of_year += 1;
            }
        }
    }
    all
}

fn places(names: [&'static str; 4], rows: usize, random: &mut Random) -> RecordBatch {
    let picks: Vec<(usize, usize, usize)> = (0..rows)
        .map(|_| (random.below(5), random.below(5), random.below(10)))
        .collect();
    let nation = |pick: &(usize, usize, usize)| REGIONS[pick.0].1[pick.1];
    batch(vec![
        (names[0], ints(1..=rows as i64)),
        (
            names[1],
            texts(picks.iter().map(|p| format!("{:9.9}{}", nation(p), p.2))),
        ),
        (names[2], texts(picks.iter().map(|p| nation(p).to_string()))),
        (
            names[3],
            texts(picks.iter().map(|p| REGIONS[p.0].0.to_string())),
        ),
    ])
}

fn parts(rows: usize, random: &mut Random) -> RecordBatch {
    let picks: Vec<(usize, usize, usize)> = (0..rows)
        .map(|_| {
            (
                1 + random.below(5),
                1 + random.below(5),
                1 + random.below(40),
            )
        })
        .collect();
    batch(vec![
        ("p_partkey", ints(1..=rows as i64)),
        (
            "p_mfgr",
            texts(picks.iter().map(|p| format!("MFGR#{}", p.0))),
        ),
        (
            "p_category",
            texts(picks.iter().map(|p| format!("MFGR#{}{}", p.0, p.1))),
        ),
        (
            "p_brand1",
            texts(picks.iter().map(|p| format!("MFGR#{}{}{}", p.0, p.1, p.2))),
        ),
    ])
}

fn lineorder(sizes: &Sizes, days: &[Day], random: &mut Random) -> RecordBatch {
    let mut columns: Vec<Vec<i64>> = vec![vec![]; 10];
    for row in 0..sizes.lineorder {
        let quantity = 1 + random.below(50) as i64;
        let price = quantity * (90_000 + random.below(20_000) as i64) / 100;
        let discount = random.below(11) as i64;
        let values = [
            row as i64 / 4 + 1,
            1 + random.below(sizes.customer) as i64,
            1 + random.below(sizes.part) as i64,
            1 + random.below(sizes.supplier) as i64,
            days[random.below(days.len())].key,
            quantity,
            price,
            discount,
            price * (100 - discount) / 100,
            price * 6 / 10,
        ];
        columns
            .iter_mut()
            .zip(values)
            .for_each(|(column, value)| column.push(value));
    }
    let names = [
        "lo_orderkey",
        "lo_custkey",
        "lo_partkey",
        "lo_suppkey",
        "lo_orderdate",
        "lo_quantity",
        "lo_extendedprice",
        "lo_discount",
        "lo_revenue",
        "lo_supplycost",
    ];
    batch(
        names
            .into_iter()
            .zip(columns)
            .map(|(name, column)| (name, ints(column.into_iter())))
            .collect(),
    )
}
