//! Plan distr: a node's instance has the rows of a table that its own blocks refer to, and where blocks lie beside
//! what they refer to, nearly all of these come from its own node.

mod runtime;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{
    Execution, Executor, Fold, Function, NumaPolicy, Output, Prepared, Query, Rel, Runtime, Scan,
    Type,
};
use futures::executor::block_on;
use table::{Catalog, Definition, ForeignKey, Loader, Table, create};

const NODES: usize = 4;
/// Blocks of the parent and rows of each.
const BLOCKS: i64 = 16;
const ROWS: i64 = 1_000;
/// Rows of the child for each of the parent's.
const EACH: i64 = 4;

fn ints(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// A parent (key, value) and a child (key, value), both in the order of the key; some of the child's keys are NULL,
/// some name no row of the parent. Its blocks lie beside the parent's if it `refers` to it, or else in turn.
fn tables(refers: bool) -> (Arc<Table>, Arc<Table>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = store::Options::default();
    options.pool.nodes = vec![None; NODES];
    let store = store::Store::create(folder.path().join("b.atoll"), &options).unwrap();
    let batch = |keys: Vec<Option<i64>>| {
        let values = keys
            .iter()
            .map(|key| Some(key.unwrap_or(7) * 3))
            .collect::<Vec<_>>();
        RecordBatch::try_from_iter([("key", ints(keys)), ("value", ints(values))]).unwrap()
    };
    let keys = |block: i64| (block * ROWS..(block + 1) * ROWS).map(Some).collect();
    let parent = (0..BLOCKS).map(|block| batch(keys(block)));
    let key = |row: i64| match row % 50 {
        0 => None,
        // A little further on, so that some blocks refer to two nodes, and the last ones to nobody.
        _ => Some(row / EACH + ROWS / 8),
    };
    let child = (0..BLOCKS * EACH).map(|block| {
        let rows = block * ROWS..(block + 1) * ROWS;
        batch(rows.map(key).collect())
    });
    let mut tx = store.begin().unwrap();
    let fields = ["key", "value"].map(|name| Field::new(name, DataType::Int64, true));
    let schema = Schema::new(fields.to_vec());
    for (name, blocks) in [
        ("parent", parent.collect::<Vec<_>>()),
        ("child", child.collect()),
    ] {
        let mut definition = Definition::from_schema(name, &schema).unwrap();
        if refers && name == "child" {
            definition.foreign_keys = vec![ForeignKey {
                columns: vec![0],
                parent: "parent".into(),
                parent_columns: vec!["key".into()],
            }];
        }
        create(&mut tx, &definition).unwrap();
        let loader = block_on(Loader::new(tx, name)).unwrap();
        for (ordinal, block) in (0..).zip(blocks) {
            loader.block(ordinal, &[block]).unwrap();
        }
        tx = block_on(loader.finish()).unwrap().0;
    }
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let table = |name| tables.get(name).unwrap().clone();
    (table("parent"), table("child"), folder)
}

fn int() -> Type {
    let ty = Type::of(&DataType::Int64, true).unwrap();
    ty.within((-1 << 20, 1 << 20))
}

fn scan(query: &mut Query, name: &str, table: &Arc<Table>) -> (Rel, usize, usize) {
    let key = query.add(format!("{name}.key"), int());
    let value = query.add(format!("{name}.value"), int());
    let scan = Scan {
        table: table.clone(),
        alias: name.into(),
        columns: vec![(key, 0), (value, 1)],
        parts: vec![],
        row_ids: None,
        filters: vec![],
        shown: vec![],
        expected: table.rows() as f64,
    };
    (Rel::Scan(scan), key, value)
}

/// What is asked of both.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    /// Sums of the child's values by the parent's key, which are groups by its rows.
    ByRow,
    /// One sum over both tables' values.
    Inner,
    /// The same, with the rows of the child that have no parent.
    Left,
    /// The child's rows that have a parent, or that have none.
    Semi { anti: bool },
}

fn query(ask: Ask, parent: &Arc<Table>, child: &Arc<Table>) -> Prepared {
    let mut query = Query::default();
    let (left, key, value) = scan(&mut query, "c", child);
    let (right, other, mut more) = scan(&mut query, "p", parent);
    let (equal, residual) = (vec![(key, other)], vec![]);
    let input = match ask {
        Ask::ByRow | Ask::Inner => Rel::Join {
            inputs: vec![left, right],
            equal,
            residual,
        },
        Ask::Left => {
            let or_null = query.add("value or NULL", int());
            let outer = vec![(more, or_null)];
            more = or_null;
            Rel::Left {
                left: Box::new(left),
                right: Box::new(right),
                equal,
                residual,
                outer,
            }
        }
        Ask::Semi { anti } => Rel::Semi {
            input: Box::new(left),
            other: Box::new(right),
            equal,
            residual,
            anti,
        },
    };
    let long = Type::of(&DataType::Int64, true).unwrap();
    let [count, first, second] = ["count", "first", "second"].map(|n| query.add(n, long.clone()));
    let fold = |var, function, arg| Fold { var, function, arg };
    let mut folds = vec![
        fold(count, Function::Count, None),
        fold(first, Function::Sum, Some(value)),
    ];
    let mut vars = vec![count, first];
    let mut keys = vec![];
    if !matches!(ask, Ask::Semi { .. }) {
        folds.push(fold(second, Function::Sum, Some(more)));
        vars.push(second);
    }
    if ask == Ask::ByRow {
        keys.push(other);
        vars.push(other);
    }
    let root = Rel::Fold {
        input: Box::new(input),
        keys,
        folds,
    };
    let fields = vars
        .iter()
        .map(|var| Field::new(format!("c{var}"), DataType::Int64, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    engine::prepare(query, root, Output { vars, schema }).unwrap()
}

/// The answer's rows, sorted, and what is told.
fn run(
    query: Prepared,
    runtime: &Runtime,
    execution: Execution,
) -> (Vec<Vec<Option<i64>>>, Vec<String>) {
    let runs = runtime.clone();
    let run = async move { query.run_by(&runs, &execution).await };
    let (batches, told) = runtime.workers.block_on(run).unwrap();
    let mut rows = Vec::new();
    for batch in &batches {
        let columns = batch
            .columns()
            .iter()
            .map(|c| c.as_primitive::<Int64Type>());
        let columns: Vec<_> = columns.collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let value = |c: &&Int64Array| c.is_valid(row).then(|| c.value(row));
            columns.iter().map(value).collect::<Vec<_>>()
        }));
    }
    rows.sort();
    (rows, told)
}

