//! Plans that follow from samples of the tables, and that are others without.

mod runtime;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{
    Compare, Execution, Expr, Fold, Function, Literal, Output, Query, Rel, Runtime, Scan, Type,
};
use table::{Catalog, Definition, Table, create, insert};

/// Stores a table of such columns of whole numbers, and gives it.
fn stored(store: &Arc<store::Store>, name: &str, columns: &[(&str, Int64Array)]) -> Arc<Table> {
    let arrays = columns.iter();
    let arrays = arrays.map(|(name, values)| (*name, Arc::new(values.clone()) as ArrayRef));
    let batch = RecordBatch::try_from_iter(arrays).unwrap();
    let mut tx = store.begin().unwrap();
    let definition = Definition::from_schema(name, &batch.schema()).unwrap();
    create(&mut tx, &definition).unwrap();
    let (tx, _) = futures::executor::block_on(insert(tx, name, &[batch])).unwrap();
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    Arc::clone(tables.get(name).unwrap())
}

/// A scan of all columns of a table, with what its zones tell of them; its vectors.
fn scan(query: &mut Query, table: &Arc<Table>) -> (Rel, Vec<usize>) {
    let fields = table.schema().fields().clone();
    let columns = fields.iter().enumerate().map(|(at, field)| {
        let mut ty = Type::of(&DataType::Int64, field.is_nullable()).unwrap();
        if let Some(table::Zone::Int { min, max }) = table.statistics(at).zone {
            ty = ty.within((min, max));
        }
        (query.add(field.name(), ty), at)
    });
    let columns: Vec<(usize, usize)> = columns.collect();
    let vars = columns.iter().map(|(var, _)| *var).collect();
    let scan = Scan {
        table: Arc::clone(table),
        alias: table.definition().name.clone(),
        columns,
        parts: vec![],
        row_ids: None,
        filters: vec![],
        shown: vec![],
        expected: table.rows() as f64,
    };
    (Rel::Scan(scan), vars)
}

/// The rows of `rel` whose vector has this value.
fn only(query: &Query, rel: Rel, var: usize, value: i64) -> Rel {
    let value = Expr::literal(Literal::Int(value), &DataType::Int64).unwrap();
    Rel::Filter {
        input: Box::new(rel),
        predicate: engine::compare(Compare::Eq, query.expr(var), value).unwrap(),
    }
}

/// How many rows a join has, planned with a look at samples or without, and the plan.
fn counted(
    mut query: Query,
    (inputs, equal): (Vec<Rel>, Vec<(usize, usize)>),
    is_sampled: bool,
    runtime: &Runtime,
) -> (i64, Vec<String>) {
    let count = query.add("count", Type::of(&DataType::Int64, false).unwrap());
    let root = Rel::Fold {
        input: Box::new(Rel::Join {
            inputs,
            equal,
            residual: vec![],
        }),
        keys: vec![],
        folds: vec![Fold {
            var: count,
            function: Function::Count,
            arg: None,
        }],
    };
    if is_sampled {
        futures::executor::block_on(engine::sample(&mut query, &root));
    }
    let schema = Schema::new(vec![Field::new("count", DataType::Int64, false)]);
    let output = Output {
        vars: vec![count],
        schema: Arc::new(schema),
    };
    let prepared = engine::prepare(query, root, output).unwrap();
    let plan = prepared.explain();
    let running = runtime.clone();
    let run = async move { prepared.run_by(&running, &Execution::default()).await };
    let (batches, _) = runtime.workers.block_on(run).unwrap();
    let found = batches[0].column(0).as_primitive::<Int64Type>().value(0);
    (found, plan)
}

const SALES: i64 = 90_000;

fn day_of(sale: i64) -> i64 {
    40_000 + sale * 7 % 1_800
}

fn shop_of(sale: i64) -> i64 {
    sale * 13 % 200
}

