//! Chains of operators on random arrays: both models and workers give the same, and it is what the plain loops give.

use std::sync::Arc;

use array::expr::{BinaryOp, name, value};
use array::{
    Aggregate, Array, ArrayData, Attribute, Bound, Chunking, DataType, Decimal, Dimension,
    Function, Layout, Model, Plan, Region, Run, Scalar, Schema, Writer,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use workers::{Layout as Places, Workers};

use crate::model::{Cells, block, cells_of, fills, positions, region_in, store, wait};
use crate::plain::{Plain, folds};

/// An operator, with numbers that are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    Subarray(Vec<(u64, u64)>, bool),
    Between(Vec<(u64, u64)>),
    Filter(i64, u8),
    Transpose(usize),
    Slice(usize, u64),
    Apply(i64),
    Scalar(u8, i64),
    Opposite,
    Aggregate(u8),
    Regrid(Vec<u64>),
    Window(Vec<(u64, u64)>),
    VariableWindow(usize, u64, u64),
    Quantile(u8, usize),
    Histogram(u64, i64),
    Rechunk(Vec<u64>),
    Concat(usize),
    Elementwise(u8),
    Broadcast(usize),
    Join,
}

fn step() -> impl Strategy<Value = Step> {
    let parts = || prop::collection::vec((0..9u64, 0..9u64), 4);
    let few = || prop::collection::vec(1..4u64, 4);
    prop_oneof![
        3 => (parts(), any::<bool>()).prop_map(|(parts, whole)| Step::Subarray(parts, whole)),
        1 => parts().prop_map(Step::Between),
        2 => (-3..9i64, 0..6u8).prop_map(|(to, op)| Step::Filter(to, op)),
        1 => (0..4usize).prop_map(Step::Transpose),
        1 => (0..4usize, 0..9u64).prop_map(|(at, to)| Step::Slice(at, to)),
        1 => (-3..4i64).prop_map(Step::Apply),
        1 => (0..4u8, -2..4i64).prop_map(|(op, to)| Step::Scalar(op, to)),
        1 => Just(Step::Opposite),
        1 => any::<u8>().prop_map(Step::Aggregate),
        1 => few().prop_map(Step::Regrid),
        1 => prop::collection::vec((0..3u64, 0..3u64), 4).prop_map(Step::Window),
        2 => (0..4usize, 0..4u64, 0..4u64).prop_map(|(at, a, b)| Step::VariableWindow(at, a, b)),
        1 => (any::<u8>(), 1..4usize).prop_map(|(kept, points)| Step::Quantile(kept, points)),
        1 => (1..6u64, -3..5i64).prop_map(|(bins, low)| Step::Histogram(bins, low)),
        1 => few().prop_map(Step::Rechunk),
        1 => (0..4usize).prop_map(Step::Concat),
        1 => (0..4u8).prop_map(Step::Elementwise),
        1 => (0..4usize).prop_map(Step::Broadcast),
        1 => Just(Step::Join),
    ]
}

/// An array of 1 to 4 dimensions with a whole number that may be null and a float that may be NaN.
fn start(layout: Layout) -> impl Strategy<Value = (Schema, Vec<Vec<Scalar>>)> {
    let dimension = (prop_oneof![1 => Just(0u64), 8 => 1..7u64], 1..4u64);
    let whole = prop_oneof![5 => (-3..9i128).prop_map(Scalar::Int), 1 => Just(Scalar::Null)];
    let float = prop_oneof![9 => (-8..9i32).prop_map(|of| Scalar::Float(f64::from(of) / 2.0)), 1 => Just(Scalar::Float(f64::NAN))];
    let rows = prop::collection::vec((whole, float).prop_map(|(a, b)| vec![a, b]), 1..9);
    (prop::collection::vec(dimension, 1..5), rows).prop_map(move |(dimensions, rows)| {
        let dimensions = dimensions
            .into_iter()
            .enumerate()
            .map(|(at, (length, chunk))| {
                Dimension::integer(&format!("d{at}"), 5, length).chunk(chunk)
            });
        let attributes = vec![
            Attribute::new("a", DataType::I32).nullable(),
            Attribute::new("b", DataType::F64),
        ];
        let schema = Schema::new(dimensions.collect(), attributes)
            .unwrap()
            .with_layout(layout);
        (schema, rows)
    })
}

const COMPARISONS: [BinaryOp; 6] = [
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
];
const ARITHMETIC: [BinaryOp; 4] = [
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
];