/// Rows that each node has of the table, and bytes of them by node and where they were collected.
fn kept(told: &[String]) -> (Vec<u64>, Vec<[u64; NODES]>) {
    let number = |word: &str| word.parse::<u64>().ok();
    let lines = told
        .iter()
        .filter(|line| line.contains(" rows of a join hash table: "));
    let line = |line: &String| {
        let (rows, from) = line.split_once(" rows of a join hash table: ").unwrap();
        let rows = rows.split("has ").nth(1).unwrap().split(' ').next();
        let mut bytes = [0; NODES];
        for part in from.split(", ") {
            let numbers: Vec<u64> = part.split(' ').filter_map(number).collect();
            bytes[numbers[1] as usize] = numbers[0];
        }
        (number(rows.unwrap()).unwrap(), bytes)
    };
    lines.map(line).unzip()
}

fn distr(executor: Executor) -> Execution {
    let mut execution = Execution::by(executor);
    execution.numa_policy = NumaPolicy::Distr;
    execution
}

#[test]
fn a_node_has_the_rows_that_it_refers_to_and_they_come_from_itself() {
    // The share of what nodes take of tables that other nodes collected, where blocks lie in turn and by key.
    let shares = [false, true].map(|refers| {
        let (parent, child, _folder) = tables(refers);
        let runtime = runtime::on("4x1", NODES);
        let (_, told) = run(
            query(Ask::Inner, &parent, &child),
            &runtime,
            distr(Executor::Fused),
        );
        let (rows, bytes) = kept(&told);
        assert_eq!(rows.len(), NODES, "{told:#?}");
        let most = parent.rows() / NODES as u64 * 5 / 4;
        assert!(
            rows.iter().all(|rows| *rows > 0 && *rows <= most),
            "{told:#?}"
        );
        let all: u64 = bytes.iter().flatten().sum();
        let own: u64 = (0..NODES).map(|node| bytes[node][node]).sum();
        // 16 bytes a row.
        assert_eq!(all, rows.iter().sum::<u64>() * 16);
        // Pages are read by their own nodes alone.
        let traffic = &runtime.traffic;
        assert_eq!(traffic.local(), traffic.total());
        (all - own) as f64 / all as f64
    });
    assert!(shares[0] > 0.6, "{shares:?}");
    assert!(shares[1] < 0.15, "{shares:?}");
}

#[test]
fn answers_are_those_of_whole_tables() {
    for refers in [false, true] {
        let (parent, child, _folder) = tables(refers);
        for ask in [
            Ask::ByRow,
            Ask::Inner,
            Ask::Left,
            Ask::Semi { anti: false },
            Ask::Semi { anti: true },
        ] {
            let one = runtime::on("4x1", NODES);
            let (expected, _) = run(query(ask, &parent, &child), &one, Execution::default());
            assert!(!expected.is_empty() && expected[0][0] > Some(0), "{ask:?}");
            for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
                let runtime = runtime::on("4x2", 2 * NODES);
                let asked = query(ask, &parent, &child);
                let (rows, told) = run(asked, &runtime, distr(executor));
                assert_eq!(rows, expected, "{ask:?}, {executor:?}, {told:#?}");
                assert_eq!(kept(&told).0.len(), NODES, "{ask:?}: {told:#?}");
            }
        }
    }
}

#[test]
fn whoever_may_need_any_row_has_the_whole_table() {
    let (parent, child, _folder) = tables(true);
    let mut query = Query::default();
    let (left, key, _) = scan(&mut query, "c", &child);
    let (right, other, _) = scan(&mut query, "p", &parent);
    // What is looked for is a group's key, and groups are on no node in particular.
    let long = Type::of(&DataType::Int64, true).unwrap();
    let count = query.add("count", long);
    let groups = Rel::Fold {
        input: Box::new(left),
        keys: vec![key],
        folds: vec![Fold {
            var: count,
            function: Function::Count,
            arg: None,
        }],
    };
    let root = Rel::Semi {
        input: Box::new(groups),
        other: Box::new(right),
        equal: vec![(key, other)],
        residual: vec![],
        anti: false,
    };
    let vars = vec![key, count];
    let fields = vars
        .iter()
        .map(|var| Field::new(format!("c{var}"), DataType::Int64, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let asked = engine::prepare(query, root, Output { vars, schema }).unwrap();
    let runtime = runtime::on("4x1", NODES);
    let (rows, told) = run(asked, &runtime, distr(Executor::Fused));
    assert!(kept(&told).0.is_empty(), "{told:#?}");
    let expected = BLOCKS * ROWS - ROWS / 8;
    assert_eq!(rows.len() as i64, expected);
}
