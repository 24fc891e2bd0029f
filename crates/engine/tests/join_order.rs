//! Which relation hangs where in a join, and that the answer is the same.

mod runtime;

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{
    Compare, Execution, Expr, Fold, Function, Literal, Output, Query, Rel, Type, compare,
};

/// A relation of columns of whole numbers below these bounds; its vectors.
fn relation<const N: usize>(
    query: &mut Query,
    name: &str,
    below: [i64; N],
    rows: &[[i64; N]],
) -> (Rel, [usize; N]) {
    let vars = std::array::from_fn(|at| {
        let ty = Type::of(&DataType::Int64, false).unwrap();
        let ty = ty.within((0, i128::from(below[at]) - 1));
        query.add(format!("{name}.{at}"), ty)
    });
    let fields = (0..N).map(|at| Field::new(at.to_string(), DataType::Int64, false));
    let columns = (0..N)
        .map(|at| Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row[at]))) as _);
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema, columns.collect()).unwrap();
    let rel = Rel::Values {
        vars: vars.to_vec(),
        batch,
    };
    (rel, vars)
}

/// How many rows `inputs` have together where pairs of vectors are `equal`, and the program.
fn counted(query: Query, inputs: Vec<Rel>, equal: Vec<(usize, usize)>) -> (i64, String) {
    let (found, program) = count(query, inputs, equal);
    (found.unwrap(), program)
}

fn count(
    mut query: Query,
    inputs: Vec<Rel>,
    equal: Vec<(usize, usize)>,
) -> (engine::Result<i64>, String) {
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
    let schema = Schema::new(vec![Field::new("count", DataType::Int64, false)]);
    let output = Output {
        vars: vec![count],
        schema: Arc::new(schema),
    };
    let prepared = engine::prepare(query, root, output).unwrap();
    let program = prepared.explain().join("\n");
    let runtime = runtime::on("live", 2);
    let running = runtime.clone();
    let run = async move { prepared.run_by(&running, &Execution::default()).await };
    let found = runtime.workers.block_on(run);
    let value = |batches: &[RecordBatch]| batches[0].column(0).as_primitive::<Int64Type>().value(0);
    (found.map(|(batches, _)| value(&batches)), program)
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
    let equal = vec![
        (shop, shop_key),
        (shop_town, town),
        (customer, customer_key),
        (address, address_key),
    ];
    let inputs = vec![sale, shop_rel, customer_rel, address_rel];
    let (found, program) = counted(query, inputs, equal);
    assert!(
        program.contains("join hash table by (address.0)"),
        "addresses are found by their key:\n{program}"
    );
    let expected = sales.iter().filter(|[shop, customer]| {
        let own = customers[*customer as usize][1];
        shops[*shop as usize][1] == addresses[own as usize][1]
    });
    assert_eq!(found, expected.count() as i64);
}

/// So many rows in no order that their keys are indexed range by range, with both workers; each key once or several times.
#[test]
fn many_rows_in_no_order_are_found_by_their_keys() {
    const ROWS: i64 = 300_007;
    for repeats in [1, 3] {
        let mut query = Query::default();
        let few: Vec<[i64; 1]> = (0..ROWS)
            .map(|row| [row * 104_729 % ROWS / repeats])
            .collect();
        let many: Vec<[i64; 1]> = (0..2 * ROWS)
            .map(|row| [row * 224_737 % (2 * ROWS)])
            .collect();
        let (few, [few_key]) = relation(&mut query, "few", [ROWS], &few);
        let (many, [many_key]) = relation(&mut query, "many", [2 * ROWS], &many);
        let (found, program) = counted(query, vec![many, few], vec![(many_key, few_key)]);
        // Each key that a row of the few may have is in one row of the many.
        assert_eq!(found, ROWS, "{program}");
    }
}

