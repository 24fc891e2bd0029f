//! What the keys of finished join tables keep other scans from reading, and how many rows joins have in whatever order
//! relations are joined; and that no answer changes by it.

mod counted;
mod runtime;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};
use counted::counted;
use engine::{
    Compare, Execution, Executor, Expr, Fold, Function, Key, Literal, NumaPolicy, ProfileCollector,
    Query, Rel, Runtime, Scan, Type, Var, WindowFold, WindowFunction, compare,
};
use table::{Catalog, Definition, create, insert};

/// A stored table of whole numbers, or with texts for one of them, and its rows.
struct Stored {
    name: &'static str,
    table: Arc<table::Table>,
    rows: RecordBatch,
}

type Columns = Vec<Vec<Option<i64>>>;

fn stored(all: Vec<(&'static str, Columns)>) -> (Vec<Stored>, tempfile::TempDir) {
    stored_with(all, |_, _| false)
}

/// The same with texts where `is_text` says so of a table and the number of its column.
fn stored_with(
    all: Vec<(&'static str, Columns)>,
    is_text: impl Fn(&str, usize) -> bool,
) -> (Vec<Stored>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = store::Options::default();
    options.pool.nodes = vec![None; 2];
    let store = store::Store::create(folder.path().join("t.atoll"), &options).unwrap();
    let mut batches = Vec::new();
    for (name, columns) in all {
        let columns = columns.into_iter().enumerate().map(|(at, values)| {
            let text = |value: &Option<i64>| value.map(|value| format!("{value:015}"));
            let array: ArrayRef = if is_text(name, at) {
                Arc::new(StringViewArray::from_iter(values.iter().map(text)))
            } else {
                Arc::new(Int64Array::from(values))
            };
            (format!("c{at}"), array, true)
        });
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut tx = store.begin().unwrap();
        let definition = Definition::from_schema(name, &batch.schema()).unwrap();
        create(&mut tx, &definition).unwrap();
        let rows = std::slice::from_ref(&batch);
        let (tx, _) = futures::executor::block_on(insert(tx, name, rows)).unwrap();
        tx.commit().unwrap();
        batches.push((name, batch));
    }
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let found = batches.into_iter().map(|(name, rows)| Stored {
        name,
        table: tables.get(name).unwrap().clone(),
        rows,
    });
    (found.collect(), folder)
}

/// Rows below `rows`, each with what the functions make of its number.
fn columns(rows: i64, of: &[&dyn Fn(i64) -> Option<i64>]) -> Columns {
    of.iter().map(|f| (0..rows).map(f).collect()).collect()
}

fn type_of(data: &DataType) -> Type {
    match data {
        DataType::Int64 => int(),
        text => Type::of(text, true).unwrap(),
    }
}

fn int() -> Type {
    let ty = Type::of(&DataType::Int64, true).unwrap();
    ty.within((0, 1 << 22))
}

fn number(value: i64) -> Expr {
    Expr::literal(Literal::Int(value), &DataType::Int64).unwrap()
}

/// A relation of a table, read from the store or from memory, and its vectors.
fn relation(query: &mut Query, of: &Stored, is_stored: bool, expected: f64) -> (Rel, Vec<Var>) {
    let name = |at: usize| format!("{}.c{at}", of.name);
    let vars: Vec<Var> = (0..of.rows.num_columns())
        .map(|at| query.add(name(at), type_of(of.rows.column(at).data_type())))
        .collect();
    let rel = if is_stored {
        Rel::Scan(Scan {
            table: of.table.clone(),
            alias: of.name.into(),
            columns: vars.iter().copied().zip(0..).collect(),
            parts: vec![],
            row_ids: None,
            filters: vec![],
            shown: vec![],
            expected,
        })
    } else {
        Rel::Values {
            vars: vars.clone(),
            batch: of.rows.clone(),
        }
    };
    (rel, vars)
}

fn below(query: &Query, input: Rel, var: Var, end: i64) -> Rel {
    Rel::Filter {
        predicate: compare(Compare::Lt, query.expr(var), number(end)).unwrap(),
        input: Box::new(input),
    }
}

fn executions() -> Vec<Execution> {
    let mut all: Vec<Execution> = [Executor::Fused, Executor::Stream, Executor::Staged]
        .map(Execution::by)
        .to_vec();
    let mut each_node = Execution::by(Executor::Fused);
    each_node.numa_policy = NumaPolicy::Distr;
    all.push(each_node);
    all
}

/// What stands between a large table and the join with a few rows of another one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    Groups,
    Window,
    WindowByOther,
    LeftPreserved,
    LeftOther,
    FullOther,
    SemiInput,
    AntiInput,
    AntiOther,
    Limit,
    Union,
    Shared,
}

const BETWEEN: [(Between, bool); 12] = [
    (Between::Groups, true),
    (Between::Window, true),
    (Between::WindowByOther, false),
    (Between::LeftPreserved, true),
    (Between::LeftOther, true),
    (Between::FullOther, false),
    (Between::SemiInput, true),
    (Between::AntiInput, true),
    (Between::AntiOther, true),
    (Between::Limit, false),
    (Between::Union, true),
    (Between::Shared, false),
];

/// A relation, the vector of it that is joined with few rows, and one to sum.
type Made = (Rel, Var, Var);

/// `between` of the large relation, whose vectors are its number, its key and another one, and of a second large one.
fn relation_between(
    query: &mut Query,
    between: Between,
    large: (Rel, Vec<Var>),
    other: (Rel, Vec<Var>),
) -> Made {
    match between {
        Between::Groups => groups(query, large),
        Between::Window => window(query, large, 1),
        Between::WindowByOther => window(query, large, 2),
        Between::LeftPreserved | Between::LeftOther | Between::FullOther => {
            outer(query, between, large, other)
        }
        Between::SemiInput | Between::AntiInput => {
            semi(large, other, between == Between::AntiInput)
        }
        Between::AntiOther => semi(other, large, true),
        Between::Limit => limit(large),
        Between::Union => union(query, large, other),
        Between::Shared => shared(query, large),
    }
}

fn most(var: Var, of: Var) -> Vec<Fold> {
    vec![Fold {
        var,
        function: Function::Max,
        arg: Some(of),
    }]
}

fn groups(query: &mut Query, (input, vars): (Rel, Vec<Var>)) -> Made {
    let var = query.add("most", int());
    let rel = Rel::Fold {
        input: Box::new(input),
        keys: vec![vars[1]],
        folds: most(var, vars[0]),
    };
    (rel, vars[1], var)
}

/// The first three rows of each value of vector number `by`.
fn window(query: &mut Query, (input, vars): (Rel, Vec<Var>), by: usize) -> Made {
    let var = query.add("row", int());
    let order = Key {
        var: vars[0],
        descending: false,
        nulls_first: false,
    };
    let rel = Rel::Window {
        input: Box::new(input),
        partition: vec![vars[by]],
        order: vec![order],
        functions: vec![WindowFold {
            var,
            function: WindowFunction::RowNumber,
            arg: None,
        }],
    };
    (below(query, rel, var, 4), vars[1], vars[0])
}

fn outer(
    query: &mut Query,
    between: Between,
    (large, vars): (Rel, Vec<Var>),
    (other, others): (Rel, Vec<Var>),
) -> Made {
    let to = query.add("outer", int());
    let (large, other, residual) = (Box::new(large), Box::new(other), vec![]);
    if between == Between::LeftPreserved {
        let rel = Rel::Left {
            left: large,
            right: other,
            equal: vec![(vars[1], others[1])],
            residual,
            outer: vec![(others[0], to)],
        };
        return (rel, vars[1], to);
    }
    let (left, right, equal) = (other, large, vec![(others[1], vars[1])]);
    if between == Between::LeftOther {
        let outer = vec![(vars[0], to)];
        let rel = Rel::Left {
            left,
            right,
            equal,
            residual,
            outer,
        };
        return (rel, others[1], to);
    }
    let key = query.add("key", query.expr(others[1]).ty);
    let outer = vec![(others[1], key), (vars[0], to)];
    let rel = Rel::Full {
        left,
        right,
        equal,
        residual,
        outer,
    };
    (rel, key, to)
}

fn semi((input, vars): (Rel, Vec<Var>), (other, others): (Rel, Vec<Var>), anti: bool) -> Made {
    let rel = Rel::Semi {
        input: Box::new(input),
        other: Box::new(other),
        equal: vec![(vars[1], others[1])],
        residual: vec![],
        anti,
    };
    (rel, vars[1], vars[0])
}

fn limit((input, vars): (Rel, Vec<Var>)) -> Made {
    let order = Key {
        var: vars[0],
        descending: true,
        nulls_first: false,
    };
    let rel = Rel::Sort {
        input: Box::new(input),
        keys: vec![order],
        skip: 10,
        fetch: Some(40_000),
    };
    (rel, vars[1], vars[0])
}

fn union(
    query: &mut Query,
    (large, vars): (Rel, Vec<Var>),
    (other, others): (Rel, Vec<Var>),
) -> Made {
    let id = query.add("id", int());
    let key = query.add("key", query.expr(vars[1]).ty);
    let rel = Rel::Union {
        inputs: vec![
            (large, vec![vars[0], vars[1]]),
            (other, vec![others[0], others[1]]),
        ],
        vars: vec![id, key],
    };
    (rel, key, id)
}

/// Groups with two readers, one of which wants all rows.
fn shared(query: &mut Query, large: (Rel, Vec<Var>)) -> Made {
    let (groups, key, of) = groups(query, large);
    let groups = Arc::new(groups);
    let [first, second, all] = ["a", "b", "all"].map(|name| query.add(name, int()));
    let [own, others] = ["k", "l"].map(|name| query.add(name, query.expr(key).ty));
    let read = |to: Var, by: Var| Rel::Shared {
        input: groups.clone(),
        vars: vec![(of, to), (key, by)],
    };
    let total = Rel::Fold {
        input: Box::new(read(second, others)),
        keys: vec![],
        folds: most(all, second),
    };
    let residual = compare(Compare::Le, query.expr(first), query.expr(all));
    let rel = Rel::Join {
        inputs: vec![read(first, own), total],
        equal: vec![],
        residual: vec![residual.unwrap()],
    };
    (rel, own, first)
}

/// Rows of `between` with keys that few rows of a third table have.
fn run_between(
    tables: &[Stored],
    between: Between,
    is_stored: bool,
    runtime: &Runtime,
    execution: &Execution,
) -> ((i64, i64), String) {
    let mut query = Query::default();
    let (few, of_few) = relation(&mut query, &tables[0], is_stored, 30.0);
    let few = below(&query, few, of_few[1], 4);
    let large = relation(&mut query, &tables[1], is_stored, 70_000.0);
    let other = relation(&mut query, &tables[2], is_stored, 90_000.0);
    let (rel, key, of) = relation_between(&mut query, between, large, other);
    let join = Rel::Join {
        inputs: vec![few, rel],
        equal: vec![(of_few[0], key)],
        residual: vec![],
    };
    let (rows, sum, told) = counted(query, join, of, runtime, execution);
    ((rows, sum), told)
}

#[test]
fn keys_pass_what_loses_no_row_by_it() {
    let shuffled = |by: i64| move |i: i64| (i % 13 != 0).then_some(i * 7_919 % by);
    let some = |i: i64| Some(i);
    let all = vec![
        (
            "few",
            columns(70_000, &[&shuffled(9_001), &|i| Some(i % 700)]),
        ),
        (
            "large",
            columns(70_000, &[&some, &shuffled(8_009), &|i| Some(i % 90)]),
        ),
        (
            "other",
            columns(
                90_000,
                &[&some, &|i| Some(i * 31 % 12_007).filter(|key| key % 3 != 0)],
            ),
        ),
    ];
    let runtime = runtime::on("2x2", 4);
    for texts in [false, true] {
        let is_text = |name: &str, at| texts && at == usize::from(name != "few");
        let (tables, _folder) = stored_with(all.clone(), is_text);
        pass_or_not(&tables, &runtime, texts);
    }
}

/// What stands between passes the keys on or not, as [`BETWEEN`] says. Texts are not passed to who looks them up itself.
fn pass_or_not(tables: &[Stored], runtime: &Runtime, texts: bool) {
    let line = "scan of large: c1 among the keys of stage";
    for (between, passes) in BETWEEN {
        let plain = Execution::by(Executor::Fused);
        let (expected, _) = run_between(tables, between, false, runtime, &plain);
        assert!(expected.0 > 0, "{between:?}");
        for execution in executions() {
            let (found, told) = run_between(tables, between, true, runtime, &execution);
            assert_eq!(found, expected, "{between:?}, {execution:?}\n{told}");
            if execution.numa_policy != NumaPolicy::Distr {
                let is_own = matches!(
                    between,
                    Between::SemiInput | Between::AntiInput | Between::Union
                );
                let passes = passes && !(texts && is_own);
                assert_eq!(told.contains(line), passes, "{between:?}\n{told}");
            }
        }
    }
}

/// A table of a join, and the end of the values of its last column that are wanted.
type Node = (usize, Option<i64>);
/// Two columns that are equal, each of a relation by its number.
type Edge = ((usize, usize), (usize, usize));

/// A join of relations by numbers, in a good order or in any.
fn run_join(
    tables: &[Stored],
    (nodes, edges): (&[Node], &[Edge]),
    is_stored: bool,
    order: Option<u64>,
    runtime: &Runtime,
) -> ((i64, i64), u64, String) {
    let mut query = Query::default();
    query.any_order = order;
    let (mut inputs, mut all) = (vec![], vec![]);
    for (table, end) in nodes {
        let of = &tables[*table];
        let last = of
            .rows
            .columns()
            .last()
            .unwrap()
            .as_primitive::<Int64Type>();
        let is_wanted = |value: &i64| end.is_none_or(|end| *value < end);
        let rows = last.iter().flatten().filter(is_wanted).count() as f64;
        // A predicate of which nothing is known is expected to leave a fifth.
        let expected = if end.is_some() { 5.0 * rows } else { rows };
        let (mut rel, vars) = relation(&mut query, of, is_stored, expected);
        if let Some(end) = end {
            rel = below(&query, rel, vars[vars.len() - 1], *end);
        }
        inputs.push(rel);
        all.push(vars);
    }
    let equal = edges
        .iter()
        .map(|((a, x), (b, y))| (all[*a][*x], all[*b][*y]));
    let join = Rel::Join {
        inputs,
        equal: equal.collect(),
        residual: vec![],
    };
    let profile = Arc::new(ProfileCollector::default());
    let mut execution = Execution::by(Executor::Fused);
    execution.profile = Some(profile.clone());
    let (rows, sum, told) = counted(query, join, all[0][0], runtime, &execution);
    let found = (rows, sum);
    let kernels = profile.take().into_iter().flat_map(|record| record.kernels);
    let joined = kernels.filter(|kernel| kernel.last || kernel.name.starts_with("dot"));
    (found, joined.map(|kernel| kernel.rows).sum(), told)
}

/// Films with infos of a type and with a few keywords, and their casts: as the Join Order Benchmark has them.
fn films() -> (Vec<Stored>, tempfile::TempDir) {
    let some = |i: i64| Some(i);
    stored(vec![
        ("title", columns(70_000, &[&some, &|i| Some(i * 7 % 130)])),
        ("type", columns(20, &[&some, &some])),
        (
            "info",
            columns(
                140_000,
                &[&|i| Some(i * 31 % 70_000), &|i| Some(i / 7 % 20)],
            ),
        ),
        ("keyword", columns(3_000, &[&some, &some])),
        (
            "tagged",
            columns(
                100_000,
                &[&|i| Some(i * 17 % 70_000), &|i| {
                    (i % 19 != 0).then_some(i * 11 % 3_000)
                }],
            ),
        ),
        (
            "role",
            columns(
                210_000,
                &[&|i| Some(i * 13 % 70_000), &|i| Some(i * 3 % 4_000)],
            ),
        ),
        ("person", columns(4_000, &[&some, &|i| Some(i % 50)])),
    ])
}

#[test]
fn any_order_of_joins_has_about_as_many_rows() {
    let (tables, _folder) = films();
    let runtime = runtime::on("2x2", 4);
    let joins: [(&[Node], &[Edge]); 3] = [
        // A star of films: infos of a type, keywords, roles.
        (
            &[
                (0, None),
                (1, Some(1)),
                (2, None),
                (3, Some(210)),
                (4, None),
                (5, None),
            ],
            &[
                ((1, 0), (2, 1)),
                ((2, 0), (0, 0)),
                ((3, 0), (4, 1)),
                ((4, 0), (0, 0)),
                ((5, 0), (0, 0)),
            ],
        ),
        // A chain from keywords to persons, with films by way of equal columns only.
        (
            &[(3, Some(40)), (4, None), (5, None), (6, None)],
            &[((0, 0), (1, 1)), ((1, 0), (2, 0)), ((2, 1), (3, 0))],
        ),
        // Filtered at both ends.
        (
            &[
                (3, Some(120)),
                (4, None),
                (0, None),
                (5, None),
                (6, Some(1)),
            ],
            &[
                ((0, 0), (1, 1)),
                ((1, 0), (2, 0)),
                ((2, 0), (3, 0)),
                ((3, 1), (4, 0)),
            ],
        ),
    ];
    let mut is_kept = false;
    for (number, join) in joins.into_iter().enumerate() {
        let (expected, ..) = run_join(&tables, join, false, None, &runtime);
        assert!(expected.0 > 0);
        let mut all = Vec::new();
        for order in std::iter::once(None).chain((1..=20).map(Some)) {
            let (found, joined, told) = run_join(&tables, join, true, order, &runtime);
            assert_eq!(found, expected, "join {number}, order {order:?}\n{told}");
            is_kept |= told.contains(", read 2 times by stages ");
            all.push((joined, order, told));
        }
        let rows: Vec<u64> = all.iter().map(|(joined, ..)| *joined).collect();
        let least = rows.iter().min().copied().unwrap_or_default();
        let (most, order, told) = all.iter().max_by_key(|(joined, ..)| *joined).unwrap();
        assert!(
            *most <= 4 * least,
            "join {number}, order {order:?}: {most} rows, of all orders {rows:?}\n{told}"
        );
    }
    assert!(is_kept, "no rows are kept instead of read twice");
}

/// A relation that the join does not read first is reduced by what another pipeline found.
#[test]
fn the_report_says_which_keys_went_where() {
    let (tables, _folder) = films();
    let runtime = runtime::on("2x2", 4);
    let join: (&[Node], &[Edge]) = (
        &[(3, Some(2_000)), (4, None), (0, None), (5, None), (6, None)],
        &[
            ((0, 0), (1, 1)),
            ((1, 0), (2, 0)),
            ((2, 0), (3, 0)),
            ((3, 1), (4, 0)),
        ],
    );
    let told: Vec<String> = (1..=20)
        .map(|order| run_join(&tables, join, true, Some(order), &runtime).2)
        .collect();
    let lines = told.iter().flat_map(|told| told.lines());
    let mut lines = lines.filter(|line| line.contains("that others probe: "));
    assert!(
        lines.any(|line| line.ends_with(" rows passed")),
        "{told:#?}"
    );
}
