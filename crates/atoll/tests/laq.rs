//! LAQ against SQL: random outer compositions, counts of distinct labels and parts of texts, by each executor.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::util::display::array_value_to_string;
use atoll::{Database, Executor, Options, tpch};

/// A generator of numbers that are the same at every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The rows as texts, numbers with six digits after the point, in an order of their own.
fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |array: &ArrayRef| {
                let text = array_value_to_string(array, row).unwrap();
                match (array.is_null(row), text.parse::<f64>()) {
                    (true, _) => "null".to_owned(),
                    (_, Ok(number)) if array.data_type().is_numeric() => format!("{number:.6}"),
                    _ => text,
                }
            };
            let cells: Vec<String> = batch.columns().iter().map(cell).collect();
            rows.push(cells.join("|"));
        }
    }
    rows.sort();
    rows
}

/// A program and the query that asks the same.
fn drawn(draw: &mut Draw) -> (String, String) {
    let condition = draw.one(&[
        "o_totalprice > 0",
        "o_totalprice > 150000",
        "o_totalprice > 1000000000",
        "o_orderpriority = '1-URGENT'",
        "o_orderdate < '1994-06-01'",
        "o_custkey is null",
    ]);
    let chosen = format!("filter(orders.{condition})");
    let default = draw.one(&["0", "-1", "7", "2.5"]);
    match draw.below(5) {
        0 => {
            let fold = draw.one(&["sum", "min", "max"]);
            (
                format!(
                    "n = {fold}(krao({chosen}, orders.o_custkey, orders.o_totalprice)) \
                     return(customer.c_custkey, dot(n, customer.c_custkey, {default}) as v)"
                ),
                format!(
                    "select c_custkey, coalesce(v, {default}) from customer left join (select o_custkey, {fold}(o_totalprice) v \
                     from orders where {condition} group by 1) o on o_custkey = c_custkey"
                ),
            )
        }
        1 => (
            format!(
                "n = count(krao({chosen}, orders.o_custkey)) c = bitmap(dot(n, customer.c_custkey, 0)) \
                 return(c, count(c), sum(krao(c, customer.c_acctbal)))"
            ),
            format!(
                "select c, count(*), sum(c_acctbal) from (select coalesce(v, 0) c, c_acctbal from customer left join (select \
                 o_custkey, count(*) v from orders where {condition} group by 1) o on o_custkey = c_custkey) x group by 1"
            ),
        ),
        2 => (
            format!("return(distinct(krao({chosen}, orders.o_orderpriority), orders.o_custkey))"),
            format!(
                "select o_orderpriority, count(distinct o_custkey) from orders where {condition} group by 1"
            ),
        ),
        3 => {
            let (first, count) = (draw.below(20) as i64 - 3, draw.below(10));
            (
                format!(
                    "s = bitmap(substring(customer.c_phone, {first}, {count})) return(s, count(s))"
                ),
                format!(
                    "select substring(c_phone from ({first}) for {count}), count(*) from customer group by 1"
                ),
            )
        }
        _ => (
            format!(
                "m = dot({chosen}, lineitem.l_orderkey, 0) b = bitmap(case when m = 1 then lineitem.l_shipmode \
                 when lineitem.l_quantity < 5 then \"few\" else substring(lineitem.l_shipinstruct, 1, 4) end) \
                 return(b, count(b), distinct(b, lineitem.l_suppkey))"
            ),
            format!(
                "select b, count(*), count(distinct l_suppkey) from (select case when coalesce({condition}, false) then l_shipmode \
                 when l_quantity < 5 then 'few' else substring(l_shipinstruct, 1, 4) end b, l_suppkey \
                 from lineitem join orders on o_orderkey = l_orderkey) x group by 1"
            ),
        ),
    }
}

#[test]
fn compositions_answer_as_joins_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tpch.atoll");
    let mut options = Options::default();
    options.pool_bytes = Some(64 << 20);
    options.threads = Some(2);
    let database = Database::create(&path, &options).unwrap();
    tpch::load(&database, 0.01, &()).unwrap();
    database.close().unwrap();
    let mut draw = Draw(20_261_201);
    for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
        options.executor = executor;
        let database = Database::open(&path, &options).unwrap();
        let session = database.session();
        for _ in 0..40 {
            let (program, query) = drawn(&mut draw);
            let ours = session.laq(&program);
            let ours = ours.unwrap_or_else(|error| panic!("{error}\n{program}"));
            let joined = session.sql(&query).unwrap().pop().unwrap();
            let (ours, joined) = (rows(&ours.batches), rows(&joined.batches));
            assert_eq!(ours, joined, "{executor:?}\n{program}\n{query}");
        }
        drop(session);
        database.close().unwrap();
    }
}