fn all_functions(of: &str) -> Vec<Aggregate> {
    let named = |function, name: &str| Aggregate::new(function, of).named(name);
    vec![
        Aggregate::count().named("n"),
        named(Function::Count, "c"),
        named(Function::Sum, "s"),
        named(Function::Min, "lo"),
        named(Function::Max, "hi"),
        named(Function::Avg, "mean"),
    ]
}

/// `op` as the plain model has it.
fn compute(op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
    let (Some(x), Some(y)) = (a.to_f64(), b.to_f64()) else {
        return Scalar::Null;
    };
    match (op, a, b) {
        (BinaryOp::Add, Scalar::Int(a), Scalar::Int(b)) => Scalar::Int(a + b),
        (BinaryOp::Subtract, Scalar::Int(a), Scalar::Int(b)) => Scalar::Int(a - b),
        (BinaryOp::Multiply, Scalar::Int(a), Scalar::Int(b)) => Scalar::Int(a * b),
        (BinaryOp::Add, ..) => Scalar::Float(x + y),
        (BinaryOp::Subtract, ..) => Scalar::Float(x - y),
        (BinaryOp::Multiply, ..) => Scalar::Float(x * y),
        _ => Scalar::Float(x / y),
    }
}

/// Adds an operator to a plan, and does the same to the model. `None` where there is nothing to do it to.
#[expect(clippy::too_many_lines, reason = "a case for each operator")]
fn apply(step: &Step, plan: Plan, model: &Plain, schema: &Schema) -> Option<(Plan, Plain)> {
    let rank = model.dimensions.len();
    let names: Vec<&str> = schema.dimensions().iter().map(Dimension::name).collect();
    let coordinate = |at: usize, position: u64| -> Decimal {
        schema.dimensions()[at].coordinate(position).unwrap()
    };
    let shape = model.shape();
    let attribute = model.attributes[0].clone();
    let unsigned = schema
        .attributes()
        .iter()
        .any(|of| of.data_type() == DataType::U64);
    let bounds = |region: &Region, turned: bool| -> Vec<_> {
        region
            .ranges()
            .iter()
            .enumerate()
            .map(|(at, &(start, end))| {
                let (a, b) = (coordinate(at, start).into(), coordinate(at, end - 1).into());
                if turned { (b, a) } else { (a, b) }
            })
            .collect()
    };
    Some(match step {
        Step::Subarray(parts, flag) => {
            let region = region_in(&shape, parts);
            if region.is_empty() {
                return None;
            }
            let chunking = if *flag {
                Chunking::Inherited
            } else {
                Chunking::Regular
            };
            (
                plan.subarray_in(&bounds(&region, *flag), chunking),
                model.subarray(&region),
            )
        }
        Step::Between(parts) => {
            let region = region_in(&shape, parts);
            if region.is_empty() {
                return None;
            }
            (plan.between(&bounds(&region, true)), model.between(&region))
        }
        Step::Filter(to, op) => {
            let op = COMPARISONS[usize::from(*op) % 6];
            let holds = |order: Option<std::cmp::Ordering>| match (op, order) {
                (BinaryOp::Ne, order) => order.is_none_or(|of| of.is_ne()),
                (_, None) => false,
                (BinaryOp::Eq, Some(of)) => of.is_eq(),
                (BinaryOp::Lt, Some(of)) => of.is_lt(),
                (BinaryOp::Le, Some(of)) => of.is_le(),
                (BinaryOp::Gt, Some(of)) => of.is_gt(),
                (_, Some(of)) => of.is_ge(),
            };
            let condition = name(attribute).with(op, value(*to));
            let keep = |_: &[u64], values: &[Scalar]| {
                !values[0].is_null() && holds(values[0].order((*to).into()))
            };
            (plan.filter(condition), model.filter(keep))
        }
        Step::Transpose(by) => {
            let order: Vec<usize> = (0..rank).map(|at| (at + by) % rank).collect();
            let named: Vec<&str> = order.iter().map(|&at| names[at]).collect();
            (plan.transpose(&named), model.reordered(&order))
        }
        Step::Slice(at, to) if rank > 1 => {
            let at = at % rank;
            if shape[at] == 0 {
                return None;
            }
            let position = to % shape[at];
            (
                plan.slice(&[(names[at], coordinate(at, position))]),
                model.slice(at, position),
            )
        }
        Step::Slice(..) => return None,
        Step::Apply(by) => {
            let fresh = format!("x{}", model.attributes.len());
            let mut all = model.attributes.clone();
            all.insert(0, fresh.clone());
            let added = |at: &[u64], values: &[Scalar]| {
                let sum = compute(
                    BinaryOp::Multiply,
                    coordinate_first(schema, at[0]),
                    (*by).into(),
                );
                let sum = compute(BinaryOp::Add, sum, values[0]);
                [&[sum], values].concat()
            };
            if unsigned {
                return None;
            }
            let expr = name(names[0]) * value(*by) + name(attribute);
            let order: Vec<&str> = all.iter().map(String::as_str).collect();
            (
                plan.apply(&[(&fresh, expr)]).project(&order),
                model.with_values(&all, added),
            )
        }
        Step::Scalar(op, to) => {
            let op = ARITHMETIC[usize::from(*op)];
            if unsigned && (op != BinaryOp::Add || *to < 0) {
                return None;
            }
            let with = |_: &[u64], values: &[Scalar]| {
                values
                    .iter()
                    .map(|&of| compute(op, of, (*to).into()))
                    .collect()
            };
            (
                plan.scalar(op, value(*to)),
                model.with_values(&model.attributes, with),
            )
        }
        Step::Opposite if unsigned => return None,
        Step::Opposite => {
            let zero = |of: Scalar| match of {
                Scalar::Int(of) => Scalar::Int(-of),
                Scalar::Float(of) => Scalar::Float(-of),
                of => of,
            };
            let with = |_: &[u64], values: &[Scalar]| values.iter().map(|&of| zero(of)).collect();
            (plan.opposite(), model.with_values(&model.attributes, with))
        }
        Step::Aggregate(kept) => {
            let kept: Vec<usize> = (0..rank).rev().filter(|at| kept >> at & 1 == 1).collect();
            let by: Vec<&str> = kept.iter().map(|&at| names[at]).collect();
            let plan = plan.aggregate(&all_functions(&attribute), &by);
            if kept.is_empty() {
                let mut one =
                    model.grouped(vec![("i".to_owned(), 1)], &attribute, |_| vec![vec![0]]);
                one.cells.entry(vec![0]).or_insert_with(|| folds(&[]));
                return Some((plan, one));
            }
            let dimensions = kept
                .iter()
                .map(|&at| model.dimensions[at].clone())
                .collect();
            let group = |at: &[u64]| vec![kept.iter().map(|&of| at[of]).collect()];
            (plan, model.grouped(dimensions, &attribute, group))
        }
        Step::Regrid(blocks) => {
            let blocks = &blocks[..rank];
            let plan = plan.regrid(blocks, &all_functions(&attribute));
            let both = model.dimensions.iter().zip(blocks);
            let dimensions = both
                .map(|((name, length), block)| (name.clone(), length.div_ceil(*block)))
                .collect();
            let group = |at: &[u64]| {
                vec![
                    at.iter()
                        .zip(blocks)
                        .map(|(at, block)| at / block)
                        .collect(),
                ]
            };
            (plan, model.grouped(dimensions, &attribute, group))
        }
        Step::Window(around) => {
            let around = &around[..rank];
            let plan = plan.window(around, &all_functions(&attribute));
            let windows = model.grouped(model.dimensions.clone(), &attribute, |at| {
                // A cell is in the boxes of those that have it within so many before and after.
                let ranges = at.iter().zip(around).zip(&shape);
                let ranges = ranges.map(|((&at, &(before, after)), &length)| {
                    (at.saturating_sub(after), (at + before + 1).min(length))
                });
                positions(&Region::new(ranges))
            });
            let there = windows.filter(|at, _| model.cells.contains_key(at));
            (plan, there)
        }
        Step::VariableWindow(at, before, after) => {
            let at = at % rank;
            let (before, after) = (*before, *after);
            let all = all_functions(&attribute);
            (
                plan.variable_window(names[at], (before, after), &all),
                model.near(at, &attribute, before as usize, after as usize),
            )
        }
        Step::Quantile(kept, points) => {
            if names.contains(&"quantile") {
                return None;
            }
            let points = &["0.125", "0.5", "1"][..*points];
            let kept: Vec<usize> = (0..rank).rev().filter(|at| kept >> at & 1 == 1).collect();
            let by: Vec<&str> = kept.iter().map(|&at| names[at]).collect();
            let decimals: Vec<Decimal> = points.iter().map(|of| of.parse().unwrap()).collect();
            let floats: Vec<f64> = points.iter().map(|of| of.parse().unwrap()).collect();
            (
                plan.quantile(&attribute, &decimals, &by),
                model.quantiles(&kept, &attribute, &floats),
            )
        }
        Step::Histogram(bins, low) => {
            let low = *low as f64;
            let plan = plan.histogram(&attribute, *bins, Some((low, low + 4.0)));
            (plan, model.histogram(&attribute, *bins, (low, low + 4.0)))
        }
        Step::Rechunk(chunks) => (plan.rechunk(&chunks[..rank]), model.clone()),
        Step::Concat(at) => {
            let at = at % rank;
            (
                plan.clone().concat(plan, names[at]),
                model.concat(model, at),
            )
        }
        Step::Elementwise(op) => {
            let op = ARITHMETIC[usize::from(*op)];
            let with = |_: &[u64], values: &[Scalar]| {
                values.iter().map(|&of| compute(op, of, of)).collect()
            };
            (
                plan.clone().elementwise(op, plan),
                model.with_values(&model.attributes, with),
            )
        }
        Step::Broadcast(at) => {
            // The array plus its first hyperplane along a dimension.
            let at = at % rank;
            if shape[at] == 0 || unsigned {
                return None;
            }
            let mut ranges: Vec<_> = shape.iter().map(|&length| (0, length)).collect();
            ranges[at] = (0, 1);
            if ranges.contains(&(0, 0)) {
                return None;
            }
            let region = Region::new(ranges);
            let plane = model.subarray(&region);
            let mut sum = model.clone();
            sum.cells = model
                .cells
                .iter()
                .filter_map(|(position, values)| {
                    let mut below = position.clone();
                    below[at] = 0;
                    let other = plane.cells.get(&below)?;
                    let values = values
                        .iter()
                        .zip(other)
                        .map(|(&a, &b)| compute(BinaryOp::Add, a, b))
                        .collect();
                    Some((position.clone(), values))
                })
                .collect();
            let other = plan.clone().subarray(&bounds(&region, false));
            (plan.elementwise(BinaryOp::Add, other), sum)
        }
        Step::Join => {
            let mut all = model.attributes.clone();
            for name in &model.attributes {
                let mut name = name.clone();
                while all.contains(&name) {
                    name.push_str("_2");
                }
                all.push(name);
            }
            if all.len() > 8 {
                return None;
            }
            let twice = |_: &[u64], values: &[Scalar]| [values, values].concat();
            (plan.clone().join(plan), model.with_values(&all, twice))
        }
    })
}

