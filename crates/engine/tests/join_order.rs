//! Which relation hangs where in a join, and that the answer is the same.

mod runtime;

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{Execution, Fold, Function, Output, Query, Rel, Type};

/// A relation of two columns of whole numbers below these bounds; its vectors.
fn relation(
    query: &mut Query,
    name: &str,
    below: [i64; 2],
    rows: &[[i64; 2]],
) -> (Rel, [usize; 2]) {
    let vars = [0, 1].map(|at| {
        let ty = Type::of(&DataType::Int64, false).unwrap();
        let ty = ty.within((0, i128::from(below[at]) - 1));
        query.add(format!("{name}.{at}"), ty)
    });
    let fields = ["0", "1"].map(|name| Field::new(name, DataType::Int64, false));
    let columns = [0, 1]
        .map(|at| Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row[at]))) as _);
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = RecordBatch::try_new(schema, columns.to_vec()).unwrap();
    let rel = Rel::Values {
        vars: vars.to_vec(),
        batch,
    };
    (rel, vars)
}

/// A sale names a shop and a customer; both lie in one of three towns, the customer by an address. Asked are sales in
/// the customer's town: an address is found by the customer's key, and not by the shop's town, where a third of all
/// addresses lie.
#[test]
fn a_relation_hangs_where_its_key_finds_it() {
    let sales: Vec<[i64; 2]> = (0..3_000).map(|i| [i * 7 % 10, i * 31 % 600]).collect();
    let shops: Vec<[i64; 2]> = (0..10).map(|i| [i, i % 3]).collect();
    let customers: Vec<[i64; 2]> = (0..600).map(|i| [i, (i * 11 + 5) % 600]).collect();
    let addresses: Vec<[i64; 2]> = (0..600).map(|i| [i, i * 13 % 3]).collect();
    let mut query = Query::default();
    let (sale, [shop, customer]) = relation(&mut query, "sale", [10, 600], &sales);
    let (shop_rel, [shop_key, shop_town]) = relation(&mut query, "shop", [10, 3], &shops);
    let (customer_rel, [customer_key, address]) =
        relation(&mut query, "customer", [600, 600], &customers);
    let (address_rel, [address_key, town]) = relation(&mut query, "address", [600, 3], &addresses);
    let count = query.add("count", Type::of(&DataType::Int64, false).unwrap());
    let join = Rel::Join {
        inputs: vec![sale, shop_rel, customer_rel, address_rel],
        equal: vec![
            (shop, shop_key),
            (shop_town, town),
            (customer, customer_key),
            (address, address_key),
        ],
        residual: vec![],
    };
    let root = Rel::Fold {
        input: Box::new(join),
        keys: vec![],
        folds: vec![Fold {
            var: count,
            function: Function::Count,
            arg: None,
        }],
    };
    let schema = Schema::new(vec![Field::new("count", DataType::Int64, false)]);
    let output = Output {
        vars: vec![count],
        schema: Arc::new(schema),
    };
    let prepared = engine::prepare(query, root, output).unwrap();
    let program = prepared.explain().join("\n");
    assert!(
        program.contains("join hash table by (address.0)"),
        "addresses are found by their key:\n{program}"
    );
    let runtime = runtime::on("live", 2);
    let running = runtime.clone();
    let (batches, _) = runtime
        .workers
        .block_on(async move { prepared.run_by(&running, &Execution::default()).await })
        .unwrap();
    let expected = sales.iter().filter(|[shop, customer]| {
        let own = customers[*customer as usize][1];
        shops[*shop as usize][1] == addresses[own as usize][1]
    });
    let found = batches[0].column(0).as_primitive::<Int64Type>().value(0);
    assert_eq!(found, expected.count() as i64);
}