/// The name of a column, and its value in each row.
type MadeColumn = (&'static str, fn(i64) -> i64);

/// Of 200 years five have sales; one of them is wanted, and one shop of ten, of which few have sales.
#[test]
fn a_year_is_one_of_those_that_have_sales() {
    let folder = tempfile::tempdir().unwrap();
    let options = store::Options::default();
    let store = store::Store::create(folder.path().join("e.atoll"), &options).unwrap();
    let columns = |rows: i64, of: &[MadeColumn]| {
        let columns = of.iter();
        let columns = columns.map(|(name, of)| (*name, (0..rows).map(of).collect()));
        columns.collect::<Vec<(&str, Int64Array)>>()
    };
    let sales = columns(SALES, &[("day", day_of), ("shop", shop_of)]);
    let days = columns(73_000, &[("day_id", |i| i), ("year", |i| i / 365)]);
    let shops = columns(80_000, &[("shop_id", |i| i), ("size", |i| i % 10)]);
    let sales = stored(&store, "sale", &sales);
    let (days, shops) = (stored(&store, "day", &days), stored(&store, "shop", &shops));
    let runtime = runtime::on("live", 2);
    for is_sampled in [false, true] {
        let mut query = Query::default();
        let (sale, sale_vars) = scan(&mut query, &sales);
        let (day, day_vars) = scan(&mut query, &days);
        let (shop, shop_vars) = scan(&mut query, &shops);
        let day = only(&query, day, day_vars[1], 112);
        let shop = only(&query, shop, shop_vars[1], 3);
        let equal = vec![(sale_vars[0], day_vars[0]), (sale_vars[1], shop_vars[0])];
        let join = (vec![sale, day, shop], equal);
        let (found, plan) = counted(query, join, is_sampled, &runtime);
        let place = |key: &str| {
            let is_probe = |line: &String| line.contains("dot") && line.contains(key);
            plan.iter().position(is_probe).expect("a probe")
        };
        let days_first = place("by (day)") < place("by (shop)");
        // Without a look at rows a fifth of each is left, and the smaller table comes first.
        assert_eq!(days_first, !is_sampled, "{}", plan.join("\n"));
        let is_wanted = |sale: &i64| day_of(*sale) / 365 == 112 && shop_of(*sale) % 10 == 3;
        assert_eq!(found, (0..SALES).filter(is_wanted).count() as i64);
    }
}

/// One row of ten has a value in the key that a large relation is found by: the others are dropped before they look for anything.
#[test]
fn keys_that_are_null_often_are_tested_first() {
    let folder = tempfile::tempdir().unwrap();
    let options = store::Options::default();
    let store = store::Store::create(folder.path().join("n.atoll"), &options).unwrap();
    let part_of = |role: i64| (role % 10 == 3).then_some(role * 7 % 30_000);
    let is_film = |film: i64| film % 3 == 0;
    let film = (0..SALES).map(|role| role * 11 % 20_000);
    let roles = [
        ("film", film.collect::<Int64Array>()),
        ("part", (0..SALES).map(part_of).collect()),
    ];
    let ids = |rows: i64| (0..rows).collect::<Int64Array>();
    let kinds: Int64Array = (0..20_000).map(|film| film % 3).collect();
    let roles = stored(&store, "role", &roles);
    let films = stored(&store, "film", &[("film_id", ids(20_000)), ("kind", kinds)]);
    let parts = stored(&store, "part", &[("part_id", ids(30_000))]);
    let runtime = runtime::on("live", 2);
    let mut query = Query::default();
    let (role, role_vars) = scan(&mut query, &roles);
    let (film, film_vars) = scan(&mut query, &films);
    let (part, part_vars) = scan(&mut query, &parts);
    let film = only(&query, film, film_vars[1], 0);
    let equal = vec![(role_vars[0], film_vars[0]), (role_vars[1], part_vars[0])];
    let join = (vec![role, film, part], equal);
    let (found, plan) = counted(query, join, true, &runtime);
    let line = |text: &str| plan.iter().position(|line| line.contains(text));
    let (tested, probed) = (line("is null"), line("by (film)"));
    assert!(tested.is_some() && tested < probed, "{}", plan.join("\n"));
    let is_wanted = |role: &i64| is_film(role * 11 % 20_000) && part_of(*role).is_some();
    assert_eq!(found, (0..SALES).filter(is_wanted).count() as i64);
}