/// The coordinate of a position along the first dimension, as expressions see it.
fn coordinate_first(schema: &Schema, position: u64) -> Scalar {
    let first = &schema.dimensions()[0];
    let coordinate = first.coordinate(position).unwrap();
    if first.is_integer() {
        Scalar::Int(coordinate.to_i64().unwrap().into())
    } else {
        Scalar::Float(coordinate.to_f64())
    }
}

fn same(found: &ArrayData, model: &Plain) -> Result<(), TestCaseError> {
    let schema = found.schema();
    prop_assert_eq!(schema.shape(), model.shape());
    let names: Vec<&str> = schema.attributes().iter().map(Attribute::name).collect();
    prop_assert_eq!(
        &names,
        &model
            .attributes
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
    );
    let cells = cells_of(&found.to_block().unwrap());
    prop_assert_eq!(
        cells.keys().collect::<Vec<_>>(),
        model.cells.keys().collect::<Vec<_>>()
    );
    for (at, values) in &cells {
        let equal = values
            .iter()
            .zip(&model.cells[at])
            .all(|(a, b)| match (a, b) {
                (Scalar::Float(_), Scalar::Int(_)) | (Scalar::Int(_), Scalar::Float(_)) => {
                    a.order(*b).is_some_and(|of| of.is_eq())
                }
                (Scalar::Float(a), Scalar::Float(b)) if a.is_finite() && b.is_finite() => {
                    (a - b).abs() <= 1e-9 * a.abs().max(1.0)
                }
                _ => a == b,
            });
        prop_assert!(equal, "{at:?}: {values:?} is not {:?}", model.cells[at]);
    }
    Ok(())
}