/// Stock of items by day, and sales of items by day, both in the same week: a sale's day is found by its key below the
/// sale, although its week would find it below the day of the stock before the sale is there. A sale is not found by the
/// buyer, of whom there are more than sales: a buyer can only hang below a sale.
#[test]
fn a_relation_waits_for_the_one_that_finds_it() {
    let stock: Vec<[i64; 2]> = (0..4_000).map(|i| [i % 50, i % 80]).collect();
    let days: Vec<[i64; 2]> = (0..80).map(|i| [i, i / 7]).collect();
    let sales: Vec<[i64; 3]> = (0..1_000)
        .map(|i| [i * 7 % 50, i * 11 % 80, i * 13 % 1_300])
        .collect();
    let buyers: Vec<[i64; 1]> = (0..1_300).map(|i| [i]).collect();
    let mut query = Query::default();
    let (stock_rel, [item, day]) = relation(&mut query, "stock", [50, 80], &stock);
    let (day_rel, [day_key, week]) = relation(&mut query, "day", [80, 12], &days);
    let (sale_rel, [sold, sold_day, buyer]) = relation(&mut query, "sale", [50, 80, 1_300], &sales);
    let (buyer_rel, [buyer_key]) = relation(&mut query, "buyer", [1_300], &buyers);
    let (other_rel, [other_key, other_week]) = relation(&mut query, "other", [80, 12], &days);
    let equal = vec![
        (item, sold),
        (day, day_key),
        (week, other_week),
        (sold_day, other_key),
        (buyer, buyer_key),
    ];
    let inputs = vec![stock_rel, day_rel, other_rel, sale_rel, buyer_rel];
    let (found, program) = counted(query, inputs, equal);
    assert!(
        program.contains("join hash table by (other.0)"),
        "the day of a sale is found by its key:\n{program}"
    );
    let pairs = stock
        .iter()
        .flat_map(|own| sales.iter().map(move |sale| (own, sale)));
    let expected = pairs.filter(|([item, day], [sold, sold_day, _])| {
        item == sold && days[*day as usize][1] == days[*sold_day as usize][1]
    });
    assert_eq!(found, expected.count() as i64);
}

#[test]
fn relations_without_rows_join() {
    let mut query = Query::default();
    let (some, [key, _]) = relation(&mut query, "some", [5, 5], &[[1, 1], [2, 2]]);
    let (none, [other, _]) = relation(&mut query, "none", [5, 5], &[]);
    let (found, _) = counted(query, vec![some, none], vec![(key, other)]);
    assert_eq!(found, 0);
}

/// A hundred relations in a chain and a hundred around the first: each is found by a key of its own, whatever their number.
#[test]
fn many_relations_hang_where_their_keys_find_them() {
    const MANY: usize = 100;
    let rows: Vec<[i64; 2]> = (0..20).map(|i| [i, (i * 7 + 3) % 20]).collect();
    for is_chain in [true, false] {
        let mut query = Query::default();
        let (first, [_, next]) = relation(&mut query, "r0", [20, 20], &rows);
        let (mut inputs, mut equal) = (vec![first], vec![]);
        let mut from = next;
        for i in 1..=MANY {
            let (rel, [key, next]) = relation(&mut query, &format!("r{i}"), [20, 20], &rows);
            inputs.push(rel);
            equal.push((from, key));
            if is_chain {
                from = next;
            }
        }
        let (count, _) = counted(query, inputs, equal);
        assert_eq!(count, 20);
    }
}

/// Posts, remarks and votes of the same people, of which nothing but their number is asked: no two of them are multiplied.
#[test]
fn matches_are_counted_before_they_are_joined() {
    let rows = |many: i64, step: i64| -> Vec<[i64; 2]> {
        (0..many).map(|i| [i * step % 50, i * 3 % 11]).collect()
    };
    let (posts, remarks, votes) = (rows(3_000, 7), rows(2_000, 3), rows(1_000, 11));
    let mut query = Query::default();
    let (post, [of_post, _]) = relation(&mut query, "post", [50, 11], &posts);
    let (remark, [of_remark, _]) = relation(&mut query, "remark", [50, 11], &remarks);
    let (vote, [of_vote, _]) = relation(&mut query, "vote", [50, 11], &votes);
    let equal = vec![(of_post, of_remark), (of_remark, of_vote)];
    let (found, program) = counted(query, vec![post, remark, vote], equal);
    let of = |rows: &[[i64; 2]], person: i64| rows.iter().filter(|row| row[0] == person).count();
    let expected: usize = (0..50)
        .map(|person| of(&posts, person) * of(&remarks, person) * of(&votes, person))
        .sum();
    assert_eq!(found, expected as i64);
    assert!(
        program.contains("fold by krao(vote.0): count(*)"),
        "{program}"
    );
    assert!(program.contains("sum(copies)"), "{program}");
}

#[test]
fn a_join_of_more_rows_than_64_bits_count_is_refused() {
    for (many, is_counted) in [(3, true), (4, false)] {
        let mut query = Query::default();
        let (mut inputs, mut equal) = (vec![], vec![]);
        let rows = vec![[1]; 70_000];
        let mut before = None;
        for i in 0..many {
            let (rel, [key]) = relation(&mut query, &format!("r{i}"), [2], &rows);
            equal.extend(before.map(|before| (before, key)));
            inputs.push(rel);
            before = Some(key);
        }
        let (found, _) = count(query, inputs, equal);
        match found {
            Ok(found) => assert_eq!((found, is_counted), (70_000i64.pow(3), true)),
            Err(e) => assert_eq!(
                (e.to_string().as_str(), is_counted),
                ("the number of rows of a join does not fit its type", false)
            ),
        }
    }
}

