//! The first rows of groups, which are found without a sort, are those that sorting all rows finds, by every executor,
//! spilled or not.

mod runtime;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use engine::{
    Execution, Executor, Fold, Function, Key, Output, Prepared, Query, Rel, RowNumbers, RowOrder,
    Runtime, Type, Var,
};

const ROWS: i64 = 6_000;

/// Floats, and what each is in their order.
const FLOATS: [(f64, u8); 6] = [
    (f64::NAN, 4),
    (0.0, 1),
    (f64::NEG_INFINITY, 0),
    (-0.0, 1),
    (1.5, 2),
    (f64::INFINITY, 3),
];

/// A row; its `id` is unique.
#[derive(Clone, Debug)]
struct Row {
    key: Option<i64>,
    id: i64,
    value: Option<i64>,
    text: Option<String>,
    float: (f64, u8),
    counts: Option<bool>,
}

fn rows() -> Vec<Row> {
    let row = |i: i64| Row {
        key: (i % 17 > 0).then_some(i * 31 % 97),
        id: i * 7919 % ROWS,
        value: (i % 11 > 0).then_some(i * 37 % 50),
        text: (i % 13 > 0).then(|| format!("the text number {}", i * 131 % 500)),
        float: FLOATS[(i * 7 % 6) as usize],
        counts: (i % 5 > 0).then_some(i % 3 > 0),
    };
    (0..ROWS).map(row).collect()
}

#[derive(Clone, Copy, Debug)]
enum Column {
    Key,
    Id,
    Value,
    Text,
    Float,
}

/// A key of an order: the column, whether greater values come first, and whether NULLs do.
type Sort = (Column, bool, bool);

fn by_value<T: PartialOrd>(a: Option<T>, b: Option<T>, descending: bool, nulls: bool) -> Ordering {
    let null = if nulls {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, _) => null,
        (_, None) => null.reverse(),
        (Some(a), Some(b)) if descending => b.partial_cmp(&a).unwrap(),
        (Some(a), Some(b)) => a.partial_cmp(&b).unwrap(),
    }
}