fn check(
    schema: &Schema,
    rows: &[Vec<Scalar>],
    steps: &[Step],
    team: &Arc<Workers>,
) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let draw = |at: &[u64]| {
        let number = at
            .iter()
            .zip([7, 3, 1, 5])
            .map(|(at, by)| at * by)
            .sum::<u64>() as usize;
        (number % 5 != 4).then(|| rows[number % rows.len()].clone())
    };
    let whole = Region::of_shape(&schema.shape());
    let written = block(schema, &whole, draw);
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", schema).unwrap();
    wait(writer.write("a", &written)).unwrap();
    writer.commit().unwrap();
    let mut cells = Cells::new();
    for at in positions(&whole) {
        match draw(&at) {
            Some(values) => drop(cells.insert(at, values)),
            None if schema.layout() == Layout::Dense => drop(cells.insert(at, fills(schema))),
            None => {}
        }
    }
    let dimensions = schema
        .dimensions()
        .iter()
        .map(|of| (of.name().to_owned(), of.length()));
    let names = ["a", "b"].map(str::to_owned).to_vec();
    let mut model = Plain {
        dimensions: dimensions.collect(),
        attributes: names,
        cells,
    };
    let array = Array::open(&store.snapshot(), "a").unwrap();
    let mut plan = Plan::scan(&array);
    for step in steps {
        let schema = plan.schema().unwrap();
        let small = schema.cells() < 4000 && model.cells.len() < 4000;
        if let Some(next) = apply(step, plan.clone(), &model, &schema).filter(|_| small) {
            (plan, model) = next;
        }
    }
    let pipelined = wait(plan.run(&Run::new())).unwrap();
    same(&pipelined, &model)?;
    let other = wait(plan.run(&Run::new().model(Model::Materialise))).unwrap();
    same(&other, &model)?;
    prop_assert_eq!(bits(&pipelined), bits(&other));
    let (task, groups) = (plan.clone(), 1 + rows.len() % 3);
    let run = Run::new().on(team, groups, 2);
    let shared = team.block_on(async move { task.run(&run).await }).unwrap();
    prop_assert_eq!(bits(&pipelined), bits(&shared));
    let instances = [team.clone(), other_team().clone(), team.clone()];
    for model in [Model::Pipeline, Model::Materialise] {
        let run = Run::new().model(model).on_instances(&instances, 2);
        let task = plan.clone();
        let owned = team.block_on(async move { task.run(&run).await }).unwrap();
        prop_assert_eq!(bits(&pipelined), bits(&owned));
    }
    Ok(())
}