/// `input` with the rows alone whose value of `var` is 0.
fn zero(query: &Query, input: Rel, var: usize) -> Rel {
    let zero = Expr::literal(Literal::Int(0), &DataType::Int64).unwrap();
    Rel::Filter {
        predicate: compare(Compare::Eq, query.expr(var), zero).unwrap(),
        input: Box::new(input),
    }
}

/// A sale names a shop and a customer in the same town, and asked are the towns of a region. The town of the customer has no place
/// in the tree, as towns hang below shops: but customers of other towns are left out before sales look for them.
#[test]
fn few_values_reduce_relations_across_the_tree() {
    let sales: Vec<[i64; 2]> = (0..3_000).map(|i| [i * 7 % 200, i * 31 % 600]).collect();
    let shops: Vec<[i64; 2]> = (0..200).map(|i| [i, i * 3 % 20]).collect();
    let customers: Vec<[i64; 2]> = (0..600).map(|i| [i, i * 11 % 20]).collect();
    let towns: Vec<[i64; 2]> = (0..20).map(|i| [i, i % 5]).collect();
    for order in std::iter::once(None).chain((0..20).map(Some)) {
        let mut query = Query::default();
        query.any_order = order;
        let (sale, [shop, customer]) = relation(&mut query, "sale", [200, 600], &sales);
        let (shop_rel, [shop_key, shop_town]) = relation(&mut query, "shop", [200, 20], &shops);
        let (customer_rel, [customer_key, town]) =
            relation(&mut query, "customer", [600, 20], &customers);
        let (town_rel, [town_key, region]) = relation(&mut query, "town", [20, 5], &towns);
        let town_rel = zero(&query, town_rel, region);
        let equal = vec![
            (shop, shop_key),
            (customer, customer_key),
            (town, shop_town),
            (shop_town, town_key),
        ];
        let inputs = vec![sale, shop_rel, customer_rel, town_rel];
        let (found, program) = counted(query, inputs, equal);
        let expected = sales.iter().filter(|[shop, customer]| {
            let town = shops[*shop as usize][1];
            town == customers[*customer as usize][1] && towns[town as usize][1] == 0
        });
        assert_eq!(found, expected.count() as i64, "{order:?}\n{program}");
        let mut lines = program.lines().filter(|line| line.contains("hadamard"));
        let reduced = lines.any(|line| line.contains("by (customer.1)"));
        assert!(order.is_some() || reduced, "{program}");
    }
}

/// Of the customers few are left by their address: their marks, of which there are more than customers, are read afterwards, although
/// the predicates of the marks leave fewer rows.
#[test]
fn what_is_larger_than_its_parent_is_made_last() {
    let sales: Vec<[i64; 1]> = (0..3_000).map(|i| [i * 31 % 600]).collect();
    let customers: Vec<[i64; 3]> = (0..600).map(|i| [i, i % 60, i * 7 % 2_000]).collect();
    let addresses: Vec<[i64; 2]> = (0..60).map(|i| [i, i % 5]).collect();
    let marks: Vec<[i64; 3]> = (0..2_000).map(|i| [i, i % 4, i % 3]).collect();
    let mut query = Query::default();
    let (sale, [buyer]) = relation(&mut query, "sale", [600], &sales);
    let (customer, [key, address, mark]) =
        relation(&mut query, "customer", [600, 60, 2_000], &customers);
    let (address_rel, [address_key, town]) = relation(&mut query, "address", [60, 5], &addresses);
    let (mark_rel, [mark_key, one, other]) = relation(&mut query, "mark", [2_000, 4, 3], &marks);
    let address_rel = zero(&query, address_rel, town);
    let mark_rel = zero(&query, mark_rel, one);
    let mark_rel = zero(&query, mark_rel, other);
    let equal = vec![(buyer, key), (address, address_key), (mark, mark_key)];
    let inputs = vec![sale, customer, address_rel, mark_rel];
    let (found, program) = counted(query, inputs, equal);
    let expected = sales.iter().filter(|[buyer]| {
        let [_, address, mark] = customers[*buyer as usize];
        address % 5 == 0 && mark % 4 == 0 && mark % 3 == 0
    });
    assert_eq!(found, expected.count() as i64);
    let made = |name: &str| program.find(&format!("join hash table by ({name}.0)"));
    assert!(made("address") < made("mark"), "{program}");
    assert!(made("address").is_some(), "{program}");
}