fn compared(a: &Row, b: &Row, sorts: &[Sort]) -> Ordering {
    let by = |(column, descending, nulls): &Sort| match column {
        Column::Key => by_value(a.key, b.key, *descending, *nulls),
        Column::Id => by_value(Some(a.id), Some(b.id), *descending, *nulls),
        Column::Value => by_value(a.value, b.value, *descending, *nulls),
        Column::Text => by_value(a.text.as_ref(), b.text.as_ref(), *descending, *nulls),
        Column::Float => by_value(Some(a.float.1), Some(b.float.1), *descending, *nulls),
    };
    sorts
        .iter()
        .map(by)
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// What is asked for: the groups, the order of their rows, how many of these, and whether some rows do not count.
#[derive(Clone, Debug)]
struct Case {
    groups: Vec<Column>,
    sorts: Vec<Sort>,
    most: usize,
    only: bool,
    /// What the numbers of rows are.
    numbers: RowNumbers,
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The rows that sorting finds.
fn wanted(case: &Case, rows: &[Row]) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows
        .iter()
        .filter(|row| !case.only || row.counts == Some(true))
    {
        let key = case.groups.iter().map(|column| match column {
            Column::Key => format!("{:?}", row.key),
            Column::Text => format!("{:?}", row.text),
            other => panic!("groups by {other:?}"),
        });
        groups.entry(key.collect()).or_default().push(row);
    }
    let mut all = Vec::new();
    for mut group in groups.into_values() {
        group.sort_by(|a, b| compared(a, b, &case.sorts));
        let mut rank = 1;
        for (place, row) in group.iter().enumerate() {
            let is_tie = place > 0 && compared(group[place - 1], row, &case.sorts).is_eq();
            rank = match case.numbers {
                RowNumbers::Rows => place + 1,
                _ if is_tie => rank,
                RowNumbers::Ranks => place + 1,
                RowNumbers::DenseRanks => rank + usize::from(place > 0),
            };
            if rank > case.most {
                break;
            }
            let number = rank;
            let (key, value, words) = (text(row.key), text(row.value), text(row.text.as_ref()));
            all.push(format!("{}|{key}|{value}|{words}|{number}", row.id));
        }
    }
    all.sort();
    all
}

fn order_of(case: &Case, var: impl Fn(&Column) -> Var, counts: Var) -> RowOrder {
    let sorts: Vec<Key> = case
        .sorts
        .iter()
        .map(|(column, descending, nulls_first)| Key {
            var: var(column),
            descending: *descending,
            nulls_first: *nulls_first,
        })
        .collect();
    let order = RowOrder::new(&sorts, case.only.then_some(counts), case.most).unwrap();
    match case.numbers {
        RowNumbers::Rows => order,
        RowNumbers::Ranks => order.with_ties(),
        RowNumbers::DenseRanks => order.with_dense_ranks(),
    }
}

fn prepared(case: &Case, rows: &[Row]) -> Arc<Prepared> {
    let mut query = Query::default();
    let mut columns: Vec<(Var, &str, ArrayRef)> = Vec::new();
    let mut add = |name: &'static str, array: ArrayRef| -> Var {
        let ty = Type::of(array.data_type(), array.null_count() > 0).unwrap();
        let var = query.add(name, ty);
        columns.push((var, name, array));
        var
    };
    let keys = rows.iter().map(|row| row.key);
    let key = add("key", Arc::new(Int64Array::from_iter(keys)));
    let ids = rows.iter().map(|row| row.id);
    let id = add("id", Arc::new(Int64Array::from_iter_values(ids)));
    let values = rows.iter().map(|row| row.value);
    let value = add("value", Arc::new(Int64Array::from_iter(values)));
    let texts = rows.iter().map(|row| row.text.as_deref());
    let words = add("text", Arc::new(StringViewArray::from_iter(texts)));
    let floats = rows.iter().map(|row| row.float.0);
    let float = add("float", Arc::new(Float64Array::from_iter_values(floats)));
    let counts = rows.iter().map(|row| row.counts);
    let counts = add("counts", Arc::new(BooleanArray::from_iter(counts)));
    let var = |column: &Column| match column {
        Column::Key => key,
        Column::Id => id,
        Column::Value => value,
        Column::Text => words,
        Column::Float => float,
    };
    let order = order_of(case, var, counts);
    let groups = case.groups.iter().map(var).collect();
    let vars = columns.iter().map(|(var, _, _)| *var).collect();
    let batch = columns
        .into_iter()
        .map(|(_, name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(batch).unwrap();
    let mut folds: Vec<Fold> = [id, key, value, words]
        .into_iter()
        .map(|arg| Fold {
            var: query.add("first", query.ty(arg).clone().nullable(true)),
            function: Function::First(order),
            arg: Some(arg),
        })
        .collect();
    folds.push(Fold {
        var: query.add("number", Type::of(&DataType::Int64, false).unwrap()),
        function: Function::RowNumber(order),
        arg: None,
    });
    let vars_out: Vec<Var> = folds.iter().map(|fold| fold.var).collect();
    let root = Rel::Fold {
        input: Box::new(Rel::Values { vars, batch }),
        keys: groups,
        folds,
    };
    let field = |var: &Var| Field::new(format!("c{var}"), query.ty(*var).data.clone(), true);
    let schema = Arc::new(Schema::new(vars_out.iter().map(field).collect::<Vec<_>>()));
    let output = Output {
        vars: vars_out,
        schema,
    };
    Arc::new(engine::prepare(query, root, output).unwrap())
}

fn found(prepared: &Arc<Prepared>, runtime: &Runtime, execution: &Execution) -> Vec<String> {
    let (prepared, own, execution) = (prepared.clone(), runtime.clone(), execution.clone());
    let run = async move { prepared.run_by(&own, &execution).await };
    let (batches, _) = runtime.workers.block_on(run).unwrap();
    let mut all = vec![];
    for batch in &batches {
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let columns: Vec<_> = columns.collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            all.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    all.sort();
    all
}

fn cases() -> Vec<Case> {
    let id = |descending| (Column::Id, descending, false);
    let orders = [
        vec![id(false)],
        vec![id(true)],
        vec![(Column::Value, true, true), id(false)],
        vec![(Column::Value, false, false), id(true)],
        vec![(Column::Text, false, true), id(false)],
        vec![
            (Column::Float, true, false),
            (Column::Text, true, false),
            id(false),
        ],
    ];
    let groups = [
        vec![Column::Key],
        vec![Column::Text],
        vec![Column::Key, Column::Text],
        vec![],
    ];
    let mut cases = Vec::new();
    for groups in &groups {
        for sorts in &orders {
            for (most, only) in [(1, false), (3, true), (3, false), (40, false)] {
                cases.push(Case {
                    groups: groups.clone(),
                    sorts: sorts.clone(),
                    most,
                    only,
                    numbers: RowNumbers::Rows,
                });
            }
        }
        for sort in [
            (Column::Value, true, true),
            (Column::Text, true, false),
            (Column::Float, false, false),
            (Column::Key, false, false),
        ] {
            for most in [1, 2, 9] {
                for numbers in [RowNumbers::Ranks, RowNumbers::DenseRanks] {
                    cases.push(Case {
                        groups: groups.clone(),
                        sorts: vec![sort],
                        most,
                        only: false,
                        numbers,
                    });
                }
            }
        }
    }
    cases
}

#[test]
fn the_first_rows_of_groups_are_those_of_a_sort() {
    let runtime = runtime::on("2x1", 2);
    let rows = rows();
    for case in cases() {
        let prepared = prepared(&case, &rows);
        let wanted = wanted(&case, &rows);
        for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
            let mut execution = Execution::by(executor);
            let own = found(&prepared, &runtime, &execution);
            assert_eq!(own, wanted, "{case:?}, {executor:?}");
            execution.spill = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).into());
            execution.max_rows_before_spill = Some(60);
            let own = found(&prepared, &runtime, &execution);
            assert_eq!(own, wanted, "{case:?}, {executor:?}, spilled");
        }
        assert_eq!(runtime.budget.used(), 0, "{case:?}");
    }
}

/// A group without a row that counts has no first row: its values are NULL, or it is not there.
#[test]
fn groups_may_have_no_row_that_counts() {
    let runtime = runtime::on("2x1", 2);
    let mut rows = rows();
    rows.truncate(40);
    for row in &mut rows {
        row.counts = Some(row.key.is_some() && row.id % 2 > 0).filter(|_| row.value.is_some());
    }
    let mut case = Case {
        groups: vec![Column::Key],
        sorts: vec![(Column::Id, false, false)],
        most: 2,
        only: true,
        numbers: RowNumbers::Rows,
    };
    let execution = Execution::default();
    let some = wanted(&case, &rows);
    assert_eq!(found(&prepared(&case, &rows), &runtime, &execution), some);
    case.most = 1;
    let some = wanted(&case, &rows);
    let all = found(&prepared(&case, &rows), &runtime, &execution);
    let (without, with): (Vec<String>, Vec<String>) =
        all.into_iter().partition(|row| row.starts_with("||||"));
    assert_eq!(with, some);
    assert!(!without.is_empty());
}