#[test]
fn what_a_plan_reads_is_known_before_it_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let dimensions = vec![
        Dimension::integer("x", 0, 100).chunk(10),
        Dimension::integer("y", 0, 100).chunk(50),
    ];
    let schema = Schema::new(dimensions, vec![Attribute::new("v", DataType::F64)]).unwrap();
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema).unwrap();
    writer.commit().unwrap();
    let scan = Plan::scan(&Array::open(&store.snapshot(), "a").unwrap());
    let reads = |plan: &Plan| plan.reads(1000).unwrap().unwrap();
    let all = reads(&scan);
    assert_eq!(all.len(), 20);
    assert!(
        all.iter()
            .all(|read| (read.bytes, read.slabs) == (4000, 10))
    );
    let bounds = [(Bound::from(5), Bound::from(14)), (0.into(), 9.into())];
    let part = scan.clone().subarray(&bounds);
    let bytes: u64 = reads(&part).iter().map(|read| read.bytes).sum();
    assert_eq!(bytes, 10 * 10 * 8);
    // What an aggregate reads, and not the one cell that it makes; both inputs of a sum.
    let sum = [Aggregate::new(Function::Sum, "v")];
    assert_eq!(reads(&scan.clone().aggregate(&sum, &[])), all);
    assert_eq!(reads(&part.clone().aggregate(&sum, &["x"])), reads(&part));
    assert_eq!(scan.reads(19).unwrap(), None);
    let made = Plan::build(&schema, value(1));
    assert_eq!(reads(&made), []);
    assert!(scan.filter(name("w")).reads(1).is_err());
}

/// All that there is, to the bit.
pub fn bits(data: &ArrayData) -> Vec<String> {
    let cells = cells_of(&data.to_block().unwrap());
    let exact = |of: &Scalar| match of {
        Scalar::Float(value) if value.is_nan() => "NaN".to_owned(),
        Scalar::Float(value) => format!("{:x}", value.to_bits()),
        of => of.to_string(),
    };
    cells
        .iter()
        .map(|(at, values)| format!("{at:?} {:?}", values.iter().map(exact).collect::<Vec<_>>()))
        .collect()
}

/// Workers beside those of the test.
fn other_team() -> &'static Arc<Workers> {
    static OTHERS: std::sync::LazyLock<Arc<Workers>> = std::sync::LazyLock::new(team);
    &OTHERS
}

fn team() -> Arc<Workers> {
    let live = topology::Machine::live().unwrap();
    Workers::new(Places::of(&live, &live, 2, false)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn chains_of_operators_are_what_plain_loops_make_of_them(
        (schema, rows) in prop_oneof![3 => start(Layout::Dense), 1 => start(Layout::Sparse)],
        steps in prop::collection::vec(step(), 0..5),
    ) {
        static TEAM: std::sync::LazyLock<Arc<Workers>> = std::sync::LazyLock::new(team);
        check(&schema, &rows, &steps, &TEAM)?;
    }
}
